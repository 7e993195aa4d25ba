"""Sessions of the page: cookies instead of tokens, writes from our own page only, ends that take effect at once."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.embedded.access.owner_token import for_sessions
from interlock.embedded.access.sessions import CODE_MS, IDLE_MS, LONGEST_MS, Sessions
from interlock.embedded.access.tokens import Scope, Token, Tokens
from interlock.embedded.clock import SystemClock
from interlock.embedded.service import Service
from interlock.embedded.sqlite.database import Database
from tests.api.running import WAIT, pipeline, problem, running, until
from tests.conformance.manual_clock import ManualClock

V1 = "/api/v1"
Guarded = tuple[Service, httpx.Client, dict[str, str]]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A controller with tokens."""
    with running(tmp_path_factory.mktemp("sessions")) as (service, client):
        assert client.put(f"{V1}/pipelines/gold", json=pipeline("gold")).status_code == 201
        texts = {scope.value: service.tokens.create(scope.value.replace(":", "-"), [scope])[0] for scope in Scope}
        yield service, client, texts


def own(client: httpx.Client) -> dict[str, str]:
    """The headers of our own page."""
    return {"Origin": str(client.base_url).rstrip("/"), "X-Interlock": "1"}


@contextmanager
def logged_in(client: httpx.Client, text: str) -> Iterator[httpx.Client]:
    """A browser with a session."""
    with httpx.Client(base_url=client.base_url, timeout=WAIT) as browser:
        response = browser.post(f"{V1}/session", json={"token": text}, headers=own(client))
        assert response.status_code == 200, response.text
        yield browser


def test_without_tokens_there_is_no_session_to_begin(tmp_path: Path) -> None:
    with running(tmp_path) as (_, client):
        found = client.get(f"{V1}/session").json()
        assert found == {"name": "local", "scopes": list(Scope), "pipelines": [], "owners": [], "required": False}
        begun = client.post(f"{V1}/session", json={"token": "whatever"}, headers=own(client))
        assert begun.json() == found
        assert "set-cookie" not in begun.headers


def test_a_token_is_exchanged_for_a_cookie_that_no_script_reads(guarded: Guarded) -> None:
    service, client, texts = guarded
    problem(client.get(f"{V1}/session"), 401, "unauthorized")
    response = client.post(f"{V1}/session", json={"token": texts["operate"]}, headers=own(client))
    client.cookies.clear()
    assert response.json() == {
        "name": "operate",
        "scopes": ["read", "operate"],
        "pipelines": [],
        "owners": [],
        "required": True,
    }
    cookie = response.headers["set-cookie"]
    name, _, rest = cookie.partition("=")
    assert name == f"interlock_session_{client.base_url.port}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in rest.split(";")}
    assert "Secure" not in cookie
    value = rest.partition(";")[0]
    assert len(value) == 43
    store = service.settings.store
    assert store is not None
    service.database.flush()
    assert all(value.encode() not in file.read_bytes() for file in store.parent.iterdir() if file.is_file())


def test_behind_https_the_cookie_is_secure_and_the_public_page_is_ours(tmp_path: Path) -> None:
    public = "https://interlock.example.com"
    with running(tmp_path, public_url=public) as (service, client):
        text, _ = service.tokens.create("me", [Scope.ADMIN])
        headers = {"Origin": public, "X-Interlock": "1"}
        response = client.post(f"{V1}/session", json={"token": text}, headers=headers)
        assert "; Secure" in response.headers["set-cookie"]
        value = response.headers["set-cookie"].partition(";")[0]
        wrote = client.put(f"{V1}/pipelines/gold", json=pipeline("gold"), headers={**headers, "Cookie": value})
        assert wrote.status_code == 201
        elsewhere = {**headers, "Origin": "https://interlock.example.com.evil.example", "Cookie": value}
        problem(client.put(f"{V1}/pipelines/gold", json=pipeline("gold"), headers=elsewhere), 403, "cross-origin")


WRITES: list[tuple[str, str, Any]] = [
    ("PUT", f"{V1}/pipelines/gold/sensors/rows", {"count": 1}),
    ("PUT", f"{V1}/pipelines/gold/sensors/rows?ttl=1", {"count": 1}),
    ("POST", f"{V1}/sensors:batch", {"sensors": []}),
    ("POST", f"{V1}/pipelines/gold/reruns", {"date": "2026-03-03"}),
    ("POST", f"{V1}/watchdog/run", None),
    ("DELETE", f"{V1}/session", None),
    ("DELETE", f"{V1}/pipelines/nothing", None),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES, ids=[f"{one[0]} {one[1]}" for one in WRITES])
def test_a_write_by_cookie_comes_from_our_own_page(guarded: Guarded, method: str, path: str, body: Any) -> None:
    _, client, texts = guarded
    mine = own(client)
    with logged_in(client, texts["admin"]) as browser:
        host = client.base_url.host
        foreign: list[dict[str, str]] = [
            {},
            {"X-Interlock": "1"},
            {"Origin": mine["Origin"]},
            {**mine, "X-Interlock": "yes"},
            {**mine, "Origin": "http://evil.example"},
            {**mine, "Origin": "null"},
            {**mine, "Origin": f"http://{host}:1"},
            {**mine, "Origin": mine["Origin"].replace("http:", "https:")},
        ]
        for headers in foreign:
            problem(browser.request(method, path, json=body, headers=headers), 403, "cross-origin")
        allowed = browser.request(method, path, json=body, headers=mine)
        assert allowed.status_code not in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED), allowed.text


def test_a_bearer_token_wins_over_a_cookie_and_needs_no_origin(guarded: Guarded) -> None:
    _, client, texts = guarded
    with logged_in(client, texts["read"]) as browser:
        headers = {"Authorization": f"Bearer {texts['sensor:write']}", "Origin": "http://evil.example"}
        assert browser.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 1}, headers=headers).status_code == 200
        problem(browser.get(f"{V1}/pipelines", headers=headers), 403, "forbidden")
        wrong = {"Authorization": "Bearer wrong"}
        problem(browser.get(f"{V1}/pipelines", headers=wrong), 401, "unauthorized")


def test_a_session_has_the_rights_of_its_token_and_its_name(guarded: Guarded) -> None:
    service, client, texts = guarded
    text, _ = service.tokens.create("of-gold", [Scope.SENSOR_WRITE, Scope.READ], pipelines=["gold"])
    with logged_in(client, text) as browser:
        found = browser.get(f"{V1}/session").json()
        assert (found["name"], found["pipelines"]) == ("of-gold", ["gold"])
        wrote = browser.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 1}, headers=own(client))
        assert wrote.status_code == 200
        problem(browser.post(f"{V1}/watchdog/run", headers=own(client)), 403, "forbidden")
    with logged_in(client, texts["operate"]) as browser:
        asked = {"date": "2026-03-04", "force": True}
        assert browser.post(f"{V1}/pipelines/gold/reruns", json=asked, headers=own(client)).status_code == 202
        run = browser.get(f"{V1}/pipelines/gold/runs/stream/2026-03-04").json()
        assert run["requestedBy"] == "operate"


def test_a_foreign_page_cannot_log_a_browser_in(guarded: Guarded) -> None:
    _, client, texts = guarded
    headers = {"Origin": "http://evil.example", "X-Interlock": "1"}
    problem(client.post(f"{V1}/session", json={"token": texts["read"]}, headers=headers), 403, "cross-origin")


@pytest.mark.parametrize("body", [{}, {"token": ""}, {"token": "ilk_wrong"}, {"code": "wrong"}], ids=str)
def test_what_is_no_token_begins_no_session(guarded: Guarded, body: dict[str, str]) -> None:
    _, client, _ = guarded
    problem(client.post(f"{V1}/session", json=body, headers=own(client)), 401, "unauthorized")


# --------------------------------------------------------------------------------------------------------- the end


def test_the_end_of_a_session(guarded: Guarded) -> None:
    _, client, texts = guarded
    with logged_in(client, texts["read"]) as browser:
        assert browser.get(f"{V1}/pipelines").status_code == 200
        value = next(iter(browser.cookies.jar)).value
        ended = browser.delete(f"{V1}/session", headers=own(client))
        assert ended.status_code == 204
        assert "Max-Age=0" in ended.headers["set-cookie"]
        again = {"Cookie": f"interlock_session_{client.base_url.port}={value}"}
        problem(client.get(f"{V1}/pipelines", headers=again), 401, "unauthorized")


def test_revoking_the_token_ends_its_sessions(guarded: Guarded) -> None:
    service, client, _ = guarded
    text, _ = service.tokens.create("leaving", [Scope.READ])
    with logged_in(client, text) as browser:
        assert browser.get(f"{V1}/pipelines").status_code == 200
        service.tokens.revoke("leaving")
        problem(browser.get(f"{V1}/pipelines"), 401, "unauthorized")


@pytest.mark.parametrize("how", ["revoked", "logged out", "revoked by another process"])
def test_streams_end_with_what_they_were_opened_with(guarded: Guarded, how: str) -> None:
    service, client, _ = guarded
    name = f"stream-{how.replace(' ', '-')}"
    text, _ = service.tokens.create(name, [Scope.READ])
    with logged_in(client, text) as browser, browser.stream("GET", f"{V1}/events/stream") as stream:
        lines = stream.iter_lines()
        next(lines)
        began = threading.Event()
        ended: list[float] = []

        def act() -> None:
            began.wait(WAIT)
            if how == "revoked":
                service.tokens.revoke(name)
            elif how == "logged out":
                service.sessions.end(str(next(iter(browser.cookies.jar)).value))
            else:
                Tokens(service.database).revoke(name)
            ended.append(SystemClock().now().timestamp())

        thread = threading.Thread(target=act)
        thread.start()
        began.set()
        reported = [line for line in lines if line]
        closed = SystemClock().now().timestamp()
        thread.join()
    assert reported[-2:] == ["event: closed", "data: your token or session has ended"]
    assert closed - ended[0] < 3.0  # a second on a quiet machine


# ------------------------------------------------------------------------------------------------- single-use codes


def local_token(tokens: Tokens) -> Token:
    """The owner's token, which such a session is bound to."""
    found = for_sessions(tokens)
    assert found is not None
    return found


def test_a_code_begins_one_session(guarded: Guarded) -> None:
    service, client, texts = guarded
    bearer = {"Authorization": f"Bearer {texts['operate']}"}
    code = client.post(f"{V1}/session/code", headers=bearer).json()["code"]
    begun = client.post(f"{V1}/session", json={"code": code}, headers=own(client))
    client.cookies.clear()
    assert begun.json()["name"] == "operate"
    problem(client.post(f"{V1}/session", json={"code": code}, headers=own(client)), 401, "unauthorized")
    local = service.sessions.make_code(local_token(service.tokens))
    begun = client.post(f"{V1}/session", json={"code": local}, headers=own(client))
    client.cookies.clear()
    assert begun.json()["scopes"] == list(Scope)
    assert begun.json()["name"] == "local"


def test_a_code_of_a_revoked_token_begins_nothing(guarded: Guarded) -> None:
    service, client, _ = guarded
    _, made = service.tokens.create("hasty", [Scope.READ])
    code = service.sessions.make_code(made)
    service.tokens.revoke("hasty")
    problem(client.post(f"{V1}/session", json={"code": code}, headers=own(client)), 401, "unauthorized")


def test_neither_codes_nor_cookies_nor_tokens_are_logged(guarded: Guarded, capfd: pytest.CaptureFixture[str]) -> None:
    service, client, texts = guarded
    code = service.sessions.make_code(local_token(service.tokens))
    client.post(f"{V1}/session", json={"code": code}, headers=own(client))
    client.cookies.clear()
    with logged_in(client, texts["read"]) as browser:
        browser.get(f"{V1}/pipelines")
        value = str(next(iter(browser.cookies.jar)).value)
        browser.put(f"{V1}/pipelines/gold/sensors/x", json={})
    shown = "".join(capfd.readouterr())
    assert "/api/v1/session" in shown
    assert all(secret not in shown for secret in (code, value, texts["read"]))


# ---------------------------------------------------------------------------------------------------- their lifetime


@pytest.fixture
def kept() -> Iterator[tuple[Database, Tokens, ManualClock]]:
    clock = ManualClock()
    with Database.open(None, clock=clock, inline=True) as database:
        yield database, Tokens(database), clock


def test_a_session_ends_after_twelve_idle_hours(kept: tuple[Database, Tokens, ManualClock]) -> None:
    database, tokens, clock = kept
    sessions = Sessions(database, tokens, clock)
    value = sessions.begin(local_token(tokens))
    for _ in range(3):
        clock.advance(milliseconds=IDLE_MS - 1)
        assert Sessions(database, tokens, clock).find(value) is not None
        database.write(lambda _: None)  # what was deferred rides with it
    clock.advance(milliseconds=IDLE_MS)
    assert Sessions(database, tokens, clock).find(value) is None


def test_a_session_ends_after_seven_days_however_much_it_is_used(kept: tuple[Database, Tokens, ManualClock]) -> None:
    database, tokens, clock = kept
    value = Sessions(database, tokens, clock).begin(local_token(tokens))
    used = 0
    while used + IDLE_MS // 2 < LONGEST_MS:
        clock.advance(milliseconds=IDLE_MS // 2)
        used += IDLE_MS // 2
        assert Sessions(database, tokens, clock).find(value) is not None
        database.write(lambda _: None)
    clock.advance(milliseconds=IDLE_MS // 2)
    assert Sessions(database, tokens, clock).find(value) is None
    Sessions(database, tokens, clock).begin(local_token(tokens))
    assert database.read("SELECT count(*) FROM sessions") == [(1,)]


def test_a_code_ends_after_five_minutes(kept: tuple[Database, Tokens, ManualClock]) -> None:
    database, tokens, clock = kept
    sessions = Sessions(database, tokens, clock)
    code = sessions.make_code(local_token(tokens))
    clock.advance(milliseconds=CODE_MS)
    assert sessions.redeem(code) is None
    fresh = sessions.make_code(local_token(tokens))
    clock.advance(milliseconds=CODE_MS - 1)
    assert sessions.redeem(fresh) is not None
    assert sessions.redeem(fresh) is None


def test_a_session_survives_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as (service, _):
        text, _ = service.tokens.create("me", [Scope.READ])
        token = service.tokens.verify(text)
        assert token is not None
        value = service.sessions.begin(token)
    with running(tmp_path) as (service, client):
        headers = {"Cookie": f"interlock_session_{client.base_url.port}={value}"}
        assert client.get(f"{V1}/session", headers=headers).json()["name"] == "me"


def test_the_events_of_a_session_are_those_of_the_stream(guarded: Guarded) -> None:
    service, client, texts = guarded
    with logged_in(client, texts["read"]) as browser:
        position = browser.get(f"{V1}/overview").json()["position"]
        service.control.store.pipelines()
        client.post(
            f"{V1}/pipelines/gold/reruns",
            json={"date": "2026-03-09", "force": True},
            headers={"Authorization": f"Bearer {texts['operate']}"},
        )
        with browser.stream("GET", f"{V1}/events/stream", headers={"Last-Event-ID": position}) as stream:
            types = (json.loads(line[6:])["type"] for line in stream.iter_lines() if line.startswith("data: "))
            assert until(lambda: next(types) == "RERUN_ACCEPTED" or None)

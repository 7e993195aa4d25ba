"""Who may do what: tokens and their scopes, the guard against foreign web pages, and what never leaks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from interlock.api.app import create_api
from interlock.api.auth import SCOPE
from interlock.api.metrics import Metrics
from interlock.api.state import AppState
from interlock.api.write_rates import WriteRates
from interlock.embedded.access.tokens import PREFIX, Scope, Tokens
from interlock.embedded.service import Service
from interlock.model.errors import InvalidValueError
from tests.api.running import pipeline, running, until

V1 = "/api/v1"
# Who asks for a session says who they are in the request itself.
OPEN = {f"{V1}/callbacks/{{token}}", "/healthz", "/readyz", "/openapi.json", f"{V1}/session"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, httpx.Client, dict[str, str]]]:
    """A controller with tokens: one of each scope, and limited ones."""
    with running(tmp_path_factory.mktemp("guarded")) as (service, client):
        for name, owner in (("gold", "analytics"), ("silver", "ingest"), ("bronze", "ingest")):
            document = pipeline(name)
            document["pipeline"]["owner"] = owner
            assert client.put(f"{V1}/pipelines/{name}", json=document).status_code == 201
        texts = {scope.value: service.tokens.create(scope.value.replace(":", "-"), [scope])[0] for scope in Scope}
        writes = [Scope.SENSOR_WRITE, Scope.JOB_WRITE]
        texts["of-gold"] = service.tokens.create("of-gold", writes, pipelines=["gold"])[0]
        texts["of-ingest"] = service.tokens.create("of-ingest", writes, owners=["ingest"])[0]
        yield service, client, texts


Guarded = tuple[Service, httpx.Client, dict[str, str]]

# What is asked, and the scopes it works with; `admin` works with all.
TABLE: list[tuple[str, str, Any, set[str]]] = [
    ("GET", f"{V1}/pipelines", None, {"read", "operate"}),
    ("GET", f"{V1}/pipelines/gold", None, {"read", "operate"}),
    ("GET", f"{V1}/pipelines/gold/sensors", None, {"read", "operate"}),
    ("GET", f"{V1}/pipelines/gold/sensors/none", None, {"read", "operate"}),
    ("GET", f"{V1}/pipelines/gold/readiness", None, {"read", "operate"}),
    ("GET", f"{V1}/pipelines/gold/runs", None, {"read", "operate"}),
    ("GET", f"{V1}/pipelines/gold/runs/stream/2026-03-03", None, {"read", "operate"}),
    ("GET", f"{V1}/events", None, {"read", "operate"}),
    ("GET", f"{V1}/stats", None, {"read", "operate"}),
    ("GET", f"{V1}/overview", None, {"read", "operate"}),
    ("GET", f"{V1}/alerts/routes", None, {"operate"}),
    ("GET", f"{V1}/stats/sla", None, {"read", "operate"}),
    ("GET", f"{V1}/graph?root=gold", None, {"read", "operate"}),
    ("GET", f"{V1}/hazards", None, {"read", "operate"}),
    ("GET", f"{V1}/audit", None, set()),
    ("GET", f"{V1}/tokens", None, set()),
    ("POST", f"{V1}/tokens", {"name": "", "scopes": []}, set()),
    ("DELETE", f"{V1}/tokens/nobody", None, set()),
    ("POST", f"{V1}/tokens/nobody:rotate", {}, set()),
    ("GET", f"{V1}/pipelines/gold/trend", None, {"read", "operate"}),
    ("GET", f"{V1}/pipelines/gold/upcoming", None, {"read", "operate"}),
    ("POST", f"{V1}/pipelines/gold/reruns:preview", {"date": "never"}, {"operate"}),
    ("GET", f"{V1}/controller", None, {"read", "operate"}),
    ("POST", f"{V1}/session/code", None, {"read", "operate"}),
    ("GET", "/metrics", None, {"read", "operate"}),
    ("PUT", f"{V1}/pipelines/gold/sensors/rows", {"count": 1}, {"sensor:write", "of-gold"}),
    ("PUT", f"{V1}/pipelines/silver/sensors/rows", {"count": 1}, {"sensor:write", "of-ingest"}),
    (
        "POST",
        f"{V1}/sensors:batch",
        {"sensors": [{"pipeline": "gold", "key": "k", "data": {}}]},
        {"sensor:write", "of-gold"},
    ),
    (
        "POST",
        f"{V1}/sensors:batch",
        {"sensors": [{"pipeline": name, "key": "k", "data": {}} for name in ("gold", "silver")]},
        {"sensor:write"},
    ),
    ("DELETE", f"{V1}/pipelines/gold/sensors/absent", None, {"sensor:write", "of-gold"}),
    ("POST", f"{V1}/lineage", {"run": {}, "job": {}}, {"sensor:write", "of-gold", "of-ingest"}),
    ("POST", f"{V1}/pipelines/gold/jobs", {"date": "2026-03-03", "result": "fail"}, {"job:write", "of-gold"}),
    ("POST", f"{V1}/pipelines/bronze/jobs", {"date": "2026-03-03", "result": "fail"}, {"job:write", "of-ingest"}),
    ("POST", f"{V1}/pipelines/gold/runs/stream/2026-03-03:claim", {"claimId": "x"}, {"job:write", "of-gold"}),
    ("POST", f"{V1}/pipelines/gold/runs/stream/2026-03-03:cancel", {"reason": "x"}, {"operate"}),
    ("GET", f"{V1}/pipelines/gold/jobs/gold-2026-03-03-1-x/output", None, {"operate"}),
    ("POST", f"{V1}/pipelines/gold/reruns", {"date": "never"}, {"operate"}),
    ("POST", f"{V1}/watchdog/run", None, {"operate"}),
    ("GET", f"{V1}/alerts", None, {"operate"}),
    ("POST", f"{V1}/alerts:test", {"channel": "none"}, {"operate"}),
    ("POST", f"{V1}/pipelines/gold/probes:run", {"key": "none"}, {"operate"}),
    ("GET", f"{V1}/dlq", None, {"operate"}),
    ("POST", f"{V1}/dlq/redrive", {"ids": [99]}, {"operate"}),
    ("PUT", f"{V1}/pipelines/gold", {}, set()),
    ("DELETE", f"{V1}/pipelines/nothing", None, set()),
]


@pytest.mark.parametrize(("method", "path", "body", "scopes"), TABLE, ids=[f"{one[0]} {one[1]}" for one in TABLE])
def test_each_route_takes_its_scopes_and_no_others(
    guarded: Guarded, method: str, path: str, body: Any, scopes: set[str]
) -> None:
    _, client, texts = guarded
    refusals = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    for name, text in texts.items():
        response = client.request(method, path, json=body, headers={"Authorization": f"Bearer {text}"})
        allowed = name in scopes or name == "admin"
        assert (response.status_code not in refusals) == allowed, (name, response.text)
        assert response.status_code != HTTPStatus.INTERNAL_SERVER_ERROR
    nobody = client.request(method, path, json=body)
    assert nobody.status_code == HTTPStatus.UNAUTHORIZED
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    assert nobody.headers["content-type"] == "application/problem+json"


# What shows a token that is limited to some pipelines its own part.
FILTERED = {"/pipelines", "/session/code", "/overview", "/events", "/stats/sla", "/hazards", "/controller"}


@pytest.fixture(scope="module")
def limited(guarded: Guarded) -> dict[str, str]:
    """The header of a token that may operate one pipeline, and see it."""
    service, _, _ = guarded
    text, _ = service.tokens.create("operates silver", [Scope.OPERATE], pipelines=["silver"])
    return {"Authorization": f"Bearer {text}"}


@pytest.mark.parametrize(("method", "path", "body", "scopes"), TABLE, ids=[f"{one[0]} {one[1]}" for one in TABLE])
def test_a_limited_token_sees_and_does_nothing_elsewhere(
    guarded: Guarded, limited: dict[str, str], method: str, path: str, body: Any, scopes: set[str]
) -> None:
    """What it may not do for all pipelines it may not do at all, unless it names one of its own."""
    _, client, _ = guarded
    open_ = "operate" in scopes and path.removeprefix(V1) in FILTERED
    if "silver" not in path and not open_:
        response = client.request(method, path, json=body, headers=limited)
        assert response.status_code == HTTPStatus.FORBIDDEN, response.text
    own = path.replace("pipelines/gold", "pipelines/silver").replace("pipelines/bronze", "pipelines/silver")
    response = client.request(method, own, json=body, headers=limited)
    allowed = "operate" in scopes and ("pipelines/silver" in own or open_)
    assert (response.status_code != HTTPStatus.FORBIDDEN) == allowed, response.text


def test_lists_hold_what_a_limited_token_may_see(guarded: Guarded, limited: dict[str, str]) -> None:
    _, client, _ = guarded
    page = client.get(f"{V1}/pipelines", headers=limited, params={"limit": 1}).json()
    assert ([one["id"] for one in page["items"]], page["next"]) == (["silver"], None)
    for path in ("events", "stats", "hazards"):
        assert client.get(f"{V1}/{path}?pipeline=silver", headers=limited).status_code == HTTPStatus.OK, path
        for query in ("pipeline=gold", "pipeline=silver&pipeline=gold", "pipeline=nothing", "pipeline="):
            answer = client.get(f"{V1}/{path}?{query}", headers=limited)
            assert answer.status_code == HTTPStatus.FORBIDDEN, (path, query)


def test_a_limited_token_sees_its_part_of_every_list(guarded: Guarded) -> None:
    service, client, texts = guarded
    boss = {"Authorization": f"Bearer {texts['admin']}"}
    for name, after in (("report", "silver"), ("export", "silver")):
        document = pipeline(name, after=[{"pipeline": after}])
        document["pipeline"]["owner"] = "ingest" if name == "report" else "analytics"
        assert client.put(f"{V1}/pipelines/{name}", json=document, headers=boss).status_code == 201
    later = pipeline("later", after=[{"pipeline": "export"}])
    later["pipeline"]["owner"] = "ingest"
    assert client.put(f"{V1}/pipelines/later", json=later, headers=boss).status_code == 201
    text, _ = service.tokens.create("ingest reads", [Scope.READ], owners=["ingest"])
    mine = {"Authorization": f"Bearer {text}"}
    try:
        own = ["bronze", "later", "report", "silver"]
        overview = client.get(f"{V1}/overview", headers=mine).json()
        assert [one["id"] for one in overview["items"]] == own
        assert (overview["total"], overview["owners"]) == (4, ["ingest"])
        assert client.get(f"{V1}/overview?pipeline=gold&pipeline=silver", headers=mine).status_code == 403
        hazards = client.get(f"{V1}/hazards?limit=1", headers=mine).json()
        assert ([one["pipeline"] for one in hazards["items"]], hazards["next"]) == (["bronze"], "bronze")
        for name in ("gold", "silver"):
            body = {"date": "2026-03-05", "force": True, "reason": "why not"}
            assert client.post(f"{V1}/pipelines/{name}/reruns", json=body, headers=boss).is_success
        events = client.get(f"{V1}/events", headers=mine).json()["items"]
        assert {one["pipelineId"] for one in events} <= set(own)
        assert "silver" in {one["pipelineId"] for one in events}
        assert [one["pipeline"] for one in client.get(f"{V1}/stats/sla", headers=mine).json()["items"]] == []
        around = client.get(f"{V1}/graph?root=silver&depth=3", headers=mine).json()
        assert [one["id"] for one in around["nodes"]] == ["silver", "report"]
        above = client.get(f"{V1}/graph?root=later&depth=3", headers=mine).json()
        assert [(one["id"], one["hidden"], one["owner"]) for one in above["nodes"]] == [
            ("later", False, "ingest"),
            ("export", True, ""),
        ]
        assert client.get(f"{V1}/graph?root=gold", headers=mine).status_code == HTTPStatus.FORBIDDEN
        assert client.get(f"{V1}/controller", headers=mine).json()["pipelines"] == 4
    finally:
        for name in ("later", "report", "export"):
            client.delete(f"{V1}/pipelines/{name}", headers=boss)


def test_the_stream_of_a_limited_token_has_its_events_alone(guarded: Guarded) -> None:
    service, client, texts = guarded
    boss = {"Authorization": f"Bearer {texts['admin']}"}
    text, _ = service.tokens.create("silver reads", [Scope.READ], pipelines=["silver"])
    mine = {"Authorization": f"Bearer {text}"}
    began = service.clock.now()
    seen: list[str] = []
    with client.stream("GET", f"{V1}/events/stream?sensors=true", headers=mine) as answer:
        for line in answer.iter_lines():
            if line.startswith("retry:"):
                for name in ("gold", "silver"):
                    client.put(f"{V1}/pipelines/{name}/sensors/rows", json={"count": 7}, headers=boss)
                    body = {"date": "2026-03-04", "force": True, "reason": "why not"}
                    client.post(f"{V1}/pipelines/{name}/reruns", json=body, headers=boss)
            if line.startswith("data: {"):
                found = msgspec.json.decode(line[len("data: ") :])
                seen.append(found.get("pipelineId") or found["pipeline"])
                if found.get("type") == "RERUN_ACCEPTED":
                    break
    assert set(seen) == {"silver"}
    past: list[str] = []
    since = f"{V1}/events/stream?since={int(began.timestamp() * 1000)}"
    with client.stream("GET", since, headers=mine) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                found = msgspec.json.decode(line[len("data: ") :])
                past.append(found["pipelineId"])
                if found["type"] == "RERUN_ACCEPTED":
                    break
    assert set(past) == {"silver"}


def test_a_token_ends_where_its_terms_say(guarded: Guarded) -> None:
    service, client, _ = guarded
    now = service.clock.now()
    far, _ = service.tokens.create("far", [Scope.READ], networks=["192.0.2.0/24", "2001:db8::/32"])
    near, _ = service.tokens.create("near", [Scope.READ], networks=["127.0.0.0/8"])
    brief, known = service.tokens.create("brief", [Scope.READ], expires_at=now + timedelta(milliseconds=300))
    assert known.expires_at is not None

    def status(text: str) -> int:
        return client.get(f"{V1}/pipelines", headers={"Authorization": f"Bearer {text}"}).status_code

    assert (status(far), status(near)) == (401, 200)
    until(lambda: status(brief) == 401 or None, "the end of the token")
    assert known.in_force(known.expires_at - timedelta(seconds=1))
    assert not known.in_force(known.expires_at)
    until(lambda: {one.name: one for one in service.tokens.list()}["near"].used_at, "its use to be written down")


def test_a_rotated_token_has_a_new_text(guarded: Guarded) -> None:
    service, client, _ = guarded
    first, known = service.tokens.create("turned", [Scope.READ], pipelines=["gold"])

    def works(text: str) -> bool:
        return client.get(f"{V1}/pipelines", headers={"Authorization": f"Bearer {text}"}).is_success

    session = service.sessions.begin(known)
    second = service.tokens.rotate("turned")
    assert works(first)
    assert works(second)
    third = service.tokens.rotate("turned", grace=timedelta())
    assert [works(one) for one in (first, second, third)] == [False, False, True]
    until(lambda: service.sessions.find(session) is None or None, "the end of its session")
    assert service.tokens.verify(third).pipelines == ("gold",)  # type: ignore[union-attr]
    service.tokens.revoke("turned")
    with pytest.raises(InvalidValueError, match="is revoked"):
        service.tokens.rotate("turned")
    with pytest.raises(InvalidValueError, match="there is no token"):
        service.tokens.rotate("unknown")


def test_every_route_names_a_scope_or_is_known_to_be_open(service: Service) -> None:
    app = create_api(AppState(service, Metrics(service), WriteRates()))
    assert {route.template for route in app.routes if SCOPE not in route.opt} == OPEN


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer wrong",
        "Basic YTpi",
        f"Bearer {PREFIX}{'A' * 43}",
        b"bearer \xff",
    ],
    ids=str,
)
def test_what_is_no_token_is_refused(guarded: Guarded, header: str | bytes) -> None:
    _, client, _ = guarded
    headers = [(b"Authorization", header.encode() if isinstance(header, str) else header)]
    assert client.get(f"{V1}/pipelines", headers=headers).status_code == HTTPStatus.UNAUTHORIZED


def test_a_revoked_token_works_no_more(guarded: Guarded) -> None:
    service, client, _ = guarded
    text, made = service.tokens.create("leaver", [Scope.READ])
    headers = {"Authorization": f"Bearer {text}"}
    assert client.get(f"{V1}/pipelines", headers=headers).status_code == HTTPStatus.OK
    service.tokens.revoke("leaver")
    assert client.get(f"{V1}/pipelines", headers=headers).status_code == HTTPStatus.UNAUTHORIZED
    assert made.name in [one.name for one in service.tokens.list() if one.revoked_at is not None]


def test_actions_carry_the_name_of_the_token(guarded: Guarded) -> None:
    _, client, texts = guarded
    asked = {"date": "2026-03-03", "force": True, "reason": "why not"}
    response = client.post(
        f"{V1}/pipelines/gold/reruns", json=asked, headers={"Authorization": f"Bearer {texts['operate']}"}
    )
    assert response.json()["decision"] == "accepted"
    found = client.get(
        f"{V1}/pipelines/gold/runs/stream/2026-03-03", headers={"Authorization": f"Bearer {texts['read']}"}
    ).json()
    assert found["requestedBy"] == "operate"
    assert any(one["detail"].get("requestedBy") == "operate" for one in found["events"])


def test_tokens_are_kept_as_hashes_and_never_shown(guarded: Guarded, capfd: pytest.CaptureFixture[str]) -> None:
    service, client, texts = guarded
    for text in texts.values():
        client.get(f"{V1}/pipelines", headers={"Authorization": f"Bearer {text}"})
        client.put(f"{V1}/pipelines/gold/sensors/_odd", json={}, headers={"Authorization": f"Bearer {text}"})
    service.database.flush()
    shown = "".join(capfd.readouterr())
    store = service.settings.store
    assert store is not None
    for file in store.parent.iterdir():
        content = file.read_bytes() if file.is_file() else b""
        for text in texts.values():
            assert text.encode() not in content, file
    for text in texts.values():
        assert text not in shown


# ------------------------------------------------------------------------------------------------ making tokens


@pytest.mark.parametrize(
    ("name", "scopes", "limits", "message"),
    [
        ("", [Scope.READ], {}, "is not a token's name"),
        ("x" * 65, [Scope.READ], {}, "is not a token's name"),
        ("interlock", [Scope.READ], {}, "is a name of the controller's own"),
        ("local", [Scope.READ], {}, "is a name of the controller's own"),
        ("none", [], {}, "needs a scope"),
        ("wide", [Scope.ADMIN], {"pipelines": ["gold"]}, "do not limit admin"),
        ("late", [Scope.READ], {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "would never work"),
        ("odd", [Scope.READ], {"networks": ["10.0.0.1/8"]}, "is not a network: write"),
        ("odd", [Scope.SENSOR_WRITE], {"pipelines": ["#"]}, "is not a pipeline id"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    service: Service, name: str, scopes: list[Scope], limits: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        service.tokens.create(name, scopes, **limits)
    assert not service.tokens.required()


def test_token_names_are_unique(tmp_path: Path) -> None:
    with running(tmp_path) as (service, _):
        service.tokens.create("me", [Scope.READ])
        with pytest.raises(InvalidValueError, match="already"):
            service.tokens.create("me", [Scope.ADMIN])
        with pytest.raises(InvalidValueError, match="there is no token"):
            service.tokens.revoke("you")
        service.tokens.revoke("me")
        # That there was one is enough: revoking the last does not open the door again.
        assert service.tokens.required()
        assert not service.tokens.usable()


def test_tokens_made_by_another_process_are_noticed(tmp_path: Path) -> None:
    with running(tmp_path) as (service, client):
        assert client.get(f"{V1}/pipelines").status_code == HTTPStatus.OK
        other = Tokens(service.database)
        text, _ = other.create("elsewhere", [Scope.READ])
        service.tokens.forget()
        assert client.get(f"{V1}/pipelines").status_code == HTTPStatus.UNAUTHORIZED
        headers = {"Authorization": f"Bearer {text}"}
        assert client.get(f"{V1}/pipelines", headers=headers).status_code == HTTPStatus.OK


# --------------------------------------------------------------------------------------- web pages of other origins


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "app.localhost"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "127.8.8.8"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "192.168.1.5"}, 421),
        ({"Host": "[::1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:80", "Origin": "http://localhost:80"}, 200),
        ({"Host": "localhost:80", "Origin": "http://localhost:81"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
    ids=str,
)
def test_without_tokens_only_this_machine_may_write(api: httpx.Client, headers: dict[str, str], status: int) -> None:
    api.put(f"{V1}/pipelines/local", json=pipeline("local"))
    response = api.put(f"{V1}/pipelines/local/sensors/rows", json={"count": 1}, headers=headers)
    assert response.status_code == status, response.text
    if status != 200:
        assert response.headers["content-type"] == "application/problem+json"
    read = api.get(f"{V1}/pipelines", headers=headers)
    assert read.status_code == (421 if status == 421 else 200)


def test_with_a_token_origins_do_not_matter(guarded: Guarded) -> None:
    _, client, texts = guarded
    headers = {"Authorization": f"Bearer {texts['sensor:write']}", "Host": "interlock.corp", "Origin": "http://x.y"}
    assert client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 1}, headers=headers).status_code == 200

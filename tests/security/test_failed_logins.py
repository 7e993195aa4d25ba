"""Tokens that do not work: refused, throttled per peer, counted, and told once."""

import json
from pathlib import Path

import httpx

from interlock.api.credentials import Credentials
from interlock.api.logins import FailedLogins
from tests.api.running import problem, serving
from tests.security.commands import interlock


def test_who_tries_tokens_is_slowed_down_and_seen(tmp_path: Path) -> None:
    made = interlock(tmp_path, "token", "create", "--name", "me", "--scope", "read", "--json")
    good = {"Authorization": f"Bearer {json.loads(made.stdout)['token']}"}
    with serving(tmp_path) as server:
        api = server.client
        for number in range(60):
            answer = api.get("/api/v1/pipelines", headers={"Authorization": f"Bearer ilk_{number}"})
            if answer.status_code == 429:
                break
            problem(answer, 401, "unauthorized")
        assert number == 29
        for request in (
            httpx.Request(
                "PUT", f"{server.url}/api/v1/pipelines/x/sensors/y", json={}, headers={"Authorization": "Bearer x"}
            ),
            httpx.Request("POST", f"{server.url}/api/v1/session", json={"token": "ilk_guess"}),
            httpx.Request("POST", f"{server.url}/api/v1/session", json={"code": "guess"}),
        ):
            answer = api.send(request)
            problem(answer, 429, "too-many-requests")
            assert 1 <= int(answer.headers["retry-after"]) <= 60
        # Who shows one that works is let in, and who shows none is told what to do.
        assert api.get("/api/v1/pipelines", headers=good).status_code == 200
        problem(api.get("/api/v1/pipelines"), 401, "unauthorized")
        assert "interlock_failed_logins_total 33.0" in api.get("/metrics", headers=good).text
        assert server.log.read_text().count("failed logins") == 1


def test_a_minute_later_it_begins_anew() -> None:
    now = 0.0
    logins = FailedLogins(monotonic=lambda: now)
    shown = Credentials("Bearer x", peer="a")
    statuses = [int(logins.refusal(shown).status) for _ in range(31)]
    assert statuses == [401] * 29 + [429] * 2
    assert logins.refusal(Credentials("Bearer x", peer="b")).status == 401
    assert logins.refusal(Credentials(peer="a")).status == 401
    now = 60.0
    assert logins.refusal(shown).status == 401

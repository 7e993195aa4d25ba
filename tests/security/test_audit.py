"""The audit trail of a real controller: every change by a person or a token, with who, from where, and what."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.embedded.audit.actors import user_name
from interlock.embedded.audit.verify import snapshot, verify
from tests.api.running import Process, pipeline, problem, serving, until, write_pipeline
from tests.security.commands import interlock, refused

V1 = "/api/v1"
DAY = "2026-03-03"


class Bank:
    """A controller with three tokens: ann may do everything, olga operates, ray reads."""

    def __init__(self, process: Process, tokens: dict[str, str]) -> None:
        self.process = process
        self.tokens = tokens

    def ask(self, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        return self.process.client.request(method, f"{V1}/{path}", json=body, headers=headers)

    def done(self, who: str, method: str, path: str, body: Any = None) -> httpx.Response:
        """Ask, and be obeyed."""
        response = self.ask(who, method, path, body)
        assert response.is_success, response.text
        return response

    def trail(self, **asked: Any) -> list[dict[str, Any]]:
        """The records, oldest first."""
        query = str(httpx.QueryParams({"limit": 1000, **asked}))
        found: list[dict[str, Any]] = self.done("ann", "GET", f"audit?{query}").json()["items"]
        return found[::-1]


def token(folder: Path, name: str, scope: str) -> str:
    made = interlock(folder, "token", "create", "--name", name, "--scope", scope)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    folder = tmp_path_factory.mktemp("bank")
    tokens = {name: token(folder, name, scope) for name, scope in (("ann", "admin"), ("olga", "operate"))}
    tokens["ray"] = token(folder, "ray", "read")
    with serving(folder) as process:
        yield Bank(process, tokens)


def latest(found: list[dict[str, Any]], action: str) -> dict[str, Any]:
    return next(one for one in reversed(found) if one["action"] == action)


def test_configs_and_calendars(bank: Bank) -> None:
    first = bank.done("ann", "PUT", "pipelines/gold", pipeline("gold")).json()["version"]
    bank.done("ann", "PUT", "pipelines/gold", pipeline("gold"))
    second = bank.done("ann", "PUT", "pipelines/gold", pipeline("gold", dryRun=True)).json()["version"]
    bank.done("ann", "PUT", "calendars/closed", {"dates": ["2026-12-25"]})
    bank.done("ann", "PUT", "calendars/closed", {"dates": ["2026-12-26"]})
    bank.done("ann", "DELETE", "pipelines/gold")
    found = bank.trail(pipeline="gold")
    assert [(one["action"], one.get("before", {}), one.get("after", {})) for one in found] == [
        ("pipeline-applied", {}, {"version": first}),
        ("pipeline-applied", {"version": first}, {"version": second}),
        ("pipeline-deleted", {"version": second}, {}),
    ]
    assert all(one["actor"] == {"kind": "token", "name": "ann", "address": "127.0.0.1"} for one in found)
    calendars = bank.trail(action="calendar-applied")
    assert [one["subject"] for one in calendars] == ["closed", "closed"]
    assert calendars[1]["before"] == calendars[0]["after"] != calendars[1]["after"]


def test_whoever_applies_or_deletes_may_say_why(bank: Bank) -> None:
    why = "?reason=the+bank+closes%20early"
    bank.done("ann", "PUT", f"pipelines/said{why}", pipeline("said"))
    bank.done("ann", "PUT", f"calendars/early{why}", {"dates": ["2026-12-24"]})
    bank.done("ann", "DELETE", f"pipelines/said{why}")
    found = [*bank.trail(pipeline="said"), bank.trail(action="calendar-applied")[-1]]
    assert [(one["action"], one["reason"]) for one in found] == [
        ("pipeline-applied", "the bank closes early"),
        ("pipeline-deleted", "the bank closes early"),
        ("calendar-applied", "the bank closes early"),
    ]
    removed = bank.done("ann", "GET", "events?pipeline=said&type=PIPELINE_REMOVED").json()["items"]
    assert [one["detail"]["reason"] for one in removed] == ["the bank closes early"]
    assert bank.ask("ann", "PUT", f"pipelines/said?reason={'x' * 2001}", pipeline("said")).status_code == 422


def test_what_is_done_to_runs(bank: Bank) -> None:
    bank.done("ann", "PUT", "pipelines/runs", pipeline("runs"))
    path = f"pipelines/runs/runs/stream/{DAY}"
    for key, data in (("rows", {"count": 50}), ("up", {"status": "ready", "date": DAY})):
        bank.done("ann", "PUT", f"pipelines/runs/sensors/{key}", data)
    until(lambda: bank.ask("ray", "GET", path).is_success or None, "the run")
    until(lambda: bank.ask("ann", "POST", f"{path}:claim", {"claimId": "c-1"}).is_success or None, "the claim")
    bank.done("ann", "POST", "pipelines/runs/jobs", {"date": DAY, "result": "success"})
    until(lambda: bank.done("ray", "GET", path).json()["status"] == "COMPLETED" or None, "the completion")
    asked = {"date": DAY, "reason": "late correction", "force": True}
    rerun = bank.done("olga", "POST", "pipelines/runs/reruns", asked).json()
    until(lambda: bank.done("ray", "GET", path).json()["attempt"] == 2 or None, "the second attempt")
    bank.done("olga", "POST", f"{path}:cancel", {"reason": "wrong input"})
    bank.done("ann", "DELETE", "pipelines/runs/sensors/rows")
    found = bank.trail(pipeline="runs")
    assert [(one["action"], one["actor"]["name"]) for one in found] == [
        ("pipeline-applied", "ann"),
        ("run-claimed", "ann"),
        ("job-reported", "ann"),
        ("rerun-requested", "olga"),
        ("run-cancelled", "olga"),
        ("sensor-deleted", "ann"),
    ]
    claimed, reported, requested, cancelled, deleted = found[1:]
    slot = {"pipeline": "runs", "schedule": "stream", "date": DAY}
    for one in (claimed, reported, requested, cancelled):
        assert slot.items() <= one.items()
    assert claimed["subject"] == "c-1"
    assert claimed["after"]["runId"] == reported["after"]["runId"] != ""
    assert reported["after"]["result"] == "success"
    assert requested["reason"] == "late correction"
    assert requested["after"] == {"request": rerun["id"], "force": True}
    assert cancelled["reason"] == "wrong input"
    assert cancelled["before"]["attempt"] == 2
    assert deleted["subject"] == "rows"
    assert list(deleted["before"]) == ["digest"]
    sensor = bank.done("ray", "GET", "pipelines/runs/sensors/up").json()
    assert sensor["by"] == "ann", "who wrote a sensor is kept with it"


def test_tokens_sessions_and_codes(bank: Bank) -> None:
    made = bank.done("ann", "POST", "tokens", {"name": "ci", "scopes": ["sensor:write"], "owners": ["etl"]}).json()
    bank.done("ann", "POST", "session/code")
    own = {"X-Interlock": "1", "Origin": bank.process.url}
    with httpx.Client(base_url=bank.process.url, headers=own) as browser:
        assert browser.post(f"{V1}/session", json={"token": bank.tokens["olga"]}).is_success
        assert browser.delete(f"{V1}/session").is_success
        code = bank.done("ray", "POST", "session/code").json()["code"]
        assert browser.post(f"{V1}/session", json={"code": code}).is_success
    bank.done("ann", "POST", "tokens/ci:rotate", {})
    bank.done("ann", "DELETE", "tokens/ci")
    bank.done("ann", "DELETE", "tokens/ci")
    rotated = interlock(bank.process.folder, "token", "rotate", "ray", "--grace", "1h")
    found = bank.trail()
    shown = [(one["action"], one["actor"]["name"], one["subject"]) for one in found if one["action"][:5] in _SIGN_ON]
    assert shown == [
        ("token-created", user_name(), "ann"),
        ("token-created", user_name(), "olga"),
        ("token-created", user_name(), "ray"),
        ("token-created", "ann", "ci"),
        ("session-code-made", "ann", "ann"),
        ("session-begun", "olga", "olga"),
        ("session-ended", "olga", "olga"),
        ("session-code-made", "ray", "ray"),
        ("session-begun", "ray", "ray"),
        ("token-rotated", "ann", "ci"),
        ("token-revoked", "ann", "ci"),
        ("token-rotated", user_name(), "ray"),
    ]
    first = found[0]
    assert first["actor"] == {"kind": "os-user", "name": user_name(), "osUser": user_name()}
    ci = next(one for one in found if one["subject"] == "ci")
    assert ci["after"]["scopes"] == ["sensor:write"]
    assert ci["after"]["owners"] == ["etl"]
    turned = latest(found, "token-rotated")
    assert turned["before"]["digest"] != turned["after"]["digest"]
    everything = json.dumps(found) + _stored(bank)
    for secret in (made["token"], code, rotated.stdout.strip(), *bank.tokens.values()):
        assert secret not in everything


_SIGN_ON = ("token", "sessi")


def _stored(bank: Bank) -> str:
    with closing(sqlite3.connect(bank.process.store)) as connection:
        return json.dumps(connection.execute("SELECT record FROM audit").fetchall())


def test_what_is_done_by_hand(bank: Bank) -> None:
    bank.done("olga", "POST", "watchdog/run")
    bank.done("olga", "POST", "alerts:test", {})
    found = bank.trail()
    assert latest(found, "watchdog-run")["actor"]["name"] == "olga"
    assert latest(found, "alerts-tested")["subject"] == "all"
    letter = json.dumps({"table": "control", "pk": "p", "sk": "s", "at": 1, "item": None})
    with closing(sqlite3.connect(bank.process.store)) as connection:
        sql = "INSERT INTO dead_letters (source, kind, ref, record, error, tries, first_ms, last_ms)"
        connection.execute(f"{sql} VALUES ('stream-router', 'change', 'x', ?, 'e', 1, 1, 1)", (letter,))
        connection.commit()
    assert bank.done("olga", "POST", "dlq/redrive", {"ids": None}).json() == {"redriven": 1}
    assert latest(bank.trail(), "dead-letters-redriven")["after"]["count"] == 1


def test_who_is_refused_is_recorded_once_a_minute(bank: Bank) -> None:
    for _ in range(3):
        problem(bank.ask("ray", "GET", "tokens"), 403, "forbidden")
        problem(bank.ask("ray", "PUT", "pipelines/gold/sensors/rows", {}), 403, "forbidden")
    found = until(lambda: bank.trail(actor="ray", action="access-refused"), "the record")
    assert len(found) == 1
    assert found[0]["subject"] == f"GET {V1}/tokens"
    assert "admin" in found[0]["reason"]


@pytest.mark.parametrize("who", ["olga", "ray"])
def test_only_an_admin_may_look(bank: Bank, who: str) -> None:
    problem(bank.ask(who, "GET", "audit"), 403, "forbidden")


def test_the_trail_comes_in_pages(bank: Bank) -> None:
    whole = bank.done("ann", "GET", "audit?limit=1000").json()
    cursor, seqs = whole["items"][0]["seq"] + 1, list[int]()
    while cursor is not None:
        page = bank.done("ann", "GET", f"audit?limit=4&cursor={cursor}").json()
        seqs += [one["seq"] for one in page["items"]]
        cursor = page["next"]
    assert seqs == [one["seq"] for one in whole["items"]] == list(range(len(seqs), 0, -1))
    assert whole["head"]["seq"] == seqs[0]
    assert whole["head"]["hash"] == whole["items"][0]["hash"]
    later = bank.trail(since=whole["items"][0]["at"])
    assert seqs[0] in [one["seq"] for one in later]
    assert len(later) < len(seqs)
    for wrong in ("since=soon", "action=nothing", "limit=0", "cursor=x"):
        assert bank.ask("ann", "GET", f"audit?{wrong}").status_code == 422


def test_the_command_shows_and_verifies_it(bank: Bank) -> None:
    folder = bank.process.folder
    bank.done("ann", "PUT", "pipelines/shown", pipeline("shown"))
    bank.done("olga", "POST", "pipelines/shown/reruns", {"date": DAY, "reason": "late correction"})
    shown = interlock(folder, "audit", "--pipeline", "shown", "--actor", "olga", "--since", "1d", "--json")
    assert [one["action"] for one in json.loads(shown.stdout)["records"]] == ["rerun-requested"]
    table = interlock(folder, "audit", "--action", "rerun-requested")
    assert "late correction" in table.stdout
    over = interlock(folder, "audit", "--url", bank.process.url, "--limit", "2", "--json", environment=_as(bank, "ann"))
    assert len(json.loads(over.stdout)["records"]) == 2
    whole = interlock(folder, "audit", "verify", "--json")
    assert whole.returncode == 0, whole.stdout
    anchor = json.loads(whole.stdout)["anchor"]
    assert interlock(folder, "audit", "verify", "--head", anchor).returncode == 0
    assert interlock(folder, "audit", "verify", "--url", bank.process.url).returncode == 2
    assert interlock(folder, "audit", "--action", "nothing").returncode == 2
    elsewhere = interlock(folder, "audit", "--store", "aws://prod")
    assert elsewhere.returncode == 2
    assert "CloudTrail" in elsewhere.stderr


def _as(bank: Bank, who: str) -> dict[str, str]:
    return {"INTERLOCK_TOKEN": bank.tokens[who]}


# ------------------------------------------------------------------------------------- without a server, and folders


def test_a_user_of_the_machine_who_works_on_the_store_is_named(tmp_path: Path) -> None:
    """By the system, whatever the environment says."""
    liar = {"LOGNAME": "somebody", "USER": "somebody", "USERNAME": "somebody"}
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    (tmp_path / "interlock.toml").write_text("[audit]\nsensors = true\n")
    assert interlock(tmp_path, "apply", "pipelines", environment=liar).returncode == 0
    assert interlock(tmp_path, "sensor", "set", "gold", "rows", "count=5", environment=liar).returncode == 0
    assert interlock(tmp_path, "rerun", "gold", "--date", DAY, "--reason", "why not").returncode in (0, 1)
    assert interlock(tmp_path, "watchdog").returncode in (0, 1)
    (tmp_path / "pipelines" / "gold.json").unlink()
    write_pipeline(tmp_path, "silver", pipeline("silver"))
    assert interlock(tmp_path, "apply", "pipelines", "--prune").returncode == 0
    backup = interlock(tmp_path, "backup", "copy.db", "--json")
    assert backup.returncode == 0, backup.stderr
    found = json.loads(interlock(tmp_path, "audit", "--json").stdout)["records"][::-1]
    assert [(one["action"], one["actor"]["name"]) for one in found] == [
        (action, user_name())
        for action in (
            "pipeline-applied",
            "sensor-written",
            "rerun-requested",
            "watchdog-run",
            "pipeline-applied",
            "pipeline-deleted",
            "store-backed-up",
        )
    ]
    assert found[2]["reason"] == "why not"
    assert found[-1]["after"]["sha256"] == json.loads(backup.stdout)["manifest"]["sha256"]


def test_a_restored_store_goes_on_with_its_chain(tmp_path: Path) -> None:
    token(tmp_path, "ann", "admin")
    assert interlock(tmp_path, "backup", "copy.db").returncode == 0
    token(tmp_path, "bob", "read")
    lost = json.loads(interlock(tmp_path, "audit", "verify", "--json").stdout)["anchor"]
    assert interlock(tmp_path, "restore", "copy.db").returncode == 0
    token(tmp_path, "eve", "read")
    whole = interlock(tmp_path, "audit", "verify")
    assert whole.returncode == 0, whole.stdout
    found = json.loads(interlock(tmp_path, "audit", "--json").stdout)["records"][::-1]
    assert [one["action"] for one in found] == ["token-created", "store-restored", "token-created"]
    assert found[1]["before"] == {"head": lost}
    compared = interlock(tmp_path, "audit", "verify", "--head", lost)
    assert compared.returncode == 1, "what a restore took away is found by a head that was kept"


def test_a_folder_that_is_followed_is_recorded_with_its_owner(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    with serving(tmp_path, "--insecure-no-auth") as process:
        until(lambda: process.client.get(f"{V1}/pipelines/gold").is_success or None, "the pipeline")
        process.client.put(f"{V1}/pipelines/other", json=pipeline("other"))
        found = process.client.get(f"{V1}/audit").json()["items"][::-1]
    assert [(one["action"], one["actor"]["kind"], one["actor"]["name"]) for one in found] == [
        ("opened-to-all", "os-user", user_name()),
        ("pipeline-applied", "folder", "folder"),
        ("pipeline-applied", "anybody", "local"),
    ]
    assert found[1]["actor"]["osUser"] == user_name()


def test_the_owner_of_a_controller_without_tokens_is_named(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        assert process.client.put(f"{V1}/pipelines/gold", json=pipeline("gold")).status_code == 201
        found = process.client.get(f"{V1}/audit").json()["items"][::-1]
    assert [one["action"] for one in found] == ["token-created", "pipeline-applied"]
    assert found[0]["after"]["local"] is True
    owner = {"kind": "owner", "name": "local", "address": "127.0.0.1", "osUser": user_name()}
    assert found[1]["actor"] == owner


def test_every_sensor_write_is_recorded_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("[audit]\nsensors = true\n")
    with serving(tmp_path) as process:
        client = process.client
        client.put(f"{V1}/pipelines/gold", json=pipeline("gold"))
        for count in (1, 2):
            assert client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": count}).is_success
        forwarded = {"X-Forwarded-For": "192.0.2.9"}
        client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 3}, headers=forwarded)
        client.put(f"{V1}/pipelines/gold/sensors/rows?ttl=99999999999", json={"count": 4})
        batch = [{"pipeline": "gold", "key": f"k{n}", "data": {"n": n}} for n in range(3)]
        client.post(f"{V1}/sensors:batch", json={"sensors": batch})
        found = client.get(f"{V1}/audit?action=sensor-written").json()["items"][::-1]
    assert [one["subject"] for one in found] == ["rows"] * 4 + ["k0", "k1", "k2"]
    assert found[0].get("before", {}) == {}
    assert found[1]["before"] == found[0]["after"]
    assert found[2]["actor"]["address"] == "192.0.2.9"
    assert {one["actor"]["name"] for one in found} == {"local"}


def test_settings_that_are_none(tmp_path: Path) -> None:
    toml = tmp_path / "interlock.toml"
    toml.write_text('[audit]\nsensor = true\nsensors = "yes"\nkeep = "1h"\n')
    refused(
        interlock(tmp_path, "serve"),
        "audit.sensor: is not a setting; did you mean sensors?",
        "audit.sensors: 'yes' is neither true nor false",
        "audit.keep: '1h' is not between 1d and 36500d",
    )
    toml.write_text("audit = 5\n")
    refused(interlock(tmp_path, "serve"), "audit: is not a table")


# ------------------------------------------------------------------------------------------------ accidents, attacks


def test_a_controller_that_is_killed_leaves_a_whole_trail(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("[audit]\nsensors = true\n")
    acknowledged: list[str] = []
    for part in range(2):
        with serving(tmp_path) as process:
            process.client.put(f"{V1}/pipelines/gold", json=pipeline("gold"))

            def write(worker: int, part: int = part, process: Process = process) -> None:
                with httpx.Client(base_url=process.url) as client:
                    for n in range(10_000):
                        key = f"k{part}-{worker}-{n}"
                        try:
                            if client.put(f"{V1}/pipelines/gold/sensors/{key}", json={"n": n}).is_success:
                                acknowledged.append(key)
                        except httpx.HTTPError:
                            return

            threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
            for thread in threads:
                thread.start()
            until(partial(_have, acknowledged, 150 * (part + 1)), "some writes")
            process.kill()
            for thread in threads:
                thread.join()
    with snapshot(tmp_path / "interlock.db") as connection:
        verdict = verify(connection)
        subjects = {json.loads(text)["subject"] for (text,) in connection.execute(_SENSORS)}
    assert verdict.problems == []
    assert set(acknowledged) <= subjects, "a write that was acknowledged is on the record"


def _have(found: list[str], wanted: int) -> bool:
    return len(found) >= wanted


_SENSORS = "SELECT record FROM audit WHERE action = 'sensor-written'"


def test_a_store_that_somebody_edits_is_found_out(tmp_path: Path) -> None:
    for name in ("ann", "bob", "eve"):
        token(tmp_path, name, "read")
    assert _doctor(tmp_path)["ok"]
    with closing(sqlite3.connect(tmp_path / "interlock.db")) as connection:
        connection.execute("UPDATE audit SET record = replace(record, 'bob', 'rob') WHERE seq = 2")
        connection.commit()
    found = interlock(tmp_path, "audit", "verify")
    assert found.returncode == 1
    assert "record 2: it was altered" in found.stdout
    assert json.loads(interlock(tmp_path, "audit", "verify", "--json").stdout)["problems"][0]["seq"] == 2
    check = _doctor(tmp_path)
    assert not check["ok"]
    assert "record 2" in check["detail"]


def _doctor(folder: Path) -> dict[str, Any]:
    checks = json.loads(interlock(folder, "doctor", "--json").stdout)["checks"]
    found: dict[str, Any] = next(one for one in checks if one["name"] == "audit trail")
    return found

"""`interlock ready`: the exit code is the answer. Against the real server, real files, and nobody at all."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.cli.store_access import Target, writing
from interlock.control import records
from interlock.model import keys
from interlock.ports.store import Put
from tests.api.running import Process, pipeline, serving, until
from tests.cli.stage import DAY, Stage, make_token, plain, served

Capsys = pytest.CaptureFixture[str]
READY, NOT_READY, USAGE, CANNOT_TELL = range(4)
ROWS = {"key": "rows", "check": "gte", "field": "count", "value": 10}
OPEN: dict[str, Any] = {"schedule": {}, "validation": {"rules": [ROWS]}}


def gate(stage: Stage, *arguments: str) -> tuple[int, str, str]:
    outcome = stage.run("ready", *arguments)
    return outcome.code, outcome.out, outcome.err


def write(server: Process, name: str, **data: Any) -> None:
    answer = server.client.put(f"/api/v1/pipelines/{name}/sensors/rows", json={"date": DAY, **data})
    assert answer.status_code == 200, answer.text


# ----------------------------------------------------------------------------------------------------- the answer


def test_ready_and_not_ready(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "gate", **OPEN)
    code, out, err = gate(stage, "gate", "--date", DAY)
    assert (code, out) == (NOT_READY, "")
    assert err == f"gate for {DAY} is not ready: 0 of 1 rule passes; no sensor rows\n"
    write(server, "gate", count=50)
    code, out, err = gate(stage, "gate", "--date", DAY)
    assert (code, out, err) == (READY, f"{DAY}\n", f"gate for {DAY} is ready: 1 of 1 rule passes\n")


def test_json(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "gate-json", **OPEN)
    found = stage.json("ready", "gate-json", "--date", DAY)
    assert (found["ready"], found["code"], found["date"]) == (False, NOT_READY, DAY)
    write(server, "gate-json", count=50)
    assert stage.json("ready", "gate-json", "--date", DAY)["ready"] is True


def test_the_same_from_the_file_of_a_store(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path, pipeline("gold", **OPEN))
    assert gate(stage, "gold", "--date", DAY)[0] == NOT_READY
    stage.good("sensor", "set", "gold", "rows", "count=50", "--date", DAY)
    assert gate(stage, "gold", "--date", DAY)[:2] == (READY, f"{DAY}\n")


def test_a_date_that_a_calendar_withholds_is_not_waited_for(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "gate-holiday", **{**OPEN, "schedule": {"exclude": {"dates": [DAY]}}})
    code, _, err = gate(stage, "gate-holiday", "--date", DAY, "--wait", "1h")
    assert code == NOT_READY
    assert "will not run" in err


def test_an_upstream_is_waited_for(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "gate-down", **OPEN, after=[{"pipeline": "gate-up"}])
    write(server, "gate-down", count=50)
    code, _, err = gate(stage, "gate-down", "--date", DAY)
    assert code == NOT_READY
    assert "awaits upstream gate-up" in err


def test_waiting_ends_when_it_is_ready(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "gate-wait", **OPEN)
    later = threading.Timer(0.7, write, (server, "gate-wait"), {"count": 50})
    later.start()
    code, out, _ = gate(stage, "gate-wait", "--date", DAY, "--wait", "60s")
    later.join()
    assert (code, out) == (READY, f"{DAY}\n")


def test_waiting_ends_when_the_time_is_over(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "gate-late", **OPEN)
    assert gate(stage, "gate-late", "--date", DAY, "--wait", "300ms")[0] == NOT_READY


# -------------------------------------------------------------------------------------------- usage, cannot tell


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gate-nobody",), "there is no pipeline 'gate-nobody'"),
        (("gate-usage", "--date", "2026-13-01"), "2026-13-01"),
        (("gate-usage", "--schedule", "nightly"), "has no schedule 'nightly'"),
        (("gate-usage", "--wait", "soon"), "not a duration"),
        (("gate-usage", "--date", f"{DAY}T08", "--claim"), "is for one day; the nearest: 2026-03-02"),
    ],
)
@pytest.mark.parametrize("file", [False, True], ids=["server", "file"])
def test_a_mistake_exits_2_at_once(
    capsys: Capsys, server: Process, tmp_path: Path, arguments: tuple[str, ...], said: str, file: bool
) -> None:
    config = {**OPEN, "schedule": {"cron": "0 8 * * *"}}
    made = pipeline("gate-usage", **config)
    stage = plain(capsys, tmp_path, made) if file else served(capsys, server, "gate-usage", **config)
    code, out, err = gate(stage, *arguments, *(() if "--wait" in arguments else ("--wait", "1h")))
    assert (code, out) == (USAGE, ""), err
    assert said in err


def test_only_external_jobs_are_claimed(capsys: Capsys, server: Process) -> None:
    job = {"type": "http", "config": {"url": "http://127.0.0.1:9/"}}
    stage = served(capsys, server, "gate-http", **OPEN, job=job)
    code, _, err = gate(stage, "gate-http", "--date", DAY, "--claim")
    assert code == USAGE
    assert "only jobs of type external are claimed" in err


def test_nobody_answers(capsys: Capsys, tmp_path: Path) -> None:
    for where in (("--url", "http://127.0.0.1:9"), ("--store", f"sqlite:///{tmp_path / 'gone.db'}")):
        for more in ((), ("--claim",), ("--wait", "100ms")):
            code, out, err = gate(Stage(capsys, *where), "gold", *more)
            assert (code, out) == (CANNOT_TELL, ""), err
            assert err.startswith("cannot tell whether gold is ready: ")
    assert not (tmp_path / "gone.db").exists()


def test_what_is_no_store_cannot_tell(capsys: Capsys, tmp_path: Path) -> None:
    (tmp_path / "odd.db").write_bytes(b"not a database, " * 200)
    assert gate(Stage(capsys, "--store", f"sqlite:///{tmp_path / 'odd.db'}"), "gold")[0] == CANNOT_TELL


def test_an_invalid_config_cannot_tell(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path, pipeline("gold", **OPEN))
    with writing(Target("a test", path=tmp_path / "plain.db")) as control:
        where = records.control_key(keys.pipeline_pk("gold"), keys.CONFIG)
        control.store.commit([Put(where, {"document": {"pipeline": {"id": "gold"}}})])
    for more in ((), ("--claim",)):
        code, _, err = gate(stage, "gold", *more)
        assert code == CANNOT_TELL, err
        assert "is invalid" in err


def test_a_token_that_may_not_ask_cannot_tell(capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain(capsys, tmp_path, pipeline("gold", **OPEN), name="interlock.db")
    monkeypatch.setenv("INTERLOCK_TOKEN", make_token(tmp_path / "interlock.db", "sensor:write"))
    with serving(tmp_path) as process:
        stage = Stage(capsys, "--url", process.url)
        for more in ((), ("--claim", "--date", DAY, "--schedule", "stream")):
            code, _, err = gate(stage, "gold", *more)
            assert code == CANNOT_TELL
            assert "does not have the scope" in err


# ---------------------------------------------------------------------------------------------------------- claims


def test_a_claimed_run_is_ended_by_a_report(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "claims", **OPEN)
    assert gate(stage, "claims", "--date", DAY, "--claim")[0] == NOT_READY
    write(server, "claims", count=50)
    code, out, err = gate(stage, "claims", "--date", DAY, "--claim")
    assert (code, out) == (READY, f"{DAY}\n"), err
    assert f"`interlock job report claims --date {DAY} success`" in err
    code, _, err = gate(stage, "claims", "--date", DAY, "--claim", "--wait", "1h")
    assert code == NOT_READY
    assert "is claimed by" in err
    stage.good("job", "report", "claims", "success", "--date", DAY)
    server.await_status("claims", DAY, "COMPLETED")
    assert "it is done" in gate(stage, "claims", "--date", DAY, "--claim", "--wait", "1h")[2]
    types = [one["type"] for one in server.client.get("/api/v1/events?pipeline=claims&order=asc").json()["items"]]
    assert [one for one in types if one in ("TRIGGER_STARTED", "JOB_TRIGGERED", "JOB_COMPLETED")] == [
        "TRIGGER_STARTED",
        "JOB_TRIGGERED",
        "JOB_COMPLETED",
    ]


def test_of_many_claimants_one_gets_it(capsys: Capsys, server: Process) -> None:
    served(capsys, server, "contested", **OPEN)
    write(server, "contested", count=50)
    command = [sys.executable, "-m", "interlock", "ready", "contested", "--date", DAY, "--claim", "--url", server.url]
    callers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for caller in callers:
        caller.communicate(timeout=60)
    assert sorted(caller.returncode for caller in callers) == [READY, NOT_READY, NOT_READY, NOT_READY]
    run = server.client.get(f"/api/v1/pipelines/contested/runs/stream/{DAY}").json()
    assert (run["status"], run["attempt"], run["claimedBy"] != "") == ("RUNNING", 1, True)


def test_a_run_that_is_claimed_in_a_file_is_followed_by_the_server_to_come(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path, pipeline("gold", **OPEN))
    stage.good("sensor", "set", "gold", "rows", "count=50", "--date", DAY)
    code, out, err = gate(stage, "gold", "--date", DAY, "--claim")
    assert (code, out) == (READY, f"{DAY}\n")
    assert "until `interlock serve` is started" in err
    assert gate(stage, "gold", "--date", DAY, "--claim")[0] == NOT_READY


def test_the_route_itself(server: Process) -> None:
    client: httpx.Client = server.client
    client.put("/api/v1/pipelines/by-hand", json=pipeline("by-hand", **OPEN))
    path = f"/api/v1/pipelines/by-hand/runs/stream/{DAY}:claim"
    early = client.post(path, json={"claimId": "a"})
    assert (early.status_code, early.json()["type"]) == (409, "urn:interlock:problem:not-ready")
    write(server, "by-hand", count=50)
    first = client.post(path, json={"claimId": "a"})
    assert (first.status_code, first.json()["claimed"]) == (200, True)
    assert client.post(path, json={"claimId": "a"}).json()["runId"] == first.json()["runId"]
    taken = client.post(path, json={"claimId": "b"})
    assert (taken.status_code, taken.json()["type"]) == (409, "urn:interlock:problem:not-claimable")
    assert client.post(path.replace(":claim", ":eat"), json={"claimId": "a"}).status_code == 404
    assert client.post(path, json={}).status_code == 422
    until(lambda: _started(client) or None, "the job to be followed")


def _started(client: httpx.Client) -> bool:
    found = client.get("/api/v1/events?pipeline=by-hand").json()["items"]
    return "JOB_STARTED" in [one["type"] for one in found]


@pytest.mark.parametrize(("script", "status"), [("true", "COMPLETED"), ("false", "FAILED_FINAL")])
def test_the_crontab_line_of_the_guide(capsys: Capsys, server: Process, script: str, status: str) -> None:
    name = f"crontab-{script}"
    served(capsys, server, name, **OPEN, job={"type": "external", "maxCodeRetries": 0})
    write(server, name, count=50)
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "gate.md").read_text(encoding="utf-8")
    line = next(one for one in guide.splitlines() if one.startswith("0 6 * * * d="))
    command = line.removeprefix("0 6 * * * ").replace("gold-revenue --wait", f"gold-revenue --date {DAY} --wait")
    command = command.replace("gold-revenue", name).replace("/opt/etl/gold.sh", script)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "INTERLOCK_URL": server.url}
    ended = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    server.await_status(name, DAY, status)

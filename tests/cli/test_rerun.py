"""`interlock rerun`: accepted, refused with the reason, or asked for where nobody decides."""

from pathlib import Path

import pytest

from tests.api.running import Process
from tests.cli.stage import DAY, Stage, completed, plain, served, started, store_of

Capsys = pytest.CaptureFixture[str]


def test_refused_and_accepted(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "again")
    completed(server, stage, "again")
    refused = stage.run("rerun", "again", "--date", DAY, "--reason", "because")
    assert refused.code == 1
    assert refused.out.startswith(f"rerun of again stream {DAY} refused: attempt 1 succeeded and no sensor")
    out = stage.good("rerun", "again", "--date", DAY, "--reason", "because", "--force")
    assert out.startswith(f"rerun of again stream {DAY} accepted")
    run = server.await_status("again", DAY, "RUNNING")
    assert (run["attempt"], run["source"], run["reruns"][0]["reason"]) == (2, "manual", "because")


def test_an_active_run_is_not_rerun(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "active")
    started(server, stage, "active")
    outcome = stage.run("rerun", "active", "--date", DAY, "--json")
    assert outcome.code == 1
    assert '"decision": "rejected"' in outcome.out


def test_a_date_that_never_ran(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "never")
    assert "accepted" in stage.good("rerun", "never", "--date", "2026-02-01")


def test_a_past_date_says_which_sensors_it_reads_as_they_are_today(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "past")
    stage.good("sensor", "set", "past", "rows", "count=5")
    out = stage.good("rerun", "past", "--date", "2026-02-01")
    assert "read as of now, since they name no period: rows" in out
    event = stage.json("events", "--pipeline", "past", "--type", "RERUN_ACCEPTED")
    assert event["detail"]["undatedSensors"] == ["rows"]


def test_a_store_that_a_server_has_open_is_written_through_it(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "beside")
    completed(server, stage, "beside")
    file = Stage(capsys, "--store", store_of(server))
    assert "accepted" in file.good("rerun", "beside", "--date", DAY, "--force")


def test_nobody_decides(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    out = stage.good("rerun", "gold", "--date", DAY)
    assert "asked for" in out
    assert "until `interlock serve` is started" in out
    assert stage.json("rerun", "gold", "--date", DAY)["decision"] == "pending"


def test_what_is_wrong_is_said(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert "--date" in stage.refused("rerun", "gold", code=2)
    assert "today" in stage.refused("rerun", "gold", "--date", "today", code=2)
    assert "did you mean gold" in stage.refused("rerun", "golden", "--date", DAY)
    assert "nightly" in stage.refused("rerun", "gold", "--date", DAY, "--schedule", "nightly")

"""`interlock job report`."""

from pathlib import Path

import pytest

from tests.api.running import Process
from tests.cli.stage import DAY, Stage, plain, served, started, store_of

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("result", "status"), [("success", "COMPLETED"), ("fail", "FAILED_FINAL")])
def test_an_outcome(capsys: Capsys, server: Process, result: str, status: str) -> None:
    name = f"reported-{result}"
    stage = served(capsys, server, name, job={"type": "external", "maxCodeRetries": 0})
    started(server, stage, name)
    more = () if result == "success" else ("--category", "permanent", "--error", "division by zero")
    out = stage.good("job", "report", name, "--date", DAY, result, *more)
    assert out == f"reported {result} of {name} stream {DAY} attempt 1\n"
    run = server.await_status(name, DAY, status)
    record = run["jobLog"][-1]
    assert record["event"] == result
    if result == "fail":
        assert (record["category"], record["error"]) == ("PERMANENT", "division by zero")


def test_a_report_names_its_attempt(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "named")
    started(server, stage, "named")
    assert "has no attempt 7" in stage.refused("job", "report", "named", "timeout", "--date", DAY, "--attempt", "7")
    wrong = ("job", "report", "named", "success", "--date", DAY, "--run-id", "other")
    assert "not the run id" in stage.refused(*wrong)
    run_id = server.run("named", DAY)["runId"]
    found = stage.json("job", "report", "named", "success", "--date", DAY, "--run-id", run_id)
    assert (found["runId"], found["attempt"]) == (run_id, 1)


def test_from_the_file_beside_the_server(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "aside")
    started(server, stage, "aside")
    Stage(capsys, "--store", store_of(server)).good("job", "report", "aside", "success", "--date", DAY)
    server.await_status("aside", DAY, "COMPLETED")


def test_what_is_wrong_is_said(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert "never run" in stage.refused("job", "report", "gold", "success", "--date", DAY)
    assert "won" in stage.refused("job", "report", "gold", "won", "--date", DAY, code=2)
    assert "did you mean gold" in stage.refused("job", "report", "gulld", "success", "--date", DAY)

"""`interlock events`: a page, and the stream; from a server, and from a file."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from interlock.cli.wording import since_option
from tests.api.running import Process
from tests.cli.stage import DAY, Stage, completed, plain, served, started, store_of

Capsys = pytest.CaptureFixture[str]
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_a_page(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "paged")
    completed(server, stage, "paged")
    lines = stage.good("events", "--pipeline", "paged").splitlines()
    assert [line.split()[4] for line in lines] == [
        "TRIGGER_STARTED",
        "VALIDATION_PASSED",
        "JOB_TRIGGERED",
        "JOB_STARTED",
        "JOB_COMPLETED",
    ]
    assert len(stage.good("events", "--pipeline", "paged", "--limit", "2").splitlines()) == 2
    [only] = stage.good("events", "--pipeline", "paged", "--type", "job_completed", "--json").splitlines()
    assert json.loads(only)["type"] == "JOB_COMPLETED"


def test_the_same_through_the_server_and_from_the_file(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "twofold")
    started(server, stage, "twofold")
    file = Stage(capsys, "--store", store_of(server))
    command = ("events", "--pipeline", "twofold", "--type", "TRIGGER_STARTED", "--type", "JOB_TRIGGERED", "--json")
    assert stage.good(*command) == file.good(*command)
    assert len(stage.good(*command).splitlines()) == 2


def test_the_events_of_a_deleted_pipeline_are_still_there(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "deleted")
    started(server, stage, "deleted")
    assert server.client.delete("/api/v1/pipelines/deleted").status_code == 204
    assert "JOB_TRIGGERED" in stage.good("events", "--pipeline", "deleted")


def test_what_is_wrong_is_said(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert "did you mean SLA_BREACH" in stage.refused("events", "--type", "SLA_BRECH", code=2)
    assert "neither a time nor a duration" in stage.refused("events", "--since", "yesterday", code=2)
    assert "did you mean gold" in stage.refused("events", "--pipeline", "golt")
    assert stage.good("events") == "no such events\n"
    assert stage.good("events", "--json") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-02T08:00:00Z", NOON.replace(hour=8)),
        ("2026-03-02", NOON.replace(hour=0)),
        ("90m", NOON.replace(hour=10, minute=30)),
        (None, None),
    ],
)
def test_since(text: str | None, expected: datetime | None) -> None:
    assert since_option(text, NOON) == expected


def test_since_what() -> None:
    with pytest.raises(typer.BadParameter):
        since_option("soon", NOON)


@contextmanager
def following(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A real `interlock events --follow`, as a person would leave it running."""
    command = [sys.executable, "-m", "interlock", "events", "--follow", "--json", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["url", "store"])
def test_following(capsys: Capsys, server: Process, how: str) -> None:
    """What was and what comes, each once and in order; Ctrl-C is the way to end it."""
    name = f"followed-{how}"
    stage = served(capsys, server, name)
    where = ("--url", server.url) if how == "url" else ("--store", store_of(server))
    server.client.put(f"/api/v1/pipelines/{name}/sensors/up", json={"status": "ready", "date": DAY})
    with following("--pipeline", name, "--since", "1h", *where) as process:
        assert process.stdout is not None
        types = [json.loads(process.stdout.readline())["type"]]
        server.client.put(f"/api/v1/pipelines/{name}/sensors/rows", json={"count": 50, "date": DAY})
        types += [json.loads(process.stdout.readline())["type"] for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert types == ["TRIGGER_STARTED", "VALIDATION_PASSED", "JOB_TRIGGERED", "JOB_STARTED"]
    assert stage.good("runs", name)


def test_following_into_a_closed_pipe(server: Process, capsys: Capsys) -> None:
    stage = served(capsys, server, "piped")
    started(server, stage, "piped")
    with following("--since", "1h", "--url", server.url) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        server.client.post("/api/v1/pipelines/piped/jobs", json={"date": DAY, "result": "success"})
        assert process.wait(30) in (0, 1)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()

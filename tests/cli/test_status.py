"""`interlock status`: a line per pipeline and schedule."""

import os
import pty
import select
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from interlock.cli import status as command
from interlock.cli.status import StatusRow
from interlock.cli.wording import away, length
from interlock.client import Client
from tests.api.running import Process, pipeline
from tests.cli.stage import DAY, Stage, completed, plain, served, started, store_of

Capsys = pytest.CaptureFixture[str]

CRON = {"cron": "0 8 * * *", "timezone": "America/New_York"}
SLA = {"deadline": "10:00", "expectedDuration": "30m"}


def test_the_table(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "table", sla=SLA)
    started(server, stage, "table")
    lines = stage.good("status").splitlines()
    assert lines[0].split() == ["pipeline", "schedule", "latest", "run", "since", "next", "start", "sla"]
    [row] = [line for line in lines if line.startswith("table ")]
    assert row.split()[:4] == ["table", "stream", DAY, "running"]
    # Its deadline is long past, and only a breach was due.
    assert "breached" in row


def test_the_sla_comes_with_the_table(capsys: Capsys, server: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--watch` looks every second: it must not ask for each run besides."""
    stage = served(capsys, server, "at-once", sla=SLA)
    started(server, stage, "at-once")
    asked: list[str] = []
    monkeypatch.setattr(Client, "run", lambda *given, **_: asked.append(str(given)))
    [row] = stage.json("status", "at-once")["pipelines"]
    assert (row["run"], asked) == ("running", [])
    assert datetime.fromisoformat(row["slaAt"]) == datetime(2026, 3, 3, 10, tzinfo=UTC)


def test_one_pipeline_closely(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "close")
    started(server, stage, "close")
    out = stage.good("status", "close")
    assert "✓ rows: count is 50, >= 10" in out
    assert "JOB_TRIGGERED" in out
    assert "`interlock why close` explains it" in out
    assert "interlock serve" not in out


def test_json_is_the_same_through_the_server_and_from_the_file(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "alike", schedule=CRON)
    completed_of = served(capsys, server, "alike-too")
    completed(server, completed_of, "alike-too")
    file = Stage(capsys, "--store", store_of(server))
    for name, word in (("alike", None), ("alike-too", "done")):
        found = stage.json("status", name)
        assert found == file.json("status", name)
        [row] = found["pipelines"]
        assert (found["served"], row["pipeline"], row["run"]) == (True, name, word)


def test_the_next_start(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path, pipeline("gold", schedule=CRON))
    [row] = stage.json("status")["pipelines"]
    assert (row["schedule"], row["run"], row["date"]) == ("cron", None, None)
    start = datetime.fromisoformat(row["nextStart"])
    assert start > datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    assert start.astimezone(UTC).hour in (12, 13)


def test_several_schedules(capsys: Capsys, tmp_path: Path) -> None:
    document = pipeline("gold", schedules=[{"id": "early", **CRON}, {"id": "late", "cron": "0 20 * * *"}])
    del document["schedule"]
    rows = plain(capsys, tmp_path, document).json("status")["pipelines"]
    assert [row["schedule"] for row in rows] == ["early", "late"]


def test_an_invalid_config_is_shown(capsys: Capsys, tmp_path: Path) -> None:
    from interlock.cli.store_access import Target, writing
    from interlock.control.records import control_key
    from interlock.ports.store import Put

    stage = plain(capsys, tmp_path)
    with writing(Target("a test", path=tmp_path / "plain.db")) as control:
        broken = {"document": {"pipeline": {"id": "bad"}}, "version": "1"}
        control.store.commit([Put(control_key("PIPELINE#bad", "CONFIG"), broken)])
    out = stage.good("status")
    [row] = [line for line in out.splitlines() if line.startswith("bad ")]
    assert "invalid" in row
    assert "validation" in row


def test_watching(capsys: Capsys, server: Process) -> None:
    """On a terminal, live: a run that starts shows up by itself; Ctrl-C ends it."""
    stage = served(capsys, server, "seen")
    here, there = pty.openpty()
    command = [sys.executable, "-m", "interlock", "status", "seen", "--watch", "--url", server.url]
    process = subprocess.Popen(command, stdout=there, stderr=there, stdin=there, start_new_session=True)
    os.close(there)
    try:
        _read_until(here, b"Ctrl-C ends")
        started(server, stage, "seen")
        _read_until(here, b"running")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(here)


def _read_until(terminal: int, text: bytes) -> None:
    seen = b""
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], 30)
        assert ready, f"{text!r} was not shown: {seen!r}"
        seen += os.read(terminal, 65536)


def test_nobody_runs_it(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert "until `interlock serve` is started" in stage.good("status")
    assert stage.json("status")["served"] is False


def test_what_is_wrong_is_said(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert "did you mean gold" in stage.refused("status", "gould")
    assert "--follow --json" in stage.refused("status", "--watch", "--json", code=2)
    assert "terminal" in stage.refused("status", "--watch", code=2)


def test_a_server_that_is_not_there(capsys: Capsys) -> None:
    said = Stage(capsys, "--url", "http://127.0.0.1:9").refused("status")
    assert "interlock serve" in said


def test_a_store_that_is_not_there_is_not_made(capsys: Capsys, tmp_path: Path) -> None:
    Stage(capsys, "--store", f"sqlite:///{tmp_path / 'none.db'}").refused("status")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("row", "style"),
    [
        (StatusRow(pipeline="p", schedule="s", run="held"), "magenta"),
        (StatusRow(pipeline="p", schedule="s", run="running", sla="breached"), "red"),
        (StatusRow(pipeline="p", schedule="s", run="done", sla="met"), "green"),
        (StatusRow(pipeline="p", schedule="s", valid=False), "red"),
        (StatusRow(pipeline="p", schedule="s"), ""),
    ],
)
def test_colours(row: StatusRow, style: str) -> None:
    assert command._style(row) == style


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.4, "0s"), (59, "59s"), (60, "1m"), (3725, "1h2m"), (90_000, "1d1h"), (86_460, "1d"), (None, "-")],
)
def test_lengths(seconds: float | None, text: str) -> None:
    assert length(seconds) == text


def test_how_far_away() -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert away(noon.replace(hour=9), noon) == "3h ago"
    assert away(noon.replace(hour=13, minute=30), noon) == "in 1h30m"
    assert away(None, noon) == "-"

"""`interlock runs`."""

from pathlib import Path

import pytest

from tests.api.running import Process
from tests.cli.stage import DAY, Stage, completed, plain, served, started, store_of

Capsys = pytest.CaptureFixture[str]


def test_the_latest_first(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "several")
    completed(server, stage, "several", DAY)
    started(server, stage, "several", "2026-03-03")
    lines = stage.good("runs", "several").splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["2026-03-03", "stream", "running", "1"],
        [DAY, "stream", "done", "1"],
    ]
    assert len(stage.good("runs", "several", "--limit", "1").splitlines()) == 2
    found = stage.json("runs", "several")
    assert found == Stage(capsys, "--store", store_of(server)).json("runs", "several")
    assert [one["word"] for one in found["runs"]] == ["running", "done"]


def test_never_run(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    assert "`interlock why gold`" in stage.good("runs", "gold")
    assert stage.json("runs", "gold") == {"runs": []}
    assert "did you mean gold" in stage.refused("runs", "glod")
    assert "--limit" in stage.refused("runs", "gold", "--limit", "0", code=2)

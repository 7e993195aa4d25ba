"""`interlock probe run`: one look by hand, through the running controller or without one."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.running import Process, pipeline
from tests.cli.stage import Stage, plain, served

Capsys = pytest.CaptureFixture[str]


def probes(folder: Path) -> list[dict[str, Any]]:
    return [
        {"key": "rows", "type": "file", "interval": "1h", "config": {"path": f"{folder}/*.csv"}},
        {"key": "day", "type": "file", "interval": "1h", "config": {"path": f"{folder}/${{DATE}}.txt"}},
        {"key": "bad", "type": "command", "interval": "1h", "config": {"command": ["false"]}},
    ]


@pytest.fixture(params=["served", "alone"])
def stage(request: pytest.FixtureRequest, capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    (tmp_path / "a.csv").write_text("12345")
    (tmp_path / "2026-03-02.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    if request.param == "served":
        return served(capsys, request.getfixturevalue("server"), "probed", probes=probes(tmp_path))
    return plain(capsys, tmp_path, pipeline("probed", probes=probes(tmp_path)))


def test_a_look_shows_what_it_sees(stage: Stage) -> None:
    assert stage.good("probe", "run", "probed", "rows").startswith('probed/rows: {"exists":true,"count":1,"size":5,')
    shown = stage.json("probe", "run", "probed", "rows")
    assert (shown["ok"], shown["data"]["count"], shown["error"]) == (True, 1, "")


def test_a_dated_probe_is_given_its_date(stage: Stage) -> None:
    shown = stage.json("probe", "run", "probed", "day", "--date", "2026-03-02")
    assert (shown["date"], shown["data"]["exists"]) == ("2026-03-02", True)
    assert stage.json("probe", "run", "probed", "day")["data"]["exists"] is False
    assert "looks for no date" in stage.refused("probe", "run", "probed", "rows", "--date", "2026-03-02")


def test_a_look_that_fails_exits_1(stage: Stage) -> None:
    outcome = stage.run("probe", "run", "probed", "bad")
    assert (outcome.code, outcome.out) == (1, "probed/bad failed: false exited with 1\n")
    assert stage.json("probe", "run", "probed", "bad")["error"] == "false exited with 1"


def test_what_is_not_there_is_said(stage: Stage) -> None:
    assert "has no probe 'row': it has rows, day, bad" in stage.refused("probe", "run", "probed", "row")
    assert "there is no pipeline 'probet'; did you mean probed" in stage.refused("probe", "run", "probet", "rows")
    assert stage.run("probe", "run", "probed").code == 2


def test_a_look_by_hand_writes_nothing(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path, pipeline("probed", probes=probes(tmp_path)))
    before = (tmp_path / "plain.db").read_bytes()
    stage.good("probe", "run", "probed", "rows")
    assert (tmp_path / "plain.db").read_bytes() == before


def test_the_server_looks_with_its_own_settings(capsys: Capsys, server: Process) -> None:
    """The address guard of `serve` holds, whoever asks."""
    probe = {"key": "rows", "type": "http", "interval": "1h", "config": {"url": server.url}}
    stage = served(capsys, server, "guarded", probes=[probe])
    assert "which jobs and probes may not call" in stage.json("probe", "run", "guarded", "rows")["error"]

"""`interlock sensor`: writing says what followed, reading says what there is."""

from pathlib import Path
from typing import Any

import pytest
import typer

from interlock.cli.sensor import observation
from tests.api.running import Process, pipeline, serving
from tests.cli.stage import DAY, Stage, make_token, plain, served, started, store_of

Capsys = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("fields", "data", "expected"),
    [
        (["count=5"], None, {"count": 5}),
        (["ratio=0.5", "n=-1e3"], None, {"ratio": 0.5, "n": -1000.0}),
        (["ready=true", "late=false", "none=null"], None, {"ready": True, "late": False, "none": None}),
        (['id="5"'], None, {"id": "5"}),
        (["status=ready"], None, {"status": "ready"}),
        (["text=a=b c", "empty="], None, {"text": "a=b c", "empty": ""}),
        (["time=2026-03-02T08:00:00Z", "day=2026-03-02"], None, {"time": "2026-03-02T08:00:00Z", "day": "2026-03-02"}),
        (["list=[1, 2]", 'map={"a": 1}'], None, {"list": [1, 2], "map": {"a": 1}}),
        (["bad=NaN", "half={"], None, {"bad": "NaN", "half": "{"}),
        (["stats.rows=5"], None, {"stats.rows": 5}),
        ([], '{"count": 5}', {"count": 5}),
        (["b=2"], '{"a": 1}', {"a": 1, "b": 2}),
        ([], None, {}),
    ],
)
def test_fields(fields: list[str], data: str | None, expected: dict[str, Any]) -> None:
    assert observation(fields, data) == expected


@pytest.mark.parametrize(
    ("fields", "data", "said"),
    [
        (["count"], None, "FIELD=VALUE"),
        (["=5"], None, "FIELD=VALUE"),
        (["a=1", "a=2"], None, "twice"),
        (["a=1"], '{"a": 2}', "twice"),
        ([], "[1]", "JSON object"),
        ([], "{a: 1}", "not JSON"),
    ],
)
def test_fields_that_are_none(fields: list[str], data: str | None, said: str) -> None:
    with pytest.raises(typer.BadParameter, match=said):
        observation(fields, data)


# ---------------------------------------------------------------------------------------------------------- served


def test_a_write_that_opens_a_run_says_so(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "opens")
    out = stage.good("sensor", "set", "opens", "up", "status=ready", "--date", DAY)
    assert out.startswith(f'stored opens/up for {DAY}: {{"status":"ready","date":"{DAY}"}}\n')
    assert "TRIGGER_STARTED" in out
    assert "1 of 2 pass" in out
    assert "✗ rows: no sensor rows" in out
    assert f"run of {DAY}, opened by this write, is waiting: awaits rows" in out


def test_the_write_that_completes_the_rules(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "passes")
    stage.good("sensor", "set", "passes", "up", "status=ready", "--date", DAY)
    found = stage.json("sensor", "set", "passes", "rows", "count=50", "--date", DAY)
    types = [one["type"] for one in found["followed"]["events"]]
    assert types[:2] == ["VALIDATION_PASSED", "JOB_TRIGGERED"]
    assert found["followed"]["readiness"][0]["run"]["word"] == "running"
    assert (found["served"], found["written"]["period"]) == (True, DAY)


def test_a_write_that_leads_to_nothing(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "idle")
    out = stage.good("sensor", "set", "idle", "other", "x=1")
    assert "warning: no rule of idle reads 'other'" in out
    assert "`interlock why idle" in out


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2026-03-02T10", {"date": "2026-03-02", "hour": 10}),
        ("20260302", {"date": "2026-03-02"}),
    ],
)
def test_the_period_of_a_write(capsys: Capsys, server: Process, date: str, expected: dict[str, Any]) -> None:
    stage = served(capsys, server, "periods")
    stage.good("sensor", "set", "periods", "rows", "--date", date)
    assert stage.json("sensor", "get", "periods", "rows")["data"] == expected


def test_minutes_are_told_by_the_key(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "minutes")
    stage.good("sensor", "set", "minutes", "rows", "count=1", "--date", "2026-03-02T1015")
    assert stage.json("sensor", "get", "minutes", "rows#2026-03-02T1015")["period"] == "2026-03-02T1015"


def test_what_is_wrong_is_said(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "strict")
    assert "did you mean strict" in stage.refused("sensor", "set", "strct", "rows", "count=1")
    assert "reserved" in stage.refused("sensor", "set", "strict", "_x", "count=1")
    assert "not a duration" in stage.refused("sensor", "set", "strict", "rows", "--ttl", "3600", code=2)
    assert "2026-13" in stage.refused("sensor", "set", "strict", "rows", "--date", "2026-13-01", code=2)
    twice = stage.refused("sensor", "set", "strict", "rows", "date=x", "--date", DAY, code=2)
    assert "says it already" in twice


def test_reading_is_the_same_through_the_server_and_from_the_file(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "same")
    file = Stage(capsys, "--store", store_of(server))
    started(server, stage, "same")
    for command in (("get", "same", "rows"), ("list", "same")):
        found = stage.json("sensor", *command)
        assert found == file.json("sensor", *command)
        assert found


def test_who_may_only_write_is_told_that_it_was_written(
    capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(capsys, tmp_path, pipeline("guarded"), name="interlock.db")
    token = make_token(tmp_path / "interlock.db", "sensor:write")
    monkeypatch.setenv("INTERLOCK_TOKEN", token)
    with serving(tmp_path) as process:
        stage = Stage(capsys, "--url", process.url)
        outcome = stage.run("sensor", "set", "guarded", "rows", "count=50")
    assert outcome.code == 0
    assert "stored guarded/rows" in outcome.out
    assert "what followed cannot be seen" in outcome.out
    assert token not in outcome.out + outcome.err


# ----------------------------------------------------------------------------------------------------------- plain


def test_a_store_without_a_server(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    out = stage.good("sensor", "set", "gold", "rows", "count=5", "--date", DAY)
    assert "✗ rows: count is 5, needs >= 10" in out
    assert "until `interlock serve` is started" in out
    assert "TRIGGER_STARTED" not in out
    listed = stage.good("sensor", "list", "gold").splitlines()
    assert listed[0].split() == ["key", "received", "period", "data"]
    assert listed[1].split()[0] == "rows"


def test_a_ttl_is_a_length_of_time(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    stage.good("sensor", "set", "gold", "rows", "count=5", "--ttl", "2h")
    assert "expires 20" in stage.good("sensor", "get", "gold", "rows")
    stage.good("sensor", "set", "gold", "gone", "count=5", "--ttl", "0s")
    assert "never written, or has expired" in stage.refused("sensor", "get", "gold", "gone")


def test_who_wrote_is_kept(capsys: Capsys, tmp_path: Path) -> None:
    from interlock.cli.store_backend import opened
    from interlock.control.records import control_key

    stage = plain(capsys, tmp_path)
    stage.good("sensor", "set", "gold", "rows", "count=5")
    with opened(tmp_path / "plain.db", writing=False) as backend:
        item = backend.store.get(control_key("PIPELINE#gold", "SENSOR#rows"))
    assert item is not None
    assert item["_by"]


def test_nothing_is_created(capsys: Capsys, tmp_path: Path) -> None:
    stage = Stage(capsys, "--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert "no store at" in stage.refused("sensor", "set", "gold", "rows", "count=5")
    assert "no store at" in stage.refused("sensor", "list", "gold")
    assert list(tmp_path.iterdir()) == []


def test_no_sensors_yet(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path, pipeline("gold"))
    assert "no sensors yet" in stage.good("sensor", "list", "gold")
    assert stage.json("sensor", "list", "gold") == {"sensors": []}

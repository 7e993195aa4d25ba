"""`interlock sensor`: writing says what followed, reading says what there is."""

from datetime import UTC, datetime
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
        ([], "{}", {}),
    ],
)
def test_fields(fields: list[str], data: str | None, expected: dict[str, Any]) -> None:
    assert observation(fields, data) == expected


@pytest.mark.parametrize(
    ("fields", "data", "said"),
    [
        ([], None, "say what was observed"),
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
    assert out.startswith(f'stored opens/up#{DAY} for {DAY}: {{"status":"ready"}}\n')
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


@pytest.mark.parametrize("period", ["2026-03-02", "2026-03-02T10", "2026-03-02T1015"])
def test_a_write_of_the_past_leaves_todays_value_alone(capsys: Capsys, server: Process, period: str) -> None:
    stage = served(capsys, server, "past")
    stage.good("sensor", "set", "past", "rows", "count=50")
    stage.good("sensor", "set", "past", "rows", "count=1", "--date", period.replace("-", ""))
    assert stage.json("sensor", "get", "past", "rows")["data"] == {"count": 50}
    found = stage.json("sensor", "get", "past", f"rows#{period}")
    assert (found["period"], found["data"]) == (period, {"count": 1})


@pytest.mark.parametrize(
    ("zone", "period", "expected"),
    [
        ("UTC", "2026-03-02", ("rows", {"count": 5, "date": "2026-03-02"})),
        ("UTC", "2026-03-02T23", ("rows", {"count": 5, "date": "2026-03-02", "hour": 23})),
        ("UTC", "2026-03-02T22", ("rows#2026-03-02T22", {"count": 5})),
        ("UTC", "2026-03-02T2330", ("rows#2026-03-02T2330", {"count": 5})),
        ("UTC", "2026-03-03", ("rows#2026-03-03", {"count": 5})),
        ("Pacific/Auckland", "2026-03-03", ("rows", {"count": 5, "date": "2026-03-03"})),
        ("Pacific/Auckland", "2026-03-02", ("rows#2026-03-02", {"count": 5})),
    ],
)
def test_only_the_current_period_is_written_to_the_plain_key(
    capsys: Capsys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    zone: str,
    period: str,
    expected: tuple[str, dict[str, Any]],
) -> None:
    monkeypatch.setattr("interlock.cli.sensor.now", lambda: datetime(2026, 3, 2, 23, 30, tzinfo=UTC))
    stage = plain(capsys, tmp_path, pipeline("gold", schedule={"timezone": zone}))
    stage.good("sensor", "set", "gold", "rows", "count=5", "--date", period)
    (found,) = stage.json("sensor", "list", "gold")["sensors"]
    assert (found["key"], found["data"], found["period"]) == (*expected, period)


def test_a_number_for_a_date(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "numbers")
    out = stage.good("sensor", "set", "numbers", "rows", "count=5", "date=20260302")
    assert out.startswith("stored numbers/rows for 2026-03-02:")
    assert "warning" not in out


def test_a_deleted_sensor_is_gone(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "deletes")
    stage.good("sensor", "set", "deletes", "rows", "count=5")
    assert stage.good("sensor", "delete", "deletes", "rows") == "deleted deletes/rows\n"
    assert "has no sensor 'rows'" in stage.refused("sensor", "get", "deletes", "rows")
    assert "has no sensor 'rows'" in stage.refused("sensor", "delete", "deletes", "rows")
    assert "did you mean deletes" in stage.refused("sensor", "delete", "deltes", "rows")


def test_without_a_field_the_value_stays(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "stays")
    stage.good("sensor", "set", "stays", "rows", "count=5")
    assert "say what was observed" in stage.refused("sensor", "set", "stays", "rows", code=2)
    assert "say what was observed" in stage.refused("sensor", "set", "stays", "rows", "--date", DAY, code=2)
    assert stage.json("sensor", "get", "stays", "rows")["data"] == {"count": 5}


def test_what_is_wrong_is_said(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "strict")
    assert "did you mean strict" in stage.refused("sensor", "set", "strct", "rows", "count=1")
    assert "reserved" in stage.refused("sensor", "set", "strict", "_x", "count=1")
    assert "not a duration" in stage.refused("sensor", "set", "strict", "rows", "n=1", "--ttl", "3600", code=2)
    assert "2026-13" in stage.refused("sensor", "set", "strict", "rows", "n=1", "--date", "2026-13-01", code=2)
    again = stage.refused("sensor", "set", "strict", f"rows#{DAY}", "n=1", "--date", DAY, code=2)
    assert f"the key rows#{DAY} says it already" in again
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
    assert listed[1].split()[0] == f"rows#{DAY}"


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

"""What the overview reads of each pipeline: enough of it, in few statements, and nothing of its history."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import catalog, records
from interlock.control.views import lane_rows
from interlock.control.views.lane_rows import ActiveRow, Rows, RunRow, read_summary
from interlock.decide.lanes import Bucket, Columns
from interlock.model import keys
from interlock.model.run import RunStatus, SlaKind, Word
from interlock.ports.store import Put
from interlock.simulation.world import World
from tests.control.played import pipeline, played, ready

MONDAY: Final = datetime(2026, 3, 2, tzinfo=UTC)


def read(world: World, name: str = "a", columns: Columns | None = None) -> Rows:
    store = world.engine.store
    (rows,) = lane_rows.read_rows(store, lane_rows.read_configs(store, [name]), columns, world.clock.now())
    return rows


def dates(rows: Rows) -> list[str]:
    return sorted(run.date for run in rows.runs)


def test_a_pipeline_that_is_not_there_has_no_rows_and_the_others_keep_their_order() -> None:
    world = played([pipeline("a"), pipeline("b")], "2026-03-02T07:30:00Z")
    found = lane_rows.read_configs(world.engine.store, ["b", "gone", "a"])
    assert [one.pipeline for one in found] == ["b", "a"]
    assert lane_rows.read_rows(world.engine.store, [], None, world.clock.now()) == []


def test_a_run_is_read_with_what_it_waits_for_and_with_its_sla() -> None:
    config = pipeline("a", sla={"deadline": "10:00", "expectedDuration": "30m"})
    rows = read(played([config], "2026-03-02T08:30:00Z"))
    (run,) = rows.runs
    assert (run.schedule, run.date, run.status, run.attempt) == ("cron", "2026-03-02", RunStatus.PENDING, 1)
    assert run.word is Word.WAITING
    assert (run.opened_at, run.first_opened_at, run.ended_at) == ("2026-03-02T08:00:00Z", "2026-03-02T08:00:00Z", None)
    assert "no sensor ready" in rows.active["cron", "2026-03-02"].summary
    (state,) = rows.sla
    assert (state.date, state.breach_at, state.fired) == ("2026-03-02", MONDAY + timedelta(hours=10), {})
    assert [one.schedule_id for one in rows.schedules] == ["cron"]


def test_an_invalid_config_has_no_schedules_and_shows_what_is_under_way() -> None:
    world = played([pipeline("a")], "2026-03-02T08:30:00Z", steps=[])
    key = records.control_key(keys.pipeline_pk("a"), keys.CONFIG)
    world.engine.store.commit([Put(key, {"document": {"pipeline": {"id": "a"}}, "version": "bad"})])
    rows = read(world)
    assert (rows.schedules, rows.sla, rows.dry) == ((), [], [])
    assert dates(rows) == ["2026-03-02"], "what is under way, and nothing else"
    assert catalog.current(world.engine.store, "a") is None


def daily_for(days: int, **changes: Any) -> World:
    """A daily pipeline that has run for so many days, at 08:10 each."""
    steps = [ready(f"{(MONDAY + timedelta(days=index)).date()}T08:10:00Z") for index in range(days)]
    until = f"{(MONDAY + timedelta(days=days - 1)).date()}T09:00:00Z"
    return played([pipeline("a", **changes)], until, steps=steps)


def test_without_columns_the_last_days_are_read_and_not_the_history() -> None:
    world = daily_for(9)
    assert dates(read(world)) == ["2026-03-07", "2026-03-08", "2026-03-09", "2026-03-10"]


def test_columns_far_back_are_read_beside_the_present_and_not_what_lies_between() -> None:
    world = daily_for(12)
    first = MONDAY + timedelta(days=1)
    found = dates(read(world, columns=Columns(Bucket.DAY, first, 2)))
    assert found == ["2026-03-03", "2026-03-04", "2026-03-05", "2026-03-10", "2026-03-11", "2026-03-12", "2026-03-13"]
    near = dates(read(world, columns=Columns(Bucket.DAY, MONDAY + timedelta(days=7), 5)))
    assert near == [f"2026-03-{day:02d}" for day in range(9, 14)], "once, although both have them"


def test_hours_are_read_by_the_hour() -> None:
    steps = [{"at": f"2026-03-02T{hour:02d}:01:00Z", "sensor": "a/ready", "data": {}} for hour in range(7, 24)]
    steps += [{"at": f"2026-03-03T{hour:02d}:01:00Z", "sensor": "a/ready", "data": {}} for hour in range(12)]
    config = pipeline("a", schedule={"cron": "0 * * * *", "timezone": "America/New_York"})
    world = played([config], "2026-03-03T12:30:00Z", steps=steps)
    found = dates(read(world))
    assert (found[0], found[-1]) == ("2026-03-02T07", "2026-03-03T07")
    assert len(found) == 25


def test_a_schedule_without_a_recent_run_shows_its_latest() -> None:
    config = pipeline("a", schedule={"cron": "0 8 2 * *"})
    world = played([config], "2026-03-20T09:00:00Z", steps=[ready("2026-03-02T08:10:00Z")])
    assert dates(read(world)) == ["2026-03-02"]


def test_a_run_that_is_still_under_way_is_read_however_old_with_its_sla() -> None:
    config = pipeline(
        "a",
        schedule={"cron": "0 8 * * *", "evaluation": {"window": "9d"}},
        sla={"deadline": "10:00", "expectedDuration": "30m"},
    )
    later = [ready(f"{(MONDAY + timedelta(days=index)).date()}T08:10:00Z") for index in range(1, 8)]
    dated = [step | {"sensor": f"a/ready#{step['at'][:10]}"} for step in later]
    world = played([config], "2026-03-09T09:00:00Z", steps=dated)
    rows = read(world)
    assert dates(rows)[0] == "2026-03-02"
    assert {run.date: run.word for run in rows.runs}["2026-03-02"] is Word.WAITING
    state = next(one for one in rows.sla if one.date == "2026-03-02")
    assert SlaKind.BREACH in state.fired
    assert len([one for one in rows.sla if one.date == "2026-03-02"]) == 1


def test_a_dry_run_is_read_from_what_it_observed_and_others_have_no_such_rows() -> None:
    config = pipeline("a", dryRun=True, schedule={"trigger": {"key": "ready", "check": "exists"}})
    rows = read(played([config], "2026-03-02T09:00:00Z", steps=[ready("2026-03-02T08:10:00Z")]))
    ((row),) = rows.dry
    assert (row.schedule, row.date, row.would_trigger_at) == ("stream", "2026-03-02", "2026-03-02T08:10:00Z")
    assert read(daily_for(1)).dry == []


@pytest.mark.parametrize(
    ("rules", "summary"),
    [("", ""), ("{", ""), ('{"summary": "no sensor ready"}', "no sensor ready"), ('{"summary": 5}', ""), ("{}", "")],
)
def test_what_an_attempt_waits_for_is_read_from_what_it_remembers(rules: str, summary: str) -> None:
    assert read_summary(rules) == summary
    assert ActiveRow(attempt=1, rules=rules).summary == summary


def test_a_job_that_was_started_is_running_and_one_that_is_about_to_be_is_waiting() -> None:
    row = RunRow("cron", "2026-03-02", RunStatus.PENDING, 1, "t", "t")
    assert row.word is Word.WAITING
    assert RunRow("cron", "2026-03-02", RunStatus.RUNNING, 1, "t", "t", triggered_at="t").word is Word.RUNNING

"""How runs turned out, and which come next."""

from datetime import UTC, datetime, timedelta

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, records
from interlock.control.views import trend
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import UnknownPipelineError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import Run, RunStatus, Source, Word
from interlock.ports.store import Delete
from interlock.simulation.world import World
from tests.control.played import pipeline, played, ready


def test_a_trend_tells_of_margins_durations_and_verdicts() -> None:
    sla = {"deadline": "10:00", "expectedDuration": "30m"}
    steps = [ready("2026-03-02T08:10:00Z"), ready("2026-03-03T10:20:00Z"), ready("2026-03-04T08:30:00Z")]
    config = pipeline("a", sla=sla, schedule={"cron": "0 8 * * *", "evaluation": {"window": "4h"}})
    jobs = {"a": [{"after": "10m", "result": "success"}]}
    world = played([config], "2026-03-05T09:00:00Z", steps=steps, jobs=jobs)
    found = trend.read(world.engine.store, "a", world.clock.now(), days=7)
    assert [(one.date, one.word, one.sla, one.margin_seconds, one.duration_seconds) for one in found.items] == [
        ("2026-03-02", Word.DONE, "met", 6000, 600.0),
        ("2026-03-03", Word.DONE, "recovered", -1800, 600.0),
        ("2026-03-04", Word.DONE, "met", 4800, 600.0),
        ("2026-03-05", Word.WAITING, None, None, None),
    ]
    assert found.items[3].breach_at == datetime(2026, 3, 5, 10, tzinfo=UTC)
    assert (found.finish.p10, found.finish.p50, found.finish.p90) == (-1800.0, 4800.0, 6000.0)
    assert (found.duration.p50, found.duration.p95) == (600.0, 600.0)
    short = trend.read(world.engine.store, "a", world.clock.now(), days=2, schedule="cron")
    assert [one.date for one in short.items] == ["2026-03-04", "2026-03-05"]
    assert trend.read(world.engine.store, "a", world.clock.now(), days=7, schedule="none").items == []
    with pytest.raises(UnknownPipelineError):
        trend.read(world.engine.store, "b", world.clock.now(), days=7)


def test_what_comes_next_with_its_limits_and_what_is_excluded() -> None:
    config = pipeline(
        "a",
        schedule={"cron": "0 8 * * *", "timezone": "America/New_York", "exclude": {"dates": ["2026-03-04"]}},
        sla={"deadline": "10:00", "expectedDuration": "30m"},
    )
    world = played(
        [config, pipeline("b", schedule={"trigger": {"key": "ready", "check": "exists"}})], "2026-03-02T20:00:00Z"
    )
    items = trend.upcoming(world.engine.store, "a", world.clock.now(), days=3).items
    assert [(one.date, one.excluded is not None) for one in items] == [
        ("2026-03-03", False),
        ("2026-03-04", True),
        ("2026-03-05", False),
    ]
    assert items[0].start_at == datetime(2026, 3, 3, 13, tzinfo=UTC)
    assert items[0].warning_at == datetime(2026, 3, 3, 14, 30, tzinfo=UTC)
    assert items[0].breach_at == datetime(2026, 3, 3, 15, tzinfo=UTC)
    assert items[1].breach_at is None
    driven = trend.upcoming(world.engine.store, "b", world.clock.now(), days=1).items
    assert [(one.date, one.start_at) for one in driven] == [("2026-03-02", None), ("2026-03-03", None)]


def test_inclusion_dates_come_at_their_time() -> None:
    config = pipeline("a", schedule={"include": {"dates": ["2026-03-02", "2026-03-04"]}, "time": "06:00"})
    world = played([config], "2026-03-02T20:00:00Z")
    items = trend.upcoming(world.engine.store, "a", world.clock.now(), days=5).items
    assert [(one.date, one.start_at) for one in items] == [("2026-03-04", datetime(2026, 3, 4, 6, tzinfo=UTC))]


def test_the_verdict_of_an_sla_is_what_its_events_say() -> None:
    sla = {"deadline": "10:00", "expectedDuration": "30m"}
    config = pipeline("a", sla=sla, schedule={"cron": "0 8 * * *", "evaluation": {"window": "4h"}})
    world = played([config], "2026-03-02T11:00:00Z")
    (item,) = trend.read(world.engine.store, "a", world.clock.now(), days=1).items
    assert (item.sla, item.margin_seconds, item.word) == ("breached", None, Word.WAITING)
    assert item.breach_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert (item.opened_at, item.attempts) == (datetime(2026, 3, 2, 8, tzinfo=UTC), 1)
    assert (item.passed_at, item.triggered_at, item.completed_at, item.duration_seconds) == (None, None, None, None)


def test_a_margin_that_no_event_tells_of_is_that_of_the_config_in_force() -> None:
    steps = [ready("2026-03-02T08:10:00Z")]
    world = played([pipeline("a")], "2026-03-02T09:00:00Z", steps=steps)
    store, now = world.engine.store, world.clock.now()
    (before,) = trend.read(store, "a", now, days=1).items
    assert (before.sla, before.breach_at, before.margin_seconds) == (None, None, None)
    document = pipeline("a", sla={"deadline": "10:00"})
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(world.engine.control, config, document)
    (after,) = trend.read(store, "a", now, days=1).items
    assert (after.sla, after.breach_at) == (None, datetime(2026, 3, 2, 10, tzinfo=UTC))
    assert after.completed_at is not None
    assert after.margin_seconds == (datetime(2026, 3, 2, 10, tzinfo=UTC) - after.completed_at).total_seconds()
    found = trend.read(store, "a", now, days=1)
    assert (found.finish.p50, found.duration.p50) == (after.margin_seconds, after.duration_seconds)


def test_the_runs_of_a_deleted_pipeline_are_still_there() -> None:
    world = played([pipeline("a", sla={"deadline": "10:00"})], "2026-03-02T09:00:00Z")
    catalog.delete_config(world.engine.control, "a")
    (item,) = trend.read(world.engine.store, "a", world.clock.now(), days=1).items
    assert (item.date, item.breach_at) == ("2026-03-02", None)


def test_a_duration_is_that_of_a_job_which_completed() -> None:
    jobs = {"a": [{"after": "10m", "result": "fail", "category": "PERMANENT"}]}
    job = {"type": "glue", "config": {"jobName": "x"}, "maxCodeRetries": 0}
    world = played([pipeline("a", job=job)], "2026-03-02T09:00:00Z", steps=[ready("2026-03-02T08:10:00Z")], jobs=jobs)
    found = trend.read(world.engine.store, "a", world.clock.now(), days=1)
    assert found.items[0].duration_seconds == 600.0
    assert (found.duration.p50, found.duration.p95, found.finish.p10) == (None, None, None)


def test_hours_to_come_are_those_that_are_not_over_and_of_an_excluded_day_the_day() -> None:
    schedule = {
        "trigger": {"key": "ready", "check": "exists"},
        "granularity": "hour",
        "exclude": {"dates": ["2026-03-03"]},
    }
    world = played([pipeline("a", schedule=schedule, sla={"deadline": ":30"})], "2026-03-02T21:30:00Z")
    items = trend.upcoming(world.engine.store, "a", world.clock.now(), days=1).items
    assert [(one.date, one.excluded is not None) for one in items] == [
        ("2026-03-02T21", False),
        ("2026-03-02T22", False),
        ("2026-03-02T23", False),
        ("2026-03-03", True),
    ]
    assert items[0].breach_at == datetime(2026, 3, 2, 22, 30, tzinfo=UTC)
    assert (items[0].start_at, items[3].breach_at) == (None, None)


def test_a_trigger_with_inclusion_dates_opens_by_its_sensor_on_those_days() -> None:
    schedule = {"include": {"dates": ["2026-03-02", "2026-03-04"]}, "trigger": {"key": "ready", "check": "exists"}}
    world = played([pipeline("a", schedule=schedule)], "2026-03-02T20:00:00Z")
    items = trend.upcoming(world.engine.store, "a", world.clock.now(), days=5).items
    assert [(one.date, one.start_at) for one in items] == [("2026-03-02", None), ("2026-03-04", None)]


def test_the_runs_to_come_of_several_schedules_are_in_order_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    config = pipeline("a", schedules=[{"id": "y", "cron": "0 8 * * *"}, {"id": "x", "cron": "0 9 * * *"}])
    del config["schedule"]
    world = played([config], "2026-03-02T20:00:00Z")
    store, now = world.engine.store, world.clock.now()
    items = trend.upcoming(store, "a", now, days=2).items
    assert [(one.date, one.schedule) for one in items] == [
        ("2026-03-03", "x"), ("2026-03-03", "y"), ("2026-03-04", "x"), ("2026-03-04", "y"),
    ]  # fmt: skip
    monkeypatch.setattr(trend, "_MOST_UPCOMING", 3)
    assert trend.upcoming(store, "a", now, days=2).items == items[:3]
    read = trend.read(store, "a", now, days=1).items
    assert [(one.date, one.schedule) for one in read] == [("2026-03-02", "x"), ("2026-03-02", "y")]


def put_runs(world: World, margins: list[int]) -> None:
    """Completed runs of `a`, the last on 2026-03-02, that were done so many seconds before they were due."""
    at = world.clock.now()
    for index, margin in enumerate(margins):
        date = (at.date() - timedelta(days=index)).isoformat()
        run = Run(
            pipeline="a",
            schedule="cron",
            date=date,
            status=RunStatus.COMPLETED,
            version=1,
            attempt=1,
            source=Source.FIRST,
            config_version="v1",
            opened_at=at,
            first_opened_at=at,
            updated_at=at,
            triggered_at=at,
            ended_at=at + timedelta(seconds=margin),
            first_completed_at=at + timedelta(seconds=margin),
        )
        met = records.event(
            EventType.SLA_MET, run.key, at, "met", breachAt="2026-03-02T10:00:00Z", marginSeconds=margin
        )
        world.engine.store.commit([records.put_run(run, None), records.put_event(met)])


def test_margins_and_durations_are_ranked_by_values_that_were_measured() -> None:
    world = played([pipeline("a")], "2026-03-02T07:30:00Z")
    put_runs(world, [700, *range(20, 0, -1), 800])
    found = trend.read(world.engine.store, "a", world.clock.now(), days=20)
    assert [one.margin_seconds for one in found.items] == [*range(2, 21), 700], "only of the last twenty days"
    assert (found.finish.p10, found.finish.p50, found.finish.p90) == (3.0, 11.0, 19.0)
    assert (found.duration.p50, found.duration.p95) == (11.0, 20.0)


def test_a_verdict_stands_although_an_alert_of_the_same_run_comes_after_it() -> None:
    world = played([pipeline("a")], "2026-03-02T07:30:00Z")
    put_runs(world, [60])
    key = RunKey("a", "cron", "2026-03-02")
    late = records.event(EventType.RELATIVE_SLA_BREACH, key, world.clock.now(), "late", breachAt="2026-03-02T09:00:00Z")
    world.engine.store.commit([records.put_event(late)])
    (item,) = trend.read(world.engine.store, "a", world.clock.now(), days=1).items
    assert (item.sla, item.margin_seconds, item.breach_at) == ("met", 60, datetime(2026, 3, 2, 10, tzinfo=UTC))


def test_a_run_without_a_deadline_breaches_by_its_duration_while_its_clock_runs_and_has_no_breach_afterwards() -> None:
    schedule = {"trigger": {"key": "go", "check": "exists"}, "evaluation": {"window": "5h"}}
    steps = [{"at": "2026-03-02T08:00:00Z", "sensor": "a/go", "data": {}}]
    world = played([pipeline("a", schedule=schedule, sla={"maxDuration": "2h"})], "2026-03-02T08:30:00Z", steps=steps)
    store = world.engine.store
    (waiting,) = trend.read(store, "a", world.clock.now(), days=1).items
    assert waiting.breach_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    store.commit([Delete(records.run_record(RunKey("a", "stream", "2026-03-02"), keys.SLA))])
    (unknown,) = trend.read(store, "a", world.clock.now(), days=1).items
    assert unknown.breach_at is None


def test_a_run_of_a_schedule_that_is_gone_has_no_breach() -> None:
    world = played(
        [pipeline("a", sla={"deadline": "10:00"})], "2026-03-02T08:30:00Z", steps=[ready("2026-03-02T08:10:00Z")]
    )
    document = pipeline("a", sla={"deadline": "10:00"}, schedule={"id": "other", "cron": "0 8 * * *"})
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(world.engine.control, config, document)
    world.engine.store.commit(
        [Delete(record.key) for record in world.engine.store.query(Table.EVENTS, keys.pipeline_pk("a"))]
    )
    (item,) = trend.read(world.engine.store, "a", world.clock.now(), days=1).items
    assert (item.schedule, item.completed_at is not None, item.breach_at) == ("cron", True, None)

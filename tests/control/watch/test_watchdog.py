"""The watchdog finds what was lost: triggers of every period, cascades, attempts that nothing drives."""

from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import records, writing
from interlock.control.watch import watchdog
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import Marker, RunStatus
from interlock.ports.store import Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged, write

NOON: Final = "2026-03-05T12:00:00Z"
READY: Final = {"status": "ready"}


def idle(**parts: Any) -> FaultyWorld:
    """`orders` at noon; nothing has been written."""
    return staged(pipeline(**parts), until=NOON, steps=[])


def of(date: str, schedule: str = "stream") -> RunKey:
    return RunKey("orders", schedule, date)


def mark(world: FaultyWorld, upstream: str, date: str) -> None:
    """The marker of a completion, whose own change is never looked at."""
    at = datetime.fromisoformat("2026-03-05T11:00:00+00:00")
    marker = Marker(upstream=upstream, date=date, completed_at=at, attempt=1, upstream_schedule="stream")
    sk = keys.marker_sk("stream", date, upstream, "stream")
    control_of(world).store.commit([Put(records.control_key(KEY.pk, sk), records.plain(marker))])


# ----------------------------------------------------------------------------------------------------- triggers


@pytest.mark.parametrize(
    ("sensor", "date"),
    [
        ("ready", "2026-03-05"),
        ("ready#2026-03-04", "2026-03-04"),
        ("ready#2026-03-05T09", "2026-03-05T09"),
    ],
)
def test_a_trigger_whose_write_was_lost_opens_the_run_of_its_period(sensor: str, date: str) -> None:
    world = idle()
    write(world, sensor, **READY)
    assert watchdog.run(control_of(world)) == []

    run = run_of(world, of(date))
    assert run.opened_by.startswith(f"watchdog: sensor {sensor}: ")
    assert count_events(world, EventType.TRIGGER_RECOVERED, of(date)) == 1
    assert watchdog.run(control_of(world)) == []
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1


def test_every_period_of_a_lost_trigger_is_recovered() -> None:
    world = idle()
    for hour in range(4, 8):
        write(world, f"ready#2026-03-05T{hour:02}", **READY)
    watchdog.run(control_of(world))
    assert [run_of(world, of(f"2026-03-05T{hour:02}")).attempt for hour in range(4, 8)] == [1, 1, 1, 1]


def test_a_trigger_that_does_not_hold_or_has_its_run_is_nothing_lost() -> None:
    world = idle()
    write(world, "ready#2026-03-04", status="partial")
    write(world, "ready", **READY)
    settle(world)
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None
    assert run_of(world).opened_by.startswith("sensor ready: ")
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 0


def test_a_sensor_with_another_name_that_begins_alike_is_no_trigger() -> None:
    world = idle()
    write(world, "readyish#2026-03-04", **READY)
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None


def test_a_lost_trigger_of_an_excluded_day_stays_closed() -> None:
    trigger = {"key": "ready", "check": "exists"}
    world = idle(schedule={"trigger": trigger, "exclude": {"dates": ["2026-03-04"]}})
    write(world, "ready#2026-03-04", **READY)
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None
    assert control_of(world).store.query(Table.EVENTS, KEY.pk) == []


def test_what_a_dry_run_has_observed_is_not_recovered_when_it_becomes_real() -> None:
    world = staged(pipeline(dryRun=True), until=NOON)
    document = pipeline()
    control = control_of(world)
    control.store.commit([Put(records.control_key(KEY.pk, keys.CONFIG), {"document": document, "version": "real"})])
    settle(world)
    watchdog.run(control)
    assert world.run_of(KEY) is None


def test_the_plain_trigger_sensor_is_seen_beside_many_of_other_periods_and_names() -> None:
    world = idle()
    control = control_of(world)
    old = world.clock.now() - timedelta(days=90)
    for index in range(80):
        for key in (f"ready#2025-{index % 12 + 1:02d}-{index % 28 + 1:02d}", f"ready-{index}"):
            item = records.sensor_item({"n": index}, old)
            control.store.commit([Put(records.control_key(KEY.pk, keys.sensor_sk(key)), item)])
    write(world, "ready", **READY)
    # The stream is not pumped: the start is lost, and only check 4 can find it.
    assert watchdog.run(control) == []
    assert run_of(world).attempt == 1
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1


# ------------------------------------------------------------------------------------------------------ cascade


def downstream(*upstreams: dict[str, Any], **parts: Any) -> FaultyWorld:
    return idle(
        schedule={},
        validation={"rules": [{"key": f"upstream:{one['pipeline']}", "check": "exists"} for one in upstreams]},
        after=list(upstreams),
        **parts,
    )


def test_a_cascade_whose_markers_were_lost_is_opened() -> None:
    world = downstream({"pipeline": "a"}, {"pipeline": "b"})
    mark(world, "a", "2026-03-04")
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None, "b has not completed"

    mark(world, "b", "2026-03-04")
    watchdog.run(control_of(world))
    assert run_of(world, of("2026-03-04")).opened_by == "watchdog: cascade: all upstreams completed"
    assert count_events(world, EventType.TRIGGER_RECOVERED, of("2026-03-04")) == 1


def test_a_day_whose_hours_have_all_completed_is_opened() -> None:
    world = downstream({"pipeline": "a", "require": "all-hours"})
    for hour in range(24):
        assert world.run_of(of("2026-03-04")) is None
        mark(world, "a", f"2026-03-04T{hour:02}")
        if hour == 22:
            watchdog.run(control_of(world))
    watchdog.run(control_of(world))
    assert run_of(world, of("2026-03-04")).attempt == 1
    assert world.run_of(of("2026-03-04T05")) is None


def test_a_cascade_that_has_its_run_is_nothing_lost() -> None:
    world = downstream({"pipeline": "a"})
    mark(world, "a", "2026-03-04")
    settle(world)
    assert run_of(world, of("2026-03-04")).opened_by.startswith("cascade: ")
    watchdog.run(control_of(world))
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 0


# -------------------------------------------------------------------------------------------------- active runs


def test_an_attempt_whose_execution_is_gone_is_driven_on() -> None:
    world = idle()
    write(world, "ready", **READY)
    control = control_of(world)
    # The first pass opens the run; the change of the run, which starts its execution, is not delivered.
    watchdog.run(control)
    assert run_of(world).status is RunStatus.PENDING
    assert not control.executions.is_open(keys.execution_name(KEY, 1))

    watchdog.run(control)
    assert control.executions.is_open(keys.execution_name(KEY, 1))
    later(world, minutes=20)
    assert run_of(world).status is RunStatus.COMPLETED


def test_a_retry_whose_timer_was_lost_is_opened_when_it_is_due() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 2, "retryDelay": "1h"}
    world = staged(
        pipeline(job=job),
        until="2026-03-05T00:30:00Z",
        jobs=[{"after": "5m", "result": "fail", "category": "TRANSIENT"}, {"after": "5m", "result": "success"}],
    )
    run = run_of(world)
    assert (run.status, run.attempt) == (RunStatus.FAILED, 1)
    assert run.retry_at is not None
    world.clock.move_to(run.retry_at - timedelta(seconds=1))
    watchdog.run(control_of(world))
    assert run_of(world).attempt == 1
    world.clock.move_to(run.retry_at)
    watchdog.run(control_of(world))
    assert (run_of(world).status, run_of(world).attempt) == (RunStatus.PENDING, 2)


def test_a_sensor_that_was_written_past_our_api_is_recovered_as_well() -> None:
    world = idle()
    item = records.sensor_item(READY, world.clock.now())
    where = records.control_key(KEY.pk, keys.sensor_sk("ready#2026-03-04"))
    control_of(world).store.commit([Put(where, item)])
    watchdog.run(control_of(world))
    assert run_of(world, of("2026-03-04")).attempt == 1


def test_a_deleted_sensor_opens_nothing() -> None:
    world = idle()
    write(world, "ready#2026-03-04", **READY)
    writing.delete_sensor(control_of(world), "orders", "ready#2026-03-04")
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None

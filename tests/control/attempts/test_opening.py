"""Opening the first attempt of a run: once, by the calendar, with its SLA, its lease and the config it goes by."""

from datetime import timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from interlock.control import catalog, records
from interlock.control.attempts import opening
from interlock.control.attempts.opening import Opened, Start
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus, Source
from interlock.ports.executions import StartResult
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, has, later, pipeline, run_of, settle, staged, write

NOON: Final = "2026-03-05T12:00:00Z"
SLA: Final = {"deadline": "14:00", "dayOffset": 0, "expectedDuration": "30m"}


def idle(**parts: Any) -> FaultyWorld:
    return staged(pipeline(**parts), until=NOON, steps=[])


def open_(world: FaultyWorld, key: RunKey = KEY) -> Opened:
    return opening.open_first(control_of(world), Start(key=key, opened_by="a test"))


def test_a_run_is_opened_once() -> None:
    world = idle()
    assert [open_(world), open_(world)] == [Opened.OPENED, Opened.EXISTS]
    run = run_of(world)
    assert (run.status, run.attempt, run.source, run.opened_by) == (RunStatus.PENDING, 1, Source.FIRST, "a test")
    assert count_events(world, EventType.TRIGGER_STARTED) == 1
    assert has(world, keys.ACTIVE)


def test_what_else_there_is_to_say_is_said_only_when_it_opens() -> None:
    world = idle()
    event = records.event(EventType.TRIGGER_RECOVERED, KEY, world.clock.now(), "lost")
    for _ in range(2):
        opening.open_first(control_of(world), Start(key=KEY, opened_by="a test"), event)
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1


def test_a_pipeline_that_is_gone_or_a_dry_run_opens_nothing() -> None:
    world = idle(dryRun=True)
    assert open_(world) is Opened.DRY_RUN
    catalog.delete_config(control_of(world), "orders")
    assert open_(world) is Opened.NO_CONFIG
    assert world.run_of(KEY) is None


def test_an_excluded_day_is_said_once_and_not_opened() -> None:
    trigger = {"key": "ready", "check": "exists"}
    world = idle(schedule={"trigger": trigger, "exclude": {"dates": ["2026-03-05"]}})
    assert [open_(world), open_(world)] == [Opened.EXCLUDED, Opened.EXCLUDED]
    assert world.run_of(KEY) is None
    assert count_events(world, EventType.PIPELINE_EXCLUDED) == 1


def test_the_config_that_a_run_goes_by_is_kept() -> None:
    world = idle()
    open_(world)
    settle(world)
    catalog.delete_config(control_of(world), "orders")
    kept = catalog.opened_with(control_of(world).store, "orders", run_of(world).config_version)
    assert kept.id == "orders"


def test_the_sla_of_a_run_begins_with_it_and_not_again_with_a_later_attempt() -> None:
    world = idle(sla=SLA)
    open_(world)
    state = records.get_sla(control_of(world).store, KEY)
    assert state is not None
    assert state.breach_at is not None
    assert state.breach_at.isoformat() == "2026-03-05T14:00:00+00:00"
    config = catalog.opened_with(control_of(world).store, "orders", run_of(world).config_version)
    assert opening.sla_writes(control_of(world), config, replace(run_of(world), attempt=2), None) == []
    assert opening.sla_writes(control_of(world), config, replace(run_of(world), sla_closed=True), None) == []


def test_a_run_without_an_sla_has_no_sla_state() -> None:
    world = idle()
    open_(world)
    assert not has(world, keys.SLA)


@pytest.mark.parametrize(
    ("window", "poll_seconds", "hours"),
    [("1h", 3600, 4), ("6h", 3600, 7), ("1h", 36000, 11)],
)
def test_the_lease_covers_the_windows(window: str, poll_seconds: int, hours: int) -> None:
    schedule = {"trigger": {"key": "ready", "check": "exists"}, "evaluation": {"window": window}}
    job = {"type": "glue", "config": {"jobName": "x"}, "jobPollWindowSeconds": poll_seconds}
    world = idle(schedule=schedule, job=job)
    open_(world)
    lease = run_of(world).lease_until
    assert lease is not None
    left = lease - world.clock.now()
    assert timedelta(hours=hours) < left <= timedelta(hours=hours + 1)


def test_a_write_that_is_no_period_is_said_once_and_opens_nothing() -> None:
    world = idle()
    write(world, "ready", status="ready", date="tomorrow")
    settle(world)
    later(world, minutes=10)
    assert count_events(world, EventType.SENSOR_INVALID) == 1
    assert count_events(world, EventType.TRIGGER_STARTED) == 0


def test_an_execution_is_started_once_and_not_again_when_it_is_over() -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    run = run_of(world)
    assert run.status is RunStatus.COMPLETED
    assert opening.start_execution(control_of(world), run) is StartResult.ALREADY_CLOSED
    assert not control_of(world).executions.is_open(keys.execution_name(KEY, 1))

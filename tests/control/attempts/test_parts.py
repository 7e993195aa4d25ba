"""Parts of an attempt: the next execution begins once, where the one before it was, and only for this attempt."""

from datetime import timedelta
from typing import Any, Final

from interlock.control import records
from interlock.control.attempts import parts
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from interlock.ports.store import Delete
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, run_of, staged

WAITS: Final = {"rules": [{"key": "rows", "check": "exists"}]}


def waiting(**more: Any) -> FaultyWorld:
    return staged(pipeline(validation=WAITS, **more), until="+15m")


def test_an_execution_is_named_after_its_attempt_and_its_part() -> None:
    world = waiting()
    run = run_of(world)
    assert parts.execution_of(run) == keys.execution_name(KEY, 1, run.part)
    control = control_of(world)
    after = parts.follow(control, KEY, 1, parts.execution_of(run))
    assert after is not None
    assert parts.execution_of(after) != parts.execution_of(run)


def test_the_next_part_has_a_new_lease_its_events_and_a_running_execution() -> None:
    world = waiting()
    control, before = control_of(world), run_of(world)
    later(world, minutes=10)
    event = records.event(EventType.TRIGGER_RECOVERED, KEY, world.clock.now(), "goes on", attempt=1)
    after = parts.follow(control, KEY, 1, parts.execution_of(before), event)
    assert after is not None
    assert after == run_of(world)
    assert (after.part, after.attempt, after.status) == (before.part + 1, 1, RunStatus.PENDING)
    assert before.lease_until is not None
    assert after.lease_until == before.lease_until + timedelta(minutes=15)
    assert after.opened_at == before.opened_at, "its windows are counted from there"
    assert control.executions.is_open(parts.execution_of(after))
    world._pump()
    assert [one.message for one in world.events if one.type is EventType.TRIGGER_RECOVERED] == ["goes on"]


def test_asked_again_it_starts_what_was_begun_and_begins_no_third_part() -> None:
    world = waiting()
    control, first = control_of(world), parts.execution_of(run_of(world))
    second = parts.follow(control, KEY, 1, first)
    again = parts.follow(control, KEY, 1, first)
    assert second == again == run_of(world)


def test_nothing_follows_another_attempt_an_ended_one_or_a_run_that_is_gone() -> None:
    world = waiting()
    control, execution = control_of(world), parts.execution_of(run_of(world))
    assert parts.follow(control, KEY, 2, execution) is None
    assert parts.follow(control, RunKey("orders", "stream", "2026-03-01"), 1, execution) is None
    later(world, hours=2)
    assert run_of(world).status is RunStatus.FAILED_FINAL
    assert parts.follow(control, KEY, 1, execution) is None
    control.store.commit([Delete(records.run_record(KEY, keys.RUN))])
    assert parts.follow(control, KEY, 1, execution) is None


def test_a_run_that_waits_for_its_retry_is_not_followed() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 1, "retryDelay": "30m"}
    world = staged(pipeline(job=job), until="+15m", jobs=[{"after": "1m", "result": "fail", "category": "TRANSIENT"}])
    run = run_of(world)
    assert run.status is RunStatus.FAILED
    assert parts.follow(control_of(world), KEY, run.attempt, parts.execution_of(run)) is None

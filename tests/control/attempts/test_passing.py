"""What an attempt remembers of the evaluation that passed, and what that ends."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from interlock.control import records
from interlock.control.attempts import passing
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import SlaKind
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, run_of, settle, staged, write

START: Final = datetime(2026, 3, 5, tzinfo=UTC)
READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}


def test_an_attempt_remembers_its_inputs_its_payload_and_the_sensors_that_are_watched_afterwards() -> None:
    config = pipeline(
        validation={"rules": [READY, {"key": "rows", "check": "gte", "field": "count", "value": 5}]},
        postRun={"rules": [{"key": "out", "check": "exists"}], "driftField": "count"},
    )
    steps = [
        {"at": "+5m", "sensor": "orders/out#2026-03-05", "data": {"count": 7, "note": "x"}},
        {"at": "+6m", "sensor": "orders/rows", "data": {"count": 9}},
        {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready", "rows": 1}},
    ]
    world = staged(config, until="+12m", steps=steps)
    run = run_of(world)
    assert run.passed_at == START + timedelta(minutes=10)
    assert set(run.inputs) == {"ready", "rows"}
    assert run.inputs["rows"] == records.digest({"count": 9})
    assert run.trigger_payload == {"status": "ready", "rows": 1}
    assert run.post_run_sensors == {"out": {"count": 7, "note": "x"}}
    world._pump()
    (event,) = [event for event in world.events if event.type is EventType.VALIDATION_PASSED]
    assert (event.detail["attempt"], [one["key"] for one in event.detail["results"]]) == (1, ["ready", "rows"])
    assert "the rules of orders passed for 2026-03-05" in event.message


def test_the_payload_is_the_trigger_s_own_although_a_rule_takes_any_period() -> None:
    rule = READY | {"period": "any"}
    config = pipeline(schedule={"cron": "30 0 * * *", "trigger": READY}, validation={"rules": [rule]})
    steps = [{"at": "+5m", "sensor": "orders/ready", "data": {"status": "ready", "date": "2026-03-04"}}]
    world = staged(config, until="+31m", steps=steps)
    yesterday = run_of(world, RunKey("orders", "cron", "2026-03-04"))
    assert yesterday.trigger_payload == {"status": "ready", "date": "2026-03-04"}
    today = run_of(world, RunKey("orders", "cron", "2026-03-05"))
    assert today.passed_at is not None
    assert set(today.inputs) == {"ready"}
    assert today.trigger_payload is None


def waits_for_rows(sla: dict[str, Any]) -> FaultyWorld:
    config = pipeline(
        schedule={"trigger": READY, "evaluation": {"window": "6h"}},
        validation={"rules": [{"key": "rows", "check": "exists"}]},
        sla={"dayOffset": 0, **sla},
    )
    return staged(config, until="+30m")


def test_rules_that_pass_in_time_end_the_promise_of_readiness_and_nothing_else() -> None:
    world = waits_for_rows({"deadline": "05:00", "readyBy": "02:00"})
    before = records.get_sla(control_of(world).store, KEY)
    assert before is not None
    assert before.ready_at is None
    write(world, "rows", count=1)
    settle(world)
    after = records.get_sla(control_of(world).store, KEY)
    assert after is not None
    assert after.ready_at == START + timedelta(minutes=30)
    assert after.breach_at == START + timedelta(hours=5)
    later(world, hours=3)
    assert EventType.READINESS_LATE not in {event.type for event in world.events}


def test_readiness_that_was_late_already_is_not_taken_back() -> None:
    world = waits_for_rows({"deadline": "05:00", "readyBy": "01:00"})
    later(world, hours=1)
    write(world, "rows", count=1)
    later(world, minutes=5)
    state = records.get_sla(control_of(world).store, KEY)
    assert state is not None
    assert SlaKind.READINESS in state.fired
    assert state.ready_at is None


def test_who_is_near_a_breach_is_known_by_the_deadline_or_else_by_the_duration() -> None:
    def breach(**sla: Any) -> datetime | None:
        world = waits_for_rows(sla)
        return passing.breach_of(control_of(world), run_of(world))

    assert breach(deadline="05:00") == START + timedelta(hours=5)
    assert breach(maxDuration="2h") == START + timedelta(hours=2, minutes=10)
    world = staged(pipeline(), until="+12m")
    assert passing.breach_of(control_of(world), run_of(world)) is None

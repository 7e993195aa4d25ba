"""The record of an SLA goes when it is of no use to anybody: no alert is given twice for that, and none is lost."""

from datetime import timedelta
from typing import Any

import pytest

from interlock.control import records, reruns, sla_monitor
from interlock.control.views import explain
from interlock.control.watch import watchdog as watching
from interlock.decide import sla
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RunStatus
from tests.safety.faults import FaultyWorld
from tests.safety.ledger import Ledger
from tests.safety.stage import KEY, control_of, count_events, has, later, pipeline, run_of, settle, staged, write
from tests.safety.words import alerts_once

WITHIN = sla.KEPT - timedelta(days=1)
BEYOND = sla.KEPT + timedelta(days=2)
DEADLINE = {"deadline": "02:00", "dayOffset": 0}
ROWS = {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 1}]}


def held(**parts: Any) -> FaultyWorld:
    """A run whose rules never passed, an hour after its deadline."""
    world = staged(pipeline(validation=ROWS, sla=DEADLINE, **parts), until="2026-03-05T03:00:00Z")
    assert run_of(world).final_reason is FinalReason.VALIDATION_EXHAUSTED
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1
    return world


def away(world: FaultyWorld, delta: timedelta) -> None:
    """Time passes in which nothing is due; then the watchdog looks, and what has expired is removed."""
    world.clock.move_to(world.clock.now() + delta)
    settle(world)
    assert watching.run(control_of(world)) == []
    world._sweep()
    settle(world)


def ttl_of(world: FaultyWorld, key: RunKey = KEY) -> int | None:
    """When the SLA record of a run goes, which must exist."""
    item = control_of(world).store.get(records.run_record(key, keys.SLA))
    assert item is not None
    ttl = item.get("ttl")
    return None if ttl is None else int(ttl)


def ask_again(world: FaultyWorld) -> None:
    """Somebody reruns the run, whose rules pass now; its job succeeds."""
    write(world, "rows", count=5, date=KEY.date)
    reruns.request(control_of(world), KEY)
    settle(world)
    later(world, hours=3)
    assert run_of(world).status is RunStatus.COMPLETED


def assert_alerts_once(world: FaultyWorld) -> None:
    """Property 7. The events of so long ago are gone, so that the others cannot be judged."""
    assert list(alerts_once(Ledger(world))) == []


# ------------------------------------------------------------------------------------------------ runs that failed


def test_the_record_of_a_run_that_never_completes_goes_in_the_end() -> None:
    world = held()
    away(world, WITHIN)
    assert has(world, keys.SLA)
    away(world, BEYOND - WITHIN)
    assert not has(world, keys.SLA)
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1


def test_a_record_stays_as_long_as_it_has_something_to_tell() -> None:
    config = pipeline(validation=ROWS, sla={"deadline": "02:00", "dayOffset": 31})
    world = staged(config, until="2026-03-05T03:00:00Z")
    assert run_of(world).final_reason is FinalReason.VALIDATION_EXHAUSTED
    assert ttl_of(world) is None
    later(world, days=32)
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1
    assert ttl_of(world) is not None


def test_a_late_completion_is_answered_as_long_as_the_record_is_there() -> None:
    world = held()
    away(world, WITHIN)
    ask_again(world)
    assert count_events(world, EventType.SLA_RECOVERED, KEY) == 1
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1
    assert_alerts_once(world)


def test_a_rerun_after_its_record_has_gone_gives_no_alert_a_second_time() -> None:
    world = held()
    away(world, BEYOND)
    ask_again(world)
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1
    assert count_events(world, EventType.SLA_RECOVERED, KEY) == 0
    assert not has(world, keys.SLA)
    assert_alerts_once(world)


# ---------------------------------------------------------------------------------------- periods without any run


def test_the_record_of_a_period_that_never_ran_goes_and_is_not_armed_again() -> None:
    world = staged(pipeline(sla=DEADLINE), until="2026-03-05T03:00:00Z", steps=[])
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1
    away(world, BEYOND)
    assert not has(world, keys.SLA)
    later(world, days=1)
    assert not has(world, keys.SLA)
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1


@pytest.mark.parametrize("opened", ["trigger", "rerun"])
@pytest.mark.parametrize(("after", "recovered"), [(WITHIN, 1), (BEYOND, 0)], ids=["kept", "gone"])
def test_a_period_that_runs_long_after_its_breach_gives_it_no_second_time(
    opened: str, after: timedelta, recovered: int
) -> None:
    world = staged(pipeline(sla=DEADLINE, validation=ROWS), until="2026-03-05T03:00:00Z", steps=[])
    away(world, after)
    write(world, "rows", count=5, date=KEY.date)
    if opened == "trigger":
        write(world, "ready", status="ready", date=KEY.date)
    else:
        reruns.request(control_of(world), KEY)
    settle(world)
    later(world, hours=3)
    assert run_of(world).status is RunStatus.COMPLETED
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1
    assert count_events(world, EventType.SLA_RECOVERED, KEY) == recovered
    assert_alerts_once(world)


def test_a_period_of_long_ago_that_was_never_armed_has_its_deadline_told_at_once() -> None:
    """However old it is: the pipeline is younger, so nobody can have told of it before."""
    world = staged(pipeline(sla=DEADLINE), until="2026-03-05T03:00:00Z", steps=[])
    recent, ancient = RunKey("orders", "stream", "2025-12-01"), RunKey("orders", "stream", "2023-12-01")
    for key in (recent, ancient):
        write(world, f"ready#{key.date}", status="ready")
    settle(world)
    assert run_of(world, recent).active
    assert run_of(world, ancient).active
    assert count_events(world, EventType.SLA_BREACH, recent) == 1
    assert count_events(world, EventType.SLA_BREACH, ancient) == 1


@pytest.mark.parametrize(("after", "armed"), [(WITHIN, True), (BEYOND, False)])
def test_an_sla_is_not_armed_for_a_period_that_is_older_than_any_record(after: timedelta, armed: bool) -> None:
    world = staged(pipeline(sla=DEADLINE), until="2026-03-05T00:05:00Z", steps=[])
    world.clock.move_to(world.clock.now() + after)
    asked = {"mode": "reconcile", "pipeline": "orders", "schedule": "stream", "date": "2026-03-06"}
    assert sla_monitor.handle(control_of(world), asked) == {"armed": armed}


def test_an_sla_is_not_armed_for_a_period_before_anybody_watched() -> None:
    world = staged(pipeline(sla=DEADLINE), until="2026-03-05T00:05:00Z", steps=[])
    asked = {"mode": "reconcile", "pipeline": "orders", "schedule": "stream", "date": "2025-12-01"}
    assert sla_monitor.handle(control_of(world), asked) == {"armed": False}


# -------------------------------------------------------------------------------------------------- maxDuration


def test_a_first_arrival_is_not_the_first_again_after_its_record_has_gone() -> None:
    arrival = {"at": "+10m", "sensor": "orders/ready", "data": {"status": "late", "date": KEY.date}}
    world = staged(pipeline(sla={"maxDuration": "4m"}), until="2026-03-05T03:00:00Z", steps=[arrival])
    assert count_events(world, EventType.RELATIVE_SLA_BREACH, KEY) == 1
    away(world, BEYOND)
    assert not has(world, keys.SLA)
    for status in ("late", "ready"):
        write(world, "ready", status=status, date=KEY.date)
        settle(world)
        later(world, hours=1)
    assert run_of(world).status is RunStatus.COMPLETED
    assert count_events(world, EventType.RELATIVE_SLA_BREACH, KEY) == 1


def test_a_record_without_an_instant_waits_for_the_arrival_and_no_longer_than_others() -> None:
    trigger = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
    key = RunKey("orders", "cron", "2026-03-06")
    config = pipeline(
        schedule={"cron": "0 0 * * *", "trigger": trigger, "evaluation": {"window": "1h", "interval": "5m"}},
        validation=ROWS,
        sla={"maxDuration": "1h"},
    )
    world = staged(config, until="2026-03-06T02:00:00Z", steps=[])
    assert run_of(world, key).final_reason is FinalReason.VALIDATION_EXHAUSTED
    assert ttl_of(world, key) is not None
    write(world, "ready", status="late", date=key.date)
    settle(world)
    assert ttl_of(world, key) is None
    later(world, hours=2)
    assert count_events(world, EventType.RELATIVE_SLA_BREACH, key) == 1
    assert ttl_of(world, key) is not None


# ----------------------------------------------------------------------------------------------------------- why


@pytest.mark.parametrize("opened", [True, False], ids=["a run that failed", "no run"])
def test_why_announces_no_alert_that_was_given_long_ago(opened: bool) -> None:
    world = held() if opened else staged(pipeline(sla=DEADLINE), until="2026-03-05T03:00:00Z", steps=[])
    for passed, given in ((timedelta(0), True), (WITHIN, True), (BEYOND - WITHIN, False)):
        away(world, passed)
        said = _why(world)
        assert "about to be given" not in said
        assert ("SLA breach was given" in said) is given


def test_why_announces_no_alert_for_a_run_that_completed_last_week() -> None:
    world = staged(pipeline(sla=DEADLINE), until="2026-03-05T03:00:00Z")
    assert run_of(world).status is RunStatus.COMPLETED
    away(world, timedelta(days=7))
    assert not has(world, keys.SLA)
    assert "about to be given" not in _why(world)


def _why(world: FaultyWorld) -> str:
    told_ = explain.explain(control_of(world).store, "orders", world.clock.now(), date=KEY.date)
    return "\n".join(line.text for section in told_.sections for line in section.lines)

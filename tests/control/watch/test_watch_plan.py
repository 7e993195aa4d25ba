"""When the watchdog could next find something: never later than it does."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from interlock.control import catalog, records
from interlock.control.watch import watch_plan
from interlock.decide import early_ends
from interlock.model.events import EventType
from interlock.simulation.scenario import inline_scenario
from tests.safety.faults import FaultyWorld
from tests.safety.stage import control_of, pipeline, run_of, settle, staged

MIDNIGHT: Final = datetime(2026, 3, 5, tzinfo=UTC)
READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}


def at(**delta: float) -> datetime:
    return MIDNIGHT + timedelta(**delta)


def look(until: str = "+1m", **parts: Any) -> datetime | None:
    return watch_plan.next_look(control_of(staged(pipeline(**parts), until=until, steps=[])))


def test_without_pipelines_there_is_nothing_to_look_for() -> None:
    scenario = inline_scenario(start="2026-03-05T00:00:00Z", until="+1m", pipelines=[pipeline()], steps=[])
    world = FaultyWorld(scenario).finish()
    assert watch_plan.next_look(control_of(world)) is not None
    catalog.delete_config(control_of(world), "orders")
    settle(world)
    assert watch_plan.next_look(control_of(world)) is None


@pytest.mark.parametrize(
    ("schedule", "first"),
    [
        ({"cron": "30 0 * * *"}, at(minutes=5)),
        ({"trigger": READY | {"deadline": "00:03"}}, at(minutes=3)),
        ({"trigger": READY | {"deadline": ":02"}}, at(minutes=2)),
        ({"trigger": READY, "time": "00:04"}, at(minutes=4)),
        ({"trigger": {"key": "ready", "check": "age_gt", "field": "at", "value": "1h"}}, at(minutes=1, seconds=1)),
        ({"trigger": READY, "timezone": "Asia/Kolkata"}, at(hours=18, minutes=30)),
    ],
)
def test_every_instant_that_a_check_compares_with_now_is_looked_at(schedule: dict[str, Any], first: datetime) -> None:
    assert look(schedule=schedule) == first


def test_a_tick_and_its_grace_are_looked_at() -> None:
    assert look("+6m", schedule={"cron": "30 0 * * *"}) == at(minutes=30)
    assert look("+31m", schedule={"cron": "30 0 * * *"}) == at(minutes=35)


def test_an_hour_begins_where_hours_are_expected_and_not_elsewhere() -> None:
    hourly = {"trigger": READY, "granularity": "hour"}
    assert look("+10m", schedule=hourly) == at(hours=1)
    assert look("+10m", schedule={"trigger": READY}) == at(days=1)


def test_the_alerts_of_an_sla_are_looked_at() -> None:
    sla = {"deadline": "02:00", "expectedDuration": "30m", "dayOffset": 0}
    world = staged(pipeline(sla=sla, validation={"rules": [{"key": "rows", "check": "exists"}]}), until="+15m")
    found = watch_plan.next_look(control_of(world))
    assert found is not None
    assert found <= at(hours=1, minutes=30)


def test_the_lease_the_execution_and_the_retry_of_a_run_are_looked_at_also_of_a_deleted_pipeline() -> None:
    world = staged(pipeline(), until="+12m")
    lease = run_of(world).lease_until
    assert lease is not None
    catalog.delete_config(control_of(world), "orders")
    settle(world)
    margin = control_of(world).settings.lease_margin
    assert watch_plan.next_look(control_of(world)) == lease - margin
    world.clock.move_to(lease - margin)
    assert watch_plan.next_look(control_of(world)) == lease


def test_a_retry_that_waits_is_looked_at() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 1, "retryDelay": "7m"}
    failing = [{"after": "2m", "result": "fail", "category": "TRANSIENT"}, {"after": "2m", "result": "success"}]
    world = staged(pipeline(job=job), until="+14m", jobs=failing)
    retry = run_of(world).retry_at
    assert retry is not None
    assert watch_plan.next_look(control_of(world)) == retry


def test_awaited_post_run_data_is_looked_at() -> None:
    watched = {"rules": [{"key": "out", "check": "exists"}], "sensorTimeout": "2h"}
    world = staged(pipeline(postRun=watched), until="+30m")
    assert watch_plan.next_look(control_of(world)) == at(hours=2, minutes=20)
    world.clock.move_to(at(hours=2, minutes=20))
    world._instant([])
    world._pump()
    assert EventType.POST_RUN_SENSOR_MISSING in {event.type for event in world.events}
    assert records.active_runs(control_of(world).store, "orders") == []


def test_a_dry_run_promises_nothing() -> None:
    assert look(dryRun=True) is None


def test_the_instant_from_which_an_attempt_without_an_execution_goes_on_is_looked_at() -> None:
    """Two executions that ended early in a row: the next part begins five minutes after the second did, not before."""
    world = staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="+15m")
    store, run = control_of(world).store, run_of(world)
    began = world.clock.now() - timedelta(minutes=1)
    store.commit([records.put_run(replace(run, part_at=began, early_ends=1, version=run.version + 1), run)])
    found = watch_plan.next_look(control_of(world))
    assert found is not None
    assert found <= began + early_ends.FIRST_PAUSE

"""What a sensor write, or its removal, sets in motion: what no scenario file can say."""

from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control import after_run, catalog, records, writing
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus, SlaState
from interlock.ports.store import Delete
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.safety.faults import FaultyWorld
from tests.safety.stage import control_of, later, pipeline, run_of, settle, staged, write

KEY = RunKey("orders", "cron", "2026-03-02")
ROWS = {"key": "rows", "check": "gte", "field": "count", "value": 1000}
ORDERS: dict[str, Any] = {
    "pipeline": {"id": "orders"},
    "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "1h", "interval": "30m"}},
    "validation": {"rules": [ROWS]},
    "job": {"type": "external"},
}


def world_of(until: str, **changes: Any) -> World:
    """The sensor of the period itself says too little, the one without a period would be enough."""
    steps = [
        {"at": "+6m", "sensor": "orders/rows#2026-03-02", "data": {"count": 1}},
        {"at": "+6m", "sensor": "orders/rows", "data": {"count": 5000}},
    ]
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until=until, pipelines=[ORDERS | changes], steps=steps))
    world.play()
    return world


def forget(world: World, key: str) -> Run:
    assert writing.delete_sensor(world.engine.control, "orders", key)
    while world.engine.router.pump() + world.engine.executions.run_due(world.clock.now()):
        pass
    run = world.run_of(KEY)
    assert run is not None
    return run


def test_a_waiting_run_reads_at_once_what_counts_when_its_own_sensor_is_deleted() -> None:
    world = world_of("+10m")
    assert forget(world, "rows#2026-03-02").status is RunStatus.RUNNING


def test_a_run_that_gave_up_is_reopened_when_its_own_sensor_is_deleted() -> None:
    world = world_of("+2h")
    held = world.run_of(KEY)
    assert held is not None
    assert held.status is RunStatus.FAILED_FINAL
    again = forget(world, "rows#2026-03-02")
    assert (again.status, again.attempt) == (RunStatus.RUNNING, 2)


def test_a_sensor_that_was_deleted_makes_no_rule_pass() -> None:
    world = world_of("+10m")
    assert forget(world, "rows").status is RunStatus.PENDING
    assert not writing.delete_sensor(world.engine.control, "orders", "rows")


# ------------------------------------------------------------------------------------------------------- first arrivals


ARRIVING: dict[str, Any] = ORDERS | {
    "schedule": {"trigger": {"key": "rows", "check": "exists"}, "exclude": {"dates": ["2026-03-02"]}},
    "sla": {"maxDuration": "1h"},
}


def sla_of(world: World, date: str) -> SlaState | None:
    return records.get_sla(world.engine.store, RunKey("orders", "stream", date))


def test_a_first_arrival_on_an_excluded_day_promises_nothing() -> None:
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until="+3m", pipelines=[ARRIVING]))
    world.play()
    writing.write_sensor(world.engine.control, "orders", "rows#2026-03-02", {"count": 1})
    writing.write_sensor(world.engine.control, "orders", "rows#2026-03-01", {"count": 1})
    world.engine.router.pump()
    arrived = sla_of(world, "2026-03-01")
    assert arrived is not None
    assert arrived.first_arrival == world.clock.now()
    assert sla_of(world, "2026-03-02") is None
    assert world.run_of(RunKey("orders", "stream", "2026-03-02")) is None


def test_a_first_arrival_that_does_not_open_the_run_is_remembered_except_on_an_excluded_day() -> None:
    trigger = {"key": "rows", "check": "gte", "field": "count", "value": 1000}
    config = ARRIVING | {"schedule": ARRIVING["schedule"] | {"trigger": trigger}}
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until="+3m", pipelines=[config]))
    world.play()
    for date in ("2026-03-01", "2026-03-02"):
        writing.write_sensor(world.engine.control, "orders", f"rows#{date}", {"count": 1})
    world.engine.router.pump()
    assert world.run_of(RunKey("orders", "stream", "2026-03-01")) is None
    arrived = sla_of(world, "2026-03-01")
    assert arrived is not None
    assert arrived.first_arrival == world.clock.now()
    assert sla_of(world, "2026-03-02") is None


# --------------------------------------------------------------------------------------- the first arrival, under a run

CRON: Final = RunKey("orders", "cron", "2026-03-05")
GO: Final = {"key": "go", "check": "equals", "field": "status", "value": "ready"}


def opened_by_a_tick(sla: dict[str, Any] | None) -> FaultyWorld:
    """`orders`, opened at five past midnight by its cron; nothing has come of its trigger sensor."""
    config = pipeline(
        schedule={"cron": "5 0 * * *", "trigger": GO, "evaluation": {"window": "9h"}},
        validation={"rules": [{"key": "rows", "check": "exists"}]},
    )
    return staged(config | ({"sla": sla} if sla else {}), until="+30m", steps=[])


def arrival(world: FaultyWorld) -> tuple[datetime | None, datetime | None] | None:
    state = records.get_sla(control_of(world).store, CRON)
    return None if state is None else (state.first_arrival, state.relative_breach_at)


def test_the_first_arrival_under_a_run_starts_the_clock_once_whether_it_triggers_or_not() -> None:
    world = opened_by_a_tick({"maxDuration": "2h"})
    write(world, "go", status="not yet")
    settle(world)
    began = world.clock.now()
    assert arrival(world) == (began, began + timedelta(hours=2))
    later(world, minutes=10)
    write(world, "go", status="ready")
    settle(world)
    assert arrival(world) == (began, began + timedelta(hours=2))
    assert run_of(world, CRON).attempt == 1


def test_a_deadline_without_a_duration_has_no_clock_to_start() -> None:
    world = opened_by_a_tick({"deadline": "08:00"})
    write(world, "go", status="ready")
    settle(world)
    assert arrival(world) == (None, None)
    without = opened_by_a_tick(None)
    write(without, "go", status="ready")
    settle(without)
    assert arrival(without) is None


def test_a_run_follows_the_config_it_was_opened_with_also_when_its_clock_would_start() -> None:
    world = opened_by_a_tick({"deadline": "08:00"})
    document = pipeline(
        schedule={"cron": "5 0 * * *", "trigger": GO, "evaluation": {"window": "9h"}},
        validation={"rules": [{"key": "rows", "check": "exists"}]},
        sla={"maxDuration": "2h"},
    )
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(control_of(world), config, document)
    settle(world)
    write(world, "go", status="ready")
    settle(world)
    assert arrival(world) == (None, None)


def test_a_completed_run_has_no_clock_to_start() -> None:
    world = opened_by_a_tick({"maxDuration": "2h"})
    write(world, "rows", count=1)
    later(world, minutes=30)
    before = arrival(world)
    write(world, "go", status="ready")
    settle(world)
    assert arrival(world) == before
    assert run_of(world, CRON).first_completed_at is not None


def test_a_completed_run_whose_sla_is_gone_gets_no_new_one() -> None:
    world = opened_by_a_tick({"maxDuration": "2h"})
    write(world, "rows", count=1)
    later(world, minutes=30)
    run = run_of(world, CRON)
    assert (run.first_completed_at is not None, run.sla_closed) == (True, False)
    control_of(world).store.commit([Delete(records.run_record(CRON, keys.SLA))])
    write(world, "go", status="ready")
    settle(world)
    assert arrival(world) is None


# ----------------------------------------------------------------------------------------- the looks after a completion


@pytest.mark.parametrize(("window", "armed"), [("10m", True), ("9m", False)])
def test_the_first_look_after_a_completion_is_armed_if_it_is_within_the_window(window: str, armed: bool) -> None:
    post_run = {"rules": [{"key": "out", "check": "exists"}], "evaluation": {"window": window, "interval": "10m"}}
    world = staged(pipeline(postRun=post_run), until="2026-03-05T00:25:00Z")
    run = run_of(world)
    assert run.ended_at is not None
    timer = world.engine.timers.get(after_run.recheck_timer(run, run.ended_at).name)
    assert (timer.at if timer is not None else None) == (run.ended_at + timedelta(minutes=10) if armed else None)

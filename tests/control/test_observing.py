"""What a sensor write, or its removal, sets in motion: what no scenario file can say."""

from typing import Any

from interlock.control import records, writing
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus, SlaState
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

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


# ----------------------------------------------------------------------------------------------- first arrivals


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

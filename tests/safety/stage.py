"""A small world played up to an instant, at which a test takes over: one sensor-driven pipeline, `orders`."""

from datetime import timedelta
from typing import Any, Final

from interlock.control import records, writing
from interlock.control.context import Control
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Run
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.safety.faults import FaultPlan, FaultyWorld

KEY: Final = RunKey("orders", "stream", "2026-03-05")
_READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}


def pipeline(**parts: Any) -> dict[str, Any]:
    """The config of `orders`: opened by `ready`, whose rules read `ready`; `parts` replace or add top-level keys."""
    document: dict[str, Any] = {
        "pipeline": {"id": "orders"},
        "schedule": {"trigger": dict(_READY), "evaluation": {"window": "1h", "interval": "5m"}},
        "validation": {"rules": [dict(_READY)]},
        "job": {"type": "glue", "config": {"jobName": "orders"}, "pollInterval": "1m"},
    }
    return document | parts


def _upstream(name: str) -> dict[str, Any]:
    """A pipeline that `orders` runs after: known, so that it may be named; nothing opens a run of it."""
    return pipeline(pipeline={"id": name})


def staged(
    config: dict[str, Any],
    *,
    until: str,
    steps: list[dict[str, Any]] | None = None,
    jobs: list[dict[str, Any]] | None = None,
    plan: FaultPlan | None = None,
) -> FaultyWorld:
    """The world of one config, played from midnight to `until`; by default `ready` is written after ten minutes."""
    ready = {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready", "rows": 1}}
    scenario = inline_scenario(
        name="stage",
        start="2026-03-05T00:00:00Z",
        until=until,
        pipelines=[config, *(_upstream(entry["pipeline"]) for entry in config.get("after", []))],
        jobs={"orders": jobs or [{"after": "10m", "result": "success"}]},
        steps=[ready] if steps is None else steps,
    )
    world = FaultyWorld(scenario, plan).finish()
    nothing_was_given_up(world)
    return world


def control_of(world: FaultyWorld) -> Control:
    """The controller that is alive."""
    return world.engine.control


def run_of(world: FaultyWorld, key: RunKey = KEY) -> Run:
    """The run, which must exist."""
    run = world.run_of(key)
    assert run is not None, f"{key} has no run"
    return run


def write(world: FaultyWorld, sensor: str, **data: Any) -> None:
    """Somebody writes a sensor of `orders`, now."""
    writing.write_sensor(control_of(world), "orders", sensor, data)


def settle(world: FaultyWorld) -> None:
    """Everything that follows at this instant."""
    world._settle(world.clock.now())
    nothing_was_given_up(world)


def nothing_was_given_up(world: World) -> None:
    """A change or timer whose receiver fails becomes a dead letter, and the rest goes on: a test would not notice."""
    assert DeadLetters(world.database).list() == []


def later(world: FaultyWorld, **delta: float) -> None:
    """Let time pass: ticks, timers, polls and the watchdog have their turns, as in a scenario."""
    until = world.clock.now() + timedelta(**delta)
    while (following := world._next_instant(world.clock.now(), None)) is not None and following <= until:
        world.clock.move_to(following)
        world._instant([])
    world.clock.move_to(until)
    nothing_was_given_up(world)


def count_events(world: FaultyWorld, type_: EventType, key: RunKey | None = None) -> int:
    """How many events of a type there were (of one run)."""
    world._pump()
    found = [event for event in world.events if event.type is type_]
    return sum(1 for event in found if key is None or (event.schedule_id, event.date) == (key.schedule, key.date))


def has(world: FaultyWorld, kind: str, key: RunKey = KEY) -> bool:
    """Is there a record of that kind for the run?"""
    return control_of(world).store.get(records.run_record(key, kind)) is not None

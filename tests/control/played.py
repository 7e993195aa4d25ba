"""Small worlds of daily pipelines, played to an instant, for tests of what people are shown."""

from typing import Any

from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.safety.stage import nothing_was_given_up


def pipeline(name: str, **changes: Any) -> dict[str, Any]:
    """A config of a daily pipeline at 08:00Z that waits for `ready`; `changes` replace or add top-level keys."""
    return {
        "pipeline": {"id": name, "owner": f"owner of {name}"},
        "schedule": {"cron": "0 8 * * *"},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": "command", "config": {"command": ["true"]}, "maxManualReruns": 1},
        **changes,
    }


def played(pipelines: list[dict[str, Any]], until: str, **fields: Any) -> World:
    """The controller after a scenario that begins on Monday 2026-03-02 at 07:00Z."""
    world = World(inline_scenario(start="2026-03-02T07:00:00Z", until=until, pipelines=pipelines, **fields))
    world.play()
    nothing_was_given_up(world)
    return world


def ready(at: str, name: str = "a") -> dict[str, Any]:
    """The step that writes the sensor it waits for."""
    return {"at": at, "sensor": f"{name}/ready", "data": {}}

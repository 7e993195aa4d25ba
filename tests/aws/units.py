"""Units per run, per wait, per poll, per idle pipeline: measured on the in-process AWS.

`python -m tests.aws.units` writes `tests/aws/units.json`, from which the cost page is generated; a test compares it
with what is measured, and `make bench` prints both (`python -m tests.aws.units print`). What a watchdog pass costs is
counted apart from the rest, because it comes anyway.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from interlock.simulation.scenario import inline_scenario
from tests.aws.world.meter import Bill, Meter
from tests.aws.world.play import on_aws

FILE: Final = Path(__file__).parent / "units.json"
_READY: Final = {"check": "equals", "field": "status", "value": "ready"}
_OTHER: Final = 4
"""How many waits, polls and pipelines there are besides the first: what one of them costs is the difference by this."""


def _pipeline(name: str = "orders", **more: Any) -> dict[str, Any]:
    return {
        "pipeline": {"id": name},
        "schedule": {
            "trigger": {"key": "landed", "check": "exists"},
            "evaluation": {"window": "3h", "interval": "5m"},
        },
        "validation": {"trigger": "ALL", "rules": [{"key": "ready", **_READY}]},
        "job": {"type": "glue", "config": {"jobName": "orders"}, "pollInterval": "1m", "jobPollWindowSeconds": 7200},
        **more,
    }


def _step(minute: int, sensor: str) -> dict[str, Any]:
    return {"at": f"+{minute}m", "sensor": f"orders/{sensor}", "data": {"status": "ready", "date": "2026-03-02"}}


def _bill(steps: list[dict[str, Any]], *, polls: int = 1, names: tuple[str, ...] = ("orders",), **more: Any) -> Bill:
    scenario = inline_scenario(
        name="units",
        start="2026-03-02T08:00:00Z",
        until="2026-03-02T11:02:00Z",
        pipelines=[_pipeline(name, **more) for name in names],
        steps=steps,
        jobs={"orders": [{"after": f"{polls}m", "result": "success"}]},
    )
    with on_aws(scenario) as world:
        world._until_done(world._begin)
        world.cloud.functions.invoked.clear()
        meter = Meter(world.cloud)
        world._begin = lambda: None  # type: ignore[method-assign]  # it has begun: what it costs to apply is not asked
        world.play()
        return meter.total(without=("-watchdog",))


def _pass(names: tuple[str, ...]) -> Bill:
    """One pass of the watchdog over pipelines of which nothing is to be said."""
    scenario = inline_scenario(
        name="units",
        start="2026-03-02T08:00:00Z",
        until="2026-03-02T08:00:00Z",
        pipelines=[_pipeline(name) for name in names],
        steps=[],
        jobs={},
    )
    with on_aws(scenario) as world:
        world.play()
        world.cloud.functions.invoked.clear()
        meter = Meter(world.cloud)
        world.engine.watch()
        return meter.total()


def _each(more: Bill, less: Bill, by: int = 1) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in sorted({*more, *less}):
        units = (more[name] - less[name]) / by
        if units:
            found[name] = int(units) if units == int(units) else round(units, 2)
    halves = found.pop("half read units", 0)
    return {**found, "read units": halves / 2}


def measured() -> dict[str, dict[str, float]]:
    """Everything."""
    idle = _bill([])
    landed, ready = _step(5, "landed"), _step(4, "ready")
    run = _bill([ready, landed])
    waited = _bill([landed, _step(5 + 5 * _OTHER + 1, "ready")])
    longer = _bill([landed, _step(5 + 10 * _OTHER + 1, "ready")])
    polled = _bill([ready, landed], polls=1 + _OTHER)
    late = _bill([ready, landed], sla={"maxDuration": "2h"})
    names = tuple(f"idle-{number}" for number in range(1 + _OTHER))
    return {
        "run": _each(run, idle),
        "wait": _each(longer, waited, _OTHER),
        "poll": _each(polled, run, _OTHER),
        "sla": _each(late, run),
        "watchdog pass": _each(_pass(names[:1]), Counter()),
        "idle pipeline in a pass": _each(_pass(names), _pass(names[:1]), _OTHER),
    }


def beside() -> str:
    """What is measured beside what is written down, a line each."""
    pinned: dict[str, dict[str, float]] = json.loads(FILE.read_text(encoding="utf-8"))
    lines = [f"{'AWS, units per':32}{'':32}{'measured':>10}{'pinned':>10}"]
    for part, units in measured().items():
        for name in sorted({*units, *pinned.get(part, {})}):
            values = f"{units.get(name, 0):>10g}{pinned.get(part, {}).get(name, 0):>10g}"
            lines.append(f"{part:32}{name:32}{values}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["print"]:
        sys.stdout.write(beside())
    else:
        FILE.write_text(json.dumps(measured(), indent=2) + "\n", encoding="utf-8")

"""SLA compliance per pipeline and week, and the latest runs of all."""

from typing import Any

from interlock.control.views import sla_stats
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World


def pipeline(name: str) -> dict[str, Any]:
    return {
        "pipeline": {"id": name, "owner": f"owner of {name}"},
        "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "8h"}},
        "sla": {"deadline": "10:00", "expectedDuration": "30m"},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": "command", "config": {"command": ["true"]}},
    }


def test_compliance_margins_and_the_worst_runs() -> None:
    late = {("a", 3): "11:00", ("a", 9): "10:30"}
    steps = [
        {"at": f"2026-03-{day:02d}T{late.get((name, day), '08:10')}:00Z", "sensor": f"{name}/ready", "data": {}}
        for name in "ab"
        for day in range(2, 10)
    ]
    scenario = inline_scenario(
        start="2026-03-02T07:00:00Z",
        until="2026-03-10T10:30:00Z",
        pipelines=[pipeline("a"), pipeline("b")],
        steps=sorted(steps, key=lambda one: str(one["at"])),
    )
    world = World(scenario)
    world.play()
    found = sla_stats.collect(world.engine.store, world.clock.now(), weeks=3)
    assert found.weeks == ["2026-02-23", "2026-03-02", "2026-03-09"]
    a, b = found.items
    assert (a.pipeline, b.pipeline) == ("a", "b")
    assert a.owner == "owner of a"
    assert a.weeks[0] is None
    assert a.compliance < b.compliance
    assert [(one.pipeline, one.date, one.margin_seconds) for one in found.worst] == [
        ("a", "2026-03-10", None),
        ("b", "2026-03-10", None),
        ("a", "2026-03-03", -3660),
        ("a", "2026-03-09", -1860),
    ]
    assert (found.runs, found.truncated) == (sum(one.runs for one in found.items), False)

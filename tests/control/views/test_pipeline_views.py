"""What people are shown of a run under way is what that run goes by."""

from typing import Any

from interlock.control import catalog, writing
from interlock.control.views import pipeline_views
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

DATE = "2026-03-02"
ORDERS: dict[str, Any] = {
    "pipeline": {"id": "orders"},
    "schedule": {"cron": "0 8 * * *"},
    "validation": {"rules": [{"key": "export", "check": "exists"}, {"key": "rows", "check": "gte", "value": 1000}]},
    "job": {"type": "external"},
}
ORDERS["validation"]["rules"][1]["field"] = "count"
LENIENT = ORDERS | {"validation": {"rules": [{"key": "export", "check": "exists"}], "trigger": "ANY"}}


def world_of(*steps: dict[str, Any], until: str = "+30m") -> World:
    world = World(inline_scenario(start="2026-03-02T07:55:00Z", until=until, pipelines=[ORDERS], steps=list(steps)))
    world.play()
    return world


def readiness(world: World, date: str = DATE) -> pipeline_views.ReadinessView:
    return pipeline_views.readiness_of(world.engine.store, "orders", world.clock.now(), date=date)


def test_readiness_of_a_waiting_run_is_judged_by_the_config_it_was_opened_with() -> None:
    world = world_of({"at": "+1m", "sensor": "orders/export", "data": {"done": True}}, {"at": "+10m", "apply": LENIENT})
    found = readiness(world)
    assert found.run is not None
    assert found.run.status == "PENDING"
    assert (found.ready, found.mode, [one.key for one in found.results]) == (False, "ALL", ["export", "rows"])
    assert found.config_changed


def test_readiness_of_a_period_without_an_active_run_is_judged_by_the_current_config() -> None:
    world = world_of(
        {"at": "+1m", "sensor": "orders/export", "data": {"done": True}},
        {"at": "+10m", "apply": LENIENT},
        until="+2h",
    )
    found = readiness(world)
    assert found.run is not None
    assert found.run.status == "FAILED_FINAL"
    assert (found.ready, found.mode) == (True, "ANY")
    assert not found.config_changed
    assert readiness(world, "2026-03-03").mode == "ANY"


def test_an_open_run_is_not_shown_as_excluded() -> None:
    world = world_of()
    excluded = ORDERS | {"schedule": {"cron": "0 8 * * *", "exclude": {"dates": [DATE]}}}
    config = inline_scenario(start=DATE + "T08:00:00Z", until="+1m", pipelines=[excluded]).pipelines[0]
    catalog.apply_config(world.engine.control, config.config, config.document)
    assert readiness(world).excluded is None
    writing.write_sensor(world.engine.control, "orders", "export", {"done": True})
    assert readiness(world, "2026-03-02T08").excluded is not None

"""Sensors that are overwritten before anybody looks: a trigger for another period opens its run all the same."""

from typing import Any

from interlock.control import records, router, writing
from interlock.model import keys
from interlock.model.keys import RunKey, Table
from interlock.ports.store import Change, Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

READY = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
PIPELINE: dict[str, Any] = {
    "pipeline": {"id": "orders"},
    "schedule": {"trigger": READY},
    "validation": {"rules": [{"key": "rows", "check": "exists"}]},
    "job": {"type": "external"},
}


def world_of(**changes: Any) -> World:
    pipelines = [PIPELINE | changes]
    world = World(inline_scenario(start="2026-03-02T08:00:00Z", until="2026-03-02T08:00:00Z", pipelines=pipelines))
    world.play()
    return world


def write(world: World, **data: Any) -> None:
    """Written, and not yet routed."""
    writing.write_sensor(world.engine.control, "orders", "ready", data)


def opened(world: World, kind: str = keys.RUN) -> list[str]:
    found = world.engine.store.query(Table.CONTROL, keys.pipeline_pk("orders"), kind)
    return [keys.run_of(record.key.pk, record.key.sk, kind).date for record in found]


def test_every_period_that_was_written_gets_its_run() -> None:
    world = world_of()
    for hour in (1, 2, 3):
        write(world, status="ready", date="2026-03-02", hour=hour)
    world.engine.router.pump()
    assert opened(world) == ["2026-03-02T01", "2026-03-02T02", "2026-03-02T03"]


def test_also_when_it_was_written_past_our_own_api() -> None:
    world = world_of()
    where = records.control_key(keys.pipeline_pk("orders"), keys.sensor_sk("ready"))
    for day in ("2026-03-01", "2026-03-02"):
        world.engine.store.commit([Put(where, {"status": "ready", "date": day})])
    world.engine.router.pump()
    assert opened(world) == ["2026-03-01", "2026-03-02"]


def test_a_dry_run_observes_every_period() -> None:
    world = world_of(dryRun=True)
    for day in ("2026-03-01", "2026-03-02"):
        write(world, status="ready", date=day)
    world.engine.router.pump()
    assert opened(world, keys.DRY_RUN) == ["2026-03-01", "2026-03-02"]
    assert opened(world) == []


def test_of_one_period_the_latest_word_counts() -> None:
    world = world_of()
    write(world, status="ready", date="2026-03-02")
    write(world, status="not yet", date="2026-03-02")
    world.engine.router.pump()
    assert opened(world) == []


def test_what_did_not_match_or_has_no_period_of_its_own_opens_nothing_afterwards() -> None:
    world = world_of()
    write(world, status="not yet", date="2026-02-28")
    write(world, status="ready")
    write(world, status="ready", date="2026-03-01")
    world.engine.router.pump()
    assert opened(world) == ["2026-03-01"]


def test_an_old_change_that_is_delivered_again_does_nothing_new() -> None:
    world = world_of()
    for day in ("2026-03-01", "2026-03-02"):
        write(world, status="ready", date=day)
    world.engine.router.pump()
    run = records.get_run(world.engine.store, RunKey("orders", "stream", "2026-03-01"))
    item = {"data": {"status": "ready", "date": "2026-03-01"}}
    again = Change(1, Table.CONTROL, keys.pipeline_pk("orders"), keys.sensor_sk("ready"), 1, item)
    router.handle(world.engine.control, [again])
    assert records.get_run(world.engine.store, RunKey("orders", "stream", "2026-03-01")) == run
    assert opened(world) == ["2026-03-01", "2026-03-02"]

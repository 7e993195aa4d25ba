"""Opening a run again that gave up waiting: by what came in time, whenever it is considered."""

from datetime import timedelta
from typing import Any, Final

import pytest

from interlock.control import catalog, records, reruns, writing
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Run, Source
from interlock.ports.store import Delete
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

KEY: Final = RunKey("orders", "cron", "2026-03-02")
READY: Final = {"key": "ready", "check": "exists"}
ROWS: Final = {"key": "rows", "check": "exists"}


def held(*rules: dict[str, Any], until: str = "2026-03-02T20:00:00Z", **parts: Any) -> World:
    """`orders`, whose run of 2 March gave up at nine."""
    document: dict[str, Any] = {
        "pipeline": {"id": "orders"},
        "schedule": {"cron": "0 8 2 * *"},
        "validation": {"rules": list(rules) or [READY]},
        "job": {"type": "glue", "config": {"jobName": "etl"}},
    }
    scenario = inline_scenario(start="2026-03-02T07:00:00Z", until=until, pipelines=[document | parts])
    world = World(scenario)
    world.play()
    return world


def run_of(world: World) -> Run:
    run = world.run_of(KEY)
    assert run is not None
    return run


def write(world: World, key: str, **data: Any) -> None:
    writing.write_sensor(world.engine.control, "orders", key, data or {"n": 1})


def settle(world: World) -> None:
    world._settle(world.clock.now())


def move(world: World, **delta: float) -> None:
    world.clock.move_to(world.clock.now() + timedelta(**delta))


def test_an_undated_write_that_came_in_time_reopens_however_late_it_is_considered() -> None:
    world = held(until="2026-03-02T23:59:00Z")
    write(world, "ready")
    move(world, hours=2)
    settle(world)
    assert (run_of(world).attempt, run_of(world).source) == (2, Source.REOPEN)


def test_an_undated_write_that_came_too_late_helps_no_other_write() -> None:
    world = held(READY, ROWS)
    move(world, hours=6)
    write(world, "ready")
    settle(world)
    write(world, "rows#2026-03-02")
    settle(world)
    assert run_of(world).attempt == 1


def test_an_undated_write_that_came_in_time_helps_a_dated_one_that_comes_later() -> None:
    world = held(READY, ROWS)
    write(world, "ready")
    settle(world)
    move(world, hours=6)
    write(world, "rows#2026-03-02")
    settle(world)
    assert run_of(world).attempt == 2


def test_a_rule_that_takes_any_period_takes_it_whenever_it_came() -> None:
    world = held(READY | {"period": "any"}, ROWS)
    move(world, hours=6)
    write(world, "ready")
    settle(world)
    write(world, "rows#2026-03-02")
    settle(world)
    assert run_of(world).attempt == 2


def test_a_sensor_that_is_deleted_uncovers_no_undated_one_that_came_too_late() -> None:
    world = held({"key": "ready", "check": "equals", "field": "status", "value": "done"})
    write(world, "ready#2026-03-02", status="partial")
    settle(world)
    move(world, hours=6)
    write(world, "ready", status="done")
    settle(world)
    where = records.control_key(KEY.pk, keys.sensor_sk("ready#2026-03-02"))
    world.engine.store.commit([Delete(where)])
    settle(world)
    assert run_of(world).attempt == 1


def test_a_waiting_attempt_and_a_requested_rerun_take_today_s() -> None:
    world = held()
    move(world, hours=6)
    reruns.request(world.engine.control, KEY)
    settle(world)
    write(world, "ready")
    settle(world)
    assert run_of(world).passed_at == world.clock.now()


# ------------------------------------------------------------------------------------ what a rerun of the past reads


@pytest.mark.parametrize(
    ("later", "expected"), [({"hours": 1}, None), ({"hours": 6}, ["ready"])], ids=["the same day", "the day after"]
)
def test_a_rerun_of_a_past_date_says_what_it_reads_as_of_now(
    later: dict[str, float], expected: list[str] | None
) -> None:
    world = held(READY, ROWS)
    write(world, "rows#2026-03-02")
    move(world, **later)
    write(world, "ready")
    world._pump()
    before = reruns.undated_sensors(world.engine.control, KEY)
    reruns.request(world.engine.control, KEY, force=True)
    world._pump()
    accepted = [event for event in world.events if event.type is EventType.RERUN_ACCEPTED]
    assert [event.detail.get("undatedSensors") for event in accepted] == ([expected] if accepted else [])
    assert before == (expected or [])
    assert bool(accepted) is (expected is not None), "on the same day the write re-opened it"


def test_a_date_that_never_ran_says_so_too() -> None:
    world = held()
    catalog.apply_config(world.engine.control, *_monthly(world))
    write(world, "ready")
    world._pump()
    never = RunKey("orders", "cron", "2026-02-02")
    assert reruns.undated_sensors(world.engine.control, never) == ["ready"]
    reruns.request(world.engine.control, never)
    world._pump()
    reported = [event.detail.get("undatedSensors") for event in world.events if event.type is EventType.RERUN_ACCEPTED]
    assert reported == [["ready"]]


def _monthly(world: World) -> tuple[Any, dict[str, Any]]:
    pipeline = world.scenario.pipelines[0]
    return pipeline.config, pipeline.document

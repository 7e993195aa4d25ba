"""The list of pipelines: latest run, SLA and next run of every schedule, read for a whole page at once."""

from typing import Any

from interlock.control import records
from interlock.control.views import pipeline_list
from interlock.control.views.pipeline_list import PipelineSummary
from interlock.ports.store import Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

RULE = {"key": "export", "check": "exists"}
TWICE: dict[str, Any] = {
    "pipeline": {"id": "twice", "owner": "ana"},
    "schedules": [{"id": "morning", "cron": "0 8 * * *"}, {"id": "evening", "cron": "0 20 * * *"}],
    "sla": {"deadline": "23:00", "expectedDuration": "30m"},
    "validation": {"rules": [RULE]},
    "job": {"type": "external"},
}
ONCE: dict[str, Any] = {
    "pipeline": {"id": "once"},
    "schedule": {"cron": "0 9 * * *"},
    "validation": {"rules": [RULE]},
    "job": {"type": "external"},
}


def world_of(*steps: dict[str, Any], until: str = "2026-03-02T21:00:00Z") -> World:
    world = World(
        inline_scenario(start="2026-03-02T07:55:00Z", until=until, pipelines=[TWICE, ONCE], steps=list(steps))
    )
    world.play()
    return world


def listed(world: World, **asked: Any) -> dict[str, PipelineSummary]:
    page = pipeline_list.pipelines(world.engine.store, world.clock.now(), **asked)
    return {one.id: one for one in page.items}


def test_each_schedule_has_its_latest_run_its_sla_and_what_comes_next() -> None:
    found = listed(world_of({"at": "+20m", "sensor": "twice/export", "data": {"done": True}}))["twice"]
    morning, evening = found.by_schedule
    assert (morning.schedule, evening.schedule) == ("morning", "evening")
    assert morning.latest is not None
    assert evening.latest is not None
    assert (morning.latest.date, morning.latest.status) == ("2026-03-02", "COMPLETED")
    assert morning.sla is not None
    assert morning.sla.deadline == "23:00"
    assert morning.next_run is not None
    assert evening.next_run is not None
    assert morning.next_run.start_at is not None
    assert evening.next_run.start_at is not None
    assert morning.next_run.start_at.isoformat() == "2026-03-03T08:00:00+00:00"
    assert evening.next_run.start_at.isoformat() == "2026-03-03T20:00:00+00:00"
    assert found.latest == morning.latest, "of one date the schedule that is last by name"
    assert found.latest_sla == morning.sla
    assert found.active_runs == 0


def test_before_its_first_run_a_pipeline_has_only_a_next_one() -> None:
    found = listed(world_of(until="2026-03-02T08:30:00Z"))["once"]
    assert found.latest is None
    assert found.active_runs == 0
    (only,) = found.by_schedule
    assert (only.latest, only.sla) == (None, None)
    assert only.next_run is not None
    assert only.next_run.date == "2026-03-02"


def test_the_run_of_a_schedule_that_is_gone_is_the_latest_until_there_is_another() -> None:
    renamed = ONCE | {"schedule": None, "schedules": [{"id": "new", "cron": "0 22 * * *"}]}
    del renamed["schedule"]
    world = world_of({"at": "+2h", "apply": renamed})
    found = listed(world)["once"]
    assert found.schedules == ["new"]
    assert found.latest is not None
    assert found.latest.schedule == "cron"
    assert found.by_schedule[0].latest is None


def test_an_invalid_pipeline_is_listed_with_its_errors_and_its_last_run() -> None:
    world = world_of()
    key = records.control_key("PIPELINE#once", "CONFIG")
    item = world.engine.store.get(key)
    assert item is not None
    world.engine.store.commit([Put(key, {**item, "document": {"pipeline": {"id": "once"}}, "version": "x"})])
    found = listed(world)["once"]
    assert not found.valid
    assert found.errors
    assert found.by_schedule == []
    assert found.latest is not None


def test_pages_follow_each_other() -> None:
    world = world_of()
    first = pipeline_list.pipelines(world.engine.store, world.clock.now(), limit=1)
    assert ([one.id for one in first.items], first.next) == (["once"], "once")
    second = pipeline_list.pipelines(world.engine.store, world.clock.now(), after=first.next, limit=1)
    assert ([one.id for one in second.items], second.next) == (["twice"], None)

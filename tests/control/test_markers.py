"""Cascade markers: every pipeline that runs after another hears of its completion, however many there are."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import catalog, markers, records, reruns, router, upstreams
from interlock.embedded.sqlite.database import AFTER_COMMIT, BEFORE_COMMIT
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import FinalReason, Marker, Run, RunStatus, Source
from interlock.ports.clock import Clock
from interlock.ports.store import Change, Delete, Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import SimulatedCrash, World

MANY: Final = 250
SILVER: Final[dict[str, Any]] = {
    "pipeline": {"id": "silver"},
    "schedule": {"cron": "0 8 * * *"},
    "validation": {"rules": [{"key": "export", "check": "exists"}]},
    "job": {"type": "glue", "config": {"jobName": "etl"}, "maxManualReruns": 3},
}
SILVER_RUN: Final = RunKey("silver", "cron", "2026-03-02")
COMPLETES: Final = datetime(2026, 3, 2, 8, 1, tzinfo=UTC)


def gold(name: str = "gold", **parts: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "pipeline": {"id": name},
        "after": [{"pipeline": "silver"}],
        "validation": {"rules": [{"key": "upstream:silver", "check": "exists"}]},
        "job": {"type": "glue", "config": {"jobName": "etl"}},
    }
    return document | parts


def played(
    *pipelines: dict[str, Any], until: str = "2026-03-02T08:30:00Z", fault: "CrashesFrom | None" = None
) -> World:
    """Silver completes at 08:01."""
    scenario = inline_scenario(
        start="2026-03-02T07:55:00Z",
        until=until,
        pipelines=[SILVER, *pipelines],
        steps=[{"at": "+1m", "sensor": "silver/export", "data": {"rows": 1}}],
    )
    world = World(scenario, fault=fault)
    if fault is not None:
        fault.clock = world.clock
    world.play()
    return world


def names(count: int) -> list[str]:
    return [f"gold-{number:03d}" for number in range(count)]


def marker_of(world: World, pipeline: str, schedule: str = "stream") -> Marker | None:
    sk = keys.marker_sk(schedule, "2026-03-02", "silver")
    return records.get(world.engine.store, records.control_key(keys.pipeline_pk(pipeline), sk), Marker)


def statuses(world: World, pipelines: list[str]) -> set[tuple[RunStatus, int] | None]:
    runs = [world.run_of(RunKey(name, "stream", "2026-03-02")) for name in pipelines]
    return {None if run is None else (run.status, run.attempt) for run in runs}


class CrashesFrom:
    """From the completion of silver on commits are crashes, before them or just after: each one once while the markers
    are written, then every 25th."""

    _EACH: Final = 20

    def __init__(self, point: str) -> None:
        self.clock: Clock | None = None
        self._point = point
        self._commits = 0

    def __call__(self, point: str) -> None:
        if point == self._point and self.clock is not None and self.clock.now() >= COMPLETES:
            self._commits += 1
            if self._commits % (2 if self._commits <= self._EACH else 25) == 0:
                raise SimulatedCrash


def test_two_hundred_and_fifty_downstreams_all_get_their_marker_and_run() -> None:
    world = played(*(gold(name) for name in names(MANY)))
    assert statuses(world, names(MANY)) == {(RunStatus.COMPLETED, 1)}
    assert world.dead_letters() == 0


@pytest.mark.parametrize("point", [BEFORE_COMMIT, AFTER_COMMIT])
def test_a_crash_between_any_two_batches_leaves_nobody_out(point: str) -> None:
    world = played(*(gold(name) for name in names(MANY)), fault=CrashesFrom(point))
    assert world.crashes > 50
    assert statuses(world, names(MANY)) == {(RunStatus.COMPLETED, 1)}
    assert world.dead_letters() == 0


def settle(world: World) -> None:
    world._settle(world.clock.now())


def completion_of(world: World) -> Change:
    """The change of silver's run as it is now."""
    where = records.run_record(SILVER_RUN, keys.RUN)
    return Change(1, where.table, where.pk, where.sk, 1, world.engine.store.get(where))


def without_markers(world: World, pipelines: list[str]) -> None:
    for name in pipelines:
        sk = keys.marker_sk("stream", "2026-03-02", "silver")
        world.engine.store.commit([Delete(records.control_key(keys.pipeline_pk(name), sk))])


def test_what_is_left_is_told_although_the_upstream_has_been_opened_again_meanwhile() -> None:
    world = played(*(gold(name) for name in names(70)))
    change, lost = completion_of(world), names(70)[markers.IN_COMMIT :]
    without_markers(world, lost)
    reruns.request(world.engine.control, SILVER_RUN, force=True)
    settle(world)
    assert world.run_of(SILVER_RUN).attempt == 2  # type: ignore[union-attr]  # it was played

    router.handle(world.engine.control, [change])

    assert {one.attempt for name in lost if (one := marker_of(world, name)) is not None} == {1}
    assert all(marker_of(world, name) is not None for name in lost)


def test_a_completion_that_is_delivered_again_does_not_replace_a_later_marker() -> None:
    world = played(*(gold(name) for name in names(70)))
    change = completion_of(world)
    reruns.request(world.engine.control, SILVER_RUN, force=True)
    settle(world)
    world.clock.move_to(world.clock.now() + timedelta(minutes=2))
    settle(world)
    before = [marker_of(world, name) for name in names(70)]
    assert {one.attempt for one in before if one is not None} == {2}
    head = world.database.head()

    router.handle(world.engine.control, [change])

    assert [marker_of(world, name) for name in names(70)] == before
    assert world.database.head() == head


def test_a_completion_whose_markers_all_fit_costs_its_change_nothing() -> None:
    world = played(*(gold(name) for name in names(3)))
    run = world.run_of(SILVER_RUN)
    assert run is not None
    assert not run.markers_left
    without_markers(world, names(3))
    router.handle(world.engine.control, [completion_of(world)])
    assert marker_of(world, "gold-000") is None


def test_an_attempt_waits_by_the_config_it_was_opened_with_and_is_told_by_it() -> None:
    """The config that is in force now runs after nobody; the attempt of the day still waits for silver."""
    waiting = gold(schedule={"cron": "50 7 * * *", "evaluation": {"window": "2h"}})
    scenario = inline_scenario(
        start="2026-03-02T07:45:00Z",
        until="2026-03-02T08:30:00Z",
        pipelines=[SILVER, waiting],
        steps=[
            {"at": "+10m", "apply": gold(schedule={"cron": "50 7 * * *"}, after=[], validation=SILVER["validation"])},
            {"at": "+11m", "sensor": "silver/export", "data": {"rows": 1}},
        ],
    )
    world = World(scenario)
    world.play()
    run = world.run_of(RunKey("gold", "cron", "2026-03-02"))
    assert run is not None
    assert run.status is RunStatus.COMPLETED
    passed = next(event for event in world.events if event.type is EventType.VALIDATION_PASSED and event.date)
    assert passed.timestamp.hour == 8


# ------------------------------------------------------------------------------------------- what a marker leads to


def held(after_window: str = "reopen") -> World:
    """Gold gave up waiting for silver at 08:05; silver's export has not come."""
    schedule = {"cron": "0 8 * * *", "evaluation": {"window": "5m", "afterWindow": after_window}}
    scenario = inline_scenario(
        start="2026-03-02T07:55:00Z", until="2026-03-02T08:30:00Z", pipelines=[SILVER, gold(schedule=schedule)]
    )
    world = World(scenario)
    world.play()
    assert gold_run(world).final_reason is FinalReason.VALIDATION_EXHAUSTED
    return world


def gold_run(world: World) -> Run:
    run = world.run_of(RunKey("gold", "cron", "2026-03-02"))
    assert run is not None
    return run


def arrive(world: World, *, attempt: int = 1, again: bool = False) -> None:
    marker = Marker(upstream="silver", date="2026-03-02", completed_at=world.clock.now(), attempt=attempt, again=again)
    where = records.control_key(keys.pipeline_pk("gold"), keys.marker_sk("cron", "2026-03-02", "silver"))
    world.engine.store.commit([Put(where, records.plain(marker))])
    upstreams.marker_arrived(world.engine.control, where)
    settle(world)


@pytest.mark.parametrize("again", [False, True], ids=["completed", "completed again"])
def test_a_run_that_gave_up_is_opened_again_without_a_request(again: bool) -> None:
    world = held()
    arrive(world, attempt=2, again=again)
    assert (gold_run(world).attempt, gold_run(world).source) == (2, Source.REOPEN)
    assert not world.engine.store.query(Table.CONTROL, keys.pipeline_pk("gold"), keys.RERUN_REQUEST)


@pytest.mark.parametrize("again", [False, True], ids=["completed", "completed again"])
def test_a_run_that_was_told_to_stop_stays_held(again: bool) -> None:
    world = held("stop")
    arrive(world, attempt=2, again=again)
    assert gold_run(world).attempt == 1
    assert not world.engine.store.query(Table.CONTROL, keys.pipeline_pk("gold"), keys.RERUN_REQUEST)


def test_a_day_after_it_gave_up_a_run_stays_held() -> None:
    world = held()
    world.clock.move_to(world.clock.now() + timedelta(hours=24))
    arrive(world)
    assert gold_run(world).attempt == 1


def test_a_dry_run_is_asked_for_by_nobody() -> None:
    world = played(gold(), until="2026-03-02T09:00:00Z")
    dry = gold(schedule={"trigger": {"key": "go", "check": "exists"}}, dryRun=True)
    applied = inline_scenario(start="2026-03-02T08:00:00Z", until="+1h", pipelines=[dry, SILVER]).pipelines[0]
    catalog.apply_config(world.engine.control, applied.config, applied.document)
    reruns.request(world.engine.control, SILVER_RUN, force=True)
    settle(world)
    world.clock.move_to(world.clock.now() + timedelta(minutes=2))
    settle(world)
    assert [event.type for event in world.events if event.pipeline_id == "gold"][-1] is EventType.JOB_COMPLETED

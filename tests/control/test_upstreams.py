"""Cascade: what a marker sets in motion, and what it does not."""

from datetime import datetime
from typing import Any, Final

import pytest

from interlock.control import catalog, records, upstreams
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import Marker, RunStatus, Source
from interlock.ports.store import Delete, Key, Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged

NOON: Final = "2026-03-05T12:00:00Z"
UPSTREAM: Final = {"rules": [{"key": "upstream:a", "check": "exists"}]}


def downstream(*upstreams_: str, until: str = NOON, **parts: Any) -> FaultyWorld:
    after = [{"pipeline": name} for name in upstreams_ or ("a",)]
    return staged(pipeline(schedule={}, validation=UPSTREAM, after=after, **parts), until=until, steps=[])


def place(upstream: str = "a", date: str = KEY.date) -> Key:
    return records.control_key(KEY.pk, keys.marker_sk("stream", date, upstream, "stream"))


def mark(
    world: FaultyWorld, upstream: str = "a", date: str = KEY.date, *, attempt: int = 1, again: bool = False
) -> None:
    at = world.clock.now()
    marker = Marker(
        upstream=upstream, date=date, completed_at=at, attempt=attempt, upstream_schedule="stream", again=again
    )
    control_of(world).store.commit([Put(place(upstream, date), records.plain(marker))])
    settle(world)


def requests(world: FaultyWorld) -> int:
    return len(control_of(world).store.query(Table.CONTROL, KEY.pk, keys.RERUN_REQUEST))


def test_a_run_is_opened_when_all_its_upstreams_have_completed() -> None:
    world = downstream("a", "b")
    mark(world, "a")
    assert world.run_of(KEY) is None
    mark(world, "b")
    assert run_of(world).opened_by == "cascade: a, b completed 2026-03-05"


def test_a_marker_of_another_period_or_of_another_pipeline_opens_nothing() -> None:
    world = downstream()
    mark(world, "a", "2026-03-05T07")
    mark(world, "stranger")
    assert world.run_of(KEY) is None
    assert world.run_of(RunKey("orders", "stream", "2026-03-05T07")) is not None, "its own hour"


def test_a_marker_that_has_vanished_does_nothing() -> None:
    world = downstream()
    upstreams.marker_arrived(control_of(world), place())
    assert world.run_of(KEY) is None


@pytest.mark.parametrize("how", ["deleted", "dry run"])
def test_a_marker_of_a_pipeline_that_is_gone_or_became_a_dry_run_opens_nothing(how: str) -> None:
    world = downstream()
    if how == "deleted":
        catalog.delete_config(control_of(world), "orders")
    else:
        dry = pipeline(after=[{"pipeline": "a"}], dryRun=True)
        where = records.control_key(KEY.pk, keys.CONFIG)
        control_of(world).store.commit([Put(where, {"document": dry, "version": "dry"})])
    mark(world)
    assert world.run_of(KEY) is None


def test_an_upstream_that_completes_again_is_a_rerun_once_however_often_it_is_delivered() -> None:
    world = downstream()
    mark(world)
    later(world, minutes=20)
    assert run_of(world).status is RunStatus.COMPLETED
    mark(world, attempt=2, again=True)
    for _ in range(3):
        upstreams.marker_arrived(control_of(world), place())
    settle(world)
    assert requests(world) == 1
    assert count_events(world, EventType.RERUN_ACCEPTED) == 1
    assert (run_of(world).attempt, run_of(world).source) == (2, Source.UPSTREAM)


def test_a_first_completion_that_comes_after_is_no_completion_again() -> None:
    world = downstream()
    mark(world)
    later(world, minutes=20)
    mark(world, attempt=2, again=False)
    assert requests(world) == 0
    assert run_of(world).attempt == 1


def test_an_upstream_that_completes_again_while_the_job_runs_is_left_to_the_completion() -> None:
    world = downstream()
    mark(world)
    later(world, minutes=2)
    assert run_of(world).status is RunStatus.RUNNING
    mark(world, attempt=2, again=True)
    assert requests(world) == 0
    later(world, minutes=20)
    assert requests(world) == 1
    later(world, minutes=20)
    assert (run_of(world).attempt, run_of(world).status) == (2, RunStatus.COMPLETED)


def test_a_run_that_gave_up_waiting_is_opened_again_by_the_marker_it_waited_for() -> None:
    both = {"rules": [{"key": "upstream:a", "check": "exists"}]}
    schedule = {"cron": "0 8 * * *", "evaluation": {"window": "1h", "interval": "5m"}}
    world = staged(pipeline(schedule=schedule, validation=both, after=[{"pipeline": "a"}]), until=NOON, steps=[])
    key = RunKey("orders", "cron", KEY.date)
    assert run_of(world, key).status is RunStatus.FAILED_FINAL
    at = datetime.fromisoformat("2026-03-05T12:00:00+00:00")
    marker = Marker(upstream="a", date=KEY.date, completed_at=at, attempt=1, upstream_schedule="stream")
    where = records.control_key(KEY.pk, keys.marker_sk("cron", KEY.date, "a", "stream"))
    control_of(world).store.commit([Put(where, records.plain(marker))])
    settle(world)
    assert (run_of(world, key).attempt, run_of(world, key).source) == (2, Source.REOPEN)


def test_a_completed_run_whose_markers_have_vanished_asks_for_nothing() -> None:
    world = downstream()
    mark(world)
    later(world, minutes=20)
    control_of(world).store.commit([Delete(place())])
    config = catalog.current(control_of(world).store, "orders")
    assert config is not None
    upstreams.completed(control_of(world), config, run_of(world))
    assert requests(world) == 0


def waiting_for(*rules: str) -> FaultyWorld:
    """`orders`, opened by its own sensor at ten past, that waits for what these rules read."""
    validation = {"rules": [{"key": key, "check": "exists"} for key in rules]}
    return staged(pipeline(validation=validation, after=[{"pipeline": "a"}]), until="2026-03-05T00:12:30Z")


def test_a_run_that_waits_for_an_upstream_goes_on_as_soon_as_its_marker_comes() -> None:
    world = waiting_for("upstream:a")
    assert run_of(world).status is RunStatus.PENDING
    mark(world, "a")
    assert run_of(world).status is RunStatus.RUNNING
    assert run_of(world).passed_at == world.clock.now(), "at once, not at its next look"


@pytest.mark.parametrize(("rule", "date"), [("upstream:a", "2026-03-04"), ("rows", KEY.date)])
def test_a_marker_that_a_waiting_run_does_not_read_wakes_nobody(rule: str, date: str) -> None:
    world = waiting_for(rule)
    before = control_of(world).store.get(records.run_record(KEY, keys.ACTIVE))
    mark(world, "a", date)
    assert control_of(world).store.get(records.run_record(KEY, keys.ACTIVE)) == before

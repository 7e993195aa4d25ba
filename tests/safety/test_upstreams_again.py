"""Upstreams that complete again around the completion of their downstream: noticed, and asked about once.

`orders` is a daily run after the 24 hours of `up`. Its completion first reads the markers, then commits; the
stream-router may come to a marker before, between or after. Whoever notices, the request has the same name.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from interlock.control import records, writing
from interlock.control.attempts import completion
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import Table
from interlock.model.periods import day_period
from interlock.model.run import JobEvent, Marker, RunStatus, Source
from interlock.ports.store import Put
from tests.safety.faults import FaultyWorld
from tests.safety.interleaving import interrupted, touches
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged, write

ALL_HOURS = [{"pipeline": "up", "require": "all-hours"}]
HOURS = [str(hour) for hour in day_period(KEY.period.day).hours()]


def complete(
    world: FaultyWorld, date: str, *, attempt: int = 1, upstream: str = "up", at: datetime | None = None
) -> None:
    """An upstream completes a period; nobody is told yet."""
    control = control_of(world)
    completed_at = at or control.now()
    marker = Marker(upstream=upstream, date=date, completed_at=completed_at, attempt=attempt, again=attempt > 1)
    where = records.control_key(KEY.pk, keys.marker_sk("stream", date, upstream))
    control.store.commit([Put(where, records.plain(marker))])


def running(after: list[dict[str, Any]], *, reruns: int = 1) -> FaultyWorld:
    """`orders` after its upstreams, its job under way since ten past, its success reported at a quarter past."""
    job = {"type": "glue", "config": {"jobName": "orders"}, "pollInterval": "1m", "maxDriftReruns": reruns}
    world = staged(pipeline(after=after, job=job), until="2026-03-05T00:05:00Z", steps=[])
    for entry in after:
        for date in HOURS if entry.get("require") == "all-hours" else [KEY.date]:
            complete(world, date, upstream=entry["pipeline"])
    settle(world)
    later(world, minutes=5)
    write(world, "ready", status="ready", rows=1)
    settle(world)
    later(world, minutes=5)
    assert run_of(world).status is RunStatus.RUNNING
    writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)
    return world


def requests(world: FaultyWorld) -> list[str]:
    """The ids of the rerun requests of the run."""
    found = control_of(world).store.query(Table.CONTROL, KEY.pk, KEY.sk(keys.RERUN_REQUEST))
    return [record.item["id"] for record in found]


def assert_asked_once(world: FaultyWorld, name: str) -> None:
    """One request of that name, accepted; and no more of it when everything is delivered again."""
    for _ in range(2):
        settle(world)
        assert requests(world) == [name]
        assert (run_of(world).attempt, run_of(world).source) == (2, Source.UPSTREAM)
        assert count_events(world, EventType.RERUN_ACCEPTED) == 1
        assert count_events(world, EventType.RERUN_REJECTED) == 0
        world._redeliver(1000)


def test_an_hour_that_completes_again_between_the_reading_and_the_commit_of_a_completion_is_noticed() -> None:
    world = running(ALL_HOURS)

    def meanwhile() -> None:
        complete(world, HOURS[7], attempt=2)
        world._pump()

    completion.settle(interrupted(control_of(world), meanwhile, touches(keys.RUN)), KEY, 1)
    assert_asked_once(world, f"upstream-up-{HOURS[7]}-2")


def test_an_hour_that_completes_again_while_the_job_runs_is_asked_about_by_its_own_name() -> None:
    world = running(ALL_HOURS)
    complete(world, HOURS[7], attempt=2)
    world._pump()
    assert requests(world) == []
    completion.settle(control_of(world), KEY, 1)
    assert_asked_once(world, f"upstream-up-{HOURS[7]}-2")


def test_a_marker_that_is_routed_only_after_the_completion_that_read_it_asks_no_second_time() -> None:
    world = running(ALL_HOURS)
    complete(world, HOURS[7], attempt=2)
    completion.settle(control_of(world), KEY, 1)
    assert_asked_once(world, f"upstream-up-{HOURS[7]}-2")


def test_an_hour_that_follows_one_the_completion_has_asked_about_asks_no_second_time() -> None:
    world = running(ALL_HOURS)
    complete(world, HOURS[7], attempt=2)
    world._pump()

    def meanwhile() -> None:
        complete(world, HOURS[9], attempt=2)
        world._pump()

    completion.settle(interrupted(control_of(world), meanwhile, touches(keys.RUN)), KEY, 1)
    assert_asked_once(world, f"upstream-up-{HOURS[7]}-2")


def test_a_completion_that_was_decided_before_the_run_passed_and_stored_after_it_is_noticed() -> None:
    world = running(ALL_HOURS)
    passed_at = run_of(world).passed_at
    assert passed_at is not None
    complete(world, HOURS[7], attempt=2, at=passed_at - timedelta(milliseconds=3))
    world._pump()
    completion.settle(control_of(world), KEY, 1)
    assert_asked_once(world, f"upstream-up-{HOURS[7]}-2")


def test_an_hour_that_completes_again_after_the_completion_is_asked_about() -> None:
    world = running(ALL_HOURS)
    completion.settle(control_of(world), KEY, 1)
    settle(world)
    complete(world, HOURS[7], attempt=2)
    assert_asked_once(world, f"upstream-up-{HOURS[7]}-2")


@pytest.mark.parametrize("routed", [True, False], ids=["routed before", "routed after"])
def test_a_whole_day_that_completes_again_while_the_job_runs_is_one_request(routed: bool) -> None:
    world = running(ALL_HOURS)
    for hour in HOURS:
        complete(world, hour, attempt=2)
    if routed:
        world._pump()
    completion.settle(control_of(world), KEY, 1)
    assert_asked_once(world, f"upstream-up-{HOURS[-1]}-2")


def test_two_upstreams_that_complete_again_while_the_job_runs_are_one_request() -> None:
    world = running([{"pipeline": "left"}, {"pipeline": "right"}])
    for upstream in ("left", "right"):
        complete(world, KEY.date, attempt=2, upstream=upstream)
    world._pump()
    completion.settle(control_of(world), KEY, 1)
    assert_asked_once(world, f"upstream-right-{KEY.date}-2")


def test_a_refusal_is_told_once_and_the_next_completion_is_asked_about_again() -> None:
    world = running(ALL_HOURS, reruns=0)
    for hour in HOURS[:3]:
        complete(world, hour, attempt=2)
    completion.settle(control_of(world), KEY, 1)
    settle(world)
    assert count_events(world, EventType.RERUN_REJECTED) == 1
    world._redeliver(1000)
    settle(world)
    assert count_events(world, EventType.RERUN_REJECTED) == 1
    later(world, minutes=1)
    complete(world, HOURS[0], attempt=3)
    settle(world)
    assert count_events(world, EventType.RERUN_REJECTED) == 2


def test_nothing_is_asked_of_hours_that_the_run_has_read() -> None:
    world = running(ALL_HOURS)
    completion.settle(control_of(world), KEY, 1)
    settle(world)
    world._redeliver(1000)
    settle(world)
    assert requests(world) == []

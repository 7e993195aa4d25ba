"""Pools under random loads and crashes: never above their size, nobody starves, and the order is that of SPEC 2."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.decide.pools import PATIENCE, Waiter, in_turn
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
DATE = "2026-03-02"

# All of them one after the other, retries included, end within the time that an execution may take.
JOBS = st.lists(
    st.tuples(
        st.integers(0, 40),  # the minute in which it is ready
        st.integers(1, 20),  # how many minutes its job takes
        st.sampled_from([None, "09:00", "10:30", "14:00"]),
        st.sampled_from(["success", "fail"]),
    ),
    min_size=1,
    max_size=5,
)


def _pipeline(name: str, deadline: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "pipeline": {"id": name},
        "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "1h", "interval": "20m"}},
        "validation": {"rules": [{"key": "up", "check": "exists"}]},
        "job": {
            "type": "glue",
            "config": {"jobName": name},
            "pool": "p",
            "maxRetries": 1,
            "jobPollWindowSeconds": 7200,
        },
    }
    return document | ({"sla": {"deadline": deadline, "expectedDuration": "5m"}} if deadline else {})


@settings(max_examples=60, deadline=None)
@given(jobs=JOBS, size=st.integers(1, 3), crashes=st.lists(st.integers(0, 200), max_size=3))
def test_a_pool_is_never_above_its_size_and_everybody_has_a_turn(
    jobs: list[tuple[int, int, str | None, str]], size: int, crashes: list[int]
) -> None:
    names = [f"n{number}" for number in range(len(jobs))]
    steps: list[dict[str, Any]] = [
        {"at": f"+{10 + ready}m", "sensor": f"{name}/up", "data": {}}
        for name, (ready, *_) in zip(names, jobs, strict=True)
    ]
    steps += [{"at": f"+{minute}m", "crash": True} for minute in crashes]
    scripts = {
        name: [
            {"after": f"{took}m", "result": result, "category": "TRANSIENT"},
            {"after": f"{took}m", "result": "success"},
        ]
        for name, (_, took, _, result) in zip(names, jobs, strict=True)
    }
    world = World(
        inline_scenario(
            start="2026-03-02T07:55:00Z",
            until="2026-03-03T07:00:00Z",
            pools={"p": size},
            pipelines=[_pipeline(name, deadline) for name, (_, _, deadline, _) in zip(names, jobs, strict=True)],
            jobs=scripts,
            steps=sorted(steps, key=lambda one: int(str(one["at"])[1:-1])),
        )
    )
    world.play()
    running: set[str] = set()
    ends = (EventType.JOB_COMPLETED, EventType.JOB_FAILED)
    for event in world.events:
        if event.type is EventType.JOB_TRIGGERED:
            running.add(event.pipeline_id)
            assert len(running) <= size, event
        elif event.type in ends:
            running.discard(event.pipeline_id)
    for name in names:
        run = world.run_of(RunKey(name, "cron", DATE))
        assert run is not None
        assert run.first_completed_at is not None, (name, run.status, run.message)


WAITERS = st.builds(
    Waiter,
    st.builds(RunKey, st.sampled_from("abcdef"), st.just("cron"), st.just(DATE)),
    st.integers(0, 180).map(lambda minutes: START + timedelta(minutes=minutes)),
    st.none() | st.integers(0, 600).map(lambda minutes: START + timedelta(minutes=minutes)),
)


@given(st.lists(WAITERS, max_size=8, unique_by=lambda one: one.key), st.integers(0, 300))
def test_who_has_waited_an_hour_goes_first_and_the_others_by_their_deadline(waiters: list[Waiter], minute: int) -> None:
    now = START + timedelta(minutes=minute)
    line = in_turn(waiters, now)
    aged = [one for one in line if now - one.since >= PATIENCE]
    rest = line[len(aged) :]
    assert line[: len(aged)] == aged
    assert [one.since for one in aged] == sorted(one.since for one in aged)
    assert [one.urgency for one in rest] == sorted(one.urgency for one in rest)

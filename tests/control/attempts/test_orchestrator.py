"""The lifecycle's tasks: each acts for the attempt it is called for, and says the same when it is repeated."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import records
from interlock.control.attempts import orchestrator
from interlock.model import keys
from interlock.model.errors import InterlockError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RunStatus
from interlock.ports.jobs import JobState
from interlock.ports.store import Delete
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, pipeline, run_of, staged, write

NOW: Final = datetime(2026, 3, 5, tzinfo=UTC)


def waiting() -> FaultyWorld:
    return staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="2026-03-05T00:15:00Z")


def call(world: FaultyWorld, mode: str, attempt: int = 1, **more: Any) -> dict[str, Any]:
    task = {"mode": mode, "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": attempt}
    return orchestrator.handle(control_of(world), task | more)


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        (timedelta(seconds=90), 90),
        (timedelta(milliseconds=1001), 2),
        (timedelta(milliseconds=1), 1),
        (timedelta(0), 1),
        (timedelta(seconds=-30), 1),
    ],
)
def test_a_wait_is_whole_seconds_rounded_up_and_never_none(left: timedelta, seconds: int) -> None:
    assert orchestrator.seconds_until(NOW, NOW + left, NOW + timedelta(days=1)) == seconds


def test_a_mode_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    with pytest.raises(InterlockError, match="the orchestrator has no mode 'dance': it has evaluate"):
        call(waiting(), "dance")


def test_the_rules_are_passed_once_and_the_answer_is_the_same_when_it_is_asked_for_again() -> None:
    world = waiting()
    write(world, "rows", n=1)
    assert call(world, "evaluate")["status"] == "passed"
    passed = run_of(world)
    assert passed.passed_at == world.clock.now()
    assert call(world, "evaluate") == {"status": "passed"}
    assert run_of(world) == passed
    assert count_events(world, EventType.VALIDATION_PASSED) == 1


def test_rules_that_do_not_pass_are_looked_at_again() -> None:
    world = waiting()
    answer = call(world, "evaluate")
    assert answer["status"] not in ("passed", "superseded")
    assert run_of(world).passed_at is None


@pytest.mark.parametrize("attempt", [0, 2])
def test_another_attempt_is_superseded_and_changes_nothing(attempt: int) -> None:
    world = waiting()
    write(world, "rows", n=1)
    before = run_of(world)
    assert call(world, "evaluate", attempt)["status"] == "superseded"
    assert run_of(world) == before


def test_a_run_that_has_vanished_is_superseded() -> None:
    world = waiting()
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.RUN))])
    assert call(world, "evaluate")["status"] == "superseded"
    assert world.run_of(KEY) is None


def test_a_run_that_is_over_is_not_evaluated() -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    assert run_of(world).status is RunStatus.COMPLETED
    assert call(world, "evaluate")["status"] == "superseded"


@pytest.mark.parametrize(("setting", "state"), [("leave", JobState.RUNNING), ("stop", JobState.FAILED)])
def test_a_job_whose_poll_window_has_closed_is_left_or_stopped(setting: str, state: JobState) -> None:
    """`job.onPollExhausted`: the run is over either way; only `stop` asks the target to end the job."""
    job = {"type": "glue", "config": {"jobName": "etl"}, "jobPollWindowSeconds": 600, "onPollExhausted": setting}
    world = World(
        inline_scenario(
            start="2026-03-02T07:55:00Z",
            until="2026-03-02T09:00:00Z",
            pipelines=[
                {
                    "pipeline": {"id": "gold"},
                    "schedule": {"cron": "0 8 * * *"},
                    "validation": {"rules": [{"key": "up", "check": "exists"}]},
                    "job": job,
                }
            ],
            jobs={"gold": [{"result": "hang"}]},
            steps=[{"at": "+6m", "sensor": "gold/up", "data": {}}],
        )
    )
    world.play()
    run = world.run_of(RunKey("gold", "cron", "2026-03-02"))
    assert run is not None
    assert run.final_reason is FinalReason.POLL_EXHAUSTED
    assert world.targets.check(run.run_id).state is state

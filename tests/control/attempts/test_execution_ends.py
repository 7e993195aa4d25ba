"""Somebody says that an execution has ended: its attempt goes on, or ends, at once and once."""

from datetime import timedelta

import pytest

from interlock.control import records, writing
from interlock.control.attempts import execution_ends, parts
from interlock.decide import early_ends
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.run import FinalReason, JobEvent, RunStatus
from interlock.ports.store import Update
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, pipeline, run_of, settle, staged


def waiting() -> FaultyWorld:
    return staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="2026-03-05T00:15:00Z")


def end(world: FaultyWorld, execution: str, *, failed: bool = False, attempt: int = 1) -> bool:
    return execution_ends.ended(control_of(world), KEY, attempt, execution, why="ABORTED", failed=failed)


def test_an_attempt_whose_execution_was_stopped_goes_on_in_a_new_part() -> None:
    world = waiting()
    execution = parts.execution_of(run_of(world))
    assert end(world, execution)
    assert run_of(world).part == 2
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1
    assert not end(world, execution), "told twice, it is another execution's attempt by now"
    assert (run_of(world).part, count_events(world, EventType.TRIGGER_RECOVERED)) == (2, 1)


def test_one_that_failed_ends_its_run() -> None:
    world = waiting()
    assert end(world, parts.execution_of(run_of(world)), failed=True)
    assert (run_of(world).status, run_of(world).final_reason) == (RunStatus.FAILED_FINAL, FinalReason.INFRA)
    assert "ABORTED" in run_of(world).message
    assert count_events(world, EventType.INFRA_FAILURE) == 1


@pytest.mark.parametrize("failed", [False, True])
def test_an_outcome_that_is_in_the_job_log_is_the_outcome(failed: bool) -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z")
    assert run_of(world).status is RunStatus.RUNNING
    writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)
    assert end(world, parts.execution_of(run_of(world)), failed=failed)
    assert run_of(world).status is RunStatus.COMPLETED
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED


def test_another_attempt_or_a_run_that_is_over_is_left_alone() -> None:
    world = waiting()
    execution = parts.execution_of(run_of(world))
    assert not end(world, execution, attempt=2)
    assert not end(world, "somebody-else")
    end(world, execution, failed=True)
    before = run_of(world)
    assert not end(world, execution)
    assert run_of(world) == before


def test_an_attempt_that_has_failed_and_waits_for_its_successor_is_left_alone() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z")
    execution = parts.execution_of(run_of(world))
    where = records.run_record(KEY, keys.RUN)
    control_of(world).store.commit([Update(where, set={"status": RunStatus.FAILED.value})])
    before = run_of(world)
    assert not end(world, execution, failed=True)
    assert not end(world, execution)
    assert run_of(world) == before


def test_executions_that_keep_ending_early_have_to_wait_longer_and_end_the_run_at_last() -> None:
    world = waiting()
    assert end(world, parts.execution_of(run_of(world)))
    assert not end(world, parts.execution_of(run_of(world))), "the second goes on five minutes after it began"
    assert run_of(world).part == 2
    while run_of(world).status is RunStatus.PENDING:
        world.clock.move_to((run_of(world).part_at or world.clock.now()) + timedelta(minutes=45))
        assert end(world, parts.execution_of(run_of(world)))
    assert (run_of(world).status, run_of(world).final_reason) == (RunStatus.FAILED_FINAL, FinalReason.INFRA)
    assert run_of(world).part == early_ends.MOST
    assert f"as did the {early_ends.MOST - 1} before it" in run_of(world).message

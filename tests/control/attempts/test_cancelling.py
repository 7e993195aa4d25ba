"""Cancelling a run: what waits ends at once, what runs is stopped, and what is over cannot be cancelled."""

from typing import Final

import pytest

from interlock.control.attempts import cancelling
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RunStatus
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged

RETRIES: Final = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 2, "retryDelay": "1h"}


def waiting() -> FaultyWorld:
    return staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="2026-03-05T00:15:00Z")


def test_an_attempt_that_waits_ends_at_once_and_starts_nothing() -> None:
    world = waiting()
    assert cancelling.cancel(control_of(world), KEY, reason="not needed", by="anna") == "cancelled"
    run = run_of(world)
    assert (run.status, run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.CANCELLED)
    later(world, hours=2)
    assert world.targets.starts == []
    assert run_of(world).attempt == 1
    world._pump()
    (event,) = [event for event in world.events if event.type is EventType.JOB_CANCELLED]
    assert (event.detail["requestedBy"], event.detail["reason"]) == ("anna", "not needed")
    assert event.message == "orders for 2026-03-05 was cancelled by anna: not needed"
    assert not {"runId", "jobId", "error"} & set(event.detail)


def test_a_failed_attempt_that_waits_for_its_retry_is_not_tried_again() -> None:
    jobs = [{"after": "5m", "result": "fail", "category": "TRANSIENT"}]
    world = staged(pipeline(job=RETRIES), until="2026-03-05T00:30:00Z", jobs=jobs)
    assert run_of(world).status is RunStatus.FAILED
    assert cancelling.cancel(control_of(world), KEY) == "cancelled"
    later(world, hours=3)
    assert (run_of(world).attempt, run_of(world).final_reason) == (1, FinalReason.CANCELLED)
    assert len(world.targets.starts) == 1


def test_a_running_job_is_stopped_and_asked_for_once() -> None:
    world = staged(pipeline(job=RETRIES), until="2026-03-05T00:12:00Z")
    assert run_of(world).status is RunStatus.RUNNING
    assert cancelling.cancel(control_of(world), KEY, by="anna") == "stopping"
    version = run_of(world).version
    assert cancelling.cancel(control_of(world), KEY, by="bert") == "stopping"
    assert run_of(world).version == version, "the first wish stands"
    settle(world)
    later(world, minutes=5)
    run = run_of(world)
    assert (run.status, run.final_reason, run.attempt) == (RunStatus.FAILED_FINAL, FinalReason.CANCELLED, 1)
    assert count_events(world, EventType.JOB_COMPLETED) == 0
    (event,) = [event for event in world.events if event.type is EventType.JOB_CANCELLED]
    assert (event.detail["runId"], event.detail["jobId"]) == (run.run_id, run.job_id)
    assert (event.detail["requestedBy"], event.detail["attempt"]) == ("anna", 1)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (RunKey("orders", "stream", "2026-03-01"), "has never run: there is nothing to cancel"),
        (KEY, "has no active attempt: attempt 1 is done"),
    ],
)
def test_what_is_over_or_never_was_cannot_be_cancelled(key: RunKey, message: str) -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    with pytest.raises(InvalidValueError, match=message):
        cancelling.cancel(control_of(world), key)

"""Cancelling a run: what waits ends at once, what runs is stopped, and what is over cannot be cancelled."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from interlock.control import catalog, records
from interlock.control.attempts import cancelling, completion
from interlock.decide import transitions
from interlock.model import keys
from interlock.model.audit import Actor, ActorKind, AuditAction, AuditNote
from interlock.model.config import JobType
from interlock.model.errors import InvalidValueError, JobStopError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Cancel, FinalReason, RunStatus, Source
from interlock.ports.jobs import JobRequest, JobStarted, JobState, JobStatus, JobStop
from interlock.ports.store import Delete, Put, Write
from tests.mute_target import MuteTarget
from tests.safety.faults import FaultyWorld
from tests.safety.interleaving import InterleavingStore
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


# ------------------------------------------------------------------------------------------------------- at once


def test_the_execution_of_an_attempt_that_is_cancelled_ends_without_waiting_for_its_interval() -> None:
    world = waiting()
    execution = keys.execution_name(KEY, 1)
    assert control_of(world).executions.is_open(execution)
    cancelling.cancel(control_of(world), KEY)
    settle(world)
    assert not control_of(world).executions.is_open(execution)


def test_a_running_job_is_stopped_without_waiting_for_the_next_poll() -> None:
    slow = RETRIES | {"pollInterval": "1h"}
    world = staged(pipeline(job=slow), until="2026-03-05T00:12:00Z", jobs=[{"result": "hang"}])
    cancelling.cancel(control_of(world), KEY)
    settle(world)
    assert world.targets.check(run_of(world).run_id).state is JobState.FAILED


# ------------------------------------------------------------------------------------------ what may have been started


def triggering(*, refused: bool) -> FaultyWorld:
    """`orders`, whose target was called; it `refused`, or has not answered yet."""
    world = waiting()
    run = run_of(world)
    called = transitions.step(run, RunStatus.TRIGGERING, now=world.clock.now(), run_id="r", refused=refused)
    control_of(world).store.commit([records.put_run(called, run)])
    return world


def test_a_start_that_was_refused_is_not_tried_again_once_it_is_cancelled() -> None:
    world = triggering(refused=True)
    assert cancelling.cancel(control_of(world), KEY) == "cancelled"
    assert run_of(world).final_reason is FinalReason.CANCELLED


def test_a_start_that_is_under_way_is_stopped_once_it_is_known() -> None:
    world = triggering(refused=False)
    assert cancelling.cancel(control_of(world), KEY, reason="wrong day") == "stopping"
    run = run_of(world)
    assert run.status is RunStatus.TRIGGERING
    assert run.cancel is not None
    assert (run.cancel.reason, run.cancel.at) == ("wrong day", world.clock.now())


def test_an_attempt_without_a_record_of_who_waits_can_be_cancelled_too() -> None:
    world = waiting()
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.ACTIVE))])
    assert cancelling.cancel(control_of(world), KEY) == "cancelled"


@pytest.mark.parametrize(("refused", "outcome"), [(True, "cancelled"), (False, "stopping")])
def test_who_cancels_a_run_is_noted_with_what_it_was(refused: bool, outcome: str) -> None:
    world = triggering(refused=refused)
    notes: list[AuditNote] = []

    def watch(writes: Sequence[Write]) -> None:
        notes.extend(one.note for one in writes if isinstance(one, Put | Delete) and one.note is not None)

    control = control_of(world).acting(Actor(ActorKind.TOKEN, "ann", "192.0.2.7"))
    control = replace(control, store=InterleavingStore(control.store, watch))
    assert cancelling.cancel(control, KEY, reason="wrong day") == outcome
    (made,) = notes
    assert (made.action, made.reason, made.date) == (AuditAction.RUN_CANCELLED, "wrong day", KEY.date)
    assert (made.before, made.after) == ({"status": "TRIGGERING", "attempt": 1}, {"outcome": outcome})


# --------------------------------------------------------------------------------------------- what cannot be stopped


class Stubborn(MuteTarget):
    """A target that runs a job and meets an error whenever it is asked to stop it."""

    def __init__(self, error: Exception, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.error = error
        self.meanwhile = meanwhile
        self.asked: list[str] = []

    def start(self, request: JobRequest) -> JobStarted:
        raise AssertionError(f"{request.key} is started already")

    def recover(self, request: JobRequest) -> JobStarted:
        raise AssertionError(f"{request.key} is started already")

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        del request, job_id
        return JobStatus(state=JobState.RUNNING)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        self.asked.append(job_id)
        self.meanwhile()
        raise self.error


def stop(world: FaultyWorld, target: Stubborn) -> str:
    """Ask the target to stop the job; the problem that the run then remembers."""
    control = replace(control_of(world), jobs={JobType.GLUE: target})
    run = run_of(world)
    cancelling.stop_job(control, catalog.opened_with(control.store, "orders", run.config_version), run)
    wish = run_of(world).cancel
    return wish.problem if wish is not None else ""


def wished() -> FaultyWorld:
    world = staged(pipeline(job=RETRIES), until="2026-03-05T00:12:00Z", jobs=[{"result": "hang"}])
    cancelling.cancel(control_of(world), KEY, by="anna", reason="wrong day")
    return world


def test_a_target_that_cannot_stop_a_job_is_asked_once_for_each_wish() -> None:
    world = wished()
    asked_at = world.clock.now()
    target = Stubborn(JobStopError("no way to stop it" + "!" * 600))
    world.clock.move_to(asked_at + timedelta(seconds=5))
    problem = stop(world, target)
    assert (problem[:17], len(problem)) == ("no way to stop it", 500)
    wish = run_of(world).cancel
    assert wish is not None
    assert (wish.by, wish.reason, wish.at) == ("anna", "wrong day", asked_at), "the wish stands"
    stop(world, target)
    assert target.asked == [run_of(world).job_id]
    assert cancelling.cancel(control_of(world), KEY, by="bert") == "stopping"
    again = run_of(world).cancel
    assert again is not None
    assert (again.by, again.problem) == ("bert", ""), "somebody else asks: it is tried again"


def test_a_target_that_does_not_answer_is_asked_again() -> None:
    world = wished()
    target = Stubborn(ConnectionError("lost"))
    assert [stop(world, target), stop(world, target)] == ["", ""]
    assert len(target.asked) == 2


def test_nothing_is_stopped_that_nobody_wants_stopped() -> None:
    world = staged(pipeline(), until="2026-03-05T00:12:00Z", jobs=[{"result": "hang"}])
    target = Stubborn(JobStopError("no"))
    assert stop(world, target) == ""
    assert target.asked == []


def test_a_problem_of_stopping_is_not_remembered_of_a_run_that_has_ended_or_vanished_meanwhile() -> None:
    world = wished()

    def end() -> None:
        completion.fail_final(control_of(world), KEY, 1, FinalReason.INFRA, "the disk is full")

    assert stop(world, Stubborn(JobStopError("no"), end)) == ""
    assert run_of(world).final_reason is FinalReason.INFRA
    world = wished()
    run = run_of(world)
    gone = Delete(records.run_record(KEY, keys.RUN))
    control = replace(
        control_of(world),
        jobs={JobType.GLUE: Stubborn(JobStopError("no"), lambda: control_of(world).store.commit([gone]))},
    )
    cancelling.stop_job(control, catalog.opened_with(control.store, "orders", run.config_version), run)
    assert world.run_of(KEY) is None


def test_a_problem_of_stopping_an_old_attempt_is_not_remembered_of_a_newer_one() -> None:
    world = wished()
    now = world.clock.now()

    def next_attempt() -> None:
        run = run_of(world)
        ended = transitions.step(
            run, RunStatus.FAILED, RunStatus.FAILED_FINAL, now=now, final_reason=FinalReason.CANCELLED
        )
        control_of(world).store.commit([records.put_run(ended, run)])
        again = transitions.open_attempt(
            ended, KEY, Source.MANUAL, now, config_version=run.config_version, lease_until=now
        )
        control_of(world).store.commit([records.put_run(again, ended)])
        wish = Cancel(at=now, by="bert", reason="")
        control_of(world).store.commit([records.put_run(transitions.amend(again, now=now, cancel=wish), again)])

    assert stop(world, Stubborn(JobStopError("no"), next_attempt)) == ""
    assert run_of(world).attempt == 2

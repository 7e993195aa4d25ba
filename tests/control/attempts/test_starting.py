"""Starting a job: an answer counts for the attempt that asked, and a refusal is logged with its category."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from interlock.control import catalog, records
from interlock.control.attempts import starting
from interlock.control.context import Control
from interlock.decide import transitions
from interlock.model import keys
from interlock.model.config import JobType
from interlock.model.errors import InvalidValueError, JobStartError
from interlock.model.events import EventType
from interlock.model.run import FailureCategory, FinalReason, JobEvent, Run, RunStatus, Source
from interlock.ports.jobs import JobRequest, JobStarted, JobState, JobStatus, Recovery
from interlock.ports.store import Delete
from tests.mute_target import MuteTarget
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, staged


class Target(MuteTarget):
    """Answers as it is scripted; `meanwhile` happens while the call is under way."""

    def __init__(self, answer: JobStarted | Exception, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.answer = answer
        self.meanwhile = meanwhile
        self.found: JobStarted | Recovery = Recovery.UNDECIDABLE
        self.asked: list[str] = []

    def start(self, request: JobRequest) -> JobStarted:
        self.asked.append(request.run_id)
        self.meanwhile()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        del request
        return self.found

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        del request, job_id
        return JobStatus(state=JobState.RUNNING)


OLD: Final = JobStarted(job_id="the job of attempt 1")


def about_to_start() -> FaultyWorld:
    """`orders`, whose rules have passed, and whose target has not been called."""
    world = staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="2026-03-05T00:15:00Z")
    waiting = run_of(world)
    passed = transitions.amend(waiting, now=world.clock.now(), passed_at=world.clock.now())
    control_of(world).store.commit([records.put_run(passed, waiting)])
    return world


def with_target(world: FaultyWorld, target: Target) -> Control:
    return replace(control_of(world), jobs={JobType.GLUE: target})


def open_next(world: FaultyWorld, *statuses: RunStatus) -> None:
    """Attempt 1 is given up, and attempt 2 opened, up to that status."""
    now, run = world.clock.now(), run_of(world)
    path = [RunStatus.FAILED, RunStatus.FAILED_FINAL][1 if run.status is RunStatus.PENDING else 0 :]
    ended = transitions.step(run, *path, now=now, final_reason=FinalReason.STALE)
    control_of(world).store.commit([records.put_run(ended, run)])
    again = transitions.open_attempt(
        ended, KEY, Source.MANUAL, now, config_version=run.config_version, lease_until=now, opened_by="a test"
    )
    control_of(world).store.commit([records.put_run(again, ended)])
    for status in statuses:
        before = run_of(world)
        after = transitions.step(before, status, now=now)
        control_of(world).store.commit([records.put_run(after, before)])


# ------------------------------------------------------------------------------------------- answers that come late


@pytest.mark.parametrize("further", [(), (RunStatus.TRIGGERING,)], ids=["waiting", "triggering"])
def test_the_job_of_an_old_attempt_does_not_land_on_a_newer_one(further: tuple[RunStatus, ...]) -> None:
    world = about_to_start()
    target = Target(OLD, meanwhile=lambda: open_next(world, *further))
    answer = starting.trigger(with_target(world, target), KEY, 1)

    assert answer == {"status": "superseded"}
    newer = run_of(world)
    assert (newer.attempt, newer.job_id) == (2, "")
    assert newer.status is (further[-1] if further else RunStatus.PENDING)
    assert count_events(world, EventType.JOB_TRIGGERED) == 0


@pytest.mark.parametrize("error", [JobStartError("no", permanent=True), ConnectionError("lost")])
def test_the_failure_of_an_old_attempt_is_not_counted_for_a_newer_one(error: Exception) -> None:
    world = about_to_start()
    target = Target(error, meanwhile=lambda: open_next(world, RunStatus.TRIGGERING))
    with pytest.raises((starting.TriggerRefusedError, starting.TriggerInfrastructureError)):
        starting.trigger(with_target(world, target), KEY, 1)

    newer = run_of(world)
    assert (newer.attempt, newer.trigger_failures, newer.refused, newer.message) == (2, 0, False, "")
    assert [line for line in records.job_log(control_of(world).store, KEY) if line.attempt == 2] == []


def test_an_attempt_that_is_over_starts_nothing_and_recovers_nothing() -> None:
    world = about_to_start()
    open_next(world, RunStatus.TRIGGERING)
    target = Target(OLD)
    target.found = OLD
    assert starting.trigger(with_target(world, target), KEY, 1) == {"status": "superseded"}
    assert target.asked == []
    assert (run_of(world).status, run_of(world).job_id) == (RunStatus.TRIGGERING, "")


def test_a_step_that_is_repeated_after_the_answer_was_recorded_says_the_same_and_calls_nobody() -> None:
    world = about_to_start()
    target = Target(JobStarted(job_id="j"))
    control = with_target(world, target)
    assert starting.trigger(control, KEY, 1) == {"status": "started"}
    assert starting.trigger(control, KEY, 1) == {"status": "started"}
    assert len(target.asked) == 1
    assert (run_of(world).status, run_of(world).job_id) == (RunStatus.RUNNING, "j")
    assert count_events(world, EventType.JOB_TRIGGERED) == 1


@pytest.mark.parametrize(("state", "logged"), [(JobState.RUNNING, []), (JobState.SUCCEEDED, [JobEvent.SUCCESS])])
def test_a_start_that_answers_with_the_end_logs_it(state: JobState, logged: list[JobEvent]) -> None:
    world = about_to_start()
    target = Target(JobStarted(job_id="j", status=JobStatus(state=state)))
    starting.trigger(with_target(world, target), KEY, 1)
    assert [line.event for line in records.job_log(control_of(world).store, KEY)] == logged


def test_an_answer_that_somebody_else_has_recorded_meanwhile_is_a_start() -> None:
    world = about_to_start()

    def record_it() -> None:
        before = run_of(world)
        after = transitions.step(before, RunStatus.RUNNING, now=world.clock.now(), job_id="j")
        control_of(world).store.commit([records.put_run(after, before)])

    target = Target(JobStarted(job_id="j"), meanwhile=record_it)
    assert starting.trigger(with_target(world, target), KEY, 1) == {"status": "started"}


def test_an_answer_for_a_run_that_has_vanished_is_superseded() -> None:
    world = about_to_start()
    gone = Delete(records.run_record(KEY, keys.RUN))
    target = Target(OLD, meanwhile=lambda: control_of(world).store.commit([gone]))
    assert starting.trigger(with_target(world, target), KEY, 1) == {"status": "superseded"}
    assert world.run_of(KEY) is None


def test_the_exhausted_starts_of_an_old_attempt_do_not_end_a_newer_one() -> None:
    world = about_to_start()
    open_next(world, RunStatus.TRIGGERING)
    assert starting.exhausted(control_of(world), KEY, 1, "refused") == {"status": "superseded"}
    assert run_of(world).status is RunStatus.TRIGGERING


# ------------------------------------------------------------------------------------------------------- refusals


def failures(world: FaultyWorld) -> list[tuple[FailureCategory | None, str]]:
    lines = records.job_log(control_of(world).store, KEY)
    return [(line.category, line.error) for line in lines if line.event is JobEvent.INFRA_TRIGGER_FAILURE]


@pytest.mark.parametrize(
    ("error", "raised", "category", "refused"),
    [
        (JobStartError("busy", permanent=False), starting.TriggerInfrastructureError, FailureCategory.TRANSIENT, True),
        (JobStartError("no such job", permanent=True), starting.TriggerRefusedError, FailureCategory.PERMANENT, True),
        (InvalidValueError("bad template"), starting.TriggerRefusedError, FailureCategory.PERMANENT, True),
        (ConnectionError("lost"), starting.TriggerInfrastructureError, FailureCategory.TRANSIENT, False),
    ],
)
def test_a_failed_start_is_logged_with_its_category(
    error: Exception, raised: type[Exception], category: FailureCategory, refused: bool
) -> None:
    world = about_to_start()
    with pytest.raises(raised, match=str(error)):
        starting.trigger(with_target(world, Target(error)), KEY, 1)

    ((logged, message),) = failures(world)
    assert logged is category
    assert str(error) in message
    run = run_of(world)
    assert (run.status, run.refused, run.trigger_failures) == (RunStatus.TRIGGERING, refused, 1)


def test_a_permanent_refusal_is_told_again_without_another_call() -> None:
    world = about_to_start()
    target = Target(JobStartError("no such job", permanent=True))
    control = with_target(world, target)
    for _ in range(2):
        with pytest.raises(starting.TriggerRefusedError, match="no such job"):
            starting.trigger(control, KEY, 1)
    assert len(target.asked) == 1
    assert len(failures(world)) == 1


def test_a_refusal_that_may_pass_is_not_tried_again_before_its_pause_is_over() -> None:
    world = about_to_start()
    target = Target(JobStartError("busy", permanent=False))
    control = with_target(world, target)
    for _ in range(2):
        with pytest.raises(starting.TriggerInfrastructureError, match="busy"):
            starting.trigger(control, KEY, 1)
    assert len(target.asked) == 1
    world.clock.move_to(world.clock.now().replace(minute=45))
    target.answer = JobStarted(job_id="j")
    assert starting.trigger(control, KEY, 1) == {"status": "started"}
    assert target.asked[0] == target.asked[1], "the same start, under the same id"


def test_a_call_that_got_lost_is_not_made_again_and_ends_as_uncertain() -> None:
    world = about_to_start()
    target = Target(ConnectionError("lost"))
    control = with_target(world, target)
    with pytest.raises(starting.TriggerInfrastructureError):
        starting.trigger(control, KEY, 1)
    assert starting.trigger(control, KEY, 1) == {"status": "superseded"}
    assert len(target.asked) == 1
    assert run_of(world).final_reason is FinalReason.UNCERTAIN


def test_a_call_that_got_lost_is_made_again_where_the_target_knows_that_nothing_was_started() -> None:
    world = about_to_start()
    target = Target(ConnectionError("lost"))
    control = with_target(world, target)
    with pytest.raises(starting.TriggerInfrastructureError):
        starting.trigger(control, KEY, 1)
    target.answer, target.found = JobStarted(job_id="j"), Recovery.START_AGAIN
    assert starting.trigger(control, KEY, 1) == {"status": "started"}
    assert (run_of(world).job_id, len(target.asked)) == ("j", 2)


def test_a_call_that_got_lost_is_not_made_again_once_the_pipeline_is_deleted() -> None:
    world = about_to_start()
    target = Target(ConnectionError("lost"))
    control = with_target(world, target)
    with pytest.raises(starting.TriggerInfrastructureError):
        starting.trigger(control, KEY, 1)
    target.answer, target.found = JobStarted(job_id="j"), Recovery.START_AGAIN
    catalog.delete_config(control, "orders")
    assert starting.trigger(control, KEY, 1) == {"status": "superseded"}
    assert (run_of(world).final_reason, len(target.asked)) == (FinalReason.UNCERTAIN, 1)


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (JobStartError("busy", permanent=False), "exhausted", FinalReason.TRIGGER_EXHAUSTED),
        (ConnectionError("lost"), "uncertain", FinalReason.UNCERTAIN),
    ],
)
def test_starts_that_are_used_up_end_the_run_by_what_is_known_of_the_last(
    error: Exception, status: str, reason: FinalReason
) -> None:
    world = about_to_start()
    with pytest.raises(starting.TriggerInfrastructureError):
        starting.trigger(with_target(world, Target(error)), KEY, 1)
    assert starting.exhausted(control_of(world), KEY, 1, "the lifecycle's words") == {"status": status}
    run = run_of(world)
    assert (run.status, run.final_reason) == (RunStatus.FAILED_FINAL, reason)
    assert str(error) in run.message
    assert count_events(world, EventType.RETRY_EXHAUSTED) == (1 if status == "exhausted" else 0)


# ----------------------------------------------------------------------------------------------------- job records


@pytest.mark.parametrize(
    ("status", "event", "category"),
    [
        (JobStatus(state=JobState.SUCCEEDED), JobEvent.SUCCESS, None),
        (JobStatus(state=JobState.FAILED), JobEvent.FAIL, None),
        (JobStatus(state=JobState.TIMED_OUT), JobEvent.TIMEOUT, FailureCategory.TIMEOUT),
        (
            JobStatus(state=JobState.TIMED_OUT, category=FailureCategory.TRANSIENT),
            JobEvent.TIMEOUT,
            FailureCategory.TRANSIENT,
        ),
    ],
)
def test_the_end_of_a_job_is_logged_as_its_target_says(
    status: JobStatus, event: JobEvent, category: FailureCategory | None
) -> None:
    world = about_to_start()
    run: Run = run_of(world)
    record = starting.job_record(run, status, world.clock.now(), by="someone")
    assert (record.event, record.category, record.attempt, record.reported_by) == (event, category, 1, "someone")


def test_a_job_of_a_type_that_nobody_runs_is_refused_for_good() -> None:
    world = about_to_start()
    control: Any = replace(control_of(world), jobs={})
    with pytest.raises(starting.TriggerRefusedError, match="jobs of type glue cannot be started by this installation"):
        starting.trigger(control, KEY, 1)
    later(world, minutes=1)
    assert failures(world)[0][0] is FailureCategory.PERMANENT


def test_a_job_of_no_type_or_of_one_that_nobody_can_start_is_refused_for_good() -> None:
    world = about_to_start()
    config = catalog.current(control_of(world).store, "orders")
    assert config is not None
    nobody = replace(control_of(world), jobs={})
    with pytest.raises(JobStartError, match="jobs of type glue cannot be started by this installation") as caught:
        starting.runner_of(nobody, config)
    assert caught.value.permanent
    with pytest.raises(JobStartError, match="jobs of type none cannot be started"):
        starting.runner_of(nobody, structs.replace(config, job=None))


@pytest.mark.parametrize("status", [RunStatus.PENDING, None], ids=["waits", "has vanished"])
def test_starts_are_not_used_up_of_a_run_that_waits_or_has_vanished(status: RunStatus | None) -> None:
    world = about_to_start()
    if status is None:
        control_of(world).store.commit([Delete(records.run_record(KEY, keys.RUN))])
    assert starting.exhausted(control_of(world), KEY, 1, "refused") == {"status": "superseded"}
    assert (None if world.run_of(KEY) is None else run_of(world).status) is status


def test_a_run_that_has_vanished_before_its_start_starts_nothing() -> None:
    world = about_to_start()
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.RUN))])
    target = Target(OLD)
    assert starting.trigger(with_target(world, target), KEY, 1) == {"status": "superseded"}
    assert target.asked == []

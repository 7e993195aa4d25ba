"""Starting a job at most once per attempt (SPEC 5, Trigger).

The order is the whole point: the run is committed as TRIGGERING with its RUN_ID *before* the target is called, and as
RUNNING after it answered. Whoever finds a run in TRIGGERING knows that a call may have been made and got lost; then the
target is asked for our RUN_ID, and where nobody can tell, the run ends with TRIGGER_UNCERTAIN rather than start twice.
A clear refusal is remembered (`refused`), so that trying again after it is no such guess.
"""

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.control import catalog, records
from interlock.control.attempts import completion
from interlock.control.context import Control
from interlock.decide import retries, transitions
from interlock.decide.templates import fill
from interlock.logs import get_logger
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError, InvalidValueError, JobStartError
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory, FinalReason, JobEvent, JobRecord, Run, RunStatus
from interlock.model.times import zone
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, JobState, JobStatus, Recovery
from interlock.ports.store import Write

log = get_logger(__name__)

Output = dict[str, Any]
# `reported_by` of a job-log record that the execution wrote itself: it need not be woken for that.
BY_LIFECYCLE: Final = "lifecycle"
_CLOCKS_APART: Final = timedelta(seconds=5)


class TriggerInfrastructureError(InterlockError):
    """The target could not be reached or cannot take the job now; the lifecycle tries again."""


class TriggerRefusedError(InterlockError):
    """The target will never take this job; trying again cannot help."""


def trigger(control: Control, key: RunKey, attempt: int) -> Output:
    """Start the job of an attempt whose rules have passed; raises for the lifecycle's Retry and Catch."""
    intent = _intend(control, key, attempt)
    if intent is None or intent.run.status is RunStatus.RUNNING:
        return _answer(control, key, attempt)
    run = intent.run
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    try:
        started = _call(control, config, intent)
    except JobStartError as error:
        raise _failed(control, run, str(error), permanent=error.permanent, refused=True) from error
    except InvalidValueError as error:
        raise _failed(control, run, str(error), permanent=True, refused=True) from error
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        raise _failed(control, run, failure, permanent=False, refused=False) from error
    if started is None:
        message = f"nobody can tell whether the job {run.run_id} was started; look in the target, then rerun"
        completion.fail_final(control, key, attempt, FinalReason.UNCERTAIN, message)
        return _answer(control, key, attempt)
    return {"status": "started" if _record_start(control, run, started) else "superseded"}


def _answer(control: Control, key: RunKey, attempt: int) -> Output:
    run = records.get_run(control.store, key)
    mine = run is not None and run.attempt == attempt
    running = run is not None and mine and run.status is RunStatus.RUNNING
    return {"status": "started" if running else "superseded"}


class _Intent(msgspec.Struct, frozen=True):
    """A run whose target is to be called. `first_call`: no earlier call of this start can have got lost."""

    run: Run
    first_call: bool


def _intend(control: Control, key: RunKey, attempt: int) -> _Intent | None:
    """Commit the intent to call the target; None when this attempt has nothing to start.

    The commit holds only if the config is still the one that was asked whether anything may be started (`brakes`).
    """

    def decide() -> tuple[_Intent | None, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.attempt != attempt:
            return None, []
        now = control.now()
        brake = catalog.brake(control.store, key.pipeline)
        surely_not_started = run.status is RunStatus.PENDING or (run.status is RunStatus.TRIGGERING and run.refused)
        if surely_not_started and brake.reason is not None:
            return None, [*completion.withdrawn_writes(control, run, brake.reason), brake.unchanged]
        if surely_not_started and run.cancel is not None:
            return None, completion.cancelled_writes(control, run, run.cancel)
        if run.status is RunStatus.PENDING and run.passed_at is not None:
            run_id = new_run_id(control, run)
            fresh = transitions.step(run, RunStatus.TRIGGERING, now=now, run_id=run_id, refused=False)
            return _Intent(fresh, first_call=True), [records.put_run(fresh, run), brake.unchanged]
        if run.status is RunStatus.TRIGGERING and run.refused:
            failure = _met_before(control, run)
            if failure is not None:
                raise failure
            again = transitions.amend(run, now=now, refused=False)
            return _Intent(again, first_call=True), [records.put_run(again, run), brake.unchanged]
        under_way = run.status in (RunStatus.TRIGGERING, RunStatus.RUNNING)
        return (_Intent(run, first_call=False) if under_way else None), []

    return records.settle_commit(control, decide)


def _met_before(control: Control, run: Run) -> InterlockError | None:
    """The failure to raise again, without another call, when a crash repeats a try or a lost execution begins anew.

    The lifecycle counts its tries and makes the pauses; the run remembers how many there were and when the last was.
    """
    log_lines = records.job_log(control.store, run.key)
    failures = [one for one in log_lines if one.attempt == run.attempt and one.event is JobEvent.INFRA_TRIGGER_FAILURE]
    pause = retries.trigger_retry_delay(run.trigger_failures, control.settings.trigger_max_attempts)
    if pause is None or (failures and failures[-1].category is FailureCategory.PERMANENT):
        return TriggerRefusedError(run.message)
    too_early = control.now() + _CLOCKS_APART < run.updated_at + pause
    return TriggerInfrastructureError(run.message) if too_early else None


def _call(control: Control, config: PipelineConfig, intent: _Intent) -> JobStarted | None:
    """Call the target, or find the job of a call that got lost; None when nobody can tell."""
    try:
        runner, request = runner_of(control, config), request_of(control, config, intent.run)
        found = Recovery.START_AGAIN if intent.first_call else runner.recover(request)
    except (JobStartError, InvalidValueError) as error:
        if intent.first_call:
            raise
        # Not a refusal: this says nothing about the call that got lost.
        raise InterlockError(f"the target could not be asked whether the job was started: {error}") from error
    if isinstance(found, JobStarted):
        return found
    # The lost call may have started it or not; calling again would start it now, if it had not.
    braked = not intent.first_call and catalog.brake(control.store, intent.run.pipeline).reason is not None
    return None if found is Recovery.UNDECIDABLE or braked else runner.start(request)


def _record_start(control: Control, run: Run, started: JobStarted) -> bool:
    """RUNNING, and JOB_TRIGGERED; False when the attempt is over, or another one open."""

    def decide() -> tuple[bool, list[Write]]:
        current = records.get_run(control.store, run.key)
        if current is None or current.attempt != run.attempt or current.status is not RunStatus.TRIGGERING:
            return current is not None and current.attempt == run.attempt and current.status is RunStatus.RUNNING, []
        now = control.now()
        running = transitions.step(
            current, RunStatus.RUNNING, now=now, job_id=started.job_id, triggered_at=now, refused=False
        )
        config = catalog.opened_with(control.store, run.pipeline, run.config_version)
        event = triggered_event(config, running, now, answer=started.answer)
        writes: list[Write] = [records.put_run(running, current), records.put_event(event)]
        status = started.status
        if status is not None and status.state.terminal and records.outcome_of(control.store, running) is None:
            ended = job_record(running, status, now, by=BY_LIFECYCLE)
            writes.append(records.put_outcome(ended, running))
        return True, writes

    return records.settle_commit(control, decide)


def new_run_id(control: Control, run: Run) -> str:
    """Our id for the start of an attempt's job."""
    return f"{run.pipeline}-{run.date}-{run.attempt}-{control.new_id()}"


def triggered_event(config: PipelineConfig, run: Run, now: datetime, *, answer: str = "") -> Event:
    """JOB_TRIGGERED; of a claimed attempt, with who claimed it."""
    kind = config.job.type if config.job else ""
    claimed = f", claimed by {run.claimed_by}" if run.claimed_by else ""
    return records.event(
        EventType.JOB_TRIGGERED,
        run.key,
        now,
        f"started the {kind} job of {run.pipeline} for {run.date}{claimed}",
        attempt=run.attempt,
        runId=run.run_id,
        jobId=run.job_id,
        jobType=kind or None,
        answer=answer or None,
        claimedBy=run.claimed_by or None,
    )


def _failed(control: Control, run: Run, error: str, *, permanent: bool, refused: bool) -> InterlockError:
    """Log a start that did not succeed; the error to raise tells the lifecycle whether to try again."""

    def decide() -> tuple[None, list[Write]]:
        current = records.get_run(control.store, run.key)
        if current is None or current.attempt != run.attempt or current.status is not RunStatus.TRIGGERING:
            return None, []
        now = control.now()
        counted = transitions.amend(
            current, now=now, trigger_failures=current.trigger_failures + 1, refused=refused, message=error[:1000]
        )
        logged = _log_line(run, JobEvent.INFRA_TRIGGER_FAILURE, now, error, permanent=permanent)
        return None, [records.put_run(counted, current), records.put_job(logged, control.new_id())]

    records.settle_commit(control, decide)
    return TriggerRefusedError(error) if permanent else TriggerInfrastructureError(error)


def exhausted(control: Control, key: RunKey, attempt: int, error: str) -> Output:
    """Every start was refused: RETRY_EXHAUSTED, FAILED_FINAL (trigger-exhausted). No job budget is used."""

    def decide() -> tuple[Output, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.attempt != attempt or run.status is not RunStatus.TRIGGERING:
            return {"status": "superseded"}, []
        now = control.now()
        cause = run.message or error
        if not run.refused:
            message = f"the last call of the target got lost ({cause}); nobody can tell whether the job was started"
            return {"status": "uncertain"}, completion.final_writes(control, run, FinalReason.UNCERTAIN, message)
        message = f"the job of {key.pipeline} for {key.date} could not be started: {cause}"
        ended = transitions.step(
            run,
            RunStatus.FAILED,
            RunStatus.FAILED_FINAL,
            now=now,
            final_reason=FinalReason.TRIGGER_EXHAUSTED,
            ended_at=now,
            lease_until=None,
            message=message,
        )
        event = records.event(
            EventType.RETRY_EXHAUSTED,
            key,
            now,
            message,
            attempt=attempt,
            budget=control.settings.trigger_max_attempts,
            used=run.trigger_failures,
            error=cause,
        )
        logged = _log_line(run, JobEvent.INFRA_TRIGGER_EXHAUSTED, now, cause, permanent=None)
        return {"status": "exhausted"}, [
            records.put_run(ended, run),
            records.drop_active(key),
            records.put_job(logged, control.new_id()),
            records.put_event(event),
        ]

    return records.settle_commit(control, decide)


def _log_line(run: Run, event: JobEvent, now: datetime, error: str, *, permanent: bool | None) -> JobRecord:
    category = None
    if permanent is not None:
        category = FailureCategory.PERMANENT if permanent else FailureCategory.TRANSIENT
    return JobRecord(
        pipeline=run.pipeline,
        schedule=run.schedule,
        date=run.date,
        event=event,
        attempt=run.attempt,
        at=now,
        run_id=run.run_id,
        category=category,
        error=error[:2000],
    )


# ------------------------------------------------------------------------------------------------ target look-up


def runner_of(control: Control, config: PipelineConfig) -> JobRunner:
    """The runner of a pipeline's job type."""
    if config.job is None or config.job.type not in control.jobs:
        kind = config.job.type if config.job else "none"
        raise JobStartError(f"jobs of type {kind} cannot be started by this installation", permanent=True)
    return control.jobs[config.job.type]


def request_of(control: Control, config: PipelineConfig, run: Run) -> JobRequest:
    """The job of an attempt, with its templates filled in; secrets stay names until the target is called."""
    filled = fill(
        config.job.config if config.job else {},
        run.key,
        run_id=run.run_id,
        attempt=run.attempt,
        environment=control.settings.environment,
    )
    schedule = config.find_schedule(run.schedule)
    return JobRequest(
        key=run.key,
        attempt=run.attempt,
        run_id=run.run_id,
        config=filled,
        started_at=run.triggered_at,
        begins_at=run.key.period.start(zone(schedule.timezone if schedule is not None else "UTC")),
    )


def job_record(run: Run, status: JobStatus, at: datetime, *, by: str = "") -> JobRecord:
    """The job-log record of a job's end, as its target tells it. `by`: who wrote it down, where that matters."""
    events = {
        JobState.SUCCEEDED: JobEvent.SUCCESS,
        JobState.FAILED: JobEvent.FAIL,
        JobState.TIMED_OUT: JobEvent.TIMEOUT,
    }
    category = status.category
    if category is None and status.state is JobState.TIMED_OUT:
        category = FailureCategory.TIMEOUT
    return JobRecord(
        pipeline=run.pipeline,
        schedule=run.schedule,
        date=run.date,
        event=events[status.state],
        attempt=run.attempt,
        at=at,
        run_id=run.run_id,
        job_id=run.job_id,
        category=category,
        error=status.error[:2000],
        warning=status.warning[:2000],
        answer=status.answer[:2000],
        reported_by=by,
    )

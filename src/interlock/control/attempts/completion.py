"""The outcome of an attempt, decided once, in one commit (SPEC 5, Outcome).

`settle` is called by the lifecycle's CompleteTrigger, and by the stream-router when the execution is gone; whoever
comes second finds the decision taken. With the run's status go its baseline, cascade markers, SLA verdict and events.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from interlock.control import catalog, changed_inputs, markers, readiness, records
from interlock.control.attempts import opening
from interlock.control.context import Control
from interlock.decide import retries, sla, transitions, watchdog
from interlock.decide.drift import remembered
from interlock.decide.retries import RetryVerdict
from interlock.model import keys
from interlock.model.config import Job, PipelineConfig
from interlock.model.durations import format_duration
from interlock.model.errors import InterlockError
from interlock.model.events import Event, EventType, Severity
from interlock.model.keys import RunKey
from interlock.model.run import (
    Baseline,
    Cancel,
    FailureCategory,
    FinalReason,
    JobEvent,
    JobRecord,
    Run,
    RunStatus,
    SlaOutcome,
    SlaState,
)
from interlock.model.times import format_instant
from interlock.ports.store import Put, Write

Output = dict[str, Any]


def settle(control: Control, key: RunKey, attempt: int) -> Output:
    """Make the outcome of an attempt final; the answer tells CheckCancelSLA whether the timers go."""

    def decide() -> tuple[Output, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.attempt != attempt:
            return {"result": "superseded"}, []
        if run.status is not RunStatus.RUNNING:
            return _decided(run), []
        outcome = records.outcome_of(control.store, run)
        if outcome is None:
            raise InterlockError(f"{key} attempt {attempt} has no outcome in its job log")
        config = catalog.opened_with(control.store, run.pipeline, run.config_version)
        if outcome.event is JobEvent.SUCCESS:
            writes = success_writes(control, config, run, outcome)
            return {"result": "completed", "cancelSla": _closes_sla(writes)}, writes
        return _failure(control, config, run, outcome)

    return records.settle_commit(control, decide)


def _closes_sla(writes: list[Write]) -> bool:
    """Does a commit end an SLA? Else there are no timers to cancel."""
    return any(isinstance(write, Put) and write.key.sk.startswith(keys.SLA) for write in writes)


def _decided(run: Run) -> Output:
    """The decision was taken before: say the same."""
    gone = run.status is RunStatus.COMPLETED or (run.final_reason is not None and run.final_reason.closes_sla)
    return {"result": run.status.value.lower(), "cancelSla": gone}


# ------------------------------------------------------------------------------------------------------ success


def success_writes(control: Control, config: PipelineConfig, run: Run, outcome: JobRecord) -> list[Write]:
    """Everything that a completion commits. Events: JOB_COMPLETED, the baseline, the SLA verdict, what changed."""
    now = control.now()
    inputs = dict(run.inputs)
    baseline, captured = _baseline(control, config, run, now, inputs)
    late, late_writes, payload = changed_inputs.changed_meanwhile(control, config, run, now)
    cascade = markers.of_completion(control, run, now)
    completed = transitions.step(
        run,
        RunStatus.COMPLETED,
        now=now,
        ended_at=now,
        first_completed_at=run.first_completed_at or now,
        lease_until=None,
        markers_left=cascade.left,
        inputs=inputs,
        trigger_payload=payload,
        message="",
    )
    started = run.triggered_at or now
    event = records.event(
        EventType.JOB_COMPLETED,
        run.key,
        now,
        f"the job of {run.pipeline} for {run.date} completed",
        attempt=run.attempt,
        runId=run.run_id,
        jobId=run.job_id,
        durationSeconds=int((outcome.at - started).total_seconds()),
    )
    verdict, sla_writes = _sla_verdict(control, completed, now)
    return [
        records.drop_active(run.key),
        records.put_run(completed, run),
        *baseline,
        *sla_writes,
        *cascade.writes,
        *late_writes,
        *records.put_events(event, *captured, *verdict, *late),
    ]


def _baseline(
    control: Control, config: PipelineConfig, run: Run, now: datetime, inputs: dict[str, str]
) -> tuple[list[Write], list[Event]]:
    """Snapshot the post-run sensors; their digests join the inputs that the circuit breaker compares."""
    if config.post_run is None:
        return [], []
    try:
        readings = readiness.post_run_readings(config)
        gathered = readiness.gather(control.store, config, run.key, [one.key for one in readings])
        found = readiness.choose(config, run.key, readings, gathered, now)
    except Exception as error:  # noqa: BLE001 - a baseline that cannot be taken must not undo a completion
        event = records.event(
            EventType.BASELINE_CAPTURE_FAILED,
            run.key,
            now,
            f"the baseline of {run.pipeline} for {run.date} could not be taken: {error}",
            attempt=run.attempt,
            error=str(error),
        )
        return [], [event]
    for name, value in readiness.digests(found).items():
        inputs.setdefault(name, value)
    sensors = {name: sensor.data for name, sensor in found.items()}
    event = records.event(
        EventType.POST_RUN_BASELINE_CAPTURED,
        run.key,
        now,
        f"baseline of {len(sensors)} post-run sensors captured for {run.date}",
        attempt=run.attempt,
        baseline=sensors,
    )
    seen = {key: records.stamp(sensor) for key, sensor in gathered.items()}
    kept = Baseline(attempt=run.attempt, at=now, version=1, sensors=remembered(config.post_run, sensors), seen=seen)
    writes: list[Write] = [Put(records.run_record(run.key, keys.BASELINE), records.plain(kept))]
    due = watchdog.post_run_due_at(config.post_run, now)
    if due is not None:
        watch = {"attempt": run.attempt, "completedAt": format_instant(now), "dueAt": format_instant(due)}
        writes.append(Put(records.run_record(run.key, keys.AWAITED), watch))
    return writes, [event]


def _sla_verdict(control: Control, run: Run, now: datetime) -> tuple[list[Event], list[Write]]:
    state = records.get_sla(control.store, run.key)
    verdict = sla.completion(state, now) if state is not None else None
    if state is None or verdict is None:
        # An SLA that never had an instant (maxDuration, and the trigger sensor never came) is over all the same.
        return [], _cancelled(state, now)
    met = verdict.outcome is SlaOutcome.MET
    back_fill = " (a back-fill: nobody was alerted)" if state.back_fill else ""
    margin = format_duration(timedelta(seconds=abs(verdict.margin_seconds)))
    event = records.event(
        EventType.SLA_MET if met else EventType.SLA_RECOVERED,
        run.key,
        now,
        f"{run.pipeline} for {run.date} completed {margin} "
        f"{'before' if verdict.margin_seconds >= 0 else 'after'} its deadline{back_fill}",
        severity=Severity.INFO if state.back_fill else None,
        deadline=verdict.deadline,
        breachAt=verdict.breach_at,
        marginSeconds=verdict.margin_seconds,
        backFill=state.back_fill or None,
    )
    return [event], [close_sla(state, verdict.outcome, now)]


def close_sla(state: SlaState, outcome: SlaOutcome, now: datetime) -> Put:
    """The SLA of a run is over; the record is kept a few days for those who ask."""
    return records.put_sla(replace(state, version=state.version + 1, outcome=outcome, closed_at=now), state)


def cancel_sla_writes(control: Control, run: Run, now: datetime) -> list[Write]:
    """The run failed for good: no more SLA alerts are due."""
    return _cancelled(records.get_sla(control.store, run.key), now)


def _cancelled(state: SlaState | None, now: datetime) -> list[Write]:
    return [] if state is None or state.outcome is not None else [close_sla(state, SlaOutcome.CANCELLED, now)]


# ------------------------------------------------------------------------------------------------------ failure


def _failure(control: Control, config: PipelineConfig, run: Run, outcome: JobRecord) -> tuple[Output, list[Write]]:
    if config.job is None:
        raise InterlockError(f"{run.key} has no job in its config")
    now = control.now()
    verdict = retry_verdict(control, config.job, run, outcome)
    if run.cancel is not None:
        writes = cancelled_writes(control, run, run.cancel, error=outcome.error)
        return {"result": "failed", "cancelSla": _closes_sla(writes)}, writes
    braked = catalog.brake(control.store, run.pipeline).reason
    follows = f"{verdict.reason} follows" if verdict.retry and braked is None else "no retry follows"
    failed = _failure_event(run, outcome, now, follows)
    if verdict.retry and braked is not None:
        writes = withdrawn_writes(control, run, braked, failed=failed)
        return {"result": "failed", "cancelSla": _closes_sla(writes)}, writes
    if not verdict.retry:
        writes = used_up_writes(control, run, outcome, verdict, failed)
        return {"result": "failed", "cancelSla": _closes_sla(writes)}, writes
    if verdict.delay > timedelta(0):
        waiting = transitions.step(
            run,
            RunStatus.FAILED,
            now=now,
            retry_at=now + verdict.delay,
            lease_until=now + verdict.delay + control.settings.lease_margin,
            ended_at=now,
            message=outcome.error[:1000],
        )
        return {"result": "waiting"}, [records.put_run(waiting, run), records.put_event(failed)]
    return {"result": "retry"}, retry_writes(control, config, run, verdict, failed)


def retry_verdict(control: Control, job: Job, run: Run, outcome: JobRecord) -> RetryVerdict:
    """What the budgets say to a failure."""
    return retries.after_failure(job, outcome.category, records.reruns_of(control.store, run.key))


def retry_writes(
    control: Control, config: PipelineConfig, run: Run, verdict: RetryVerdict, failed: Event | None
) -> list[Write]:
    """PENDING with attempt + 1, and its rerun record, by the current config; while that is invalid, by its own."""
    current = catalog.in_force(control.store, run.pipeline)
    version, versions = run.config_version, list[Write]()
    if current is not None and current.config.find_schedule(run.schedule) is not None:
        config, version = current.config, current.version
        versions = opening.version_writes(control, config, current.document)
    again = transitions.open_attempt(
        run,
        run.key,
        verdict.source,
        control.now(),
        via=(RunStatus.FAILED,) if run.status is RunStatus.RUNNING else (),
        config_version=version,
        lease_until=opening.lease_until(control, config, config.schedule_of(run.schedule)),
        opened_by=verdict.reason,
    )
    events = [] if failed is None else records.put_events(failed)
    return [
        *events,
        *opening.opening_writes(control, config, again, run),
        *versions,
        records.put_rerun(again, verdict.reason),
    ]


def _failure_event(run: Run, outcome: JobRecord, now: datetime, follows: str) -> Event:
    timed_out = outcome.event is JobEvent.TIMEOUT
    kind = (outcome.category or FailureCategory.TRANSIENT).lower()
    return records.event(
        EventType.JOB_TIMEOUT if timed_out else EventType.JOB_FAILED,
        run.key,
        now,
        f"the job of {run.pipeline} for {run.date} {'timed out' if timed_out else 'failed'} ({kind}; {follows})"
        + (f": {outcome.error}" if outcome.error else ""),
        attempt=run.attempt,
        runId=run.run_id,
        jobId=run.job_id,
        category=outcome.category,
        error=outcome.error,
        actionHint=_read_output(run),
    )


def _read_output(run: Run) -> str:
    """The command that shows what the job of an attempt wrote."""
    named = "" if run.schedule in ("cron", "stream") else f" --schedule {run.schedule}"
    return f"interlock logs {run.pipeline} --date {run.date}{named} --attempt {run.attempt}"


def used_up_writes(
    control: Control, run: Run, outcome: JobRecord, verdict: RetryVerdict, failed: Event | None
) -> list[Write]:
    """FAILED_FINAL, since no retry is left; `failed`: the event of the failure itself, if it is not committed yet."""
    now = control.now()
    message = f"{run.pipeline} for {run.date} failed for good: {verdict.reason}"
    waited = run.status is RunStatus.FAILED
    ended = transitions.step(
        run,
        *(() if waited else (RunStatus.FAILED,)),
        RunStatus.FAILED_FINAL,
        now=now,
        final_reason=FinalReason.RETRIES_USED_UP,
        sla_closed=True,
        ended_at=now,
        lease_until=None,
        message=outcome.error[:1000] or message,
    )
    event = records.event(
        EventType.RETRY_EXHAUSTED,
        run.key,
        now,
        message,
        attempt=run.attempt,
        budget=verdict.budget,
        used=verdict.used,
        error=outcome.error,
        actionHint=_read_output(run),
    )
    return [
        records.put_run(ended, run),
        records.drop_active(run.key),
        *cancel_sla_writes(control, run, now),
        *records.put_events(*([] if failed is None else [failed]), event),
    ]


def withdrawn_writes(control: Control, run: Run, reason: str, *, failed: Event | None = None) -> list[Write]:
    """FAILED_FINAL, since the pipeline may start nothing any more; `failed`: the failure that is not retried."""
    message = f"{run.pipeline} for {run.date} is withdrawn: {reason}"
    event = records.event(
        EventType.RUN_WITHDRAWN, run.key, control.now(), message, attempt=run.attempt, reason=reason, status=run.status
    )
    return _ended_early(control, run, FinalReason.WITHDRAWN, *([] if failed is None else [failed]), event)


def cancelled_writes(control: Control, run: Run, wish: Cancel, *, error: str = "") -> list[Write]:
    """FAILED_FINAL, since somebody wants it; `error`: how the job that was stopped ended."""
    who = f" by {wish.by}" if wish.by else ""
    why = f": {wish.reason}" if wish.reason else ""
    event = records.event(
        EventType.JOB_CANCELLED,
        run.key,
        control.now(),
        f"{run.pipeline} for {run.date} was cancelled{who}{why}",
        attempt=run.attempt,
        reason=wish.reason,
        requestedBy=wish.by,
        requestedAt=wish.at,
        runId=run.run_id or None,
        jobId=run.job_id or None,
        error=error or None,
    )
    return _ended_early(control, run, FinalReason.CANCELLED, event)


def _ended_early(control: Control, run: Run, reason: FinalReason, *events: Event) -> list[Write]:
    """FAILED_FINAL by a decision of somebody's: no retry, no SLA alert any more."""
    now = control.now()
    ended = transitions.step(
        run,
        *((RunStatus.FAILED,) if run.status is RunStatus.RUNNING else ()),
        RunStatus.FAILED_FINAL,
        now=now,
        final_reason=reason,
        sla_closed=True,
        retry_at=None,
        ended_at=now,
        lease_until=None,
        message=events[-1].message,
    )
    return [
        records.put_run(ended, run),
        records.drop_active(run.key),
        *cancel_sla_writes(control, run, now),
        *records.put_events(*events),
    ]


# ------------------------------------------------------------------------------------------------- other endings

_FINAL_EVENTS: Final = {
    FinalReason.INFRA: EventType.INFRA_FAILURE,
    FinalReason.UNCERTAIN: EventType.TRIGGER_UNCERTAIN,
    FinalReason.STALE: EventType.SFN_TIMEOUT,
}


def fail_final(control: Control, key: RunKey, attempt: int, reason: FinalReason, message: str) -> str:
    """End an active attempt for a reason of the controller's own; its SLA timers stay armed."""

    def decide() -> tuple[str, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.attempt != attempt or not run.active:
            return "superseded", []
        return "failed", final_writes(control, run, reason, message)

    return records.settle_commit(control, decide)


def final_writes(control: Control, run: Run, reason: FinalReason, message: str) -> list[Write]:
    """FAILED_FINAL with its event."""
    now = control.now()
    ended = transitions.step(
        run,
        RunStatus.FAILED_FINAL,
        now=now,
        final_reason=reason,
        ended_at=now,
        lease_until=None,
        message=message[:1000],
    )
    event = records.event(
        _FINAL_EVENTS[reason],
        run.key,
        now,
        f"{run.pipeline} for {run.date}: {message}",
        attempt=run.attempt,
        status=run.status,
        runId=run.run_id or None,
        leaseUntil=run.lease_until,
        error=message,
    )
    return [records.put_run(ended, run), records.drop_active(run.key), records.put_event(event)]


def late_success(control: Control, record: JobRecord) -> bool:
    """A success reported after the attempt was given up makes the run COMPLETED, if its job may have been started."""

    def decide() -> tuple[bool, list[Write]]:
        run = records.get_run(control.store, record.key)
        if run is None or run.attempt != record.attempt or not transitions.job_may_have_started(run):
            return False, []
        config = catalog.opened_with(control.store, run.pipeline, run.config_version)
        return True, success_writes(control, config, run, record)

    return records.settle_commit(control, decide)


def claim_success(control: Control, run: Run) -> None:
    """A run was given up whose job had already reported its success: nobody will tell of that again."""
    if not transitions.job_may_have_started(run):
        return
    reported = (one for one in records.job_log(control.store, run.key) if one.attempt == run.attempt)
    success = next((one for one in reported if one.event is JobEvent.SUCCESS), None)
    if success is not None:
        late_success(control, success)


def severity_of(base: Severity, *, critical: bool) -> Severity:
    """`critical: true` raises the severity of SLA alerts."""
    return base.raised() if critical else base

"""stream-router: what a change of the control table or the job log sets in motion.

A change is a hint: every route reads the current item and decides from that, so a redelivered or older change does
nothing new (but see `observing`, of sensors that were overwritten). Routes commit; they never call a target and never
wait.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from interlock.control import (
    after_run,
    brakes,
    catalog,
    dry_run,
    markers,
    observing,
    pools,
    promises,
    records,
    reruns,
    sla_monitor,
    tick_timers,
    upstreams,
    waking,
)
from interlock.control.attempts import completion, opening, parts, starting
from interlock.control.context import Control
from interlock.control.watch.pass_store import PassStore
from interlock.decide import transitions
from interlock.model import keys
from interlock.model.keys import RunKey, Table
from interlock.model.run import JobEvent, JobRecord, Run, RunStatus
from interlock.ports.store import Change, Write
from interlock.ports.timers import Timer, TimerKind

# Records from whose changes nothing follows, and that are written often. A runtime need not deliver them. With each of
# them that comes or goes the run record is written, which is routed.
UNROUTED: Final = (keys.ACTIVE,)


def handle(control: Control, changes: Sequence[Change]) -> None:
    """The entry point of the stream: a batch of changes, in their order."""
    for change in changes:
        route(control, change)


def route(control: Control, change: Change) -> None:
    """One change, by what was written."""
    if change.pk == keys.CALENDARS:
        promises.follow_calendar(control, change.sk)
        if control.settings.tick_timers:
            tick_timers.follow_calendar(control, change.sk)
        return
    if not change.pk.startswith(keys.PIPELINE):
        return
    if change.table is Table.JOBLOG:
        job_logged(control, change)
        return
    for prefix, act in _ROUTES:
        if change.sk.startswith(prefix):
            act(control, change)
            return


def at_of(change: Change) -> datetime:
    """When the change was committed."""
    return datetime.fromtimestamp(change.at / 1000, UTC)


def sensor_changed(control: Control, change: Change) -> None:
    """A sensor was written: it may open, wake, re-open, drift, be late. Or it was deleted, and others count now."""
    key = change.sk[len(keys.SENSOR) :]
    if change.item is not None:
        observing.observe(control, keys.pipeline_of(change.pk), key, at_of(change), change.item)
    elif "#" in key:
        observing.removed(control, keys.pipeline_of(change.pk), key)


def run_changed(control: Control, change: Change) -> None:
    """A run record was written: start what is PENDING, time what waits for its retry, watch what has completed."""
    written = change.item or {}
    status = written.get("status")
    if status == RunStatus.COMPLETED and written.get("markersLeft"):
        # A completion is a fact, whatever the run has become since: its downstreams still have to get their markers.
        markers.follow(control, records.convert(written, Run, change.key))
    # Nothing follows from these; and what the run has become since has a change of its own.
    claimed = status == RunStatus.RUNNING and "claimId" in written and "jobStartedAt" not in written
    under_way = status in (RunStatus.TRIGGERING, RunStatus.RUNNING) and not claimed
    if under_way or (status == RunStatus.PENDING and "passedAt" in written):
        return
    key = keys.run_of(change.pk, change.sk, keys.RUN)
    run = records.get_run(control.store, key)
    if run is None or written.get("version", run.version) != run.version:
        return
    pools.give_back(control, run)
    match run.status:
        case RunStatus.PENDING if run.passed_at is None:
            brakes.start(control, run)
        case RunStatus.RUNNING:
            # Claimed: its execution may still wait for the rules, or may not have been started.
            waking.wake(control, key)
            opening.start_execution(control, run)
        case RunStatus.FAILED if run.retry_at is not None and not brakes.withdraw(control, key):
            payload = {"pipeline": key.pipeline, "schedule": key.schedule, "date": key.date, "attempt": run.attempt}
            name = f"retry-{keys.execution_name(key, run.attempt)[-50:]}"
            control.timers.arm(Timer(name, run.retry_at, TimerKind.RETRY, payload))
        case RunStatus.COMPLETED:
            config = catalog.current(control.store, run.pipeline)
            if config is not None:
                after_run.completed(control, config, run)
                upstreams.completed(control, config, run)
            observing.watch_after_completion(control, run)
        case RunStatus.FAILED_FINAL:
            completion.claim_success(control, run)
        case _:
            pass


def retry_due(control: Control, key: RunKey, attempt: int) -> None:
    """A run has waited out its retryDelay: open the attempt that was decided on when it failed."""

    def decide() -> tuple[None, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.attempt != attempt or run.status is not RunStatus.FAILED:
            return None, []
        config = catalog.opened_with(control.store, run.pipeline, run.config_version)
        outcome = records.outcome_of(control.store, run)
        if config.job is None or outcome is None:
            return None, []
        verdict = completion.retry_verdict(control, config.job, run, outcome)
        braked = catalog.brake(control.store, run.pipeline).reason
        if braked is not None:
            return None, completion.withdrawn_writes(control, run, braked)
        if not verdict.retry:
            return None, completion.used_up_writes(control, run, outcome, verdict, None)
        return None, completion.retry_writes(control, config, run, verdict, None)

    records.settle_commit(control, decide)


def config_changed(control: Control, change: Change) -> None:
    """A config was written or removed: what it stops ends before anything else follows from it."""
    pipeline = keys.pipeline_of(change.pk)
    control = replace(control, store=PassStore(control.store))
    catalog.read_ahead(control.store, pipeline, change.item)
    brakes.pull(control, pipeline)
    catalog.config_changed(control, pipeline)
    promises.follow_config(control, pipeline)
    if control.settings.tick_timers:
        tick_timers.follow(control, pipeline)


def sla_changed(control: Control, change: Change) -> None:
    """An SLA state was written: its timers follow it."""
    sla_monitor.schedule(control, keys.run_of(change.pk, change.sk, keys.SLA))


def marker_written(control: Control, change: Change) -> None:
    """An upstream completed a period."""
    if change.item is not None:
        upstreams.marker_arrived(control, change.key)


def rerun_requested(control: Control, change: Change) -> None:
    """Somebody asks for another attempt."""
    if change.item is not None:
        reruns.process(control, change.key)


def job_logged(control: Control, change: Change) -> None:
    """A job-log record: wake the execution, or make its commit if it is gone; a late success completes."""
    if change.item is None:
        return
    record = records.convert(change.item, JobRecord, change.key)
    if not record.event.outcome:
        return
    if record.reported_by != starting.BY_LIFECYCLE and dry_run.job_reported(control, record):
        return
    run = records.get_run(control.store, record.key)
    if run is None or run.attempt != record.attempt:
        return
    if run.status is RunStatus.RUNNING:
        if not control.executions.is_open(parts.execution_of(run)):
            completion.settle(control, run.key, run.attempt)
        elif record.reported_by != starting.BY_LIFECYCLE:
            # What the execution logged itself it acts on itself, also after a crash: it resumes before that step.
            waking.wake(control, run.key)
    elif record.event is JobEvent.SUCCESS and transitions.job_may_have_started(run):
        completion.late_success(control, record)


_ROUTES: Final[tuple[tuple[str, Callable[[Control, Change], None]], ...]] = (
    (keys.SENSOR, sensor_changed),
    (keys.RUN, run_changed),
    (keys.SLA, sla_changed),
    (keys.MARKER, marker_written),
    (keys.RERUN_REQUEST, rerun_requested),
    (keys.CONFIG_VERSION, lambda control, change: None),
    (keys.CONFIG, config_changed),
)

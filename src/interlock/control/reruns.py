"""Rerun requests: refused with a reason, or accepted in one commit (SPEC 5, "Job log, retries, reruns")."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from interlock.control import catalog, readiness, records
from interlock.control.attempts import opening, starting
from interlock.control.auditing import note
from interlock.control.catalog import InForce
from interlock.control.context import Control
from interlock.decide import transitions
from interlock.decide.real_periods import no_such_period
from interlock.decide.reruns import RerunRefusal, RerunVerdict, decide_rerun
from interlock.logs import get_logger
from interlock.model import keys
from interlock.model.audit import AuditAction
from interlock.model.config import PipelineConfig
from interlock.model.errors import UnknownPipelineError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import parse_period
from interlock.model.run import Baseline, JobEvent, JobRecord, RerunRequest, Run, Source
from interlock.ports.jobs import JobStarted, JobState
from interlock.ports.store import Delete, Key, Matches, Missing, Put, Store, Update, Write

log = get_logger(__name__)

_KEPT: Final = timedelta(days=7)
_MOST_OF_AN_ERROR: Final = 300
LOST_AFTER: Final = timedelta(minutes=10)
"""The stream decides a request in milliseconds: one without a decision for so long was lost."""


def request(
    control: Control,
    key: RunKey,
    *,
    source: Source = Source.MANUAL,
    reason: str = "",
    force: bool = False,
    requested_by: str = "",
) -> RerunRequest:
    """Ask for another attempt of a run; the stream-router decides. An unknown pipeline or schedule is an error here."""
    config = catalog.current(control.store, key.pipeline)
    if config is None:
        raise UnknownPipelineError(f"there is no pipeline {key.pipeline!r} to rerun")
    config.schedule_of(key.schedule)
    parse_period(key.date)
    made = RerunRequest(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        id=control.new_id(),
        source=source,
        at=control.now(),
        reason=reason,
        force=force,
        requested_by=requested_by,
    )
    sk = keys.rerun_request_sk(key, made.id)
    asked = {"request": made.id, "force": force}
    recorded = note(control, AuditAction.RERUN_REQUESTED, key, reason=reason, after=asked)
    control.store.commit([Put(records.control_key(key.pk, sk), records.plain(made), Missing(), recorded)])
    return made


def undated_sensors(control: Control, key: RunKey) -> list[str]:
    """What a rerun of a past period would read as it is today (`readiness.undated_inputs`), for the answer to it."""
    config = catalog.current(control.store, key.pipeline)
    if config is None or config.find_schedule(key.schedule) is None:
        return []
    return readiness.undated_inputs(control.store, config, key, records.get_run(control.store, key), control.now())


def process(control: Control, where: Key) -> None:
    """Decide a request, once."""
    asked_target = _JobQuestion(control)

    def decide() -> tuple[None, list[Write]]:
        item = control.store.get(where)
        if item is None or item.get("decision") is not None:
            return None, []
        asked = records.convert(item, RerunRequest, where)
        current = catalog.in_force(control.store, asked.pipeline)
        if current is None or current.config.find_schedule(asked.schedule) is None:
            verdict = RerunVerdict(False, f"there is no valid pipeline {asked.pipeline} with schedule {asked.schedule}")
            return None, _refused(control, where, asked, None, verdict)
        run = records.get_run(control.store, asked.key)
        verdict = _verdict(control, current.config, asked, run, asked_target)
        if not verdict.accepted:
            return None, _refused(control, where, asked, run, verdict)
        return None, _accepted(control, where, asked, run, current, verdict)

    records.settle_commit(control, decide)


def undecided(store: Store, pipeline: str) -> list[tuple[Key, RerunRequest]]:
    """The requests that nobody has decided yet. Decided ones are kept for a week."""
    found = store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.RERUN_REQUEST)
    waiting = [record for record in found if record.item.get("decision") is None]
    return [(record.key, records.convert(record.item, RerunRequest, record.key)) for record in waiting]


def _verdict(
    control: Control, config: PipelineConfig, asked: RerunRequest, run: Run | None, question: "_JobQuestion"
) -> RerunVerdict:
    if config.job is None or config.dry_run:
        return RerunVerdict(False, f"{config.id} is a dry run: nothing is ever started")
    schedule = config.schedule_of(asked.schedule)
    # A run that exists was real when it was opened, whatever the schedule says now.
    unreal = no_such_period(config, schedule, asked.key.period) if run is None else None
    if unreal is not None:
        return RerunVerdict(False, str(unreal), RerunRefusal.NO_SUCH_PERIOD)
    excluded = catalog.calendar_reason(control.store, schedule, asked.key.period)
    job = _Job(JobState.FAILED)
    if run is not None and transitions.job_may_have_started(run):
        job = question.ask(run)
        if job.state is JobState.SUCCEEDED:
            return RerunVerdict(False, f"the job of attempt {run.attempt} has succeeded meanwhile: nothing to rerun")
    return decide_rerun(
        asked,
        run,
        config.job,
        records.reruns_of(control.store, asked.key),
        excluded=excluded,
        changed=run is None or changed_since(control, config, run),
        job_running=job.state is JobState.RUNNING,
        job_unknown=job.unknown,
    )


def changed_since(control: Control, config: PipelineConfig, run: Run) -> bool:
    """Does any sensor that the rules, the trigger or the post-run read say something else than it did then?"""
    readings = readiness.all_readings(config, run.schedule)
    current = readiness.digests(readiness.selected(control.store, config, run.key, readings, control.now()))
    # What first came after the completion is known to the baseline alone.
    baseline = records.get(control.store, records.run_record(run.key, keys.BASELINE), Baseline)
    late = {} if baseline is None else {name: records.digest(data) for name, data in baseline.sensors.items()}
    known = late | (baseline.digests if baseline else {}) | run.inputs
    return any(known.get(name) != value for name, value in current.items())


class _Job(msgspec.Struct, frozen=True):
    """What became of the job of a given-up attempt; without a state, why its target could not be asked."""

    state: JobState | None
    unknown: str = ""


class _JobQuestion:
    """Asks a target, at most once per request, whether the job of a given-up attempt still runs."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._answer: _Job | None = None

    def ask(self, run: Run) -> _Job:
        """What the log or else the target says."""
        if self._answer is None:
            self._answer = self._look(run)
        return self._answer

    def _look(self, run: Run) -> _Job:
        reported = [
            one
            for one in records.job_log(self._control.store, run.key)
            if one.attempt == run.attempt and one.event.outcome and one.reported_by != "interlock"
        ]
        if reported:
            return _Job(JobState.SUCCEEDED if reported[-1].event is JobEvent.SUCCESS else JobState.FAILED)
        config = catalog.opened_with(self._control.store, run.pipeline, run.config_version)
        try:
            runner = starting.runner_of(self._control, config)
            asked = starting.request_of(self._control, config, run)
            job_id = run.job_id
            if not job_id:
                found = runner.recover(asked)
                if not isinstance(found, JobStarted):
                    # Nobody knows of such a job. A person who asks all the same has looked (TRIGGER_UNCERTAIN said so).
                    return _Job(JobState.FAILED)
                job_id = found.job_id
            status = runner.check(asked, job_id)
        except Exception as error:  # noqa: BLE001 - a target that cannot be asked cannot be ruled out
            log.warning("rerun-job-unknown", run=str(run.key), error=str(error))
            return _Job(None, unknown=(str(error) or type(error).__name__)[:_MOST_OF_AN_ERROR])
        if status.state.terminal:
            record = starting.job_record(run, status, self._control.now())
            self._control.store.commit([records.put_outcome(record, run)])
        return _Job(status.state)


def _accepted(
    control: Control, where: Key, asked: RerunRequest, run: Run | None, current: InForce, verdict: RerunVerdict
) -> list[Write]:
    config, now = current.config, control.now()
    schedule = config.schedule_of(asked.schedule)
    again = transitions.open_attempt(
        run,
        asked.key,
        asked.source,
        now,
        config_version=current.version,
        lease_until=opening.lease_until(control, config, schedule),
        opened_by=f"{asked.source} rerun: {asked.reason or verdict.reason}",
        requested_by=asked.requested_by,
    )
    today = readiness.undated_inputs(control.store, config, asked.key, run, now)
    reads = f"; read as of now, since they name no period: {', '.join(today)}" if today else ""
    event = records.event(
        EventType.RERUN_ACCEPTED,
        asked.key,
        now,
        f"rerun of {asked.pipeline} for {asked.date} accepted: {verdict.reason}{reads}",
        attempt=again.attempt,
        source=asked.source,
        reason=asked.reason,
        requestedBy=asked.requested_by or None,
        undatedSensors=today or None,
    )
    return [
        records.put_event(event),
        *opening.opening_writes(control, config, again, run),
        *opening.version_writes(control, config, current.document),
        records.put_rerun(again, asked.reason or verdict.reason),
        Delete(records.run_record(asked.key, keys.BASELINE)),
        Delete(records.run_record(asked.key, keys.AWAITED)),
        _decision(where, "accepted", verdict.reason, now),
    ]


def _refused(control: Control, where: Key, asked: RerunRequest, run: Run | None, verdict: RerunVerdict) -> list[Write]:
    now = control.now()
    event = records.event(
        EventType.RERUN_REJECTED,
        asked.key,
        now,
        f"rerun of {asked.pipeline} for {asked.date} refused: {verdict.reason}",
        source=asked.source,
        reason=verdict.reason,
        code=verdict.code,
        requestedBy=asked.requested_by or None,
    )
    logged = JobRecord(
        pipeline=asked.pipeline,
        schedule=asked.schedule,
        date=asked.date,
        event=JobEvent.RERUN_REJECTED,
        attempt=run.attempt if run else 0,
        at=now,
        error=verdict.reason,
        reported_by=asked.requested_by,
    )
    return [
        _decision(where, "rejected", verdict.reason, now),
        records.put_job(logged, control.new_id()),
        records.put_event(event),
    ]


def _decision(where: Key, decision: str, reason: str, now: datetime) -> Update:
    """The request is decided: it is kept a while, and never decided again."""
    until = int((now + _KEPT).timestamp())
    return Update(
        where, set={"decision": decision, "decidedBecause": reason, "ttl": until}, when=Matches({"decision": None})
    )

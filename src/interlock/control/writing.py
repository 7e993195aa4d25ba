"""What people and jobs write: observations and job outcomes. Refused writes leave nothing behind."""

from datetime import datetime
from typing import Any, Final

import msgspec

from interlock.control import catalog, records
from interlock.control.attempts import starting
from interlock.control.auditing import note, noted
from interlock.control.context import Control
from interlock.decide import transitions
from interlock.decide.quotas import expiry_of
from interlock.decide.sensors import key_matches, period_of_write, run_period
from interlock.model import keys
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.config import PipelineConfig
from interlock.model.errors import AlreadyReportedError, InvalidValueError, UnknownPipelineError
from interlock.model.keys import RunKey, check_sensor_key
from interlock.model.run import FailureCategory, JobEvent, JobRecord, Run, RunStatus
from interlock.model.sensor import Sensor, check_observation
from interlock.ports.store import Delete, Matches, Present, Put, Require

BY_CALLBACK: Final = "callback"


class Written(msgspec.Struct, frozen=True, rename="camel"):
    """What became of an observation."""

    pipeline: str
    key: str
    received_at: datetime
    period: str = ""
    warnings: tuple[str, ...] = ()


def write_sensor(
    control: Control, pipeline: str, key: str, data: object, *, ttl: int | None = None, by: str = ""
) -> Written:
    """Store an observation; durable when this returns."""
    put, written = prepare_sensor(control, pipeline, key, data, ttl=ttl, by=by)
    control.store.commit([put])
    return written


def prepare_sensor(
    control: Control, pipeline: str, key: str, data: object, *, ttl: int | None = None, by: str = ""
) -> tuple[Put, Written]:
    """The write that stores an observation, and what becomes of it once it is committed; or the error that refuses."""
    observation = check_observation(key, data)
    return prepare_checked(control, pipeline, known_pipeline(control, pipeline), key, observation, ttl=ttl, by=by)


def prepare_checked(
    control: Control,
    pipeline: str,
    config: PipelineConfig | None,
    key: str,
    observation: dict[str, Any],
    *,
    ttl: int | None = None,
    by: str = "",
) -> tuple[Put, Written]:
    """As `prepare_sensor`, for who has checked the observation and read the pipeline's config already."""
    received = control.now()
    where = records.control_key(keys.pipeline_pk(pipeline), keys.sensor_sk(key))
    item = records.sensor_item(observation, received, ttl=expiry_of(key, received) if ttl is None else ttl, by=by)
    if control.quotas is not None:
        control.quotas.check(control.store, pipeline, where, item)
    own = period_of_write(key, observation)
    written = Written(
        pipeline=pipeline,
        key=key,
        received_at=received,
        period=str(own.period) if own.period else "",
        warnings=(
            *_warnings(config, key, own.problem or _unfit(config, Sensor(key, observation, received))),
            *_ttl_warnings(ttl, received),
        ),
    )
    return Put(where, item, note=_recorded(control, AuditAction.SENSOR_WRITTEN, pipeline, key)), written


def _recorded(control: Control, action: AuditAction, pipeline: str, key: str) -> AuditNote | None:
    """The note of a change of a sensor: of a write where the trail is to hold sensor writes, of a deletion always."""
    if control.actor is None or control.auditing is None:
        return None
    if action is AuditAction.SENSOR_WRITTEN and not control.auditing.sensors:
        return None
    return note(control, action, pipeline, subject=key, compared={"digest": records.DIGEST})


def delete_sensor(control: Control, pipeline: str, key: str) -> bool:
    """Forget an observation; False when there is none. An unknown pipeline is an error."""
    known_pipeline(control, pipeline)
    check_sensor_key(key)
    where = records.control_key(keys.pipeline_pk(pipeline), keys.sensor_sk(key))
    recorded = _recorded(control, AuditAction.SENSOR_DELETED, pipeline, key)
    return control.store.get(where) is not None and control.store.commit([Delete(where, Present(), recorded)]) is None


def _warnings(config: PipelineConfig | None, key: str, problem: str) -> tuple[str, ...]:
    found: list[str] = []
    if problem:
        found.append(f"no run is started: {problem}")
    if config is not None and not any(key_matches(name, key) for name in read_keys(config)):
        found.append(f"no rule of {config.id} reads {key!r}: it reads {', '.join(read_keys(config))}")
    return tuple(found)


def _unfit(config: PipelineConfig | None, sensor: Sensor) -> str:
    """Why a trigger write is for no run of a schedule, though its period can be read."""
    for schedule in config.all_schedules if config is not None else ():
        if schedule.trigger is not None and key_matches(schedule.trigger.key, sensor.key):
            period = run_period(schedule, sensor)
            if isinstance(period, str):
                return period
    return ""


def _ttl_warnings(ttl: int | None, now: datetime) -> tuple[str, ...]:
    if ttl is None or ttl > now.timestamp():
        return ()
    return (f"ttl {ttl} is in the past, so the sensor counts as absent: it is the epoch second at which it expires",)


def read_keys(config: PipelineConfig) -> list[str]:
    """Every sensor key that anything in a config reads."""
    names = [rule.key for rule in config.validation.rules]
    names += [schedule.trigger.key for schedule in config.all_schedules if schedule.trigger is not None]
    names += [rule.key for rule in (config.post_run.rules if config.post_run else [])]
    return list(dict.fromkeys(names))


def known_pipeline(control: Control, pipeline: str) -> PipelineConfig | None:
    """The pipeline's config (None when it is invalid); an unknown name is an error with the nearest names."""
    found = catalog.stored(control.store, pipeline)
    if found is not None:
        return found.config
    raise UnknownPipelineError(f"there is no pipeline {pipeline!r}", pipeline, control.store.pipelines)


def report_job(
    control: Control,
    key: RunKey,
    event: JobEvent,
    *,
    attempt: int | None = None,
    run_id: str = "",
    category: FailureCategory | None = None,
    error: str = "",
    by: str = "",
) -> JobRecord:
    """An outcome reported from outside; without an attempt or run id it is the active attempt's, if there is one."""
    if not event.outcome:
        raise InvalidValueError(f"{event} is not an outcome: report success, fail or timeout")
    run = records.get_run(control.store, key)
    # A job that was started is followed to its end, whatever has become of its pipeline since.
    followed = run is not None and (run.active or transitions.job_may_have_started(run))
    config = None if followed else known_pipeline(control, key.pipeline)
    if config is not None and config.dry_run:
        number, named = _dry_attempt(control, key, attempt), run_id
    else:
        number, named = _reported_attempt(key, run, attempt, run_id), run_id or (run.run_id if run else "")
    record = JobRecord(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        event=event,
        attempt=number,
        at=control.now(),
        run_id=named,
        category=category,
        error=error[:2000],
        reported_by=by or "report",
    )
    recorded = note(
        control,
        AuditAction.JOB_REPORTED,
        key,
        reason=error[:2000],
        before={} if run is None else {"status": run.status.value},
        after={"result": event.value, "attempt": number, "runId": named},
    )
    if run is not None and run.active and run.attempt == number:
        if control.store.commit(noted([records.put_outcome(record, run)], recorded)) is None:
            return record
        if by == BY_CALLBACK:
            _check_first_callback(control, key, number)
    # What somebody says of a job whose outcome is known is kept all the same.
    records.settle_commit(control, lambda: (None, noted([records.put_job(record, control.new_id())], recorded)))
    return record


def report_by_callback(
    control: Control,
    key: RunKey,
    attempt: int,
    run_id: str,
    event: JobEvent,
    *,
    category: FailureCategory | None = None,
    error: str = "",
) -> JobRecord:
    """The outcome that a job reports at the address it was given: for its own attempt, and once."""
    run = records.get_run(control.store, key)
    if run is None or (run.attempt, run.run_id) != (attempt, run_id):
        raise AlreadyReportedError(f"{key} attempt {attempt} is over: a later attempt has taken its place")
    _check_first_callback(control, key, attempt)
    return report_job(
        control, key, event, attempt=attempt, run_id=run_id, category=category, error=error, by=BY_CALLBACK
    )


def _check_first_callback(control: Control, key: RunKey, attempt: int) -> None:
    for one in records.job_log(control.store, key):
        if one.attempt == attempt and one.reported_by == BY_CALLBACK:
            raise AlreadyReportedError(f"{key} attempt {attempt} was reported already: {one.event}")


def _dry_attempt(control: Control, key: RunKey, attempt: int | None) -> int:
    if control.store.get(records.run_record(key, keys.DRY_RUN)) is None:
        raise InvalidValueError(f"{key} is a dry run that has not been observed yet: nothing to report on")
    return attempt or 1


def _reported_attempt(key: RunKey, run: Run | None, attempt: int | None, run_id: str) -> int:
    if run is None:
        raise InvalidValueError(f"{key} has never run: nothing to report on")
    if run_id and run_id != run.run_id:
        raise InvalidValueError(f"{key}: {run_id!r} is not the run id of its latest attempt ({run.run_id or 'none'})")
    if attempt is not None and attempt > run.attempt:
        raise InvalidValueError(f"{key} has no attempt {attempt}: its latest is {run.attempt}")
    if attempt is None and not run_id and not run.active:
        raise InvalidValueError(
            f"{key} has no active attempt (attempt {run.attempt} is {run.status}): name the attempt or the run id"
        )
    wanted = attempt or run.attempt
    if wanted == run.attempt and run.status in (RunStatus.PENDING, RunStatus.FAILED):
        raise InvalidValueError(f"{key} attempt {wanted} has not started a job yet: nothing to report on")
    return wanted


def job_ended(control: Control, key: RunKey, attempt: int) -> bool:
    """A target says by itself that a job of ours is over: log what it says. True when that ended the job."""
    run = records.get_run(control.store, key)
    if run is None or run.attempt != attempt or not _still_asked(control, run):
        return False
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    asked = starting.request_of(control, config, run)
    status = starting.runner_of(control, config).check(asked, run.job_id)
    if not status.state.terminal:
        return False
    record = starting.job_record(run, status, control.now())
    same = Matches({"attempt": attempt, "status": run.status.value})
    logged = records.put_outcome(record, run)
    return control.store.commit([Require(records.run_record(key, keys.RUN), same), logged]) is None


def _still_asked(control: Control, run: Run) -> bool:
    """Is anybody waiting for the end of this job? Also of one that was given up: a late success completes its run."""
    if run.status is RunStatus.RUNNING:
        return records.outcome_of(control.store, run) is None
    # TRIGGERING: the lifecycle looks for itself as soon as it has recorded the start.
    return transitions.job_may_have_started(run)

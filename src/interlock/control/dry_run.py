"""Dry run (SPEC 10): observes and publishes what would happen. No run record, no execution, no job, ever.

A `DRY_RUN#` marker per run remembers what was published, so that a redelivered change publishes nothing twice. Failures
are read from the job log: the job that really runs, under whatever starts it today, reports there.
"""

from datetime import date, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from interlock.control import catalog, readiness, records
from interlock.control.attempts import opening
from interlock.control.context import Control
from interlock.decide import dry_run as decide
from interlock.decide import late_data, readers
from interlock.decide.drift import find_drift, lacks_baseline, remembered
from interlock.decide.retries import retry_source
from interlock.decide.sensors import Reading, concerned, key_matches, run_period, trigger_match
from interlock.decide.transitions import job_may_have_started
from interlock.model import keys
from interlock.model.config import PipelineConfig, Schedule
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import DryRun, JobEvent, JobRecord, Source
from interlock.model.sensor import Sensor
from interlock.model.times import format_instant
from interlock.ports.store import Condition, Matches, Missing, Put, Write

KEPT: Final = timedelta(days=7)


def observe(control: Control, config: PipelineConfig, sensor: Sensor) -> None:
    """A sensor write of a dry-run pipeline."""
    for schedule in config.all_schedules:
        begin(control, config, schedule, sensor)
    for key in records.reached(control.store, config, keys.DRY_RUN, readers.observed(config, sensor)):
        _look(control, config, key, sensor)


def begin(control: Control, config: PipelineConfig, schedule: Schedule, sensor: Sensor) -> None:
    """A matching trigger write begins the observation of a run, unless the calendar withholds it."""
    trigger = schedule.trigger
    if trigger is None or not key_matches(trigger.key, sensor.key):
        return
    period = run_period(schedule, sensor)
    if isinstance(period, str):
        opening.report_invalid(control, sensor, config.id, period)
        return
    if not trigger_match(trigger, sensor, control.now()).passed:
        return
    key = RunKey(config.id, schedule.schedule_id, str(period))
    reason = catalog.calendar_reason(control.store, schedule, period)
    if reason is not None:
        opening.report_excluded(control, key, reason)
        return
    found = catalog.stored(control.store, config.id)
    now = control.now()
    marker = DryRun(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        version=1,
        opened_at=now,
        config_version=found.version if found else "",
        ttl=int((now + KEPT).timestamp()),
        first_arrival=sensor.received_at,
    )
    control.store.commit([_put(marker, None)])


def _put(marker: DryRun, before: DryRun | None) -> Put:
    when: Condition = Missing() if before is None else Matches({"version": before.version})
    return Put(records.run_record(marker.key, keys.DRY_RUN), records.plain(marker), when)


def _look(control: Control, config: PipelineConfig, key: RunKey, sensor: Sensor) -> None:
    def attempt() -> tuple[None, list[Write]]:
        marker = records.get(control.store, records.run_record(key, keys.DRY_RUN), DryRun)
        if marker is None:
            return None, []
        if marker.would_trigger_at is None:
            return None, _evaluate(control, config, marker, sensor)
        return None, _afterwards(control, config, marker, sensor)

    records.settle_commit(control, attempt)


def _evaluate(control: Control, config: PipelineConfig, marker: DryRun, sensor: Sensor) -> list[Write]:
    """Within the window: would the job be started now?"""
    now = control.now()
    schedule = config.schedule_of(marker.schedule)
    if now > marker.opened_at + schedule.evaluation.window:
        return []
    verdict = readiness.readiness(control.store, config, marker.key, now)
    if not verdict.passed:
        return []
    observed = decide.would_trigger(
        config,
        schedule,
        marker.key.period,
        now,
        results=[records.plain(result) for result in verdict.results],
        first_arrival=marker.first_arrival,
    )
    after = readiness.selected(control.store, config, marker.key, readiness.post_run_readings(config), now)
    changed = replace(
        marker,
        version=marker.version + 1,
        would_trigger_at=now,
        trigger_payload=readiness.trigger_payload(control.store, config, marker.key, now),
        post_run_sensors=readiness.post_run_values(config, after),
        seen=marker.seen | {sensor.key: records.stamp(sensor)},
    )
    return [_put(changed, marker), *records.put_events(*(_event(marker.key, one, now) for one in observed))]


def _event(key: RunKey, observed: decide.Observation, now: datetime) -> Event:
    return records.event(observed.type, key, now, observed.message, **observed.detail)


def _afterwards(control: Control, config: PipelineConfig, marker: DryRun, sensor: Sensor) -> list[Write]:
    """After it would have run: drift, late data, and the rerun they would ask for."""
    if marker.seen.get(sensor.key) == records.stamp(sensor) or config.job is None:
        return []
    now = control.now()
    reading = _watched_by(control, config, marker, sensor)
    found = _drift(config, marker, reading, sensor, now) or _late(control, config, marker, sensor, now)
    if found is None:
        return _first_value(config, marker, reading, sensor)
    event, source, because = found
    spent = sum(count for used, count in marker.used.items() if used is Source.DATA_DRIFT)
    rerun = decide.would_rerun(config.job, source, spent, because=because)
    accepted = rerun.type is EventType.DRY_RUN_WOULD_RERUN
    post_run = marker.post_run_sensors or {}
    if accepted and source is Source.DATA_DRIFT:
        # The rerun would have taken a new baseline: the same value again is no drift.
        post_run = post_run | {str(event.detail["key"]): sensor.data}
        post_run = remembered(config.post_run, post_run) if config.post_run else post_run
    changed = replace(
        marker,
        version=marker.version + 1,
        seen=marker.seen | {sensor.key: records.stamp(sensor)},
        used=marker.used | ({Source.DATA_DRIFT: spent + 1} if accepted else {}),
        post_run_sensors=post_run,
        trigger_payload=sensor.data if source is Source.LATE_DATA else marker.trigger_payload,
    )
    return [_put(changed, marker), *records.put_events(event, _event(marker.key, rerun, now))]


def _watched_by(control: Control, config: PipelineConfig, marker: DryRun, sensor: Sensor) -> Reading | None:
    """The post-run reading that reads this very sensor for this run: as for a run that exists (`after_run`)."""
    reading = next((one for one in readiness.post_run_readings(config) if key_matches(one.key, sensor.key)), None)
    about = None if reading is None else concerned(reading, sensor)
    if reading is None or about is None:
        return None
    if about.latest and marker.key != _latest(control, config):
        return None
    chosen = readiness.selected(control.store, config, marker.key, [reading], control.now()).get(reading.key)
    return reading if chosen is not None and chosen.key == sensor.key else None


def _latest(control: Control, config: PipelineConfig) -> RunKey | None:
    """The latest of the runs that are observed; of each schedule only those of its latest day are looked at."""
    pk, found = keys.pipeline_pk(config.id), list[DryRun]()
    for schedule in config.all_schedules:
        prefix = f"{keys.DRY_RUN}{schedule.schedule_id}#"
        newest = control.store.query(Table.CONTROL, pk, prefix, reverse=True, limit=1)
        days = [keys.run_of(pk, one.key.sk, keys.DRY_RUN).period.day for one in newest]
        same_day = [one for day in days for one in control.store.query(Table.CONTROL, pk, f"{prefix}{day}")]
        found += [records.convert(one.item, DryRun, one.key) for one in same_day]
    return max(found, key=_recency).key if found else None


def _recency(marker: DryRun) -> tuple[date, datetime, str]:
    return marker.key.period.day, marker.opened_at, marker.schedule


def _drift(
    config: PipelineConfig, marker: DryRun, reading: Reading | None, sensor: Sensor, now: datetime
) -> tuple[Event, Source, str] | None:
    if config.post_run is None or reading is None:
        return None
    drift = find_drift(config.post_run, reading.key, marker.post_run_sensors or {}, sensor.data)
    if drift is None:
        return None
    message = f"dry run: drift in {config.id} for {marker.date}: {drift.reason}"
    event = records.event(EventType.DRY_RUN_DRIFT, marker.key, now, message, **drift.detail())
    return event, Source.DATA_DRIFT, drift.reason


def _first_value(config: PipelineConfig, marker: DryRun, reading: Reading | None, sensor: Sensor) -> list[Write]:
    """A post-run sensor that first comes after the run would have started is its own baseline."""
    known = marker.post_run_sensors or {}
    if config.post_run is None or reading is None:
        return []
    if not lacks_baseline(config.post_run, reading.key, known, sensor.data):
        return []
    first = remembered(config.post_run, known | {reading.key: sensor.data})
    return [_put(replace(marker, version=marker.version + 1, post_run_sensors=first), marker)]


def _late(
    control: Control, config: PipelineConfig, marker: DryRun, sensor: Sensor, now: datetime
) -> tuple[Event, Source, str] | None:
    current = readiness.trigger_observation(control.store, config, marker.key, now)
    if marker.trigger_payload is None or current is None or current.key != sensor.key:
        return None
    changed = late_data.significant_changes(marker.trigger_payload, sensor.data)
    if not changed:
        return None
    message = f"dry run: the trigger sensor of {config.id} for {marker.date} changed afterwards: {', '.join(changed)}"
    event = records.event(EventType.DRY_RUN_LATE_DATA, marker.key, now, message, changed=list(changed))
    return event, Source.LATE_DATA, f"{', '.join(changed)} changed"


def job_reported(control: Control, record: JobRecord) -> bool:
    """A job-log record of a dry-run pipeline: publish what would follow from its failure. True when it is one.

    The outcome of a job that was started before the pipeline became a dry run is none: that run goes on to its end.
    """
    config = catalog.current(control.store, record.pipeline)
    if config is None or not config.dry_run or config.job is None:
        return False
    run = records.get_run(control.store, record.key)
    if run is not None and (run.active or job_may_have_started(run)):
        return False
    job = config.job

    def attempt() -> tuple[None, list[Write]]:
        marker = records.get(control.store, records.run_record(record.key, keys.DRY_RUN), DryRun)
        stamp, at = f"job:{record.attempt}:{record.run_id}", format_instant(record.at)
        if marker is None or record.event is JobEvent.SUCCESS or marker.seen.get(stamp) == at:
            return None, []
        source = retry_source(record.category)
        spent = marker.used.get(source, 0)
        retry = decide.would_retry(job, record.category, spent)
        accepted = retry.type is EventType.DRY_RUN_WOULD_RETRY
        changed = replace(
            marker,
            version=marker.version + 1,
            seen=marker.seen | {stamp: at},
            used=marker.used | ({source: spent + 1} if accepted else {}),
        )
        return None, [_put(changed, marker), records.put_event(_event(record.key, retry, control.now()))]

    records.settle_commit(control, attempt)
    return True

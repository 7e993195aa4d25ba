"""Checks 1 and 4 of the watchdog (SPEC 8): what is under way ends, and what should be under way is.

An attempt that outlived its lease is ended; one that nothing drives is driven again; a trigger that holds, markers that
are complete and a rerun request that nobody decided are taken up: the change of each was lost.
"""

from datetime import datetime
from typing import Final

import msgspec

from interlock.control import brakes, readiness, records, reruns
from interlock.control.attempts import completion, execution_ends, opening, parts
from interlock.control.context import Control
from interlock.control.watch.watched import Watched
from interlock.decide import expected, watchdog
from interlock.decide.sensors import key_matches, run_period, trigger_match
from interlock.model import keys
from interlock.model.config import PipelineConfig, Schedule, Trigger
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Period, day_period, parse_period
from interlock.model.run import FinalReason, Run, RunStatus
from interlock.model.sensor import Sensor
from interlock.ports.executions import StartResult

_RECENT: Final = 50


def stale_runs(control: Control, watched: Watched) -> None:
    """1: an attempt outlived its lease."""
    end_stale(control, watched.config.id)


def end_stale(control: Control, pipeline: str) -> None:
    for key in records.active_runs(control.store, pipeline):
        run_ = records.get_run(control.store, key)
        finding = watchdog.stale(run_, control.now()) if run_ is not None else None
        if run_ is not None and finding is not None:
            completion.fail_final(control, key, run_.attempt, FinalReason.STALE, finding.message)


def reconcile_triggers(control: Control, watched: Watched) -> None:
    """4: a trigger that holds without a run, and an active run that nothing drives."""
    revive_all(control, watched.config.id)
    decide_requests(control, watched.config.id)
    for schedule in watched.config.all_schedules:
        if schedule.trigger is not None:
            _recover_triggers(control, watched, schedule)
    _recover_cascade(control, watched)


def revive_all(control: Control, pipeline: str) -> None:
    brakes.pull(control, pipeline)
    for key in records.active_runs(control.store, pipeline):
        run_ = records.get_run(control.store, key)
        if run_ is not None and run_.active:
            _revive(control, run_)


def decide_requests(control: Control, pipeline: str) -> None:
    """Rerun requests that nobody has decided: the change of each was lost."""
    for where, asked in reruns.undecided(control.store, pipeline):
        if control.now() >= asked.at + reruns.LOST_AFTER:
            reruns.process(control, where)


def _revive(control: Control, run_: Run) -> None:
    """An active run whose execution is not open: start it, or do what it would have done.

    `is_open` only spares the call: it may be seconds old. What the start says is certain: it was started just now, it
    is open, or it has ended.
    """
    if run_.status is RunStatus.FAILED:
        if run_.retry_at is not None and run_.retry_at <= control.now():
            # The router loads all that a change may lead to, and a pass of the watchdog hardly ever needs it.
            from interlock.control import router

            router.retry_due(control, run_.key, run_.attempt)
        return
    execution = parts.execution_of(run_)
    if control.executions.is_open(execution):
        return
    match opening.start_execution(control, run_):
        case StartResult.STARTED:
            event = _recovered(control, run_.key, f"attempt {run_.attempt} had no execution")
            records.publish_once(control, event, f"{EventType.TRIGGER_RECOVERED}-{run_.attempt}-{run_.version}")
        case StartResult.ALREADY_OPEN:
            pass
        case StartResult.ALREADY_CLOSED:
            execution_ends.ended(control, run_.key, run_.attempt, execution, why="", failed=False)


def _recovered(control: Control, key: RunKey, reason: str) -> Event:
    message = f"{key.pipeline} for {key.date}: {reason}"
    return records.event(EventType.TRIGGER_RECOVERED, key, control.now(), message, reason=reason)


def _recover_triggers(control: Control, watched: Watched, schedule: Schedule) -> None:
    trigger = schedule.trigger
    if trigger is None:
        return
    plain = _plain_sensor(control, watched.config.id, trigger.key)
    sensors = period_sensors(control, watched.config.id, trigger.key)
    for held in held_triggers(watched, schedule, trigger, plain + sensors):
        key = RunKey(watched.config.id, schedule.schedule_id, str(held.period))
        if records.get_run(control.store, key) is None and not _only_observed(control, key):
            _open_lost(control, watched, schedule, key, held.why, held.sensor.received_at)


class Held(msgspec.Struct, frozen=True):
    """A trigger's condition holds for the period of a sensor."""

    sensor: Sensor
    period: Period
    why: str


def held_triggers(watched: Watched, schedule: Schedule, trigger: Trigger, sensors: list[Sensor]) -> list[Held]:
    held: list[Held] = []
    for sensor in sensors:
        if sensor.received_at < watched.since - watchdog.LOOKBACK:
            continue
        period = run_period(schedule, sensor)
        result = trigger_match(trigger, sensor, watched.now)
        if not isinstance(period, str) and result.passed:
            held.append(Held(sensor, period, f"sensor {sensor.key}: {result.reason}"))
    return held


def _only_observed(control: Control, key: RunKey) -> bool:
    """A dry run took the trigger in: nothing was lost; if somebody else starts the job meanwhile, it is started."""
    return control.store.get(records.run_record(key, keys.DRY_RUN)) is not None


def _plain_sensor(control: Control, pipeline: str, key: str) -> list[Sensor]:
    """The sensor itself, if it is there."""
    item = control.store.get(records.control_key(keys.pipeline_pk(pipeline), keys.sensor_sk(key)))
    return [] if item is None or records.is_absent(key, item) else [records.sensor_of(key, item)]


def period_sensors(control: Control, pipeline: str, key: str) -> list[Sensor]:
    """The sensors of its newest periods."""
    prefix = f"{keys.sensor_sk(key)}#"
    found = control.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), prefix, reverse=True, limit=_RECENT)
    items = [(record.key.sk[len(keys.SENSOR) :], record.item) for record in found]
    sensors = [records.sensor_of(name, item) for name, item in items if not records.is_absent(name, item)]
    return [sensor for sensor in sensors if key_matches(key, sensor.key)]


def _recover_cascade(control: Control, watched: Watched) -> None:
    """Markers that are complete without a run; the newest few periods are looked at."""
    config = watched.config
    for period in marked_periods(control, config):
        key = RunKey(config.id, watched.first_schedule.schedule_id, str(period))
        if records.get_run(control.store, key) is None and not readiness.awaited_upstreams(control.store, config, key):
            _open_lost(control, watched, watched.first_schedule, key, "cascade: all upstreams completed", None)


def marked_periods(control: Control, config: PipelineConfig) -> list[Period]:
    """The newest periods that upstreams have completed, and the days that they are of."""
    if not config.after:
        return []
    prefix = f"{keys.MARKER}{config.all_schedules[0].schedule_id}#"
    found = control.store.query(Table.CONTROL, keys.pipeline_pk(config.id), prefix, reverse=True, limit=_RECENT)
    dates = {record.key.sk[len(prefix) :].split("#")[0] for record in found}
    return sorted({parse_period(date) for date in dates} | {day_period(parse_period(date).day) for date in dates})


def _open_lost(
    control: Control, watched: Watched, schedule: Schedule, key: RunKey, why: str, arrived: datetime | None
) -> None:
    if expected.calendar_reason(schedule, watched.calendars, key.period) is not None:
        return
    start = opening.Start(key=key, opened_by=f"watchdog: {why}", first_arrival=arrived)
    event = _recovered(control, key, f"its start had been lost ({why})")
    opening.open_first(control, start, event)

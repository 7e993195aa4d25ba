"""What a sensor write sets in motion (SPEC 3, 5, 7): it may open a run, wake or re-open one, drift, or be late data.

The order matters in one place only: a write that is both drift and late data makes one request, for drift.
"""

from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from interlock.control import after_run, catalog, dry_run, promises, records, waking
from interlock.control.attempts import opening, reopening
from interlock.control.context import Control
from interlock.decide import sla
from interlock.decide.sensors import key_matches, period_of_write, run_period, trigger_match
from interlock.model import keys
from interlock.model.config import Schedule
from interlock.model.errors import CommitRefusedError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Run, SlaState
from interlock.model.sensor import Sensor
from interlock.model.times import format_instant
from interlock.ports.store import UNREADABLE, Item, Matches, Missing, Require, Update, Write


def observe(control: Control, pipeline: str, key: str, at: datetime, written: Item | None = None) -> None:
    """Consider the current value of a sensor. `at`: when the write was committed, for writes that do not say.

    `written`: what that write said. Another may stand in its place by now; for a period of its own it still counts.
    """
    sensor = _stamped(control, pipeline, key, at)
    if sensor is None or sensor.expired(control.now()):
        return
    current = catalog.in_force(control.store, pipeline)
    opened: list[RunKey] = []
    if current is not None:
        _begin_overwritten(control, current, sensor, written, at)
        opened = _consider(control, current, sensor)
    # An attempt waits by the config it was opened with, whatever has become of that since.
    waking.wake_readers(control, pipeline, sensor, current, opened)
    if current is not None and not current.config.dry_run:
        reopening.reopen_readers(control, current, sensor)


def removed(control: Control, pipeline: str, key: str) -> None:
    """A sensor was deleted. Without `key#D` the run of D reads `key`: that may be what it waits for."""
    current, gone = catalog.in_force(control.store, pipeline), Sensor(key, {}, control.now())
    waking.wake_readers(control, pipeline, gone, current, ())
    if current is not None and not current.config.dry_run:
        reopening.reopen_readers(control, current, gone)


def _consider(control: Control, current: catalog.InForce, sensor: Sensor) -> list[RunKey]:
    """What a write means by the current config; the runs that it opened."""
    config = current.config
    problem = period_of_write(sensor.key, sensor.data).problem
    if problem:
        opening.report_invalid(control, sensor, config.id, problem)
    if config.dry_run:
        if not problem:
            dry_run.observe(control, config, sensor)
        return []
    opened: list[RunKey | None] = []
    for schedule in config.all_schedules:
        if not problem:
            opened.append(_triggered(control, current, schedule, sensor))
    after_run.observe(control, config, sensor)
    return [key for key in opened if key is not None]


def _stamped(control: Control, pipeline: str, key: str, at: datetime) -> Sensor | None:
    """The sensor with its received time; a direct store write gets the time of its change, once."""
    where = records.control_key(keys.pipeline_pk(pipeline), keys.sensor_sk(key))
    item = control.store.get(where)
    if item is None:
        return None
    sensor = records.sensor_of(key, item)
    fingerprint = records.digest(sensor.data)
    stamped = item.get(records.RECEIVED) is not None and item.get(records.DIGEST) == fingerprint
    doubtful = not stamped or records.REFUSED in item or UNREADABLE in item
    problem = records.unfit(item, sensor.data) if doubtful else ""
    if stamped and problem == item.get(records.REFUSED, ""):
        return None if problem else sensor
    stamp = {records.RECEIVED: format_instant(at), records.DIGEST: fingerprint}
    # Still there, too: a stamp alone would be a sensor that nobody wrote.
    unchanged = Matches({name: item.get(name) for name in (records.RECEIVED, records.DIGEST)}, present=True)
    if problem:
        _refuse(control, pipeline, replace(sensor, received_at=at), problem)
        with suppress(CommitRefusedError):  # as large as an item may be: it is measured whenever it is read
            control.store.commit([Update(where, set=stamp | {records.REFUSED: problem}, when=unchanged)])
        return None
    control.store.commit([Update(where, set=stamp, remove=(records.REFUSED,), when=unchanged)])
    return replace(sensor, received_at=at)


def _refuse(control: Control, pipeline: str, sensor: Sensor, problem: str) -> None:
    """A foreign write that is no observation: SENSOR_INVALID, once per write. Who read an earlier one looks again."""
    message = f"sensor {sensor.key} of {pipeline} counts as absent: {problem}"
    slot = RunKey(pipeline, "", "")
    event = records.event(EventType.SENSOR_INVALID, slot, control.now(), message, key=sensor.key, reason=problem)
    records.publish_once(control, event, f"{EventType.SENSOR_INVALID}-{sensor.key}-{records.stamp(sensor)}")
    removed(control, pipeline, sensor.key)


# ------------------------------------------------------------------------------------------------------ trigger


def _triggered(control: Control, current: catalog.InForce, schedule: Schedule, sensor: Sensor) -> RunKey | None:
    """Open the run that a trigger write is for; its slot, when this opened it."""
    trigger = schedule.trigger
    if trigger is None or not key_matches(trigger.key, sensor.key):
        return None
    period = run_period(schedule, sensor)
    if isinstance(period, str):
        opening.report_invalid(control, sensor, current.config.id, period)
        return None
    key = RunKey(current.config.id, schedule.schedule_id, str(period))
    result = trigger_match(trigger, sensor, control.now())
    if result.passed:
        start = opening.Start(
            key=key,
            opened_by=f"sensor {sensor.key}: {result.reason}",
            first_arrival=sensor.received_at,
        )
        outcome = opening.open_first_with(control, current, start)
        if outcome is opening.Opened.OPENED:
            return key
        if outcome is opening.Opened.EXCLUDED:
            return None
    _remember_arrival(control, current, schedule, key, sensor.received_at)
    return None


def _begin_overwritten(
    control: Control, current: catalog.InForce, now_there: Sensor, written: Item | None, at: datetime
) -> None:
    """A trigger that was overwritten by one of another period before anybody looked at it opens its run all the same.

    Else a writer that is faster than we are would lose runs, and nobody would know. Everything else goes by what the
    sensor says now.
    """
    if written is None or written.get("data") == now_there.data or records.is_absent(now_there.key, written):
        return
    sensor = records.sensor_of(now_there.key, written)
    own = period_of_write(sensor.key, sensor.data)
    if own.problem or own.period is None or own.period == period_of_write(now_there.key, now_there.data).period:
        return
    sensor = sensor if written.get(records.RECEIVED) is not None else replace(sensor, received_at=at)
    for schedule in [] if sensor.expired(control.now()) else current.config.all_schedules:
        if current.config.dry_run:
            dry_run.begin(control, current.config, schedule, sensor)
        else:
            _triggered(control, current, schedule, sensor)


def _remember_arrival(
    control: Control, current: catalog.InForce, schedule: Schedule, key: RunKey, arrived: datetime
) -> None:
    """The first write of the trigger sensor for a run starts the clock of maxDuration, even if it does not open it."""
    if current.config.sla is None or current.config.sla.max_duration is None:
        return
    if catalog.calendar_reason(control.store, schedule, key.period) is not None:
        return

    def decide() -> tuple[None, list[Write]]:
        before = records.get_sla(control.store, key)
        run = records.get_run(control.store, key)
        if run is not None and (run.first_completed_at is not None or run.sla_closed):
            return None, []
        attempt = run.attempt if run is not None else 1
        if before is None and opening.sla_was_alerted(control.store, key, attempt, control.now()):
            return None, []
        if before is not None and (before.first_arrival is not None or before.outcome is not None):
            return None, []
        state = _with_arrival(control, key, run, before, arrived)
        if state is None:
            return None, []
        # A run that completes meanwhile closes the SLA state it knows of: it must know of this one, or be seen here.
        same = Missing() if run is None else Matches({"version": run.version})
        return None, [records.put_sla(state, before), Require(records.run_record(key, keys.RUN), same)]

    records.settle_commit(control, decide)


def _with_arrival(
    control: Control, key: RunKey, run: Run | None, before: SlaState | None, arrived: datetime
) -> SlaState | None:
    """The SLA of a period with its first arrival: by the config that its run was opened with, if it has one."""
    if run is None:
        terms = promises.terms_of(control.store, catalog.stored(control.store, key.pipeline))
        return promises.promised(control.store, terms, key, before, arrived)
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    if config.sla is None or config.sla.max_duration is None:
        return None
    if before is not None:
        return sla.with_arrival(before, config.sla, arrived)
    schedule = config.schedule_of(key.schedule)
    return sla.state_of(config.sla, schedule, key, run.config_version, arrived, tick_at=run.tick_at)


def watch_after_completion(control: Control, run: Run) -> None:
    """A completed run whose post-run rules are re-checked on a timer, too."""
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    if config.post_run is None or config.post_run.evaluation is None or run.ended_at is None:
        return
    at = run.ended_at + config.post_run.evaluation.interval
    if at <= run.ended_at + config.post_run.evaluation.window:
        control.timers.arm(after_run.recheck_timer(run, at))

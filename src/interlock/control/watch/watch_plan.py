"""When could the watchdog next find something, if nothing is written until then?

The simulation skips passes that can find nothing; that is what makes a year take seconds. The answer may be too early
(a pass for nothing), never too late: every instant that a check of `watchdog` compares with `now` is among the
candidates here.
"""

from collections.abc import Iterator
from datetime import datetime, time, timedelta

from interlock.control import catalog, promises, records, reruns
from interlock.control.context import Control
from interlock.decide import cron, early_ends, sla, watchdog
from interlock.decide.expected import expected_granularity
from interlock.model import keys
from interlock.model.config import Check, PipelineConfig, Schedule, clock_time
from interlock.model.keys import Table
from interlock.model.periods import Granularity, period_of
from interlock.model.times import local_time_on, parse_instant, to_local, zone


def next_look(control: Control) -> datetime | None:
    """The first instant after now at which some check could come to another verdict; None when none ever could."""
    pipelines = [*control.store.pipelines(), *catalog.retired(control.store)]
    found = (next_look_at(control, pipeline) for pipeline in pipelines)
    return min((at for at in found if at is not None), default=None)


def next_look_at(control: Control, pipeline: str) -> datetime | None:
    """The same of one pipeline, that is there or has been removed."""
    now = control.now()
    config = catalog.current(control.store, pipeline)
    found = [at for at in _of_records(control, pipeline) if at > now]
    if config is not None and not config.dry_run:
        for schedule in config.all_schedules:
            found += [at for at in _of_schedule(control, config, schedule, now) if at > now]
    return min(found, default=None)


def _of_records(control: Control, pipeline: str) -> Iterator[datetime]:
    """The ends of executions, leases, retries, awaited post-run data, requests that nobody decides."""
    pk = keys.pipeline_pk(pipeline)
    for key in records.active_runs(control.store, pipeline):
        run = records.get_run(control.store, key)
        if run is not None:
            yield from (at for at in (run.lease_until, run.retry_at) if at is not None)
            if run.lease_until is not None:
                yield run.lease_until - control.settings.lease_margin
            yield early_ends.followed_from(run)
    for _, asked in reruns.undecided(control.store, pipeline):
        yield asked.at + reruns.LOST_AFTER
    for record in control.store.query(Table.CONTROL, pk, keys.AWAITED):
        due = parse_instant(record.item.get("dueAt"))
        if due is not None:
            yield due


def _of_schedule(control: Control, config: PipelineConfig, schedule: Schedule, now: datetime) -> Iterator[datetime]:
    """SLA alerts; ticks and what is due after them; new days and hours; deadlines; a sensor with a time that ages."""
    for state in records.recent_sla(control.store, config.id, schedule.schedule_id):
        yield from sla.next_instants(state).values()
    tz = zone(schedule.timezone)
    local = to_local(now, tz)
    grace = control.settings.missed_grace
    if schedule.trigger is not None and schedule.trigger.check in (Check.AGE_GT, Check.AGE_LT):
        yield now + timedelta(seconds=1)  # an age changes by itself, at every turn
    days = [local.date() + timedelta(days=offset) for offset in (-1, 0, 1)]
    if schedule.cron is not None:
        ticks = [cron.previous_tick(schedule, now), cron.next_tick(schedule, now)]
        for tick in ticks:
            if tick is not None:
                yield tick.at
                yield tick.at + grace
    times = [time()] + [clock_time(text) for text in (schedule.time, _clock_deadline(schedule)) if text]
    for at in (local_time_on(day, one, tz) for day in days for one in times):
        yield at
        yield at + grace
    if _hourly(control, config, schedule):
        hour = period_of(local, Granularity.HOUR)
        for one in (hour, hour.shifted(1)):
            yield one.start(tz)
            deadline = watchdog.trigger_deadline(schedule.trigger, schedule, one) if schedule.trigger else None
            before = (
                watchdog.trigger_deadline(schedule.trigger, schedule, one.shifted(-1)) if schedule.trigger else None
            )
            yield from (at for at in (deadline, before) if at is not None)


def _clock_deadline(schedule: Schedule) -> str | None:
    deadline = schedule.trigger.deadline if schedule.trigger else None
    return deadline if deadline is not None and not deadline.startswith(":") else None


def _hourly(control: Control, config: PipelineConfig, schedule: Schedule) -> bool:
    latest = promises.latest_of(control.store, config.id, schedule.schedule_id)
    return expected_granularity(schedule, config.sla, latest) is not Granularity.DAY

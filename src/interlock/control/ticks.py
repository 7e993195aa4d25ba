"""What the clock opens: cron ticks and inclusion dates (SPEC 2).

A schedule has a place: the instant up to which its ticks were delivered. Who keeps the places is the runtime's choice:
the embedded runtime keeps them in memory (`calendar_clock`), `tick_timers` in the store, with a timer armed
for what comes next. What follows from a place, and what a config or calendar change does to it, is decided here.

Delivering the same tick again does nothing: the run is there. A tick that was missed while the controller was down is
delivered late while `now < tick + window`; after that check 2 of the watchdog reports it, or, where the calendar
withholds the run, its exclusion is reported. The watchdog delivers what is overdue before it looks for what is missing,
so that it never reports a tick that is about to be delivered.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

import msgspec

from interlock.control import catalog, records
from interlock.control.attempts import opening
from interlock.control.context import Control
from interlock.decide import calendars, cron
from interlock.model.config import PipelineConfig, Schedule, clock_time
from interlock.model.keys import RunKey
from interlock.model.times import local_time_on, to_local, zone

_AHEAD = timedelta(days=400)


class Due(msgspec.Struct, frozen=True):
    """An instant at which a schedule opens a run; `day` is the day the calendar is asked about."""

    at: datetime
    run_date: str
    day: date
    why: str
    tick: bool


class Place(msgspec.Struct, frozen=True):
    """How far a schedule is: what was due at or before `done_to` was delivered, or was too late.

    `next_at`: the first instant after that, where finding `done_to` has shown it.
    """

    config: PipelineConfig
    schedule: Schedule
    done_to: datetime
    next_at: datetime | None = None


Kept = Callable[[Schedule], datetime | None]
"""Up to where a schedule was delivered; None when it is new or changed, so that it begins anew."""


def places(control: Control, pipeline: str, kept: Kept) -> list[Place]:
    """The places of a pipeline's schedules by its config of now; none while it is deleted, invalid or a dry run."""
    return places_by(control, catalog.stored(control.store, pipeline), kept)


def places_by(control: Control, found: catalog.Stored | None, kept: Kept) -> list[Place]:
    """As `places`, by a config that was read already."""
    if found is None:
        return []
    return _places(control, found, catalog.first_applied(control.store, found), catalog.first_started(control), kept)


def places_of(control: Control, found: Sequence[catalog.Stored], kept: Callable[[str], Kept]) -> dict[str, list[Place]]:
    """The places of many pipelines by configs that were read already, in a few reads."""
    started = catalog.first_started(control)
    applied = catalog.first_applied_of_all(control.store, found)
    return {
        one.pipeline: _places(control, one, first, started, kept(one.pipeline))
        for one, first in zip(found, applied, strict=True)
    }


def _places(
    control: Control, found: catalog.Stored, applied: datetime | None, started: datetime, kept: Kept
) -> list[Place]:
    if found.config is None or found.config.dry_run:
        return []
    since = max(started, applied or control.now())
    return [_place(control, found.config, schedule, since, kept(schedule)) for schedule in found.config.all_schedules]


def _place(
    control: Control, config: PipelineConfig, schedule: Schedule, since: datetime, kept: datetime | None
) -> Place:
    """Where it was left; or else just before the first instant that may still be delivered, or now."""
    if kept is not None:
        return Place(config, schedule, kept)
    now = control.now()
    due = next_due(control, schedule, _still_in_time(schedule, since, now))
    next_at = due.at if due is not None else None
    late = next_at is not None and next_at <= now
    return Place(config, schedule, next_at - next_at.resolution if next_at is not None and late else now, next_at)


def deliver_until(control: Control, place: Place, until: datetime) -> int:
    """Open what has come since a schedule's place; how many instants it was. Made again after a failure, or by two at
    once, it does nothing new.
    """
    found = due_between(control, place.schedule, place.done_to, until)
    for due in found:
        deliver(control, place.config, place.schedule, due)
    return len(found)


def opens_by_clock(schedule: Schedule) -> bool:
    """Does the clock open runs of a schedule: by a cron, or by inclusion dates without a trigger?"""
    return schedule.cron is not None or (schedule.include is not None and schedule.trigger is None)


def next_due(control: Control, schedule: Schedule, after: datetime) -> Due | None:
    """The first instant after `after` at which this schedule opens a run by the clock."""
    if schedule.cron is not None:
        tick = cron.next_tick(schedule, after)
        return None if tick is None else _of_tick(schedule, tick)
    return next(iter(_inclusions(control, schedule, after, after + _AHEAD)), None)


def due_between(control: Control, schedule: Schedule, after: datetime, until: datetime) -> list[Due]:
    """Every such instant of after < at <= until."""
    if schedule.cron is not None:
        return [_of_tick(schedule, tick) for tick in cron.ticks_between(schedule, after, until)]
    return _inclusions(control, schedule, after, until)


def _of_tick(schedule: Schedule, tick: cron.Tick) -> Due:
    why = f"cron {schedule.cron} at {tick.local:%Y-%m-%d %H:%M} {schedule.timezone}"
    return Due(tick.at, str(tick.period), tick.local.date(), why, tick=True)


def _inclusions(control: Control, schedule: Schedule, after: datetime, until: datetime) -> list[Due]:
    """Inclusion dates without a trigger open at `time` on the date; excluded dates come, too, and are reported then."""
    if schedule.include is None or schedule.trigger is not None:
        return []
    tz, at = zone(schedule.timezone), clock_time(schedule.time or "00:00")
    named = catalog.calendars_for(control.store, schedule)
    days = calendars.listed_days(schedule, named, to_local(after, tz).date(), to_local(until, tz).date())
    found = [Due(local_time_on(day, at, tz), str(day), day, f"inclusion date {day}", tick=False) for day in days]
    return [one for one in found if after < one.at <= until]


def deliver(control: Control, config: PipelineConfig, schedule: Schedule, due: Due) -> opening.Opened | None:
    """Open the run of an instant that has come; None when it came too late."""
    key = RunKey(config.id, schedule.schedule_id, due.run_date)
    if control.now() >= due.at + late_by(schedule):
        reason = calendars.withheld(schedule, catalog.calendars_for(control.store, schedule), due.day)
        if reason is not None:  # the watchdog reports no missed tick on such a day
            opening.report_excluded(control, key, reason)
        return None
    start = opening.Start(key=key, opened_by=due.why, tick_at=due.at if due.tick else None)
    return opening.open_first(control, start)


def late_by(schedule: Schedule) -> timedelta:
    """How long after its instant a tick may still be delivered."""
    return max(schedule.evaluation.window, timedelta(minutes=1))


def overdue(control: Control, config: PipelineConfig, schedule: Schedule, since: datetime) -> list[Due]:
    """What should have been delivered and may still be: instants of the last `window`, none before `since`."""
    now = control.now()
    return due_between(control, schedule, _still_in_time(schedule, since, now), now)


def _still_in_time(schedule: Schedule, since: datetime, now: datetime) -> datetime:
    """Just before the first instant that may still be delivered."""
    return max(since, now - late_by(schedule)) - timedelta(milliseconds=1)


def deliver_overdue(control: Control, config: PipelineConfig, schedule: Schedule, since: datetime) -> None:
    """Deliver what should have been delivered already, whoever was to do it, unless the calendar withholds it."""
    named = catalog.calendars_for(control.store, schedule)
    for due in overdue(control, config, schedule, since):
        key = RunKey(config.id, schedule.schedule_id, due.run_date)
        if calendars.withheld(schedule, named, due.day) is None and records.get_run(control.store, key) is None:
            deliver(control, config, schedule, due)

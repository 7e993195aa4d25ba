"""Which periods of a schedule should have a run, whether or not anything has opened it (SPEC 2).

A cron says it by its ticks. Elsewhere the days say it, or the hours: what the config declares or, where it is silent,
what a `:MM` deadline or the latest runs say. SLA, deadlines and missed checks all ask here, when they look ahead and
again at the instant of an alert, so that they never disagree.
"""

from collections.abc import Callable, Sequence
from typing import Final

from interlock.decide import cron
from interlock.decide.calendars import Calendars, exclusion, withheld
from interlock.model.config import Schedule, Sla, past_the_hour
from interlock.model.periods import Granularity, Period
from interlock.model.times import zone

# Three hourly runs say that hours are expected. One more is looked at: a single write of the other kind, in between,
# must not change what is expected.
LATEST: Final = 4
_ENOUGH: Final = 3

Latest = Callable[[], Sequence[Period]]
"""The periods of the latest runs of the schedule, newest first, at most `LATEST`. Asked only where they matter."""


def declared_granularity(schedule: Schedule) -> Granularity | None:
    """How long the periods of a schedule are, where its config says so."""
    if schedule.cron is not None:
        return cron.granularity(schedule.cron)
    return None if schedule.granularity is None else Granularity(schedule.granularity)


def expected_granularity(schedule: Schedule, sla: Sla | None, latest: Latest) -> Granularity:
    """How long the periods are that should have a run: days, unless something says otherwise."""
    declared = declared_granularity(schedule)
    if declared is not None:
        return declared
    if schedule.include is not None and schedule.trigger is None:
        return Granularity.DAY
    if any(past_the_hour(deadline) for deadline in _deadlines(schedule, sla)):
        return Granularity.HOUR
    hours = sum(one.granularity is Granularity.HOUR for one in latest()[:LATEST])
    return Granularity.HOUR if hours >= _ENOUGH else Granularity.DAY


def _deadlines(schedule: Schedule, sla: Sla | None) -> tuple[str | None, ...]:
    trigger = schedule.trigger.deadline if schedule.trigger is not None else None
    return (trigger,) if sla is None else (trigger, sla.deadline, sla.ready_by)


def calendar_reason(schedule: Schedule, calendars: Calendars, period: Period) -> str | None:
    """Why the calendar withholds the run of a period: a tick is asked for by its own day, any other by the run's."""
    if schedule.exclude is None and schedule.include is None:
        return None
    if schedule.cron is None:
        return withheld(schedule, calendars, period.day)
    tick = cron.tick_of_period(schedule, period)
    return exclusion(schedule, calendars, period.day if tick is None else tick.local.date())


def is_expected(schedule: Schedule, sla: Sla | None, period: Period, latest: Latest) -> bool:
    """Should there be a run of this period, as far as cron and granularity say? The calendar is asked apart."""
    if schedule.cron is not None:
        return cron.tick_of_period(schedule, period) is not None
    return period.exists(zone(schedule.timezone)) and period.granularity is expected_granularity(schedule, sla, latest)


def expected_in(schedule: Schedule, sla: Sla | None, day: Period, latest: Latest) -> list[Period]:
    """The expected periods of a day of a schedule without cron: the day itself, or the hours that it has."""
    if expected_granularity(schedule, sla, latest) is Granularity.DAY:
        return [day]
    tz = zone(schedule.timezone)
    return [hour for hour in day.hours() if hour.exists(tz)]

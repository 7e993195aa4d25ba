"""Writes that name no period: until when they may re-open a run, and which of them a run reads (SPEC 3).

Such a write is about the time it came in. While a run is current that is the run's own time; later it is the next
one's: today's "ready" must not start yesterday's job on today's data. Attempts that wait, and reruns that somebody asks
for, are not limited by this; but a rerun of a past period says which of these sensors it reads.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from interlock.decide import cron
from interlock.decide.sensors import period_of_write
from interlock.model.config import Schedule
from interlock.model.periods import Granularity, Period, period_of
from interlock.model.run import Run
from interlock.model.sensor import Sensor
from interlock.model.times import to_local, zone

_AT_LEAST: Final = timedelta(hours=12)


def reopens_until(schedule: Schedule, period: Period, opened_at: datetime, tick_at: datetime | None) -> datetime:
    """The first instant at which a write without a period of its own can no longer re-open a run.

    The end of the local day (of the hour, where periods are shorter than days) of its tick or, without one, of its
    opening. A daily tick has 12 hours at least, for it may come in the evening; the next tick ends it in any case.
    """
    tz = zone(schedule.timezone)
    ticked = tick_at or _tick_at(schedule, period)
    length = Granularity.DAY if period.granularity is Granularity.DAY else Granularity.HOUR
    until = period_of(to_local(ticked or opened_at, tz), length).end(tz)
    if schedule.cron is None or ticked is None:
        return until
    if length is Granularity.DAY:
        until = max(until, ticked + _AT_LEAST)
    following = cron.next_tick(schedule, ticked)
    return until if following is None else min(until, following.at)


def _tick_at(schedule: Schedule, period: Period) -> datetime | None:
    tick = cron.tick_of_period(schedule, period) if schedule.cron is not None else None
    return None if tick is None else tick.at


def is_past(schedule: Schedule, period: Period, run: Run | None, now: datetime) -> bool:
    """Is a write of now, if it names no period, about a later period than this?"""
    if run is not None:
        return now >= reopens_until(schedule, period, run.first_opened_at, run.tick_at)
    if _tick_at(schedule, period) is None:
        return now >= period.end(zone(schedule.timezone))
    return now >= reopens_until(schedule, period, now, None)


def keys_without_period(found: Iterable[Sensor]) -> list[str]:
    """The keys of the observations that name no period of their own."""
    return sorted({one.key for one in found if period_of_write(one.key, one.data).period is None})

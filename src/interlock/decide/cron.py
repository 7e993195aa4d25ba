"""Cron ticks: which local times a schedule names, when they are, and which run each one opens (SPEC 2).

Cron arithmetic is done on the naive wall clock, and each local time is then placed in the schedule's zone: in a gap it
is the first moment after, in an overlap the earlier of the two. So a repeated local hour ticks once, and what a run is
for depends on its scheduled local time alone, never on the instant it was delivered.

A tick is a run, and the other way round: no two ticks of a schedule have the same period. A tick whose period the
clocks skip is no tick, since there is nothing for its run to be about. Along the ticks of a schedule `local` strictly
increases and `at` never decreases; two ticks may share one instant (`45 * * * *` in Pacific/Chatham, whose clocks skip
from 02:45 to 03:45), which is why ticks are delivered with `ticks_between` and not by chaining `next_tick`.
"""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import TYPE_CHECKING, Final

import msgspec

from interlock.model.config import Schedule
from interlock.model.errors import InvalidValueError
from interlock.model.periods import Granularity, Period, period_of
from interlock.model.times import to_local, to_utc, zone

if TYPE_CHECKING:
    # Loaded by the first cron expression: a function that meets none starts sooner.
    from cronsim import CronSim

_SECOND: Final = timedelta(seconds=1)
_FIELDS: Final = ("minute", "hour", "day-of-month", "month", "day-of-week")
_ADVICE: Final = "write five fields (minute hour day-of-month month day-of-week), for example '0 8 * * 1-5'"
# What crontab has names for. A config says which minute and hour it means.
MACROS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
# A search ends after so many years without a match. The rarest expressions that fire at all (a weekday on 29 February)
# have gaps of at most 40 years, around 2100, so any starting point tells "rarely" from "never".
_YEARS_WITHOUT: Final = 50
_MONTHS: Final = 12
_REFERENCE: Final = datetime.combine(date(2000, 1, 1), time())
# A zone or a period may reach two days beyond a local time; nearer than this to the ends of the calendar nothing ticks.
_FIRST: Final = datetime.combine(date.min + timedelta(days=3), time())
_LAST: Final = datetime.combine(date.max - timedelta(days=3), time())


class Tick(msgspec.Struct, frozen=True):
    """One firing: `local` as scheduled (naive), `at` the instant (UTC), `period` what its run is for."""

    local: datetime
    at: datetime
    period: Period


def check_cron(expr: str) -> None:
    """Raise InvalidValueError unless this is a five-field cron expression that fires."""
    _parsed(expr)


@lru_cache(maxsize=4096)
def granularity(expr: str) -> Granularity:
    """How long the periods of a schedule are, by the smallest gap between its ticks on the wall clock."""
    # This equals measuring the gaps. Every day that fires has the same times, {hours} x {minutes}:
    # two minutes lie less than an hour apart in each hour that fires; with one minute all gaps are whole hours, and two
    # hours lie less than a day apart in each day that fires; with one of each all gaps are whole days.
    parsed = _parsed(expr)
    if len(parsed.minutes) > 1:
        return Granularity.MINUTE
    return Granularity.HOUR if len(parsed.hours) > 1 else Granularity.DAY


@lru_cache(maxsize=4096)
def shortest_gap(expr: str) -> timedelta:
    """The least time between two ticks on the wall clock, among the first hundred."""
    ticks = list(islice(local_times(expr, _REFERENCE), 100))
    return min((later - earlier for earlier, later in pairwise(ticks)), default=timedelta.max)


def next_tick(schedule: Schedule, after: datetime) -> Tick | None:
    """The first tick later than an instant."""
    return next(ticks_after(schedule, after), None)


def ticks_after(schedule: Schedule, after: datetime) -> Iterator[Tick]:
    """The ticks later than an instant, in order, as far as the calendar goes."""
    return _ticks_after(schedule, _cron_of(schedule), after)


def previous_tick(schedule: Schedule, before: datetime) -> Tick | None:
    """The last tick at or before an instant."""
    expr, tz = _cron_of(schedule), zone(schedule.timezone)
    local = to_local(before, tz)
    # In the second pass of a repeated hour, local times later than the clock shows have already ticked, in the first
    # pass. They lie at most as far ahead as the clocks were put back, which is how long ago this local time was first.
    ahead = before - to_utc(local, tz)
    for scheduled in local_times(expr, local + ahead + _SECOND, reverse=True):
        tick = _tick(schedule, expr, scheduled)
        if tick is not None and tick.at <= before:
            return tick
    return None


def ticks_between(schedule: Schedule, after: datetime, until: datetime) -> Iterator[Tick]:
    """The ticks later than `after` and not later than `until`, in order."""
    return takewhile(lambda tick: tick.at <= until, ticks_after(schedule, after))


def ticks_on(schedule: Schedule, day: date) -> list[Tick]:
    """The ticks whose scheduled local time lies on a day. For many days of many schedules: searching takes longer."""
    expr = _cron_of(schedule)
    minute, hour, days = expr.split(maxsplit=2)
    if day not in _days_in(days, day.year, day.month):
        return []
    locals_ = (datetime.combine(day, at) for at in _times_of(minute, hour))
    ticks = (_tick(schedule, expr, local) for local in locals_ if _FIRST < local < _LAST)
    return [tick for tick in ticks if tick is not None]


def tick_of_period(schedule: Schedule, period: Period) -> Tick | None:
    """The tick that opens the run of this period, None if the schedule has no such run."""
    expr = _cron_of(schedule)
    start = period.at if schedule.period == "current" else period.ends
    scheduled = next(local_times(expr, start - _SECOND), None)
    tick = None if scheduled is None else _tick(schedule, expr, scheduled)
    return tick if tick is not None and tick.period == period else None


def _ticks_after(schedule: Schedule, expr: str, after: datetime) -> Iterator[Tick]:
    # No local time up to the one the clock shows at `after` ticks later than `after`, so nothing is overlooked;
    # in a repeated hour later ones may have ticked already, in the first pass.
    for scheduled in local_times(expr, to_local(after, zone(schedule.timezone))):
        tick = _tick(schedule, expr, scheduled)
        if tick is not None and tick.at > after:
            yield tick


# Every day that fires has the same times, so days and times are found apart, and kept: most schedules share them.


def local_times(expr: str, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    """The naive local times of an expression after `start` (in reverse: before it, backwards)."""
    minute, hour, days = expr.split(maxsplit=2)
    every = _times_of(minute, hour)
    first, clock = start.date(), start.time()
    for day in _days_from(days, first, reverse=reverse):
        times = every
        if day == first:
            times = every[: bisect_left(every, clock)] if reverse else every[bisect_right(every, clock) :]
        for at in reversed(times) if reverse else times:
            local = datetime.combine(day, at)
            if not _FIRST < local < _LAST:
                return
            yield local


def _days_from(fields: str, first: date, *, reverse: bool) -> Iterator[date]:
    """The days that fire, from `first` on; none any more once 50 years have passed without any."""
    year, month = first.year, first.month
    last = year
    while date.min.year <= year <= date.max.year and abs(year - last) <= _YEARS_WITHOUT:
        days = _days_in(fields, year, month)
        if (year, month) == (first.year, first.month):
            days = tuple(day for day in days if (day <= first if reverse else day >= first))
        if days:
            last = year
            yield from reversed(days) if reverse else days
        month += -1 if reverse else 1
        if not 1 <= month <= _MONTHS:
            year, month = (year - 1, _MONTHS) if reverse else (year + 1, 1)


@lru_cache(maxsize=16_384)
def _days_in(fields: str, year: int, month: int) -> tuple[date, ...]:
    """The days of a month that `day-of-month month day-of-week` names."""
    parsed = _fields(f"0 0 {fields}")
    if month not in parsed.months:
        return ()
    days = (date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1))
    return tuple(day for day in days if parsed.match_day(day))


@lru_cache(maxsize=4096)
def _times_of(minute: str, hour: str) -> tuple[time, ...]:
    """The times of a day that fires, in order."""
    parsed = _fields(f"{minute} {hour} * * *")
    return tuple(time(at, past) for at in sorted(parsed.hours) for past in sorted(parsed.minutes))


@lru_cache(maxsize=4096)
def _fields(expr: str) -> "CronSim":
    from cronsim import CronSim

    return CronSim(expr, _REFERENCE)


def _tick(schedule: Schedule, expr: str, local: datetime) -> Tick | None:
    tz = zone(schedule.timezone)
    period = _run_period(schedule, expr, local)
    if period is None or not period.exists(tz):
        return None
    return Tick(local, to_utc(local, tz), period)


def _run_period(schedule: Schedule, expr: str, local: datetime) -> Period | None:
    own = period_of(local, granularity(expr))
    if schedule.period == "current":
        return own
    if own.granularity is not Granularity.MINUTE:
        return own.shifted(-1)
    # The minute before is not a period of this schedule: `previous` means the tick before.
    before = next(local_times(expr, local, reverse=True), None)
    return None if before is None else period_of(before, Granularity.MINUTE)


def _cron_of(schedule: Schedule) -> str:
    if schedule.cron is None:
        raise InvalidValueError(f"schedule {schedule.schedule_id!r} has no cron: it has no ticks to ask for")
    check_cron(schedule.cron)
    return schedule.cron


@lru_cache(maxsize=4096)
def _parsed(expr: str) -> "CronSim":
    from cronsim import CronSimError

    fields = expr.split()
    macro = MACROS.get(expr.strip().lower())
    if macro is not None:
        raise InvalidValueError(f"cron {expr!r} is not read here: write {macro!r}")
    if len(fields) != len(_FIELDS):
        # cronsim reads six fields too, the first for seconds; a period shorter than a minute does not exist here.
        raise InvalidValueError(f"cron {expr!r} has {len(fields)} field(s), not five: {_ADVICE}")
    try:
        parsed = _fields(expr)
    except CronSimError as error:
        raise InvalidValueError(_explanation(expr, fields, str(error))) from error
    except ValueError as error:
        raise InvalidValueError(f"cron {expr!r} has a number that is far too large: {_ADVICE}") from error
    if next(_days_from(" ".join(fields[2:]), _REFERENCE.date(), reverse=False), None) is None:
        raise InvalidValueError(_never(expr))
    return parsed


def _explanation(expr: str, fields: list[str], problem: str) -> str:
    """cronsim's `Bad hour` as a sentence that quotes the field."""
    name = problem.removeprefix("Bad ")
    if name == "day-of-month" and _readable(f"0 0 {fields[2]} * *"):
        # The day itself can be read: cronsim says the same of a day that none of the months has.
        return _never(expr)
    return f"cron {expr!r}: {fields[_FIELDS.index(name)]!r} is not a valid {name}: {_ADVICE}"


def _readable(expr: str) -> bool:
    from cronsim import CronSimError

    try:
        _fields(expr)
    except CronSimError:
        return False
    return True


def _never(expr: str) -> str:
    return f"cron {expr!r} never fires: no date matches its day-of-month, month and day-of-week; change one of them"

"""Can a schedule have a run of this period at all? (SPEC 5: a rerun may be for a date that never ran.)

A day on an hourly schedule, an hour on a daily one, a minute between two ticks, an hour that the clocks skip: a job
started for such a period works on data that nobody else means by it. The answer names the nearest periods that are
real, since one of them was meant.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from interlock.decide import cron
from interlock.decide.expected import declared_granularity
from interlock.model.config import PipelineConfig, Schedule
from interlock.model.periods import Granularity, Period, period_of
from interlock.model.times import zone

_A_MOMENT: Final = timedelta(seconds=1)
_END: Final = datetime.max.replace(tzinfo=UTC)


class NoSuchPeriod(msgspec.Struct, frozen=True):
    """Why there is no run of a period, in one sentence, and the nearest ones there are."""

    reason: str
    nearest: tuple[Period, ...]

    def __str__(self) -> str:
        if not self.nearest:
            return self.reason
        return f"{self.reason}; the nearest: {' and '.join(str(one) for one in self.nearest)}"


def no_such_period(config: PipelineConfig, schedule: Schedule, period: Period) -> NoSuchPeriod | None:
    """Why a schedule of a pipeline never has a run of this period; None when it may have one."""
    wanted = _granularity(schedule)
    if wanted is not None and period.granularity is not wanted:
        reason = f"{period} is one {period.granularity}, but each run of {config.id} is for one {wanted}"
        return NoSuchPeriod(reason, _nearest(schedule, period, wanted))
    if not period.exists(zone(schedule.timezone)):
        reason = f"{period} does not exist in {schedule.timezone}: the clocks skip it"
        return NoSuchPeriod(reason, _nearest(schedule, period, period.granularity))
    if _only_ticks(config, schedule) and cron.tick_of_period(schedule, period) is None:
        reason = f"the cron {schedule.cron} has no tick for {period}"
        return NoSuchPeriod(reason, _nearest(schedule, period, period.granularity))
    return None


def _granularity(schedule: Schedule) -> Granularity | None:
    if schedule.include is not None and schedule.trigger is None:
        return Granularity.DAY
    return declared_granularity(schedule)


def _only_ticks(config: PipelineConfig, schedule: Schedule) -> bool:
    """Does nothing but its cron open the runs of a schedule? A sensor or an upstream may name any day."""
    return schedule.cron is not None and schedule.trigger is None and not config.after


def _nearest(schedule: Schedule, period: Period, wanted: Granularity) -> tuple[Period, ...]:
    """The first and the last real period within this one, or the one that holds it; else those before and after it."""
    found = (
        _of_ticks(schedule, period, wanted) if schedule.cron is not None else _of_the_clock(schedule, period, wanted)
    )
    return tuple(sorted(dict.fromkeys(found)))


def _of_the_clock(schedule: Schedule, period: Period, wanted: Granularity) -> list[Period]:
    tz = zone(schedule.timezone)
    if wanted.length > period.granularity.length:
        return [period_of(period.at, wanted)]
    if wanted.length < period.granularity.length:
        inside = [one for one in period.hours() if one.exists(tz)]
        return [inside[0], inside[-1]]
    return [next(one for one in _steps(period, by) if one.exists(tz)) for by in (-1, 1)]


def _steps(period: Period, by: int) -> Iterator[Period]:
    while True:
        period = period.shifted(by)
        yield period


def _of_ticks(schedule: Schedule, period: Period, wanted: Granularity) -> list[Period]:
    # From the beginning of what holds this period: no earlier tick is for it, nor for anything in it.
    start = period_of(period.at, wanted).start(zone(schedule.timezone))
    earlier = cron.previous_tick(schedule, start - _A_MOMENT)
    before = None if earlier is None else earlier.period
    after: Period | None = None
    inside: list[Period] = []
    for tick in cron.ticks_between(schedule, start - _A_MOMENT, _END):
        if tick.period.at >= period.ends:
            after = tick.period
            break
        if tick.period.ends > period.at:
            inside.append(tick.period)
        else:
            before = tick.period
    found = inside or [one for one in (before, after) if one is not None]
    return found[:1] + found[-1:]

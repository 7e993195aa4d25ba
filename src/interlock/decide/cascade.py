"""Which downstream run an upstream's completion is for, and what that run still waits for (SPEC 9).

A marker says that an upstream completed a period. A downstream run opens when the markers of all its `after` entries
are there, so every function here is about one entry or about one period, never about the order in which markers came.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta, tzinfo
from itertools import takewhile
from typing import Any, Final

from interlock.decide.calendars import Calendars, exclusion, withheld
from interlock.decide.cron import ticks_after
from interlock.decide.expected import declared_granularity
from interlock.model.config import PipelineConfig, Schedule, Upstream
from interlock.model.periods import Granularity, Period, day_period, parse_period, period_of
from interlock.model.run import Marker
from interlock.model.times import format_instant, zone

# What a rule can read of `upstream:<pipeline>`.
UPSTREAM_FIELDS: Final = ("status", "date", "completedAt", "attempt")
_A_SECOND: Final = timedelta(seconds=1)
_NAMED: Final = 6  # of the hours awaited, how many are named; a whole day of them is noise


def wanted_periods(entry: Upstream, downstream: Schedule, upstream_date: Period) -> Period | None:
    """The downstream period that a marker of this upstream period contributes to; None when it fits none.

    A cron or `granularity` fixes how long the downstream's periods are: a daily one has no use for the marker of an
    hour.
    """
    period = upstream_date if entry.require == "same-period" else day_period(upstream_date.day)
    return period if declared_granularity(downstream) in (None, period.granularity) else None


def existing_hours(day: Period, tz: tzinfo) -> tuple[Period, ...]:
    """The hours of a local day, without those the clocks skip."""
    return tuple(hour for hour in day.hours() if hour.exists(tz))


def expected_hours(
    upstream: PipelineConfig | None, day: Period, calendars: Calendars, tz: tzinfo
) -> tuple[Period, ...]:
    """The periods of a local day for which the upstream has runs: what `all-hours` waits for.

    With a cron: the periods of its ticks that are not excluded. Without one: every hour that exists in the downstream's
    zone `tz`, and none if the day is excluded. An upstream nobody knows is expected to run every hour: better to wait
    than to run early.
    """
    if upstream is None:
        return existing_hours(day, tz)
    crons = [schedule for schedule in upstream.all_schedules if schedule.cron is not None]
    found: set[Period] = set()
    for schedule in crons or upstream.all_schedules:
        found.update(_hours_of(schedule, day, calendars, tz))
    hourly = {period for period in found if period.granularity is not Granularity.DAY}
    # A second, daily schedule of an hourly upstream is not one of its hours.
    return tuple(sorted(hourly or found))


def _hours_of(schedule: Schedule, day: Period, calendars: Calendars, tz: tzinfo) -> Iterable[Period]:
    if schedule.cron is None:
        return () if withheld(schedule, calendars, day.day) is not None else existing_hours(day, tz)
    own = zone(schedule.timezone)
    # With `period: previous` the first tick after the day may still be for a period of the day.
    ticks = ticks_after(schedule, day.start(own) - _A_SECOND)
    return [
        tick.period
        for tick in takewhile(lambda tick: tick.period.day <= day.day, ticks)
        if tick.period.day == day.day and exclusion(schedule, calendars, tick.local.date()) is None
    ]


def missing_markers(
    after: Sequence[Upstream],
    downstream: Schedule,
    period: Period,
    have: Mapping[str, frozenset[str]],
    expected: Mapping[str, Sequence[Period]],
) -> tuple[str, ...]:
    """What the downstream run of `period` still waits for, in words; empty when it opens.

    `have`: the dates of the markers there are, by upstream; `expected`: the `expected_hours` of each all-hours one.
    """
    missing: list[str] = []
    for entry in after:
        dates = have.get(entry.pipeline, frozenset())
        if entry.require == "same-period":
            missing.extend([] if str(period) in dates else [f"{entry.pipeline} {period}"])
        else:
            hours = expected.get(entry.pipeline)
            if hours is None:
                hours = existing_hours(period, zone(downstream.timezone))
            missing.extend(_missing_hours(entry, period, dates, hours))
    if missing or _any_marker(after, period, have):
        return tuple(missing)
    # All of nothing is not a completion: on a day that every upstream sits out, so does the downstream.
    return tuple(f"{entry.pipeline} has no run on {period}" for entry in after)


def _missing_hours(entry: Upstream, period: Period, dates: frozenset[str], hours: Sequence[Period]) -> list[str]:
    if period.granularity is not Granularity.DAY:
        return [f"{entry.pipeline}: all-hours belongs to a run of a day, not of {period}"]
    absent = [str(hour) for hour in hours if dates.isdisjoint(_covering(hour))]
    if not absent:
        return []
    named = ", ".join(absent[:_NAMED]) + (f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else "")
    return [f"{entry.pipeline} {named} ({len(absent)} of {len(hours)})"]


def _covering(period: Period) -> set[str]:
    """The dates of the markers that would cover a period: its own, and those of the hour and the day it lies in."""
    longer = (one for one in Granularity if one.length >= period.granularity.length)
    return {str(period_of(period.at, one)) for one in longer}


def _any_marker(after: Sequence[Upstream], period: Period, have: Mapping[str, frozenset[str]]) -> bool:
    dates = (date for entry in after for date in have.get(entry.pipeline, frozenset()))
    return any(period.contains(parse_period(date)) for date in dates)


def upstream_sensor(
    entry: Upstream, markers: Sequence[Marker], period: Period, complete: bool
) -> dict[str, Any] | None:
    """What a rule reads as `upstream:<pipeline>` for a run of `period`; None while it is absent.

    `complete` says whether every expected hour is there; with same-period the marker itself is the answer.
    """
    if entry.require == "same-period":
        about, counted = period, [one for one in markers if one.date == str(period)]
    else:
        about = day_period(period.day)
        counted = [one for one in markers if complete and about.contains(parse_period(one.date))]
    own = [one for one in counted if one.upstream == entry.pipeline]
    if not own:
        return None
    return {
        "status": "COMPLETED",
        "date": str(about),
        "completedAt": format_instant(max(one.completed_at for one in own)),
        "attempt": max(one.attempt for one in own),
    }

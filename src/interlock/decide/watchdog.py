"""What did *not* happen (SPEC 8): the verdicts of the watchdog's checks, apart from what is done about them.

Every check asks the same question, "is an instant past at which something should have been there?", and answers it
from the config and a bounded look-back, so that its cost does not grow with history. A finding is repeated as long as
it is true; that each is alerted once is the caller's to remember. Nothing is found at an instant before `since`, the
later of the controller's first start and the pipeline's first application: nobody was watching then.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.decide.calendars import Calendars, exclusion, included_days, withheld
from interlock.decide.cron import Tick, ticks_between
from interlock.decide.expected import Latest, expected_in
from interlock.model.config import PostRun, Schedule, Sla, Trigger, clock_time, parse_clock
from interlock.model.events import EventType
from interlock.model.periods import Granularity, Period, day_period
from interlock.model.run import Run
from interlock.model.times import format_instant, local_time_on, to_local, to_utc, zone

GRACE: Final = timedelta(minutes=5)
LOOKBACK: Final = timedelta(days=3)

_A_SECOND: Final = timedelta(seconds=1)
_A_DAY: Final = timedelta(days=1)
_AN_HOUR: Final = timedelta(hours=1)

Opened = Callable[[Period], bool]
"""Is there a run of that period?"""


class Finding(msgspec.Struct, frozen=True):
    """Something that should have happened by `due_at` and did not; `detail` is the event's."""

    event: EventType
    period: Period
    due_at: datetime
    message: str
    detail: dict[str, Any]


def stale_at(run: Run) -> datetime | None:
    """When the watchdog ends this run, unless it ends first."""
    return run.lease_until if run.active else None


def stale(run: Run, now: datetime) -> Finding | None:
    """Check 1: an attempt that outlived its lease."""
    due = stale_at(run)
    if due is None or now < due:
        return None
    return Finding(
        EventType.SFN_TIMEOUT,
        run.key.period,
        due,
        f"attempt {run.attempt} is {run.status} past its lease of {format_instant(due)}: nothing drives it any more",
        {"attempt": run.attempt, "status": run.status.value, "leaseUntil": format_instant(due)},
    )


def missed_ticks(
    schedule: Schedule,
    calendars: Calendars,
    since: datetime,
    now: datetime,
    opened: Opened,
    *,
    grace: timedelta = GRACE,
    lookback: timedelta = LOOKBACK,
) -> list[Finding]:
    """Check 2: cron ticks whose run should have been opened by now."""
    if schedule.cron is None:
        return []
    findings: list[Finding] = []
    for tick in _ticks(schedule, calendars, max(since, now - lookback), now):
        due = _expected_start(schedule, tick)
        if now >= due + grace and not opened(tick.period):
            findings.append(_missed_tick(schedule, tick, due))
    return findings


def _ticks(schedule: Schedule, calendars: Calendars, first: datetime, last: datetime) -> Iterator[Tick]:
    """The ticks of first <= tick <= last that no calendar withholds."""
    for tick in ticks_between(schedule, first - _A_SECOND, last):
        if tick.at >= first and exclusion(schedule, calendars, tick.local.date()) is None:
            yield tick


def _expected_start(schedule: Schedule, tick: Tick) -> datetime:
    if schedule.time is None:
        return tick.at
    stated = local_time_on(tick.local.date(), clock_time(schedule.time), zone(schedule.timezone))
    return max(stated, tick.at)


def _missed_tick(schedule: Schedule, tick: Tick, due: datetime) -> Finding:
    local = f"{tick.local:%Y-%m-%d %H:%M} {schedule.timezone}"
    return Finding(
        EventType.SCHEDULE_MISSED,
        tick.period,
        due,
        f"the cron tick of {local} opened no run for {tick.period}, expected by {format_instant(due)}",
        {"tick": format_instant(tick.at)},
    )


def missed_inclusions(
    schedule: Schedule,
    calendars: Calendars,
    since: datetime,
    now: datetime,
    opened: Opened,
    *,
    grace: timedelta = GRACE,
    lookback: timedelta = LOOKBACK,
) -> list[Finding]:
    """Check 3: inclusion dates whose run should have been opened by now. With a cron, check 2 does it."""
    if schedule.include is None or schedule.cron is not None:
        return []
    tz, at = zone(schedule.timezone), clock_time(schedule.time or "00:00")
    first = max(since, now - lookback)
    findings: list[Finding] = []
    for day in included_days(schedule, calendars, to_local(first, tz).date(), to_local(now, tz).date()):
        due, period = local_time_on(day, at, tz), day_period(day)
        if first <= due and now >= due + grace and not opened(period):
            findings.append(_missed_inclusion(period, due))
    return findings


def _missed_inclusion(period: Period, due: datetime) -> Finding:
    return Finding(
        EventType.IRREGULAR_SCHEDULE_MISSED,
        period,
        due,
        f"the inclusion date {period} has no run, expected by {format_instant(due)}",
        {"expectedAt": format_instant(due)},
    )


def trigger_deadline(trigger: Trigger, schedule: Schedule, period: Period) -> datetime | None:
    """By when the trigger must have come for a run of `period`.

    `HH:MM` is on the run's own date; `:MM` is in the hour after the run's, so it says nothing of a whole day.
    """
    if trigger.deadline is None:
        return None
    tz = zone(schedule.timezone)
    hour, minute = parse_clock(trigger.deadline)
    if hour is not None:
        return local_time_on(period.day, clock_time(trigger.deadline), tz)
    if period.granularity is Granularity.DAY:
        return None
    return to_utc(period.at.replace(minute=minute) + _AN_HOUR, tz)


def deadlines_due(
    schedule: Schedule,
    calendars: Calendars,
    since: datetime,
    now: datetime,
    opened: Opened,
    *,
    sla: Sla | None = None,
    latest: Latest = tuple,
    lookback: timedelta = LOOKBACK,
) -> list[Finding]:
    """Check 6: periods whose trigger deadline has passed without a run."""
    trigger = schedule.trigger
    if trigger is None or trigger.deadline is None:
        return []
    first = max(since, now - lookback)
    findings: list[Finding] = []
    for period, begins in _awaited(schedule, sla, calendars, first, now, latest):
        due = trigger_deadline(trigger, schedule, period)
        # A deadline before the run could begin (`period: previous`, an afternoon hour against 09:30) cannot be kept.
        if due is not None and begins < due and first <= due <= now and not opened(period):
            findings.append(_deadline_passed(trigger, period, due))
    return findings


def _awaited(
    schedule: Schedule, sla: Sla | None, calendars: Calendars, first: datetime, now: datetime, latest: Latest
) -> Iterator[tuple[Period, datetime]]:
    """The periods a trigger may have been awaited for, each with the instant its run could begin at the earliest."""
    tz = zone(schedule.timezone)
    if schedule.cron is not None:
        # Far enough: a deadline is on the day of its tick, and no day has 48 hours.
        yield from ((tick.period, tick.at) for tick in _ticks(schedule, calendars, first - 2 * _A_DAY, now))
        return
    day, last = to_local(first, tz).date() - _A_DAY, to_local(now, tz).date()
    while day <= last:
        if withheld(schedule, calendars, day) is None:
            expected = expected_in(schedule, sla, day_period(day), latest)
            yield from ((period, period.start(tz)) for period in expected)
        day += _A_DAY


def _deadline_passed(trigger: Trigger, period: Period, due: datetime) -> Finding:
    return Finding(
        EventType.SENSOR_DEADLINE_EXPIRED,
        period,
        due,
        f"{trigger.key} did not open the run of {period} by its deadline {trigger.deadline}, {format_instant(due)}",
        {"deadline": trigger.deadline, "deadlineAt": format_instant(due)},
    )


def post_run_due_at(post_run: PostRun | None, completed_at: datetime) -> datetime | None:
    """By when post-run data must have come; None when no rule waits for any."""
    if post_run is None or not post_run.rules:
        return None
    return completed_at + post_run.sensor_timeout


def post_run_missing(completed_at: datetime, due_at: datetime, latest: datetime | None, now: datetime) -> bool:
    """Check 7: has no post-run data newer than the completion come in time? `latest`: when the newest was received."""
    return now >= due_at and (latest is None or latest <= completed_at)

"""What applying a set of configs would change, and when each pipeline starts next and must be done (SPEC 16, `plan`).

Pure: documents and calendars in, differences and instants out. Which documents are stored is the caller's to read.
"""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Final

import msgspec

from interlock.decide.calendars import Calendars, exclusion, included_days, withheld
from interlock.decide.cron import ticks_between
from interlock.decide.expected import expected_in
from interlock.decide.sla import SlaTimes, sla_times
from interlock.model.config import PipelineConfig, Schedule, Sla, clock_time
from interlock.model.durations import format_duration
from interlock.model.errors import InvalidValueError
from interlock.model.periods import Period, day_period
from interlock.model.times import local_time_on, to_local, zone

# A calendar that leaves nothing open for longer than this is said to leave nothing open.
AHEAD: Final = timedelta(days=400)
_TICKS: Final = 50_000


class ChangeKind(StrEnum):
    """What becomes of a pipeline or a calendar."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


class KeyChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value that differs; one of the two is absent when a key came or went."""

    path: str
    old: object = msgspec.UNSET
    new: object = msgspec.UNSET


class Change(msgspec.Struct, frozen=True):
    """What becomes of one name, and which of its keys differ."""

    name: str
    kind: ChangeKind
    keys: tuple[KeyChange, ...] = ()


class NextRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The next run of a schedule. Without `start_at` the clock does not open it: `opens` says what does."""

    schedule: str
    timezone: str
    opens: str
    date: str | None = None
    start_at: datetime | None = None
    ready_by_at: datetime | None = None
    warning_at: datetime | None = None
    breach_at: datetime | None = None
    notes: tuple[str, ...] = ()


# --------------------------------------------------------------------------------------------------- differences


def compare(old: Mapping[str, object], new: Mapping[str, object]) -> list[Change]:
    """What becomes of each name, by name."""
    changes: list[Change] = []
    for name in sorted({*old, *new}):
        if name not in new:
            changes.append(Change(name, ChangeKind.REMOVED))
        elif name not in old:
            changes.append(Change(name, ChangeKind.NEW))
        else:
            keys = tuple(differences(old[name], new[name]))
            changes.append(Change(name, ChangeKind.CHANGED if keys else ChangeKind.UNCHANGED, keys))
    return changes


def differences(old: object, new: object, path: str = "") -> Iterator[KeyChange]:
    """Every value that differs, at the deepest path both have."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*old, *new]):
            inner = f"{path}.{name}" if path else str(name)
            yield from differences(old.get(name, msgspec.UNSET), new.get(name, msgspec.UNSET), inner)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before, after = (one[index] if index < len(one) else msgspec.UNSET for one in (old, new))
            yield from differences(before, after, f"{path}[{index}]")
    elif type(old) is not type(new) or old != new:
        yield KeyChange(path, old, new)


# ----------------------------------------------------------------------------------------------------- next runs


def next_runs(config: PipelineConfig, calendars: Calendars, now: datetime) -> list[NextRun]:
    """The next run of every schedule of a pipeline."""
    return [next_run(config, schedule, calendars, now) for schedule in config.all_schedules]


def next_run(config: PipelineConfig, schedule: Schedule, calendars: Calendars, now: datetime) -> NextRun:
    """When this schedule starts next, or what will start it, and by when that run must be done."""
    found = next_start(schedule, calendars, now)
    opens = opened_by(config, schedule)
    notes = list(_notes(config, schedule))
    start, period = found or (None, _awaited_period(config, schedule, calendars, now))
    if period is None:
        notes.append(f"no day of the next {AHEAD.days} is open to it: look at its calendars")
    base = NextRun(schedule=schedule.schedule_id, timezone=schedule.timezone, opens=opens, notes=tuple(notes))
    if period is None:
        return base
    times = None if config.dry_run else _limits(config.sla, schedule, period, start)
    return msgspec.structs.replace(
        base,
        date=str(period),
        start_at=start,
        ready_by_at=times.ready_by_at if times is not None else None,
        warning_at=times.warning_at if times is not None else None,
        breach_at=times.breach_at if times is not None else None,
    )


def next_start(schedule: Schedule, calendars: Calendars, now: datetime) -> tuple[datetime, Period] | None:
    """The next instant at which the clock opens a run that no calendar withholds, and what that run is for."""
    if schedule.cron is not None:
        ticks = islice(ticks_between(schedule, now, now + AHEAD), _TICKS)
        open_ = (one for one in ticks if exclusion(schedule, calendars, one.local.date()) is None)
        return next(((one.at, one.period) for one in open_), None)
    if schedule.trigger is not None:
        return None
    tz, at = zone(schedule.timezone), clock_time(schedule.time or "00:00")
    days = included_days(schedule, calendars, to_local(now, tz).date(), to_local(now + AHEAD, tz).date())
    starts = ((local_time_on(day, at, tz), day_period(day)) for day in days)
    return next((one for one in starts if one[0] > now), None)


def _awaited_period(config: PipelineConfig, schedule: Schedule, calendars: Calendars, now: datetime) -> Period | None:
    """What the next run will be for when something other than the clock opens it: this hour, or the next open day.

    As far as the config says: what the latest runs were is not known here.
    """
    if schedule.cron is not None:
        return None
    tz = zone(schedule.timezone)
    today = to_local(now, tz).date()
    open_days = (day for ahead in range(AHEAD.days) if _is_open(schedule, calendars, day := today + timedelta(ahead)))
    periods = (period for day in open_days for period in expected_in(schedule, config.sla, day_period(day), tuple))
    return next((period for period in periods if period.end(tz) > now), None)


def _is_open(schedule: Schedule, calendars: Calendars, day: date) -> bool:
    return withheld(schedule, calendars, day) is None


def _limits(sla: Sla | None, schedule: Schedule, period: Period, start: datetime | None) -> SlaTimes | None:
    try:
        return None if sla is None else sla_times(sla, schedule, period, None, tick_at=start)
    except InvalidValueError:
        return None


def opened_by(config: PipelineConfig, schedule: Schedule) -> str:
    """What opens the runs of a schedule, in words."""
    causes: list[str] = []
    if schedule.cron is not None:
        causes.append(f"cron {schedule.cron}")
    if schedule.trigger is not None:
        value = "" if schedule.trigger.value is None else f" {schedule.trigger.value}"
        field = f" {schedule.trigger.field}" if schedule.trigger.field else ""
        causes.append(f"sensor {schedule.trigger.key}{field} {schedule.trigger.check}{value}")
    elif schedule.include is not None:
        causes.append(f"inclusion dates at {schedule.time or '00:00'}")
    if config.after:
        causes.append(f"completion of {' and '.join(entry.pipeline for entry in config.after)}")
    return ", or ".join(causes) or "a rerun request only"


def _notes(config: PipelineConfig, schedule: Schedule) -> Iterator[str]:
    if config.dry_run:
        yield "dry run: it observes and starts nothing"
    sla = config.sla
    if sla is None:
        yield "no SLA"
    elif sla.max_duration is not None:
        yield f"breach {format_duration(sla.max_duration)} after {_arrival(schedule)} first arrives"


def _arrival(schedule: Schedule) -> str:
    return schedule.trigger.key if schedule.trigger is not None else "its trigger"

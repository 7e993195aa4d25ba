"""Are the schedules of a pipeline, and its SLA, ones that can be kept? Everything here is about time."""

from collections.abc import Collection, Iterable, Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import available_timezones

from interlock.config.problems import Finding, Path
from interlock.config.rules import check_trigger
from interlock.config.suggestions import did_you_mean
from interlock.decide.calendars import holidays_of
from interlock.decide.cron import check_cron, granularity
from interlock.decide.expected import declared_granularity
from interlock.decide.values import show
from interlock.model.config import (
    Evaluation,
    Exclude,
    Include,
    PipelineConfig,
    PostRunEvaluation,
    Schedule,
    Sla,
    past_the_hour,
)
from interlock.model.durations import format_duration
from interlock.model.errors import InvalidValueError
from interlock.model.periods import Granularity
from interlock.model.times import zone

_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)
SCHEDULES: Final[tuple[Path, ...]] = (("schedule",), ("schedules",))
_SOME_YEAR: Final = 2026  # whether a country is known does not depend on the year


def with_paths(config: PipelineConfig) -> Iterable[tuple[Path, Schedule]]:
    """The schedules that somebody wrote, with their paths."""
    if config.schedules:
        return [(("schedules", index), schedule) for index, schedule in enumerate(config.schedules)]
    return [(("schedule",), config.schedule)] if config.schedule else []


def cron_granularity(schedule: Schedule) -> Granularity | None:
    """How long the periods of its ticks are; None without a cron, or with one that cannot be read."""
    try:
        return granularity(schedule.cron) if schedule.cron is not None else None
    except InvalidValueError:
        return None


def declared_periods(schedule: Schedule) -> Granularity | None:
    """How long its periods are, where cron or `granularity` say so; None with a cron that cannot be read."""
    try:
        return declared_granularity(schedule)
    except InvalidValueError:
        return None


def check_schedules(config: PipelineConfig, calendars: Collection[str]) -> Iterator[Finding]:
    """Every schedule for itself, and what they must have together."""
    if config.schedule and config.schedules:
        yield Finding(("schedules",), "stands beside `schedule`: give one of them")
    seen: dict[str, int] = {}
    for index, schedule in enumerate(config.schedules):
        path = ("schedules", index, "id")
        if schedule.id is None:
            yield Finding(path, "is missing: every entry of `schedules` needs an id")
        elif schedule.id in seen:
            yield Finding(path, f"{show(schedule.id)} is the id of schedules[{seen[schedule.id]}] already")
        else:
            seen[schedule.id] = index
    for where, schedule in with_paths(config):
        yield from _check_schedule(schedule, where, calendars)


def _check_schedule(schedule: Schedule, path: Path, calendars: Collection[str]) -> Iterator[Finding]:
    if schedule.cron is not None:
        try:
            check_cron(schedule.cron)
        except InvalidValueError as error:
            yield Finding((*path, "cron"), str(error))
        if schedule.include is not None:
            yield Finding(
                (*path, "include"), "stands beside `cron`: a schedule has a cron or inclusion dates, not both"
            )
    yield from _check_granularity(schedule, path)
    yield from check_zone(schedule.timezone, (*path, "timezone"))
    yield from check_evaluation(schedule.evaluation, (*path, "evaluation"))
    if schedule.exclude:
        yield from _check_exclude(schedule.exclude, (*path, "exclude"), calendars)
    if schedule.include:
        yield from _check_include(schedule.include, (*path, "include"), calendars)
    if schedule.trigger:
        yield from check_trigger(schedule.trigger, (*path, "trigger"))
        if past_the_hour(schedule.trigger.deadline) and _daily(schedule):
            yield Finding((*path, "trigger", "deadline"), _no_hours(schedule), needs=((*path, "cron"),))


def _check_granularity(schedule: Schedule, path: Path) -> Iterator[Finding]:
    if schedule.granularity is None:
        return
    if schedule.cron is not None:
        message = "stands beside `cron`, whose ticks say how long a period is: leave it out"
        yield Finding((*path, "granularity"), message)
    elif schedule.granularity == "hour" and schedule.include is not None and schedule.trigger is None:
        message = "hour needs schedule.trigger: inclusion dates alone open one run for each date"
        yield Finding((*path, "granularity"), message)


def knows_times(config: PipelineConfig) -> bool:
    """Does this machine have the zones and holidays that a config names? All else about a config never changes."""
    names = {schedule.timezone for schedule in config.all_schedules}
    if config.sla is not None and config.sla.timezone is not None:
        names.add(config.sla.timezone)
    codes = {one.exclude.holidays for one in config.all_schedules if one.exclude and one.exclude.holidays}
    try:
        for name in names:
            zone(name)
        for code in codes:
            holidays_of(code, _SOME_YEAR)
    except InvalidValueError:
        return False
    return True


def check_sla(sla: Sla, config: PipelineConfig) -> Iterator[Finding]:
    """Does the SLA promise something, and something this pipeline can be held to?"""
    schedules = config.all_schedules
    if sla.deadline is None and sla.max_duration is None and sla.ready_by is None:
        yield Finding(("sla",), "says nothing: give a deadline, a maxDuration or a readyBy")
    if sla.timezone is not None:
        yield from check_zone(sla.timezone, ("sla", "timezone"))
    daily = next((one for one in schedules if _daily(one)), None)
    for name, clock in (("deadline", sla.deadline), ("readyBy", sla.ready_by)):
        if past_the_hour(clock) and daily is not None:
            yield Finding(("sla", name), _no_hours(daily), needs=SCHEDULES)
    if sla.max_duration is None:
        return
    path = ("sla", "maxDuration")
    if not any(schedule.trigger for schedule in schedules):
        message = "needs schedule.trigger: it counts from the first write of the trigger sensor"
        yield Finding(path, message, needs=SCHEDULES)
    if not timedelta(0) < sla.max_duration <= _DAY:
        yield Finding(path, f"{format_duration(sla.max_duration)} is not more than 0s and at most 24h")


def check_evaluation(evaluation: Evaluation | PostRunEvaluation, path: Path) -> Iterator[Finding]:
    """An interval below a second would do nothing but evaluate."""
    if evaluation.interval < _SECOND:
        yield Finding((*path, "interval"), f"{format_duration(evaluation.interval)} is shorter than 1s")


def check_dates(dates: Iterable[str], path: Path) -> Iterator[Finding]:
    """Of the right form they are; are there such days?"""
    for index, text in enumerate(dates):
        try:
            date.fromisoformat(text)
        except ValueError:
            yield Finding((*path, index), f"{show(text)} is not a day of the calendar")


def check_zone(name: str, path: Path) -> Iterator[Finding]:
    """Is there such a time zone?"""
    try:
        zone(name)
    except InvalidValueError as error:
        near = did_you_mean(name, _zone_names())
        yield Finding(path, f"{error}{near}")


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def _check_exclude(exclude: Exclude, path: Path, calendars: Collection[str]) -> Iterator[Finding]:
    yield from check_dates(exclude.dates, (*path, "dates"))
    yield from _check_calendar(exclude.calendar, path, calendars)
    if exclude.holidays is not None:
        try:
            holidays_of(exclude.holidays, _SOME_YEAR)
        except InvalidValueError as error:
            yield Finding((*path, "holidays"), str(error))


def _check_include(include: Include, path: Path, calendars: Collection[str]) -> Iterator[Finding]:
    if not include.dates and include.calendar is None:
        yield Finding(path, "includes no day at all: give dates, or a calendar")
    yield from check_dates(include.dates, (*path, "dates"))
    yield from _check_calendar(include.calendar, path, calendars)


def _check_calendar(name: str | None, path: Path, calendars: Collection[str]) -> Iterator[Finding]:
    if name is not None and name not in calendars:
        known = ", ".join(sorted(calendars)) or "there is none"
        near = did_you_mean(name, calendars)
        yield Finding((*path, "calendar"), f"there is no calendar {show(name)} in calendars/ ({known}){near}")


def _daily(schedule: Schedule) -> bool:
    """Are all its runs whole days, for sure? With a trigger alone, the sensor writes say what they are for."""
    dated = schedule.cron is None and schedule.include is not None and schedule.trigger is None
    return dated or declared_periods(schedule) is Granularity.DAY


def _no_hours(schedule: Schedule) -> str:
    if schedule.cron is not None:
        why = f"cron {schedule.cron!r} gives daily ones"
    elif schedule.granularity is not None:
        why = f"granularity {schedule.granularity} gives daily ones"
    else:
        why = "inclusion dates give daily ones"
    return f":MM is for hourly runs, and {why}: write HH:MM"

"""Calendars: on which days nothing is opened, and why (SPEC 2, Exclusion).

Every answer is a reason in words, since a person will ask why nothing ran. Days are local days of the schedule's zone;
which day counts (a tick's own, or the run's date) is the caller's to know.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

from interlock.extras import HOLIDAYS
from interlock.model.config import Calendar, Schedule, Weekday
from interlock.model.errors import InvalidValueError

Calendars = Mapping[str, Calendar]

_WEEKDAYS: Final = tuple(Weekday)  # in the order of `date.weekday()`


def exclusion(schedule: Schedule, calendars: Calendars, day: date) -> str | None:
    """Why nothing may be opened on this day; None when it is not excluded."""
    exclude = schedule.exclude
    if exclude is None:
        return None
    weekday = _weekday(day)
    name = weekday.capitalize()
    if exclude.weekends and weekday in (Weekday.SATURDAY, Weekday.SUNDAY):
        return _excluded(day, f"it is a {name} (weekends)")
    if exclude.holidays is not None and day in (known := holidays_of(exclude.holidays, day.year)):
        return _excluded(day, f"{known[day]} (holidays {exclude.holidays})")
    if day.isoformat() in exclude.dates:
        return _excluded(day, "it is one of the excluded dates")
    if weekday in exclude.days:
        return _excluded(day, f"it is a {name} (excluded days)")
    if exclude.calendar is not None and _in_calendar(_calendar(calendars, exclude.calendar), day):
        return _excluded(day, f"calendar {exclude.calendar}")
    return None


def inclusion(schedule: Schedule, calendars: Calendars, day: date) -> str | None:
    """Why this day is not among the schedule's inclusion dates; None when it is, or when it has none to be among."""
    include = schedule.include
    if include is None or day.isoformat() in include.dates:
        return None
    if include.calendar is not None and _in_calendar(_calendar(calendars, include.calendar), day):
        return None
    return f"{day} is not an inclusion date"


def withheld(schedule: Schedule, calendars: Calendars, day: date) -> str | None:
    """Why nothing may be opened on this day, by exclusion or for want of inclusion."""
    return exclusion(schedule, calendars, day) or inclusion(schedule, calendars, day)


def included_days(schedule: Schedule, calendars: Calendars, first: date, last: date) -> list[date]:
    """The inclusion dates from `first` to `last`, both counted, that are not excluded; none without `include`."""
    return [day for day in listed_days(schedule, calendars, first, last) if exclusion(schedule, calendars, day) is None]


def listed_days(schedule: Schedule, calendars: Calendars, first: date, last: date) -> list[date]:
    """The inclusion dates from `first` to `last`, both counted, excluded or not; none without `include`."""
    include = schedule.include
    if include is None:
        return []
    listed, weekdays = set(include.dates), set[Weekday]()
    if include.calendar is not None:
        calendar = _calendar(calendars, include.calendar)
        listed.update(calendar.dates)
        weekdays.update(calendar.days)
    # ISO dates sort as text, so only those within the range are read.
    days = {_read_day(text) for text in listed if first.isoformat() <= text <= last.isoformat()}
    every = (first + timedelta(days=offset) for offset in range((last - first).days + 1))
    days.update(day for day in every if _weekday(day) in weekdays)
    return sorted(days)


@lru_cache(maxsize=1024)  # making a country's year takes from a millisecond to half a second
def holidays_of(code: str, year: int) -> Mapping[date, str]:
    """The names of a year's holidays, of a country (`US`) or a part of one (`US-CA`)."""
    # Guessing that there are none would open runs on days that are excluded.
    if missing := HOLIDAYS.why_missing("public holidays"):
        raise InvalidValueError(missing)
    # Imported here because most pipelines name no holidays, and it is slow to load.
    from holidays import country_holidays, list_supported_countries

    country, _, subdivision = code.partition("-")
    # The package looks a country up by attribute, so a name that is not a country could be anything.
    if country not in list_supported_countries(include_aliases=True):
        raise InvalidValueError(f"holidays {code!r}: there is no country {country!r}; write a code such as US or DE-BY")
    try:
        # One language whatever the locale of the process: the reason must be the same in every runtime.
        return dict(country_holidays(country, subdiv=subdivision or None, years=year, language="en_US"))
    except NotImplementedError as error:
        raise InvalidValueError(
            f"holidays {code!r}: {country} has no subdivision {subdivision!r}; write {country}, or one that the"
            " holidays package has"
        ) from error


def _excluded(day: date, why: str) -> str:
    return f"{day} is excluded: {why}"


def _weekday(day: date) -> Weekday:
    return _WEEKDAYS[day.weekday()]


def _calendar(calendars: Calendars, name: str) -> Calendar:
    """The calendar of that name. Guessing that a missing one is empty would open runs that it forbids."""
    found = calendars.get(name)
    if found is None:
        known = ", ".join(sorted(calendars)) or "none"
        raise InvalidValueError(f"there is no calendar {name!r} (there is: {known}): add it to calendars/ and apply it")
    return found


def _in_calendar(calendar: Calendar, day: date) -> bool:
    return day.isoformat() in calendar.dates or _weekday(day) in calendar.days


def _read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidValueError(f"the inclusion date {text!r} is not a day of the calendar") from error

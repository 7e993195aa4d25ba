"""What a run is for: a day, an hour or a minute of a schedule's local time.

A period is written `YYYY-MM-DD`, `YYYY-MM-DDTHH` or `YYYY-MM-DDTHHMM`; the compact forms (`20260303T10`) are read too.
Periods are wall-clock things: overlap and containment are decided on the wall clock; instants need a zone.
"""

import re
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from interlock.model.errors import InvalidValueError
from interlock.model.times import to_utc

_FORM: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d)(\d\d)?)?")
_DASHED: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d(\d\d)?)?")
_COMPACT: Final = re.compile(r"\d{8}(T\d\d(\d\d)?)?")


class Granularity(StrEnum):
    """How long a period is."""

    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"

    @property
    def length(self) -> timedelta:
        """The wall-clock length."""
        return _LENGTHS[self]


_LENGTHS: Final = {
    Granularity.DAY: timedelta(days=1),
    Granularity.HOUR: timedelta(hours=1),
    Granularity.MINUTE: timedelta(minutes=1),
}


class Period(msgspec.Struct, frozen=True, order=True):
    """A day, hour or minute on the wall clock: `at` is its first local moment."""

    at: datetime
    granularity: Granularity

    def __str__(self) -> str:
        match self.granularity:
            case Granularity.DAY:
                return self.at.date().isoformat()  # strftime would not pad a year before 1000
            case Granularity.HOUR:
                return self.at.isoformat(timespec="hours")
            case Granularity.MINUTE:
                return self.at.isoformat(timespec="minutes").replace(":", "")

    @property
    def compact(self) -> str:
        """The form without dashes, as some feeds write it."""
        return str(self).replace("-", "")

    @property
    def day(self) -> date:
        """The local day it lies in."""
        return self.at.date()

    @property
    def hour(self) -> int | None:
        """The local hour, None for a day."""
        return None if self.granularity is Granularity.DAY else self.at.hour

    @property
    def ends(self) -> datetime:
        """The first local moment after it."""
        return self.at + self.granularity.length

    def overlaps(self, other: "Period") -> bool:
        """Do the two share a moment on the wall clock?"""
        return self.at < other.ends and other.at < self.ends

    def contains(self, other: "Period") -> bool:
        """Does the other lie wholly in this one?"""
        return self.at <= other.at and other.ends <= self.ends

    def start(self, tz: tzinfo) -> datetime:
        """Its first instant in a zone."""
        return to_utc(self.at, tz)

    def end(self, tz: tzinfo) -> datetime:
        """The first instant after it in a zone."""
        return to_utc(self.ends, tz)

    def exists(self, tz: tzinfo) -> bool:
        """False for an hour or minute that the clocks skip."""
        return self.start(tz) < self.end(tz)

    def shifted(self, steps: int) -> "Period":
        """The period that many lengths later (or earlier)."""
        return Period(self.at + steps * self.granularity.length, self.granularity)

    def hours(self) -> tuple["Period", ...]:
        """The 24 wall-clock hours of its day."""
        return tuple(hour_period(self.day, hour) for hour in range(24))


def day_period(day: date) -> Period:
    """The period of a day."""
    return Period(datetime.combine(day, time()), Granularity.DAY)


def hour_period(day: date, hour: int) -> Period:
    """The period of an hour of a day."""
    return Period(datetime.combine(day, time(hour)), Granularity.HOUR)


def period_of(local: datetime, granularity: Granularity) -> Period:
    """The period of that granularity that a local time lies in."""
    whole = local.replace(second=0, microsecond=0, fold=0)
    match granularity:
        case Granularity.DAY:
            return Period(whole.replace(hour=0, minute=0), granularity)
        case Granularity.HOUR:
            return Period(whole.replace(minute=0), granularity)
        case Granularity.MINUTE:
            return Period(whole, granularity)


@lru_cache(maxsize=8192)
def parse_period(text: str) -> Period:
    """Read a period in its dashed or compact form."""
    match = _FORM.fullmatch(text)
    if match is None or not (_DASHED.fullmatch(text) or _COMPACT.fullmatch(text)):
        raise InvalidValueError(f"{text!r} is not a period: write 2026-03-03, 2026-03-03T10 or 2026-03-03T1015")
    year, month, day, hour, minute = match.groups()
    try:
        at = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0))  # noqa: DTZ001 - wall clock
    except (ValueError, OverflowError) as error:
        raise InvalidValueError(f"{text!r} is not a period: there is no such day or time") from error
    if not MINYEAR + 1 < at.year < MAXYEAR:
        raise InvalidValueError(f"{text!r} is not a period: the year is out of range")
    if minute is not None:
        return Period(at, Granularity.MINUTE)
    return Period(at, Granularity.DAY if hour is None else Granularity.HOUR)

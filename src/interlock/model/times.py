"""Instants and local times. Every datetime in the project is aware and UTC; local times are naive and short-lived."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from interlock.model.errors import InvalidValueError

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_SECOND: Final = timedelta(seconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ]([01]\d|2[0-3]):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):?(\d\d))"
)
_MILLISECONDS_FROM: Final = 1_000_000_000_000


@lru_cache(maxsize=512)
def zone(name: str) -> tzinfo:
    """The IANA zone of that name."""
    # Loaded with the first zone: it looks for the data of the zones, and not every function needs one.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidValueError(f"{name!r} is not an IANA time zone: write for example Europe/Berlin") from error


def to_utc(local: datetime, tz: tzinfo) -> datetime:
    """Place a naive local time in a zone.

    In a gap (clocks forward) it is the first moment after the gap; in an overlap (clocks back) the earlier of the two.
    """
    placed = local.replace(tzinfo=tz, fold=0).astimezone(UTC)
    if placed.astimezone(tz).replace(tzinfo=None) == local:
        return placed
    return _end_of_gap(local, tz)


def _end_of_gap(local: datetime, tz: tzinfo) -> datetime:
    # In a gap fold=0 uses the offset before it and fold=1 the offset after it, so the two
    # placements lie on either side of the transition; find it by bisection.
    after = local.replace(tzinfo=tz, fold=0).astimezone(UTC)
    before = local.replace(tzinfo=tz, fold=1).astimezone(UTC)
    offset_after = after.astimezone(tz).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // (2 * _SECOND) * _SECOND
        if middle.astimezone(tz).utcoffset() == offset_after:
            after = middle
        else:
            before = middle
    return after


def to_local(instant: datetime, tz: tzinfo) -> datetime:
    """The naive wall-clock time of an instant in a zone."""
    return instant.astimezone(tz).replace(tzinfo=None, fold=0)


def local_time_on(day: date, at: time, tz: tzinfo) -> datetime:
    """The instant of a local time on a local day."""
    return to_utc(datetime.combine(day, at), tz)


def parse_instant(value: object) -> datetime | None:
    """An RFC 3339 time, or epoch seconds / milliseconds (from 1e12); None when it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _from_epoch(value)
    if isinstance(value, str):
        return _from_text(value)
    return None


def _from_epoch(value: float) -> datetime | None:
    micros_per_unit = 1_000 if abs(value) >= _MILLISECONDS_FROM else 1_000_000
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=round(value * micros_per_unit))
    except (OverflowError, ValueError):
        return None


def _from_text(text: str) -> datetime | None:
    match = _RFC3339.fullmatch(text.strip())
    if match is None:
        return None
    try:
        # Ten times as fast; of what the pattern lets through it refuses only a leap second, `z` and odd offsets.
        return datetime.fromisoformat(match[0]).astimezone(UTC)
    except (ValueError, OverflowError):
        return _from_parts(match)


def _from_parts(match: re.Match[str]) -> datetime | None:
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    micros = int((match[7] or "0").ljust(6, "0")[:6])
    offset = timedelta(0)
    if match[9]:
        offset = timedelta(hours=int(match[10]), minutes=int(match[11])) * (1 if match[9] == "+" else -1)
    try:
        # A leap second (:60) is read as the second after.
        at = datetime(year, month, day, hour, minute, min(second, 59), micros, UTC)
        return at + (_SECOND if second == 60 else timedelta(0)) - offset
    except (ValueError, OverflowError):
        return None


def format_instant(instant: datetime) -> str:
    """RFC 3339 in UTC, with milliseconds only where there are any: an instant that was read is written as it was."""
    utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    precision = "milliseconds" if utc.microsecond >= _MILLISECOND.microseconds else "seconds"
    return utc.isoformat(timespec=precision).removesuffix("+00:00") + "Z"


def epoch_millis(instant: datetime) -> int:
    """Milliseconds since 1970, rounded down."""
    return (instant - _EPOCH) // _MILLISECOND

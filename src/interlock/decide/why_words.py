"""Times and counts as the explanations of `why` put them."""

from datetime import UTC, datetime, timedelta

from interlock.model.durations import format_duration
from interlock.model.times import zone

_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_HOUR = timedelta(hours=1)


def clock(instant: datetime, timezone: str, now: datetime) -> str:
    """`08:30 EST`, or `2026-03-02 08:30 EST` when that is another day than today; `Z` stands for UTC."""
    tz = zone(timezone)
    local = instant.astimezone(tz)
    same_day = local.date() == now.astimezone(tz).date()
    day = "" if same_day else f"{local:%Y-%m-%d} "
    if timezone == "UTC":
        return f"{day}{local:%H:%M}Z"
    # Some zones have no abbreviation but an offset; that reads well, too.
    return f"{day}{local:%H:%M} {local:%Z}"


def stamp(instant: datetime) -> str:
    """A whole instant in UTC: `2026-03-02 13:30Z`."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def span(length: timedelta) -> str:
    """A length of time in its two largest units."""
    size = abs(length)
    unit = _SECOND if size < _MINUTE else _MINUTE if size < 24 * _HOUR else _HOUR
    return format_duration(size // unit * unit)


def distance(instant: datetime, now: datetime) -> str:
    """`12m ago`, `in 48m`."""
    if abs(instant - now) < _SECOND:
        return "now"
    return f"in {span(instant - now)}" if instant > now else f"{span(now - instant)} ago"


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"

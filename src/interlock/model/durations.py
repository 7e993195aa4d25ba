"""Durations as people write them: Go style (`1h30m`, `500ms`), days (`2d`), ISO 8601 (`PT2H`)."""

import re
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from interlock.model.errors import InvalidValueError

if TYPE_CHECKING:
    from fractions import Fraction

# Exact arithmetic: `0.1s` is 100 ms, not 99.99.
_MICROSECONDS: Final = {
    "us": 1,
    "µs": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_GO_PART: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(us|µs|ms|s|m|h|d)")
_GO: Final = re.compile(rf"(?:{_GO_PART.pattern})+")
_ISO: Final = re.compile(
    r"P(?:(?P<w>\d{1,9})W)?(?:(?P<d>\d{1,9}(?:\.\d{1,9})?)D)?"
    r"(?:T(?:(?P<h>\d{1,9}(?:\.\d{1,9})?)H)?(?:(?P<m>\d{1,9}(?:\.\d{1,9})?)M)?(?:(?P<s>\d{1,12}(?:\.\d{1,9})?)S)?)?"
)
_MAX: Final = timedelta(days=3660)


class Duration(timedelta):
    """A length of time in a config; a type of its own so that the decoder knows how to read it."""

    __slots__ = ()


@lru_cache(maxsize=4096)
def parse_duration(text: str) -> Duration:
    """Read a duration; raise InvalidValueError with the accepted forms otherwise."""
    cleaned = text.strip()
    micros = _go_micros(cleaned) if cleaned[:1].isdigit() else _iso_micros(cleaned)
    if micros is None:
        raise InvalidValueError(f"{text!r} is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H")
    if micros > _MAX // timedelta(microseconds=1):
        raise InvalidValueError(f"{text!r} is longer than ten years")
    return Duration(microseconds=int(micros))


def _go_micros(text: str) -> "Fraction | None":
    from fractions import Fraction

    if not _GO.fullmatch(text):
        return None
    return sum((Fraction(number) * _MICROSECONDS[unit] for number, unit in _GO_PART.findall(text)), Fraction(0))


def _iso_micros(text: str) -> "Fraction | None":
    from fractions import Fraction

    match = _ISO.fullmatch(text)
    if match is None or text.endswith(("P", "T")):
        return None
    units = {"w": 7 * _MICROSECONDS["d"], **{unit: _MICROSECONDS[unit] for unit in "dhms"}}
    return sum((Fraction(match[name]) * size for name, size in units.items() if match[name] is not None), Fraction(0))


def format_duration(length: timedelta) -> str:
    """The shortest Go-style form (`2d` only for whole days); `0s` for nothing."""
    micros = length // timedelta(microseconds=1)
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    parts: list[str] = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, micros = divmod(micros, _MICROSECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return sign + ("".join(parts) or "0s")

"""`[audit]` of `interlock.toml`: what the audit trail holds, and for how long.

[audit]
sensors = false                       # true: every sensor write is a record, too
keep = "400d"                         # days older than this are dropped whole
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from interlock.config.problems import Finding
from interlock.config.suggestions import did_you_mean
from interlock.control.context import Auditing
from interlock.model.durations import parse_duration
from interlock.model.errors import InvalidValueError

TABLE: Final = "audit"
_KEYS: Final = ("sensors", "keep")
_SHORTEST: Final = timedelta(days=1)
_LONGEST: Final = timedelta(days=36_500)


def auditing(plain: Mapping[str, Any]) -> Auditing:
    """The settings of a table that has no problems."""
    default = Auditing()
    keep = _keep(plain["keep"]) if "keep" in plain else default.keep
    return Auditing(sensors=plain.get("sensors", default.sensors), keep=keep)


def problems(plain: object) -> Iterator[Finding]:
    """What is wrong with the table."""
    if not isinstance(plain, dict):
        yield Finding((TABLE,), f"is not a table: write [{TABLE}]")
        return
    for name, value in plain.items():
        if name not in _KEYS:
            yield Finding((TABLE, name), f"is not a setting{did_you_mean(name, _KEYS)}")
        elif name == "sensors" and not isinstance(value, bool):
            yield Finding((TABLE, name), f"{value!r} is neither true nor false")
        elif name == "keep":
            try:
                _keep(value)
            except InvalidValueError as error:
                yield Finding((TABLE, name), str(error))


def _keep(text: object) -> timedelta:
    if not isinstance(text, str):
        raise InvalidValueError(f"{text!r} is not a duration: write '400d', in quotes")
    found = parse_duration(text)
    if not _SHORTEST <= found <= _LONGEST:
        raise InvalidValueError(f"{text!r} is not between 1d and 36500d")
    return found

"""One rule against one observation: did it pass, and why, in a line a person can act on.

Which observation counts for a run is not decided here (see `interlock.decide.sensors`). A field that is absent or null
fails every check, `ne` included: a safety controller takes no news for bad news.
"""

import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.decide.values import ABSENT, Number, cut, equal, lookup, number, plain, real_number, show
from interlock.model.config import Check, Rule
from interlock.model.durations import parse_duration
from interlock.model.errors import InvalidValueError
from interlock.model.sensor import Sensor
from interlock.model.times import format_instant, parse_instant

# Clocks of different machines disagree by seconds, not by minutes.
MAX_FUTURE: Final = timedelta(minutes=5)
_ZERO: Final = timedelta(0)
_NAMES_SHOWN: Final = 5

_Outcome = tuple[bool, str]
_Comparison = Callable[[str, object, object, datetime], _Outcome]


class RuleChange(msgspec.Struct, frozen=True):
    """From when on a rule came to this, and what it saw."""

    at: datetime
    passed: bool
    actual: Any = None


class RuleResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one rule came to. `actual` and `expected` are JSON values, cut where they are long.

    `since`: since when it comes to that, as far as an attempt under way remembers; `history`: its changes of verdict.
    """

    key: str
    check: Check
    passed: bool
    actual: Any
    expected: Any
    reason: str
    field: str | None
    since: datetime | None = None
    history: tuple[RuleChange, ...] = ()


def unmet(rule: Rule, reason: str) -> RuleResult:
    """The result of a rule that no observation counts for."""
    return RuleResult(rule.key, rule.check, False, None, plain(rule.value), reason, rule.field)


def check_observation_of(rule: Rule, sensor: Sensor, now: datetime) -> RuleResult:
    """The result of a rule for the observation that counts for it."""
    field = rule.field
    if field is None:
        return _check_presence(rule, sensor)
    value = lookup(sensor.data, field)
    if value is None:
        return unmet(rule, f"{field} is null: the sensor has no value for it")
    if value is ABSENT:
        return unmet(rule, f"there is no field {field}: {_fields_of(sensor)}")
    passed, reason = _COMPARISONS[rule.check](field, value, rule.value, now)
    return RuleResult(rule.key, rule.check, passed, plain(value), plain(rule.value), reason, field)


def _check_presence(rule: Rule, sensor: Sensor) -> RuleResult:
    if rule.check is not Check.EXISTS:
        return unmet(rule, f"the rule names no field to compare: add `field` to the {rule.check} rule")
    reason = f"present, received {format_instant(sensor.received_at)}"
    return RuleResult(rule.key, rule.check, True, None, None, reason, None)


def _fields_of(sensor: Sensor) -> str:
    names = list(sensor.data)
    if not names:
        return "the sensor is empty"
    more = ", ..." if len(names) > _NAMES_SHOWN else ""
    return cut(f"the sensor has {', '.join(names[:_NAMES_SHOWN])}{more}")


def _present(field: str, value: object, _expected: object, _now: datetime) -> _Outcome:
    return True, f"{field} is {show(value)}"


def _equals(field: str, value: object, expected: object, _now: datetime) -> _Outcome:
    if equal(value, expected):
        return True, f"{field} is {show(value)}"
    return False, f"{field} is {show(value)}, needs {show(expected)}"


def _differs(field: str, value: object, expected: object, _now: datetime) -> _Outcome:
    if equal(value, expected):
        return False, f"{field} is {show(value)}, needs anything else"
    return True, f"{field} is {show(value)}, not {show(expected)}"


def _is_in(field: str, value: object, expected: object, _now: datetime) -> _Outcome:
    choices = expected if isinstance(expected, list | tuple) else [expected]
    listed = cut(", ".join(map(show, choices))) or "nothing: the rule lists no values"
    if any(equal(value, choice) for choice in choices):
        return True, f"{field} is {show(value)}, one of {listed}"
    return False, f"{field} is {show(value)}, needs one of {listed}"


def _in_order(sign: str, holds: Callable[[Number, Number], bool]) -> _Comparison:
    def compare(field: str, value: object, expected: object, _now: datetime) -> _Outcome:
        limit = number(expected)
        if limit is None:
            return False, f"the rule compares with {show(expected)}, which is not a number: correct its value"
        actual = number(value)
        if actual is None:
            return False, f"{field} is {show(value)}, which is not a number; needs {sign} {show(expected)}"
        if holds(actual, limit):
            return True, f"{field} is {show(value)}, {sign} {show(expected)}"
        return False, f"{field} is {show(value)}, needs {sign} {show(expected)}"

    return compare


def _younger(field: str, value: object, expected: object, now: datetime) -> _Outcome:
    age, limit, problem = _age(field, value, expected, now)
    if problem:
        return False, problem
    if age < -MAX_FUTURE:
        return False, f"{field} is {_age_words(age)}: a fault, not freshness"
    if age < limit:
        return True, f"{field} is {_age_words(age)}, < {expected}"
    return False, f"{field} is {_age_words(age)}, needs < {expected}"


def _older(field: str, value: object, expected: object, now: datetime) -> _Outcome:
    age, limit, problem = _age(field, value, expected, now)
    if problem:
        return False, problem
    if age > limit:
        return True, f"{field} is {_age_words(age)}, > {expected}"
    return False, f"{field} is {_age_words(age)}, needs > {expected}"


# A table rather than a `match`: an evaluation is paid for in microseconds, and in Python 3.11 each case of
# a `match` over enum members costs two tenths of one. The tests hold it complete.
_COMPARISONS: Final[dict[Check, _Comparison]] = {
    Check.EXISTS: _present,
    Check.EQUALS: _equals,
    Check.NE: _differs,
    Check.IN: _is_in,
    Check.GT: _in_order(">", operator.gt),
    Check.GTE: _in_order(">=", operator.ge),
    Check.LT: _in_order("<", operator.lt),
    Check.LTE: _in_order("<=", operator.le),
    Check.AGE_LT: _younger,
    Check.AGE_GT: _older,
}


def _age(field: str, value: object, expected: object, now: datetime) -> tuple[timedelta, timedelta, str]:
    """The age and its limit, or what is wrong with one of them."""
    limit = _duration(expected)
    if limit is None:
        wrong = f"the rule compares with {show(expected)}, which is not a duration: write 2h or 30m"
        return _ZERO, _ZERO, wrong
    at = _instant(value)
    if at is None:
        wrong = f"{field} is {show(value)}, which is not a time: write RFC 3339 or epoch seconds"
        return _ZERO, _ZERO, wrong
    return now - at, limit, ""


def _duration(expected: object) -> timedelta | None:
    try:
        return parse_duration(expected) if isinstance(expected, str) else None
    except InvalidValueError:
        return None


def _instant(value: object) -> datetime | None:
    if isinstance(value, str | int | float):
        return parse_instant(value)
    stored = real_number(value)  # a number as DynamoDB hands it over
    return None if stored is None else parse_instant(float(stored))


def _age_words(age: timedelta) -> str:
    return f"{_rough(age)} old" if age >= _ZERO else f"{_rough(-age)} in the future"


def _rough(length: timedelta) -> str:
    """The two largest units: `1h12m`, `3d4h`, `45s`; an age needs no milliseconds."""
    seconds = length.days * 86_400 + length.seconds
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3_600:
        return f"{seconds // 60}m" + _smaller(seconds % 60, "s")
    if seconds < 86_400:
        return f"{seconds // 3_600}h" + _smaller(seconds % 3_600 // 60, "m")
    return f"{seconds // 86_400}d" + _smaller(seconds % 86_400 // 3_600, "h")


def _smaller(count: int, unit: str) -> str:
    return f"{count}{unit}" if count else ""

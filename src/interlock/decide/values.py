"""The values of observations: exact comparison, lookup by path, and how a value is shown in one line.

Numbers are compared as the decimal numbers people see. An integer is itself, however large; a float is the shortest
decimal that reads back as it (`0.1` is one tenth, as in the document it came from); text is a number when it spells
one. Nothing is rounded on the way. Booleans, NaN and the infinities are not numbers.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Final

import msgspec

from interlock.model.durations import Duration, parse_duration
from interlock.model.errors import InvalidValueError

MAX_SHOWN: Final = 200

Number = int | Decimal

_NUMERIC: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,5})?")
# Far beyond floats (308) and DynamoDB (125); without a limit, `1e999999999` in an observation would have
# exact arithmetic fill the memory.
_MAX_MAGNITUDE: Final = 5_000
# Python refuses to spell longer integers, by default from 4300 digits on; people stop reading much earlier.
_SPELLED_OUT: Final = 10**40
# Total, so that whatever a store hands over can be shown.
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str, decimal_format="number")


class Absent(Enum):
    """The answer for a field that is not there; None is a field that is null."""

    FIELD = "absent"


ABSENT: Final = Absent.FIELD


def number(value: object) -> Number | None:
    """The exact number a value is or, as text, spells; None when it is neither."""
    if type(value) is int:  # most are, and every rule of every evaluation comes through here
        return value
    if isinstance(value, str):
        return _spelled(value.strip(), _NUMERIC)
    return real_number(value)


def real_number(value: object) -> Number | None:
    """The exact number a value is; text never is one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return Decimal(repr(value)) if isfinite(value) else None
    if isinstance(value, Decimal):
        return value if value.is_finite() and abs(value.adjusted()) <= _MAX_MAGNITUDE else None
    return None


def _spelled(text: str, grammar: re.Pattern[str]) -> Decimal | None:
    value = Decimal(text) if grammar.fullmatch(text) else None
    return value if value is not None and abs(value.adjusted()) <= _MAX_MAGNITUDE else None


def equal(left: object, right: object) -> bool:
    """Do two values say the same?

    Numbers as numbers, otherwise by type. Across types text equals what it is the JSON text of: `5` and `"5"`, `5.0`
    and `"5"`, `true` and `"true"`; but `"007"` is a name, not 7. Null equals null alone.
    """
    if isinstance(left, str):
        return left == right if isinstance(right, str) else _is_text_of(left, right)
    if isinstance(right, str):
        return _is_text_of(right, left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return same(left, right)


def _is_text_of(text: str, value: object) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    actual = real_number(value)
    return actual is not None and _spelled(text, _JSON_NUMBER) == actual


def same(left: object, right: object) -> bool:
    """Are two scalars the same value: numbers as numbers (`1` is `1.0`), otherwise type and value?"""
    a, b = real_number(left), real_number(right)
    if a is not None:
        return a == b
    return type(left) is type(right) and left == right


def lookup(data: Mapping[str, object], field: str) -> object:
    """The value at a dotted path (`stats.rows`), or ABSENT. A literal key of that name wins, at every level."""
    if field in data:
        return data[field]
    head, _, rest = field.partition(".")
    inner = data.get(head)
    return lookup(inner, rest) if isinstance(inner, Mapping) else ABSENT


def cut(text: str) -> str:
    """The text, shortened to what a line can hold."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def show(value: object) -> str:
    """The value in one line for people: JSON, shortened, whole numbers without a fraction."""
    if isinstance(value, str):
        return f'"{cut(value)}"' if value.isprintable() else cut(_one_line(_json(value)))
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < _SPELLED_OUT else f"{Decimal(value):.6E}"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return cut(_one_line(_json(value)))


def read_duration(value: object) -> Duration:
    """A duration as a config may give it: always with a unit."""
    if isinstance(value, str) and not value.strip().isdigit():
        return parse_duration(value)
    number = isinstance(value, str | int | float) and not isinstance(value, bool)
    hint = f"; write {str(value).strip()}s for seconds" if number else ""
    raise InvalidValueError(f"{show(value)} is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H{hint}")


def plain(value: object) -> object:
    """The value as an event or an answer may carry it: JSON types, long text cut, large structures as cut text."""
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, int):  # booleans pass as they are
        return value if abs(value) < _SPELLED_OUT else show(value)
    if value is None:
        return None
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return plain_number(value) if value.is_finite() else str(value)
    text = _json(value)
    return cut(text) if len(text) > MAX_SHOWN else msgspec.json.decode(text)


def plain_number(value: Number) -> int | float | str:
    """A number as JSON: as it is, where JSON can hold it exactly and readably; else its digits as text."""
    if value >= _SPELLED_OUT or value <= -_SPELLED_OUT:
        return show(value)
    if value == int(value):
        return int(value)
    nearest = float(value)
    return nearest if Decimal(repr(nearest)) == value else cut(str(value))


def _one_line(text: str) -> str:
    # JSON leaves line separators and the like as they are.
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _json(value: object) -> str:
    return _ENCODER.encode(value).decode()

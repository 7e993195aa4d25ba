"""The conditions of Choice states.

A comparison of values of the wrong type is false; a path that leads nowhere is an error (`States.Runtime`),
unless the operator is `IsPresent`: so says Step Functions, and a flow that guards its paths behaves the same
on both.
"""

import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, assert_never

import msgspec

from interlock.embedded.asl.paths import (
    ABSENT,
    RUNTIME,
    DefinitionError,
    Json,
    Path,
    Scope,
    StatesError,
)
from interlock.model.times import parse_instant

_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")


def read_timestamp(value: Json) -> datetime | None:
    """The instant of an RFC 3339 time with a capital T and Z, as the States Language demands; otherwise None."""
    if not isinstance(value, str) or not _TIMESTAMP.fullmatch(value):
        return None
    return parse_instant(value)


def _number(value: Json) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _boolean(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


_READERS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "String": _text,
    "Numeric": _number,
    "Boolean": _boolean,
    "Timestamp": read_timestamp,
}
_ORDERS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}
_KINDS: Final[Mapping[str, Callable[[Json], bool]]] = {
    "IsPresent": lambda value: value is not ABSENT,
    "IsNull": lambda value: value is None,
    "IsNumeric": lambda value: _number(value) is not None,
    "IsString": lambda value: _text(value) is not None,
    "IsBoolean": lambda value: _boolean(value) is not None,
    "IsTimestamp": lambda value: read_timestamp(value) is not None,
}
_COMPARISONS: Final = frozenset(
    f"{kind}{order}" for kind in _READERS for order in _ORDERS if kind != "Boolean" or order == "Equals"
)


class Kind(msgspec.Struct, frozen=True):
    """`IsNull` and its kin: is what lies at the path of that kind?"""

    variable: Path
    kind: str
    expected: bool


class Comparison(msgspec.Struct, frozen=True):
    """A value against a constant, or against what lies at another path."""

    variable: Path
    kind: str
    order: str
    other: Path | Json


class Pattern(msgspec.Struct, frozen=True):
    """`StringMatches`: `*` stands for any characters, a backslash before it for itself."""

    variable: Path
    pattern: re.Pattern[str]


class Every(msgspec.Struct, frozen=True):
    """And."""

    conditions: tuple["Condition", ...]


class Some(msgspec.Struct, frozen=True):
    """Or."""

    conditions: tuple["Condition", ...]


class Not(msgspec.Struct, frozen=True):
    """Not."""

    condition: "Condition"


Condition = Kind | Comparison | Pattern | Every | Some | Not


def holds(condition: Condition, scope: Scope) -> bool:
    """Is it true of the state's input?"""
    match condition:
        case Every(conditions=parts):
            return all(holds(part, scope) for part in parts)
        case Some(conditions=parts):
            return any(holds(part, scope) for part in parts)
        case Not(condition=inner):
            return not holds(inner, scope)
        case Kind(variable=variable, kind="IsPresent", expected=expected):
            return _KINDS["IsPresent"](scope.find(variable)) == expected
        case Kind(variable=variable, kind=kind, expected=expected):
            return _KINDS[kind](_operand(variable, scope)) == expected
        case Pattern(variable=variable, pattern=pattern):
            text = _text(_operand(variable, scope))
            return text is not None and pattern.fullmatch(text) is not None
        case Comparison():
            return _compare(condition, scope)
        case _:
            assert_never(condition)


def _compare(comparison: Comparison, scope: Scope) -> bool:
    read = _READERS[comparison.kind]
    left = read(_operand(comparison.variable, scope))
    other = comparison.other
    right = read(_operand(other, scope) if isinstance(other, Path) else other)
    return left is not None and right is not None and _ORDERS[comparison.order](left, right)


def _operand(path: Path, scope: Scope) -> Json:
    value = scope.find(path)
    if value is ABSENT:
        raise StatesError(
            RUNTIME, f"Invalid path {path.text!r}: a condition reads what is not there; guard it with IsPresent"
        )
    return value


# -------------------------------------------------------------------------------------------------- compiling


def compile_condition(rule: Mapping[str, Json]) -> Condition:
    """Read a choice rule (without its Next); DefinitionError for what is not in the language."""
    fields = {name: value for name, value in rule.items() if name != "Comment"}
    match fields:
        case {"And": [_, *_] as parts, **rest} if not rest:
            return Every(tuple(compile_condition(part) for part in parts))
        case {"Or": [_, *_] as parts, **rest} if not rest:
            return Some(tuple(compile_condition(part) for part in parts))
        case {"Not": dict() as inner, **rest} if not rest:
            return Not(compile_condition(inner))
        case {"Variable": str() as variable, **rest} if len(rest) == 1:
            ((name, value),) = rest.items()
            return _compile_test(Path(variable), str(name), value)
        case _:
            has = ", ".join(fields) or "nothing"
            raise DefinitionError(f"a condition needs And, Or, Not, or a Variable with one operator; it has {has}")


def _compile_test(variable: Path, name: str, value: Json) -> Condition:
    if name in _KINDS and isinstance(value, bool):
        return Kind(variable, name, value)
    if name == "StringMatches" and isinstance(value, str):
        return Pattern(variable, _glob(value))
    plain = name.removesuffix("Path")
    if plain in _COMPARISONS:
        kind = next(kind for kind in _READERS if plain.startswith(kind))
        if name != plain and isinstance(value, str):
            return Comparison(variable, kind, plain.removeprefix(kind), Path(value))
        if name == plain and _READERS[kind](value) is not None:
            return Comparison(variable, kind, plain.removeprefix(kind), value)
    raise DefinitionError(f"{name} with {value!r} is not a comparison of the States Language")


def _glob(pattern: str) -> re.Pattern[str]:
    parts = re.findall(r"\\.|\*|[^\\*]+|\\", pattern, re.DOTALL)
    return re.compile("".join(".*" if part == "*" else re.escape(_plain(part)) for part in parts), re.DOTALL)


def _plain(part: str) -> str:
    return part[1:] if part in (r"\*", r"\\") else part

"""The conditions of Choice states: the four comparisons that the lifecycle makes, and their conjunction.

A comparison of values of the wrong type is false; a path that leads nowhere is an error (`States.Runtime`), unless the
operator is `IsPresent`: so says Step Functions, and a flow that guards its paths behaves the same on both.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Final, assert_never

import msgspec

from interlock.embedded.asl.paths import ABSENT, RUNTIME, DefinitionError, Json, Path, Scope, StatesError


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_boolean(value: Json) -> bool:
    return isinstance(value, bool)


IS_PRESENT: Final = "IsPresent"
COMPARISONS: Final[Mapping[str, tuple[Callable[[Json], bool], Callable[[Json, Json], bool]]]] = {
    "StringEquals": (_is_text, operator.eq),
    "NumericGreaterThanEquals": (_is_number, operator.ge),
    "BooleanEquals": (_is_boolean, operator.eq),
}
"""By name: which values it is about, and when it holds of two of them."""


class Present(msgspec.Struct, frozen=True):
    """`IsPresent`: does the path lead somewhere?"""

    variable: Path
    expected: bool


class Comparison(msgspec.Struct, frozen=True):
    """A value against a constant."""

    variable: Path
    name: str
    constant: Json


class Every(msgspec.Struct, frozen=True):
    """And."""

    conditions: tuple["Condition", ...]


Condition = Present | Comparison | Every


def holds(condition: Condition, scope: Scope) -> bool:
    """Is it true of the state's input?"""
    match condition:
        case Every(conditions=parts):
            return all(holds(part, scope) for part in parts)
        case Present(variable=variable, expected=expected):
            return (scope.find(variable) is not ABSENT) == expected
        case Comparison(variable=variable, name=name, constant=constant):
            fits, compare = COMPARISONS[name]
            value = _operand(variable, scope)
            return fits(value) and compare(value, constant)
        case _:
            assert_never(condition)


def _operand(path: Path, scope: Scope) -> Json:
    value = scope.find(path)
    if value is ABSENT:
        raise StatesError(
            RUNTIME, f"Invalid path {path.text!r}: a condition reads what is not there; guard it with IsPresent"
        )
    return value


def compile_condition(rule: Mapping[str, Json]) -> Condition:
    """Read a choice rule (without its Next); DefinitionError for what this interpreter does not know."""
    fields = {name: value for name, value in rule.items() if name != "Comment"}
    match fields:
        case {"And": [_, *_] as parts, **rest} if not rest:
            return Every(tuple(compile_condition(part) for part in parts))
        case {"Variable": str() as variable, **rest} if len(rest) == 1:
            ((name, value),) = rest.items()
            return _compile_test(Path(variable), str(name), value)
        case _:
            has = ", ".join(fields) or "nothing"
            raise DefinitionError(f"a condition needs And, or a Variable with one operator; it has {has}")


def _compile_test(variable: Path, name: str, value: Json) -> Condition:
    if name == IS_PRESENT and isinstance(value, bool):
        return Present(variable, value)
    if name in COMPARISONS and COMPARISONS[name][0](value):
        return Comparison(variable, name, value)
    known = ", ".join((*COMPARISONS, IS_PRESENT))
    raise DefinitionError(f"{name} with {value!r} is not a comparison that is known here: there are {known}")

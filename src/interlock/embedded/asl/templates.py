"""Payload templates: how a state computes its input and its result.

A template is JSON in which a name that ends in `.$` holds an expression: a path, or `States.MathAdd($.count, 1)`, the
one intrinsic function that the lifecycle calls. Expressions are read once, when the definition is loaded, so that a
misspelt function is found there and not in the middle of a run.
"""

import re
from collections.abc import Mapping
from typing import Final, assert_never

import msgspec

from interlock.embedded.asl.paths import DefinitionError, Json, Path, Scope, StatesError

INTRINSIC_FAILURE: Final = "States.IntrinsicFailure"
MATH_ADD: Final = "States.MathAdd"
_ADD: Final = re.compile(rf"{re.escape(MATH_ADD)}\(\s*(\$[\w.$-]*)\s*,\s*(-?\d+)\s*\)")


class Literal(msgspec.Struct, frozen=True):
    """A value written in the definition itself."""

    value: Json


class Add(msgspec.Struct, frozen=True):
    """`States.MathAdd`: what lies at a path, and a number."""

    path: Path
    number: int


class _Members(msgspec.Struct, frozen=True):
    members: tuple[tuple[str, "_Node"], ...]


Expression = Path | Add
_Node = _Members | Literal | Expression


class Template:
    """A payload template (`Parameters`); DefinitionError names what cannot be read in it."""

    __slots__ = ("_root",)

    def __init__(self, value: Json) -> None:
        self._root: Final = _compile(value)

    def fill(self, scope: Scope, field: str) -> Json:
        """The template with every expression replaced by its value; `field` is where it stands, for the error."""
        return _fill(self._root, scope, field)


def _compile(value: Json) -> _Node:
    if isinstance(value, Mapping):
        return _Members(tuple(_member(name, inner) for name, inner in value.items()))
    if isinstance(value, list):
        raise DefinitionError(f"a template holds objects and values, not the list {value!r}")
    return Literal(value)


def _member(name: str, value: Json) -> tuple[str, _Node]:
    if not name.endswith(".$"):
        return name, _compile(value)
    if not isinstance(value, str):
        raise DefinitionError(f"{name!r} must hold a path or a call of {MATH_ADD}, not {value!r}")
    return name[:-2], _parse(value)


def _parse(text: str) -> Expression:
    if text.startswith("$"):
        return Path(text)
    found = _ADD.fullmatch(text)
    if found is None:
        raise DefinitionError(f"{text!r} is neither a path nor a call such as {MATH_ADD}($.count, 1)")
    return Add(Path(found[1]), int(found[2]))


def _fill(node: _Node, scope: Scope, field: str) -> Json:
    match node:
        case _Members(members=members):
            return {name: _fill(inner, scope, f"{field}.{name}") for name, inner in members}
        case Literal(value=value):
            return value
        case Path():
            return scope.get(node, field)
        case Add(path=path, number=number):
            value = scope.get(path, field)
            if isinstance(value, bool) or not isinstance(value, int):
                raise StatesError(INTRINSIC_FAILURE, f"{field}: {MATH_ADD}: {value!r} is not a whole number")
            return value + number
        case _:
            assert_never(node)

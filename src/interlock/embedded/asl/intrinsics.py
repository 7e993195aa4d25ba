"""Payload templates and intrinsic functions: how a state computes its input and its result.

A template is JSON in which a name that ends in `.$` holds an expression: a path, or a call such as
`States.MathAdd($.elapsed, 30)`. Expressions are read once, when the definition is loaded, so that a misspelt
function is found there and not in the middle of a run.
"""

import decimal
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, assert_never

import msgspec

from interlock.embedded.asl.paths import DefinitionError, Json, Path, Scope, StatesError

INTRINSIC_FAILURE: Final = "States.IntrinsicFailure"


class Literal(msgspec.Struct, frozen=True):
    """A value written in the definition itself."""

    value: Json


class Call(msgspec.Struct, frozen=True):
    """A call of an intrinsic function."""

    function: str
    arguments: tuple["Expression", ...]


Expression = Path | Call | Literal


def evaluate(expression: Expression, scope: Scope, field: str) -> Json:
    """The value of an expression; `field` is where it stands, for the error."""
    match expression:
        case Literal(value=value):
            return value
        case Path():
            return scope.get(expression, field)
        case Call(function=function, arguments=arguments):
            values = [evaluate(argument, scope, field) for argument in arguments]
            try:
                return _FUNCTIONS[function].apply(values)
            except (TypeError, ValueError, IndexError) as error:
                raise StatesError(INTRINSIC_FAILURE, f"{field}: {function}: {error}") from error
        case _:
            assert_never(expression)


class Formula:
    """A path or a call, where the language allows either in place of a value."""

    __slots__ = ("_expression", "text")

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self._expression: Final = parse_expression(text)

    def value(self, scope: Scope, field: str) -> Json:
        """What it comes to; `field` is where it stands, for the error."""
        return evaluate(self._expression, scope, field)


# -------------------------------------------------------------------------------------------------- templates


class _Members(msgspec.Struct, frozen=True):
    members: tuple[tuple[str, "_Node"], ...]


class _Items(msgspec.Struct, frozen=True):
    items: tuple["_Node", ...]


_Node = _Members | _Items | Expression


class Template:
    """A payload template (`Parameters`, `ResultSelector`); DefinitionError names what cannot be read in it."""

    __slots__ = ("_root",)

    def __init__(self, value: Json) -> None:
        self._root: Final = _compile(value)

    def fill(self, scope: Scope, field: str) -> Json:
        """The template with every expression replaced by its value."""
        return _fill(self._root, scope, field)


def _compile(value: Json) -> _Node:
    if isinstance(value, Mapping):
        return _Members(tuple(_member(name, inner) for name, inner in value.items()))
    if isinstance(value, list):
        return _Items(tuple(_compile(inner) for inner in value))
    return Literal(value)


def _member(name: str, value: Json) -> tuple[str, _Node]:
    if not name.endswith(".$"):
        return name, _compile(value)
    if not isinstance(value, str):
        raise DefinitionError(f"{name!r} must hold a path or a call of an intrinsic function, not {value!r}")
    return name[:-2], parse_expression(value)


def _fill(node: _Node, scope: Scope, field: str) -> Json:
    match node:
        case _Members(members=members):
            return {name: _fill(inner, scope, f"{field}.{name}") for name, inner in members}
        case _Items(items=items):
            return [_fill(inner, scope, field) for inner in items]
        case _:
            return evaluate(node, scope, field)


# ------------------------------------------------------------------------------------------------ expressions

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*')|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>true|false|null)\b"
    r"|(?P<call>States\.[A-Za-z0-9]+)\s*\(|(?P<path>\$(?:[^\s,()'\"\[]|\['[^']*'\]|\[\"[^\"]*\"\]|\[\d+\])*)|(?P<mark>[,)]))"
)
_WORDS: Final = {"true": True, "false": False, "null": None}
_ESCAPE: Final = re.compile(r"\\(['{}\\])")


def parse_expression(text: str) -> Expression:
    """Read a path or a call of an intrinsic function."""
    if text.startswith("$"):
        return Path(text)
    expression, end = _parse_at(text, 0)
    if not isinstance(expression, Call) or text[end:].strip():
        raise DefinitionError(f"{text!r} is neither a path nor a call of an intrinsic function")
    return expression


def _parse_at(text: str, start: int) -> tuple[Expression, int]:
    match = _TOKEN.match(text, start)
    kind = match.lastgroup if match else None
    if match is None or kind == "mark" or kind is None:
        raise DefinitionError(f"{text!r}: a value is expected at character {start + 1}")
    found = match[kind]
    match kind:
        case "text":
            return Literal(found[1:-1]), match.end()  # its escapes are resolved by who uses it
        case "number":
            return Literal(msgspec.json.decode(found)), match.end()
        case "word":
            return Literal(_WORDS[found]), match.end()
        case "path":
            return Path(found), match.end()
        case _:
            return _parse_call(text, found, match.end())


def _parse_call(text: str, function: str, start: int) -> tuple[Call, int]:
    known = _FUNCTIONS.get(function)
    if known is None:
        raise DefinitionError(f"{text!r}: {function} is not known here: there are {', '.join(_FUNCTIONS)}")
    arguments: list[Expression] = []
    closing = _TOKEN.match(text, start)
    end = closing.end() if closing and closing["mark"] == ")" else -1
    position = start
    while end < 0:
        argument, position = _parse_at(text, position)
        arguments.append(argument)
        mark = _TOKEN.match(text, position)
        if mark is None or mark["mark"] is None:
            raise DefinitionError(f"{text!r}: ',' or ')' is expected at character {position + 1}")
        position = mark.end()
        end = position if mark["mark"] == ")" else -1
    if not known.least <= len(arguments) <= known.most:
        raise DefinitionError(f"{text!r}: {function} does not take {len(arguments)} arguments")
    # `\{` stands for a brace that States.Format does not fill; it needs the text as it was written.
    raw = function == "States.Format"
    return Call(function, tuple(_unescaped(one, raw and at == 0) for at, one in enumerate(arguments))), end


def _unescaped(argument: Expression, raw: bool) -> Expression:
    if raw or not (isinstance(argument, Literal) and isinstance(argument.value, str)):
        return argument
    return Literal(_ESCAPE.sub(r"\1", argument.value))


# -------------------------------------------------------------------------------------------------- functions


class _Function(msgspec.Struct, frozen=True):
    apply: Callable[[Sequence[Json]], Json]
    least: int
    most: int


def _format(values: Sequence[Json]) -> str:
    template, *rest = values
    if not isinstance(template, str):
        raise TypeError("the template is not a string")
    parts = re.split(r"(\\.|\{\})", template)
    if parts.count("{}") != len(rest):
        raise ValueError(f"{len(rest)} values for {parts.count('{}')} places in {template!r}")
    texts = iter(rest)
    return "".join(_shown(next(texts)) if part == "{}" else _ESCAPE.sub(r"\1", part) for part in parts)


def _shown(value: Json) -> str:
    # Step Functions shows objects as Java does: {a=1, b=[x]}.
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}={_shown(inner)}" for name, inner in value.items()) + "}"
    return _to_json(value)


def _to_json(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _from_json(value: Json) -> Json:
    if not isinstance(value, str):
        raise TypeError("the argument is not a string")
    return msgspec.json.decode(value)  # a DecodeError is a ValueError


def _whole(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{_to_json(value)} is not a number")
    if isinstance(value, int):
        return value
    # Halves are rounded up, towards positive infinity, as in Java.
    halves = decimal.ROUND_HALF_UP if value >= 0 else decimal.ROUND_HALF_DOWN
    return int(decimal.Decimal(value).to_integral_value(halves))


def _array(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"{_to_json(value)} is not an array")
    return value


def _item(values: Sequence[Json]) -> Json:
    index = values[1]
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise ValueError(f"{_to_json(index)} is not an index")
    return _array(values[0])[index]


def _same(left: Json, right: Json) -> bool:
    # Python takes True for 1; JSON does not.
    return left == right and isinstance(left, bool) == isinstance(right, bool)


_MANY: Final = 10_000
_FUNCTIONS: Final[Mapping[str, _Function]] = {
    "States.Format": _Function(_format, 1, _MANY),
    "States.MathAdd": _Function(lambda values: _whole(values[0]) + _whole(values[1]), 2, 2),
    "States.JsonToString": _Function(lambda values: _to_json(values[0]), 1, 1),
    "States.StringToJson": _Function(lambda values: _from_json(values[0]), 1, 1),
    "States.Array": _Function(list, 0, _MANY),
    "States.ArrayLength": _Function(lambda values: len(_array(values[0])), 1, 1),
    "States.ArrayContains": _Function(lambda values: any(_same(one, values[1]) for one in _array(values[0])), 2, 2),
    "States.ArrayGetItem": _Function(_item, 2, 2),
}

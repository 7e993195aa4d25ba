"""EventBridge event patterns, so that a subscription filters alike on both runtimes (SPEC 11).

A pattern mirrors the event: an object names fields, and all of them must match; an array lists values and operators, of
which one must match. An array in the event matches if any of its elements does; for an array of objects one element
must meet the whole of the nested pattern. Operators look at leaves only: to `exists`, an object is not there.

A pattern is compiled once into a predicate. Whatever EventBridge would refuse is refused then, with its path, rather
than silently never matching.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Final

from interlock.decide.values import Number, real_number, same, show
from interlock.model.errors import InvalidValueError

Predicate = Callable[[Mapping[str, Any]], bool]
# Of the leaves at one path; none when the field is absent.
_Leaves = list[object]
_Leaf = Callable[[object], bool]
_Text = Callable[[str], bool]

_OR: Final = "$or"
_NUMERIC_LIMIT: Final = 5_000_000_000
_WILDCARD_TOKEN: Final = re.compile(r"\\?.", re.DOTALL)  # a character, or a backslash and what it precedes
_COMPARE: Final[dict[str, Callable[[Number, Number], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matches(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Does the event match? For many events, keep what `compile_pattern` returns."""
    return compile_pattern(pattern)(event)


def check_pattern(pattern: Mapping[str, Any]) -> None:
    """Raise InvalidValueError, naming the path, unless it is a valid pattern."""
    compile_pattern(pattern)


def compile_pattern(pattern: Mapping[str, Any]) -> Predicate:
    """The predicate a pattern stands for."""
    return _compile_object(pattern, "")


def _error(path: str, problem: str) -> InvalidValueError:
    return InvalidValueError(f"event pattern, {path or 'top level'}: {problem}")


def _compile_object(pattern: object, path: str) -> Predicate:
    if not isinstance(pattern, Mapping):
        raise _error(path, f"{show(pattern)} is not a pattern: write an object of fields")
    if not pattern:
        raise _error(path, "an empty object matches nothing in particular: name a field")
    parts = [_compile_field(name, value, f"{path}.{name}" if path else name) for name, value in pattern.items()]
    return lambda event: all(part(event) for part in parts)


def _compile_field(name: str, value: object, path: str) -> Predicate:
    if name == _OR:
        return _compile_or(value, path)
    if isinstance(value, list | tuple):
        test = _compile_values(value, path)
        return lambda event: test(_leaves(event.get(name, [])))
    if isinstance(value, Mapping):
        inner = _compile_object(value, path)
        return lambda event: any(inner(one) for one in _objects(event.get(name)))
    raise _error(path, f"{show(value)} stands alone: write it in an array, [{show(value)}]")


def _compile_or(value: object, path: str) -> Predicate:
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise _error(path, "$or takes an array of at least two patterns")
    choices = [_compile_object(one, f"{path}[{index}]") for index, one in enumerate(value)]
    return lambda event: any(choice(event) for choice in choices)


def _leaves(value: object) -> _Leaves:
    if isinstance(value, list | tuple):
        return [leaf for one in value for leaf in _leaves(one)]
    return [] if isinstance(value, Mapping) else [value]


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects a nested pattern may match; where there is none, an empty one, for the sake of `exists: false`."""
    found = [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
    if isinstance(value, Mapping):
        found = [value]
    return iter(found or [{}])


def _compile_values(values: Sequence[object], path: str) -> Callable[[_Leaves], bool]:
    if not values:
        raise _error(path, "an empty array matches nothing: list a value")
    tests = [_compile_value(value, f"{path}[{index}]") for index, value in enumerate(values)]
    return lambda leaves: any(test(leaves) for test in tests)


def _compile_value(value: object, path: str) -> Callable[[_Leaves], bool]:
    if isinstance(value, list | tuple):
        raise _error(path, "an array in an array: list the values themselves")
    if isinstance(value, Mapping):
        name, operand = _single(value, path)
        if name == "exists":
            return _compile_exists(operand, path)
        test = _compile_operator(name, operand, path)
    else:
        test = _exactly(value)
    return lambda leaves: any(test(leaf) for leaf in leaves)


def _single(value: Mapping[str, Any], path: str) -> tuple[str, object]:
    if len(value) != 1:
        raise _error(path, f"{show(dict(value))} must have exactly one operator")
    return next(iter(value.items()))


def _compile_exists(operand: object, path: str) -> Callable[[_Leaves], bool]:
    if not isinstance(operand, bool):
        raise _error(path, f"exists takes true or false, not {show(operand)}")
    return lambda leaves: bool(leaves) is operand


def _exactly(value: object) -> _Leaf:
    return lambda leaf: same(leaf, value)


def _compile_operator(name: str, operand: object, path: str) -> _Leaf:
    match name:
        case "anything-but":
            return _compile_anything_but(operand, path)
        case "numeric":
            return _compile_numeric(operand, path)
        case "prefix" | "suffix" | "equals-ignore-case" | "wildcard" | "cidr":
            return _on_text(_compile_text(name, operand, path))
        case _:
            raise _error(
                path,
                f"{show(name)} is not an operator: there are prefix, suffix, equals-ignore-case, wildcard,"
                " anything-but, numeric, exists, cidr",
            )


def _on_text(test: _Text) -> _Leaf:
    return lambda leaf: isinstance(leaf, str) and test(leaf)


def _compile_text(name: str, operand: object, path: str) -> _Text:
    """A test of text; `prefix` and `suffix` take a nested `equals-ignore-case`."""
    ignore_case = False
    if name in ("prefix", "suffix") and isinstance(operand, Mapping):
        inner, operand = _single(operand, path)
        if inner != "equals-ignore-case":
            raise _error(path, f"{name} takes text or equals-ignore-case, not {show(inner)}")
        ignore_case = True
    if not isinstance(operand, str):
        raise _error(path, f"{name} takes text, not {show(operand)}")
    wanted = operand.lower() if ignore_case or name == "equals-ignore-case" else operand
    match name:
        case "prefix":
            return lambda text: (text.lower() if ignore_case else text).startswith(wanted)
        case "suffix":
            return lambda text: (text.lower() if ignore_case else text).endswith(wanted)
        case "equals-ignore-case":
            return lambda text: text.lower() == wanted
        case "wildcard":
            return _compile_wildcard(wanted, path)
        case _:
            return _compile_cidr(wanted, path)


def _compile_anything_but(operand: object, path: str) -> _Leaf:
    """The field must be there, and be none of these."""
    if isinstance(operand, Mapping):
        name, inner = _single(operand, path)
        if name not in ("prefix", "suffix", "equals-ignore-case", "wildcard"):
            raise _error(path, f"anything-but does not take {show(name)}")
        values = inner if isinstance(inner, list | tuple) else [inner]
        tests = [_on_text(_compile_text(name, one, path)) for one in values]
    else:
        values = operand if isinstance(operand, list | tuple) else [operand]
        numbers = [real_number(one) is not None for one in values]
        if not (all(numbers) or all(isinstance(one, str) for one in values)):
            raise _error(path, f"anything-but takes text or numbers, all of one kind, not {show(operand)}")
        tests = [_exactly(one) for one in values]
    if not tests:
        raise _error(path, "anything-but of an empty array: list a value")
    return lambda leaf: not any(test(leaf) for test in tests)


def _compile_numeric(operand: object, path: str) -> _Leaf:
    """`["=", 5]`, `[">", 0]` or a range, `[">", 0, "<=", 5]`."""
    if not isinstance(operand, list | tuple) or len(operand) not in (2, 4):
        raise _error(path, 'numeric takes ["=", 5] or a range as [">", 0, "<=", 5]')
    signs, limits = operand[::2], [_numeric_limit(one, path) for one in operand[1::2]]
    for sign in signs:
        if not isinstance(sign, str) or sign not in _COMPARE:
            raise _error(path, f"numeric compares with = < <= > >=, not {show(sign)}")
    if len(signs) == 2 and not (signs[0] in (">", ">=") and signs[1] in ("<", "<=") and limits[0] < limits[1]):
        raise _error(path, "a numeric range is a lower bound and then a larger upper bound")
    bounds = list(zip((_COMPARE[sign] for sign in signs), limits, strict=True))

    def test(leaf: object) -> bool:
        value = real_number(leaf)
        return value is not None and all(holds(value, limit) for holds, limit in bounds)

    return test


def _numeric_limit(value: object, path: str) -> Number:
    limit = real_number(value)
    if limit is None or not -_NUMERIC_LIMIT <= limit <= _NUMERIC_LIMIT:
        raise _error(path, f"{show(value)} is not a number within -5.0e9 and 5.0e9")
    return limit


def _compile_wildcard(pattern: str, path: str) -> _Text:
    r"""`*` stands for any text, `\*` and `\\` for themselves. Matched piece by piece: never more than linear."""
    first, *rest = _wildcard_pieces(pattern, path)
    if not rest:
        return lambda text: text == first
    *middle, last = rest

    def test(text: str) -> bool:
        if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in middle:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return test


def _wildcard_pieces(pattern: str, path: str) -> list[str]:
    """The literal texts between the asterisks."""
    pieces = [""]
    for token in _WILDCARD_TOKEN.findall(pattern):
        if token == "*":
            if len(pieces) > 1 and not pieces[-1]:
                raise _error(path, f"wildcard {show(pattern)} has two asterisks in a row: one is enough")
            pieces.append("")
        elif token in (r"\*", r"\\"):
            pieces[-1] += token[1]
        elif token.startswith("\\"):
            raise _error(path, rf"in wildcard {show(pattern)} a backslash must precede * or \ ")
        else:
            pieces[-1] += token
    return pieces


def _compile_cidr(text: str, path: str) -> _Text:
    try:
        network = ip_network(text, strict=False)
    except ValueError as error:
        raise _error(path, f"{show(text)} is not a network: write 10.0.0.0/24") from error

    def test(leaf: str) -> bool:
        try:
            return ip_address(leaf) in network
        except ValueError:
            return False

    return test

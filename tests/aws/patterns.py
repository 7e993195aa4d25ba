"""Event patterns as EventBridge and Lambda's event filtering evaluate them; an operator that is not known is an error.

Sources: EventBridge User Guide, "Comparison operators for use in event patterns"; Lambda Developer Guide, "Using event
filtering with a DynamoDB event source" (filters know the same operators; numbers of a table are strings in a record, so
that `numeric` never holds there and is refused here).
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final


class PatternError(ValueError):
    """A pattern that AWS would refuse when it is created, or that could never hold."""


_ABSENT: Final = object()


def matches(pattern: Mapping[str, Any], event: Any) -> bool:
    """Does the event have everything that the pattern asks for?"""
    for name, wanted in pattern.items():
        if name == "$or":
            if not any(matches(one, event) for one in wanted):
                return False
            continue
        found = event.get(name, _ABSENT) if isinstance(event, Mapping) else _ABSENT
        if isinstance(wanted, Mapping):
            if not matches(wanted, {} if found is _ABSENT else found):
                return False
        elif isinstance(wanted, list):
            if not any(_holds(one, found) for one in wanted):
                return False
        else:
            raise PatternError(f"{name}: {wanted!r} is neither an object nor a list of alternatives")
    return True


def check_stream_filter(pattern: Mapping[str, Any]) -> None:
    """Refuse what a filter of a DynamoDB stream cannot mean."""
    for wanted in pattern.values():
        if isinstance(wanted, Mapping):
            check_stream_filter(wanted)
        elif isinstance(wanted, list):
            for one in wanted:
                if isinstance(one, Mapping) and "numeric" in one:
                    raise PatternError("numeric: the numbers of a DynamoDB record are strings, it never holds")


def _holds(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        ((operator, value),) = wanted.items()
        if operator == "exists":
            # It works on leaf nodes only: an object that is there does not count as existing.
            there = found is not _ABSENT and not isinstance(found, Mapping)
            return there is bool(value)
        return any(_compares(operator, value, one) for one in _values(found))
    return any(type(one) is type(wanted) and one == wanted for one in _values(found))


def _values(found: Any) -> Sequence[Any]:
    if found is _ABSENT or isinstance(found, Mapping):
        return ()
    return found if isinstance(found, list) else (found,)


def _compares(operator: str, value: Any, found: Any) -> bool:
    match operator:
        case "prefix":
            return isinstance(found, str) and found.startswith(value)
        case "suffix":
            return isinstance(found, str) and found.endswith(value)
        case "equals-ignore-case":
            return isinstance(found, str) and found.lower() == value.lower()
        case "wildcard":
            return isinstance(found, str) and fnmatchcase(found, value.replace("[", "[[]").replace("?", "[?]"))
        case "anything-but":
            return not _unwanted(value, found)
        case "numeric":
            return isinstance(found, int | float) and _in_range(value, found)
    raise PatternError(f"the operator {operator!r} is not known")


def _unwanted(value: Any, found: Any) -> bool:
    if isinstance(value, Mapping):
        ((operator, inner),) = value.items()
        alternatives = inner if isinstance(inner, list) else [inner]
        return any(_compares(operator, one, found) for one in alternatives)
    return found in (value if isinstance(value, list) else [value])


def _in_range(bounds: Sequence[Any], found: float) -> bool:
    compared = {
        "=": lambda bound: found == bound,
        ">": lambda bound: found > bound,
        ">=": lambda bound: found >= bound,
        "<": lambda bound: found < bound,
        "<=": lambda bound: found <= bound,
    }
    return all(compared[sign](bound) for sign, bound in zip(bounds[::2], bounds[1::2], strict=True))

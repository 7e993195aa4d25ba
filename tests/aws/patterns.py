"""Filters of event source mappings and patterns of rules, as Lambda and EventBridge document them.

The subset that the module uses: exact values, `prefix`, `anything-but` with a list, `exists`, `wildcard`. Anything else
is refused, so that a filter that was never evaluated cannot ship. Sources: Lambda Developer Guide, "Control which
events Lambda sends to your function"; EventBridge User Guide, "Comparison operators for use in event patterns".
"""

import re
from collections.abc import Mapping
from typing import Any


def matches(pattern: Mapping[str, Any], event: Any) -> bool:
    """Every named field matches one of its rules."""
    for name, rule in pattern.items():
        inner = event.get(name) if isinstance(event, Mapping) else None
        if isinstance(rule, Mapping):
            if not matches(rule, inner):
                return False
        elif not any(_leaf(one, inner) for one in rule):
            return False
    return True


def _leaf(rule: Any, value: Any) -> bool:
    # `exists` looks at leaves: a field that holds an object does not count as one.
    there = value is not None and not isinstance(value, Mapping)
    if not isinstance(rule, Mapping):
        return bool(there and value == rule)
    ((operator, wanted),) = rule.items()
    match operator:
        case "exists":
            return there is wanted
        case "prefix":
            return isinstance(value, str) and value.startswith(wanted)
        case "anything-but":
            assert isinstance(wanted, list), "anything-but with a list only"
            return there and value not in wanted
        case "wildcard":
            return (
                isinstance(value, str) and re.fullmatch(".*".join(map(re.escape, wanted.split("*"))), value) is not None
            )
    raise AssertionError(f"{operator!r} is not among the operators that these tests can evaluate")

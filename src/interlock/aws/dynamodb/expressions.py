"""Conditions and updates of the store port as DynamoDB expressions.

An item whose `ttl` has passed is absent, though DynamoDB may keep it for days: every condition says so. A comparison
with an attribute that is missing, or of another type, is false in DynamoDB, so that `ttl <= now` means "expired" and
nothing else. Redundant parentheses are an error there.
"""

from collections.abc import Mapping
from typing import Any, Final, assert_never

from interlock.aws.dynamodb.attributes import PK, Attribute, encode
from interlock.ports.store import Condition, Matches, Missing, Present, Update

_EXPIRED: Final = "#ttl <= :now"


class Expression:
    """Collects names and values while an expression is written; each has one placeholder."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._names: dict[str, str] = {}
        self._values: dict[str, Attribute] = {}

    def name(self, name: str) -> str:
        """The placeholder of an attribute's name."""
        if name in ("ttl", PK):
            return self._names.setdefault(name, f"#{name.lower()}")
        return self._names.setdefault(name, f"#n{len(self._names)}")

    def value(self, value: Any) -> str:
        """A placeholder for a value."""
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = encode(value)
        return placeholder

    def expired(self) -> str:
        """True for an item past its ttl, false for any other and for none."""
        self.name("ttl")
        self._values[":now"] = {"N": str(self._seconds)}
        return _EXPIRED

    def parameters(self, **texts: str) -> dict[str, Any]:
        """The arguments of a call: the expressions that are not empty, and what they refer to."""
        given: dict[str, Any] = {name: text for name, text in texts.items() if text}
        if self._names:
            given["ExpressionAttributeNames"] = {mark: name for name, mark in self._names.items()}
        if self._values:
            given["ExpressionAttributeValues"] = self._values
        return given


def condition_text(expression: Expression, condition: Condition) -> str:
    """A condition as DynamoDB judges it; "" for none."""
    match condition:
        case None:
            return ""
        case Missing():
            return f"attribute_not_exists({expression.name(PK)}) OR {expression.expired()}"
        case Present():
            return _live(expression)
        case Matches():
            return _matches(expression, condition)
    assert_never(condition)


def _live(expression: Expression) -> str:
    return f"attribute_exists({expression.name(PK)}) AND NOT {expression.expired()}"


def _matches(expression: Expression, condition: Matches) -> str:
    parts = [_equals(expression, name, value) for name, value in condition.attributes.items()]
    if condition.present:
        return " AND ".join([_live(expression), *parts])
    if any(value is not None for value in condition.attributes.values()):
        return " AND ".join([f"NOT {expression.expired()}", *parts])
    # Nothing but absences: an item that is gone, or has expired, has them all.
    absences = parts[0] if len(parts) == 1 else f"({' AND '.join(parts)})"
    return f"{expression.expired()} OR {absences}" if parts else ""


def _equals(expression: Expression, name: str, value: Any) -> str:
    mark = expression.name(name)
    if value is None:
        return f"(attribute_not_exists({mark}) OR {mark} = {expression.value(None)})"
    return f"{mark} = {expression.value(value)}"


def update_condition(expression: Expression, condition: Condition) -> str:
    """The condition of an update in place: besides the update's own, that no remains of an expired item are there."""
    own = condition_text(expression, condition)
    fresh = f"NOT {expression.expired()}"
    return f"({own}) AND {fresh}" if own else fresh


def update_text(expression: Expression, write: Update) -> str:
    """What an update does to an item."""
    sets = [f"{expression.name(name)} = {expression.value(value)}" for name, value in write.set.items()]
    adds = [f"{expression.name(name)} {expression.value(amount)}" for name, amount in write.add.items()]
    removes = [expression.name(name) for name in write.remove]
    if not (sets or adds or removes):
        removes = [expression.name("_nothing")]  # DynamoDB wants a change, and this is none
    clauses = (("SET", sets), ("ADD", adds), ("REMOVE", removes))
    return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses if parts)


def applied(write: Update) -> Mapping[str, Any]:
    """What an update makes of an item that is not there."""
    return {**write.set, **write.add}

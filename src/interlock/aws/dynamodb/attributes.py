"""JSON items as DynamoDB attributes, and back. Numbers stay exact; what others wrote is read as far as JSON allows."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from interlock.model.numbers import canonical
from interlock.ports.store import UNREADABLE, Item

Attribute = dict[str, Any]
Attributes = dict[str, Attribute]

PK: Final = "PK"
SK: Final = "SK"
INDEX_PK: Final = "GSI1PK"
INDEX_SK: Final = "GSI1SK"
OWN: Final = frozenset({PK, SK, INDEX_PK, INDEX_SK})
"""What the store adds to an item, and takes away when it is read."""

_WHOLE_LIMIT: Final = 10**38


def encode(value: Any) -> Attribute:
    """A JSON value as an attribute."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | float():
            return {"N": _number_text(value)}
        case Mapping():
            return {"M": {name: encode(inner) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [encode(inner) for inner in value]}
    raise TypeError(f"{type(value).__name__} is not JSON")


def encode_item(item: Mapping[str, Any]) -> Attributes:
    """An item without its key."""
    return {name: encode(value) for name, value in item.items()}


def decode_item(attributes: Mapping[str, Attribute]) -> Item:
    """An item without its key. What JSON has no value for is left out, and named under `_unreadable`."""
    item: Item = {}
    unreadable: list[str] = []
    for name, attribute in attributes.items():
        if name in OWN:
            continue
        try:
            item[name] = decode(attribute)
        except _NotJsonError as error:
            unreadable.append(f"{name}: {error}")
    if unreadable:
        item[UNREADABLE] = "; ".join(sorted(unreadable))
    return item


class _NotJsonError(ValueError):
    """An attribute of a type that JSON has not."""


def decode(attribute: Attribute) -> Any:
    """An attribute as a JSON value; sets become sorted lists."""
    ((kind, value),) = attribute.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "N":
            return _number(value)
        case "NULL":
            return None
        case "M":
            return {name: decode(inner) for name, inner in value.items()}
        case "L":
            return [decode(inner) for inner in value]
        case "SS":
            return sorted(value)
        case "NS":
            return sorted(_number(text) for text in value)
        case "B" | "BS":
            raise _NotJsonError("binary, which JSON has not: write it as text")
    raise _NotJsonError(f"of the unknown type {kind}")


def _number_text(value: float) -> str:
    return repr(canonical(value))


def _number(text: str) -> int | float:
    exact = Decimal(text)
    if exact == exact.to_integral_value() and exact.copy_abs() < _WHOLE_LIMIT:  # abs() would round
        return int(exact)
    return float(exact)

"""What every backend refuses, checked in one place so that a commit that works on one works on the other.

The limits are DynamoDB's, or tighter, and sizes are counted as DynamoDB counts them. Items are plain JSON: no NaN, no
number DynamoDB could not hold exactly, no type that would come back as another one. Whole numbers are integers.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, cast

import msgspec

from interlock.model.errors import CommitRefusedError
from interlock.model.numbers import encode_canonical
from interlock.ports.store import (
    MAX_ITEM_BYTES,
    MAX_WRITES,
    Condition,
    Delete,
    Item,
    Key,
    Matches,
    Put,
    Require,
    Update,
    Write,
)

MAX_PK_BYTES: Final = 2048
MAX_SK_BYTES: Final = 1024
MAX_COMMIT_BYTES: Final = 4_000_000
MAX_DEPTH: Final = 31
_INT_LIMIT: Final = 10**38
_SMALL: Final = 10**15
_FLOAT_LIMIT: Final = 1e126
_FLOAT_SMALLEST: Final = 1e-130

# No JSON is more than one and a half times as large in DynamoDB (`[1,1,1]`: two bytes here, three there), keys apart.
_SURELY_FITS: Final = MAX_ITEM_BYTES // 2

_encode: Final = msgspec.json.Encoder().encode


def check_commit(writes: Sequence[Write]) -> list[str | None]:
    """Refuse what no backend takes; the JSON of each put item, None in place of the other writes."""
    if len(writes) > MAX_WRITES:
        raise CommitRefusedError(f"{len(writes)} writes in one commit: at most {MAX_WRITES}, split it")
    seen: set[Key] = set()
    encoded: list[str | None] = []
    size = 0
    for write in writes:
        _check_key(write.key)
        if write.key in seen:
            raise CommitRefusedError(f"{_name(write.key)} is written twice in one commit: join the two writes")
        seen.add(write.key)
        _check_condition(write.key, write.when)
        text, weight = _check_write(write)
        encoded.append(text)
        size += weight
    if size > MAX_COMMIT_BYTES:
        raise CommitRefusedError(f"a commit of {size} bytes: at most {MAX_COMMIT_BYTES}, split it")
    return encoded


def encode_item(key: Key, item: Item, *, floats: bool = True) -> str:
    """The JSON of an item whose values are known to be good; refused when it is too large.

    `floats`: may there be some? A whole one is written as an integer, and looking for them takes as long as the rest.
    """
    try:
        encoded = encode_canonical(item) if floats else _encode(item)
    except (TypeError, ValueError) as error:
        raise CommitRefusedError(f"{_name(key)}: the item is not JSON: {error}") from error
    if len(encoded) > _SURELY_FITS and (size := item_size(item)) > MAX_ITEM_BYTES:
        raise CommitRefusedError(f"{_name(key)}: an item of {size} bytes: at most {MAX_ITEM_BYTES}")
    return encoded.decode()


def item_size(item: Mapping[str, Any]) -> int:
    """The bytes of an item without its key, by the rule that DynamoDB publishes ("Item sizes and formats")."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int | float):
        return _number_size(value)
    if isinstance(value, Mapping):
        return 3 + sum(1 + len(name.encode()) + _value_size(inner) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return 3 + sum(1 + _value_size(inner) for inner in value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _number_size(value: float) -> int:
    """A byte for every two significant digits, one besides, and one for the sign."""
    digits = len("".join(map(str, Decimal(repr(value)).as_tuple().digits)).strip("0"))
    return (digits + 1) // 2 + 1 + (value < 0)


def updated(write: Update, current: Mapping[str, Any] | None) -> Item:
    """The item after an update of a checked commit."""
    item: Item = {**(current or {}), **write.set}
    for name, amount in write.add.items():
        number = item.get(name, 0)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise CommitRefusedError(f"{_name(write.key)}: cannot add to {name}: {number!r} is not a number")
        item[name] = number + amount
        if fault := _fault(item[name], 0, []):
            raise CommitRefusedError(f"{_name(write.key)}: {name}{fault}")
    for name in write.remove:
        item.pop(name, None)
    return item


def _check_write(write: Write) -> tuple[str | None, int]:
    match write:
        case Put():
            floats = _check_attributes(write.key, write.item)
            text = encode_item(write.key, write.item, floats=floats)
            return text, len(text)
        case Update():
            _check_attributes(write.key, write.set)
            _check_attributes(write.key, write.add)
            _check_names(write)
            return None, len(encode_item(write.key, {**write.set, **write.add}))
        case Require() if write.when is None:
            raise CommitRefusedError(f"{_name(write.key)}: a Require without a condition requires nothing")
        case Require() | Delete():
            return None, 0


def _check_key(key: Key) -> None:
    pk, sk = key.pk, key.sk
    if pk.isascii() and sk.isascii() and 0 < len(pk) <= MAX_PK_BYTES and 0 < len(sk) <= MAX_SK_BYTES:
        return
    for text, limit, what in ((pk, MAX_PK_BYTES, "partition"), (sk, MAX_SK_BYTES, "sort")):
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise CommitRefusedError(f"{_name(key)}: the {what} key is not Unicode text: {error}") from error
        if not 0 < size <= limit:
            raise CommitRefusedError(f"{_name(key)}: a {what} key of {size} bytes: 1 to {limit}")


def _check_condition(key: Key, condition: Condition) -> None:
    if isinstance(condition, Matches):
        _check_attributes(key, condition.attributes)


def _check_names(write: Update) -> None:
    names = [*write.set, *write.add, *write.remove]
    if len(names) != len(set(names)):
        twice = sorted(name for name in set(names) if names.count(name) > 1)
        raise CommitRefusedError(f"{_name(write.key)}: {', '.join(twice)} is changed twice in one update")
    for name, amount in write.add.items():
        if isinstance(amount, bool) or not isinstance(amount, int):
            raise CommitRefusedError(f"{_name(write.key)}: cannot add {amount!r} to {name}: not an integer")


def _check_attributes(key: Key, attributes: Mapping[str, Any]) -> bool:
    """Refuse what is not JSON; are there floats?"""
    if "" in attributes:
        raise CommitRefusedError(f"{_name(key)}: an attribute has an empty name")
    floats: list[float] = []
    if fault := _fault(attributes, 0, floats):
        raise CommitRefusedError(f"{_name(key)}: {fault.lstrip('. ')}")
    return bool(floats)


def _fault(value: object, depth: int, floats: list[float]) -> str | None:
    """What is wrong with a value and where in it; None for good JSON. The path is only built when it is needed.

    Every commit is checked, so the exact types come first: they are nearly all there is, and `isinstance` is slow.
    """
    kind = type(value)
    if kind is dict:
        return _mapping_fault(cast(dict[Any, Any], value), depth, floats) if depth <= MAX_DEPTH else _too_deep()
    if value is None or kind is bool or isinstance(value, str):
        return None
    if isinstance(value, int):
        return None if -_INT_LIMIT < value < _INT_LIMIT else " is an integer of more than 38 digits"
    if isinstance(value, float):
        floats.append(value)
        return _float_fault(value)
    if depth > MAX_DEPTH:
        return _too_deep()
    if isinstance(value, Mapping):
        return _mapping_fault(value, depth, floats)
    if isinstance(value, list | tuple):
        faults = ((index, _fault(inner, depth + 1, floats)) for index, inner in enumerate(value))
        return next((f"[{index}]{fault}" for index, fault in faults if fault), None)
    return f" is of type {type(value).__name__}, which is not JSON"


def _too_deep() -> str:
    return f" is nested deeper than {MAX_DEPTH} levels"


def _float_fault(value: float) -> str | None:
    if not math.isfinite(value):
        return f" is {value}, which is not a JSON number"
    size = abs(value)
    if size >= _FLOAT_LIMIT or 0 < size < _FLOAT_SMALLEST:
        return f" is {value}, which is out of the range 1e-130 to 1e126"
    return None


def _mapping_fault(value: Mapping[Any, Any], depth: int, floats: list[float]) -> str | None:
    for name, inner in value.items():
        if type(name) is not str and not isinstance(name, str):
            return f" has the name {name!r}, which is not text"
        # Most values are text, flags or small numbers: not worth a call each.
        kind = type(inner)
        if kind is str or inner is None or kind is bool or (kind is int and -_SMALL < inner < _SMALL):
            continue
        if fault := _fault(inner, depth + 1, floats):
            return f".{name}{fault}"
    return None


def _name(key: Key) -> str:
    return f"{key.table}/{key.pk}/{key.sk}"

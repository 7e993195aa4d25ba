"""Numbers as every store keeps them: one kind of number, so that a value reads back as it was written.

DynamoDB has decimal numbers only: `1.0` comes back as `1`, `1e22` as an integer. So that a digest, a comparison and a
read are the same on every backend, whole numbers are made integers before anything is computed from them.
"""

import re
from decimal import Decimal
from typing import Any, Final

import msgspec

_WHOLE_LIMIT: Final = Decimal(10) ** 38
# A float in JSON that could be a whole number. It may match inside a text: that costs a second look, nothing else.
_MAY_BE_WHOLE: Final = re.compile(rb"[\[:,]-?\d+(?:\.0[,}\]]|[.\d]*[eE])")

_encode: Final = msgspec.json.Encoder().encode
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def canonical(value: Any) -> Any:
    """The same JSON value with whole numbers as integers; the very object when there is nothing to change."""
    if isinstance(value, float):
        return _whole(value)
    if isinstance(value, dict):
        changed = {name: canonical(inner) for name, inner in value.items()}
        return changed if any(changed[name] is not inner for name, inner in value.items()) else value
    if isinstance(value, list | tuple):
        items = [canonical(inner) for inner in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def encode_canonical(value: Any) -> bytes:
    """The JSON of a value, with whole numbers as integers. Raises what msgspec raises."""
    encoded = _encode(value)
    return _encode(canonical(value)) if _MAY_BE_WHOLE.search(encoded) else encoded


def canonical_with_json(value: Any) -> tuple[Any, bytes]:
    """`canonical`, and its JSON with sorted names; a value without whole floats is encoded once and never walked."""
    encoded = _encode_sorted(value)
    if not _MAY_BE_WHOLE.search(encoded):
        return value, encoded
    changed = canonical(value)
    return changed, _encode_sorted(changed)


def _whole(value: float) -> float | int:
    exact = Decimal(repr(value))
    if not exact.is_finite() or abs(exact) >= _WHOLE_LIMIT or exact != exact.to_integral_value():
        return value
    return int(exact)

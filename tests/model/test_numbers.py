"""Whole numbers are integers, whatever they were written as."""

import math
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.numbers import canonical, encode_canonical

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, 1),
        (-0.0, 0),
        (1e22, 10**22),
        (1e23, 10**23),
        (1.5, 1.5),
        (1e-7, 1e-7),
        (1e38, 1e38),
        (True, True),
        ("1.0", "1.0"),
        ({"a": [1.0, {"b": 2.0}]}, {"a": [1, {"b": 2}]}),
    ],
)
def test_whole_numbers_become_integers(value: Any, expected: Any) -> None:
    changed = canonical(value)
    assert changed == expected
    assert msgspec.json.encode(changed) == msgspec.json.encode(expected)
    assert encode_canonical({"v": value}) == msgspec.json.encode({"v": expected})


@given(JSON)
def test_the_json_is_the_same_however_it_is_reached(value: Any) -> None:
    assert encode_canonical([value]) == msgspec.json.encode(canonical([value]))


@given(JSON)
def test_once_is_enough_and_the_value_is_the_same_number(value: Any) -> None:
    once = canonical(value)
    assert canonical(once) is once
    assert once == value or _decimals(once) == _decimals(value)


def _decimals(value: Any) -> Any:
    """Numbers as their shortest text says: an integer of 1e23 is not the binary number nearest to it."""
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else value
    if isinstance(value, dict):
        return {name: _decimals(inner) for name, inner in value.items()}
    return [_decimals(inner) for inner in value] if isinstance(value, list) else value

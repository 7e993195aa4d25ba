"""Sensors: what may be stored, and when it counts as absent."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.errors import SensorRefusedError
from interlock.model.sensor import MAX_SENSOR_BYTES, Sensor, check_observation, is_upstream

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(("ttl", "expired"), [(None, False), (0, False), (1, False), (-1, True)])
def test_expiry(ttl: int | None, expired: bool) -> None:
    sensor = Sensor("k", {}, NOW, None if ttl is None else int(NOW.timestamp()) + ttl)
    assert sensor.expired(NOW) is (expired or ttl == 0)
    assert sensor.expired(NOW - timedelta(days=1)) is False


@pytest.mark.parametrize("data", [{}, {"a": 1}, {"a": {"b": [1, 2.5, None, True, "x"]}}, {"ü": "é"}])
def test_objects_are_taken(data: dict[str, Any]) -> None:
    assert check_observation("k", data) is data


def nested(levels: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for _ in range(levels):
        data = {"a": data}
    return data


@pytest.mark.parametrize(
    ("key", "data", "words"),
    [
        ("_k", {}, "reserved"),
        ("k", None, "not null"),
        ("k", [1], "not an array"),
        ("k", (1,), "not an array"),
        ("k", "x", "not text"),
        ("k", 5, "not a number"),
        ("k", 1.5, "not a number"),
        ("k", True, "not a boolean"),
        ("k", {"a": float("nan")}, r"k\.a is nan"),
        ("k", {"a": [1, {"b": float("-inf")}]}, r"k\.a\[1\]\.b is -inf"),
        ("k", {"a": "x" * MAX_SENSOR_BYTES}, "is more than the 65536"),
        ("k", {"a": object()}, "is not JSON"),
        ("k", {"a": "\ud800"}, "is not JSON"),
        ("k", nested(31), "nested deeper than 30"),
    ],
)
def test_what_is_refused_says_why(key: str, data: object, words: str) -> None:
    with pytest.raises(SensorRefusedError, match=words):
        check_observation(key, data)


def test_limits_are_inclusive() -> None:
    exactly = {"a": "x" * (MAX_SENSOR_BYTES - len('{"a":""}'))}
    assert check_observation("k", exactly) is exactly
    assert check_observation("k", nested(30))


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(-(2**63), 2**63) | st.booleans() | st.none()))
def test_a_sensor_goes_there_and_back(data: dict[str, Any]) -> None:
    sensor = Sensor("k", data, NOW, 5)
    assert msgspec.json.decode(msgspec.json.encode(sensor), type=Sensor) == sensor


def test_cascade_markers_are_told_by_their_key() -> None:
    assert is_upstream("upstream:silver")
    assert not is_upstream("silver")

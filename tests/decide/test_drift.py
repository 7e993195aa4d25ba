"""A change above the threshold is drift; exactly at it is not."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.drift import find_drift
from interlock.model.config import PostRun
from interlock.model.errors import InvalidValueError
from interlock.model.events import CATALOGUE, EventType


def post_run(threshold: Any = 0, field: str = "count") -> PostRun:
    return PostRun(drift_field=field, drift_threshold=threshold)


@pytest.mark.parametrize(
    ("threshold", "before", "after", "change", "limit"),
    [
        (0, 100, 101, 1, 0),
        (0, 0, 1, 1, 0),
        (0, 1, 0, -1, 0),
        (10, 100, 111, 11, 10),
        (10, 100, 89, -11, 10),
        (0.5, 1, 1.75, 0.75, 0.5),
        ("2%", 1000, 1021, 21, 20),
        ("2%", 1000, 979, -21, 20),
        ("2%", -1000, -1021, -21, 20),
        ("2.5%", 1000, 1025.5, 25.5, 25),
        ("2%", 0, 1, 1, 0),
        ("50%", 0, -1, -1, 0),
        (0, "100", 101, 1, 0),
        (0, Decimal("0.1"), 0.2, 0.1, 0),
        (0, 2**60, 2**60 + 1, 1, 0),
        ("0.1%", 0.1, 0.3, 0.2, 0.0001),
    ],
)
def test_drift(threshold: Any, before: Any, after: Any, change: float, limit: float) -> None:
    found = find_drift(post_run(threshold), "rows", {"rows": {"count": before}}, {"count": after})
    assert found is not None
    assert (found.key, found.field) == ("rows", "count")
    assert (found.change, found.threshold) == (change, limit)
    assert str(found.change) in found.reason


@pytest.mark.parametrize(
    ("threshold", "before", "after"),
    [
        (0, 100, 100),
        (0, 100, 100.0),
        (0, 0, 0),
        (10, 100, 110),
        (10, 100, 90),
        ("2%", 1000, 1020),
        ("2%", 1000, 980),
        ("2%", 0, 0),
        (0.2, 0.1, 0.3),  # in binary fractions 0.3 - 0.1 is less than 0.2, and
        (0.1, 0.2, 0.3),  # 0.3 - 0.2 less than 0.1, but
        (0.1, 0.7, 0.8),  # 0.8 - 0.7 is more than 0.1
        (0, None, 5),
        (0, 5, None),
        (0, "many", 5),
        (0, 5, "many"),
        (0, True, 5),
        (0, 5, float("nan")),
    ],
)
def test_no_drift(threshold: Any, before: Any, after: Any) -> None:
    assert find_drift(post_run(threshold), "rows", {"rows": {"count": before}}, {"count": after}) is None


@pytest.mark.parametrize(
    ("baseline", "current"),
    [
        ({}, {"count": 5}),
        ({"other": {"count": 1}}, {"count": 5}),
        ({"rows": {}}, {"count": 5}),
        ({"rows": {"count": 1}}, {}),
        ({"rows": {"count": 1}}, {"n": 5}),
    ],
)
def test_absent_is_not_a_value(baseline: dict[str, dict[str, Any]], current: dict[str, Any]) -> None:
    assert find_drift(post_run(), "rows", baseline, current) is None


def test_a_dotted_field_and_the_default_one() -> None:
    nested = find_drift(post_run(field="stats.n"), "rows", {"rows": {"stats": {"n": 1}}}, {"stats": {"n": 2}})
    assert nested is not None
    assert nested.field == "stats.n"
    assert find_drift(PostRun(), "rows", {"rows": {"sensor_count": 1}}, {"sensor_count": 2}) is not None


def test_what_the_event_and_its_reader_are_told() -> None:
    found = find_drift(post_run("2%"), "rows", {"rows": {"count": 1000}}, {"count": 1050})
    assert found is not None
    assert found.reason == "rows: count went from 1000 to 1050 (+50), more than 20 allowed (2%)"
    assert found.detail() == {
        "key": "rows",
        "field": "count",
        "baseline": 1000,
        "current": 1050,
        "change": 50,
        "threshold": 20,
    }
    assert tuple(found.detail()) == CATALOGUE[EventType.POST_RUN_DRIFT].fields


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), -1, "many%"])
def test_a_threshold_that_is_none(threshold: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"postRun\.driftThreshold"):
        find_drift(post_run(threshold), "rows", {"rows": {"count": 1}}, {"count": 2})


NUMBERS = st.integers(-(10**20), 10**20) | st.decimals(-(10**9), 10**9, places=4).map(float)


@given(NUMBERS, NUMBERS, st.integers(0, 10**6), st.booleans())
def test_drift_is_exactly_a_change_above_the_threshold(before: float, after: float, size: int, percent: bool) -> None:
    threshold = f"{size}%" if percent else size
    found = find_drift(post_run(threshold), "rows", {"rows": {"count": before}}, {"count": after})
    old, new = Fraction(repr(before)), Fraction(repr(after))
    allowed = abs(old) * size / 100 if percent else Fraction(size)
    assert (found is not None) is (abs(new - old) > allowed)
    if found is not None:
        assert Fraction(str(found.change)) == new - old
        assert json.loads(json.dumps(found.detail())) == found.detail()

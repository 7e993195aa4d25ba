"""A change above the threshold is drift; exactly at it is not."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.drift import find_drift, lacks_baseline, remembered
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
        (0, 1, 10**35 + 7, 10**35 + 6, 0),
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


@pytest.mark.parametrize(
    ("baseline", "current", "lacks"),
    [
        ({}, {"count": 5}, True),
        # The sensor was not there at the completion: whatever arrives first is what it is compared with.
        ({}, {"n": 5}, True),
        ({"other": {"count": 1}}, {"count": 5}, True),
        ({"rows": {"n": 1}}, {"count": 5}, True),
        ({"rows": {"count": "many"}}, {"count": 5}, True),
        ({"rows": {"n": 1}}, {"n": 2}, False),
        ({"rows": {"count": 0}}, {"count": 5}, False),
        ({"rows": {"count": 1}}, {"n": 5}, False),
    ],
)
def test_a_baseline_is_lacking_where_nothing_can_be_compared_yet(
    baseline: dict[str, dict[str, Any]], current: dict[str, Any], lacks: bool
) -> None:
    assert lacks_baseline(post_run(), "rows", baseline, current) is lacks


def padded(room: int) -> dict[str, dict[str, Any]]:
    """A post-run sensor that takes so many bytes in the store, as the only one."""
    empty: dict[str, dict[str, Any]] = {"rows": {"count": 7, "note": ""}}
    return {"rows": {"count": 7, "note": "x" * (room - len(msgspec.json.encode(empty)))}}


def nested(levels: int) -> dict[str, dict[str, Any]]:
    """A post-run sensor with so many objects within one another, the outermost included."""
    inner: Any = 1
    for _ in range(levels - 2):
        inner = {"in": inner}
    return {"rows": {"count": 7, "note": inner}}


@pytest.mark.parametrize(
    ("found", "whole"),
    [(padded(64 * 1024), True), (padded(64 * 1024 + 1), False), (nested(30), True), (nested(31), False)],
    ids=["as large as fits", "too large", "as deep as fits", "too deep"],
)
def test_sensors_are_remembered_whole_as_long_as_the_record_holds_them(
    found: dict[str, dict[str, Any]], whole: bool
) -> None:
    assert remembered(post_run(), found) == (found if whole else {"rows": {"count": 7}})


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (0, 0),
        (10**38 - 1, 10**38 - 1),
        (-(10**38) + 1, -(10**38) + 1),
        (10**38, "1" + "0" * 38),
        (-(10**38), "-1" + "0" * 38),
        (0.25, "0.25"),
        ("12.5", "12.5"),
    ],
)
def test_what_is_remembered_of_a_large_sensor_drifts_as_the_sensor_would(value: Any, kept: Any) -> None:
    large = {"stats": {"n": value}, "note": "x" * 70_000}
    baseline = remembered(post_run(field="stats.n"), {"rows": large, "other": {"note": "x" * 70_000}})
    assert baseline == {"rows": {"stats.n": kept}, "other": {}}
    assert find_drift(post_run(field="stats.n"), "rows", baseline, large) is None
    assert find_drift(post_run(field="stats.n"), "rows", baseline, {"stats": {"n": 1234}}) is not None


def test_a_number_of_any_length_is_compared_by_its_first_hundred_digits() -> None:
    before, after = "0." + "1" * 5_000, "0." + "1" * 100 + "2"
    assert find_drift(post_run(), "rows", {"rows": {"count": before}}, {"count": after}) is None
    assert find_drift(post_run(), "rows", {"rows": {"count": before}}, {"count": "0." + "1" * 99 + "2"}) is not None


@pytest.mark.parametrize(("after", "sign"), [(90, "(-10)"), (110, "(+10)")])
def test_a_reason_says_which_way_a_sensor_went(after: int, sign: str) -> None:
    found = find_drift(post_run(5), "rows", {"rows": {"count": 100}}, {"count": after})
    assert found is not None
    assert found.reason == f"rows: count went from 100 to {after} {sign}, more than 5 allowed"


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

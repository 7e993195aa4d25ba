"""Events that are too large or too deep are cut, and say what was."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlock.decide.event_size import CUT, MAX_EVENT_BYTES, depth, fitted
from interlock.model.events import Event, EventType, Severity


def event(message: str = "m", **detail: Any) -> Event:
    return Event(
        type=EventType.JOB_FAILED,
        severity=Severity.ERROR,
        pipeline_id="gold",
        message=message,
        timestamp=datetime(2026, 3, 2, tzinfo=UTC),
        detail=detail,
    )


def nested(levels: int, around: bool = False) -> Any:
    inner: Any = nested(levels - 1, around) if levels > 1 else "bottom"
    return [inner] if around else {"a": inner}


@pytest.mark.parametrize(
    ("value", "levels"),
    [("text", 0), (5, 0), (None, 0), ({}, 1), ([], 1), ((), 1), ({"a": [{}], "b": 1}, 3), ([1, [2, [3]]], 3)],
)
def test_depth_counts_objects_and_lists_within_one_another(value: Any, levels: int) -> None:
    assert depth(value) == levels


@pytest.mark.parametrize("around", [False, True])
def test_an_event_may_be_as_deep_as_a_store_takes_and_no_deeper(around: bool) -> None:
    fits = event(deep=nested(28, around))
    assert fitted(fits) is fits
    cut = fitted(event(deep=nested(29, around), attempt=3))
    assert depth(cut.detail) <= 29
    assert (cut.detail[CUT], cut.detail["attempt"]) == (["deep"], 3)
    assert "bottom" in msgspec.json.encode(cut.detail["deep"]).decode(), "what is deeper is kept as text"


def test_a_long_message_and_a_large_detail_are_cut_to_what_an_event_may_have() -> None:
    whole = event("x" * 1000, rows=list(range(1000)))
    assert fitted(whole) is whole
    long = fitted(event("x" * MAX_EVENT_BYTES, few=1))
    assert (len(long.message), long.message[-3:], long.detail) == (20_000 - 2, "...", {"few": 1})
    large = fitted(event(rows=["y" * 100] * 5000, attempt=1))
    assert large.detail[CUT] == ["rows"]
    assert large.detail["attempt"] == 1
    assert 1000 < len(large.detail["rows"]) < 5000
    assert len(msgspec.json.encode(large)) <= MAX_EVENT_BYTES


def test_large_fields_share_what_small_ones_leave() -> None:
    found = fitted(event(a="a" * 150_000, b="b" * 150_000, c=5)).detail
    assert (found["c"], found[CUT]) == (5, ["a", "b"])
    assert abs(len(found["a"]) - len(found["b"])) <= 10
    assert len(found["a"]) + len(found["b"]) > 140_000


def test_of_very_many_fields_the_first_are_kept() -> None:
    found = fitted(event(**{f"field-{number:05d}": "z" * 40 for number in range(6000)})).detail
    kept = [name for name in found if name != CUT]
    assert kept == sorted(kept)
    assert "field-00000" in kept
    assert len(found[CUT]) == 6000 - len(kept)

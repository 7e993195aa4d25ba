"""Which differences between two payloads matter."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.late_data import significant_changes

T1, T2 = "2026-03-02T08:00:00Z", "2026-03-02T09:30:00+02:00"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"count": 1}, {"count": 1.0}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"updatedAt": T1}, {"updatedAt": T2}),
        ({"updatedAt": 1}, {"updatedAt": 2}),
        ({"loaded_at": "a"}, {"loaded_at": "b"}),
        ({"timestamp": 1}, {"timestamp": 2}),
        ({"when": T1}, {"when": T2}),
        ({"when": T1}, {"when": "never"}),
        ({"when": None}, {"when": T2}),
        ({}, {"when": T1}),
        ({"when": T1}, {}),
        ({"id": 1}, {"id": 2}),
        ({"runId": "a"}, {"runId": "b"}),
        ({"batch_id": "a"}, {"batch_id": "b"}),
        ({"uuid": "a"}, {"uuid": "b"}),
        ({}, {"uuid": "b", "runId": 1, "createdAt": "x"}),
        ({"runId": {"n": 1}}, {"runId": {"n": 2}}),
        ({"a": {"id": 1, "n": 2}}, {"a": {"id": 9, "n": 2}}),
        ({"parts": [{"id": 1}, T1]}, {"parts": [{"id": 2}, T2]}),
        ({}, {"meta": {"seenAt": 1}}),
        ({"meta": {"seenAt": 1}}, {"meta": None}),
        ({"a": None}, {}),
        ({}, {"a": None}),
        ({"a": None}, {"a": None}),
    ],
)
def test_what_does_not_matter(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert significant_changes(old, new) == ()


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({"count": 1}, {"count": 2}, ("count",)),
        ({"count": 1}, {}, ("count",)),
        ({}, {"count": 0}, ("count",)),
        ({"count": 1}, {"count": None}, ("count",)),
        ({"count": 1}, {"count": "1"}, ("count",)),
        ({"ok": True}, {"ok": 1}, ("ok",)),
        ({"date": "2026-03-02"}, {"date": "2026-03-03"}, ("date",)),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, ("a", "b")),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ("a.b.c",)),
        ({}, {"a": {"b": 1, "id": 2}}, ("a.b",)),
        ({"a": {"b": 1}}, {"a": 5}, ("a",)),
        ({"parts": [1, 2]}, {"parts": [1, 2, 3]}, ("parts",)),
        ({"parts": [1, 2]}, {"parts": [1, 3]}, ("parts.1",)),
        ({"parts": [{"n": 1}]}, {"parts": [{"n": 2}]}, ("parts.0.n",)),
        ({"parts": [1]}, {"parts": 1}, ("parts",)),
        ({"parts": [1]}, {}, ("parts",)),
        # Names count as they are written.
        ({"ID": 1}, {"ID": 2}, ("ID",)),
        ({"UUID": 1}, {"UUID": 2}, ("UUID",)),
        ({"Timestamp": 1}, {"Timestamp": 2}, ("Timestamp",)),
        ({"paid": 1}, {"paid": 2}, ("paid",)),
        ({"flat": 1}, {"flat": 2}, ("flat",)),
        ({"timestamps": 1}, {"timestamps": 2}, ("timestamps",)),
        ({"identity": 1}, {"identity": 2}, ("identity",)),
    ],
)
def test_what_matters(old: dict[str, Any], new: dict[str, Any], changed: tuple[str, ...]) -> None:
    assert significant_changes(old, new) == changed


@pytest.mark.parametrize(("count", "more"), [(100, ()), (101, ("...",)), (150, ("...",))])
def test_a_hundred_changes_are_named_and_the_rest_is_only_said_to_be_there(count: int, more: tuple[str, ...]) -> None:
    names = [f"n{number:03}" for number in range(count)]
    assert significant_changes({}, dict.fromkeys(names, 1)) == (*names[:100], *more)


def test_a_long_path_is_cut() -> None:
    (path,) = significant_changes({}, {"x" * 300: 1})
    assert path == "x" * 197 + "..."


NAMES = st.sampled_from(["a", "b", "id", "runId", "seenAt", "seen_at", "timestamp", "uuid"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["x", T1, T2])
PAYLOADS = st.dictionaries(
    NAMES,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)),
)


@given(PAYLOADS)
def test_nothing_differs_from_itself(payload: dict[str, Any]) -> None:
    assert significant_changes(payload, payload) == ()


@given(PAYLOADS, PAYLOADS)
def test_changes_are_the_same_both_ways(old: dict[str, Any], new: dict[str, Any]) -> None:
    changed = significant_changes(old, new)
    assert changed == significant_changes(new, old)
    assert not {part for path in changed for part in path.split(".")} & {"id", "runId", "seenAt", "seen_at", "uuid"}

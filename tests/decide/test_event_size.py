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


def nested(levels: int, around: bool = False, bottom: str = "bottom") -> Any:
    inner: Any = nested(levels - 1, around, bottom) if levels > 1 else bottom
    return [inner] if around else {"a": inner}


def json_size(value: Any) -> int:
    return len(msgspec.json.encode(value))


# A message that is too long makes every event be fitted, however small its detail.
LONG = "m" * MAX_EVENT_BYTES
ROOM = 150_000


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
    assert depth(cut.detail) == 29, "no more is given up than must be"
    assert (cut.detail[CUT], cut.detail["attempt"]) == (["deep"], 3)
    assert innermost(cut.detail["deep"]) == ('["bottom"]' if around else '{"a":"bottom"}'), "what is deeper, as text"


def innermost(value: Any) -> Any:
    while isinstance(value, dict | list):
        value = value["a"] if isinstance(value, dict) else value[0]
    return value


def test_what_is_too_deep_is_kept_as_text_of_a_thousand_bytes() -> None:
    kept = innermost(fitted(event(deep=nested(40, bottom="x" * 5_000))).detail["deep"])
    assert kept.startswith('{"a":{"a":')
    assert (json_size(kept), kept[-4:]) == (1_000, "x...")


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


def test_an_event_of_exactly_the_size_is_whole_and_with_a_byte_more_its_message_is_cut() -> None:
    least = json_size(event(""))
    whole = event("x" * (MAX_EVENT_BYTES - least))
    assert json_size(whole) == MAX_EVENT_BYTES
    assert fitted(whole) is whole
    assert fitted(event("x" * (MAX_EVENT_BYTES - least + 1))).message.endswith("x...")


@pytest.mark.parametrize("detail", [{"few": 1, "text": ""}, {"text": ""}, {"rows": [""]}, {"a": {"b": {"text": ""}}}])
def test_a_detail_is_filled_to_the_last_byte(detail: dict[str, Any]) -> None:
    def filled(length: int) -> dict[str, Any]:
        text = msgspec.json.encode(detail).decode().replace('""', f'"{"t" * length}"')
        return fitted(event(LONG, **msgspec.json.decode(text))).detail

    fits = ROOM - json_size(detail)
    assert CUT not in filled(fits)
    assert json_size(filled(fits)) == ROOM
    cut = filled(fits + 1)
    assert cut.pop(CUT) == [list(detail)[-1]]
    assert json_size(cut) == ROOM
    assert "t..." in msgspec.json.encode(cut).decode()


@pytest.mark.parametrize(("character", "size"), [("x", 1), ("ä", 2), ('"', 2), ("\x01", 6), ("🚦", 4)])
def test_a_message_is_cut_to_whole_characters_of_any_size(character: str, size: int) -> None:
    message = fitted(event(character * MAX_EVENT_BYTES)).message
    assert message == character * ((20_000 - 2 - 3) // size) + "..."


def test_of_a_long_list_the_first_elements_are_kept_whole() -> None:
    rows = [{"row": number} for number in range(20_000)]
    kept = fitted(event(LONG, rows=rows)).detail["rows"]
    assert kept == rows[: len(kept)]
    assert ROOM - json_size(rows[: len(kept)]) - len('{"rows":}') in range(len(',{"row":12345}'))


def test_of_a_list_only_the_first_element_is_ever_cut() -> None:
    long = "y" * 2 * ROOM
    (first,) = fitted(event(LONG, rows=[long, 1, 2])).detail["rows"]
    assert json_size({"rows": [first]}) == ROOM
    assert fitted(event(LONG, rows=[1, long, 2])).detail["rows"] == [1]


def test_a_number_that_there_is_no_room_for_is_null_and_named() -> None:
    found = fitted(event(LONG, **{f"n{number:04d}": 10**4_000 for number in range(2_000)})).detail
    assert found["n0000"] is None
    assert "n0000" in found[CUT]


def test_a_field_whose_name_leaves_no_room_for_a_value_is_left_out() -> None:
    # Two equal shares of 150,000 bytes, of which a name takes all but 5, or 4.
    def kept(length: int) -> list[str]:
        found = fitted(event(LONG, **{"n" * length: "v" * 100, "text": "t" * ROOM})).detail
        return [name[:4] for name in found]

    most = (ROOM - 1) // 2 - 2 - 2 - 5
    assert kept(most) == ["nnnn", "text", CUT]
    assert kept(most + 1) == ["text", CUT]


def test_of_very_many_fields_the_first_are_kept() -> None:
    found = fitted(event(**{f"field-{number:05d}": "z" * 40 for number in range(6000)})).detail
    kept = [name for name in found if name != CUT]
    assert kept == sorted(kept)
    assert len(kept) == ROOM // 64
    assert kept[0] == "field-00000"


def test_the_names_of_what_is_missing_fit_too() -> None:
    names = [f"{number:05d}-{'n' * 200}" for number in range(5_000)]
    found = fitted(event(LONG, **dict.fromkeys(names, "value")))
    assert json_size(found) <= MAX_EVENT_BYTES
    assert 19_000 < json_size(found.detail[CUT]) <= 20_000
    assert set(found.detail[CUT]) <= set(names), "whole names"

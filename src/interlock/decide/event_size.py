"""Events fit everywhere: EventBridge takes 256 KB, a store 31 levels of nesting.

An event carries what was observed, and that may be large. It is cut rather than refused: the change that it tells of
has happened. `detail.cut` names the fields that are not whole.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from interlock.model.events import Event

MAX_EVENT_BYTES: Final = 200_000
CUT: Final = "cut"
_MESSAGE_BYTES: Final = 20_000
_DETAIL_BYTES: Final = 150_000
_NAMES_BYTES: Final = 20_000
# Containers within one another: a store takes 32, of which the event and its detail are two.
_DEEPEST: Final = 29
_DEEP_TEXT_BYTES: Final = 1_000
_ROOM_OF_A_FIELD: Final = 64
_MARK: Final = "..."
_LEAST_ROOM: Final = len(_MARK) + 2  # of a text that is cut: the mark in quotes

_encode: Final = msgspec.json.Encoder().encode


def fitted(event: Event) -> Event:
    """The event itself, or one with a shorter message and detail where it is too large or nested too deep."""
    encoded = _encode(event)
    if len(encoded) <= MAX_EVENT_BYTES and (_brackets(encoded) <= _DEEPEST or depth(event.detail) <= _DEEPEST):
        return event
    detail = _fit_fields(event.detail, _DETAIL_BYTES, _DEEPEST)
    missing = [name for name, value in event.detail.items() if name not in detail or detail[name] != value]
    marked = {**detail, CUT: _fit_elements(missing, _NAMES_BYTES, 1)} if missing else detail
    return replace(event, message=_fit_text(event.message, _MESSAGE_BYTES), detail=marked)


def _brackets(encoded: bytes) -> int:
    """No value is nested deeper than it has opening brackets; most events have a few, and need not be walked."""
    return encoded.count(b"{") + encoded.count(b"[")


def depth(value: object) -> int:
    """How many objects and lists lie within one another; 0 for text, numbers and the like."""
    if isinstance(value, Mapping):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(depth, value), default=0)
    return 0


def _fit(value: Any, room: int, levels: int) -> Any:
    """A value of at most `room` bytes of JSON, and of so many levels; null for a number that there is no room for."""
    if len(_encode(value)) <= room and depth(value) <= levels:
        return value
    match value:
        case str():
            return _fit_text(value, room)
        case Mapping() | list() | tuple() if levels == 0:
            return _fit_text(_encode(value).decode(), min(room, _DEEP_TEXT_BYTES))
        case Mapping():
            return _fit_fields(value, room, levels)
        case list() | tuple():
            return _fit_elements(value, room, levels)
        case _:
            return None


def _fit_text(text: str, room: int) -> str:
    """The longest beginning that leaves room for the mark."""
    if len(_encode(text)) <= room:
        return text
    lengths = range(len(text))
    kept = bisect_right(lengths, room - len(_MARK), key=lambda length: len(_encode(text[:length]))) - 1
    return text[:kept] + _MARK


# Every field and every element but the last is followed by a comma: of the two brackets and the commas, one is spare.


def _fit_elements(values: list[Any] | tuple[Any, ...], room: int, levels: int) -> list[Any]:
    """The first elements, as many as there is room for; the first of all is cut if it must be."""
    kept: list[Any] = []
    left = room - 1
    for value in values:
        if left <= _LEAST_ROOM or (kept and len(_encode(value)) >= left):
            break
        kept.append(_fit(value, left - 1, levels - 1))
        left -= len(_encode(kept[-1])) + 1
    return kept


def _fit_fields(fields: Mapping[str, Any], room: int, levels: int) -> dict[str, Any]:
    """Small fields whole, what is left shared among the large ones; where there are too many, the first of them."""
    first = list(fields.items())[: room // _ROOM_OF_A_FIELD]
    kept: dict[str, Any] = {}
    left, count = room - 1, len(first)
    for name, value in sorted(first, key=lambda field: len(_encode(field[1]))):
        share = left // count - len(_encode(name)) - 2  # the colon and the comma
        count -= 1
        if share >= _LEAST_ROOM:
            kept[name] = _fit(value, share, levels - 1)
            left -= len(_encode(kept[name])) + len(_encode(name)) + 2
    return {name: kept[name] for name, _ in first if name in kept}

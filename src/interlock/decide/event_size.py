"""Events fit everywhere: EventBridge takes 256 KB, a store 31 levels of nesting.

An event carries what was observed, and that may be large. It is cut rather than refused: the change that it tells of
has happened. `detail.cut` names the fields that are not whole.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from interlock.model.events import Event

MAX_EVENT_BYTES: Final = 200_000
CUT: Final = "cut"
_MESSAGE_BYTES: Final = 20_000
_DETAIL_BYTES: Final = 150_000
# Containers within one another: a store takes 32, of which the event and its detail are two.
_DEEPEST: Final = 29
_DEEP_TEXT_BYTES: Final = 1_000
_LEAST_ROOM: Final = 64
_MARK: Final = "..."

_encode: Final = msgspec.json.Encoder().encode


def fitted(event: Event) -> Event:
    """The event itself, or one with a shorter message and detail where it is too large or nested too deep."""
    encoded = _encode(event)
    # Nearly all events have fewer brackets than they may have levels.
    shallow = encoded.count(b"{") + encoded.count(b"[") < _DEEPEST or depth(event.detail) <= _DEEPEST
    if len(encoded) <= MAX_EVENT_BYTES and shallow:
        return event
    detail = _fit_fields(event.detail, _DETAIL_BYTES, 1)
    missing = [name for name, value in event.detail.items() if name not in detail or detail[name] != value]
    marked = {**detail, CUT: missing} if missing else detail
    return replace(event, message=_fit_text(event.message, _MESSAGE_BYTES), detail=marked)


def depth(value: object) -> int:
    """How many objects and lists lie within one another; 0 for text, numbers and the like."""
    if isinstance(value, Mapping):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list | tuple):
        return 1 + max(map(depth, value), default=0)
    return 0


def _fit(value: Any, room: int, level: int) -> Any:
    """A value of at most `room` bytes of JSON, at that level of nesting."""
    if isinstance(value, Mapping | list | tuple) and level + depth(value) > _DEEPEST and level >= _DEEPEST - 1:
        return _fit_text(_encode(value).decode(), min(room, _DEEP_TEXT_BYTES))
    if len(_encode(value)) <= room and level + depth(value) <= _DEEPEST:
        return value
    if isinstance(value, str):
        return _fit_text(value, room)
    if isinstance(value, Mapping):
        return _fit_fields(value, room, level + 1)
    if isinstance(value, list | tuple):
        return _fit_elements(value, room, level + 1)
    return None


def _fit_text(text: str, room: int) -> str:
    size = len(_encode(text))
    if size <= room:
        return text
    kept = text[: max(0, room - len(_MARK) - 2)]
    while kept and len(_encode(kept)) > room - len(_MARK):
        kept = kept[: len(kept) * 3 // 4]
    return kept + _MARK


def _fit_elements(values: list[Any] | tuple[Any, ...], room: int, level: int) -> list[Any]:
    """The first elements, as many as there is room for; the first of all is cut if it must be."""
    kept: list[Any] = []
    left = room - 2
    for value in values:
        if left < _LEAST_ROOM or (kept and len(_encode(value)) >= left):
            break
        kept.append(_fit(value, left - 1, level))
        left -= len(_encode(kept[-1])) + 1
    return kept


def _fit_fields(fields: Mapping[str, Any], room: int, level: int) -> dict[str, Any]:
    """Small fields whole, what is left shared among the large ones; where there are too many, the first of them."""
    first = list(fields.items())[: room // _LEAST_ROOM]
    kept: dict[str, Any] = {}
    left, count = room - 2, len(first)
    for name, value in sorted(first, key=lambda field: len(_encode(field[1]))):
        share = left // count - len(_encode(name)) - 2
        count -= 1
        if share >= len(_MARK) + 2:
            kept[name] = _fit(value, share, level)
            left -= len(_encode(kept[name])) + len(_encode(name)) + 2
    return {name: kept[name] for name, _ in first if name in kept}

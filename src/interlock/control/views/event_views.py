"""Events for readers: pages of one pipeline or of all, by type and time, either way round.

The store keeps events by pipeline and by (type, time). A page over all pipelines is therefore merged from one short
read per type, and costs the same wherever it begins. Events of one millisecond lie in the order of their types; readers
get them in the order they happened.
"""

import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from interlock.control import records
from interlock.model import keys
from interlock.model.errors import InvalidValueError
from interlock.model.events import Event, EventType, Severity
from interlock.model.keys import Table
from interlock.model.run import Run
from interlock.model.times import epoch_millis
from interlock.ports.store import Key, Record, Store

_SCAN: Final = 500
_MOST_OF_A_RUN: Final = 20_000
_MOST_LOOKED_AT: Final = 10_000
_AFTERWARDS: Final = timedelta(days=7)
_BEFORE: Final = timedelta(days=2)
_FIRST_OF_TYPE: Final = 20
_MARGIN: Final = timedelta(minutes=5)
_EARLIEST: Final = 0
_FAR: Final = 10**13 - 1


class EventView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An event. `id` is its place in the events table, and a cursor to page on from."""

    id: str
    type: EventType
    severity: Severity
    pipeline_id: str
    schedule_id: str
    date: str
    message: str
    timestamp: datetime
    detail: dict[str, Any] = {}


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some events; `next` is the cursor of the following page, null when there are no more (yet).

    A page may be short, or even empty, and still have a `next`: where few events fit, only so many are looked at.
    """

    items: list[EventView]
    next: str | None = None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which events. `since` counts, `until` does not; `newest_first` is the order.

    `pipelines`: of these alone; it costs a query each. `severity`: this one or worse. `text`: in the message, or in
    the names.
    """

    pipeline: str | None = None
    pipelines: tuple[str, ...] | None = None
    types: tuple[EventType, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    newest_first: bool = True
    severity: Severity | None = None
    schedule: str | None = None
    date: str | None = None
    text: str = ""

    @property
    def sieved(self) -> bool:
        """Does it ask for something that no index has?"""
        return bool(self.severity or self.schedule or self.date or self.text)

    def takes(self, event: EventView) -> bool:
        """Is it one of them, as far as no index says so?"""
        if self.severity is not None and event.severity.rank < self.severity.rank:
            return False
        if self.schedule is not None and event.schedule_id != self.schedule:
            return False
        if self.date is not None and event.date != self.date:
            return False
        searched = f"{event.message}\n{event.pipeline_id}\n{event.type}\n{event.date}"
        return self.text.casefold() in searched.casefold()


def view(pk: str, sk: str, event: Event) -> EventView:
    """An event with its place."""
    return EventView(
        id=f"{sk}~{keys.pipeline_of(pk)}",
        type=event.type,
        severity=event.severity,
        pipeline_id=event.pipeline_id,
        schedule_id=event.schedule_id,
        date=event.date,
        message=event.message,
        timestamp=event.timestamp,
        detail=event.detail,
    )


def page(store: Store, wanted: Wanted, now: datetime, *, cursor: str | None = None, limit: int = 100) -> EventPage:
    """A page of events; `cursor` is the `next` of the page before, or the `id` of any event."""
    begin = None if cursor is None else _place(cursor)
    # A little beyond: events made while this is read, and a clock that disagrees.
    wanted = replace(wanted, until=wanted.until or now + _MARGIN)
    if wanted.sieved:
        return _sieved(store, wanted, begin, limit)
    rows = _rows(store, wanted, begin, limit + 1)
    shown = rows[:limit]
    more = _cursor(shown[-1]) if shown and len(rows) > limit else None
    return EventPage(items=in_order([_view(row) for row in shown], newest_first=wanted.newest_first), next=more)


def _rows(store: Store, wanted: Wanted, begin: "_Place | None", limit: int) -> list[Record]:
    if wanted.pipeline is not None:
        return list(islice(_of_pipeline(store, wanted.pipeline, wanted, begin, max(_SCAN, limit)), limit))
    if wanted.pipelines is not None:
        streams = [_of_pipeline(store, one, wanted, begin, _FIRST_OF_TYPE) for one in wanted.pipelines]
        return list(islice(heapq.merge(*streams, key=_place_of, reverse=wanted.newest_first), limit))
    return _of_all(store, wanted, begin, limit)


def _sieved(store: Store, wanted: Wanted, begin: "_Place | None", limit: int) -> EventPage:
    """What no index has is looked for one event after the other, up to a bound; the cursor says where to go on."""
    found: list[EventView] = []
    looked = 0
    while looked < _MOST_LOOKED_AT:
        rows = _rows(store, wanted, begin, _SCAN)
        for row in rows:
            event = _view(row)
            if wanted.takes(event):
                found.append(event)
                if len(found) == limit:
                    return EventPage(items=in_order(found, newest_first=wanted.newest_first), next=_cursor(row))
        if len(rows) < _SCAN:
            return EventPage(items=in_order(found, newest_first=wanted.newest_first))
        looked += len(rows)
        begin = _place_of(rows[-1])
    last = None if begin is None else f"{begin.sk}~{keys.pipeline_of(begin.pk)}"
    return EventPage(items=in_order(found, newest_first=wanted.newest_first), next=last)


def in_order(events: Sequence[EventView], *, newest_first: bool = False) -> list[EventView]:
    """Events of one millisecond in the order they were made, whatever their types."""
    return sorted(events, key=made, reverse=newest_first)


def made(event: EventView) -> tuple[str, str]:
    """Its place in the order of events: the millisecond, as digits of one length, and its number in that."""
    millis, _, rest = event.id.partition("#")
    return millis, rest.partition("~")[0].rpartition("#")[2]


def of_run(store: Store, run: Run) -> list[EventView]:
    """All events of a run, in order."""
    begin = epoch_millis(run.first_opened_at - _BEFORE)
    end = epoch_millis(run.updated_at + _AFTERWARDS)
    after, found = _before_millis(begin), []
    for _ in range(_MOST_OF_A_RUN // _SCAN):
        rows = store.query(Table.EVENTS, run.key.pk, after=after, limit=_SCAN)
        found += [
            _view(row)
            for row in rows
            if _is_event(row) and row.item.get("date") == run.date and row.item.get("scheduleId") == run.schedule
        ]
        if len(rows) < _SCAN or _millis(rows[-1]) > end:
            break
        after = rows[-1].key.sk
    return in_order(found)


# ----------------------------------------------------------------------------------------------- where events are


class _Place(msgspec.Struct, frozen=True, order=True):
    """The order of events over all pipelines: that of the store's index."""

    millis: int
    sk: str
    pk: str


def _place(cursor: str) -> _Place:
    sk, mark, pipeline = cursor.partition("~")
    digits = sk.partition("#")[0]
    if not mark or not (digits.isascii() and digits.isdigit()) or len(digits) > 13 or len(cursor) > 1000:
        raise InvalidValueError(f"{cursor[:80]!r} is not a cursor: take the `next` of a page, or the `id` of an event")
    return _Place(int(digits), sk, keys.pipeline_pk(pipeline))


def _place_of(row: Record) -> _Place:
    return _Place(_millis(row), row.key.sk, row.key.pk)


def _cursor(row: Record) -> str:
    return f"{row.key.sk}~{keys.pipeline_of(row.key.pk)}"


def _view(row: Record) -> EventView:
    return view(row.key.pk, row.key.sk, records.convert(row.item, Event, row.key))


def _is_event(row: Record) -> bool:
    return row.key.sk[:1].isdigit()


def _millis(row: Record) -> int:
    digits = row.key.sk.partition("#")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else _FAR


def _before_millis(millis: int) -> str:
    """A sort key behind every event before that millisecond, and before every other."""
    return f"{max(millis, 0):013d}"


def _bounds(wanted: Wanted) -> tuple[int, int]:
    """since <= millis < until."""
    since = _EARLIEST if wanted.since is None else epoch_millis(wanted.since)
    until = _FAR if wanted.until is None else epoch_millis(wanted.until)
    return min(max(since, _EARLIEST), _FAR), min(max(until, _EARLIEST), _FAR)


def _of_pipeline(store: Store, pipeline: str, wanted: Wanted, begin: _Place | None, size: int) -> Iterator[Record]:
    """The events of a pipeline behind a place, read as they are asked for."""
    since, until = _bounds(wanted)
    reverse = wanted.newest_first
    start = _before_millis(until if reverse else since)
    if begin is not None:
        start = min(start, begin.sk) if reverse else max(start, begin.sk)
    while True:
        rows = store.query(Table.EVENTS, keys.pipeline_pk(pipeline), "", after=start, limit=size, reverse=reverse)
        inside = [row for row in rows if _is_event(row) and since <= _millis(row) < until]
        yield from (row for row in inside if not wanted.types or row.item.get("type") in wanted.types)
        if len(rows) < size or len(inside) < len(rows):
            return
        start, size = rows[-1].key.sk, max(size, min(size * 4, _SCAN))


def _of_all(store: Store, wanted: Wanted, begin: _Place | None, limit: int) -> list[Record]:
    types = wanted.types or tuple(EventType)
    streams = [_of_type(store, type_, wanted, begin, limit if len(types) == 1 else _FIRST_OF_TYPE) for type_ in types]
    return list(islice(heapq.merge(*streams, key=_place_of, reverse=wanted.newest_first), limit))


def _of_type(store: Store, type_: EventType, wanted: Wanted, begin: _Place | None, size: int) -> Iterator[Record]:
    """The events of a type behind a place, read as they are asked for. Most types have few, so it begins with few."""
    since, until = _bounds(wanted)
    after = None if begin is None else Key(Table.EVENTS, begin.pk, begin.sk)
    while True:
        rows = store.events_by_type(
            type_, since=since, until=until, limit=size, after=after, reverse=wanted.newest_first
        )
        yield from rows
        if len(rows) < size:
            return
        after, size = rows[-1].key, min(size * 4, _SCAN)

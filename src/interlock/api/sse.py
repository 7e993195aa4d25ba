"""Server-sent events: a connection's way from where it left off to what happens now, without a gap.

A position is `{seq}-{millis}-{number}`: the number of the change that carried the event, and the event's own place in
the order of commits (see `event_order`). Changes are kept until every consumer of the controller has passed
them, about a minute; within that a client resumes by the change. Later the events are read from their table, from the
very place where the client left off. Either way it misses nothing and gets nothing twice.

The connection joins the feed first and reads the past afterwards, up to where the feed stood when it joined. What
happens meanwhile waits in its queue. A client that does not read fast enough is told so and disconnected: it comes
back with `Last-Event-ID`, and costs no memory until then. A client whose token or session ends is disconnected within a
second.

The beat of a stream that is silent is a comment with the controller's time and the speed of its clock.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from interlock.api.served import Served
from interlock.api.visibility import Visibility
from interlock.control.views import event_views
from interlock.control.views.event_views import EventView, Wanted
from interlock.embedded.clock import rate
from interlock.embedded.stream.listeners import FeedEvent, SensorsWanted, SensorWritten
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType, Severity
from interlock.model.times import epoch_millis, format_instant

HEARTBEAT_SECONDS: Final = 15.0
QUEUE: Final = 1000
_PAGE: Final = 500
_RECENT_MILLIS: Final = 60_000
_RETRY: Final = b"retry: 2000\n\n"
# A clock that runs at its own speed may change it: who counts down by it must hear of that soon.
_SCALED_HEARTBEAT_SECONDS: Final = 1.0
# How often a stream looks whether its reader may still read it.
_LOOK_SECONDS: Final = 0.4
_END: Final = b"event: closed\ndata: the server is stopping; come back with Last-Event-ID\n\n"
_OVER: Final = b"event: closed\ndata: your token or session has ended\n\n"
_SLOW: Final = b"event: dropped\ndata: you read too slowly and were disconnected; come back with Last-Event-ID\n\n"
_OWN_NUMBER: Final = re.compile(r"[0-9a-f.]{0,32}")
# An event's number: a count, and behind it who counted.
_MAKER: Final = 12
_NUMBER: Final = 20
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class Position(msgspec.Struct, frozen=True):
    """Where a client left off. A `seq` of 0: the change is not known. No `number`: before all of that millisecond."""

    seq: int
    millis: int
    number: str = ""

    @classmethod
    def read(cls, text: str) -> "Position":
        """The position of a Last-Event-ID."""
        seq, mark, rest = text.strip().partition("-")
        millis, _, number = rest.partition("-")
        if not (mark and _number(seq) and _number(millis) and _OWN_NUMBER.fullmatch(number)):
            raise InvalidValueError(
                f"Last-Event-ID {text[:40]!r} is not one of ours: send the id of an event of this stream"
            )
        return cls(int(seq), int(millis), number)

    @classmethod
    def of(cls, seq: int, event: EventView) -> "Position":
        """The position behind an event."""
        millis, number = event_views.made(event)
        return cls(seq, int(millis), number)

    @classmethod
    def at(cls, instant: datetime) -> "Position":
        """The position of an instant."""
        return cls(0, max(epoch_millis(instant), 0))

    def is_behind(self, event: EventView) -> bool:
        """Did a client of this position get that event? Numbers of two processes say nothing about each other."""
        millis, number = event_views.made(event)
        same = len(number) >= _NUMBER and number[_MAKER:_NUMBER] == self.number[_MAKER:_NUMBER]
        return int(millis) == self.millis and same and number <= self.number

    def __str__(self) -> str:
        return f"{self.seq}-{self.millis}" + (f"-{self.number}" if self.number else "")


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15


class Filter(msgspec.Struct, frozen=True):
    """Which events a client wants, and which pipelines it may see; None means all."""

    pipeline: str | None
    types: frozenset[EventType]
    severity: Severity | None = None
    sensors: bool = False
    sensors_of: frozenset[str] = frozenset()
    visible: Visibility | None = None

    def takes(self, event: EventView) -> bool:
        """Is it one of them?"""
        if self.severity is not None and event.severity.rank < self.severity.rank:
            return False
        wanted = not self.types or event.type in self.types
        return wanted and self._of_pipeline(event.pipeline_id)

    def takes_sensor(self, written: SensorWritten) -> bool:
        """Is it a sensor of the pipeline?"""
        return self._of_pipeline(written.pipeline)

    def _of_pipeline(self, pipeline: str) -> bool:
        if self.pipeline is not None and pipeline != self.pipeline:
            return False
        return self.visible is None or pipeline in self.visible


class EventStream:
    """One client's connection."""

    def __init__(
        self,
        service: Served,
        wanted: Filter,
        position: Position | None,
        may_read: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_read`: whether the reader may still read, asked again and again."""
        self._service = service
        self._may_read = may_read
        self._wanted = wanted
        self._position = position
        self._queue: asyncio.Queue[FeedEvent | bytes | None] = asyncio.Queue(QUEUE + 1)
        self._slow = False
        self._sent: set[str] = set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is sent, until the client or the server goes."""
        loop = asyncio.get_running_loop()

        def take(entry: FeedEvent) -> None:
            if self._wanted.takes(entry.event):
                loop.call_soon_threadsafe(self._offer, entry)

        def ended() -> None:
            loop.call_soon_threadsafe(self._close)

        def written(sensors: tuple[SensorWritten, ...]) -> None:
            if mine := tuple(one for one in sensors if self._wanted.takes_sensor(one)):
                loop.call_soon_threadsafe(self._offer, _sensor_chunk(mine))

        sensors = SensorsWanted(written, self._wanted.sensors_of) if self._wanted.sensors else None
        ticket, joined_at = self._service.feed.join(take, ended, sensors)
        try:
            yield _RETRY if self._position is not None else self._beginning(joined_at)
            async for chunk in self._past(joined_at):
                yield chunk
            async for chunk in self._present():
                yield chunk
        finally:
            self._service.feed.leave(ticket)

    def _beginning(self, joined_at: int) -> bytes:
        """Where a client begins that came without a position: it may lose the connection before the first event."""
        return b"id: %s\n%s" % (str(Position(joined_at, epoch_millis(self._service.clock.now()))).encode(), _RETRY)

    def _offer(self, entry: FeedEvent | bytes) -> None:
        if self._queue.qsize() >= QUEUE:
            self._slow = True
        elif not self._slow:
            self._queue.put_nowait(entry)

    def _close(self) -> None:
        if not self._queue.full():
            self._queue.put_nowait(None)

    async def _present(self) -> AsyncIterator[bytes]:
        beat_at = time.monotonic() + self._heartbeat()
        while not (self._service.feed.stopped and self._queue.empty()):
            if self._slow and self._queue.empty():
                yield _SLOW
                return
            if not self._may_read():
                yield _OVER
                return
            try:
                entry = await asyncio.wait_for(self._queue.get(), _LOOK_SECONDS)
            except TimeoutError:
                if time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + self._heartbeat()
                    yield self._beat()
                continue
            if entry is None:
                break
            if isinstance(entry, bytes):
                yield entry
            elif entry.event.id not in self._sent:
                yield _chunk(entry.seq, entry.event)
        yield _END

    def _heartbeat(self) -> float:
        return HEARTBEAT_SECONDS if rate(self._service.clock) == 1.0 else _SCALED_HEARTBEAT_SECONDS

    def _beat(self) -> bytes:
        clock = self._service.clock
        return f": {format_instant(clock.now())};rate={rate(clock):g}\n\n".encode()

    # --------------------------------------------------------------------------------------------------- the past

    async def _past(self, until: int) -> AsyncIterator[bytes]:
        """Everything behind the position, up to the change number the feed will go on from."""
        position = self._position
        if position is None:
            return
        seq = position.seq
        while 0 < seq < until:
            found = await asyncio.to_thread(self._service.feed.between, seq, until, _PAGE)
            if found is None:
                seq = 0
                break
            events, seq = found
            for one in events:
                position = Position.of(one.seq, one.event)
                if self._wanted.takes(one.event):
                    yield _chunk(one.seq, one.event)
        if seq == 0:
            async for event in self._by_time(position):
                yield _chunk(0, event)

    async def _by_time(self, position: Position) -> AsyncIterator[EventView]:
        """From the table of events. Those of the last moments may wait in the queue, too: remembered, and sent once."""
        recent = epoch_millis(self._service.clock.now()) - _RECENT_MILLIS
        wanted = Wanted(
            pipeline=self._wanted.pipeline,
            pipelines=None if self._wanted.visible is None else tuple(self._wanted.visible.names()),
            types=tuple(self._wanted.types),
            severity=self._wanted.severity,
            since=_EPOCH + timedelta(milliseconds=min(position.millis, 10**13)),
            newest_first=False,
        )
        cursor: str | None = None
        held: list[EventView] = []
        while True:
            page = await asyncio.to_thread(self._page, wanted, cursor)
            cursor = page.next
            # A page may end within a millisecond, whose other events are on the next: they are sent in order, or else
            # a client that leaves between them would not know where it was.
            ready, held = _whole_millis([*held, *page.items], last=cursor is None)
            for event in ready:
                if epoch_millis(event.timestamp) >= recent:
                    self._sent.add(event.id)
                if not position.is_behind(event):
                    yield event
            if cursor is None:
                return

    def _page(self, wanted: Wanted, cursor: str | None) -> event_views.EventPage:
        service = self._service
        return event_views.page(service.store, wanted, service.clock.now(), cursor=cursor, limit=_PAGE)


def _whole_millis(events: list[EventView], *, last: bool) -> tuple[list[EventView], list[EventView]]:
    """Events in order: those of milliseconds that are complete, and those of one that may not be."""
    ordered = event_views.in_order(events)
    if last or not ordered:
        return ordered, []
    final = event_views.made(ordered[-1])[0]
    cut = next(index for index, event in enumerate(ordered) if event_views.made(event)[0] == final)
    return ordered[:cut], ordered[cut:]


@lru_cache(maxsize=8)
def _sensor_chunk(sensors: tuple[SensorWritten, ...]) -> bytes:
    """Made once for all clients that get the same."""
    return b"".join(
        b"event: sensor\ndata: %s\n\n"
        % msgspec.json.encode({"pipeline": one.pipeline, "key": one.key, "receivedAt": one.received_at})
        for one in sensors
    )


def _chunk(seq: int, event: EventView) -> bytes:
    position = Position.of(seq, event)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        str(position).encode(),
        event.type.value.encode(),
        msgspec.json.encode(event),
    )

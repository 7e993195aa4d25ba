"""Events as they happen, of a store that tells nobody: its index is looked at every two seconds while somebody listens.

Sensors have no index. Those of the pipelines that a listener names are looked at just as often, and what is not as it
was is handed on; a listener that names no pipeline hears of no sensor.

Events have no number there, so a listener that came from the past reads the table itself (`api.sse`), and what it reads
of the last moments is remembered. The index may show an event seconds after others of the same time, so every look
reaches back over the last ones; each event is handed on once.
"""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.control import records
from interlock.control.views import event_views
from interlock.control.views.event_views import EventView, Wanted
from interlock.embedded.stream.listeners import (
    FeedEvent,
    Listener,
    Listeners,
    SensorsWanted,
    SensorWritten,
    notify,
    notify_of_sensors,
)
from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model import keys
from interlock.model.errors import InterlockError
from interlock.model.keys import Table
from interlock.model.times import format_instant
from interlock.ports.clock import Clock
from interlock.ports.store import Span, Store

EVERY: Final = 2.0
_OVERLAP: Final = timedelta(seconds=15)
_PAGE: Final = 500

_log = get_logger(__name__)


class PolledFeed:
    """`api.served.Feed` by looking."""

    def __init__(self, store: Store, clock: Clock, *, every: float = EVERY, loops: Loops | None = None) -> None:
        self._store = store
        self._clock = clock
        self._every = every
        self._listeners = Listeners()
        self._sensors: dict[str, dict[str, bytes]] = {}
        self._given: dict[str, datetime] = {}
        self._loop = (loops or Loops()).add("feed", self._run, vital=False)
        self.problem = ""
        """Why events cannot be followed now; "" when they can."""

    def start(self) -> None:
        """Follow on a thread."""
        self._loop.start()

    def stop(self) -> None:
        """Tell nobody any more, but that this is the end. Stopping twice is no error."""
        self._listeners.stop()
        self._loop.stop()
        self._listeners.end()

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._listeners)

    @property
    def stopped(self) -> bool:
        """Will nothing come any more?"""
        return self._listeners.stopped

    def join(
        self,
        listener: Listener,
        ended: Callable[[], None],
        sensors: SensorsWanted | None = None,
    ) -> tuple[int, int]:
        """Receive every event from now on, and the end. Events have the number 0."""
        with self._listeners.lock:
            return self._listeners.add(listener, ended, sensors if sensors and sensors.pipelines else None), 0

    def leave(self, ticket: int) -> None:
        """Stop receiving events."""
        self._listeners.leave(ticket)

    def between(self, after: int, until: int, limit: int = _PAGE) -> tuple[list[FeedEvent], int] | None:
        """Nobody knows: the table is to be read by time."""
        return None

    # -------------------------------------------------------------------------------------------------- looking

    def _run(self) -> None:
        idle = True
        while True:
            idle = idle or not self._listeners
            if not self._listeners.wait():
                return
            try:
                self._look(tell=not idle)
                self._look_at_sensors()
                idle, self.problem = False, ""
            except InterlockError as error:
                self.problem = f"the events of the environment cannot be read: {error}"
                _log.error("the events cannot be followed; trying again", error=str(error))
            self._listeners.pause(self._every)

    def _look(self, *, tell: bool) -> None:
        """Hand on what is new. The first look after a silence hands on nothing: who came from then reads the table."""
        now = self._clock.now()
        begin = now - _OVERLAP
        fresh = [one for one in self._since(begin) if one.id not in self._given]
        with self._listeners.lock:
            listeners = self._listeners.events
        for event in event_views.in_order(fresh):
            self._given[event.id] = event.timestamp
            for listener in listeners if tell else ():
                notify(listener, FeedEvent(0, event))
        self._given = {id_: at for id_, at in self._given.items() if at >= begin}

    def _look_at_sensors(self) -> None:
        """Hand on what was written since the last look; of a pipeline that is new here, what was written lately."""
        wanted = self._listeners.sensors
        pipelines = sorted(frozenset[str]().union(*(one.pipelines for one in wanted)))
        now = self._clock.now()
        recent = format_instant(now - _OVERLAP)
        spans = [Span(keys.pipeline_pk(one), keys.SENSOR, keys.SENSOR + keys.LAST) for one in pipelines]
        written: list[SensorWritten] = []
        seen: dict[str, dict[str, bytes]] = {}
        for pipeline, rows in zip(pipelines, self._read(spans), strict=True):
            before = self._sensors.get(pipeline)
            seen[pipeline] = {sk: _digest(item) for sk, item in rows}
            for sk, item in rows:
                received = str(item.get(records.RECEIVED) or "")
                if (received >= recent) if before is None else (before.get(sk) != seen[pipeline][sk]):
                    written.append(SensorWritten(pipeline, sk[len(keys.SENSOR) :], received or format_instant(now)))
        self._sensors = seen
        notify_of_sensors(wanted, written)

    def _read(self, spans: list[Span]) -> list[list[tuple[str, dict[str, Any]]]]:
        return self._store.read_spans(Table.CONTROL, spans, dict[str, Any]) if spans else []

    def _since(self, begin: datetime) -> list[EventView]:
        wanted, cursor = Wanted(since=begin, newest_first=False), None
        found: list[EventView] = []
        while True:
            page = event_views.page(self._store, wanted, self._clock.now(), cursor=cursor, limit=_PAGE)
            found += page.items
            cursor = page.next
            if cursor is None:
                return found


def _digest(item: Mapping[str, Any]) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(item, order="deterministic"), digest_size=16).digest()

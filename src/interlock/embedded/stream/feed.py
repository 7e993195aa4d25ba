"""The events as they are committed, to anybody who listens in this process: the live side of `GET events/stream`.

One thread follows the changes and hands every event to every listener, in the order of the commits. A listener that
came from the past first reads up to where the feed stood when it joined (`between`), so that it misses nothing and gets
nothing twice. Changes are pruned when all consumers have passed them; `between` says when it cannot reach back.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from interlock.control import records
from interlock.control.views import event_views
from interlock.embedded.sqlite.database import Database, Row
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
from interlock.model.errors import InterlockError
from interlock.model.events import Event
from interlock.model.keys import PIPELINE, SENSOR, Table
from interlock.model.times import format_instant
from interlock.ports.store import Item, Key

_SELECT: Final = (
    "SELECT seq, pk, sk, item FROM changes"
    f" WHERE seq > ? AND seq <= ? AND tbl = '{Table.EVENTS}' AND consumer IS NULL AND item IS NOT NULL"
    " ORDER BY seq LIMIT ?"
)
# The number of the oldest change that is still there, or of the next one to come.
_FIRST: Final = (
    "SELECT coalesce((SELECT min(seq) FROM changes), (SELECT seq + 1 FROM sqlite_sequence WHERE name = 'changes'), 1)"
)
_CHUNK: Final = 500
_WAIT_SECONDS: Final = 0.5
# How long written sensors are collected before they are handed on.
_SENSOR_SECONDS: Final = 0.15
_EPOCH: Final = datetime.fromtimestamp(0, UTC)

_decode: Final = msgspec.json.Decoder(Item).decode

_log = get_logger(__name__)


# What a sensor's change says besides its key: when it was received, where our API wrote it.
_SENSORS: Final = (
    "SELECT pk, sk, at, json_extract(item, '$._receivedAt') FROM changes"
    f" WHERE seq > ? AND seq <= ? AND tbl = '{Table.CONTROL}' AND consumer IS NULL AND item IS NOT NULL"
    f" AND sk >= '{SENSOR}' AND sk < '{SENSOR[:-1]}$' ORDER BY seq"
)


class EventFeed:
    """Follows the events of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners = Listeners()
        self._written: dict[tuple[str, str], SensorWritten] = {}
        self._sensors_due = 0.0
        self._position = 0
        self._loop = database.loops.add("feed", self._run, vital=False)

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
        self, listener: Listener, ended: Callable[[], None], sensors: SensorsWanted | None = None
    ) -> tuple[int, int]:
        """Receive every event from now on, and the end. Returns a ticket, and the number of the last event before.

        All listeners must return quickly. `sensors` receives the sensors that are written, each key once, several times
        a second at most. Sensors are not read while no listener wants them.
        """
        with self._listeners.lock:
            if not self._listeners:
                self._position = self._database.head()
            return self._listeners.add(listener, ended, sensors), self._position

    def leave(self, ticket: int) -> None:
        """Stop receiving events."""
        self._listeners.leave(ticket)

    def between(self, after: int, until: int, limit: int = _CHUNK) -> tuple[list[FeedEvent], int] | None:
        """Some events with after < seq <= until, and how far they reach; None when some of them may be gone."""
        if after >= until:
            return [], until
        # Read first, ask afterwards: what was pruned in between is then noticed.
        rows = self._database.read(_SELECT, (after, until, limit))
        (first,) = self._database.read(_FIRST)[0]
        return None if after + 1 < first else (_feed_events(rows), int(rows[-1][0]) if len(rows) == limit else until)

    def _run(self) -> None:
        # While nobody listens, it waits: following every commit for nobody would cost the others their turn.
        while self._listeners.wait():
            self._advance(self._database.wait_for_change(self._position, self._patience()))
            self._tell_of_sensors()

    def _advance(self, head: int) -> None:
        while (start := self._position) < head:
            rows = self._database.read(_SELECT, (start, head, _CHUNK))
            position = int(rows[-1][0]) if len(rows) == _CHUNK else head
            events = _feed_events(rows)
            written = self._sensors(start, position) if self._listeners.sensors else {}
            with self._listeners.lock:
                if self._position != start:
                    return  # the last listener left and another joined meanwhile, from a later position
                self._position = position
                listeners = self._listeners.events
                for one in events:
                    for listener in listeners:
                        notify(listener, one)
            self._written |= written

    def _patience(self) -> float:
        """How long to wait for a change: less while there are sensors to tell of."""
        return max(min(self._sensors_due - time.monotonic(), _WAIT_SECONDS), 0.0) if self._written else _WAIT_SECONDS

    def _tell_of_sensors(self) -> None:
        """Tell of sensors, but not after every commit: they may be written by the thousand, and be read by hundreds."""
        if not self._written or time.monotonic() < self._sensors_due:
            return
        written, self._written = list(self._written.values()), {}
        self._sensors_due = time.monotonic() + _SENSOR_SECONDS
        notify_of_sensors(self._listeners.sensors, written)

    def _sensors(self, start: int, end: int) -> dict[tuple[str, str], SensorWritten]:
        """The sensors that were written, each key once: only that it was is of interest."""
        found: dict[tuple[str, str], SensorWritten] = {}
        for pk, sk, at, received in self._database.read(_SENSORS, (start, end)):
            if pk.startswith(PIPELINE):
                pipeline, key = pk[len(PIPELINE) :], sk[len(SENSOR) :]
                when = received or format_instant(_EPOCH + timedelta(milliseconds=at))
                found[pipeline, key] = SensorWritten(pipeline, key, when)
        return found


def _feed_events(rows: list[Row]) -> list[FeedEvent]:
    found = []
    for seq, pk, sk, item in rows:
        if pk.startswith(PIPELINE) and sk[:1].isdigit():
            try:
                event = records.convert(_decode(item), Event, Key(Table.EVENTS, pk, sk))
            except InterlockError as error:
                # The event-sink makes it a dead letter; here it must not stand before all that come after it.
                _log.warning("an event cannot be read; it is left out", error=str(error))
                continue
            found.append(FeedEvent(seq, event_views.view(pk, sk, event)))
    return found

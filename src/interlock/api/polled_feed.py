"""Events as they happen, of a store that tells nobody: its index is looked at every two seconds while somebody listens.

Events have no number there, so a listener that came from the past reads the table itself (`api.sse`), and what it reads
of the last moments is remembered. The index may show an event seconds after others of the same time, so every look
reaches back over the last ones; each event is handed on once.
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from interlock.control.views import event_views
from interlock.control.views.event_views import EventView, Wanted
from interlock.embedded.stream.feed import FeedEvent, Listener, SensorListener
from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model.errors import InterlockError
from interlock.ports.clock import Clock
from interlock.ports.store import Store

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
        self._lock = threading.Lock()
        self._wanted = threading.Condition(self._lock)
        self._listeners: dict[int, tuple[Listener, Callable[[], None]]] = {}
        self._joined = 0
        self._given: dict[str, datetime] = {}
        self._stopping = threading.Event()
        self._loop = (loops or Loops()).add("feed", self._run, vital=False)
        self.problem = ""
        """Why events cannot be followed now; "" when they can."""

    def start(self) -> None:
        """Follow on a thread."""
        self._loop.start()

    def stop(self) -> None:
        """Tell nobody any more, but that this is the end. Stopping twice is no error."""
        self._stopping.set()
        with self._lock:
            self._wanted.notify_all()
        self._loop.stop()
        with self._lock:
            enders, self._listeners = [ended for _, ended in self._listeners.values()], {}
        for ended in enders:
            ended()

    @property
    def listeners(self) -> int:
        """How many listen now."""
        with self._lock:
            return len(self._listeners)

    @property
    def stopped(self) -> bool:
        """Will nothing come any more?"""
        return self._stopping.is_set()

    def join(
        self,
        listener: Listener,
        ended: Callable[[], None],
        sensors: SensorListener | None = None,
    ) -> tuple[int, int]:
        """Receive every event from now on, and the end. Events have the number 0."""
        with self._lock:
            self._joined += 1
            self._listeners[self._joined] = listener, ended
            self._wanted.notify_all()
            return self._joined, 0

    def leave(self, ticket: int) -> None:
        """Stop receiving events."""
        with self._lock:
            self._listeners.pop(ticket, None)

    def between(self, after: int, until: int, limit: int = _PAGE) -> tuple[list[FeedEvent], int] | None:
        """Nobody knows: the table is to be read by time."""
        return None

    # -------------------------------------------------------------------------------------------------- looking

    def _run(self) -> None:
        idle = True
        while True:
            with self._lock:
                idle = idle or not self._listeners
                self._wanted.wait_for(lambda: self._listeners or self._stopping.is_set())
            if self._stopping.is_set():
                return
            try:
                self._look(tell=not idle)
                idle, self.problem = False, ""
            except InterlockError as error:
                self.problem = f"the events of the environment cannot be read: {error}"
                _log.error("the events cannot be followed; trying again", error=str(error))
            self._stopping.wait(self._every)

    def _look(self, *, tell: bool) -> None:
        """Hand on what is new. The first look after a silence hands on nothing: who came from then reads the table."""
        now = self._clock.now()
        begin = now - _OVERLAP
        fresh = [one for one in self._since(begin) if one.id not in self._given]
        with self._lock:
            listeners = [listener for listener, _ in self._listeners.values()]
        for event in event_views.in_order(fresh):
            self._given[event.id] = event.timestamp
            for listener in listeners if tell else ():
                _notify(listener, event)
        self._given = {id_: at for id_, at in self._given.items() if at >= begin}

    def _since(self, begin: datetime) -> list[EventView]:
        wanted, cursor = Wanted(since=begin, newest_first=False), None
        found: list[EventView] = []
        while True:
            page = event_views.page(self._store, wanted, self._clock.now(), cursor=cursor, limit=_PAGE)
            found += page.items
            cursor = page.next
            if cursor is None:
                return found


def _notify(listener: Listener, event: EventView) -> None:
    try:
        listener(FeedEvent(0, event))
    except Exception:  # noqa: BLE001  the others listen on
        _log.exception("a listener of the events failed")

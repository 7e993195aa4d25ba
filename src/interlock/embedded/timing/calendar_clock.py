"""What the wall clock opens, kept in memory: for every schedule its place (see `control.ticks`), in a heap.

At start every schedule begins at the ticks that may still be delivered late (SPEC 2), and delivering a tick again does
nothing, so there is nothing that a crash could lose.
"""

import heapq
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from interlock.control import catalog, ticks
from interlock.control.context import Control
from interlock.control.ticks import Place
from interlock.logs import get_logger
from interlock.model.config import Schedule

_log = get_logger(__name__)
_TRY_AGAIN: Final = timedelta(seconds=1)


class _Entry:
    """A schedule and the instant for which it waits in the heap; None: nothing is due any more, or not known yet."""

    __slots__ = ("at", "live", "place")

    def __init__(self, place: Place, at: datetime | None = None) -> None:
        self.place = place
        self.at = at
        self.live = True


class CalendarClock:
    """Delivers cron ticks and inclusion dates as their instants come."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = threading.RLock()
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._heap: list[tuple[datetime, int, _Entry]] = []
        self._count = 0

    def load(self, found: Sequence[catalog.Stored]) -> None:
        """Begin with every stored pipeline, by the configs that were read of them."""
        for pipeline, places in ticks.places_of(self._control, found, self._kept).items():
            self._follow(pipeline, [_Entry(place, place.next_at) for place in places])

    def refresh(self, pipeline: str) -> None:
        """A pipeline's config was written or removed: follow it. Schedules that did not change keep their place."""
        self.follow(pipeline, catalog.stored(self._control.store, pipeline))

    def follow(self, pipeline: str, found: catalog.Stored | None) -> None:
        """As `refresh`, by a config that was read already."""
        with self._lock:
            entries = list(self._entries.get(pipeline, {}).values())
        if found is not None and entries and all(entry.place.config is found.config for entry in entries):
            # It was followed when the controller started, or is the same again: only its turn among equals is new.
            fresh = [_Entry(entry.place, entry.at) for entry in entries]
        else:
            places = ticks.places_by(self._control, found, self._kept(pipeline))
            fresh = [_Entry(place, place.next_at) for place in places]
        self._follow(pipeline, fresh)

    def _kept(self, pipeline: str) -> ticks.Kept:
        with self._lock:
            before = {name: entry.place for name, entry in self._entries.get(pipeline, {}).items()}

        def kept(schedule: Schedule) -> datetime | None:
            old = before.get(schedule.schedule_id)
            return old.done_to if old is not None and old.schedule == schedule else None

        return kept

    def _follow(self, pipeline: str, fresh: list[_Entry]) -> None:
        with self._lock:
            for entry in self._entries.pop(pipeline, {}).values():
                entry.live = False
            if fresh:
                self._entries[pipeline] = {entry.place.schedule.schedule_id: entry for entry in fresh}
            for entry in fresh:
                self._push(entry, entry.at)

    def _push(self, entry: _Entry, at: datetime | None = None) -> None:
        place = entry.place
        due = ticks.next_due(self._control, place.schedule, place.done_to) if at is None else None
        entry.at = at = at or (due.at if due is not None else None)
        if at is not None:
            self._count += 1
            heapq.heappush(self._heap, (at, self._count, entry))

    def next_at(self) -> datetime | None:
        """When the next run is opened by the clock."""
        with self._lock:
            while self._heap and not self._heap[0][2].live:
                heapq.heappop(self._heap)
            return self._heap[0][0] if self._heap else None

    def deliver_due(self, now: datetime) -> int:
        """Deliver everything that has come; how many instants it was. A failing pipeline does not stop the others."""
        count = 0
        while (at := self.next_at()) is not None and at <= now:
            with self._lock:
                _, _, entry = heapq.heappop(self._heap)
            count += self._deliver(entry, now)
        return count

    def _deliver(self, entry: _Entry, now: datetime) -> int:
        place = entry.place
        done_to, again, count = now, None, 1
        try:
            count = ticks.deliver_until(self._control, place, now)
        except Exception as error:  # noqa: BLE001 - tried again in a moment: delivering what was delivered does nothing
            _log.error("a tick could not be delivered", pipeline=place.config.id, error=str(error))
            done_to, again = place.done_to, now + _TRY_AGAIN
        with self._lock:
            entry.place = Place(place.config, place.schedule, done_to)
            if entry.live:
                self._push(entry, again)
        return count

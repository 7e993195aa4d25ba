"""What the wall clock opens: keeps, for every schedule, the instant up to which its ticks were delivered.

The instants are kept in memory only. At start every schedule begins at the ticks that may still be delivered late
(SPEC 2), and delivering a tick again does nothing, so there is nothing that a crash could lose.
"""

import heapq
import threading
from datetime import datetime, timedelta
from typing import Final

import structlog

from interlock.control import catalog, ticks
from interlock.control.context import Control
from interlock.model.config import PipelineConfig, Schedule

_log = structlog.get_logger(__name__)
_TRY_AGAIN: Final = timedelta(seconds=1)


class _Entry:
    __slots__ = ("config", "done_to", "live", "schedule")

    def __init__(self, config: PipelineConfig, schedule: Schedule, done_to: datetime) -> None:
        self.config = config
        self.schedule = schedule
        self.done_to = done_to
        self.live = True


class CalendarClock:
    """Delivers cron ticks and inclusion dates as their instants come."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = threading.RLock()
        self._entries: dict[str, dict[str, _Entry]] = {}
        self._heap: list[tuple[datetime, int, _Entry]] = []
        self._count = 0

    def load(self) -> None:
        """Begin with every stored pipeline."""
        for pipeline in self._control.store.pipelines():
            self.refresh(pipeline)

    def refresh(self, pipeline: str) -> None:
        """A pipeline's config was written or removed: follow it. Schedules that did not change keep their place."""
        found = catalog.stored(self._control.store, pipeline)
        config = found.config if found is not None else None
        now = self._control.now()
        with self._lock:
            before = self._entries.pop(pipeline, {})
            for entry in before.values():
                entry.live = False
            if found is None or config is None or config.dry_run:
                return
            since = max(catalog.first_started(self._control), found.first_applied_at or now)
            self._entries[pipeline] = {}
            for schedule in config.all_schedules:
                old = before.get(schedule.schedule_id)
                if old is not None and old.schedule == schedule:
                    self._add(config, schedule, old.done_to)
                else:
                    self._add(config, schedule, _begin(self._control, config, schedule, since))

    def _add(self, config: PipelineConfig, schedule: Schedule, done_to: datetime) -> None:
        entry = _Entry(config, schedule, done_to)
        self._entries[config.id][schedule.schedule_id] = entry
        self._push(entry)

    def _push(self, entry: _Entry, at: datetime | None = None) -> None:
        due = ticks.next_due(self._control, entry.schedule, entry.done_to) if at is None else None
        at = at or (due.at if due is not None else None)
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
        found = ticks.due_between(self._control, entry.schedule, entry.done_to, now)
        done_to, again = now, None
        try:
            for due in found:
                ticks.deliver(self._control, entry.config, entry.schedule, due)
        except Exception as error:  # noqa: BLE001 - tried again in a moment: delivering what was delivered does nothing
            _log.error("a tick could not be delivered", pipeline=entry.config.id, error=str(error))
            done_to, again = entry.done_to, now + _TRY_AGAIN
        with self._lock:
            entry.done_to = done_to
            if entry.live:
                self._push(entry, again)
        return len(found)


def _begin(control: Control, config: PipelineConfig, schedule: Schedule, since: datetime) -> datetime:
    """Just before the first instant that may still be delivered, or now."""
    late = ticks.overdue(control, config, schedule, since)
    return late[0].at - late[0].at.resolution if late else control.now()

"""Which pipelines the watchdog may leave out: those of which nothing was written since it looked, and nothing is due.

For a runtime that has a memory and sees every change. A pipeline is quiet until the first instant at which a check
could come to another verdict by the clock alone (`watch_plan`), but never for longer than an hour, and never while an
attempt is under way: an execution may end without a write. Whatever is not known is looked at.
"""

import threading
from datetime import datetime, timedelta
from typing import Final

LONGEST: Final = timedelta(hours=1)


class Quiet:
    """One thread reports changes to it, another asks it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[str, datetime] = {}
        self._changes: dict[str, int] = {}
        self._count = 0
        self._all = 0

    def changed(self, pipeline: str) -> None:
        """Something of it was written."""
        with self._lock:
            self._until.pop(pipeline, None)
            self._count += 1
            self._changes[pipeline] = self._count

    def all_changed(self) -> None:
        """Something that may matter to every pipeline was written: a calendar."""
        with self._lock:
            self._count += 1
            self._all = self._count
            self._until.clear()
            self._changes.clear()

    def mark(self, pipeline: str) -> int:
        """Before it is looked at: what `looked_at` is given afterwards."""
        with self._lock:
            return max(self._changes.get(pipeline, 0), self._all)

    def looked_at(self, pipeline: str, mark: int, now: datetime, until: datetime | None) -> None:
        """It was looked at, and nothing can become due before `until` (None: ever). In vain if it changed meanwhile."""
        with self._lock:
            if max(self._changes.get(pipeline, 0), self._all) == mark:
                self._changes.pop(pipeline, None)
                self._until[pipeline] = min(until or now + LONGEST, now + LONGEST)

    def may_skip(self, pipeline: str, now: datetime) -> bool:
        """Could a look find nothing?"""
        with self._lock:
            until = self._until.get(pipeline)
            return until is not None and now < until

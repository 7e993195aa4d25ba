"""Can the store be written? Answered from how recent commits went, and by a tiny durable write when there were none.

A full disk takes small writes now and then, into pages of the log that are used again, while larger ones fail: so one
success says little shortly after a failure.
"""

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Protocol

from interlock.model.errors import StoreError

# How long a commit says something about the next.
_RECENT_SECONDS: Final = 3.0
# How often the answer may cost a write, and how long that may take.
_PROBE_EVERY_SECONDS: Final = 1.0
_PROBE_SECONDS: Final = 5.0
_BEAT: Final = "INSERT INTO heartbeat (id, beat) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET beat = beat + 1"

CANNOT_BE_WRITTEN: Final = "the store cannot be written"
TOO_SLOW: Final = f"the store did not take a write within {_PROBE_SECONDS:.0f} s"


class Submit(Protocol):
    """`Database.submit`."""

    def __call__(self, work: Callable[[sqlite3.Connection], object], /) -> Future[object]:
        """Queue a piece of work."""
        ...


class CommitHealth:
    """Notified of every commit that wrote something, and of every commit that failed."""

    def __init__(self, submit: Submit, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._submit = submit
        self._monotonic = monotonic
        self._succeeded_at: float | None = None
        self._failed_at: float | None = None
        self._lock = threading.Lock()
        self._probe: Future[object] | None = None
        self._probed_at: float | None = None

    def succeeded(self) -> None:
        """A commit is on the disk."""
        self._succeeded_at = self._monotonic()

    def failed(self) -> None:
        """A commit failed, through no fault of what was written."""
        self._failed_at = self._monotonic()

    def problem(self) -> str:
        """Why the store cannot be written, in words; "" when it can."""
        now = self._monotonic()
        if self._is_recent(self._failed_at, now):
            return CANNOT_BE_WRITTEN
        if self._is_recent(self._succeeded_at, now):
            return ""
        return self._ask(now)

    def _is_recent(self, at: float | None, now: float) -> bool:
        return at is not None and now - at < _RECENT_SECONDS

    def _ask(self, now: float) -> str:
        try:
            self._probing(now).result(_PROBE_SECONDS)
        except TimeoutError:
            return TOO_SLOW
        except (StoreError, sqlite3.Error):
            return CANNOT_BE_WRITTEN
        return ""

    def _probing(self, now: float) -> Future[object]:
        """A write that is under way or was made a moment ago, or a new one."""
        with self._lock:
            fresh = self._probed_at is not None and now - self._probed_at < _PROBE_EVERY_SECONDS
            if self._probe is None or (self._probe.done() and not fresh):
                self._probed_at = now
                self._probe = self._submit(lambda connection: connection.execute(_BEAT).rowcount)
            return self._probe

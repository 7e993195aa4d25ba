"""The real clock. The only file of the program that reads it."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class SystemClock:
    """The time of the machine, aware, UTC, never backwards.

    When the machine's clock is set back, time goes on at half speed until the machine has caught up. Standing still
    instead would hold up every timer for as long as the correction was large, and a watchdog must not stop.
    """

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._latest = wall()
        self._measured = monotonic()

    def now(self) -> datetime:
        """The current instant."""
        with self._lock:
            wall, measured = self._wall(), self._monotonic()
            self._latest = max(wall, self._latest + (measured - self._measured) // 2)
            self._measured = measured
            return _EPOCH + timedelta(microseconds=self._latest // 1000)


def pause(seconds: float) -> None:
    """Hold this thread for a moment: between two tries of something that has no condition to wait on."""
    time.sleep(seconds)

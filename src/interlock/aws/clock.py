"""The real clock of a function. With `embedded/clock.py` the only file of the program that reads it."""

import threading
from datetime import UTC, datetime


class LambdaClock:
    """The time of the machine that runs the function, aware, UTC, never backwards within a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = datetime.now(UTC)

    def now(self) -> datetime:
        """The current instant."""
        with self._lock:
            self._latest = max(self._latest, datetime.now(UTC))
            return self._latest


def pause(seconds: float) -> None:
    """Hold this thread for a moment, between two tries of a call."""
    threading.Event().wait(seconds)

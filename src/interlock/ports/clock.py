"""The one way to learn the time."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time, real or virtual."""

    def now(self) -> datetime:
        """The current instant, aware, UTC. Never goes backwards within a process."""
        ...

"""The event bus: EventBridge on AWS, in-process subscribers embedded."""

from collections.abc import Sequence
from typing import Protocol

from interlock.model.events import Event


class Bus(Protocol):
    """Where committed events are made known. At least once, in order per pipeline."""

    def publish(self, events: Sequence[Event]) -> None:
        """Hand over; raises when not all were taken, and the caller hands all of them over again."""
        ...

"""The event bus: EventBridge on AWS, in-process subscribers embedded."""

from collections.abc import Sequence
from typing import Protocol

from interlock.model.events import Event


class Bus(Protocol):
    """Where committed events are made known, at least once. To subscribers outside no order is promised: they sort by
    `timestamp`, and tell repetitions by the event's id. The events table and the built-in alerts are in order per
    pipeline, and read no bus.
    """

    def publish(self, events: Sequence[Event]) -> None:
        """Hand over; raises when not all were taken, and the caller hands all of them over again."""
        ...

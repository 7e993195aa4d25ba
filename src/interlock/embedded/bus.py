"""The in-process event bus: subscribers with EventBridge patterns, called in the order of the events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlock.decide.patterns import check_pattern, matches
from interlock.model.events import Event

Subscriber = Callable[[Event], None]


class LocalBus:
    """Hands each event to every subscriber whose pattern it matches.

    A subscriber that raises makes the whole hand-over fail, and it is made again: subscribers see an event at least
    once. One that must not hold up the others keeps a queue of its own.
    """

    def __init__(self) -> None:
        self._subscribers: list[tuple[Mapping[str, Any] | None, Subscriber]] = []

    def subscribe(self, subscriber: Subscriber, pattern: Mapping[str, Any] | None = None) -> None:
        """Call `subscriber` for every event, or for those that match an EventBridge pattern."""
        if pattern is not None:
            check_pattern(pattern)
        self._subscribers.append((pattern, subscriber))

    def publish(self, events: Sequence[Event]) -> None:
        """Hand the events over, in their order."""
        for event in events:
            envelope = event.envelope()
            for pattern, subscriber in self._subscribers:
                if pattern is None or matches(pattern, envelope):
                    subscriber(event)

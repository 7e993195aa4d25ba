"""The in-process event bus: subscribers with EventBridge patterns, called in the order of the events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlock.decide.patterns import compile_pattern
from interlock.model.events import Event

Subscriber = Callable[[Event], None]
Matcher = Callable[[Mapping[str, Any]], bool]


class LocalBus:
    """Hands each event to every subscriber whose pattern it matches.

    A subscriber that raises makes the whole hand-over fail, and it is made again: subscribers see an event at least
    once. They are called on the writer thread, as fibers: one that waits for anything but a commit of its own holds up
    every commit, and keeps a queue and a thread of its own instead.
    """

    def __init__(self) -> None:
        self._subscribers: list[tuple[Matcher | None, Subscriber]] = []

    def subscribe(self, subscriber: Subscriber, pattern: Mapping[str, Any] | None = None) -> None:
        """Call `subscriber` for every event, or for those that match an EventBridge pattern."""
        self._subscribers.append((None if pattern is None else compile_pattern(pattern), subscriber))

    def publish(self, events: Sequence[Event]) -> None:
        """Hand the events over, in their order."""
        for event in events if self._subscribers else ():
            envelope = event.envelope()
            for matches, subscriber in self._subscribers:
                if matches is None or matches(envelope):
                    subscriber(event)

"""What happened in the demo, in order: the controller's events, and the notes of what the world outside did."""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from interlock.control.views.event_views import EventView
from interlock.embedded.stream.listeners import FeedEvent
from interlock.model.events import EventType


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is no event: what a feed did (`feed`), what a run waits for (`why`), or a headline (`act`)."""

    at: datetime
    kind: str
    text: str
    pipeline: str = ""
    date: str = ""


Entry = Note | EventView


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """An event to look out for. `not_before`: seen earlier, something went wrong."""

    type: EventType
    pipeline: str
    date: str
    attempt: int | None = None
    not_before: datetime | None = None

    def matches(self, event: EventView) -> bool:
        """Is this the event?"""
        if (event.type, event.pipeline_id, event.date) != (self.type, self.pipeline, self.date):
            return False
        return self.attempt is None or event.detail.get("attempt") == self.attempt

    def __str__(self) -> str:
        attempt = "" if self.attempt is None else f", attempt {self.attempt}"
        return f"{self.type} of {self.pipeline} for {self.date}{attempt}"


class Stopped(Exception):  # noqa: N818 - not an error: somebody has seen enough
    """The demo is over; whoever waits for something in it ends."""


class Timeline:
    """Collects entries, hands them to a printer, and lets one wait for an event."""

    def __init__(self, printer: Callable[[Entry], None]) -> None:
        self._printer = printer
        self._news = threading.Condition()
        self._events: list[EventView] = []
        self._closed = False

    def committed(self, entry: FeedEvent) -> None:
        """An event was committed."""
        with self._news:
            self._events.append(entry.event)
            self._print(entry.event)
            self._news.notify_all()

    def note(self, note: Note) -> None:
        """Something happened outside the controller."""
        with self._news:
            self._print(note)

    def _print(self, entry: Entry) -> None:
        if self._closed:
            return
        try:
            self._printer(entry)
        except (OSError, SystemExit):  # the console's answer to a pipe whose reader has gone
            self._closed = True
            self._news.notify_all()

    def close(self) -> None:
        """It is over: print nothing more, and let nobody wait."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    @property
    def events(self) -> Sequence[EventView]:
        """The events so far, in the order of their commits."""
        with self._news:
            return tuple(self._events)

    def wait_for(self, sight: Sight, seconds: float) -> EventView | None:
        """The event, as soon as it is there; None when it has not come for so long."""
        with self._news:
            self._news.wait_for(lambda: self._closed or self._first(sight) is not None, seconds)
            found = self._first(sight)
            if found is None and self._closed:
                raise Stopped
            return found

    def rest(self, seconds: float) -> None:
        """Let so much real time pass, unless it is over."""
        with self._news:
            self._news.wait_for(lambda: self._closed, seconds)
            if self._closed:
                raise Stopped

    def _first(self, sight: Sight) -> EventView | None:
        return next((event for event in self._events if sight.matches(event)), None)

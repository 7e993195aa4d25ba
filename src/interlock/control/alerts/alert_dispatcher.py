"""alert-dispatcher: which events people hear of, on which channel, in which thread, and when a failed one goes again.

An event of the stream becomes zero or more deliveries, one per channel; a queue keeps them until each is sent. What is
decided here is the same on every runtime; the queue is the runtime's own (SQLite embedded, SQS on AWS).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from interlock.control.event_sink import event_of, is_event
from interlock.decide.patterns import Predicate, compile_pattern
from interlock.model import keys
from interlock.model.events import EVENT_TTL_DAYS, Event, Severity
from interlock.model.keys import RunKey, Table
from interlock.ports.channel import Alert, DeliveryError
from interlock.ports.store import Change, Key, Store, Update

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(minutes=15)
# A receiver may ask for rest, not for silence: within this it is asked again.
LONGEST_REST: Final = timedelta(hours=1)
GIVE_UP_AFTER: Final = timedelta(hours=24)
MAX_REFUSALS: Final = 4


class Route(msgspec.Struct, frozen=True):
    """What goes to a channel: everything of a severity or above that also matches the pattern."""

    name: str
    channel: str
    pattern: Mapping[str, Any] | None = None
    min_severity: Severity = Severity.WARNING


class Delivery(msgspec.Struct, frozen=True):
    """An alert that is to reach a channel."""

    channel: str
    alert: Alert

    @property
    def pipeline(self) -> str:
        """Alerts of one pipeline reach a channel in the order of their events."""
        return self.alert.event.pipeline_id


Enqueue = Callable[[Sequence[Delivery]], object]


class Routing:
    """The routes of an installation, their patterns compiled."""

    def __init__(self, routes: Sequence[Route], channels: Iterable[str]) -> None:
        """Without any route everything of severity warning and above goes to every channel."""
        effective = routes or [Route(name, name) for name in channels]
        self._routes = [(route, _matcher(route.pattern)) for route in effective]

    def channels_for(self, event: Event) -> list[str]:
        """The channels that are to hear of it, each once."""
        envelope = event.envelope()
        wanted = (
            route.channel
            for route, matches in self._routes
            if event.severity.rank >= route.min_severity.rank and matches(envelope)
        )
        return list(dict.fromkeys(wanted))


def _matcher(pattern: Mapping[str, Any] | None) -> Predicate:
    return (lambda _: True) if pattern is None else compile_pattern(pattern)


def handle(routing: Routing, enqueue: Enqueue, changes: Sequence[Change]) -> None:
    """The entry point of the events stream. A change that comes again makes the same deliveries again: the queue has
    each (event, channel) once.
    """
    alerts = [alert_of(change) for change in changes if change.item is not None and is_event(change)]
    deliveries = [Delivery(channel, alert) for alert in alerts for channel in routing.channels_for(alert.event)]
    if deliveries:
        enqueue(deliveries)


def alert_of(change: Change) -> Alert:
    """The alert of an event; its id is the event's key, pipeline and sort key."""
    return Alert(f"{keys.pipeline_of(change.pk)}/{change.sk}", event_of(change))


# ------------------------------------------------------------------------------------------------------ threads


def thread_key(event: Event) -> Key | None:
    """Where the threads of its run are kept; None for an event that is not about a run."""
    if not event.date:
        return None
    run = RunKey(event.pipeline_id, event.schedule_id, event.date)
    return Key(Table.EVENTS, run.pk, run.sk(keys.THREAD))


def thread_of(store: Store, channel: str, event: Event) -> str | None:
    """The thread of its run on a channel."""
    key = thread_key(event)
    found = (store.get(key) or {}).get(_attribute(channel)) if key is not None else None
    return found if isinstance(found, str) and found else None


def remember_thread(channel: str, event: Event, thread: str | None, now: datetime) -> list[Update]:
    """The write that keeps it, for the commit that records the delivery as sent. One attribute per channel, so that
    channels do not overwrite each other's.
    """
    key = thread_key(event)
    if key is None or thread is None:
        return []
    ttl = int((now + timedelta(days=EVENT_TTL_DAYS)).timestamp())
    return [Update(key, set={_attribute(channel): thread, "ttl": ttl})]


def _attribute(channel: str) -> str:
    # A channel may be named `ttl`.
    return f"thread:{channel}"


# ------------------------------------------------------------------------------------------------------ failures


class Verdict(StrEnum):
    """What follows from a failure."""

    RETRY = "retry"
    GIVE_UP = "give up"


class Failing(msgspec.Struct, frozen=True):
    """How a delivery has fared, its latest failure included."""

    tries: int
    refusals: int
    since: datetime


def judge(failing: Failing, now: datetime) -> Verdict:
    """Try for a day, so that no outage of a receiver loses an alert; a receiver that keeps saying no is believed."""
    if failing.refusals >= MAX_REFUSALS or now - failing.since >= GIVE_UP_AFTER:
        return Verdict.GIVE_UP
    return Verdict.RETRY


def pause_after(error: DeliveryError, tries: int, jitter: float) -> timedelta:
    """How long to wait after the `tries`-th failure: doubled each time, and spread (`jitter` in 0..1) over its upper
    half, so that what failed together does not come back together. A receiver that names a time gets it.
    """
    if error.retry_after is not None:
        return min(max(error.retry_after, FIRST_PAUSE), LONGEST_REST)
    longest = min(FIRST_PAUSE * (1 << min(tries, 20)), LONGEST_PAUSE)
    return longest * (0.5 + 0.5 * jitter)

"""Alerts to send, and a channel that does as it is told."""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from interlock.control import records
from interlock.control.alerts.alert_dispatcher import Delivery
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.ports.channel import Alert
from tests.conformance.manual_clock import START

Outcome = str | None | BaseException


def event(
    type_: EventType = EventType.SLA_BREACH,
    pipeline: str = "gold",
    *,
    schedule: str = "cron",
    date: str = "2026-03-02",
    at: datetime = START,
    message: str = "",
    **detail: Any,
) -> Event:
    key = RunKey(pipeline, schedule, date)
    return records.event(type_, key, at, message or f"{pipeline} has missed its deadline", **detail)


def alert(n: int = 0, pipeline: str = "gold", **given: Any) -> Alert:
    at = START + timedelta(seconds=n)
    return Alert(f"{pipeline}/{n:04d}", event(pipeline=pipeline, at=at, **given))


def delivery(n: int = 0, pipeline: str = "gold", channel: str = "a", **given: Any) -> Delivery:
    return Delivery(channel, alert(n, pipeline, **given))


class ScriptedChannel:
    """Does what its script says for each try, then succeeds; remembers what it was given."""

    def __init__(self, name: str = "a", *outcomes: Outcome) -> None:
        self.name = name
        self.script: deque[Outcome] = deque(outcomes)
        self.always: Callable[[Alert], Outcome] | None = None
        self.tried: list[str] = []
        self.sent: list[str] = []
        self.threads: list[str | None] = []
        self.maybe: list[datetime | None] = []

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> str | None:
        self.tried.append(alert.id)
        self.threads.append(thread)
        self.maybe.append(maybe_sent)
        outcome = self.script.popleft() if self.script else self.always(alert) if self.always else None
        if isinstance(outcome, BaseException):
            raise outcome
        self.sent.append(alert.id)
        return outcome

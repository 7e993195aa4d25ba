"""One-time timers: EventBridge Scheduler on AWS, rows in SQLite embedded."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

import msgspec


class TimerKind(StrEnum):
    """Who is called when it fires."""

    SLA = "sla"
    RETRY = "retry"
    POST_RUN = "post-run"
    TICK = "tick"


class Timer(msgspec.Struct, frozen=True):
    """Fires once, at `at` or as soon after as possible, at least once; the receiver checks whether it still matters."""

    name: str
    at: datetime
    kind: TimerKind
    payload: dict[str, Any]


class Timers(Protocol):
    """Every method is durable when it returns. Names are at most 64 characters of [0-9a-zA-Z-_.]."""

    def arm(self, timer: Timer) -> None:
        """Arm it, or move the one of the same name. An instant already past fires at once."""
        ...

    def cancel(self, name: str) -> None:
        """Forget it; an unknown name is no error. It may already be on its way."""
        ...

    def get(self, name: str) -> Timer | None:
        """The armed timer of that name."""
        ...

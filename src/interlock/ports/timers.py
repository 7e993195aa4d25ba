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
    WAKE = "wake"


class Timer(msgspec.Struct, frozen=True):
    """Fires at `at` or soon after, at least once; the receiver checks whether it still matters.

    Armed more than 15 minutes ahead it may be up to 60 s late, otherwise a second. Never early by the controller's own
    clock; by a few milliseconds where two clocks are involved.
    """

    name: str
    at: datetime
    kind: TimerKind
    payload: dict[str, Any]


class Timers(Protocol):
    """Every method is durable when it returns. Names are at most 64 characters of [0-9a-zA-Z-_.]."""

    def arm(self, timer: Timer) -> None:
        """Arm it, or move the one of the same name. An instant already past fires at once.

        A moved timer may still fire at its old instant: what was handed to a queue cannot be taken back.
        """
        ...

    def cancel(self, name: str) -> None:
        """Forget it; an unknown name is no error. It may already be on its way."""
        ...

    def get(self, name: str) -> Timer | None:
        """The armed timer of that name, where it can be found: one that is already in a queue may not be. For people,
        not for decisions.
        """
        ...

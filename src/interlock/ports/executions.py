"""Executions of the lifecycle: Step Functions on AWS, rows in SQLite embedded."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol


class StartResult(StrEnum):
    """What came of a start. STARTED and ALREADY_CLOSED are certain; ALREADY_OPEN may have ended seconds ago.

    A name is used once. Backends forget names, Step Functions after 90 days: nobody starts one again after so long.
    """

    STARTED = "started"
    ALREADY_OPEN = "already-open"
    ALREADY_CLOSED = "already-closed"


class Executions(Protocol):
    """Starts and wakes executions. Every method is durable when it returns."""

    def start(self, name: str, input_: Mapping[str, Any]) -> StartResult:
        """Start an execution of the lifecycle, unless the name was used before.

        A service that answers a repeated start as if it were the first (Step Functions, for the same input) is told
        apart by the start instant in its answer: one from before the call means ALREADY_OPEN. For a second after the
        first, then, both may get STARTED; there is one execution all the same.
        """
        ...

    def is_open(self, name: str) -> bool:
        """Was it started, and has it not ended? The answer may be seconds old: nothing irreversible follows from it.

        Just started, an execution may not be found; just ended, it may still count as open. Who would act on "no" asks
        `start`, whose answer is certain; who would rely on "yes" is repaired by the watchdog.
        """
        ...

    def answer(self, token: str) -> bool:
        """Answer a task token: the wait that holds it ends now. False when nobody waits for it (any more)."""
        ...

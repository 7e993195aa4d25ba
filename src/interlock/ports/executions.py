"""Executions of the lifecycle: Step Functions on AWS, rows in SQLite embedded."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol


class StartResult(StrEnum):
    """What came of a start. A name is used once, forever."""

    STARTED = "started"
    ALREADY_OPEN = "already-open"
    ALREADY_CLOSED = "already-closed"


class Executions(Protocol):
    """Starts and wakes executions. Every method is durable when it returns."""

    def start(self, name: str, input_: Mapping[str, Any]) -> StartResult:
        """Start an execution of the lifecycle under a name that was never used before."""
        ...

    def is_open(self, name: str) -> bool:
        """Was it started, and has it not ended?"""
        ...

    def answer(self, token: str) -> bool:
        """Answer a task token: the wait that holds it ends now. False when nobody waits for it (any more)."""
        ...

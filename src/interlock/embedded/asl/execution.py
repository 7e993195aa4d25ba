"""An execution as a value, the effects it asks for, and the few ways it moves. All of it is pure data."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from interlock.embedded.asl.paths import Json


class Status(StrEnum):
    """Where an execution is."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"


class WaitKind(StrEnum):
    """What an execution waits for."""

    RETRY = "retry"
    TOKEN = "token"


class Waiting(msgspec.Struct, frozen=True):
    """A wait: until an instant, for a token, or for whichever comes first."""

    kind: WaitKind
    until: datetime | None = None
    token: str | None = None


class ExecutionState(msgspec.Struct, frozen=True, kw_only=True):
    """An execution. `data` is the input of the state it is in, and the output once it has SUCCEEDED.

    `steps` counts the states entered; 0 means that it has not begun. `retries` counts per retrier of the current state.
    """

    name: str
    state: str
    data: Json
    status: Status
    started_at: datetime
    entered_at: datetime
    steps: int = 0
    retries: tuple[int, ...] = ()
    waiting: Waiting | None = None
    times_out_at: datetime | None = None
    error: str | None = None
    cause: str | None = None

    @property
    def due(self) -> datetime | None:
        """When it must be woken; None when only an answer wakes it."""
        until = self.waiting.until if self.waiting else self.entered_at
        return min((at for at in (until, self.times_out_at) if at is not None), default=None)


class CallTask(msgspec.Struct, frozen=True, kw_only=True):
    """Call the resource, then tell the machine by `complete` or `fail`.

    With a token, `execution` is already the one that waits for it: make it durable together with the call.
    """

    execution: ExecutionState
    entered: tuple[str, ...]
    resource: str
    payload: Json
    token: str | None = None
    timeout_at: datetime | None = None


class Suspend(msgspec.Struct, frozen=True, kw_only=True):
    """Make the execution durable and wake it when it is due."""

    execution: ExecutionState
    entered: tuple[str, ...]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """It is over."""

    execution: ExecutionState
    entered: tuple[str, ...]


Effect = CallTask | Suspend | Ended


def enter(execution: ExecutionState, state: str, data: Json, now: datetime) -> ExecutionState:
    """It goes to that state, with that input."""
    return replace(
        execution, state=state, data=data, entered_at=now, steps=execution.steps + 1, retries=(), waiting=None
    )


def succeeded(execution: ExecutionState, output: Json) -> ExecutionState:
    """It ends well, with that output."""
    return replace(execution, data=output, status=Status.SUCCEEDED, waiting=None)


def ended(execution: ExecutionState, status: Status, error: str | None, cause: str | None) -> ExecutionState:
    """It ends badly."""
    return replace(execution, status=status, error=error, cause=cause, waiting=None)


def expired(execution: ExecutionState, now: datetime) -> bool:
    """Is the time of the whole execution up?"""
    bound = execution.times_out_at
    return execution.status is Status.RUNNING and bound is not None and now >= bound


# --------------------------------------------------------------------------------------------- context object


def context_of(execution: ExecutionState, token: str | None = None) -> Mapping[str, Json]:
    """What `$$.` paths of the current state see."""
    context: dict[str, Json] = {"Execution": {"Name": execution.name}}
    return context if token is None else {**context, "Task": {"Token": token}}

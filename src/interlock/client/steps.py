"""What the core asks of a shell. The core is generators that yield these; a shell does each and sends back what came.

So request building, retries, paging, streams and waiting are written once, without any I/O, and a shell (`Client`,
`AsyncClient`) is a loop around one function that does a step.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from interlock.client.retries import Fate

T = TypeVar("T")

Params = Mapping[str, str | Sequence[str]]


class Send(msgspec.Struct, frozen=True, kw_only=True):
    """Send a request; gives a Reply, or NoAnswer."""

    method: str
    path: str
    params: Params = {}
    headers: Mapping[str, str] = {}
    body: bytes | None = None


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    """Open a stream; gives a Reply (its body empty if it is open), or NoAnswer. `silence`: how long it may be."""

    path: str
    params: Params
    headers: Mapping[str, str]
    silence: float


class NextChunk(msgspec.Struct, frozen=True):
    """Read on from the open stream; gives bytes (none at its end), or NoAnswer when it broke or stayed silent."""


class HangUp(msgspec.Struct, frozen=True):
    """Close the open stream."""


class Pause(msgspec.Struct, frozen=True):
    """Wait so many seconds."""

    seconds: float


class Give(msgspec.Struct, frozen=True):
    """Hand a value to whoever iterates."""

    value: Any


class Reply(msgspec.Struct, frozen=True):
    """An answer; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(msgspec.Struct, frozen=True):
    """Nobody answered, or the connection broke."""

    fate: Fate
    reason: str


Step = Send | Listen | NextChunk | HangUp | Pause | Give
Came = Reply | NoAnswer | bytes | None
Flow = Generator[Step, Came, T]

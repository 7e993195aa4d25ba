"""How many event streams there may be at once: in all, of one peer, and of one token.

A stream costs a connection for as long as its reader likes, and a little work several times a second. So nobody may
hold more than a share, whether it asks from one place with many tokens or from many places with one.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from interlock.api.problems import RequestError

_COME_BACK_SECONDS: Final = "10"


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How many streams at once."""

    streams: int = 500
    per_peer: int = 100
    per_token: int = 50

    def within(self, connections: int) -> "StreamLimits":
        """At most half of the connections are streams: the others are for requests."""
        return replace(self, streams=min(self.streams, max(connections // 2, 1)))


DEFAULT: Final = StreamLimits()


class StreamShares:
    """The streams of one server, counted; all on the thread of its loop."""

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._open = 0
        self._peers: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    @contextmanager
    def held(self, peer: str, caller: str | None) -> Iterator[None]:
        """One more stream, while it lasts. `caller`: None for a stranger, who will get none."""
        if caller is None:
            yield
            return
        self._check(peer, caller)
        self._open += 1
        self._peers[peer] += 1
        self._tokens[caller] += 1
        try:
            yield
        finally:
            self._open -= 1
            _less(self._peers, peer)
            _less(self._tokens, caller)

    def _check(self, peer: str, caller: str) -> None:
        limits = self._limits
        if self._tokens[caller] >= limits.per_token:
            raise _refused(f"{caller!r} has {limits.per_token} event streams, as many as one token may have")
        if self._peers[peer] >= limits.per_peer:
            raise _refused(f"{limits.per_peer} event streams come from where you are, as many as one peer may have")
        if self._open >= limits.streams:
            raise _refused(f"there are {limits.streams} event streams, as many as the controller serves")


def _less(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]


def _refused(what: str) -> RequestError:
    detail = f"{what}: close some, or ask again later"
    headers = {"Retry-After": _COME_BACK_SECONDS}
    return RequestError(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers=headers)

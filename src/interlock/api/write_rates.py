"""How many writes a second one token may make, where `writes_per_second_per_token` in `[limits]` says so.

A bucket for each caller that fills at that rate and holds one second of it: who writes in bursts is not punished, who
writes without end is told when to come back. Nobody else waits for it.
"""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from math import ceil, inf
from typing import Final

from interlock.api.problems import RequestError

_MOST_REMEMBERED: Final = 10_000


class WriteRates:
    """The writes of all callers, counted."""

    def __init__(self, per_second: int = 0, monotonic: Callable[[], float] = time.monotonic) -> None:
        """0: as many as they like."""
        self._rate = per_second
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """Count a write; raise when they come too fast."""
        left = self._count(caller, 1, least=1)
        if left < 0:
            raise _too_fast(caller, self._rate, -left / self._rate)

    def spend(self, caller: str, writes: int) -> None:
        """Count further writes of a request that is under way; the next request waits for them."""
        self._count(caller, writes, least=-inf)

    def _count(self, caller: str, writes: int, *, least: float) -> float:
        """What is left afterwards; below 0, nothing was counted."""
        if not self._rate:
            return 0.0
        with self._lock:
            now = self._monotonic()
            left, at = self._buckets.get(caller, (float(self._rate), now))
            left = min(left + (now - at) * self._rate, float(self._rate))
            if left < least:
                return left - least
            if len(self._buckets) >= _MOST_REMEMBERED:
                self._buckets.clear()
            self._buckets[caller] = (left - writes, now)
            return 0.0


def _too_fast(caller: str, rate: int, seconds: float) -> RequestError:
    detail = f"{caller!r} writes faster than the {rate} writes a second that one token may make: come back later"
    headers = {"Retry-After": str(max(ceil(seconds), 1))}
    return RequestError(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers=headers)

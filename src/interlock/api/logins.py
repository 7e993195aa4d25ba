"""Callers who show a token or a session that does not work: refused, counted, and logged once.

There is nothing to guess in 256 random bits; but whoever tries should be seen, and should not fill the log or keep the
controller busy. Who shows one that works is never refused here, wherever it comes from.
"""

import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from interlock.api.credentials import Credentials
from interlock.api.problems import RequestError
from interlock.logs import get_logger

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="interlock"'}
_MOST: Final = 30
_SECONDS: Final = 60.0
_MOST_REMEMBERED: Final = 10_000

_log = get_logger("interlock.http")


class FailedLogins:
    """The failed attempts of each peer within the last minute."""

    def __init__(
        self, note: Callable[[], None] = lambda: None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`note` is called for each."""
        self._note = note
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._peers: dict[str, tuple[float, int]] = {}

    def refusal(self, shown: Credentials, detail: str = "") -> RequestError:
        """The answer to a caller whom nobody knows; a caller who shows nothing has not tried."""
        if not (shown.authorization or shown.session or detail):
            return unauthorised()
        count, since = self._count(shown.peer)
        if count == _MOST:
            _log.warning("failed logins: further ones are answered with 429", peer=shown.peer, attempts=count)
        if count < _MOST:
            return unauthorised(detail)
        wait = max(int(since + _SECONDS - self._monotonic()), 1)
        detail = f"{count} tokens or codes that do not work came from where you are: try again in {wait} s"
        return RequestError(
            HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers={"Retry-After": str(wait)}
        )

    def _count(self, peer: str) -> tuple[int, float]:
        self._note()
        with self._lock:
            now = self._monotonic()
            since, count = self._peers.get(peer, (now, 0))
            if now - since >= _SECONDS:
                since, count = now, 0
            if len(self._peers) >= _MOST_REMEMBERED:
                self._peers.clear()
            self._peers[peer] = (since, count + 1)
            return count + 1, since


def unauthorised(detail: str = "") -> RequestError:
    """The refusal of a caller who shows no token that works."""
    explained = detail or (
        "a bearer token that works is needed: `interlock token create --scope admin --name NAME`, run by the"
        " controller's user, makes one; set it as INTERLOCK_TOKEN"
    )
    return RequestError(HTTPStatus.UNAUTHORIZED, "unauthorized", explained, headers=_CHALLENGE)

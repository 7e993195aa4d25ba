"""When a request is sent again, and after how long. Pure: the shells measure time and wait.

The rule: a request that surely was not carried out (nobody listened, 429) is always sent again; one whose fate is
unknown (the connection broke, 502, 503, 504) only if doing it twice is the same as doing it once.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Final

import msgspec

_UNKNOWN_FATE: Final = (502, 503, 504)
_NOT_DONE: Final = 429


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often, and how long between: `first_delay`, doubled each time up to `longest_delay`, half of it random.

    The randomness keeps a thousand clients from coming back in the same millisecond after a restart. A server that
    names a time (`Retry-After`) is obeyed up to `longest_named`; if it asks for more, that is the caller's to decide.
    """

    retries: int = 4
    first_delay: float = 0.25
    longest_delay: float = 10.0
    longest_named: float = 60.0

    def delay(self, failures: int, chance: float) -> float:
        """Seconds before the next try, after so many failures (from 1); `chance` is in 0..1."""
        full = min(self.first_delay * 2.0 ** min(failures - 1, 30), self.longest_delay)
        return full * (0.5 + chance / 2)


class Fate(Enum):
    """What became of a request that got no answer."""

    NOT_SENT = auto()
    UNKNOWN = auto()


def after_no_answer(policy: RetryPolicy, fate: Fate, failures: int, *, repeatable: bool, chance: float) -> float | None:
    """Seconds to wait before sending it again; None: it is not sent again."""
    if failures > policy.retries or (fate is Fate.UNKNOWN and not repeatable):
        return None
    return policy.delay(failures, chance)


def after_answer(
    policy: RetryPolicy,
    status: int,
    headers: Mapping[str, str],
    failures: int,
    *,
    repeatable: bool,
    chance: float,
) -> float | None:
    """Seconds to wait before sending it again; None: this answer is the answer."""
    again = status == _NOT_DONE or (repeatable and status in _UNKNOWN_FATE)
    if not again or failures > policy.retries:
        return None
    named = _named_delay(headers)
    if named is None:
        return policy.delay(failures, chance)
    # Just behind the named instant, not on it: others were given the same one.
    return None if named > policy.longest_named else named + policy.first_delay * chance


def _named_delay(headers: Mapping[str, str]) -> float | None:
    """`Retry-After`: seconds, or a date, which is measured against the server's own clock in the same answer."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    until, sent = _http_date(text), _http_date(headers.get("date", ""))
    if until is None or sent is None:
        return None
    return max((until - sent).total_seconds(), 0.0)


def _http_date(text: str) -> datetime | None:
    try:
        read = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)

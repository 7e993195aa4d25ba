"""Who of those that wait for a pool starts next (SPEC 2, `job.pool`).

In the order of the SLA breach, then of age; but who has waited an hour goes first, so that nobody starves. Runs without
an SLA come behind those with one.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from interlock.model.keys import RunKey

PATIENCE: Final = timedelta(hours=1)
_NO_DEADLINE: Final = datetime(9999, 12, 31, tzinfo=UTC)


class Waiter(msgspec.Struct, frozen=True):
    """An attempt that is ready and waits for a slot."""

    key: RunKey
    since: datetime
    breach_at: datetime | None = None

    @property
    def urgency(self) -> tuple[datetime, datetime, RunKey]:
        """What those that have waited less than an hour are ordered by."""
        return self.breach_at or _NO_DEADLINE, self.since, self.key


class Place(msgspec.Struct, frozen=True):
    """Where an attempt stands in the line for its pool, counted from 1."""

    pool: str
    position: int
    waiting: int

    def __str__(self) -> str:
        """`the pool warehouse, 3rd of 7`."""
        tens, ones = divmod(self.position, 10)
        ending = "th" if tens % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(ones, "th")
        return f"the pool {self.pool}, {self.position}{ending} of {self.waiting}"


def in_turn(waiters: Iterable[Waiter], now: datetime) -> list[Waiter]:
    """The waiters in the order in which they start."""

    def turn(one: Waiter) -> tuple[bool, tuple[datetime, datetime, RunKey]]:
        patient = now - one.since < PATIENCE
        return patient, one.urgency if patient else (one.since, one.since, one.key)

    return sorted(waiters, key=turn)

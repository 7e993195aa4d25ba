"""A clock the test sets."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class ManualClock:
    """`ports.clock.Clock`, standing still until it is moved."""

    def __init__(self, at: datetime = START) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at

    def advance(self, **units: float) -> None:
        self._at += timedelta(**units)

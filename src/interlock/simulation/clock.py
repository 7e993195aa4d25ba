"""Virtual time: it stands still until somebody moves it."""

from datetime import datetime


class VirtualClock:
    """The Clock port of a simulation."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The virtual instant."""
        return self._now

    def move_to(self, instant: datetime) -> None:
        """Go on to a later instant; an earlier one is ignored."""
        self._now = max(self._now, instant)

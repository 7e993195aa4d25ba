"""What `file` and `s3` observe: whether there is anything, how many, how large in all, and when the newest changed.

The age is asked of a time (`check: age_lt, field: modifiedAt`), not of a number of seconds: a number would differ at
each look, and a changed input is late data or a reason to run again.
"""

from datetime import datetime
from typing import Any

from interlock.model.times import format_instant


class Found:
    """Things being counted."""

    def __init__(self) -> None:
        self.count = 0
        self._size = 0
        self._oldest: datetime | None = None
        self._newest: datetime | None = None

    def add(self, size: int, modified: datetime) -> None:
        """One more."""
        self.count += 1
        self._size += size
        self._oldest = modified if self._oldest is None else min(self._oldest, modified)
        self._newest = modified if self._newest is None else max(self._newest, modified)

    def observation(self) -> dict[str, Any]:
        """As a sensor has it."""
        seen: dict[str, Any] = {"exists": self.count > 0, "count": self.count, "size": self._size}
        if self._newest is not None and self._oldest is not None:
            seen |= {"modifiedAt": format_instant(self._newest), "oldestAt": format_instant(self._oldest)}
        return seen

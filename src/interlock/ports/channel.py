"""An alert channel: Slack, a webhook, the console.

Obligations of every channel
----------------------------
- `send` returns when the receiver has taken the alert, and raises DeliveryError when it has not or nobody can tell.
- Nothing it raises, returns or logs contains a secret.
- It keeps no state that a restart would miss: what it needs to remember is the thread it returns.
"""

from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from interlock.model.errors import InterlockError
from interlock.model.events import Event


class Alert(msgspec.Struct, frozen=True):
    """An event that people are to hear of. `id` is the event's key: the same for every try and on every channel."""

    id: str
    event: Event


class DeliveryError(InterlockError):
    """An alert was not delivered, as far as anybody knows.

    `permanent`: the receiver will say the same next time. `uncertain`: it may have been taken all the same.
    `retry_after`: the receiver asked for this much rest, for everything that goes to it.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        uncertain: bool = False,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.uncertain = uncertain
        self.retry_after = retry_after


class Channel(Protocol):
    """Delivers alerts to people. `name` tells it from all other channels, also after a restart."""

    @property
    def name(self) -> str:
        """What deliveries and threads are filed under."""
        ...

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> str | None:
        """Deliver; the thread for later alerts of the same run, if the channel has such a thing.

        `thread` is what an earlier send for the run returned. `maybe_sent`: a try begun at that instant may have
        succeeded without anybody having recorded it; a channel whose receiver cannot tell duplicates looks first.
        """
        ...

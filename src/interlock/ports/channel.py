"""An alert channel: Slack, a webhook, the console."""

from typing import Protocol

from interlock.model.events import Event


class Channel(Protocol):
    """Delivers one alert to people."""

    name: str

    def send(self, event: Event, *, thread: str | None) -> str | None:
        """Deliver; `thread` is what an earlier send for the same run returned. Raises to be tried again."""
        ...

"""Alerts on the terminal: one readable line each, on standard error."""

from datetime import datetime
from typing import Final

from rich.console import Console
from rich.text import Text

from interlock.alerts.messages import one_line
from interlock.model.events import Severity
from interlock.model.times import format_instant
from interlock.ports.channel import Alert

NAME: Final = "console"
_STYLES: Final = {
    Severity.INFO: "dim",
    Severity.WARNING: "yellow",
    Severity.ERROR: "red",
    Severity.CRITICAL: "bold red",
}


class ConsoleChannel:
    """`ports.channel.Channel`. A line that is printed twice after a crash harms nobody."""

    def __init__(self, console: Console | None = None, name: str = NAME) -> None:
        self.name = name
        self._console = console or Console(stderr=True)

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> None:
        """Print it."""
        event = alert.event
        line = Text(f"{format_instant(event.timestamp)} ")
        line.append(one_line(event), style=_STYLES[event.severity])
        # Whole lines, however narrow the terminal is: they are searched and copied.
        self._console.print(line, soft_wrap=True, highlight=False)

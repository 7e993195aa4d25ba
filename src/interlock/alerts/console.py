"""Alerts on the terminal: one line each, on standard error; readable, or JSON where the logs beside them are."""

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from interlock.alerts.messages import one_line
from interlock.model.events import Event, Severity
from interlock.model.times import format_instant
from interlock.ports.channel import Alert

if TYPE_CHECKING:
    from rich.console import Console

NAME: Final = "console"
_STYLES: Final = {
    Severity.INFO: "dim",
    Severity.WARNING: "yellow",
    Severity.ERROR: "red",
    Severity.CRITICAL: "bold red",
}


class ConsoleChannel:
    """`ports.channel.Channel`. A line that is printed twice after a crash harms nobody.

    `json`: whoever collects the logs reads JSON lines, so an alert among them is one, with the same first fields.
    """

    def __init__(self, console: "Console | None" = None, name: str = NAME, *, json: bool = False) -> None:
        self.name = name
        self._console = console
        self._json = json

    def send(self, alert: Alert, *, thread: str | None, maybe_sent: datetime | None) -> None:
        """Print it."""
        if self._json and self._console is None:
            sys.stderr.write(f"{json_line(alert.event)}\n")
        elif self._json and self._console is not None:
            self._console.out(json_line(alert.event), highlight=False)
        else:
            self._print(alert.event)

    def _print(self, event: Event) -> None:
        # Loaded here: where alerts are JSON lines, nothing needs a terminal.
        from rich.console import Console
        from rich.text import Text

        if self._console is None:
            self._console = Console(stderr=True)
        line = Text(f"{format_instant(event.timestamp)} ")
        line.append(one_line(event), style=_STYLES[event.severity])
        # Whole lines, however narrow the terminal is: they are searched and copied.
        self._console.print(line, soft_wrap=True, highlight=False)


def json_line(event: Event) -> str:
    """An alert as a log line in JSON."""
    fields = {
        "event": "alert",
        "level": event.severity.value,
        "timestamp": format_instant(event.timestamp),
        "type": event.type.value,
        "pipeline": event.pipeline_id,
        "schedule": event.schedule_id,
        "date": event.date,
        "message": event.message,
        "detail": event.detail,
    }
    return msgspec.json.encode(fields).decode()

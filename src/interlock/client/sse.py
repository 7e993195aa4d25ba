"""Server-sent events, read from the bytes of a connection. Pure: what the standard says, nothing of what events mean.

Lines are split here and not by the HTTP library, which would also split at characters such as U+2028 that JSON text may
contain.
"""

import re
from typing import Final

import msgspec

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class Message(msgspec.Struct, frozen=True):
    """One event of a stream. `id` is the last one named, by this event or an earlier one."""

    event: str
    data: str
    id: str


class SseReader:
    """Gathers bytes into messages.

    `last_id` is what a reconnect names as Last-Event-ID. It moves with a whole message only: one that a broken
    connection cut short must be sent again. `retry` is the pause the server asked for, in seconds.
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self.reconnected()

    def reconnected(self) -> None:
        """A new connection: what the old one left unfinished is dropped."""
        self._rest = b""
        self._named = self.last_id
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Message]:
        """The messages that these bytes complete."""
        found: list[Message] = []
        for line in self._lines(chunk):
            if line:
                self._take(line)
            elif (message := self._dispatch()) is not None:
                found.append(message)
        return found

    def _lines(self, chunk: bytes) -> list[str]:
        buffered = self._rest + chunk
        # A carriage return at the very end may be half of a line end.
        held = b"\r" if buffered.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(buffered[: len(buffered) - len(held)])
        self._rest = rest + held
        return [line.decode(errors="replace") for line in lines]

    def _take(self, line: str) -> None:
        name, _, text = line.partition(":")
        value = text.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._event = value
            case "id" if "\0" not in value:
                self._named = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry = int(value) / 1000
            case _:
                # A comment (the server's heartbeat), or a field that is not ours to know.
                pass

    def _dispatch(self) -> Message | None:
        self.last_id = self._named
        event, data = self._event or "message", self._data
        self._event, self._data = "", []
        return Message(event, "\n".join(data), self.last_id) if data else None

"""Where log lines go: to a thread that writes them, so that nobody who logs can fail or wait.

A log may lie on a disk that is full, lead into a pipe whose reader has stopped or gone, or to a terminal that somebody
froze. Logging happens on the writer thread, in the loop of the HTTP server and in signal handlers, and none of them may
be held up by that. Lines wait here until they can be written; when too many wait, the newest are dropped, and how many
is said as soon as anything can be said.
"""

import atexit
import errno
import io
import os
import select
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, TextIO

from interlock.embedded.clock import pause
from interlock.logs import get_logger
from interlock.loops import Loops

_MOST_LINES: Final = 5000
_LONGEST_LINE: Final = 16 * 1024
# How long to wait before the next try to write to a disk that was full.
_RETRY_SECONDS: Final = 0.5
# How long the end of the process waits for its last lines.
_DRAIN_SECONDS: Final = 1.0

_log = get_logger(__name__)


class LogSink:
    """A stream for loggers. `write` neither raises nor waits."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._queue: SimpleQueue[bytes | threading.Event] = SimpleQueue()
        self._lost = 0
        self.loops = Loops()
        self._gone = False
        self._file = _descriptor(stream)
        # A stream that is no file (a test's) is written at once: nothing can hold it up.
        if self._file is not None:
            self._begin(self._file)

    def _begin(self, file: int) -> None:
        try:
            self.loops.add("log", lambda: self._serve(file), vital=False).start()
        except RuntimeError:  # no memory for a thread: lines are then written where they arise
            self._file = None
            return
        atexit.register(self.drain)

    def write(self, text: str) -> int:
        """Take a line."""
        if self._file is None:
            with suppress(OSError, ValueError):
                self._stream.write(text)
                self._stream.flush()
        elif self._gone or self._queue.qsize() >= _MOST_LINES:
            self._lost += 1  # two threads may count as one: it says how much is missing, not more
        else:
            self._queue.put(_line(text))
        return len(text)

    def flush(self) -> None:
        """Nothing to do: lines are on their way. (`drain` waits for them.)"""

    def isatty(self) -> bool:
        """Does it lead to a terminal?"""
        return self._stream.isatty()

    def drain(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Wait until what was taken so far is written, but not for long."""
        if self._file is not None and not self._gone:
            written = threading.Event()
            self._queue.put(written)
            written.wait(seconds)

    # ------------------------------------------------------------------------------------------------ the thread

    def _serve(self, file: int) -> None:
        while True:
            item = self._queue.get()
            if isinstance(item, threading.Event):
                item.set()
                continue
            if not self._gone:
                self._write_whole(file, item)
            if self._lost and self._queue.empty():
                lost, self._lost = self._lost, 0
                _log.warning("log lines were lost: the log could not be written", lines=lost)

    def _write_whole(self, file: int, line: bytes) -> None:
        while line:
            try:
                line = line[os.write(file, line) :]
            except BlockingIOError:  # somebody made it non-blocking
                select.select([], [file], [], _RETRY_SECONDS)
            except OSError as error:
                if error.errno in (errno.EPIPE, errno.EBADF):
                    self._gone = True  # nobody will ever read it
                    return
                pause(_RETRY_SECONDS)


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, AttributeError, io.UnsupportedOperation):
        return None


def _line(text: str) -> bytes:
    line = text.encode("utf-8", "backslashreplace")
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + b"...\n"

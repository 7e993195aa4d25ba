"""Ending the process from any thread, at once and without tidying up: safe, since what was acknowledged is on the disk.

For when an orderly end is not possible, or has taken too long. It must not itself wait for anything that may hang.
"""

import os
import select
from contextlib import suppress
from typing import Final, NoReturn

from interlock.embedded.process.logging import drain_logs

FAILED: Final = 70  # EX_SOFTWARE of sysexits.h
_STDERR: Final = 2
_SECONDS: Final = 1.0


def end_process(code: int, message: str = "") -> NoReturn:
    """Write the last log lines and the message, as far as that is possible, and end."""
    with suppress(Exception):
        drain_logs(_SECONDS)
        if message:
            _say(f"Error: {message}\n".encode())
    os._exit(code)


def _say(line: bytes) -> None:
    # A pipe that nobody empties would take the line never, and the process would not end.
    _, writable, _ = select.select([], [_STDERR], [], _SECONDS)
    if writable:
        os.write(_STDERR, line)

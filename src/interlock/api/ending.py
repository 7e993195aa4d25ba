"""The end of a server, bounded: from the first signal on, whatever holds it up, it is over when the grace is.

What is left undone then is done after the next start: all that was acknowledged is on the disk, and everything the
controller does can be interrupted at any instant.
"""

import threading
from collections.abc import Callable
from typing import Final

from interlock.embedded.process.process_end import end_process
from interlock.logs import get_logger
from interlock.loops import Loops

# Less than `docker stop` and most service managers allow before they kill.
GRACE_SECONDS: Final = 8.0
# Of which this much for requests that are under way.
REQUEST_SECONDS: Final = 4

_log = get_logger("interlock.serve")


class Ending:
    """Ends the process when `begin` was called and `done` was not within the grace.

    Its thread is made beforehand: at the end there may be no memory for one, and a signal handler cannot wait for it.
    """

    def __init__(
        self,
        grace: float = GRACE_SECONDS,
        end: Callable[[int], object] = end_process,
        *,
        loops: Loops | None = None,
    ) -> None:
        self._grace = grace
        self._end = end
        self._begun = threading.Event()
        self._done = threading.Event()
        self._loop = (loops or Loops()).add("ending", self._watch, vital=False, finite=True)
        self._loop.start()

    def begin(self) -> None:
        """The first signal came. Safe in a signal handler."""
        self._begun.set()

    def done(self) -> None:
        """It has ended in order, or will not end at all."""
        self._done.set()
        self._begun.set()
        self._loop.stop()

    def _watch(self) -> None:
        self._begun.wait()
        if self._done.wait(self._grace):
            return
        waiting = sorted(one.name for one in threading.enumerate() if one.name.startswith("interlock"))
        _log.warning(
            "ended before everything was done: the rest is done after the next start",
            grace_seconds=self._grace,
            threads=waiting,
        )
        self._end(0)

"""One thread that sees any number of processes end, at once and without asking again and again.

Where the system has pidfds (Linux) it sleeps until one of them, or its own pipe, has news. What cannot be waited for
in that way is looked at every 100 ms: all of them on other systems, and for a moment a wrapper that has not yet
said its number.
"""

import contextlib
import os
import selectors
import threading
from collections.abc import Callable
from typing import Final

from interlock.logs import get_logger
from interlock.loops import Loop, Loops

log = get_logger(__name__)

_POLL_SECONDS: Final = 0.1


class ExitWatch:
    """Calls `settle(run_id)` whenever a process of that run has ended, until there is none left to wait for.

    `settle` answers None when the run is over, otherwise the process to wait for next, or 0 when that is not known
    yet. It is called on the watching thread: while it takes its time, other ends wait.
    """

    def __init__(self, settle: Callable[[str], int | None], loops: Loops | None = None) -> None:
        self._settle = settle
        self._loops = loops or Loops()
        self._lock = threading.Lock()
        self._new: dict[str, int] = {}
        self._given: dict[str, int] = {}
        self._loop: Loop | None = None
        self._closed = False
        self._wake_in = self._wake_out = -1
        # Of the thread alone:
        self._selector: selectors.BaseSelector | None = None
        self._children: dict[str, int] = {}
        self._pidfds: dict[str, int] = {}
        self._polled: set[str] = set()

    def add(self, run_id: str, child: int = 0, *, pidfd: int = -1) -> None:
        """Watch a run; `child` is its process when this process started it. After `close` this does nothing.

        `pidfd` is of its process when somebody else did; it is closed here.
        """
        with self._lock:
            if self._closed:
                if pidfd >= 0:
                    os.close(pidfd)
                return
            if pidfd >= 0:
                self._given[run_id] = pidfd
            self._new[run_id] = child or self._new.get(run_id, 0)
            if self._loop is None:
                self._begin()
            self._wake()

    def close(self) -> None:
        """Stop watching. The processes are left alone."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            loop = self._loop
            if loop is not None:
                self._wake()
        if loop is not None and not loop.is_current and loop.stop():
            self._let_go()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._wake_out, b".")

    def _begin(self) -> None:
        wake_in, self._wake_out = os.pipe()
        os.set_blocking(wake_in, False)
        os.set_blocking(self._wake_out, False)
        selector = selectors.DefaultSelector()
        selector.register(wake_in, selectors.EVENT_READ, "")
        self._selector, self._wake_in = selector, wake_in
        # Without it the ends of commands are found by polling, later.
        self._loop = self._loops.add("command-exits", lambda: self._run(selector, wake_in), vital=False, finite=True)
        self._loop.start()

    def _run(self, selector: selectors.BaseSelector, wake_in: int) -> float | None:
        if not self._closed:
            self._step(selector, wake_in)
        if not self._closed:
            return 0.0
        self._let_go()
        return None

    def _let_go(self) -> None:
        with self._lock:  # nobody is writing to the pipe now, and nobody will
            selector, self._selector = self._selector, None
            if selector is None:
                return
            selector.close()
            for descriptor in (*self._pidfds.values(), *self._given.values(), self._wake_in, self._wake_out):
                os.close(descriptor)
            self._pidfds.clear()
            self._given.clear()

    def _step(self, selector: selectors.BaseSelector, wake_in: int) -> None:
        ready = [key.data for key, _ in selector.select(_POLL_SECONDS if self._polled else None)]
        with contextlib.suppress(BlockingIOError):
            os.read(wake_in, 65536)
        with self._lock:
            new, self._new = self._new, {}
        self._children |= {run_id: child for run_id, child in new.items() if child}
        ended = [run_id for run_id in ready if run_id]
        for run_id in ended:
            if run_id not in self._children:
                _reap_held(self._pidfds[run_id])
        for run_id in dict.fromkeys([*new, *ended, *self._polled]):
            if self._closed:
                return
            self._look(run_id)

    def _look(self, run_id: str) -> None:
        self._stop_waiting(run_id)
        with self._lock:
            given = self._given.pop(run_id, None)
        try:
            if given is not None:
                self._hold(run_id, given)
                return
            child = self._children.get(run_id)
            if child is not None and not _reaped(child):
                self._wait_for(run_id, child)
                return
            self._children.pop(run_id, None)
            awaited = self._settle(run_id)
            if awaited is not None:
                self._wait_for_stranger(run_id, awaited)
        except Exception:  # one run's trouble must not blind us to the others; its poll will find the end
            log.exception("command-watch-failed", run_id=run_id)

    def _wait_for(self, run_id: str, pid: int) -> None:
        pidfd = _open_pidfd(pid) if pid else None
        if pidfd is None:
            self._polled.add(run_id)
        else:
            self._hold(run_id, pidfd)

    def _hold(self, run_id: str, pidfd: int) -> None:
        self._pidfds[run_id] = pidfd
        if self._selector is not None:
            self._selector.register(pidfd, selectors.EVENT_READ, run_id)

    def _wait_for_stranger(self, run_id: str, pid: int) -> None:
        """Wait for a process that is not our child: its number may have been given away before we took hold of it.

        So ask again afterwards: who is still awaited now was alive a moment ago, and is the one we hold.
        """
        self._wait_for(run_id, pid)
        if run_id not in self._pidfds:
            return
        again = self._settle(run_id)
        if again == pid:
            return
        self._stop_waiting(run_id)
        if again is not None:
            self._polled.add(run_id)

    def _stop_waiting(self, run_id: str) -> None:
        self._polled.discard(run_id)
        pidfd = self._pidfds.pop(run_id, None)
        if pidfd is not None and self._selector is not None:
            self._selector.unregister(pidfd)
            os.close(pidfd)


def _open_pidfd(pid: int) -> int | None:
    """None where there are no pidfds, the process is gone, or no descriptor is to be had."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _reap_held(pidfd: int) -> None:
    """Take the exit status of an ended process if it is our child: of an earlier watch, it may be."""
    with contextlib.suppress(OSError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)


def _reaped(pid: int) -> bool:
    """Take a child's exit status, so that no zombie remains; False while it runs."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True

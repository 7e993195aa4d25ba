"""Fibers that run what is due.

One dispatcher looks up what is due and has it run; what is started just now needs no look-up. Memory holds only what
runs, never what waits. The dispatcher sleeps until the next due instant, and is rung awake when something becomes due
sooner.
"""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from interlock.embedded.clock import real_seconds
from interlock.embedded.sqlite.fibers import contained
from interlock.logs import get_logger
from interlock.loops import OVERDUE_SECONDS, Loops
from interlock.ports.clock import Clock

# The longest sleep: a machine that was suspended, or whose clock was set, is noticed this soon.
_MAX_SLEEP_SECONDS: Final = 5.0
# After an error of the store itself: the same row would fail again at once.
_COOL_DOWN_SECONDS: Final = 1.0

_log = get_logger(__name__)


class DueExecutions(Protocol):
    """What the workers need of the engine."""

    def due(self, now: datetime, limit: int) -> list[str]:
        """The names of executions that are due, the longest due first."""
        ...

    def next_due(self, after: datetime | None = None) -> datetime | None:
        """When the next one is due, of those that are due after that instant."""
        ...

    def run(self, name: str) -> bool:
        """Run one until it waits or ends."""
        ...


class ExecutionWorkers:
    """A dispatcher, and fibers that run what it finds, `count` at a time. One execution is never run twice at once."""

    def __init__(
        self,
        executions: DueExecutions,
        clock: Clock,
        count: int,
        spawn: Callable[[Callable[[], None]], None],
        loops: Loops | None = None,
    ) -> None:
        self._executions = executions
        self._clock = clock
        self._count = count
        self._bell = threading.Condition()
        self._rings = 0
        # What runs now, each with the rings that there had been when it began.
        self._busy: dict[str, int] = {}
        # Somebody found no free worker: who finishes next has the dispatcher look again.
        self._starved = False
        self._stopping = threading.Event()
        # What could not be saved, and until when it is left alone. It counts as running meanwhile.
        self._cooling: dict[str, float] = {}
        self._dispatcher = (loops or Loops()).add("executions", self._dispatch, overdue=OVERDUE_SECONDS)
        self._spawn = spawn

    def start(self) -> None:
        """Begin."""
        self._dispatcher.start()

    def ring(self) -> None:
        """Something may have become due."""
        with self._bell:
            self._rings += 1
            self._bell.notify_all()

    def begin(self, name: str) -> None:
        """Run one that is due now, without a look-up; when all workers are busy it waits for its turn."""
        with self._bell:
            if name in self._busy:
                return  # the dispatcher was faster
            free = len(self._busy) < self._count and not self._stopping.is_set()
            if free:
                self._busy[name] = self._rings
            else:
                self._starved = True
        if free:
            self._spawn(partial(self._run_one, name))
        else:
            self.ring()

    def stop(self) -> None:
        """Let what runs now come to its next wait, then end."""
        self._stopping.set()
        self.ring()
        self._dispatcher.stop()
        with self._bell:
            self._bell.wait_for(lambda: not self._busy.keys() - self._cooling.keys())

    def _dispatch(self) -> float:
        """One look at what is due, and the sleep until the next. What it raises has it called again after a pause."""
        # Taken before the look-up: whatever rings from here on is not slept through.
        with self._bell:
            rings, cooling = self._rings, self._end_cooling()
            busy = frozenset(self._busy)
            full = len(busy) > self._count
            self._starved = self._starved or full
        seconds = _MAX_SLEEP_SECONDS if full else self._hand_out(busy)
        with self._bell:
            if seconds and self._rings == rings and not self._stopping.is_set():
                self._bell.wait(min(seconds, cooling))
        return 0.0

    def _end_cooling(self) -> float:
        """Let go of what has been left alone long enough; seconds until there is more. With the bell held."""
        now = time.monotonic()
        for name in [name for name, until in self._cooling.items() if until <= now]:
            del self._cooling[name], self._busy[name]
        return min(self._cooling.values(), default=now + _MAX_SLEEP_SECONDS) - now

    def _hand_out(self, busy: frozenset[str]) -> float:
        """Hand out as much as there are free workers for, and once more; how long to sleep then, if nothing rings.

        The second helping lies ready for workers that finish, so that a busy dispatcher looks up many at a time.
        """
        now = self._clock.now()
        # What runs now is due until it is saved: look past it.
        names = [name for name in self._executions.due(now, 2 * self._count) if name not in busy]
        if not names:
            due = self._executions.next_due(now)
            if due is None:
                return _MAX_SLEEP_SECONDS
            return min(real_seconds(self._clock, (due - now).total_seconds()), _MAX_SLEEP_SECONDS)
        with self._bell:
            names = [name for name in names if name not in self._busy]
            self._busy.update(dict.fromkeys(names, self._rings))
        for name in names:
            self._spawn(partial(self._run_one, name))
        return 0.0

    def _run_one(self, name: str) -> None:
        if self._stopping.is_set() or self._run(name):
            self._release(name)
        else:
            # A fiber must not wait: the execution stays busy for a moment, so that it is not tried again at once.
            with self._bell:
                self._cooling[name] = time.monotonic() + _COOL_DOWN_SECONDS
            self.ring()

    def _run(self, name: str) -> bool:
        """Run it; false when it could not be saved: the row is as it was, and due, so it is run again."""
        try:
            contained(self._executions.run)(name)
        except Exception:  # noqa: BLE001  whatever it is, the worker must live
            _log.exception("an execution could not be saved; trying again", execution=name)
            return False
        return True

    def _release(self, name: str) -> None:
        """It is not run any more. Whatever rang meanwhile may have been for it: then the dispatcher looks again."""
        with self._bell:
            rung = self._busy.pop(name) != self._rings
            starved, self._starved = self._starved, False
            stopped = self._stopping.is_set() and not self._busy
        if rung or starved or stopped:
            self.ring()

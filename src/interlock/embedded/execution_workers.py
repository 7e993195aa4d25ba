"""Threads that run what is due.

One dispatcher looks up what is due and hands it to workers; memory holds only what runs just now, never what
waits. The dispatcher sleeps until the next due instant, and is rung awake when something becomes due sooner.
"""

import threading
from collections.abc import Callable
from datetime import datetime
from queue import SimpleQueue
from typing import Final, Protocol

import structlog

from interlock.embedded.clock import real_seconds
from interlock.ports.clock import Clock

# The longest sleep: a machine that was suspended, or whose clock was set, is noticed this soon.
_MAX_SLEEP_SECONDS: Final = 5.0
# After an error of the store itself: the same row would fail again at once.
_COOL_DOWN_SECONDS: Final = 1.0

_log = structlog.get_logger(__name__)


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
    """A dispatcher and its workers. One execution is never run by two of them at once."""

    def __init__(self, executions: DueExecutions, clock: Clock, count: int) -> None:
        self._executions = executions
        self._clock = clock
        self._count = count
        self._bell = threading.Condition()
        self._rings = 0
        self._busy: set[str] = set()
        self._stopping = threading.Event()
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._dispatcher = _thread("interlock-executions", self._dispatch)
        self._workers = [_thread(f"interlock-execution-{number}", self._work) for number in range(count)]

    def start(self) -> None:
        """Begin."""
        for thread in (self._dispatcher, *self._workers):
            thread.start()

    def ring(self) -> None:
        """Something may have become due."""
        with self._bell:
            self._rings += 1
            self._bell.notify_all()

    def stop(self) -> None:
        """Let what runs now come to its next wait, then end."""
        self._stopping.set()
        self.ring()
        self._dispatcher.join()
        for _ in self._workers:
            self._queue.put(None)
        for worker in self._workers:
            worker.join()

    def _dispatch(self) -> None:
        while not self._stopping.is_set():
            # Taken before the look-up: whatever rings from here on is not slept through.
            with self._bell:
                rings, busy = self._rings, frozenset(self._busy)
            try:
                seconds = self._hand_out(busy)
            except Exception:  # noqa: BLE001  the store may be back in a moment; the dispatcher must live
                _log.exception("could not look up due executions; trying again")
                seconds = _COOL_DOWN_SECONDS
            with self._bell:
                if seconds and self._rings == rings:
                    self._bell.wait(seconds)

    def _hand_out(self, busy: frozenset[str]) -> float:
        """Hand out as much as there are free workers for, and once more; how long to sleep then, if nothing rings.

        The second helping lies ready for workers that finish, so that a busy dispatcher looks up many at a time.
        """
        if len(busy) > self._count:
            return _MAX_SLEEP_SECONDS
        now = self._clock.now()
        # What runs now is due until it is saved: look past it.
        names = [name for name in self._executions.due(now, 2 * self._count) if name not in busy]
        if not names:
            due = self._executions.next_due(now)
            if due is None:
                return _MAX_SLEEP_SECONDS
            return min(real_seconds(self._clock, (due - now).total_seconds()), _MAX_SLEEP_SECONDS)
        with self._bell:
            self._busy.update(names)
        for name in names:
            self._queue.put(name)
        return 0.0

    def _work(self) -> None:
        while (name := self._queue.get()) is not None and not self._stopping.is_set():
            try:
                self._executions.run(name)
            except Exception:  # noqa: BLE001  the row is as it was, and due: it is run again
                _log.exception("an execution could not be saved; trying again", execution=name)
                self._stopping.wait(_COOL_DOWN_SECONDS)
            finally:
                with self._bell:
                    self._busy.discard(name)
                self.ring()


def _thread(name: str, target: Callable[[], None]) -> threading.Thread:
    return threading.Thread(name=name, target=target, daemon=True)

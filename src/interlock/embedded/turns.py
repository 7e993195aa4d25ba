"""Turns: of the threads that have Python to run, one at a time does.

The interpreter runs one thread at a time whatever we do, and `sqlite3` lets go of it in every statement. With two dozen
threads that all want it, nearly every statement costs a change of threads and another one back: measured, 300 of them
for each run. Threads that take turns change over where they must wait anyway: for a commit, for a job's target, for
work. And because turns are first come, first served, the writer commits what everybody before it had to write.

A turn is a courtesy, not a lock. Nothing is correct because of it: who does not get it in time goes on without, so that
neither a handler that blocks nor a lock that is held across a commit can bring the others to a stand.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_PATIENCE: Final = 0.05


class Turns:
    """One turn at a time, first come, first served; per store."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._gates: deque[threading.Lock] = deque()
        self._mine = threading.local()

    @property
    def mine(self) -> bool:
        """Does this thread have the turn?"""
        return getattr(self._mine, "turn", False)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """For work that is Python and reading; within it the turn may be given up for good."""
        if self.mine:
            yield
            return
        self._take()
        try:
            yield
        finally:
            self.give_up()

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """For waiting. Only who had the turn takes it again."""
        had = self.mine
        self.give_up()
        try:
            yield
        finally:
            if had:
                self._take()

    def give_up(self) -> None:
        """Let the next thread have its turn; nothing when this thread has none."""
        if not self.mine:
            return
        self._mine.turn = False
        with self._guard:
            if self._gates:
                self._gates.popleft().release()
            else:
                self._taken = False

    def _take(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = self._mine.turn = True
                return
            gate = threading.Lock()
            gate.acquire()
            self._gates.append(gate)
        self._mine.turn = gate.acquire(timeout=_PATIENCE) or not self._left(gate)

    def _left(self, gate: threading.Lock) -> bool:
        """Stop waiting; False when the turn came in the last moment."""
        with self._guard:
            if gate not in self._gates:
                return False
            self._gates.remove(gate)
            return True

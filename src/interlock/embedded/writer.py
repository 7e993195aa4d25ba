"""The one writer thread.

SQLite has one writer at a time and a durable commit costs a disk flush, so writes are committed in groups: whatever
queued up while the last group was being flushed is the next group. Nothing is ever delayed to make a group larger:
alone, a write is a group of one; under load, groups grow by themselves.
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from interlock.embedded.turns import Turns
from interlock.model.errors import StoreError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

# A bound on how long the first of a group waits for the last.
_MAX_GROUP: Final = 500


class Request:
    """A piece of work somebody waits for."""

    __slots__ = ("future", "work")

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()


class WriterThread:
    """Gathers requests into groups and has each group committed. `commit` must settle every future it is given."""

    def __init__(self, commit: Callable[[Sequence[Request]], None], turns: Turns) -> None:
        self._commit = commit
        self._turns = turns
        self._queue: SimpleQueue[Request | None] = SimpleQueue()
        # Orders submissions against the closing mark: nothing may be queued behind it, for nobody would answer.
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="interlock-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue it; the future is settled after the commit."""
        if threading.current_thread() is self._thread:
            raise StoreError("a write from within a write would wait for itself: use the connection that is given")
        request = Request(work)
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed: nothing can be written any more")
            self._queue.put(request)
        return request.future

    def close(self) -> None:
        """Commit what is queued, then end."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        closing = False
        while not closing:
            first = self._queue.get()
            # Waiting for the turn behind all who wait for theirs: what they write is in this group.
            with self._turns.taken():
                group, closing = self._next_group(first)
                if group:
                    self._commit(group)

    def _next_group(self, request: Request | None) -> tuple[list[Request], bool]:
        group: list[Request] = []
        while request is not None:
            group.append(request)
            if len(group) == _MAX_GROUP:
                return group, False
            try:
                request = self._queue.get_nowait()
            except Empty:
                return group, False
        return group, True

"""The one writer thread, which runs fibers, too.

SQLite has one writer at a time and a durable commit costs a disk flush, so writes are committed in groups: whatever
queued up while the last group was being flushed is the next group. As long as fibers have work to do that needs no
commit, a group waits for what they will add to it, 20 ms at most; with nothing else to do it is committed at once.

In a burst hundreds of fibers have something to do. Who waits from outside, the API above all, does not queue behind
them: such a request is in the next group at once, and that group waits 10 ms at most. Nor do the fibers wait for a
pause of the callers: between two commits some of them go on, however many call, and however little of the processor
this thread was given in these 10 ms.

Everything goes through this thread. If it ever dies, nobody may wait for it: all who do get an error, and the process
is told (`on_death`), which can do nothing better than to end and be started again.
"""

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from greenlet import getcurrent

from interlock.embedded.sqlite.fibers import Fiber, park
from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model.errors import StoreError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

# Bounds on how long the first of a group waits for the last, when fibers keep coming. A flush costs as much as the work
# of a few fibers, so under load it must be shared by many.
_MAX_GROUP: Final = 500
_PATIENCE: Final = 0.02
_PATIENCE_OF_CALLERS: Final = 0.01
# So many pieces of work are begun or gone on with between two commits, if there are as many. Undisturbed, it is a few
# milliseconds' work.
_LEAST_STEPS: Final = 16

OnDeath = Callable[[BaseException], None]
_log = get_logger(__name__)


class Request:
    """A piece of work that a thread waits for."""

    __slots__ = ("future", "work")

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()

    def begins(self) -> bool:
        """False when nobody waits for it any more."""
        return self.future.set_running_or_notify_cancel()

    def settle(self, value: Any, error: BaseException | None) -> None:
        """It is committed, or failed."""
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class FiberRequest:
    """A piece of work that a fiber waits for: parked and woken on the writer thread itself, it needs no future."""

    __slots__ = ("error", "fiber", "settled", "value", "work")

    def __init__(self, work: Work[Any], fiber: Fiber) -> None:
        self.work = work
        self.fiber = fiber
        self.settled = False
        self.value: Any = None
        self.error: BaseException | None = None

    def begins(self) -> bool:
        """A fiber does not stop waiting."""
        return True

    def settle(self, value: Any, error: BaseException | None) -> None:
        """It is committed, or failed."""
        self.value, self.error, self.settled = value, error, True
        self.fiber.home.wake(self.fiber)

    def result(self) -> Any:
        """Parks the fiber until it is settled."""
        while not self.settled:
            park(self.fiber)
        if self.error is not None:
            raise self.error
        return self.value


class LoopRequest:
    """A piece of work that coroutines of an event loop wait for: the loop is woken once for all of a group."""

    __slots__ = ("error", "future", "value", "work")

    def __init__(self, work: Work[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.future: asyncio.Future[Any] = loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None

    def begins(self) -> bool:
        """It is done even if nobody waits any more: only the loop may ask for that."""
        return True

    def settle(self, value: Any, error: BaseException | None) -> None:
        """It is committed, or failed; `wake_loops` tells."""
        self.value, self.error = value, error

    def tell(self) -> None:
        """On the loop: let who waits go on."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.value)
        else:
            self.future.set_exception(self.error)


AnyRequest = Request | FiberRequest | LoopRequest


def wake_loops(group: Sequence[AnyRequest]) -> None:
    """Tell the coroutines that wait for a group which is settled."""
    waiting: dict[asyncio.AbstractEventLoop, list[LoopRequest]] = {}
    for request in group:
        if isinstance(request, LoopRequest):
            waiting.setdefault(request.future.get_loop(), []).append(request)
    for loop, requests in waiting.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits there
            loop.call_soon_threadsafe(_tell_all, requests)


def _tell_all(requests: Sequence[LoopRequest]) -> None:
    for request in requests:
        request.tell()


class WriterThread:
    """Gathers requests into groups and has each group committed. `commit` must settle every future it is given.

    Between two commits it runs fibers: what they have to write is in the next group. `refresh` is called when they have
    nothing to do for a while, and ends the snapshot that they read.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[AnyRequest]], None],
        refresh: Callable[[], None],
        on_death: OnDeath,
        loops: Loops,
    ) -> None:
        self._commit = commit
        self.refresh = refresh
        self._on_death = on_death
        self._group: list[AnyRequest] = []
        self.resting: list[Fiber] = []
        self._queue: SimpleQueue[AnyRequest | Fiber | Callable[[], None] | None] = SimpleQueue()
        # Requests from outside, which go first. For each there is a mark in the queue, on which the thread may sleep.
        self._called: deque[Request | LoopRequest] = deque()
        # Orders submissions against the closing mark: nothing may be queued behind it, for nobody would answer.
        self._gate = threading.Lock()
        self._closed = False
        self._death: BaseException | None = None
        # Closing waits for the last commit, however long the disk takes: the connection is closed after it.
        self._loop = loops.add("writer", self._serve, on_failure=self._die, stop_seconds=None)
        self._loop.start()

    def write(self, work: Work[T]) -> T:
        """Do it, and wait for its commit."""
        fiber = getcurrent()
        if not isinstance(fiber, Fiber):
            return self.submit(work).result()
        request = FiberRequest(work, fiber)
        self._put(request)
        done: T = request.result()
        return done

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue it; the future is settled after the commit."""
        if self._loop.is_current and not isinstance(getcurrent(), Fiber):
            raise StoreError("a write from within a write would wait for itself: use the connection that is given")
        request = Request(work)
        self._put(request)
        return request.future

    def submit_on(self, loop: asyncio.AbstractEventLoop, work: Work[T]) -> "asyncio.Future[T]":
        """Queue it for a coroutine of that loop, which calls this; the future is settled after the commit."""
        request = LoopRequest(work, loop)
        self._put(request)
        return request.future

    def _put(self, request: AnyRequest) -> None:
        with self._gate:
            if self._death is not None:
                raise self._dead()
            if self._closed:
                raise StoreError("the store is closed: nothing can be written any more")
            if isinstance(request, FiberRequest):
                self._queue.put(request)
            else:
                self._called.append(request)
                self._queue.put(_CALLED)

    def spawn(self, work: Callable[[], None]) -> None:
        """Run `work` as a fiber. It must not raise; once the store is closed it is not begun any more."""
        self._queue.put(work)

    def wake(self, fiber: Fiber, /) -> None:
        """Have a fiber of this thread go on."""
        self._queue.put(fiber)

    def close(self) -> None:
        """Commit what is queued, then end."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._loop.stop()

    def _die(self, error: BaseException) -> None:
        with self._gate:
            self._death = error
        with suppress(Exception):
            _log.critical("the writer thread died: nothing can be written any more", error=repr(error))
        waiting = self._group
        while (item := self._next(wait=False)) is not _NOTHING_THERE:
            waiting += [item] if isinstance(item, Request | FiberRequest | LoopRequest) else []
        for request in waiting:
            # Some of a group may have been answered before it died.
            with suppress(InvalidStateError):
                request.settle(None, self._dead())
        wake_loops(waiting)
        self._on_death(error)

    def _dead(self) -> StoreError:
        return StoreError(
            f"the writer thread died of {self._death!r}: restart the process, nothing acknowledged is lost"
        )

    def _serve(self) -> None:
        group = self._group
        patient_until = 0.0
        steps = 0
        while True:
            item = self._next(wait=not group, full=len(group) >= _MAX_GROUP)
            if isinstance(item, Request | FiberRequest | LoopRequest):
                if not group:
                    patient_until = time.monotonic() + _PATIENCE
                if not isinstance(item, FiberRequest):
                    patient_until = min(patient_until, time.monotonic() + _PATIENCE_OF_CALLERS)
                group.append(item)
                if len(group) < _MAX_GROUP:
                    continue
            elif isinstance(item, Fiber):
                steps += 1
                item.switch()
            elif item is not None and item is not _NOTHING_THERE:
                steps += 1
                fiber = self.resting.pop() if self.resting else Fiber(self)
                fiber.begin(item)
            # With nothing else to do, commit; but fibers that keep coming must not hold it up forever.
            is_over = item is _NOTHING_THERE or item is None
            if group and (is_over or (steps >= _LEAST_STEPS and self._is_due(group, patient_until))):
                self._commit(group)
                wake_loops(group)
                group.clear()
                steps = 0
            if item is None:
                self.refresh()
                while self.resting:
                    self.resting.pop().end()
                return

    def _is_due(self, group: list[AnyRequest], patient_until: float) -> bool:
        return len(group) >= _MAX_GROUP or time.monotonic() >= patient_until

    def _next(self, *, wait: bool, full: bool = False) -> AnyRequest | Fiber | Callable[[], None] | None:
        """What comes next: who calls from outside goes first, but not into a group that is full."""
        while True:
            if self._called and not full:
                return self._called.popleft()
            try:
                item = self._queue.get_nowait()
            except Empty:
                if not wait:
                    return _NOTHING_THERE
                self.refresh()
                item = self._queue.get()
            # Who could not be taken into a full group comes before the end: nobody calls any more behind its mark.
            if item is None and self._called:
                self._queue.put(None)
                return _NOTHING_THERE
            # The request of a mark is there before it, and may have been taken already.
            if item is not _CALLED:
                return item


def _CALLED() -> None:  # noqa: N802 - a mark in the queue's type, never called
    """There is, or was, a request from outside."""


def _NOTHING_THERE() -> None:  # noqa: N802 - a mark in the queue's type, never called
    """The queue is empty."""

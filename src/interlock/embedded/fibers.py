"""Fibers: many pieces of work on one thread, each running until it must wait.

`sqlite3` lets go of the interpreter in every statement, so threads that all want it spend their time handing it to each
other: measured, 120 changes of threads for each run, and more than half of the time. What routes changes and runs
executions is Python and short reads; it waits only for commits and for the targets of jobs. So it runs as fibers on the
writer thread itself: a fiber that commits is parked, the next one runs, and when none can go on, what all of them have
to write is committed as one group. A call of a target goes to a thread of its own meanwhile.

A fiber must not block its thread in any other way: everybody's commits would wait with it.

What a fiber reads, it reads of one snapshot that all of them share, until the next commit or until a fiber begins or
comes back from a target: every write that was acknowledged before that is in it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import structlog
from greenlet import getcurrent, greenlet

T = TypeVar("T")

_log = structlog.get_logger(__name__)

_TARGET_THREADS: Final = 64
_MOST_RESTING: Final = 64


class Fiber(greenlet):
    """Does one piece of work after the other, and can be parked in the middle of one.

    `wake` has it go on, from whatever thread; `refresh` ends its snapshot. Its stack is mapped memory, costly to make
    and to give back: so a fiber whose work is done goes to `resting`, and is taken from there for the next.
    """

    def __init__(self, wake: "Callable[[Fiber], None]", refresh: Callable[[], None], resting: "list[Fiber]") -> None:
        super().__init__(self._serve)
        self.wake = wake
        self.refresh = refresh
        self._resting = resting
        self._work: Callable[[], None] | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Do this, until it is done or parks; called on the thread, not on a fiber."""
        self._work = work
        self.switch()

    def end(self) -> None:
        """It rests, and is not needed any more."""
        self.switch()

    def _serve(self) -> None:
        while self._work is not None:
            work, self._work = self._work, None
            try:
                work()
            except Exception:  # noqa: BLE001  whoever wrote it owes us an answer; the thread must live
                _log.exception("a fiber's work failed")
            if len(self._resting) >= _MOST_RESTING:
                return
            self._resting.append(self)
            park(self)


def wait_for(future: Future[T]) -> T:
    """The result of a future: a fiber is parked until it is there, any other thread waits."""
    fiber = getcurrent()
    if isinstance(fiber, Fiber) and not future.done():
        future.add_done_callback(lambda _: fiber.wake(fiber))
        while not future.done():
            park(fiber)
        fiber.refresh()
    return future.result()


def park(fiber: Fiber) -> None:
    """Let others run until somebody wakes this fiber; called on itself."""
    parent = fiber.parent
    if parent is None:
        raise RuntimeError("a fiber has lost its thread")
    parent.switch()


class Outside:
    """Threads for what takes long: calls of the systems in which jobs live.

    A target that hangs must not keep the process from ending, so they are daemons; a ThreadPoolExecutor's are not.
    """

    def __init__(self, most: int = _TARGET_THREADS) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._most = most
        self._threads = 0
        self._free = 0

    def call(self, work: Callable[[], T]) -> T:
        """Do it: a fiber is parked meanwhile; on any other thread it is done right here."""
        if not isinstance(getcurrent(), Fiber):
            return work()
        future: Future[T] = Future()
        self._calls.put((work, future))
        with self._lock:
            # One that becomes free takes the call; a thread too many does no harm.
            if self._free == 0 and self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._serve, name="interlock-target", daemon=True).start()
        return wait_for(future)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._free += 1
            work, future = self._calls.get()
            with self._lock:
                self._free -= 1
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  it is the caller's
                future.set_exception(error)

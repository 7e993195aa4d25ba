"""Fibers: many pieces of work on one thread, each running until it must wait.

`sqlite3` lets go of the interpreter in every statement, so threads that all want it spend their time handing it to each
other: measured, 120 changes of threads for each run, and more than half of the time. What routes changes and runs
executions is Python and short reads; it waits only for commits and for the targets of jobs. So it runs as fibers on the
writer thread itself: a fiber that commits is parked, the next one runs, and when none can go on, what all of them have
to write is committed as one group. A call of a target goes to a thread of its own meanwhile.

A fiber must not block its thread in any other way: everybody's commits would wait with it.

What a fiber reads, it reads of one snapshot that all of them share, until the next commit of this process, until a
commit of another process is noticed, or until no fiber has anything to do. Every write of this process that was
acknowledged is in it. What they have read of it they need not read again (see `item_cache`).
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model.errors import InterlockError

T = TypeVar("T")
P = ParamSpec("P")

_log = get_logger(__name__)

_TARGET_THREADS: Final = 64
_MOST_RESTING: Final = 64


class Home(Protocol):
    """The thread that fibers belong to."""

    resting: "list[Fiber]"

    def wake(self, fiber: "Fiber", /) -> None:
        """Have it go on; from whatever thread. One wake-up too many does no harm."""
        ...


class Fiber(greenlet):
    """Does one piece of work after the other, and can be parked in the middle of one.

    Its stack is mapped memory, costly to make and to give back: so a fiber whose work is done rests at home, and is
    taken from there for the next.
    """

    def __init__(self, home: Home) -> None:
        super().__init__(self._serve)
        self.home = home
        self._work: Callable[[], None] | None = None
        self._ended = False

    def begin(self, work: Callable[[], None]) -> None:
        """Do this, until it is done or parks; called on the thread, not on a fiber."""
        self._work = work
        self.switch()

    def end(self) -> None:
        """It rests, and is not needed any more."""
        self._ended = True
        self.switch()

    def _serve(self) -> None:
        while self._work is not None:
            work, self._work = self._work, None
            try:
                work()
            except GreenletExit:
                raise
            except BaseException:  # noqa: BLE001  whoever wrote it owes us an answer; the thread must live
                with suppress(Exception):  # a log that cannot be written must not end everybody's commits
                    _log.exception("a fiber's work failed")
            if len(self.home.resting) >= _MOST_RESTING:
                return
            self._rest()

    def _rest(self) -> None:
        self.home.resting.append(self)
        # Who did not have to wait in the end is woken nevertheless, maybe only now: that is no work.
        while self._work is None and not self._ended:
            park(self)


def wait_for(future: Future[T]) -> T:
    """The result of a future: a fiber is parked until it is there, any other thread waits."""
    fiber = getcurrent()
    if isinstance(fiber, Fiber):
        if not future.done():
            future.add_done_callback(lambda _: fiber.home.wake(fiber))
        while not future.done():
            park(fiber)
    return future.result()


def park(fiber: Fiber) -> None:
    """Let others run until somebody wakes this fiber; called on itself."""
    parent = fiber.parent
    if parent is None:
        raise RuntimeError("a fiber has lost its thread")
    parent.switch()


def pause() -> None:
    """Let who waits on this thread go first, commits above all; on any other thread than that of fibers, nothing."""
    fiber = getcurrent()
    if isinstance(fiber, Fiber):
        fiber.home.wake(fiber)
        park(fiber)


class TargetThreads:
    """Threads for what takes long: calls of the systems in which jobs live.

    A target that hangs must not keep the process from ending, so they are daemons; a ThreadPoolExecutor's are not.
    """

    def __init__(self, most: int = _TARGET_THREADS, loops: Loops | None = None) -> None:
        self._loops = loops or Loops()
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._most = most
        self._threads = 0
        # Threads that have nothing to do, less the calls that none has taken yet: below 0, calls wait.
        self._free = 0

    def call(self, work: Callable[[], T]) -> T:
        """Do it: a fiber is parked meanwhile; on any other thread it is done right here."""
        if not isinstance(getcurrent(), Fiber):
            return work()
        future: Future[T] = Future()
        self._reserve()
        self._calls.put((work, future))
        return wait_for(future)

    def _reserve(self) -> None:
        """A thread for one call. When none can be started, this raises before anybody could make the call."""
        with self._lock:
            if self._free <= 0 and self._threads < self._most:
                self._loops.add(f"target-{self._threads + 1}", self._serve_next).start()
                self._threads += 1
                self._free += 1
            self._free -= 1

    def _serve_next(self) -> float:
        work, future = self._calls.get()
        settle = _outcome(work, future)
        with self._lock:
            self._free += 1
        settle()
        return 0.0


def _outcome(work: Callable[[], T], future: Future[T]) -> Callable[[], None]:
    """Make a call; what tells its caller how it went."""
    try:
        return partial(future.set_result, contained(work)())
    except Exception as error:  # noqa: BLE001  it is the caller's
        return partial(future.set_exception, error)


def contained(call: Callable[P, T]) -> Callable[P, T]:
    """The same call, of which nothing comes but an Exception.

    What wants its thread or its process to end (`sys.exit` in a library) has failed, and nothing else: the thread is
    everybody's. Only the end of a fiber passes.
    """

    def contain(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return call(*arguments, **named)
        except (Exception, GreenletExit):
            raise
        except BaseException as error:
            raise InterlockError(f"the call ended with {error!r}") from error

    return contain

"""Changes handed to a handler: in order within a partition, in parallel between partitions, each at least once.

The hard part is failure. A partition is a queue of segments. The first segment is handed over whole; if that
fails it is cut in two, until the failing record stands alone. That one is tried again after a pause, and given up
on after `tries` tries. Behind it its partition waits, for order is promised; every other partition goes on, because
a pausing partition occupies no lane.

Invariant: up to `Lanes.settled_to` nothing is left to do. A change counts as settled when the handler returned or
its dead letter is durable, so a checkpoint at that number never skips one.
"""

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec
import structlog

from interlock.embedded.dead_letters import Failure
from interlock.ports.clock import Clock
from interlock.ports.store import Change

Handler = Callable[[Sequence[Change]], None]
Bury = Callable[[Change, Failure], None]
Spawn = Callable[[Callable[[], None]], None]

FIRST_PAUSE: Final = 0.1
_BROKEN_STORE_PAUSE: Final = 1.0

_log = structlog.get_logger(__name__)


class Segment(msgspec.Struct, frozen=True):
    """Consecutive changes of a partition that are handed over together."""

    changes: tuple[Change, ...]
    tries: int = 0
    first_failure: datetime | None = None


class Step(msgspec.Struct, frozen=True):
    """What came of one call: which changes need nothing more, and how long the partition is to pause."""

    settled: tuple[Change, ...] = ()
    pause: float = 0.0


class Partition:
    """The changes of one partition that are still to be handled."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._fresh: deque[Change] = deque()
        self._segments: deque[Segment] = deque()

    def add(self, change: Change) -> None:
        """Another one, at the end."""
        self._fresh.append(change)

    def __bool__(self) -> bool:
        return bool(self._segments or self._fresh)

    def first(self) -> Segment:
        """The next segment; it stays the first until it is replaced."""
        if not self._segments:
            size = min(self._batch_size, len(self._fresh))
            self._segments.append(Segment(tuple(self._fresh.popleft() for _ in range(size))))
        return self._segments[0]

    def replace_first(self, *segments: Segment) -> None:
        """Put these in the place of the first segment."""
        self._segments.popleft()
        self._segments.extendleft(reversed(segments))


class Delivery:
    """One call of the handler, and what follows from its failure."""

    def __init__(self, handler: Handler, bury: Bury, clock: Clock, tries: int) -> None:
        self._handler = handler
        self._bury = bury
        self._clock = clock
        self._tries = tries

    def step(self, partition: Partition) -> Step:
        """Hand over the first segment. What is no Exception (a crash, an interrupt) passes untouched."""
        segment = partition.first()
        try:
            self._handler(segment.changes)
        except Exception as error:  # noqa: BLE001  whatever a handler raises is a failure of its records
            return self._failed(partition, segment, error)
        partition.replace_first()
        return Step(settled=segment.changes)

    def _failed(self, partition: Partition, segment: Segment, error: Exception) -> Step:
        changes = segment.changes
        if len(changes) > 1:
            middle = len(changes) // 2
            partition.replace_first(Segment(changes[:middle]), Segment(changes[middle:]))
            return Step()
        now = self._clock.now()
        tries, first = segment.tries + 1, segment.first_failure or now
        if tries < self._tries:
            partition.replace_first(Segment(changes, tries, first))
            return Step(pause=FIRST_PAUSE * 2 ** (tries - 1))
        # Only when the letter is safe may the record go: until then it stays the first of its partition.
        self._bury(changes[0], Failure(error=error, tries=tries, first_at=first, last_at=now))
        partition.replace_first()
        return Step(settled=changes)


class Lanes:
    """Work off partitions, each in one lane at a time: `count` threads or, given `spawn`, a fiber per partition."""

    def __init__(
        self,
        delivery: Delivery,
        spawn: Spawn | None = None,
        *,
        count: int,
        batch_size: int,
        window: int,
        start: int,
        name: str,
    ) -> None:
        self._delivery = delivery
        self._spawn = spawn
        self._fibers = 0
        self._fibers_done = threading.Event()
        self._batch_size = batch_size
        self._window = window
        # One lock, two things to wait for: a thread that is woken for nothing costs everybody the interpreter.
        self._state = threading.Lock()
        self._work_there = threading.Condition(self._state)
        self._room_there = threading.Condition(self._state)
        # A partition is here from its first change until its last is settled, and meanwhile in exactly one place:
        # in `_ready`, in `_pausing`, or in a lane.
        self._partitions: dict[str, Partition] = {}
        self._ready: deque[str] = deque()
        self._pausing: list[tuple[float, str]] = []
        # Numbers taken in and not settled, in order: a dict keeps it and forgets from anywhere.
        self._open: dict[int, None] = {}
        self._taken_to = start
        self._stopping = False
        self._crash: BaseException | None = None
        lanes = range(count if spawn is None else 0)
        self._threads = [
            threading.Thread(target=self._work, name=f"interlock-{name}-{lane}", daemon=True) for lane in lanes
        ]
        for thread in self._threads:
            thread.start()

    def offer(self, changes: Sequence[Change], read_to: int) -> None:
        """Take in changes, in order; up to `read_to` there are no others."""
        with self._state:
            ready = len(self._ready)
            for change in changes:
                self._open[change.seq] = None
                partition = self._partitions.get(change.pk)
                if partition is None:
                    partition = self._partitions[change.pk] = Partition(self._batch_size)
                    self._ready.append(change.pk)
                partition.add(change)
            self._taken_to = read_to
            self._work_there.notify(len(self._ready) - ready)
            if self._spawn is not None:
                self._spawn_ready(self._spawn)

    def _spawn_ready(self, spawn: Spawn) -> None:
        """A fiber for each partition that has something to do. With the lock held."""
        while self._ready and not self._stopping:
            self._fibers += 1
            spawn(partial(self._work_off, self._ready.popleft()))

    def room(self, seconds: float) -> int:
        """How many changes may be taken in; waits a while for room. Raises what a lane crashed with."""
        with self._state:
            self._room_there.wait_for(lambda: self._crash or len(self._open) < self._window, seconds)
            if self._crash is not None:
                raise self._crash
            return self._window - len(self._open)

    @property
    def settled_to(self) -> int:
        """Everything up to this number is settled."""
        with self._state:
            return next(iter(self._open), self._taken_to + 1) - 1

    def stop(self) -> None:
        """Let every lane finish its call, and end. What was not settled is delivered again next time."""
        with self._state:
            self._stopping = True
            self._work_there.notify_all()
            busy = self._fibers > 0
        if busy:
            self._fibers_done.wait()
        for thread in self._threads:
            thread.join()

    def _work_off(self, pk: str) -> None:
        """One partition until it is empty, pauses, or it is time to end."""
        partition = self._partitions[pk]
        while not self._stopping:
            step = self._step(pk, partition)
            if step is None:
                break
            with self._state:
                self._settle(pk, partition, step)
                if pk not in self._partitions:
                    break
                if step.pause:
                    self._pause(pk, step.pause)
                    break
        with self._state:
            self._fibers -= 1
            if self._stopping and not self._fibers:
                self._fibers_done.set()

    def _pause(self, pk: str, seconds: float) -> None:
        timer = threading.Timer(seconds, self._resume, (pk,))
        timer.daemon = True
        timer.start()

    def _resume(self, pk: str) -> None:
        with self._state:
            self._ready.append(pk)
            if self._spawn is not None:
                self._spawn_ready(self._spawn)

    def _step(self, pk: str, partition: Partition) -> Step | None:
        """One call of the handler; None when it crashed."""
        try:
            return self._delivery.step(partition)
        except Exception as error:  # noqa: BLE001  a dead letter could not be written: keep the record, try again
            _log.error("a dead letter could not be kept; trying again", pk=pk, error=str(error))
            return Step(pause=_BROKEN_STORE_PAUSE)
        except BaseException as crash:  # noqa: BLE001  raised again where the lanes are driven
            self._crashed(crash)
            return None

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            pk, partition = taken
            step = self._step(pk, partition)
            if step is None:
                return
            self._put(pk, partition, step)

    def _take(self) -> tuple[str, Partition] | None:
        """The next partition with something to do; None when it is time to end."""
        with self._state:
            while not self._stopping:
                now = time.monotonic()
                while self._pausing and self._pausing[0][0] <= now:
                    self._ready.append(heapq.heappop(self._pausing)[1])
                if self._ready:
                    pk = self._ready.popleft()
                    return pk, self._partitions[pk]
                self._work_there.wait(self._pausing[0][0] - now if self._pausing else None)
            return None

    def _put(self, pk: str, partition: Partition, step: Step) -> None:
        with self._state:
            self._settle(pk, partition, step)
            if not partition:
                return
            if step.pause:
                heapq.heappush(self._pausing, (time.monotonic() + step.pause, pk))
                # This lane may find other work: another one is to see that there is an end of a pause to wait for.
                self._work_there.notify()
            else:
                # Nobody need be woken: this lane comes back for a partition itself.
                self._ready.append(pk)

    def _settle(self, pk: str, partition: Partition, step: Step) -> None:
        """Forget what is done, and the partition with its last change. With the lock held."""
        full = len(self._open) >= self._window
        for change in step.settled:
            del self._open[change.seq]
        if full and step.settled:
            self._room_there.notify_all()
        if not partition:
            del self._partitions[pk]

    def _crashed(self, crash: BaseException) -> None:
        with self._state:
            self._crash = self._crash or crash
            self._stopping = True
            self._work_there.notify_all()
            self._room_there.notify_all()

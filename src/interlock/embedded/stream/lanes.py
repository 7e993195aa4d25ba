"""Changes handed to a handler: in order within a partition, in parallel between partitions, each at least once.

The hard part is failure. A partition is a queue of segments. The first segment is handed over whole; if that
fails it is cut in two, until the failing record stands alone. That one is tried again after a pause, and given up
on after `tries` tries. Behind it its partition waits, for order is promised; every other partition goes on.

Invariant: up to `Lanes.settled_to` nothing is left to do. A change counts as settled when the handler returned or
its dead letter is durable, so a checkpoint at that number never skips one.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from interlock.embedded.stream.dead_letters import Failure
from interlock.logs import get_logger
from interlock.model.errors import StoreUnavailableError
from interlock.ports.clock import Clock
from interlock.ports.store import Change

Handler = Callable[[Sequence[Change]], None]
Bury = Callable[[Change, Failure], None]
Spawn = Callable[[Callable[[], None]], None]

FIRST_PAUSE: Final = 0.1
_BROKEN_STORE_PAUSE: Final = 1.0

_log = get_logger(__name__)


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


class Handover:
    """One call of the handler, and what follows from its failure."""

    def __init__(self, handler: Handler, bury: Bury, clock: Clock, tries: int) -> None:
        self._handler = handler
        self._bury = bury
        self._clock = clock
        self._tries = tries

    def step(self, partition: Partition) -> Step:
        """Hand over the first segment. What is no failure of its records passes: a broken store, a crash."""
        segment = partition.first()
        try:
            self._handler(segment.changes)
        except StoreUnavailableError:
            raise  # no fault of the records: they must not become dead letters because the disk was full for a while
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
    """Work off partitions on fibers of the writer thread, one each. `more`: there is room for further changes again."""

    def __init__(
        self,
        handover: Handover,
        spawn: Spawn,
        more: Callable[[], None],
        *,
        batch_size: int,
        window: int,
        start: int,
    ) -> None:
        self._handover = handover
        self._spawn = spawn
        self._more = more
        self._batch_size = batch_size
        self._window = window
        # Fibers do not interrupt each other; but who drives the lanes ends pauses, asks, and stops them.
        self._state = threading.Lock()
        self._done = threading.Condition(self._state)
        # A partition is here from its first change until its last is settled, and meanwhile has a fiber or pauses.
        self._partitions: dict[str, Partition] = {}
        # Those that pause, and until when.
        self._pausing: dict[str, float] = {}
        self._fibers = 0
        # Numbers taken in and not settled, in order: a dict keeps it and forgets from anywhere.
        self._open: dict[int, None] = {}
        self._taken_to = start
        self._stopping = False
        self._crash: BaseException | None = None

    def offer(self, changes: Sequence[Change], read_to: int) -> None:
        """Take in changes, in order; up to `read_to` there are no others."""
        with self._state:
            for change in changes:
                self._open[change.seq] = None
                partition = self._partitions.get(change.pk)
                if partition is None:
                    partition = self._partitions[change.pk] = Partition(self._batch_size)
                    self._begin(change.pk)
                partition.add(change)
            self._taken_to = read_to

    def _begin(self, pk: str) -> None:
        """A fiber for a partition that has something to do. With the lock held."""
        if not self._stopping:
            self._fibers += 1
            self._spawn(partial(self._work_off, pk))

    def resume(self) -> None:
        """Go on with the partitions whose pause is over; to be called again and again."""
        with self._state:
            now = time.monotonic()
            for pk in [pk for pk, until in self._pausing.items() if until <= now]:
                del self._pausing[pk]
                self._begin(pk)

    @property
    def room(self) -> int:
        """How many changes may be taken in; when there is none, `more` will be called."""
        with self._state:
            return self._window - len(self._open)

    @property
    def settled_to(self) -> int:
        """Everything up to this number is settled."""
        with self._state:
            return next(iter(self._open), self._taken_to + 1) - 1

    @property
    def crash(self) -> BaseException | None:
        """What ended a lane in the middle of its call. Nothing is handed over any more then."""
        return self._crash

    def stop(self) -> None:
        """Let every lane finish its call, and end. What was not settled is delivered again next time."""
        with self._state:
            self._stopping = True
            self._done.wait_for(lambda: not self._fibers)

    def _work_off(self, pk: str) -> None:
        """One partition until it is empty, pauses, or it is time to end."""
        partition = self._partitions[pk]
        pause = 0.0
        while not self._stopping and pk in self._partitions and not pause:
            step = self._step(pk, partition)
            pause = step.pause
            self._settle(pk, partition, step)
        with self._state:
            if pause:
                self._pausing[pk] = time.monotonic() + pause
            self._fibers -= 1
            self._done.notify_all()

    def _step(self, pk: str, partition: Partition) -> Step:
        """One call of the handler."""
        try:
            return self._handover.step(partition)
        except Exception as error:  # noqa: BLE001  neither handled nor made a dead letter: keep the record, try again
            _log.error("the store failed its consumer; trying again", pk=pk, error=str(error))
            return Step(pause=_BROKEN_STORE_PAUSE)
        except BaseException as crash:  # noqa: BLE001  raised again where the lanes are driven
            self._crash = self._crash or crash
            self._stopping = True
            return Step()

    def _settle(self, pk: str, partition: Partition, step: Step) -> None:
        """Forget what is done, and the partition with its last change."""
        with self._state:
            full = len(self._open) >= self._window
            for change in step.settled:
                del self._open[change.seq]
            if not partition:
                del self._partitions[pk]
        if full and step.settled:
            self._more()

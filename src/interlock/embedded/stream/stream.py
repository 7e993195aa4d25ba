"""The change stream of the SQLite store: durable consumers, each with a checkpoint of its own.

A checkpoint is not flushed by itself: it rides on the next write of anybody. After a crash some changes are therefore
delivered again, which at-least-once allows and every handler must bear.
"""

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final

import msgspec

from interlock.embedded.sqlite.database import Database, Row
from interlock.embedded.sqlite.fibers import contained
from interlock.embedded.stream.dead_letters import Failure, LetterKind, bury
from interlock.embedded.stream.lanes import Handler, Handover, Lanes, Partition
from interlock.logs import get_logger
from interlock.loops import OVERDUE_SECONDS
from interlock.model.errors import StoreError
from interlock.model.keys import Table
from interlock.ports.store import Change, Item

_CHUNK: Final = 200
_FARTHEST: Final = 5000
# How many changes may be on their way at once: a partition that hangs holds up the others only when this is full.
_WINDOW: Final = 2000
# How soon a commit of another process is noticed.
_LOOK_SECONDS: Final = 0.02
_BROKEN_STORE_SECONDS: Final = 1.0
# Idle rounds after which a checkpoint that found nobody to ride with is flushed: about a second.
_PATIENCE: Final = 50

_decode: Final = msgspec.json.Decoder(Item).decode
_log = get_logger(__name__)


class StreamConsumer:
    """Delivers every change of some tables to a handler: ordered per partition, at least once, in small batches.

    Register all consumers before the store is swept: changes are kept until every registered consumer passed them.
    Drive it with `pump` (on this thread, in order, without pauses: for a simulation) or `start` and `stop`.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        tables: Sequence[Table],
        handler: Handler,
        *,
        batch_size: int = 10,
        tries: int = 3,
        unheard: Sequence[str] = (),
    ) -> None:
        """`handler`: when this runs, it is called on fibers of the writer thread: it may wait for commits only.

        `unheard`: changes of sort keys with these prefixes are not delivered.
        """
        self.name = name
        self._database = database
        # Pumped, what is no Exception passes: the crash of a simulation ends everything.
        self._pumped = Handover(handler, self._bury, database.clock, tries)
        self._handover = Handover(contained(handler), self._bury, database.clock, tries)
        self._batch_size = batch_size
        self._tables = [table.value for table in tables]
        marks = ", ".join("?" for _ in tables)
        passed_over = " AND NOT (sk >= ? AND sk < ?)" * len(unheard)
        self._select = (
            "SELECT seq, tbl, pk, sk, at, item FROM changes WHERE seq > ? AND seq <= ?"
            f" AND tbl IN ({marks}) AND (consumer IS NULL OR consumer = ?){passed_over} ORDER BY seq LIMIT ?"
        )
        self._unheard = [bound for prefix in unheard for bound in (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))]
        self._position: int | None = None
        self._saved = 0
        self.last_at: datetime | None = None
        self._lanes: Lanes | None = None
        self._read_to = 0
        self._heard = False
        self._broken = False
        self._stopping = threading.Event()
        self._loop = database.loops.add(name, self.run, overdue=OVERDUE_SECONDS)

    def register(self) -> None:
        """Make the consumer known, at the beginning if it is new, and find where it left off."""
        self._registered()

    def _registered(self) -> int:
        if self._position is None:
            sql = "SELECT checkpoint FROM consumers WHERE name = ?"
            rows = self._database.read(sql, (self.name,))
            if not rows:
                new = "INSERT OR IGNORE INTO consumers (name, checkpoint) VALUES (?, 0)"
                self._database.write(lambda connection: connection.execute(new, (self.name,)).rowcount)
                rows = self._database.read(sql, (self.name,))
            self._position = self._saved = int(rows[0][0])
        return self._position

    def lag(self) -> int:
        """How many changes lie behind its checkpoint, other tables' included."""
        return max(0, self._database.head() - self._registered())

    # ------------------------------------------------------------------------------------------------ pumped

    def pump(self) -> int:
        """Deliver what is there now, in the order of the commits, failures tried again at once; how many it was."""
        position, end = self._registered(), self._database.head()
        count = 0
        while position < end:
            changes, position = self._read(position, end, _CHUNK)
            for batch in _batches(changes, self._batch_size):
                self._deliver(batch)
                self._passed(batch[-1].seq)
                count += len(batch)
            self._passed(position)
        return count

    def _deliver(self, batch: Sequence[Change]) -> None:
        partition = Partition(self._batch_size)
        for change in batch:
            partition.add(change)
        while partition:
            self._pumped.step(partition)

    # ------------------------------------------------------------------------------------------------ running

    def start(self) -> None:
        """Deliver from now on, on fibers of the writer thread; a thread of its own tends to that."""
        self._loop.start()

    def stop(self) -> None:
        """Finish the calls under way, and end."""
        self._stopping.set()
        self._loop.stop()

    def run(self) -> None:
        """Deliver changes as they come, until `stop`.

        Whatever a handler raises is a failure of its records, `SystemExit` included: raised here, it would have the
        same record delivered first again, forever.
        """
        self._read_to = self._registered()
        lanes = Lanes(
            self._handover,
            self._database.spawn,
            self._hear,
            batch_size=self._batch_size,
            window=_WINDOW,
            start=self._read_to,
        )
        self._lanes = lanes
        self._database.on_commit(self._hear)
        try:
            self._tend(lanes)
        finally:
            self._database.forget(self._hear)
            lanes.stop()
            self._passed(lanes.settled_to)
            self._database.flush()

    def _tend(self, lanes: Lanes) -> None:
        """Take in what other processes commit; what this process commits is taken in at once, by the writer."""
        idle, wait = 0, 0.0
        while not self._stopping.wait(wait):
            self._loop.came_round()
            wait = _BROKEN_STORE_SECONDS if self._broken else _LOOK_SECONDS
            if lanes.crash is not None:
                raise lanes.crash
            lanes.resume()
            try:
                if self._database.head() > self._read_to:
                    self._hear()
            except StoreError as error:
                self._unreadable(error)
                wait = _BROKEN_STORE_SECONDS
                continue
            idle = 0 if self._passed(lanes.settled_to) else idle + 1
            if idle == _PATIENCE:
                self._database.flush()

    def _hear(self) -> None:
        """There is something new, or room for it: have it taken in, by a fiber."""
        # Taking in twice does no harm, the second finds nothing; what counts is that nothing is heard in vain.
        if not self._heard:
            self._heard = True
            self._database.spawn(self._take_in)

    def _take_in(self) -> None:
        self._heard = False  # first of all: what is committed from here on is news again
        lanes, head = self._lanes, self._database.known_head
        try:
            while lanes is not None and self._read_to < head and (room := lanes.room) > 0:
                changes, read_to = self._read(self._read_to, head, min(room, _CHUNK))
                lanes.offer(changes, read_to)
                self._read_to = read_to
            self._broken = False
        except Exception as error:  # noqa: BLE001  whatever it is, it is tried again
            self._unreadable(error)
            self._broken = True

    def _unreadable(self, error: Exception) -> None:
        # The disk may be full for a while; a consumer that ended would stay silent forever.
        _log.error("changes cannot be read; trying again", consumer=self.name, error=str(error))

    # ------------------------------------------------------------------------------------------------ both

    def _read(self, position: int, end: int, limit: int) -> tuple[list[Change], int]:
        """Up to `limit` changes behind `position`, and up to where there are no others."""
        # Not too far at once: what is not delivered is passed over, by the thread that everybody's commits need.
        end = min(end, position + _FARTHEST)
        rows = self._database.read(self._select, (position, end, *self._tables, self.name, *self._unheard, limit))
        changes = [_change(row) for row in rows]
        return changes, changes[-1].seq if len(changes) == limit else end

    def _passed(self, seq: int) -> bool:
        """Everything up to `seq` is done; true when that is news."""
        if seq <= self._saved:
            return False
        self._position = self._saved = seq
        self.last_at = self._database.clock.now()
        values = (seq, self.name)
        sql = "UPDATE consumers SET checkpoint = max(checkpoint, ?) WHERE name = ?"
        self._database.defer(f"checkpoint of {self.name}", lambda connection: connection.execute(sql, values).rowcount)
        return True

    def _bury(self, change: Change, failure: Failure) -> None:
        _log.error("a change became a dead letter", consumer=self.name, key=str(change.key), error=str(failure.error))
        record: dict[str, Any] = msgspec.to_builtins(change)
        self._database.write(
            lambda connection: bury(connection, LetterKind.CHANGE, self.name, str(change.seq), record, failure)
        )


def unregister(database: Database, name: str) -> bool:
    """Forget a consumer that will not come back, so that changes are not kept for it; false when it is unknown."""
    sql = "DELETE FROM consumers WHERE name = ?"
    return bool(database.write(lambda connection: connection.execute(sql, (name,)).rowcount))


def _change(row: Row) -> Change:
    seq, table, pk, sk, at, item = row
    return Change(seq, Table(table), pk, sk, at, None if item is None else _decode(item))


def _batches(changes: Sequence[Change], size: int) -> Iterator[list[Change]]:
    """Neighbours of one partition together, at most `size`: the order of the commits stays as it is."""
    for _, neighbours in groupby(changes, key=lambda change: change.pk):
        run = list(neighbours)
        for start in range(0, len(run), size):
            yield run[start : start + size]

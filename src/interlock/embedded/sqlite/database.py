"""One SQLite file, or one in memory: durable writes in groups, consistent reads, and the news that something changed.

Everything else of the embedded runtime stands on `write` and `read`. A write is a function of the connection; it is
acknowledged when the transaction it was part of is on the disk, and what it raises undoes it and nothing else.
"""

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from greenlet import getcurrent

from interlock.embedded.sqlite.commit_guard import CommitGuard
from interlock.embedded.sqlite.connection import connect, explain, open_store
from interlock.embedded.sqlite.fibers import Fiber
from interlock.embedded.sqlite.groups import Outcome, do_group
from interlock.embedded.sqlite.item_cache import ItemCache, StoreConnection, writes_no_items
from interlock.embedded.sqlite.writer import AnyRequest, OnDeath, Work, WriterThread
from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model.errors import StoreError, StoreReplacedError
from interlock.ports.clock import Clock

T = TypeVar("T")
Row = tuple[Any, ...]
Fault = Callable[[str], None]
Listener = Callable[[], None]

BEFORE_COMMIT: Final = "before-commit"
AFTER_COMMIT: Final = "after-commit"
# How soon a commit of another process is noticed. Asking costs some microseconds.
_POLL_SECONDS: Final = 0.01
_HEAD: Final = "SELECT coalesce(max(seq), 0) FROM changes"

_log = get_logger(__name__)


class Database:
    """The store's file. Threads may share it; a second process may open the same file.

    Inline, there is no writer thread: `write` commits on the calling thread, so that a simulation does the same thing
    every time. `fault` is then called before and after each COMMIT, and may raise to play a crash at that point.
    """

    def __init__(
        self,
        connection: StoreConnection,
        path: Path | None,
        clock: Clock,
        *,
        inline: bool,
        read_only: bool,
        fault: Fault | None,
    ) -> None:
        self.clock = clock
        self.path = path
        self.inline = inline
        self.read_only = read_only
        self.fault = fault
        # All threads that stand on this store, its writer first: whoever makes one adds it here, and health asks them.
        self.loops = Loops()
        self._connection = connection
        self._items = connection.items
        # Guards the write connection and what is known of its items. Reentrant: a work in memory reads while it writes.
        self._lock = self._items.lock
        # Another process has committed something that the snapshot of the fibers may lack.
        self._foreign_news = False
        self._writing = False
        self._closed = False
        self._readers: deque[sqlite3.Connection] = deque()
        self._riders: dict[str, Work[object]] = {}
        self._riders_lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._news = threading.Condition()
        self._head: int = connection.execute(_HEAD).fetchone()[0]
        # Not the head: the poll for other processes' commits may notice ours before the listeners are notified.
        self._told = self._head
        self.guard = CommitGuard(None if read_only else path, connection, self.submit)
        # Its own connection: SQLite tells a connection of the commits of all others, this process's included.
        self._watch = None if path is None else connect(path, mode="ro")
        self._watched = self._data_version()
        # Called when the writer thread has died, on that thread: a process that runs a controller ends then.
        self.on_death: OnDeath = lambda _: None
        self._writer = (
            None
            if inline or read_only
            else WriterThread(self._commit_group, self._end_snapshot, self._writer_died, self.loops)
        )

    def _writer_died(self, error: BaseException) -> None:
        self.on_death(error)

    @classmethod
    def open(
        cls,
        path: Path | str | None,
        *,
        clock: Clock,
        create: bool = True,
        read_only: bool = False,
        inline: bool = False,
        fault: Fault | None = None,
        accept_lost: bool = False,
    ) -> Self:
        """Open the store of that file (None: a new one in memory), brought to the current version.

        `accept_lost`: also if it lacks what was written last.
        """
        place = None if path is None else Path(path)
        connection = open_store(place, create=create, read_only=read_only, accept_lost=accept_lost)
        try:
            return cls(connection, place, clock, inline=inline, read_only=read_only, fault=fault)
        except sqlite3.Error as error:
            connection.close()
            raise explain(error, place, "opening it") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------ writing

    def write(self, work: Work[T]) -> T:
        """Do `work` in a transaction; when this returns, it is durable. What `work` raises undoes it alone.

        An IntegrityError is the work's own affair and is raised as it is; any other error of SQLite is a StoreError.
        Another's failure in the same group may have `work` done a second time, its first undone: it must bear that.
        """
        if self._writer is None:
            return self._write_inline(work)
        return self._writer.write(work)

    def spawn(self, work: Callable[[], None]) -> None:
        """Run `work` as a fiber on the writer thread (see `fibers`); it must not raise, nor block but by writing."""
        if self._writer is None:
            raise StoreError("fibers need the writer thread: this store has none")
        self._writer.spawn(work)

    def submit(self, work: Work[T]) -> Future[T]:
        """As `write`, for a caller that does not wait."""
        if self._writer is not None:
            return self._writer.submit(work)
        future: Future[T] = Future()
        try:
            future.set_result(self._write_inline(work))
        except Exception as error:  # noqa: BLE001  the future carries it; a played crash is no Exception and passes
            future.set_exception(error)
        return future

    def submit_on(self, loop: asyncio.AbstractEventLoop, work: Work[T]) -> "asyncio.Future[T]":
        """As `write`, for a coroutine of that loop; the loop is woken once for all that were committed together."""
        if self._writer is not None:
            return self._writer.submit_on(loop, work)
        future: asyncio.Future[T] = loop.create_future()
        try:
            future.set_result(self._write_inline(work))
        except Exception as error:  # noqa: BLE001  the future carries it; a played crash is no Exception and passes
            future.set_exception(error)
        return future

    def defer(self, name: str, work: Work[object]) -> None:
        """Do `work` in the next transaction, whichever that is; of several with the same name only the latest.

        For what need not be durable at once, such as a checkpoint: it costs no flush of its own. It writes no items.
        """
        with self._riders_lock:
            self._riders[name] = work

    def flush(self) -> None:
        """Have deferred work committed soon, if there is any."""
        if self._riders and not self._closed:
            with suppress(StoreError):  # it is closed just now
                self.submit(writes_no_items)

    def drop_deferred(self) -> None:
        """Forget deferred work, as the death of the process would. For playing crashes on a store in memory."""
        with self._riders_lock:
            self._riders.clear()

    def _write_inline(self, work: Work[T]) -> T:
        self._check_writable()
        with self._lock:
            if self._writing:
                raise StoreError("a write within a write: use the connection that is given")
            self._writing = True
            riders = self._take_riders()
            try:
                value, news = self._transact_inline(work, riders)
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise explain(error, self.path, "writing") from error
            finally:
                self._writing = False
            self._strike(AFTER_COMMIT)
        self._tell_listeners(news)
        return value

    def _transact_inline(self, work: Work[T], riders: Mapping[str, Work[object]]) -> tuple[T, bool]:
        try:
            self.guard.before_begin()
            self._connection.execute("BEGIN IMMEDIATE")
            self._items.begin()
            for rider in riders.values():
                rider(self._connection)
            self._items.begin_work()
            value = work(self._connection)
            self._items.end_work()
            self._strike(BEFORE_COMMIT)
            return value, self._commit()
        except BaseException:
            self._roll_back()
            self._put_back(riders)
            raise

    def _commit_group(self, requests: Sequence[AnyRequest]) -> None:
        live = [request for request in requests if request.begins()]
        riders = self._take_riders()
        try:
            with self._lock:
                outcomes, news = self._transact(live, riders)
        except BaseException as error:  # noqa: BLE001  the writer must live; every caller gets the error
            self.guard.commit_failed()
            self._put_back(riders)
            for request in live:
                request.settle(None, self._failed_commit(error))
            return
        for request, outcome in zip(live, outcomes, strict=True):
            request.settle(outcome.value, None if outcome.error is None else self._translated(outcome.error))
        self._tell_listeners(news)

    def _transact(
        self, requests: Sequence[AnyRequest], riders: Mapping[str, Work[object]]
    ) -> tuple[list[Outcome], bool]:
        self._end_snapshot()
        self.guard.before_begin()
        self._connection.execute("BEGIN IMMEDIATE")
        self._items.begin()
        try:
            return do_group(self._connection, requests, riders), self._commit()
        except BaseException:
            self._roll_back()
            raise

    def _commit(self) -> bool:
        """Commit; true when there are changes that the listeners have not been notified of."""
        head: int = self._connection.execute(_HEAD).fetchone()[0]
        self._connection.execute("COMMIT")
        self._items.committed()
        self.guard.after_commit(head if head > self._told else 0)
        if head <= self._told:
            return False
        self._told = head
        with self._news:
            self._head = max(self._head, head)
            self._news.notify_all()
        return True

    def _roll_back(self) -> None:
        self._items.forget()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _take_riders(self) -> dict[str, Work[object]]:
        with self._riders_lock:
            riders, self._riders = self._riders, {}
        return riders

    def _put_back(self, riders: Mapping[str, Work[object]]) -> None:
        with self._riders_lock:
            self._riders = {**riders, **self._riders}

    def _strike(self, point: str) -> None:
        if self.fault is not None:
            self.fault(point)

    def _check_writable(self) -> None:
        if self._closed:
            raise StoreError("the store is closed: nothing can be written any more")
        if self.read_only:
            raise StoreError(f"store {self.path}: it was opened for reading only")

    def _translated(self, error: BaseException) -> BaseException:
        if not isinstance(error, sqlite3.Error) or isinstance(error, sqlite3.IntegrityError):
            return error
        translated = explain(error, self.path, "writing")
        translated.__cause__ = error
        return translated

    def _failed_commit(self, error: BaseException) -> StoreError:
        # One instance per caller: a shared one would collect the tracebacks of all their threads.
        if isinstance(error, sqlite3.Error):
            failure = explain(error, self.path, "committing")
        elif isinstance(error, StoreReplacedError):
            failure = StoreReplacedError(str(error))
        else:
            failure = StoreError(f"store {self.path or 'in memory'}: committing failed: {error!r}")
        failure.__cause__ = error
        return failure

    # ------------------------------------------------------------------------------------------------ reading

    def read(self, sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """The rows of one SELECT. Sees every write that was acknowledged before it started.

        Of another process's writes, a fiber is only sure of those that were noticed: within 20 ms.
        """
        try:
            if self.path is None:
                with self._lock:
                    return self._connection.execute(sql, params).fetchall()
            fiber = getcurrent()
            if isinstance(fiber, Fiber) and fiber.home is self._writer:
                return self._read_snapshot(sql, params)
            return self._read_file(self.path, sql, params)
        except sqlite3.Error as error:
            raise explain(error, self.path, "reading") from error

    @contextmanager
    def snapshot(self) -> Iterator[Callable[[str, Sequence[Any]], list[Row]]]:
        """Several reads of one state. Sees every write that was acknowledged before it started."""
        try:
            with self._in_memory() if self.path is None else self._reader(self.path) as connection:
                yield lambda sql, params: connection.execute(sql, params).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self.path, "reading") from error

    def _read_file(self, path: Path, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> list[Row]:
        reader = self._borrow(path)
        try:
            return reader.execute(sql, params).fetchall()
        finally:
            self._give_back(reader)

    @contextmanager
    def _in_memory(self) -> Iterator[sqlite3.Connection]:
        """The one connection to a store in memory, while nobody else uses it."""
        with self._lock:
            yield self._connection

    @contextmanager
    def _reader(self, path: Path) -> Iterator[sqlite3.Connection]:
        """A connection that reads one state."""
        reader = self._borrow(path)
        try:
            reader.execute("BEGIN")
            try:
                yield reader
            finally:
                reader.execute("ROLLBACK")
        finally:
            self._give_back(reader)

    def _borrow(self, path: Path) -> sqlite3.Connection:
        # Readers do not wait for each other nor for the writer. There are as many as ever read at one time.
        try:
            return self._readers.pop()
        except IndexError:
            if self._closed:
                raise StoreError("the store is closed: nothing can be read any more") from None
            self.guard.check_file()  # another file in its place would be read as if it were ours
            return connect(path, mode="ro")

    def _give_back(self, reader: sqlite3.Connection) -> None:
        self._readers.append(reader)
        if self._closed:
            self._close_readers()

    def _read_snapshot(self, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> list[Row]:
        """As a fiber: on the write connection, whose pages are at hand, and which no commit uses meanwhile.

        One transaction for the reads of all fibers between two commits: half of the cost of a read is taking its lock.
        """
        self._begin_snapshot()
        return self._connection.execute(sql, params).fetchall()

    def _begin_snapshot(self) -> None:
        """On the writer thread: unless there is one, and nothing is known that it lacks."""
        if self._connection.in_transaction:
            if not self._foreign_news:
                return
            self._end_snapshot()
        self._foreign_news = False
        self._connection.execute("BEGIN")
        self._items.snapshot(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def known_items(self) -> ItemCache | None:
        """The items that need not be asked for, of the state that a read would see now; None when nothing is known.

        Fibers read one snapshot. Inline and in memory there is one state, and nobody else who could write. Anywhere
        else, everybody reads for himself.
        """
        if self.path is None:
            return self._items if self.inline else None
        fiber = getcurrent()
        if not isinstance(fiber, Fiber) or fiber.home is not self._writer:
            return None
        try:
            self._begin_snapshot()
        except sqlite3.Error as error:
            raise explain(error, self.path, "reading") from error
        return self._items

    def _end_snapshot(self) -> None:
        """On the writer thread, outside of a commit. Rolled back: whatever happened, this must not write anything."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # It is over all the same, as SQLite has it.
            _log.error("the end of a snapshot failed", error=str(error))

    # ------------------------------------------------------------------------------------------------ news

    def on_commit(self, listener: Listener) -> None:
        """Call `listener` after every commit of this process that added changes: cheap, and on the writer thread."""
        self._listeners.append(listener)

    def forget(self, listener: Listener) -> None:
        """Call it no more."""
        self._listeners.remove(listener)

    def head(self) -> int:
        """The number of the latest change."""
        with self._news:
            self._poll_other_processes()
            return self._head

    @property
    def known_head(self) -> int:
        """The number of the latest change, without a look at what other processes did since."""
        return self._head

    def wait_for_change(self, after: int, seconds: float) -> int:
        """Wait until there is a change beyond `after`, or the time is over; the number of the latest change.

        A commit of this process wakes at once, one of another process within 20 ms.
        """
        end = time.monotonic() + seconds
        with self._news:
            self._poll_other_processes()
            while self._head <= after and (left := end - time.monotonic()) > 0:
                self._news.wait(min(left, _POLL_SECONDS))
                self._poll_other_processes()
            return self._head

    def _poll_other_processes(self) -> None:
        """Notice what other processes committed. Called with `_news` held, which guards the watching connection."""
        if self._watch is None or self._closed:
            return
        try:
            if (version := self._data_version()) == self._watched:
                return
            head: int = self._watch.execute(_HEAD).fetchone()[0]
            self._watched = version
        except sqlite3.Error as error:
            raise explain(error, self.path, "looking for changes") from error
        if head > self._head:
            self._foreign_news = True
            self._head = head
            self._news.notify_all()

    def _data_version(self) -> int:
        if self._watch is None:
            return 0
        version: int = self._watch.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _tell_listeners(self, news: bool) -> None:
        for listener in list(self._listeners) if news else ():
            try:
                listener()
            except Exception:  # noqa: BLE001  the commit stands whatever its listeners do
                _log.exception("a commit listener failed")

    # ------------------------------------------------------------------------------------------------ closing

    def close(self) -> None:
        """Commit what is queued and deferred, move the log into the file, close it. Closing twice is no error."""
        if self._closed:
            return
        # Those that were stopped have ended; where the start failed half-way, some run.
        self.loops.end()
        self.flush()
        if self._writer is not None:
            self._writer.close()
        with self._lock, self._news:
            self._closed = True
            self._close_readers()
            if self._watch is not None:
                self._watch.close()
            self._move_log()
            self._connection.close()
            self.guard.close()

    def _move_log(self) -> None:
        if self.path is None or self.read_only:
            return
        self._connection.execute("PRAGMA busy_timeout = 0")
        # A process that reads just now keeps the log where it is. Nothing is lost by that, so nobody waits for it.
        with suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _close_readers(self) -> None:
        while self._readers:
            try:
                self._readers.pop().close()
            except IndexError:
                return

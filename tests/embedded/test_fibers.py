"""Fibers on the writer thread: parked while they wait, never in each other's way."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from greenlet import getcurrent

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.fibers import TargetThreads, pause, wait_for
from interlock.model.errors import InterlockError, StoreError

PATIENCE = 20.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "x.db", clock=SystemClock()) as found:
        found.write(lambda connection: connection.execute("CREATE TABLE seen (name TEXT)").rowcount)
        yield found


def _note(database: Database, name: str) -> None:
    database.write(lambda connection: connection.execute("INSERT INTO seen VALUES (?)", (name,)).rowcount)


def _seen(database: Database) -> list[str]:
    return [name for (name,) in database.read("SELECT name FROM seen ORDER BY rowid")]


def test_a_fiber_reads_its_own_write_after_it_was_parked(database: Database) -> None:
    found: list[list[str]] = []
    done = threading.Event()

    def work() -> None:
        _note(database, "mine")
        found.append(_seen(database))
        done.set()

    database.spawn(work)
    assert done.wait(PATIENCE)
    assert found == [["mine"]]


def test_a_target_that_hangs_holds_up_neither_fibers_nor_threads(database: Database) -> None:
    threads, hang, done = TargetThreads(), threading.Event(), threading.Event()

    def slow() -> None:
        threads.call(lambda: hang.wait(PATIENCE))
        _note(database, "slow")
        done.set()

    def quick() -> None:
        _note(database, "quick")

    database.spawn(slow)
    database.spawn(quick)
    _note(database, "thread")
    assert "thread" in _seen(database)
    hang.set()
    assert done.wait(PATIENCE)
    assert sorted(_seen(database)) == ["quick", "slow", "thread"]
    assert _seen(database)[-1] == "slow"


def test_what_a_work_raises_reaches_its_fiber_and_nobody_else(database: Database) -> None:
    caught: list[str] = []
    done = threading.Event()

    def fails(_: object) -> None:
        raise LookupError("only mine")

    def work() -> None:
        try:
            database.write(fails)
        except LookupError as error:
            caught.append(str(error))
        _note(database, "went on")
        done.set()

    database.spawn(work)
    for number in range(5):
        database.spawn(partial(_note, database, f"other {number}"))
    assert done.wait(PATIENCE)
    assert caught == ["only mine"]
    assert "went on" in _seen(database)


def test_an_error_of_a_target_is_raised_in_its_fiber(database: Database) -> None:
    threads, caught, done = TargetThreads(), [], threading.Event()

    def refuse() -> None:
        raise ConnectionError("refused")

    def work() -> None:
        try:
            threads.call(refuse)
        except ConnectionError as error:
            caught.append(str(error))
        done.set()

    database.spawn(work)
    assert done.wait(PATIENCE)
    assert caught == ["refused"]


def test_more_calls_than_threads_wait_for_their_turn(database: Database) -> None:
    threads, left, done = TargetThreads(most=2), threading.Semaphore(0), threading.Event()
    most, lock, running = [0], threading.Lock(), [0]

    def target() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1

    def work() -> None:
        threads.call(target)
        left.release()

    for _ in range(20):
        database.spawn(work)
    for _ in range(20):
        assert left.acquire(timeout=PATIENCE)
    done.set()
    assert 1 <= most[0] <= 2


def test_many_fibers_commit_in_few_groups(database: Database) -> None:
    groups: list[int] = []
    database.on_commit(lambda: groups.append(1))
    left = threading.Semaphore(0)
    hold = threading.Event()
    threads = TargetThreads()

    def work(number: int) -> None:
        threads.call(lambda: hold.wait(PATIENCE))
        sql = "INSERT INTO changes (tbl, pk, sk, at, item) VALUES ('events', 'p', ?, 0, '{}')"
        database.write(lambda connection: connection.execute(sql, (str(number),)).rowcount)
        left.release()

    for number in range(40):
        database.spawn(partial(work, number))
    hold.set()
    for _ in range(40):
        assert left.acquire(timeout=PATIENCE)
    assert len(groups) < 40


def test_without_a_writer_thread_there_are_no_fibers() -> None:
    with Database.open(None, clock=SystemClock(), inline=True) as database, pytest.raises(StoreError):
        database.spawn(lambda: None)


def test_a_closed_store_lets_a_parked_fiber_go(tmp_path: Path) -> None:
    threads, hang, begun = TargetThreads(), threading.Event(), threading.Event()
    database = Database.open(tmp_path / "x.db", clock=SystemClock())

    def work() -> None:
        begun.set()
        threads.call(lambda: hang.wait(PATIENCE))

    database.spawn(work)
    assert begun.wait(PATIENCE)
    database.close()  # returns, though the target still hangs
    hang.set()


def test_fibers_are_used_again_and_outlive_work_that_fails(database: Database) -> None:
    left, who = threading.Semaphore(0), set[int]()

    def work(number: int) -> None:
        who.add(id(getcurrent()))
        left.release()
        if number % 2:
            raise RuntimeError("a fault of the work")

    for number in range(20):
        database.spawn(partial(work, number))
        assert left.acquire(timeout=PATIENCE)
    _note(database, "still there")
    assert _seen(database) == ["still there"]
    assert len(who) < 20


def test_a_fiber_sees_what_another_process_wrote_before_it_began(database: Database) -> None:
    found, done = list[list[str]](), threading.Semaphore(0)

    def look() -> None:
        found.append(_seen(database))
        done.release()

    def keep_the_snapshot() -> None:
        look()
        threads.call(lambda: None)
        look()

    threads = TargetThreads()
    database.spawn(look)
    assert done.acquire(timeout=PATIENCE)
    other = sqlite3.connect(str(database.path))
    other.execute("INSERT INTO seen VALUES ('abroad')")
    other.commit()
    other.close()
    database.spawn(keep_the_snapshot)
    for _ in range(2):
        assert done.acquire(timeout=PATIENCE)
    assert found == [[], ["abroad"], ["abroad"]]


def test_an_idle_store_holds_no_snapshot(database: Database) -> None:
    done = threading.Event()

    def look() -> None:
        _seen(database)
        done.set()

    database.spawn(look)
    assert done.wait(PATIENCE)
    _note(database, "something to move into the file")
    other = sqlite3.connect(str(database.path))
    try:
        busy, *_ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        other.close()
    assert busy == 0


class SettledMeanwhile(Future[None]):
    """One that is settled between the look whether it is and the request to be told."""

    def add_done_callback(self, fn: Callable[[Future[None]], Any]) -> None:
        self.set_result(None)
        super().add_done_callback(fn)


def test_a_fiber_that_is_woken_when_it_rests_is_still_there_for_the_next_work(database: Database) -> None:
    done = threading.Semaphore(0)

    def need_not_wait() -> None:
        wait_for(SettledMeanwhile())
        done.release()

    for _ in range(5):
        database.spawn(need_not_wait)
        assert done.acquire(timeout=PATIENCE)
        _note(database, "behind the wake-up")


def test_calls_that_come_at_once_do_not_wait_for_each_other(database: Database) -> None:
    count = 8
    threads, together, done = TargetThreads(), threading.Barrier(count), threading.Semaphore(0)

    def work(target: Callable[[], object]) -> None:
        threads.call(target)
        done.release()

    def all_at_once() -> None:
        for _ in range(count):
            database.spawn(partial(work, lambda: together.wait(PATIENCE)))

    # Threads that are there and have nothing to do must not be counted on by more than one call each.
    for _ in range(3):
        database.spawn(partial(work, lambda: None))
        assert done.acquire(timeout=PATIENCE)
    database.spawn(all_at_once)
    for _ in range(count):
        assert done.acquire(timeout=PATIENCE)
    assert not together.broken


class Exit(BaseException):
    """What is no Exception, such as SystemExit."""


def _leave() -> None:
    raise Exit


def test_the_writer_outlives_what_is_no_exception(database: Database) -> None:
    database.spawn(_leave)
    assert database.submit(lambda _: "still there").result(PATIENCE) == "still there"


def test_a_target_that_wants_its_thread_to_end_has_failed(database: Database) -> None:
    threads, caught, done = TargetThreads(most=1), list[str](), threading.Semaphore(0)

    def work() -> None:
        try:
            threads.call(_leave)
        except InterlockError as error:
            caught.append(str(error))
        done.release()

    for _ in range(2):
        database.spawn(work)
        assert done.acquire(timeout=PATIENCE)
    assert caught == ["the call ended with Exit()"] * 2


def test_the_writer_outlives_a_snapshot_that_can_not_be_ended(database: Database) -> None:
    looked = threading.Event()

    def refuse(action: int, operation: str | None, *_: object) -> int:
        ending = action == sqlite3.SQLITE_TRANSACTION and operation == "ROLLBACK"
        return sqlite3.SQLITE_DENY if ending else sqlite3.SQLITE_OK

    def look() -> None:
        database._connection.set_authorizer(refuse)
        _seen(database)
        looked.set()

    database.spawn(look)
    assert looked.wait(PATIENCE)
    with pytest.raises(StoreError):
        database.submit(lambda _: None).result(PATIENCE)
    database.spawn(lambda: database._connection.set_authorizer(None))
    assert database.submit(lambda _: "still there").result(PATIENCE) == "still there"


@pytest.mark.parametrize("inline", [True, False])
def test_a_fiber_uses_another_store_as_any_thread_does(tmp_path: Path, database: Database, inline: bool) -> None:
    held, found, go_on, done = threading.Event(), list[list[str]](), threading.Event(), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO seen VALUES ('not committed yet')")
        held.set()
        assert go_on.wait(PATIENCE)

    def look(other: Database) -> None:
        try:
            found.append(_seen(other))
        finally:
            go_on.set()
            done.set()

    with Database.open(tmp_path / "other.db", clock=SystemClock(), inline=inline) as other:
        other.write(lambda connection: connection.execute("CREATE TABLE seen (name TEXT)").rowcount)
        writing = threading.Thread(target=other.write, args=(hold,))
        writing.start()
        assert held.wait(PATIENCE)
        database.spawn(partial(look, other))
        assert done.wait(PATIENCE)
        writing.join(PATIENCE)
        assert found == [[]]
        _note(other, "afterwards")
        assert _seen(other) == ["not committed yet", "afterwards"]


def test_a_fiber_writes_to_another_store_and_reads_it_back(tmp_path: Path, database: Database) -> None:
    found, done = list[list[str]](), threading.Event()

    def work(other: Database) -> None:
        _note(database, "here")
        for name in ("one", "two"):
            _note(other, name)
        found.extend((_seen(database), _seen(other)))
        done.set()

    with Database.open(tmp_path / "other.db", clock=SystemClock()) as other:
        other.write(lambda connection: connection.execute("CREATE TABLE seen (name TEXT)").rowcount)
        database.spawn(partial(work, other))
        assert done.wait(PATIENCE)
    assert found == [["here"], ["one", "two"]]


def test_a_fiber_with_much_to_do_lets_others_write_meanwhile(database: Database) -> None:
    begun, done = threading.Event(), threading.Event()
    written = threading.Event()
    rounds: list[bool] = []

    def work() -> None:
        begun.set()
        while not rounds or (not rounds[-1] and len(rounds) < 100_000):
            pause()
            rounds.append(written.is_set())
        done.set()

    database.spawn(work)
    assert begun.wait(PATIENCE)
    _note(database, "another's")
    written.set()
    assert done.wait(PATIENCE)
    assert rounds[-1], "the write came before the end of the work"
    pause()  # on any other thread it does nothing

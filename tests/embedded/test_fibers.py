"""Fibers on the writer thread: parked while they wait, never in each other's way."""

import sqlite3
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from greenlet import getcurrent

from interlock.embedded.clock import SystemClock
from interlock.embedded.database import Database
from interlock.embedded.fibers import Outside
from interlock.model.errors import StoreError

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
    outside, hang, done = Outside(), threading.Event(), threading.Event()

    def slow() -> None:
        outside.call(lambda: hang.wait(PATIENCE))
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
    outside, caught, done = Outside(), [], threading.Event()

    def refuse() -> None:
        raise ConnectionError("refused")

    def work() -> None:
        try:
            outside.call(refuse)
        except ConnectionError as error:
            caught.append(str(error))
        done.set()

    database.spawn(work)
    assert done.wait(PATIENCE)
    assert caught == ["refused"]


def test_more_calls_than_threads_wait_for_their_turn(database: Database) -> None:
    outside, left, done = Outside(most=2), threading.Semaphore(0), threading.Event()
    most, lock, running = [0], threading.Lock(), [0]

    def target() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1

    def work() -> None:
        outside.call(target)
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
    outside = Outside()

    def work(number: int) -> None:
        outside.call(lambda: hold.wait(PATIENCE))
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
    outside, hang, begun = Outside(), threading.Event(), threading.Event()
    database = Database.open(tmp_path / "x.db", clock=SystemClock())

    def work() -> None:
        begun.set()
        outside.call(lambda: hang.wait(PATIENCE))

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
        outside.call(lambda: None)
        look()

    outside = Outside()
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

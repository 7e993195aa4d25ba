"""Database: group commit, faults, crashes, other processes, and the news of changes."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock.embedded.sqlite.database import AFTER_COMMIT, BEFORE_COMMIT, Database
from interlock.model.errors import StoreError
from tests.conformance.manual_clock import ManualClock

WAIT = 20.0
CLOCK = ManualClock()


class Crash(BaseException):
    """The process dies here."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "s.db", clock=CLOCK) as database:
        yield database


def add(connection: sqlite3.Connection, name: str) -> str:
    connection.execute("INSERT INTO consumers (name, checkpoint) VALUES (?, 0)", (name,))
    return name


def add_change(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO changes (tbl, pk, sk, at) VALUES ('control', 'p', 's', 0)")


def add_both(connection: sqlite3.Connection) -> None:
    add(connection, "a")
    add_change(connection)


def names(database: Database) -> list[str]:
    return [row[0] for row in database.read("SELECT name FROM consumers ORDER BY name")]


# ---------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("memory", [False, True])
def test_a_write_is_seen_by_the_next_read_and_returns_its_value(tmp_path: Path, inline: bool, memory: bool) -> None:
    with Database.open(None if memory else tmp_path / "s.db", clock=CLOCK, inline=inline) as database:
        assert database.write(lambda c: add(c, "a")) == "a"
        assert database.submit(lambda c: add(c, "b")).result(WAIT) == "b"
        assert names(database) == ["a", "b"]


@pytest.mark.parametrize("inline", [False, True])
def test_what_a_work_raises_is_raised_to_its_caller_and_undoes_it(tmp_path: Path, inline: bool) -> None:
    def bad(connection: sqlite3.Connection) -> None:
        add(connection, "gone")
        raise KeyError("mine")

    with Database.open(tmp_path / "s.db", clock=CLOCK, inline=inline) as database:
        with pytest.raises(KeyError, match="mine"):
            database.write(bad)
        with pytest.raises(KeyError, match="mine"):
            database.submit(bad).result(WAIT)
        database.write(lambda c: add(c, "a"))
        with pytest.raises(sqlite3.IntegrityError):
            database.write(lambda c: add(c, "a"))
        with pytest.raises(StoreError, match="no such table"):
            database.write(lambda c: c.execute("SELECT * FROM nowhere").fetchall())
        assert names(database) == ["a"]


def queue_up(database: Database, works: list[Any]) -> list[Any]:
    """Have these works committed as one group: they queue while another work is under way."""
    started, release = threading.Event(), threading.Event()

    def blocker(_: sqlite3.Connection) -> None:
        started.set()
        assert release.wait(WAIT)

    first = database.submit(blocker)
    assert started.wait(WAIT)
    futures = [database.submit(work) for work in works]
    release.set()
    first.result(WAIT)
    return futures


def test_one_bad_work_does_not_fail_its_group(database: Database) -> None:
    def bad(connection: sqlite3.Connection) -> None:
        add(connection, "bad")
        raise ValueError("bad")

    def exits(connection: sqlite3.Connection) -> None:
        add(connection, "exits")
        raise SystemExit(3)

    commits: list[str] = []
    database._connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    works = [lambda c: add(c, "a"), bad, lambda c: add(c, "b"), exits, lambda c: add(c, "c")]
    futures = queue_up(database, works)
    assert [type(future.exception(WAIT)) for future in futures] == [
        type(None),
        ValueError,
        type(None),
        SystemExit,
        type(None),
    ]
    assert names(database) == ["a", "b", "c"]
    assert len(commits) == 2, "the blocker's, and one for all of the group"


def test_when_the_commit_fails_every_caller_is_told(database: Database) -> None:
    def break_out(connection: sqlite3.Connection) -> None:
        connection.execute("ROLLBACK")

    futures = queue_up(database, [lambda c: add(c, "a"), break_out, lambda c: add(c, "b")])
    errors = [future.exception(WAIT) for future in futures]
    assert all(isinstance(error, StoreError) and "committing" in str(error) for error in errors)
    assert len(set(map(id, errors))) == 3
    assert names(database) == []
    assert database.write(lambda c: add(c, "after")) == "after"


def test_a_cancelled_future_is_not_written(database: Database) -> None:
    started, release = threading.Event(), threading.Event()

    def blocker(_: sqlite3.Connection) -> None:
        started.set()
        assert release.wait(WAIT)

    first = database.submit(blocker)
    assert started.wait(WAIT)
    second = database.submit(lambda c: add(c, "cancelled"))
    assert second.cancel()
    release.set()
    first.result(WAIT)
    database.write(lambda c: add(c, "a"))
    assert names(database) == ["a"]


def test_many_threads_write_and_read(database: Database) -> None:
    def one(n: int) -> bool:
        database.write(lambda c: add(c, f"{n:03}"))
        return bool(database.read("SELECT 1 FROM consumers WHERE name = ?", (f"{n:03}",)))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(200)))
    assert names(database) == [f"{n:03}" for n in range(200)]


@pytest.mark.parametrize("inline", [False, True])
def test_a_write_within_a_write_is_refused(tmp_path: Path, inline: bool) -> None:
    with Database.open(tmp_path / "s.db", clock=CLOCK, inline=inline) as database:
        with pytest.raises(StoreError, match="within a write"):
            database.write(lambda _: database.write(lambda c: add(c, "inner")))
        assert database.write(lambda c: add(c, "a")) == "a"


@pytest.mark.parametrize("inline", [False, True])
def test_deferred_work_rides_on_the_next_write(tmp_path: Path, inline: bool) -> None:
    with Database.open(tmp_path / "s.db", clock=CLOCK, inline=inline) as database:
        database.defer("x", lambda c: add(c, "replaced"))
        database.defer("x", lambda c: add(c, "x"))
        database.defer("y", lambda c: add(c, "y"))
        assert names(database) == []
        database.write(lambda _: None)
        assert names(database) == ["x", "y"]
        database.defer("z", lambda c: add(c, "dropped"))
        database.drop_deferred()
        database.write(lambda _: None)
        database.defer("z", lambda c: add(c, "z"))
    with Database.open(tmp_path / "s.db", clock=CLOCK) as again:
        assert names(again) == ["x", "y", "z"], "closing commits what is deferred"


def test_deferred_work_that_fails_harms_nobody(database: Database) -> None:
    database.defer("bad", lambda c: c.execute("INSERT INTO nowhere VALUES (1)"))
    assert database.write(lambda c: add(c, "a")) == "a"
    assert names(database) == ["a"]


def test_deferred_work_survives_a_failed_transaction(tmp_path: Path) -> None:
    with Database.open(tmp_path / "s.db", clock=CLOCK, inline=True) as database:
        database.defer("x", lambda c: add(c, "x"))
        with pytest.raises(sqlite3.IntegrityError):
            database.write(lambda c: [add(c, "a"), add(c, "a")])
        database.flush()
        assert names(database) == ["x"]


# ---------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(("point", "survives"), [(BEFORE_COMMIT, False), (AFTER_COMMIT, True)])
@pytest.mark.parametrize("memory", [False, True])
def test_a_played_crash_is_rolled_back_or_durable(tmp_path: Path, point: str, survives: bool, memory: bool) -> None:
    crash, points = Crash(), list[str]()

    def fault(at: str) -> None:
        points.append(at)
        if at == point:
            raise crash

    path = None if memory else tmp_path / "s.db"
    database = Database.open(path, clock=CLOCK, inline=True, fault=fault)
    with pytest.raises(Crash) as caught:
        database.write(add_both)
    assert caught.value is crash
    assert points == [BEFORE_COMMIT, AFTER_COMMIT][: points.index(point) + 1]
    database.fault = None
    assert names(database) == (["a"] if survives else [])
    assert database.head() == int(survives)
    database.write(lambda c: add(c, "b"))
    database.close()


def test_a_crash_passes_through_submit(tmp_path: Path) -> None:
    def fault(_: str) -> None:
        raise Crash

    database = Database.open(tmp_path / "s.db", clock=CLOCK, inline=True, fault=fault)
    with pytest.raises(Crash):
        database.submit(lambda c: add(c, "a"))
    database.fault = None
    database.close()


WRITER = """
import sys
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
database = Database.open(sys.argv[1], clock=SystemClock())
for n in range(1_000_000):
    database.write(lambda c: c.execute("INSERT INTO consumers VALUES (?, ?)", (f"{sys.argv[2]}{n}", n)).rowcount)
    print(n, flush=True)
"""


def start_writer(path: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True)


def test_kill_9_loses_no_acknowledged_write(tmp_path: Path) -> None:
    for round_, count in enumerate((1, 57, 200)):
        process = start_writer(tmp_path / "s.db", f"r{round_}-")
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(count)]
        os.kill(process.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in process.communicate(timeout=WAIT)[0].splitlines()]
        with Database.open(tmp_path / "s.db", clock=CLOCK, create=False) as database:
            stored = {row[0] for row in database.read("SELECT name FROM consumers")}
            assert database.read("PRAGMA integrity_check") == [("ok",)]
        missing = {f"r{round_}-{n}" for n in acknowledged} - stored
        assert not missing


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    processes = [start_writer(tmp_path / "s.db", name) for name in "ab"]
    try:
        for process in processes:
            assert process.stdout is not None
            for n in range(100):
                assert process.stdout.readline() == f"{n}\n"
        with Database.open(tmp_path / "s.db", clock=CLOCK) as database:
            assert database.write(lambda c: add(c, "mine")) == "mine"
            stored = set(names(database))
        assert {f"{name}{n}" for name in "ab" for n in range(100)} <= stored
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_store_locked_by_another_is_a_clear_error(database: Database, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    database._connection.execute("PRAGMA busy_timeout = 1")
    with pytest.raises(StoreError, match="another process held it locked"):
        database.write(lambda c: add(c, "a"))
    other.close()
    assert database.write(lambda c: add(c, "b")) == "b"


# ---------------------------------------------------------------------------------------------------- news


@pytest.mark.parametrize("inline", [False, True])
def test_listeners_hear_of_commits_with_changes_only(tmp_path: Path, inline: bool) -> None:
    heard: list[int] = []
    reported = threading.Event()

    def listener() -> None:
        heard.append(1)
        reported.set()
        raise RuntimeError("a listener's fault is not the commit's")

    with Database.open(tmp_path / "s.db", clock=CLOCK, inline=inline) as database:
        database.on_commit(listener)
        database.write(lambda c: add(c, "a"))
        database.write(add_change)
        assert reported.wait(WAIT)
        database.write(lambda c: add(c, "b"))
    assert heard == [1]


def test_listeners_hear_of_a_commit_that_somebody_noticed_before_them(database: Database) -> None:
    heard, done = threading.Semaphore(0), threading.Event()
    database.on_commit(heard.release)

    def look_all_the_time() -> None:
        while not done.is_set():
            database.head()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(look_all_the_time)
        try:
            for _ in range(200):
                database.write(add_change)
                assert heard.acquire(timeout=WAIT)
        finally:
            done.set()


def test_waiting_for_a_change_ends_with_it_or_with_the_time(database: Database) -> None:
    assert database.wait_for_change(0, 0.01) == 0
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(database.wait_for_change, 0, WAIT)
        database.write(add_change)
        assert waiting.result(WAIT) == 1
    assert database.wait_for_change(0, WAIT) == 1


def test_a_commit_of_another_connection_is_noticed(database: Database, tmp_path: Path) -> None:
    with Database.open(tmp_path / "s.db", clock=CLOCK) as other, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.wait_for_change, 0, WAIT)
        database.write(add_change)
        assert waiting.result(WAIT) == 1
        database.write(add_change)
        assert other.head() == 2


def test_when_the_writer_thread_dies_nobody_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[BaseException] = []
    begun, go = threading.Event(), threading.Event()

    def commit_group(self: Database, requests: object) -> None:
        begun.set()
        go.wait(WAIT)
        raise MemoryError("out of memory")

    monkeypatch.setattr(Database, "_commit_group", commit_group)
    with Database.open(tmp_path / "s.db", clock=CLOCK) as database:
        database.on_death = died.append
        waiting = [database.submit(lambda _: None)]
        assert begun.wait(WAIT)
        waiting += [database.submit(lambda _: None) for _ in range(3)]
        go.set()
        for future in waiting:
            with pytest.raises(StoreError, match="the writer thread died of MemoryError"):
                future.result(WAIT)
        with pytest.raises(StoreError, match="the writer thread died of MemoryError"):
            database.write(lambda _: None)
    assert [repr(error) for error in died] == ["MemoryError('out of memory')"]

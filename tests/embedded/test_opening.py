"""Opening a store: what is created, what is refused and how clearly, migrations."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.embedded.sqlite.connection import _STEPS, migrate, open_store, split_statements
from interlock.embedded.sqlite.database import Database
from interlock.model.errors import StoreError
from tests.conformance.manual_clock import ManualClock

WAIT = 20.0
CLOCK = ManualClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "s.db", clock=CLOCK) as database:
        yield database


def add(connection: sqlite3.Connection, name: str) -> str:
    connection.execute("INSERT INTO consumers (name, checkpoint) VALUES (?, 0)", (name,))
    return name


def names(database: Database) -> list[str]:
    return [row[0] for row in database.read("SELECT name FROM consumers ORDER BY name")]


def test_a_store_is_durable_and_in_wal_mode(database: Database) -> None:
    assert database.read("PRAGMA journal_mode") == [("wal",)]
    assert database.read("PRAGMA synchronous") == [(2,)]
    assert database._connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_closing_twice_is_no_error_and_leaves_one_file(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "s.db", clock=CLOCK)
    database.write(lambda c: add(c, "a"))
    assert names(database) == ["a"]
    database.close()
    database.close()
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


def test_closing_commits_what_is_queued(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "s.db", clock=CLOCK)
    futures = [database.submit(lambda c, n=n: add(c, f"{n:03}")) for n in range(700)]  # type: ignore[misc]
    database.close()
    assert all(future.done() for future in futures)
    with Database.open(tmp_path / "s.db", clock=CLOCK, create=False) as again:
        assert len(names(again)) == 700


def test_a_name_with_odd_characters(tmp_path: Path) -> None:
    path = tmp_path / "a ?mode=memory&%20#ü.db"
    with Database.open(path, clock=CLOCK) as database:
        database.write(lambda c: add(c, "a"))
        assert names(database) == ["a"]
    assert path.exists()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("empty_file", [False, True])
def test_reading_never_creates_a_store(tmp_path: Path, read_only: bool, empty_file: bool) -> None:
    path = tmp_path / "s.db"
    if empty_file:
        path.touch()
    with pytest.raises(StoreError, match="no store at"):
        Database.open(path, clock=CLOCK, create=False, read_only=read_only)
    assert [(entry.name, entry.stat().st_size) for entry in tmp_path.iterdir()] == ([("s.db", 0)] if empty_file else [])


def test_a_read_only_store_follows_its_writer(database: Database, tmp_path: Path) -> None:
    with Database.open(tmp_path / "s.db", clock=CLOCK, read_only=True) as reader:
        database.write(lambda c: add(c, "a"))
        database.write(lambda c: c.execute("INSERT INTO changes (tbl, pk, sk, at) VALUES ('t', 'p', 's', 0)").rowcount)
        assert names(reader) == ["a"]
        assert reader.wait_for_change(0, WAIT) == 1
        with pytest.raises(StoreError, match="reading only"):
            reader.write(lambda c: add(c, "b"))


def test_a_read_can_not_write(database: Database) -> None:
    with pytest.raises(StoreError, match="readonly"):
        database.read("DELETE FROM consumers")


def test_clear_errors_for_what_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is not a database, whatever its name says\n" * 100)
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    cases = {
        tmp_path: "is a directory",
        tmp_path / "none" / "s.db": "does not exist: create it",
        tmp_path / "text.db": "not a SQLite database",
        tmp_path / "text.db" / "s.db": "does not exist",
        tmp_path / "foreign.db": "another program",
    }
    for path, message in cases.items():
        with pytest.raises(StoreError, match=message) as caught:
            Database.open(path, clock=CLOCK)
        assert str(path) in str(caught.value)


def test_a_damaged_store_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Database.open(path, clock=CLOCK) as database:
        for n in range(200):
            database.submit(lambda c, n=n: add(c, f"{n:0200}"))  # type: ignore[misc]
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 2048] = b"\xa5" * 2048
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"), Database.open(path, clock=CLOCK) as database:
        database.read("SELECT * FROM consumers")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_may_not_be_written_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Database.open(path, clock=CLOCK).close()
    path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        for target in (path, tmp_path / "new.db"):
            with pytest.raises(StoreError, match="check"):
                Database.open(target, clock=CLOCK)
    finally:
        tmp_path.chmod(0o700)


# ---------------------------------------------------------------------------------------------------- migrations

ONE = ["CREATE TABLE one (a TEXT) STRICT", "INSERT INTO one VALUES ('kept')"]
TWO = ["ALTER TABLE one ADD COLUMN b INTEGER NOT NULL DEFAULT 7"]


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
    yield connection
    connection.close()


def test_migrations_go_from_any_version_to_the_last(connection: sqlite3.Connection) -> None:
    migrate(connection, None, [ONE])
    assert version(connection) == 1
    for _ in range(2):
        migrate(connection, None, [ONE, TWO])
        assert version(connection) == 2
        assert connection.execute("SELECT a, b FROM one").fetchall() == [("kept", 7)]


def test_a_migration_that_fails_leaves_the_store_as_it_was(connection: sqlite3.Connection) -> None:
    migrate(connection, None, [ONE])
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, None, [ONE, [*TWO, "INSERT INTO nowhere VALUES (1)"]])
    assert version(connection) == 1
    assert connection.execute("SELECT * FROM one").fetchall() == [("kept",)]
    migrate(connection, None, [ONE, TWO])


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Database.open(path, clock=CLOCK).close()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"newer Interlock .*99.*upgrade"):
            open_store(path, create=True, read_only=read_only)


def test_an_older_store_is_not_migrated_by_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.db"
    Database.open(path, clock=CLOCK).close()
    monkeypatch.setattr("interlock.embedded.sqlite.connection.STORE_VERSION", len(_STEPS) + 1)
    with pytest.raises(StoreError, match=rf"version {len(_STEPS)}.* bring it up to date"):
        Database.open(path, clock=CLOCK, read_only=True)


def test_many_processes_may_create_the_same_store_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from interlock.embedded.clock import SystemClock;"
        "from interlock.embedded.sqlite.database import Database;"
        "sys.stdin.readline(); Database.open(sys.argv[1], clock=SystemClock()).close()"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "s.db")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert [code for _, code in answers] == [0] * 4, answers


def test_a_store_that_stays_locked_while_it_is_created_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("interlock.embedded.sqlite.connection.pause", waits.append)
    monkeypatch.setattr("interlock.embedded.sqlite.connection.BUSY_SECONDS", 0.05)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process held it locked"):
        Database.open(tmp_path / "s.db", clock=CLOCK)
    assert waits, "it tried more than once"
    other.close()
    Database.open(tmp_path / "s.db", clock=CLOCK).close()


def test_statements_are_split_with_their_comments_and_triggers() -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM b;\n  DELETE FROM c;\nEND;"
    script = f"-- about ; a\nCREATE TABLE a (x TEXT DEFAULT ';');\n\n{trigger}\n"
    assert list(split_statements(script)) == ["-- about ; a\nCREATE TABLE a (x TEXT DEFAULT ';');", trigger]
    with pytest.raises(StoreError, match="within a statement"):
        list(split_statements("CREATE TABLE a (x"))

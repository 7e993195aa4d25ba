"""Connections to the store's file: opening, configuring, migrating, and what SQLite's errors mean to a person."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from interlock.embedded.clock import pause
from interlock.embedded.sqlite.item_cache import StoreConnection
from interlock.embedded.sqlite.private_files import create_private, tighten
from interlock.embedded.sqlite.store_mark import StoreMark
from interlock.model.errors import StoreError, StoreUnavailableError

BUSY_SECONDS: Final = 10.0
# "ILCK": how we know a store from any other SQLite file.
APPLICATION_ID: Final = 0x494C434B
_OLDEST_SQLITE: Final = (3, 37, 0)
_WAL_LIMIT: Final = 64 * 1024 * 1024
# Pages in the log before it is moved into the file. Pages that change again and again are then moved once.
_CHECKPOINT_PAGES: Final = 4000
_CACHE_KILOBYTES: Final = 16 * 1024
# Step n takes a store from version n to n + 1.
_STEPS: Final = (
    "schema.sql",
    "tokens.sql",
    "deliveries.sql",
    "heartbeat.sql",
    "sessions.sql",
    "delivery_errors.sql",
    "sensor_use.sql",
    "executions_ended.sql",
    "token_terms.sql",
    "audit.sql",
)
STORE_VERSION: Final = len(_STEPS)

Mode = Literal["ro", "rw", "rwc"]

_MEANINGS: Final = {
    sqlite3.SQLITE_BUSY: f"another process held it locked for {BUSY_SECONDS:.0f} s: end that process, or try again",
    sqlite3.SQLITE_FULL: "the disk is full: make room",
    sqlite3.SQLITE_READONLY: "it may not be written: check the permissions of the file and of its directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check that its directory exists and may be written",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database: name another file",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore it from a backup, or recover it with `sqlite3 FILE .recover`",
    sqlite3.SQLITE_IOERR: "reading or writing the disk failed: look at the machine's log",
}
# What says nothing about the work that met it, and may be over in a while.
_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
    }
)


def explain(error: sqlite3.Error, path: Path | None, doing: str) -> StoreError:
    """SQLite's error as ours: what, where, what to do."""
    # The low byte is the primary code; the rest only refines it.
    code = getattr(error, "sqlite_errorcode", None)
    meaning = None if code is None else _MEANINGS.get(code & 0xFF)
    detail = f"{meaning} ({error})" if meaning else str(error)
    kind = StoreUnavailableError if code is not None and code & 0xFF in _PASSING else StoreError
    return kind(f"store {path or 'in memory'}: {doing} failed: {detail}")


def connect(path: Path | None, *, mode: Mode) -> StoreConnection:
    """A configured connection in autocommit mode: transactions are begun by hand."""
    connection = sqlite3.connect(
        ":memory:" if path is None else f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_SECONDS,
        cached_statements=256,
        factory=StoreConnection,
    )
    connection.execute("PRAGMA synchronous = FULL")
    # What undoes a failed piece of work is never needed after a crash: it has no business on the disk.
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def open_store(path: Path | None, *, create: bool, read_only: bool, accept_lost: bool = False) -> StoreConnection:
    """A connection to a store of the current version, or a StoreError that says why there is none.

    `accept_lost`: also a store that has lost changes that it once had (see `store_mark`).
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old: use a Python built with 3.37 or newer")
    if path is not None:
        _check_place(path, create=create and not read_only, writing=not read_only)
    existed = path is not None and path.exists()
    if path is not None and not read_only:
        if create:
            create_private(path)
        tighten(path)
    try:
        connection = connect(path, mode="ro" if read_only else "rwc" if create else "rw")
    except sqlite3.Error as error:
        raise explain(error, path, "opening it") from error
    try:
        # Before anything is written: with the lost log put back, it would not fit any more. What there is may be read.
        if path is not None and existed and not accept_lost and not (read_only and _has_tables(connection)):
            StoreMark(path).check(lambda: latest_change(connection))
        _check_version(connection, path, create=create, read_only=read_only)
        if not read_only:
            _make_ready(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise explain(error, path, "opening it") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check_place(path: Path, *, create: bool, writing: bool) -> None:
    if path.is_dir():
        raise StoreError(f"store {path}: this is a directory: name a file in it")
    if not path.parent.is_dir():
        raise StoreError(f"store {path}: the directory {path.parent} does not exist: create it, or name another file")
    if not create and not path.exists():
        raise _no_store(path)
    # SQLite would open it all the same, for reading, and nothing could be written.
    if writing and path.exists() and not os.access(path, os.W_OK):
        raise StoreError(f"store {path}: {_MEANINGS[sqlite3.SQLITE_READONLY]}")


def _no_store(path: Path | None) -> StoreError:
    return StoreError(
        f"no store at {path}: `interlock serve` or `interlock apply` creates one; name another with --store"
    )


def latest_change(connection: sqlite3.Connection) -> int:
    """The number of the latest change that the store ever had, whether it still has it or not."""
    if not _has_tables(connection):
        return 0
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    return int(found[0]) if found is not None else 0


def _has_tables(connection: sqlite3.Connection) -> bool:
    """All of a young store may be in its log: without that it has none."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'changes'").fetchone() is not None


def _check_version(connection: sqlite3.Connection, path: Path | None, *, create: bool, read_only: bool) -> None:
    version = _version_of(connection, path)
    if version == 0 and (read_only or not create):
        raise _no_store(path)
    if version > STORE_VERSION:
        raise _from_the_future(path, version, STORE_VERSION)
    if read_only and version < STORE_VERSION:
        raise StoreError(
            f"store {path}: it has version {version}, this Interlock reads {STORE_VERSION}: open it for writing once "
            "(`interlock serve`) to bring it up to date"
        )


def _make_ready(connection: sqlite3.Connection, path: Path | None) -> None:
    if path is not None:
        _use_wal(connection)
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KILOBYTES}")
    migrate(connection, path, [_statements(name) for name in _STEPS])


def _from_the_future(path: Path | None, version: int, known: int) -> StoreError:
    return StoreError(
        f"store {path}: it was made by a newer Interlock (store version {version}, this one knows up to {known}): "
        "upgrade Interlock, or name another file"
    )


def _use_wal(connection: sqlite3.Connection) -> None:
    # Two processes that create the same store at once: SQLite does not call the busy handler here in every case.
    for _ in range(int(BUSY_SECONDS / 0.02)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            pause(0.02)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _version_of(connection: sqlite3.Connection, path: Path | None) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (tables or version):
        raise StoreError(f"store {path}: this SQLite database belongs to another program: name another file")
    return version


def migrate(connection: sqlite3.Connection, path: Path | None, steps: Sequence[Sequence[str]]) -> None:
    """Bring the store to version len(steps), in one transaction; a store from the future is refused."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again under the lock: another process may have been quicker.
        version = _version_of(connection, path)
        if version > len(steps):
            raise _from_the_future(path, version, len(steps))
        for statement in (statement for step in steps[version:] for statement in step):
            connection.execute(statement)
        if version < len(steps):
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(name: str) -> list[str]:
    return list(split_statements(files("interlock.embedded.sqlite").joinpath(name).read_text(encoding="utf-8")))


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script. `executescript` would end the transaction that makes a migration whole."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
    if statement.strip():
        raise StoreError(f"a migration ends within a statement: {statement.strip()[:60]!r}")

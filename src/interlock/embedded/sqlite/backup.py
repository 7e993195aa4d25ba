"""Copies of a store: made while a controller writes to it, checked before they count, put in place when none runs.

A backup is two files: an SQLite file that is whole by itself, and `<file>.manifest.json`, which says of which versions
it is, how far the store had come, and how the file must look. The copy is one snapshot: what was acknowledged before it
began is in it, and nothing of it is half done.
"""

import hashlib
import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from interlock import __version__
from interlock.embedded.audit.actors import this_user
from interlock.embedded.audit.chain import append
from interlock.embedded.audit.trail import latest_head
from interlock.embedded.process.discovery import StoreLock
from interlock.embedded.sqlite.connection import (
    APPLICATION_ID,
    STORE_VERSION,
    Mode,
    connect,
    explain,
    latest_change,
    open_store,
)
from interlock.embedded.sqlite.inspection import inspect, tables
from interlock.embedded.sqlite.store_file import WAL
from interlock.embedded.sqlite.store_mark import StoreMark, mark_file
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.errors import InterlockError, StoreError
from interlock.model.times import epoch_millis

MANIFEST: Final = ".manifest.json"
_CHUNK: Final = 1024 * 1024
_COUNTED: Final = ("control", "joblog", "rerun", "events", "changes", "executions", "timers", "deliveries")


class BackupError(InterlockError):
    """A backup that cannot be made, or must not be put in place."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a backup is. `change` is the number of the latest change in it; `rows` are counted by table."""

    created_at: datetime
    interlock_version: str
    store_version: int
    sqlite_version: str
    python_version: str
    change: int
    bytes: int
    sha256: str
    rows: dict[str, int]


class Restored(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What came of a restore. `replaced`: where the store that was there is now. No manifest: it was not compared."""

    store: Path
    change: int
    manifest: Manifest | None
    replaced: Path | None


# ------------------------------------------------------------------------------------------------------------ making


def back_up(store: Path, target: Path, now: datetime) -> Manifest:
    """Copy a store, check the copy, and leave it at `target` with its manifest; or leave nothing there."""
    if target.exists():
        raise BackupError(f"{target} exists: name another file, or remove it first")
    if not target.parent.is_dir():
        raise BackupError(f"{target}: there is no folder {target.parent}: create it, or name another")
    partial = target.with_name(f".{target.name}.partial")
    try:
        change, rows = _copy(store, partial)
        manifest = _manifest(partial, now, change, rows)
        _write_durably(_manifest_of(target), msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        partial.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise BackupError(f"{target}: the backup cannot be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return manifest


def _copy(store: Path, partial: Path) -> tuple[int, dict[str, int]]:
    """One snapshot of the store, as a file that needs no other; the latest change and the rows in it."""
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with _opened(store, "backing it up") as source:
        # The store itself must be whole, or the backup would only preserve a loss.
        StoreMark(store).check(lambda: latest_change(source))
        with _opened(partial, "writing the backup", mode="rw") as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            findings = inspect(copy)
            if findings:
                raise BackupError(f"store {store}: it is damaged, so its copy is of no use: {'; '.join(findings)}")
            return latest_change(copy), _rows(copy)


def _rows(connection: sqlite3.Connection) -> dict[str, int]:
    there = tables(connection)
    counted = [name for name in _COUNTED if name in there]
    return {name: int(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for name in counted}


@contextmanager
def _opened(path: Path, doing: str, mode: Mode = "ro") -> Iterator[sqlite3.Connection]:
    if not path.exists():
        raise StoreError(f"no store at {path}: name it with --store")
    connection = None
    try:
        connection = connect(path, mode=mode)
        yield connection
    except sqlite3.Error as error:
        raise explain(error, path, doing) from error
    finally:
        if connection is not None:
            connection.close()


def _manifest(file: Path, now: datetime, change: int, rows: dict[str, int]) -> Manifest:
    with _opened(file, "reading the backup") as connection:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    return Manifest(
        created_at=now,
        interlock_version=__version__,
        store_version=version,
        sqlite_version=sqlite3.sqlite_version,
        python_version=platform.python_version(),
        change=change,
        bytes=file.stat().st_size,
        sha256=_digest(file),
        rows=rows,
    )


def _manifest_of(file: Path) -> Path:
    return file.with_name(file.name + MANIFEST)


# --------------------------------------------------------------------------------------------------------- restoring


def restore(file: Path, store: Path, now: datetime) -> Restored:
    """Put a backup in the place of a store; refused while a controller has that open. What was there is moved aside."""
    manifest = _verified(file)
    if not store.parent.is_dir():
        raise BackupError(f"store {store}: there is no folder {store.parent}: create it, or name another")
    lock = StoreLock(store)
    lock.take()
    fresh = store.with_name(f".{store.name}.restoring")
    try:
        # Whole and on the disk before anything that is there is touched.
        shutil.copyfile(file, fresh)
        fresh.chmod(0o600)
        _record(fresh, file, store, manifest, now)
        _sync(fresh)
        replaced = _move_aside(store, now)
        fresh.replace(store)
        _sync_folder(store.parent)
    except OSError as error:
        raise BackupError(f"store {store}: the backup cannot be put there: {error.strerror or error}") from error
    finally:
        fresh.unlink(missing_ok=True)
        lock.release()
    with _opened(store, "reading it") as connection:
        return Restored(store=store, change=latest_change(connection), manifest=manifest, replaced=replaced)


def _record(fresh: Path, file: Path, store: Path, manifest: Manifest | None, now: datetime) -> None:
    """Add to the trail of the backup that it is put in place, by whom, and where the trail of the other ended."""
    connection = open_store(fresh, create=False, read_only=False)
    try:
        # One file again, which needs no log beside it.
        connection.execute("PRAGMA journal_mode = DELETE")
        head = latest_head(connection)
        note = AuditNote(
            action=AuditAction.STORE_RESTORED,
            actor=this_user(),
            subject=str(file.absolute()),
            before={"head": _head_of(store)},
            after={"head": None if head is None else str(head), "sha256": manifest.sha256 if manifest else None},
        )
        connection.execute("BEGIN IMMEDIATE")
        append(connection, [note], epoch_millis(now))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise explain(error, fresh, "recording the restore") from error
    finally:
        connection.close()


def _head_of(store: Path) -> str | None:
    """Where the trail of the store that is replaced ended; None when it has none, or cannot be read any more."""
    try:
        with _opened(store, "reading it") as connection:
            head = latest_head(connection)
            return None if head is None else str(head)
    except StoreError:
        return None


def _verified(file: Path) -> Manifest | None:
    if not file.is_file():
        raise BackupError(f"there is no backup {file}")
    manifest = _read_manifest(file)
    if manifest is not None and (file.stat().st_size != manifest.bytes or _digest(file) != manifest.sha256):
        raise BackupError(f"{file}: it is not the file that its manifest describes: it was changed or cut short")
    with _opened(file, "reading the backup") as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise BackupError(f"{file}: this is no backup of a store")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > STORE_VERSION:
            raise BackupError(
                f"{file}: it was made by a newer Interlock (store version {version}, this one knows up to "
                f"{STORE_VERSION}): upgrade first"
            )
        findings = inspect(connection)
    if findings:
        raise BackupError(f"{file}: it is damaged: {'; '.join(findings)}")
    return manifest


def _read_manifest(file: Path) -> Manifest | None:
    try:
        return msgspec.json.decode(_manifest_of(file).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise BackupError(f"{_manifest_of(file)}: the manifest cannot be read: {error}") from error


def _move_aside(store: Path, now: datetime) -> Path | None:
    """Give the store that is there, with all that belongs to it, another name; what that is."""
    if not store.exists():
        for stale in (Path(f"{store}{WAL}"), Path(f"{store}-shm"), mark_file(store)):
            stale.unlink(missing_ok=True)
        return None
    aside = store.with_name(f"{store.name}.replaced-{now:%Y%m%dT%H%M%SZ}")
    # The log first: a store without it would be taken for one that lost it, a log without its store for nothing.
    for suffix in (WAL, "-shm", "", ".mark"):
        with suppress(FileNotFoundError):
            Path(f"{store}{suffix}").rename(f"{aside}{suffix}")
    return aside


# ------------------------------------------------------------------------------------------------------------- files


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _write_durably(file: Path, content: bytes) -> None:
    fresh = file.with_name(f".{file.name}.partial")
    fresh.write_bytes(content)
    fresh.chmod(0o600)
    _sync(fresh)
    fresh.replace(file)


def _sync(file: Path) -> None:
    opened = os.open(file, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _sync_folder(folder: Path) -> None:
    _sync(folder)

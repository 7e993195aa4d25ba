"""Watches over the store's file while a controller runs: is it the one that was opened, is it sound, is there room?

Twice a look is too late for an acknowledgement, so commits check the file themselves (`store_file`); this is for the
controller that has nothing to write, and for what takes longer than a commit may: all pages are checked once after the
start, in the background, for as long as that may take.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from interlock.embedded.sqlite.connection import connect
from interlock.embedded.sqlite.database import Database
from interlock.logs import get_logger
from interlock.loops import Loop

_LOOK_SECONDS: Final = 1.0
_LITTLE_SPACE: Final = 64 * 1024 * 1024
# Checking pages reads the whole file, which a large store must not do at its start for minutes.
_CHECK_SECONDS: Final = 60.0
_STEPS_BETWEEN_LOOKS: Final = 100_000
_FINDINGS: Final = 3

_log = get_logger(__name__)


class StoreWatch:
    """Drive it with `start` and `stop`. A store in memory has nothing to watch."""

    def __init__(self, database: Database, *, check_seconds: float = _CHECK_SECONDS) -> None:
        self._database = database
        self._check_seconds = check_seconds
        self._damage: tuple[str, ...] = ()
        self._stopping = threading.Event()
        self._file_problem = ""
        self._loops: list[Loop] = []

    def start(self) -> None:
        """Watch on threads of its own."""
        path = self._database.path
        if path is None:
            return
        loops = self._database.loops
        self._loops = [
            loops.add("store-watch", self._look, vital=False),
            loops.add("store-check", lambda: self._check(path), vital=False, finite=True),
        ]
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopping.set()
        for loop in self._loops:
            loop.stop()

    def problems(self) -> list[str]:
        """What keeps the store from being written, in words."""
        found = self._database.guard.write_problem()
        return [found] if found else []

    def degradations(self) -> list[str]:
        """What is wrong with a store that can be written, in words."""
        found = ["the store is damaged: restore a backup; `interlock doctor --deep` says more"] if self._damage else []
        free = _free(self._database.path)
        if free is not None and free < _LITTLE_SPACE:
            found.append(f"the store's disk is almost full: {free / 1024 / 1024:.1f} MiB are free")
        return found

    # ---------------------------------------------------------------------------------------------------- the file

    def _look(self) -> float:
        before, now = self._file_problem, self._database.guard.file_problem()
        if now and not before:
            _log.error("the store's file is lost", error=now)
        elif before and not now:
            _log.info("the store's file is back")
        self._file_problem = now
        return _LOOK_SECONDS

    # --------------------------------------------------------------------------------------------------- the pages

    def _check(self, path: Path) -> None:
        end = time.monotonic() + self._check_seconds
        try:
            found = quick_check(path, lambda: self._stopping.is_set() or time.monotonic() >= end)
        except sqlite3.Error as error:
            found = [str(error)]
        if found is None:
            if not self._stopping.is_set():
                _log.info(
                    "the store is too large to be checked at the start; `interlock doctor --deep` checks all of it"
                )
        elif found:
            self._damage = tuple(found)
            _log.error("the store is damaged: restore a backup", store=str(path), found=found)


def quick_check(path: Path, interrupted: Callable[[], bool]) -> list[str] | None:
    """What SQLite finds wrong with the pages of a store; None when it was interrupted."""
    connection = connect(path, mode="ro")
    connection.set_progress_handler(interrupted, _STEPS_BETWEEN_LOOKS)
    try:
        said = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({_FINDINGS})")]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return None
        raise
    finally:
        connection.close()
    return [] if said == ["ok"] else said


def _free(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize

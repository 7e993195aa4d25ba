"""What surrounds every commit of a store's file: is it still the file, how far has it come, did it work?

Three small books are kept (`store_file`, `store_mark`, `commit_health`); the database opens and closes them together.
"""

import sqlite3
import time
from pathlib import Path
from typing import Final

from interlock.embedded.sqlite.commit_health import CommitHealth, Submit
from interlock.embedded.sqlite.connection import latest_change
from interlock.embedded.sqlite.store_file import StoreFile
from interlock.embedded.sqlite.store_mark import StoreMark

_FILE_CHECK_SECONDS: Final = 1.0


class CommitGuard:
    """The guard of one open store; of one in memory, or that is only read, there is little to guard."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection, submit: Submit) -> None:
        """`path` None: there is no file that this process writes."""
        self._connection = connection
        self._file = None if path is None else StoreFile(path)
        self._mark = None if path is None else StoreMark(path)
        self._health = CommitHealth(submit)
        self._checked_at = time.monotonic()
        self._written = connection.total_changes
        if self._mark is not None:
            self._mark.note(latest_change(connection))

    def check_file(self) -> None:
        """Raises StoreReplacedError when the file is not the one that was opened."""
        if self._file is not None:
            self._file.check()
            self._checked_at = time.monotonic()

    def before_begin(self) -> None:
        """What would be refused need not be done first. A check of a moment ago will do."""
        if time.monotonic() - self._checked_at > _FILE_CHECK_SECONDS:
            self.check_file()

    def after_commit(self, head: int) -> None:
        """Before it is acknowledged: what a restart would not find must not be. `head`: 0 without a new change."""
        self.check_file()
        if head and self._mark is not None:
            self._mark.note(head)
        # A commit that wrote nothing says nothing about the disk.
        written = self._connection.total_changes
        if written != self._written:
            self._written = written
            self._health.succeeded()

    def commit_failed(self) -> None:
        """A commit failed, through no fault of what was written."""
        self._health.failed()

    def file_problem(self) -> str:
        """What became of the store's file, if it is not the one that was opened any more; "" when it is."""
        return self._file.problem() if self._file is not None else ""

    def write_problem(self) -> str:
        """Why nothing can be written, in words without a path; "" when it can. May write, and wait for that."""
        return "the store's file was deleted or replaced" if self.file_problem() else self._health.problem()

    def close(self) -> None:
        """After the connection was closed."""
        if self._mark is not None:
            self._mark.close()

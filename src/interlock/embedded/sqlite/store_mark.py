"""How far a store had come, in a file beside it: so that a log that vanished is noticed.

The latest commits are in the log (`-wal`) until they are moved into the file. Whoever deletes the log after a crash, or
copies the file alone, has a store that opens without a complaint and lacks what was acknowledged last. So the number of
the latest change is written to `<store>.mark` after each commit, before it is acknowledged; a store that has come less
far than its mark is refused. The mark goes when the store is closed and the log is gone in order.

It is written in place and not flushed: it survives the death of the process. After that of the machine it may be too
low, never too high, since it is written after the commit is on the disk.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from interlock.embedded.sqlite.private_files import open_private
from interlock.embedded.sqlite.store_file import WAL
from interlock.logs import get_logger
from interlock.model.errors import StoreBehindError

_DIGITS: Final = 19

_log = get_logger(__name__)


def mark_file(store: Path) -> Path:
    """Where the mark of a store is."""
    return store.with_name(store.name + ".mark")


class StoreMark:
    """The mark of one open store."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = mark_file(store)
        self._file: int | None = None
        self._failed = False

    def check(self, latest_change: Callable[[], int]) -> None:
        """Raises StoreBehindError when the store has lost changes that it once had."""
        # In this order: another process may be writing both, the store first.
        marked = self._read()
        if marked > (change := latest_change()):
            raise StoreBehindError(self._explanation(marked, change))

    def note(self, change: int) -> None:
        """The store has come this far. What goes wrong with the mark is no reason to refuse a commit."""
        try:
            if self._file is None:
                self._file = open_private(self._path, os.O_WRONLY)
            os.pwrite(self._file, b"%0*d\n" % (_DIGITS, change), 0)
        except OSError as error:
            if not self._failed:
                _log.warning("the mark of the store cannot be written", file=str(self._path), error=str(error))
            self._failed = True

    def close(self) -> None:
        """The store was closed. Without a log beside it there is nothing left that could vanish."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if not Path(f"{self._store}{WAL}").exists():
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _read(self) -> int:
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return 0
        return int(text) if text.isdigit() else 0

    def _explanation(self, marked: int, change: int) -> str:
        log = f"{self._store}{WAL}"
        return (
            f"store {self._store}: what was written last is missing: it has come to change {change}, and had come to"
            f" {marked}. The log {log} was deleted, or an older copy of the store was put in its place. Put back what"
            " belongs together, or restore a backup (`interlock restore`). To go on without what is missing:"
            " `interlock serve --accept-lost-wal`"
        )

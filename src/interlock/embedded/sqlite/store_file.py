"""Is the file at the store's path still the one that was opened?

A file that is deleted, moved or replaced goes on existing for whoever has it open: SQLite would commit to it and
acknowledge, and after a restart all of it would be gone. The same is true of the log (`-wal`) beside it, which holds
the latest commits. So device and inode are compared before a commit is acknowledged. A file that comes back is the same
again, and the work goes on.
"""

import os
from pathlib import Path
from typing import Final

from interlock.model.errors import StoreReplacedError

WAL: Final = "-wal"

_Identity = tuple[int, int]


class StoreFile:
    """The files of an open store. Made after they were opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = {name: found for name in (str(path), f"{path}{WAL}") if (found := _identity(name)) is not None}

    def check(self) -> None:
        """Raises StoreReplacedError when what is written now would not be found again."""
        for name, opened in self._opened.items():
            if _identity(name) != opened:
                raise StoreReplacedError(self._explanation(name))

    def problem(self) -> str:
        """As `check`, in words; "" when all is well."""
        try:
            self.check()
        except StoreReplacedError as error:
            return str(error)
        return ""

    def _explanation(self, name: str) -> str:
        what = "there is another file in its place" if _identity(name) is not None else "it is gone"
        return (
            f"store {self._path}: {name} is not the file that was opened: {what}. What would be written now would be"
            " lost, so nothing is: put the file back, or restart to go on with what is there"
        )


def _identity(name: str) -> _Identity | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_dev, found.st_ino

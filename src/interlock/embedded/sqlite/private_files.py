"""The files of a store are their owner's alone: they hold what sensors reported, what jobs wrote, and hashed tokens.

They are made so, and made so again when a controller or a command opens a store that an earlier version left readable.
Files that are made beside a store are never reached through a symbolic link, which somebody else might have put there.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from interlock.model.errors import StoreError

FILE: Final = 0o600
FOLDER: Final = 0o700
_OTHERS: Final = 0o077
OWNER_TOKEN: Final = ".owner-token"
_SUFFIXES: Final = ("", "-wal", "-shm", ".lock", ".mark", ".server.json", ".callback-key", OWNER_TOKEN)
JOBS: Final = ".jobs"


def create_private(store: Path) -> None:
    """Make the file of a store that is not there yet, before SQLite makes it readable for others."""
    if store.exists():
        return
    try:
        os.close(os.open(store, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE))
    except FileExistsError as error:
        if store.is_symlink() and not store.exists():
            raise StoreError(f"store {store}: this is a link that leads nowhere: remove it, or mend it") from error
    except OSError:
        pass  # SQLite meets the same, and says it better


def tighten(store: Path) -> None:
    """Take from others what they may do with the files of a store. What cannot be changed, `doctor` says."""
    for path, found in _files(store):
        if found.st_mode & _OTHERS:
            with suppress(OSError):
                path.chmod(FOLDER if stat.S_ISDIR(found.st_mode) else FILE)


def exposed(store: Path) -> list[tuple[Path, int]]:
    """The files of a store that others may read or write, with their modes."""
    return [(path, mode) for path, found in _files(store) if (mode := stat.S_IMODE(found.st_mode)) & _OTHERS]


def open_private(path: Path, flags: int) -> int:
    """Open or make a file beside a store, not through a link; the descriptor. Raises OSError."""
    file = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)
    with suppress(OSError):
        if os.fstat(file).st_mode & _OTHERS:
            os.fchmod(file, FILE)
    return file


def _files(store: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for suffix in (*_SUFFIXES, JOBS):
        path = store.with_name(store.name + suffix)
        with suppress(OSError):
            found = path.stat() if not suffix else path.lstat()
            if not stat.S_ISLNK(found.st_mode):
                yield path, found

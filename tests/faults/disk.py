"""A disk that can be filled to the last byte: a tmpfs, where this user may mount one."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

_BALLAST: Final = "ballast"
_MNT_DETACH: Final = 2


class SmallDisk:
    """A file system of its own at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def free(self) -> int:
        """Bytes that can still be written."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Write until nothing, or `leave` bytes, are free."""
        with (self.folder / _BALLAST).open("ab", buffering=0) as file:
            try:
                while self.free > leave:
                    file.write(b"\0" * min(self.free - leave, 1 << 20))
            except OSError:
                return

    def clear(self) -> None:
        """Make room again."""
        (self.folder / _BALLAST).unlink(missing_ok=True)


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[SmallDisk | str]:
    """Mount one; or why that is not possible."""
    if not Path("/proc/filesystems").exists():
        yield "it needs Linux's tmpfs"
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={size},mode=0755".encode()):
        yield f"it needs the right to mount a tmpfs (root, CAP_SYS_ADMIN): {os.strerror(ctypes.get_errno())}"
        return
    try:
        yield SmallDisk(folder)
    finally:
        libc.umount2(os.fsencode(folder), _MNT_DETACH)


@contextmanager
def small_disk(folder: Path, size: int = 64 * 1024 * 1024) -> Iterator[SmallDisk]:
    """Mount one; skips the test where that is not possible. Its size is several times that of a store's log."""
    folder.mkdir(parents=True, exist_ok=True)
    with mounted(folder, size) as disk:
        if isinstance(disk, str):
            pytest.skip(f"a disk that can be filled: {disk}")
        yield disk

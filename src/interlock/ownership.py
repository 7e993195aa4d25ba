"""Whose files are obeyed. What a controller reads decides what it runs, so another user must not have written it.

A file that is found by itself must belong to the caller or to root, and so must every folder above it; nobody else may
be able to write any of them. A file that a person named is obeyed whoever owns it, unless everybody may write it. In a
folder with the sticky bit (`/tmp`) nobody can replace the files of others: such a folder is fine above a file.
"""

import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ROOT: Final = 0
_LINKS: Final = 40


@dataclass(frozen=True, slots=True)
class Trust:
    """Files and folders that a person named: what is in them is obeyed whoever owns it."""

    named: tuple[Path, ...] = ()

    def also(self, *paths: Path | None) -> "Trust":
        """This and more."""
        return Trust((*self.named, *(path.absolute() for path in paths if path is not None)))

    def refusal(self, path: Path) -> str:
        """Why a file or folder is not obeyed, in words; "" when it is, or when there is none."""
        return refusal(path, named=self._names(path))

    def at_once(self) -> Callable[[Path], str]:
        """As `refusal`, for many files at one time: the folders they share are looked at once."""
        folders: dict[tuple[Path, bool], str] = {}

        def refusal_of(path: Path) -> str:
            if path.is_symlink():
                return self.refusal(path)
            folder, named = path.parent, self._names(path)
            if (folder, named) not in folders:
                folders[folder, named] = refusal(folder, named=named)
            return _refused(path, named=named) or folders[folder, named]

        return refusal_of

    def _names(self, path: Path) -> bool:
        meant = path.absolute()
        return any(meant.is_relative_to(one) for one in self.named)


def refusal(path: Path, *, named: bool = False) -> str:
    """Why a file or folder is not obeyed, in words; "" when it is, or is not there. `named`: a person named it."""
    return next((reason for step in _steps(path) if (reason := _refused(step, named=named))), "")


def _refused(step: Path, *, named: bool) -> str:
    with suppress(OSError):
        found = step.lstat()
        reason = _everybody(step, found) if named else _foreign(step, found)
        return "" if reason and _read_only(step) else reason
    return ""


def _steps(path: Path) -> Iterator[Path]:
    """The path and every folder above it, also those that symbolic links on the way lead to."""
    seen: set[Path] = set()
    pending = [Path(os.path.normpath(path.absolute()))]
    while pending and len(seen) < _LINKS * 10:
        step = pending.pop()
        if step in seen:
            continue
        seen.add(step)
        yield step
        with suppress(OSError):
            if stat.S_ISLNK(step.lstat().st_mode):
                pending.append(Path(os.path.normpath(step.parent / step.readlink())))
        if step != step.parent:
            pending.append(step.parent)


def _foreign(step: Path, found: os.stat_result) -> str:
    if found.st_uid not in (os.geteuid(), _ROOT):
        return f"{step} belongs to {_user(found.st_uid)}, neither to you nor to root"
    mode = found.st_mode
    if stat.S_ISLNK(mode) or _sticky(mode):
        return ""
    if mode & stat.S_IWOTH:
        return f"everybody may write {step}"
    if mode & stat.S_IWGRP and not _own_group(found.st_gid):
        return f"the group {_group(found.st_gid)} may write {step}"
    return ""


def _everybody(step: Path, found: os.stat_result) -> str:
    writable = found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode) and not _sticky(found.st_mode)
    return f"everybody may write {step}" if writable else ""


def _read_only(step: Path) -> bool:
    """What is mounted so that nobody can write it, as a container's settings are, needs no mode."""
    with suppress(OSError):
        return bool(os.statvfs(step).f_flag & os.ST_RDONLY)
    return False


def _sticky(mode: int) -> bool:
    return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)


def _own_group(gid: int) -> bool:
    """Root's group, or one that has its name from the caller and no other member: many systems make such groups."""
    if gid == _ROOT:
        return True
    with suppress(KeyError):
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
        return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return False


def _user(uid: int) -> str:
    with suppress(KeyError):
        return f"user {pwd.getpwuid(uid).pw_name!r}"
    return f"user {uid}"


def _group(gid: int) -> str:
    with suppress(KeyError):
        return repr(grp.getgrgid(gid).gr_name)
    return str(gid)

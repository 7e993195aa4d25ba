"""Removing what ended commands left behind: what is old, and the oldest of what is too much.

A command that runs is never removed, and neither is one whose end the controller does not know yet, however much room
it takes: its folder is the only proof of how it ended.
"""

import contextlib
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from interlock.jobs.command.folder import Phase, RunFolder, run_folders, stray_folders
from interlock.jobs.command.output import OutputKept

_BLOCK_BYTES: Final = 512


class _Ended(msgspec.Struct, frozen=True):
    at: float
    size: int
    reported: bool
    folder: RunFolder


def prune(root: Path, kept: OutputKept, now: datetime) -> int:
    """Remove what need not be kept any longer; how many folders."""
    before = (now - kept.age).timestamp()
    ended = sorted(_ended(root), key=lambda one: one.at)
    old = [one for one in ended if one.at < before]
    excess = sum(one.size for one in ended[len(old) :]) - kept.total
    for one in ended[len(old) :]:
        if excess <= 0:
            break
        if one.reported:
            old.append(one)
            excess -= one.size
    for one in old:
        one.folder.remove()
    _remove_strays(root, before)
    return len(old)


def _ended(root: Path) -> list[_Ended]:
    found = []
    for folder in run_folders(root):
        # Others remove folders, too: a start that is repeated, or a person who makes room.
        with contextlib.suppress(FileNotFoundError):
            if folder.phase() not in (Phase.RUNNING, Phase.ABSENT):
                found.append(_Ended(folder.touched_at(), _disk_usage(folder.path), folder.reported, folder))
    return found


def _disk_usage(folder: Path) -> int:
    with os.scandir(folder) as entries:
        return sum(entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES for entry in entries)


def _remove_strays(root: Path, before: float) -> None:
    for stray in stray_folders(root):
        with contextlib.suppress(FileNotFoundError):  # a claim that was being prepared has its name by now
            if stray.stat().st_mtime < before:
                shutil.rmtree(stray, ignore_errors=True)

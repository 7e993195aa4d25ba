"""Which pipelines of a folder were removed, and when it is rather the folder that is lost.

Removing by absence needs a sign that it is meant. A failed mount and a bad checkout look like the removal of every
pipeline, and a controller without pipelines guards nothing. So absence counts after a while only, and never where
everything, or most of much, is absent at once: then what is in force stays in force until the files are back, or
somebody removes the pipelines by name (`apply --prune`).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

# Editors and `git checkout` replace files: for a moment they are not there.
GRACE: Final = timedelta(seconds=10)
# In a folder of fewer files a person may well remove most of them.
MANY: Final = 10


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """What one look found. `problem`: why the folder cannot be read; `files`: how many pipeline files it has.

    `known` pipelines came from it before; `absent` are those of them that no file is about now, with how long that is
    so, and `vanished` how many of these have lost their file; `lost`: why the folder counts as lost already, or "".
    """

    problem: str
    files: int
    known: int
    absent: Mapping[str, timedelta]
    vanished: int
    lost: str


class Verdict(msgspec.Struct, frozen=True):
    """`removed`: the pipelines that are to go; `lost`: why nothing goes, "" when all is well."""

    removed: tuple[str, ...] = ()
    lost: str = ""


def judge(found: Folder, *, starting: bool = False) -> Verdict:
    """What follows from the absence of files. At a start nobody is in the middle of replacing them."""
    if not found.absent:
        return Verdict()
    due = tuple(sorted(name for name, since in found.absent.items() if since >= GRACE))
    reason = found.lost or _lost(found)
    if reason:
        return Verdict(lost=reason if found.lost or starting or due else "")
    return Verdict(removed=due)


def settled(absent: Mapping[str, datetime], now: datetime) -> bool:
    """Has anything been absent for long enough to count?"""
    return any(now - since >= GRACE for since in absent.values())


def _lost(found: Folder) -> str:
    if found.problem:
        return found.problem
    if found.files == 0:
        return "it holds no pipeline any more"
    if found.known >= MANY and found.vanished * 2 > found.known:
        return f"{found.vanished} of its {found.known} pipelines vanished at once"
    return ""

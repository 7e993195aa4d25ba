"""Executions that end early, one after the other: when the next part of the attempt begins, and when it is enough.

An execution that was killed says nothing about the next; several in a row, each dead within the hour, say that the next
will die as well. So each has to wait longer than the one before it, and after the last the run ends as INFRA: every run
reaches a terminal status, though nothing that drives it lives long enough to see its window close.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from interlock.model.run import Run

MOST: Final = 6
FIRST_PAUSE: Final = timedelta(minutes=5)
LIVED: Final = timedelta(hours=1)


class AfterEarlyEnd(StrEnum):
    """What follows from an execution that ended without an outcome."""

    GO_ON = "go on"
    LATER = "later"
    GIVE_UP = "give up"


class EarlyEnd(msgspec.Struct, frozen=True):
    """What follows, and how many executions in a row have ended early."""

    follows: AfterEarlyEnd
    in_a_row: int


def judge(run: Run, now: datetime) -> EarlyEnd:
    """The execution of the run's current part has ended without an outcome.

    The second in a row is followed five minutes after it began, the third ten, then twenty and forty; the sixth by
    nothing. An execution that lived for an hour counts as a first again.
    """
    began = run.part_at or run.opened_at
    in_a_row = 1 if now - began >= LIVED else run.early_ends + 1
    if in_a_row >= MOST:
        return EarlyEnd(AfterEarlyEnd.GIVE_UP, in_a_row)
    return EarlyEnd(AfterEarlyEnd.GO_ON if now >= began + _pause(in_a_row) else AfterEarlyEnd.LATER, in_a_row)


def followed_from(run: Run) -> datetime:
    """From when on the current part, should its execution have ended early, is followed by the next."""
    return (run.part_at or run.opened_at) + _pause(run.early_ends + 1)


def _pause(in_a_row: int) -> timedelta:
    return FIRST_PAUSE * (1 << (in_a_row - 2)) if in_a_row > 1 else timedelta(0)

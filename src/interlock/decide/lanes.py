"""A pipeline as a lane of cells, a cell an hour or a day: which run belongs into which cell, and what a cell shows.

Hour columns hold hourly runs by their period, and others by the hour they opened or were due; day columns go by the
period's own date. Of several runs in a cell the worst is shown, with their number. Pure: runs, ticks and columns in,
text of one letter a column out.
"""

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal

import msgspec

from interlock.decide.cron import ticks_on
from interlock.model.config import Schedule
from interlock.model.periods import parse_period
from interlock.model.run import Word
from interlock.model.times import zone

_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
# What a zone may be away from UTC, and a period's own day from the day of its tick (`period: previous`).
_BESIDE: Final = timedelta(days=2)
_PeriodOfTick = Literal["current", "previous"]


class Bucket(StrEnum):
    """How long a column is."""

    HOUR = "hour"
    DAY = "day"


class Letter(StrEnum):
    """What a cell shows."""

    DONE = "d"
    RUNNING = "r"
    WAITING = "w"
    FAILED = "f"
    HELD = "h"
    MISSED = "m"
    EXCLUDED = "x"
    DRY_RUN = "o"
    NOT_DUE = "-"


class Mark(StrEnum):
    """What the SLA adds to a cell: nothing, its warning, its breach."""

    NONE = "-"
    WARNED = "w"
    BREACHED = "b"


# Of several runs in one cell, the first of these is shown.
_WORST_FIRST: Final = (
    Letter.FAILED,
    Letter.HELD,
    Letter.MISSED,
    Letter.WAITING,
    Letter.RUNNING,
    Letter.DRY_RUN,
    Letter.DONE,
    Letter.EXCLUDED,
    Letter.NOT_DUE,
)
_RANK: Final = {letter: rank for rank, letter in enumerate(_WORST_FIRST)}
LETTERS: Final = {
    Word.DONE: Letter.DONE,
    Word.RUNNING: Letter.RUNNING,
    Word.WAITING: Letter.WAITING,
    Word.FAILED: Letter.FAILED,
    Word.HELD: Letter.HELD,
}


class Columns:
    """The columns of a view: `count` hours or days from `first` on."""

    def __init__(self, bucket: Bucket, first: datetime, count: int) -> None:
        self.bucket = bucket
        self.first = first
        self.count = count
        length = _HOUR if bucket is Bucket.HOUR else _DAY
        self.end = first + count * length
        size = 13 if bucket is Bucket.HOUR else 10
        # By the beginning of an instant's or a date's text: thousands of runs are placed without reading a time.
        self._by_text = {(first + index * length).isoformat()[:size]: index for index in range(count)}
        self._of_period: dict[tuple[str, str], int | None] = {}

    @classmethod
    def between(cls, since: datetime, until: datetime, bucket: Bucket) -> "Columns":
        """The columns that cover a span; hours are whole hours of UTC, days are dates."""
        first = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        if bucket is Bucket.DAY:
            first = first.replace(hour=0)
        length = _HOUR if bucket is Bucket.HOUR else _DAY
        return cls(bucket, first, max(-(-(until - first) // length), 1))

    def of_instant(self, text: str) -> int | None:
        """The column of an instant, given as RFC 3339 in UTC."""
        return self._by_text.get(text[:13]) if self.bucket is Bucket.HOUR else self._by_text.get(text[:10])

    def of_run(self, period: str, timezone: str, opened_at: str) -> int | None:
        """The column of a run: by its period, or for a day in hour columns by the hour it was opened or due."""
        if self.bucket is Bucket.DAY:
            return self._by_text.get(period[:10])
        return self.of_instant(opened_at) if len(period) == 10 else self._of_hour(period, timezone)

    def _of_hour(self, period: str, timezone: str) -> int | None:
        key = (period, timezone)
        if key not in self._of_period:
            start = parse_period(period).start(zone(timezone)).astimezone(UTC)
            self._of_period[key] = self._by_text.get(start.isoformat()[:13])
        return self._of_period[key]


class Lane:
    """The cells of one pipeline."""

    def __init__(self, columns: Columns) -> None:
        self._cells = [Letter.NOT_DUE] * columns.count
        self._marks: list[Mark] = []
        self._counts: dict[int, int] = {}

    def put(self, index: int | None, letter: Letter) -> None:
        """A run belongs into a cell: the worst is shown, all are counted."""
        if index is None:
            return
        if letter is not Letter.EXCLUDED:
            self._counts[index] = self._counts.get(index, 0) + 1
        if _RANK[letter] < _RANK[self._cells[index]]:
            self._cells[index] = letter

    def mark(self, index: int | None, mark: Mark) -> None:
        """An alert of the SLA belongs onto a cell; a breach hides the warning."""
        if index is None:
            return
        # Hardly any lane has marks.
        self._marks = self._marks or [Mark.NONE] * len(self._cells)
        if self._marks[index] is not Mark.BREACHED:
            self._marks[index] = mark

    @property
    def cells(self) -> str:
        """A letter a column."""
        return "".join(self._cells)

    @property
    def marks(self) -> str:
        """A letter a column; nothing at all when no cell has a mark."""
        return "".join(self._marks)

    @property
    def multiple(self) -> dict[str, int]:
        """How many runs are in the cells that have several."""
        return {str(index): count for index, count in self._counts.items() if count > 1}


class Due(msgspec.Struct, frozen=True, gc=False):
    """A tick as a lane sees it: its instant as text, the local day the calendar is asked about, the period it opens."""

    at: str
    day: date
    period: str


def due_between(schedule: Schedule, since: datetime, until: datetime) -> list[Due]:
    """The ticks of a cron schedule with since <= at < until, in their order."""
    if schedule.cron is None:
        return []
    # The local day of an instant is that of UTC, or one beside it.
    first, last = since.astimezone(UTC).date() - _DAY, until.astimezone(UTC).date() + _DAY
    instants, dues = _due_on_days(schedule.cron, schedule.timezone, schedule.period, first, last)
    return list(dues[bisect_left(instants, since.isoformat()) : bisect_left(instants, until.isoformat())])


@lru_cache(maxsize=10_000)
def _due_on_days(
    cron: str, timezone: str, period: _PeriodOfTick, first: date, last: date
) -> tuple[tuple[str, ...], tuple[Due, ...]]:
    """The ticks of some days, and their instants. Kept for all pipelines of the same cron, and for all of a day."""
    days = (first + timedelta(days=offset) for offset in range((last - first).days + 1))
    dues = sorted((one for day in days for one in _due_on(cron, timezone, period, day)), key=lambda one: one.at)
    return tuple(one.at for one in dues), tuple(dues)


def due_around(schedule: Schedule, columns: Columns) -> list[Due]:
    """The ticks that may belong into some columns. A day's tick may lie outside of it: beside, and `previous`."""
    beside = timedelta(0) if columns.bucket is Bucket.HOUR else _BESIDE
    return due_between(schedule, columns.first - beside, columns.end + beside)


@lru_cache(maxsize=100_000)
def _due_on(cron: str, timezone: str, period: _PeriodOfTick, day: date) -> tuple[Due, ...]:
    schedule = Schedule(cron=cron, timezone=timezone, period=period)
    return tuple(Due(tick.at.isoformat(), day, str(tick.period)) for tick in ticks_on(schedule, day))

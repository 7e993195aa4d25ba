"""Lanes that need not be made again: an overview is looked at again and again, and hardly any lane has changed.

The invariant: a lane that is given is the one that would be made now. A lane is made of four things, and each ends it:

- What is stored of its pipeline: config, runs, SLA, events. Before anything is read, the store is asked which
  partitions were written since the latest look, and their lanes are forgotten. A store that cannot tell keeps nothing.
- What is the same for all lanes: the calendars, the first start, the grace of a tick. It is compared by its value.
- The columns that it shows: lanes of others are kept apart.
- The time. Whoever makes a lane says until when nothing of it changes by itself (`holds_until`).

A lane is kept only if nobody has looked since: it may have been read before the change that the other look has seen.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import msgspec

from interlock.control.catalog import Stored
from interlock.control.views.lane_rows import RECENT, Rows
from interlock.decide.lanes import Columns, due_between
from interlock.model import keys
from interlock.model.config import Schedule, clock_time
from interlock.model.run import RunStatus
from interlock.model.times import local_time_on, parse_instant, zone
from interlock.ports.store import Changed

T = TypeVar("T")

# Lanes of all columns together, at some kilobytes each; and how many different columns.
_MOST_LANES: Final = 20_000
_MOST_COLUMNS: Final = 4
# Days and hours begin at a quarter of an hour in every zone.
_QUARTER: Final = timedelta(minutes=15)
# Instants are compared as text, in which a fraction of a second is not in order.
_INEXACT: Final = timedelta(seconds=1)
_LATEST_TTL: Final = 2**33


class Kept(msgspec.Struct, Generic[T], frozen=True):
    """A lane as it was made at `at`; it holds until just before `until`."""

    lane: T
    at: datetime
    until: datetime


class Look:
    """One look at the lanes: the position before anything of it was read, and what is the same for all lanes."""

    __slots__ = ("position", "shared")

    def __init__(self, position: int) -> None:
        self.position = position
        self.shared: object = None


class KeptLanes(Generic[T]):
    """The lanes that were made. Threads may share it."""

    def __init__(self, changed_since: Callable[[int | None], Changed], most: int = _MOST_LANES) -> None:
        self._changed_since = changed_since
        self._most = most
        self._lock = threading.Lock()
        self._position: int | None = None
        self._shared: object = None
        self._configs: dict[str, Stored] = {}
        # By columns, those used last at the end.
        self._lanes: dict[object, dict[str, Kept[T]]] = {}

    def begin(self) -> Look:
        """Begin a look: forget what was written since the last. Before anything is read."""
        with self._lock:
            changed = self._changed_since(self._position)
            if changed.partitions is None:
                self._forget()
            elif changed.position != self._position:
                for pk in changed.partitions:
                    if pk.startswith(keys.PIPELINE):
                        self._forget_one(keys.pipeline_of(pk))
            self._position = changed.position
            return Look(changed.position)

    def share(self, look: Look, shared: object) -> None:
        """What is the same for all lanes of a look. If it is something new, nothing that was made before counts."""
        with self._lock:
            look.shared = shared
            if self._shared != shared:
                self._shared = shared
                self._forget()

    def configs(self, pipelines: Iterable[str]) -> dict[str, Stored]:
        """The configs that are known."""
        with self._lock:
            return {one: self._configs[one] for one in pipelines if one in self._configs}

    def lanes(self, columns: object, pipelines: Iterable[str], now: datetime) -> dict[str, T]:
        """The lanes that are known, and hold now."""
        with self._lock:
            known = self._lanes.pop(columns, {})
            self._lanes[columns] = known
            while len(self._lanes) > _MOST_COLUMNS:
                del self._lanes[next(iter(self._lanes))]
            found = ((one, known.get(one)) for one in pipelines)
            return {one: kept.lane for one, kept in found if kept is not None and kept.at <= now < kept.until}

    def keep_configs(self, look: Look, configs: Sequence[Stored]) -> None:
        """Keep configs without their documents, which no lane shows."""
        with self._lock:
            if self._is_latest(look) and len(self._configs) + len(configs) <= self._most:
                self._configs |= {one.pipeline: msgspec.structs.replace(one, document={}) for one in configs}

    def keep(self, look: Look, columns: object, made: Mapping[str, Kept[T]]) -> None:
        """Keep lanes that were made for a look."""
        with self._lock:
            if self._is_latest(look):
                self._make_room(columns, len(made))
                lanes = self._lanes.setdefault(columns, {})
                if sum(map(len, self._lanes.values())) + len(made) <= self._most:
                    lanes |= made

    def _is_latest(self, look: Look) -> bool:
        return self._position == look.position and self._shared == look.shared

    def _make_room(self, columns: object, count: int) -> None:
        """Forget lanes of columns that were not looked at for longest."""
        for other in [one for one in self._lanes if one != columns]:
            if sum(map(len, self._lanes.values())) + count > self._most:
                del self._lanes[other]

    def _forget(self) -> None:
        self._configs.clear()
        self._lanes.clear()

    def _forget_one(self, pipeline: str) -> None:
        self._configs.pop(pipeline, None)
        for lanes in self._lanes.values():
            lanes.pop(pipeline, None)


# ---------------------------------------------------------------------------------------------------- until when


def holds_until(rows: Rows, now: datetime, grace: timedelta, others: Iterable[datetime]) -> datetime:
    """Until when nothing of a lane changes by itself; not after `now` when it may change at once.

    `others`: further instants at which it does.
    """
    end = now.replace(minute=0, second=0, microsecond=0)
    while end <= now:
        end += _QUARTER
    ends = [end, *others, *_run_ends(rows, now), *_expiries(rows)]
    for schedule in rows.schedules:
        ends += _tick_ends(schedule, now, end, grace)
    return min(ends)


def _run_ends(rows: Rows, now: datetime) -> Iterator[datetime]:
    """When a run that is not done no longer counts as the present."""
    for run in rows.runs:
        if run.status is not RunStatus.COMPLETED:
            for text in (run.first_opened_at, run.opened_at):
                at = parse_instant(text)
                if at is None or at + RECENT + _INEXACT > now:
                    yield now if at is None else at + RECENT - _INEXACT


def _tick_ends(schedule: Schedule, now: datetime, end: datetime, grace: timedelta) -> Iterator[datetime]:
    """When a tick becomes a missed one, and when a missed one is too old to tell of."""
    for length in (grace, RECENT):
        for due in due_between(schedule, now - length, end - length):
            yield (parse_instant(due.at) or now) + length
    if schedule.cron is None and schedule.include is not None:
        tz, at = zone(schedule.timezone), clock_time(schedule.time or "00:00")
        for days in (-1, 0, 1):
            missed = local_time_on((now - grace).date() + timedelta(days=days), at, tz) + grace
            if missed >= now:
                yield missed


def _expiries(rows: Rows) -> Iterator[datetime]:
    stored: Iterable[Any] = (*rows.runs, *rows.sla, *rows.dry, *rows.active.values())
    return (at for one in stored if (at := expiry(one.ttl)) is not None)


def expiry(ttl: object) -> datetime | None:
    """When an item with that `ttl` goes, rounded down; None for never."""
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 <= ttl < _LATEST_TTL:
        return None
    return datetime.fromtimestamp(int(ttl), UTC)


def key_of(columns: Columns) -> object:
    """What tells some columns from others."""
    return columns.bucket, columns.first, columns.count

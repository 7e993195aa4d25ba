"""What people look at costs the same whatever lies behind it: steps of SQLite's machine are counted, not seconds.

Every page is read from a store with a month of history and from one with eight times as many events and runs.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

import msgspec
import pytest

from bench.seeded import seed_database
from interlock.control import records
from interlock.control.views import (
    event_views,
    explain,
    overview,
    pipeline_list,
    pipeline_views,
    run_views,
    sla_stats,
    stats,
)
from interlock.control.views.event_views import Wanted
from interlock.control.views.kept_lanes import KeptLanes
from interlock.decide.lanes import Bucket
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from tests.conformance.manual_clock import ManualClock

NOW: Final = datetime(2026, 3, 30, 12, tzinfo=UTC)
SHORT, LONG = 10, 80
PIPELINES: Final = 12


class _Counted:
    """A store in memory that counts what SQLite does for it."""

    def __init__(self, days: int) -> None:
        self.database = Database.open(None, clock=ManualClock(NOW), inline=True)
        seed_database(self.database, pipelines=PIPELINES, days=days, hourly=0.5, now=NOW)
        self.store = SqliteStore(self.database, self.database.clock)
        self._steps = 0
        self.database._connection.set_progress_handler(self._step, 1)

    def _step(self) -> int:
        self._steps += 1
        return 0

    def steps(self, view: Callable[[SqliteStore], object]) -> int:
        """How many steps of SQLite's machine the view takes, when nothing is known from before."""
        self.forget()
        self._steps = 0
        view(self.store)
        return self._steps

    def forget(self) -> None:
        self.database._items.forget()


@cache
def _stored(days: int) -> _Counted:
    return _Counted(days)


def _name(store: SqliteStore) -> str:
    return store.pipelines()[3]


def _deep(wanted: Wanted) -> Callable[[SqliteStore], object]:
    """A page that begins in the middle of the history."""

    def view(store: SqliteStore) -> object:
        rows = store.query(Table.EVENTS, f"PIPELINE#{_name(store)}", after="0", limit=1)
        cursor = f"{rows[0].key.sk}~{_name(store)}"
        return event_views.page(store, wanted, NOW, cursor=cursor, limit=20)

    return view


_LAST_DAY: Final = overview.Asked(columns=overview.columns_of(NOW, None, None, Bucket.HOUR))
_PRESENT: Final = overview.Now(at=NOW, rate=1.0, position="", grace=timedelta(minutes=5))

VIEWS: Final[dict[str, Callable[[SqliteStore], object]]] = {
    "the list of pipelines": lambda store: pipeline_list.pipelines(store, NOW, limit=100),
    "one pipeline": lambda store: pipeline_views.pipeline(store, _name(store), NOW),
    "its runs": lambda store: run_views.newest(store, _name(store), None, 20),
    "readiness": lambda store: pipeline_views.readiness_of(store, _name(store), NOW),
    "the newest events": lambda store: event_views.page(store, Wanted(), NOW, limit=20),
    "the oldest events": lambda store: event_views.page(store, Wanted(newest_first=False), NOW, limit=20),
    "the newest of a type": lambda store: event_views.page(store, Wanted(types=(EventType.JOB_COMPLETED,)), NOW),
    "a pipeline's events": lambda store: event_views.page(store, Wanted(pipeline=_name(store)), NOW, limit=20),
    "events behind a cursor": _deep(Wanted(newest_first=False)),
    "the overview": lambda store: overview.read(store, _LAST_DAY, _PRESENT),
    "why": lambda store: explain.explain(store, _name(store), NOW),
    "a day's statistics": lambda store: stats.collect(store, NOW, days=1),
    "a week's SLA": lambda store: sla_stats.collect(store, NOW, weeks=1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_does_not_grow_with_history(name: str) -> None:
    short, long = (_stored(days).steps(VIEWS[name]) for days in (SHORT, LONG))
    # A little more: the tree is a level deeper.
    assert long <= short * 1.1 + 50, f"{name}: {short} steps with {SHORT} days of history, {long} with {LONG}"


def test_a_cursor_into_ten_thousand_events_of_one_millisecond_is_as_cheap_as_the_first() -> None:
    database = Database.open(None, clock=ManualClock(NOW), inline=True)
    at = NOW - timedelta(hours=1)
    millis = int(at.timestamp() * 1000)
    event = records.event(EventType.JOB_COMPLETED, RunKey("p", "cron", "2026-03-30"), at, "done")
    item = msgspec.json.encode(records.plain(event)).decode()
    rows = [("PIPELINE#p", f"{millis:013d}#{event.type}#{n:012x}", item, event.type, millis) for n in range(10_000)]
    database.write(
        lambda connection: connection.executemany(
            "INSERT INTO events (pk, sk, item, type, at) VALUES (?, ?, ?, ?, ?)", rows
        )
    )
    store = SqliteStore(database, database.clock)
    counted: list[int] = []
    database._connection.set_progress_handler(lambda: counted.append(1), 1)
    steps: list[int] = []
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        counted.clear()
        page = event_views.page(store, Wanted(), NOW, cursor=cursor, limit=500)
        steps.append(len(counted))
        seen |= {event.id for event in page.items}
        if page.next is None:
            break
        cursor = page.next
    assert len(seen) == 10_000
    assert max(steps) <= steps[0] * 1.1 + 50


def _statements(counted: _Counted, view: Callable[[SqliteStore], object]) -> int:
    """How many statements a view takes, when nothing is known from before."""
    counted.forget()
    seen: list[str] = []
    counted.database._connection.set_trace_callback(seen.append)
    view(counted.store)
    counted.database._connection.set_trace_callback(None)
    return len(seen)


def test_a_page_of_pipelines_is_a_handful_of_statements_whatever_its_length() -> None:
    counted = _Counted(SHORT)

    def page(limit: int) -> Callable[[SqliteStore], object]:
        return lambda store: len(pipeline_list.pipelines(store, NOW, limit=limit).items) == limit

    assert _statements(counted, page(PIPELINES)) <= _statements(counted, page(2)) <= 8


def test_an_overview_is_a_handful_of_statements_whatever_its_lanes() -> None:
    counted = _Counted(SHORT)
    names = tuple(counted.store.pipelines())

    def lanes(count: int) -> Callable[[SqliteStore], object]:
        asked = msgspec.structs.replace(_LAST_DAY, pipelines=names[:count])
        return lambda store: overview.read(store, asked, _PRESENT)

    assert _statements(counted, lanes(2)) <= _statements(counted, lanes(PIPELINES)) <= 20


def test_an_overview_that_was_made_before_reads_no_lane_again() -> None:
    counted = _Counted(SHORT)
    kept = KeptLanes[overview.Looked](counted.store.changed_since)
    made = overview.read(counted.store, _LAST_DAY, _PRESENT, kept)
    assert _statements(counted, lambda store: overview.read(store, _LAST_DAY, _PRESENT, kept)) <= 5
    assert overview.read(counted.store, _LAST_DAY, _PRESENT, kept) == made

"""What people look at, at three sizes each: pipelines, and events of the past. `python -m bench.growth [small]`.

What is flat must stay flat: each figure is the median of a few looks at a store that was seeded beforehand. The floor
is one read of the same file by its key.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from bench.figures import Figure, progress
from bench.seeded import seed_database
from interlock.control.views import event_views, explain, overview, pipeline_list, stats
from interlock.control.views.event_views import Wanted
from interlock.control.watch import watchdog
from interlock.decide.lanes import Bucket
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.events import EventType
from interlock.model.keys import Table
from interlock.ports.store import Key

LOOKS: Final = 7
# Pipelines, and the days of their past: daily ones by pipelines, hourly ones by events. A run leaves about two events,
# and no event is kept for more than 90 days.
BY_PIPELINES: Final = ((100, 5), (1_000, 5), (10_000, 5))
BY_EVENTS: Final = ((250, 1), (250, 8), (250, 84))
SMALL: Final = (((20, 5), (100, 5)), ((20, 1), (20, 8)))

View = Callable[[Engine, datetime], object]


def _pipelines(engine: Engine, now: datetime) -> object:
    return pipeline_list.pipelines(engine.store, now, limit=100)


def _status(engine: Engine, now: datetime) -> object:
    return pipeline_list.pipelines(engine.store, now, limit=1_000_000)


def _overview(engine: Engine, now: datetime) -> object:
    asked = overview.Asked(columns=overview.columns_of(now, None, None, Bucket.HOUR), limit=1_000)
    return overview.read(
        engine.store, asked, overview.Now(at=now, rate=1.0, position="", grace=engine.control.settings.missed_grace)
    )


def _events(engine: Engine, now: datetime) -> object:
    return event_views.page(engine.store, Wanted(), now, limit=100)


def _deep(engine: Engine, now: datetime) -> object:
    middle = engine.store.events_by_type(EventType.JOB_COMPLETED, since=0, until=2**52, limit=1)
    cursor = f"{middle[0].key.sk}~{middle[0].key.pk.partition('#')[2]}"
    return event_views.page(engine.store, Wanted(newest_first=False), now, cursor=cursor, limit=100)


def _stats(engine: Engine, now: datetime) -> object:
    return stats.collect(engine.store, now, days=1)


def _why(engine: Engine, now: datetime) -> object:
    return explain.explain(engine.store, engine.store.pipelines()[7], now)


def _watch(engine: Engine, now: datetime) -> object:
    return watchdog.run(engine.control)


def _watch_again(engine: Engine, now: datetime) -> object:
    """As every pass of a controller but the first: those that can have nothing due are left out."""
    return engine.watch(skip_quiet=True)


BY_EVENTS_VIEWS: Final[dict[str, View]] = {
    "list of 100 pipelines": _pipelines,
    "newest 100 events": _events,
    "100 events behind a cursor": _deep,
    "why": _why,
}
BY_PIPELINES_VIEWS: Final[dict[str, View]] = {
    "list of 100 pipelines": _pipelines,
    "status of all": _status,
    "overview, 1,000 lanes": _overview,
    "statistics of a day": _stats,
    "watchdog, first pass": _watch,
    "watchdog, further pass": _watch_again,
}


def measure(by_pipelines: tuple[tuple[int, int], ...], by_events: tuple[tuple[int, int], ...]) -> list[Figure]:
    """Every view at every size."""
    found: list[Figure] = []
    for pipelines, days in by_events:
        found += _at(pipelines, days, BY_EVENTS_VIEWS, "events")
    for pipelines, days in by_pipelines:
        found += _at(pipelines, days, BY_PIPELINES_VIEWS, "pipelines")
    return found


def _at(pipelines: int, days: int, views: dict[str, View], by: str) -> list[Figure]:
    clock = SystemClock()
    now = clock.now()
    with TemporaryDirectory(prefix="interlock-bench-") as folder:
        path = Path(folder, "store.db")
        progress(f"seeding {pipelines:,} pipelines with {days} days of {'hours' if by == 'events' else 'days'}")
        with Database.open(path, clock=clock, inline=True) as database:
            seed_database(database, pipelines=pipelines, days=days, hourly=1.0 if by == "events" else 0.0, now=now)
        events = _count(path)
        size = f"{_rounded(events)} events" if by == "events" else f"{pipelines:,} pipelines"
        with Database.open(path, clock=clock) as database:
            engine = Engine(database, clock, {}, new_id=lambda: "id")
            engine.prepare()
            progress(f"looking at {size}")
            floor = _median(lambda: SqliteStore(database, clock).get(Key(Table.CONTROL, "CONTROLLER", "CONTROLLER")))
            return [
                Figure(
                    what=what,
                    size=size,
                    value=round(_median(lambda view=view: view(engine, now)) * 1000, 2),  # type: ignore[misc]
                    unit="ms",
                    floor=round(floor * 1000, 4),
                )
                for what, view in views.items()
            ]


def _median(act: Callable[[], object]) -> float:
    act()
    took: list[float] = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        act()
        took.append(time.perf_counter() - began)
    return median(took)


def _count(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("SELECT count(*) FROM events").fetchone()[0])


def _rounded(count: int) -> str:
    return f"{round(count, -3):,}" if count >= 10_000 else f"{count:,}"


def main(small: bool) -> None:
    """Print the figures as JSON."""
    by_pipelines, by_events = SMALL if small else (BY_PIPELINES, BY_EVENTS)
    figures = measure(by_pipelines, by_events)
    print(json.dumps({"bench": "growth", "figures": msgspec.to_builtins(figures)}))


if __name__ == "__main__":
    main("small" in sys.argv[1:])

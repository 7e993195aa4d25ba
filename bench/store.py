"""How fast the SQLite store is: durable commits of one thread and of sixteen, and reads. `python -m bench.store`."""

import json
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.keys import Table, event_sk
from interlock.ports.store import Key, Matches, Put, Update, Write

SECONDS = 2.0
THREADS = 16
RUN = {"status": "PENDING", "version": 1, "attempt": 1, "openedAt": "2026-03-02T08:00:00Z", "openedBy": "cron"}


def three_writes(n: int) -> list[Write]:
    """What a step of a run commits: the run itself, compare-and-set, its wake-up record, an event."""
    pk = f"PIPELINE#p{n % 50}"
    event = {"type": "JOB_TRIGGERED", "severity": "info", "message": "the job was started", "ttl": 1_900_000_000}
    return [
        Put(Key(Table.CONTROL, pk, f"TRIGGER#cron#{n}"), RUN, when=Matches({"version": None})),
        Update(Key(Table.CONTROL, pk, f"ACTIVE#cron#{n}"), add={"wakeSeq": 1}),
        Put(Key(Table.EVENTS, pk, event_sk(1_772_000_000_000 + n, "JOB_TRIGGERED", str(n))), event),
    ]


def rate(work: Callable[[int], object], threads: int = 1) -> dict[str, float]:
    """Calls per second for a while, and the processor time of each."""
    end = time.perf_counter() + SECONDS

    def loop(thread: int) -> int:
        count = 0
        while time.perf_counter() < end:
            work(thread * 10_000_000 + count)
            count += 1
        return count

    started, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        total = sum(pool.map(loop, range(threads)))
    elapsed, used = time.perf_counter() - started, time.process_time() - used
    return {"perSecond": round(total / elapsed), "cpuMicroseconds": round(used / total * 1e6, 1)}


def measure(path: Path) -> dict[str, object]:
    """All figures, on a store in that file."""
    clock = SystemClock()
    with Database.open(path, clock=clock) as database:
        store = SqliteStore(database, clock)
        one_thread = rate(lambda n: store.commit(three_writes(n)))
        many_threads = rate(lambda n: store.commit(three_writes(1_000_000_000 + n)), THREADS)
        key = three_writes(0)[0].key
        return {
            "commitOf3Writes": {"oneThread": one_thread, f"threads{THREADS}": many_threads},
            "get": rate(lambda _: store.get(key)),
            "query50": rate(lambda _: store.query(key.table, key.pk, "TRIGGER#", limit=50)),
        }


def without_disk() -> dict[str, float]:
    """A commit in memory: what it costs of processor time alone."""
    clock = SystemClock()
    with Database.open(None, clock=clock, inline=True) as database:
        store = SqliteStore(database, clock)
        return rate(lambda n: store.commit(three_writes(n)))


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def main() -> None:
    """Print the figures as JSON."""
    with TemporaryDirectory(prefix="interlock-bench-") as folder:
        figures = {"machine": machine(), "disk": measure(Path(folder, "store.db")), "memory": without_disk()}
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

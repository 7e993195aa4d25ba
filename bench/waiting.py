"""What a hundred thousand waiting executions cost: memory, and processor time while nothing happens.

`python -m bench.waiting`. An execution that waits is a row with a due time, not a thread nor an object.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import psutil

from bench.controller import NoJob, controller
from interlock.control import records
from interlock.embedded.asl.execution import ExecutionState, Status, Waiting, WaitKind
from interlock.embedded.asl.execution_rows import insert
from interlock.embedded.runtime import Runtime
from interlock.model import keys
from interlock.model.keys import RunKey
from interlock.model.run import Active
from interlock.ports.store import Put

EXECUTIONS: Final = 100_000
IDLE_SECONDS: Final = 10.0
GOAL_MEGABYTES: Final = 50.0
GOAL_PERCENT: Final = 5.0
_CHUNK: Final = 500
_COMMIT: Final = 100


def measure(count: int = EXECUTIONS) -> dict[str, object]:
    """Arm them under a running controller, let it idle, and compare with the same controller before."""
    process = psutil.Process()
    with controller(NoJob()) as runtime:
        idle_before = _idle_percent(process)
        memory_before = process.memory_info().rss
        began = time.perf_counter()
        _arm(runtime, count)
        armed = time.perf_counter() - began
        memory = (process.memory_info().rss - memory_before) / 1e6
        idle = _idle_percent(process)
        waiting = runtime.engine.database.read("SELECT count(*) FROM executions WHERE due_ms IS NOT NULL")[0][0]
    bare = _bare_seconds(count)
    return {
        "bench": "waiting",
        "executions": waiting,
        "armedSeconds": round(armed, 2),
        "bareSeconds": round(bare, 2),
        "armedTimesBare": round(armed / bare, 1),
        "addedMegabytes": round(memory, 1),
        "goalMegabytes": GOAL_MEGABYTES,
        "idlePercentOfACore": round(idle, 2),
        "idlePercentBefore": round(idle_before, 2),
        "goalPercent": GOAL_PERCENT,
        "withinGoal": memory < GOAL_MEGABYTES and idle < GOAL_PERCENT,
    }


def _idle_percent(process: psutil.Process) -> float:
    """Processor time of the whole process, while this thread only waits."""
    before, began = process.cpu_times(), time.perf_counter()
    time.sleep(IDLE_SECONDS)
    after = process.cpu_times()
    used = after.user + after.system - before.user - before.system
    return 100 * used / (time.perf_counter() - began)


def _arm(runtime: Runtime, count: int) -> None:
    """As the lifecycle leaves them: each waits for its token, the token lies in the run's `ACTIVE#` record."""
    engine, now = runtime.engine, datetime.now(UTC)
    pending: list[Future[None]] = []
    for first in range(0, count, _CHUNK):
        waiting = list(_waiting(range(first, min(first + _CHUNK, count)), now))

        def work(connection: sqlite3.Connection, waiting: list[ExecutionState] = waiting) -> None:
            for one in waiting:
                insert(connection, one)

        pending.append(engine.database.submit(work))
        if len(pending) > 8:
            pending.pop(0).result()
        for start in range(0, len(waiting), _COMMIT):
            engine.store.commit([_active(one) for one in waiting[start : start + _COMMIT]])
    for future in pending:
        future.result()


def _bare_seconds(count: int) -> float:
    """How long SQLite alone takes for the same rows, in the same number of durable commits."""
    states = list(_waiting(range(count), datetime.now(UTC)))
    items = [msgspec.json.encode(_active(one).item).decode() for one in states]
    rows = [(one.name, msgspec.json.encode(one).decode(), one.name) for one in states]
    with (
        TemporaryDirectory(prefix="interlock-bench-") as folder,
        closing(sqlite3.connect(f"{folder}/bare.db", isolation_level=None)) as bare,
    ):
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute(
            "CREATE TABLE executions (name TEXT PRIMARY KEY, row TEXT, token TEXT UNIQUE) STRICT, WITHOUT ROWID"
        )
        bare.execute("CREATE TABLE items (name TEXT PRIMARY KEY, item TEXT) STRICT, WITHOUT ROWID")
        bare.execute("CREATE TABLE changes (seq INTEGER PRIMARY KEY, item TEXT) STRICT")
        began = time.perf_counter()
        for first in range(0, count, _CHUNK):
            _insert_bare(bare, "executions (name, row, token)", rows[first : first + _CHUNK])
            for start in range(first, min(first + _CHUNK, count), _COMMIT):
                few = items[start : start + _COMMIT]
                named = [(row[0], item) for row, item in zip(rows[start : start + _COMMIT], few, strict=True)]
                _insert_bare(bare, "items (name, item)", named, "changes (item)", [(item,) for item in few])
        return time.perf_counter() - began


def _insert_bare(bare: sqlite3.Connection, *tables_and_rows: Any) -> None:
    bare.execute("BEGIN IMMEDIATE")
    for table, rows in zip(tables_and_rows[::2], tables_and_rows[1::2], strict=True):
        bare.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    bare.execute("COMMIT")


def _waiting(numbers: range, now: datetime) -> Iterator[ExecutionState]:
    for number in numbers:
        day = (now - timedelta(days=number // 1000)).date()
        key = RunKey(f"pipeline-{number % 1000:04d}", "stream", day.isoformat())
        name = keys.execution_name(key, 1)
        data = {
            "pipeline": key.pipeline,
            "schedule": key.schedule,
            "date": key.date,
            "attempt": 1,
            "pk": key.pk,
            "activeSk": key.sk(keys.ACTIVE),
            "evaluation": {"status": "waiting", "wakeSeq": "0", "waitSeconds": 3600},
        }
        yield ExecutionState(
            name=name,
            state="WaitInterval",
            data=data,
            status=Status.RUNNING,
            started_at=now,
            entered_at=now,
            steps=4,
            waiting=Waiting(WaitKind.TOKEN, now + timedelta(hours=1), f"{name}:4.0"),
            times_out_at=now + timedelta(hours=12),
        )


def _active(execution: ExecutionState) -> Put:
    slot = RunKey(execution.data["pipeline"], execution.data["schedule"], execution.data["date"])
    token = execution.waiting.token if execution.waiting else None
    item = records.plain(Active(attempt=1, wake_seq=0, token=token))
    return Put(records.run_record(slot, keys.ACTIVE), item)


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps(measure(), indent=2))


if __name__ == "__main__":
    main()

"""Many runs that are ready at once, and a small pool: what each costs does not grow with how many there are.

Counted, not timed: commits, and those that failed because others were faster.
"""

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from bench.controller import NoJob, apply, document, trigger_later
from interlock.control.context import Settings
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.runtime import Runtime
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.config import JobType
from interlock.model.events import Event, EventType

_DATE: Final = "2026-03-01"
_SLOTS: Final = 16
_PATIENCE: Final = 120.0


@contextmanager
def running(folder: Path) -> Iterator[Runtime]:
    clock, ids = SystemClock(), itertools.count(1)
    with Database.open(folder / "store.db", clock=clock) as database:
        settings = Settings(pools={"commands": _SLOTS})
        engine = Engine(
            database, clock, {JobType.COMMAND: NoJob()}, new_id=lambda: f"id-{next(ids)}", settings=settings
        )
        runtime = Runtime(engine)
        runtime.start()
        try:
            yield runtime
        finally:
            runtime.stop()


def burst(runtime: Runtime, names: list[str]) -> None:
    """All of them ready at once; until all are complete."""
    done = threading.Semaphore(0)

    def completed(event: Event) -> None:
        if event.date == _DATE:
            done.release()

    runtime.engine.bus.subscribe(completed, {"detail-type": [EventType.JOB_COMPLETED.value]})
    for future in [trigger_later(runtime.engine, name, _DATE) for name in names]:
        assert future.result() is None
    for _ in names:
        assert done.acquire(timeout=_PATIENCE)


def test_a_run_of_a_burst_takes_few_commits_however_many_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"p{number:03d}" for number in range(160)]
    counted: Counter[str] = Counter()
    commit = SqliteStore.commit

    def counting(self: SqliteStore, writes: Any) -> Any:
        conflict = commit(self, writes)
        counted["commits"] += 1
        counted["conflicts"] += conflict is not None
        return conflict

    with running(tmp_path) as runtime:
        for name in names:
            apply(runtime.engine, document(name))
        monkeypatch.setattr(SqliteStore, "commit", counting)
        burst(runtime, names)
    assert counted["commits"] / len(names) <= 13, counted
    assert counted["conflicts"] / len(names) <= 2, counted

"""A controller at work while another process writes to the same file: nothing is lost, nothing is done twice."""

import itertools
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any, Final

from interlock.config.stored import read_stored
from interlock.control import catalog, records, writing
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.runtime import Runtime
from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model.config import JobType, PipelineConfig
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from interlock.ports.jobs import JobRequest, JobStarted, JobState, JobStatus, Recovery
from tests.mute_target import MuteTarget

PATIENCE: Final = 60.0
PIPELINES: Final = 20
DAYS: Final = tuple(f"2026-03-{day:02d}" for day in range(1, 7))

# It contradicts itself in any order (too few rows, no rows at all, not ready), often from several threads at once and
# holding the lock for a while; the last it says of every sensor is what lets the run of that day go on.
OTHER = """
import random, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.keys import Table
from interlock.ports.store import Delete, Key, Put

path, pipelines, days = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")

def sensor(pipeline, name, day):
    return Key(Table.CONTROL, f"PIPELINE#p{pipeline}", f"SENSOR#{name}#{day}")

def say(pipeline, day):
    dice = random.Random(f"{pipeline} {day}")
    ready, rows = sensor(pipeline, "ready", day), sensor(pipeline, "row-count", day)
    doubts = [
        [Put(rows, {"count": 1})],
        [Delete(rows)],
        [Put(ready, {"status": "not yet"}), Put(rows, {"count": 2})],
        [Put(sensor(pipeline, "nobody-reads-this", day), {"n": 1})],
        [Delete(ready), Delete(sensor(pipeline, "nobody-reads-this", day))],
        [Put(ready, {"status": "ready"})],
    ]
    dice.shuffle(doubts)
    end = [[Put(ready, {"status": "ready"})], [Put(rows, {"count": 10})]]
    dice.shuffle(end)
    for writes in [*doubts, *end]:
        store.commit(writes)
        if dice.random() < 0.05:
            database.write(lambda connection: time.sleep(0.02))

clock = SystemClock()
with Database.open(path, clock=clock) as database, ThreadPoolExecutor(4) as pool:
    store = SqliteStore(database, clock)
    slots = [(pipeline, day) for pipeline in range(pipelines) for day in days]
    random.Random(1).shuffle(slots)
    list(pool.map(lambda slot: say(*slot), slots))
"""


class Target(MuteTarget):
    """Jobs that succeed as they are started."""

    def __init__(self) -> None:
        self.starts: list[RunKey] = []

    def start(self, request: JobRequest) -> JobStarted:
        self.starts.append(request.key)
        return JobStarted(job_id=f"job-{request.run_id}", status=JobStatus(state=JobState.SUCCEEDED))

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        return Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        return JobStatus(state=JobState.SUCCEEDED)


class Completions:
    """Waits for the events that tell of completed runs."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self.runs: list[RunKey] = []

    def __call__(self, event: Event) -> None:
        with self._news:
            self.runs.append(RunKey(event.pipeline_id, event.schedule_id, event.date))
            self._news.notify_all()

    def wait(self, count: int) -> bool:
        with self._news:
            return self._news.wait_for(lambda: len(set(self.runs)) >= count, PATIENCE)


def _document(name: str) -> dict[str, Any]:
    ready = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
    rows = {"key": "row-count", "check": "gte", "field": "count", "value": 10}
    return {
        "pipeline": {"id": name},
        # Only a wake-up gets a run on in time: the interval is too long for this test to bear.
        "schedule": {"trigger": ready, "evaluation": {"window": "12h", "interval": "1h"}},
        "validation": {"rules": [ready, rows]},
        "job": {"type": "command", "config": {"command": ["load"]}},
    }


@contextmanager
def _controller(path: Path, target: Target, done: Completions) -> Iterator[Engine]:
    clock, ids = SystemClock(), itertools.count(1)
    with Database.open(path, clock=clock) as database:
        engine = Engine(database, clock, {JobType.COMMAND: target}, new_id=lambda: f"{next(ids):06d}")
        engine.bus.subscribe(done, {"detail-type": [EventType.JOB_COMPLETED.value]})
        runtime = Runtime(engine, watchdog_every=timedelta(hours=1))
        runtime.start()
        try:
            for number in range(PIPELINES):
                document = _document(f"p{number}")
                config = read_stored(document, {})
                assert isinstance(config, PipelineConfig), config
                catalog.apply_config(engine.control, config, document)
            yield engine
            assert runtime.engine.database.loops.problems() == []
        finally:
            runtime.stop()


def _until_nothing_is_left(engine: Engine) -> None:
    end = monotonic() + PATIENCE
    while engine.router.lag() or engine.sink.lag() or engine.executions.list_open():
        assert monotonic() < end, (engine.router.lag(), engine.sink.lag(), engine.executions.list_open())
        engine.database.wait_for_change(engine.database.head(), 0.02)


def test_every_run_completes_whatever_another_process_writes_meanwhile(tmp_path: Path) -> None:
    path, target, done = tmp_path / "interlock.db", Target(), Completions()
    slots = [RunKey(f"p{number}", "stream", day) for number in range(PIPELINES) for day in DAYS]
    with _controller(path, target, done) as engine:
        other = subprocess.Popen([sys.executable, "-c", OTHER, str(path), str(PIPELINES), ",".join(DAYS)])
        try:
            for key in slots:  # this process has its say, too
                writing.write_sensor(engine.control, key.pipeline, f"note#{key.date}", {"n": 1})
            assert other.wait(PATIENCE) == 0
        finally:
            other.kill()
            other.wait()
        assert done.wait(len(slots)), sorted(set(slots) - set(done.runs))
        _until_nothing_is_left(engine)
        for key in slots:
            run = records.get_run(engine.store, key)
            assert run is not None
            assert run.status is RunStatus.COMPLETED, key
        assert DeadLetters(engine.database).count() == 0
    assert Counter(target.starts) == Counter(slots)
    assert set(done.runs) == set(slots)

"""A whole embedded controller on a real file, as `interlock serve` runs it, with a job that does nothing."""

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from interlock.config.stored import read_stored
from interlock.control import catalog, writing
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.runtime import Runtime
from interlock.embedded.sqlite.database import Database
from interlock.model.config import JobType, PipelineConfig
from interlock.model.times import epoch_millis
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery
from interlock.ports.store import Conflict

TRIGGER: Final = "ready"
_DONE: Final = JobStatus(state=JobState.SUCCEEDED)


class NoJob:
    """A job that has succeeded as soon as it is started. `on_start` is told the run and the time of the call."""

    def __init__(self, on_start: Callable[[JobRequest, float], None] | None = None) -> None:
        self._on_start = on_start

    def start(self, request: JobRequest) -> JobStarted:
        if self._on_start is not None:
            self._on_start(request, time.perf_counter())
        return JobStarted(job_id=request.run_id, status=_DONE)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        del request
        return Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        del request, job_id
        return _DONE

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        del request, job_id
        return JobStop.ENDED

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        del request, job_id
        return JobOutput(next_offset=offset, complete=True)

    def link(self, request: JobRequest, job_id: str) -> str:
        del request, job_id
        return ""


@contextmanager
def controller(job: NoJob) -> Iterator[Runtime]:
    """One that runs, on a fresh file."""
    clock = SystemClock()
    with (
        TemporaryDirectory(prefix="interlock-bench-") as folder,
        Database.open(Path(folder, "store.db"), clock=clock) as database,
    ):
        engine = Engine(database, clock, {JobType.COMMAND: job}, new_id=lambda: uuid.uuid4().hex[:12])
        runtime = Runtime(engine)
        runtime.start()
        try:
            yield runtime
        finally:
            runtime.stop()


def document(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    """A pipeline that a write of `ready` opens, with these rules besides."""
    condition = {"key": TRIGGER, "check": "equals", "field": "status", "value": "ready"}
    return {
        "pipeline": {"id": name, "owner": "bench"},
        "schedule": {"trigger": condition, "evaluation": {"window": "12h", "interval": "1h"}},
        "validation": {"trigger": "ALL", "rules": [condition, *rules]},
        "job": {"type": "command", "config": {"command": ["true"]}},
    }


def apply(engine: Engine, written: dict[str, Any]) -> None:
    """Store a pipeline."""
    config = read_stored(written, {})
    if not isinstance(config, PipelineConfig):
        raise ValueError(f"the bench's own config is invalid: {config}")
    catalog.apply_config(engine.control, config, written)


def trigger(engine: Engine, pipeline: str, date: str) -> None:
    """Say that a day of a pipeline is ready; durable when this returns."""
    data = {"status": "ready", "date": date}
    writing.write_sensor(engine.control, pipeline, f"{TRIGGER}#{date}", data)


def trigger_later(engine: Engine, pipeline: str, date: str) -> Future[Conflict | None]:
    """As `trigger`, without waiting for it to be durable."""
    data = {"status": "ready", "date": date}
    put, _ = writing.prepare_sensor(engine.control, pipeline, f"{TRIGGER}#{date}", data)
    return engine.database.submit(
        lambda connection: engine.store.apply(connection, [put], epoch_millis(engine.clock.now()))
    )

"""The side that survives: starts controllers, kills them, and looks at what they left in the store."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

from interlock.control import records
from interlock.embedded.engine import Engine
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import Run
from interlock.ports.jobs import JobRequest, JobStarted, JobStatus, Recovery
from interlock.ports.store import Item, Put
from tests.crash import pipelines
from tests.crash.ledger import read_starts
from tests.mute_target import MuteTarget

PATIENCE = 90.0
ROOT = Path(__file__).parents[2]


class _NoJobs(MuteTarget):
    """The surviving side drives nothing, so it starts nothing."""

    def start(self, request: JobRequest) -> JobStarted:
        raise AssertionError(f"{request} was started by the side that only watches")

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        raise AssertionError(f"{request} was looked for by the side that only watches")

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        raise AssertionError(f"{job_id} of {request} was asked for by the side that only watches")


class Scene:
    """A store, and at most one controller at a time."""

    def __init__(self, folder: Path) -> None:
        self._store = folder / "interlock.db"
        self._process: subprocess.Popen[str] | None = None
        self.engine: Engine = pipelines.engine_on(self._store, _NoJobs())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self.kill()
        self.engine.database.close()

    # ------------------------------------------------------------------------------------------------ the controller

    def kill(self) -> None:
        """`kill -9`."""
        assert self._process is not None
        self._process.kill()
        self._reap()

    def wait_for_death(self) -> int:
        """The controller kills itself; its exit status."""
        assert self._process is not None
        self._process.wait(PATIENCE)
        return self._reap()

    def _reap(self) -> int:
        process, self._process = self._process, None
        assert process is not None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return process.wait()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds, looking again as the store changes."""
        end = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < end, "it did not come to pass"
            self.engine.database.wait_for_change(self.engine.database.head(), 0.02)

    # ----------------------------------------------------------------------------------------------------- the store

    def say_ready(self, key: RunKey, *, direct: bool) -> None:
        """Write the sensor that opens a run: as our API does, or as flat attributes. Acknowledged when this returns."""
        data: Item = {"status": "ready", "date": key.date}
        control = self.engine.control
        item = data if direct else records.sensor_item(data, control.now())
        conflict = control.store.commit([Put(records.control_key(key.pk, keys.sensor_sk(f"ready#{key.date}")), item)])
        assert conflict is None

    def has_sensor(self, key: RunKey) -> bool:
        found = records.get_sensors(self.engine.store, key.pipeline, [f"ready#{key.date}"])
        return all(sensor.data["status"] == "ready" for sensor in found.values()) and len(found) == 1

    def run(self, key: RunKey) -> Run | None:
        return records.get_run(self.engine.store, key)

    def events(self, type_: EventType) -> Counter[tuple[str, str]]:
        """How often each run published this."""
        found = self.engine.store.events_by_type(type_, since=0, until=2**52, limit=100_000)
        return Counter((record.item["pipelineId"], record.item["date"]) for record in found)

    def dead_letters(self) -> int:
        return DeadLetters(self.engine.database).count()


class Stage(Scene):
    """A scene whose jobs are lines of a ledger."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ledger = folder / "starts.tsv"

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start a controller; returns when it runs."""
        assert self._process is None
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.controller_process", str(self._store), str(self._ledger)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "started\n"

    def stop(self) -> int:
        """Let it end in peace; its exit status."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        return self._reap()

    def starts(self) -> Counter[tuple[str, str, int]]:
        """How often the job of each attempt was started."""
        return Counter((pipeline, day, attempt) for pipeline, day, attempt, _ in read_starts(self._ledger))


def once_each(slots: Iterable[RunKey]) -> Counter[tuple[str, str]]:
    """What `events` finds when every run published something exactly once."""
    return Counter((key.pipeline, key.date) for key in slots)

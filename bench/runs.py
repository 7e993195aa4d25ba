"""How many runs a second, from the sensor write to COMPLETED, with a job that does nothing: `python -m bench.runs`."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import date, timedelta
from statistics import median
from typing import Final

from bench.controller import NoJob, apply, controller, document, trigger_later
from interlock.embedded.runtime import Runtime
from interlock.model.events import Event, EventType

GOAL_PER_SECOND: Final = 600
SECONDS: Final = 12.0
WARM_UP: Final = 2.0
PIPELINES: Final = 100
# Writes whose run has not completed yet: enough to keep the controller busy, few enough that no queue hides its pace.
OPEN_RUNS: Final = 128

Slot = tuple[str, str]


class Completions:
    """Counts runs from their write to their JOB_COMPLETED, and lets in no more than `OPEN_RUNS` at a time."""

    def __init__(self) -> None:
        self.room = threading.Semaphore(OPEN_RUNS)
        self.written: dict[Slot, float] = {}
        self.took: list[tuple[float, float]] = []

    def __call__(self, event: Event) -> None:
        now = time.perf_counter()
        started = self.written.pop((event.pipeline_id, event.date), None)
        if started is not None:
            self.took.append((now, now - started))
            self.room.release()


def slots() -> Iterator[Slot]:
    """One day after the other of every pipeline."""
    day = date(2000, 1, 1)
    while True:
        for number in range(PIPELINES):
            yield f"pipeline-{number:03d}", day.isoformat()
        day += timedelta(days=1)


def measure(seconds: float = SECONDS) -> dict[str, object]:
    """Runs a second, sustained, and how long one takes under that load."""
    done = Completions()
    with controller(NoJob()) as runtime:
        runtime.engine.bus.subscribe(done, {"detail-type": [EventType.JOB_COMPLETED.value]})
        for number in range(PIPELINES):
            apply(runtime.engine, document(f"pipeline-{number:03d}"))
        began, used = time.perf_counter(), time.process_time()
        _write(runtime, done, began + WARM_UP + seconds)
        ended, used = time.perf_counter(), time.process_time() - used
    counted = [took for at, took in done.took if began + WARM_UP <= at <= ended]
    rate = len(counted) / (ended - began - WARM_UP)
    return {
        "bench": "runs",
        "seconds": round(ended - began - WARM_UP, 1),
        "runs": len(counted),
        "runsPerSecond": round(rate, 1),
        "goalRunsPerSecond": GOAL_PER_SECOND,
        "withinGoal": rate >= GOAL_PER_SECOND,
        "cpuMillisecondsPerRun": round(1000 * used / max(len(done.took), 1), 2),
        "openRuns": OPEN_RUNS,
        "medianMilliseconds": round(1000 * median(counted), 1) if counted else None,
    }


def _write(runtime: Runtime, done: Completions, end: float) -> None:
    """Keep the controller busy until `end`, as the API does: one thread that waits for no commit."""
    todo = slots()
    while done.room.acquire(timeout=max(end - time.perf_counter(), 0)):
        slot = next(todo)
        done.written[slot] = time.perf_counter()
        trigger_later(runtime.engine, *slot)


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps(measure(), indent=2))


if __name__ == "__main__":
    main()

"""From readiness to the start of the job, on an idle controller. `python -m bench.latency`.

The clock starts when the write that makes the last rule pass is acknowledged, and stops when the target is called.
"""

import json
import queue
import time
from datetime import date, timedelta
from statistics import quantiles
from typing import Final

from bench.controller import NoJob, apply, controller, document, trigger
from interlock.control import writing
from interlock.embedded.asl.execution import WaitKind
from interlock.embedded.runtime import Runtime
from interlock.ports.jobs import JobRequest

SAMPLES: Final = 400
WARM_UP: Final = 20
GOAL_P50: Final = 10.0
GOAL_P99: Final = 40.0
PATIENCE: Final = 30.0
_PIPELINE: Final = "pipeline"
_ROWS: Final = {"key": "row-count", "check": "gte", "field": "count", "value": 1000}


def measure(samples: int = SAMPLES) -> dict[str, object]:
    """Milliseconds from the acknowledged write to the call of the target, and to the write's own acknowledgement."""
    calls: queue.SimpleQueue[float] = queue.SimpleQueue()

    def on_start(request: JobRequest, at: float) -> None:
        del request
        calls.put(at)

    after, writes = list[float](), list[float]()
    with controller(NoJob(on_start)) as runtime:
        apply(runtime.engine, document(_PIPELINE, _ROWS))
        for number in range(WARM_UP + samples):
            day = (date(2000, 1, 1) + timedelta(days=number)).isoformat()
            trigger(runtime.engine, _PIPELINE, day)
            _until_it_waits(runtime)
            before = time.perf_counter()
            writing.write_sensor(runtime.engine.control, _PIPELINE, f"row-count#{day}", {"count": 1000, "date": day})
            acknowledged = time.perf_counter()
            # The job may be called before the writer is told that its write is durable.
            after.append(max(calls.get(timeout=PATIENCE) - acknowledged, 0.0))
            writes.append(acknowledged - before)
    return _report(after[WARM_UP:], writes[WARM_UP:])


def _until_it_waits(runtime: Runtime) -> None:
    """The run is open, its first evaluation failed, and it waits for a wake-up."""
    database, end = runtime.engine.database, time.monotonic() + PATIENCE
    while True:
        head = database.head()
        if any(one.waiting is WaitKind.TOKEN for one in runtime.engine.executions.list_open(limit=1)):
            return
        if time.monotonic() > end:
            raise TimeoutError("the run did not come to wait")
        database.wait_for_change(head, 0.1)


def _report(after: list[float], writes: list[float]) -> dict[str, object]:
    p50, p99 = _percentile(after, 50), _percentile(after, 99)
    return {
        "bench": "latency",
        "samples": len(after),
        "p50Milliseconds": p50,
        "p99Milliseconds": p99,
        "worstMilliseconds": round(1000 * max(after), 2),
        "goalP50Milliseconds": GOAL_P50,
        "goalP99Milliseconds": GOAL_P99,
        "withinGoal": p50 < GOAL_P50 and p99 < GOAL_P99,
        "sensorWriteP50Milliseconds": _percentile(writes, 50),
    }


def _percentile(seconds: list[float], percent: int) -> float:
    return round(1000 * quantiles(seconds, n=100, method="inclusive")[percent - 1], 2)


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps(measure(), indent=2))


if __name__ == "__main__":
    main()

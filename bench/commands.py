"""From a sensor write over HTTP to the first instruction of the command it starts. `python -m bench.commands`.

A real `interlock serve`; each command writes the time it begins. The floor is a process started by us, alone. Then
many pipelines are made ready at once: when has the last of them started, and how long does a write take meanwhile?
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
import msgspec

from bench.figures import Figure, progress
from interlock.embedded.process.discovery import find_server

SAMPLES: Final = 60
# How many pipelines become ready at once, and how soon the last of their commands is to be started.
AT_ONCE: Final = {200: 2.0, 2_000: 20.0}
MEANWHILE: Final = 50.0
_PATIENCE: Final = 120.0
_BATCH: Final = 500
_PROGRAM: Final = 'date +%s.%N > "$1"'


def measure(samples: int = SAMPLES, at_once: Mapping[int, float] = AT_ONCE) -> list[Figure]:
    """All of it."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as name:
        folder = Path(name)
        (folder / "begun").mkdir()
        (folder / "pipelines").mkdir()
        for number in range(max(at_once)):
            (folder / "pipelines" / f"p{number}.json").write_text(json.dumps(_document(folder, f"p{number}")))
        floor = _floor(folder)
        with _served(folder) as client:
            progress("one command at a time")
            took = sorted([_first_instruction(client, folder, day) for day in range(samples + 3)][3:])
            bursts = [_burst(client, folder, count, goal) for count, goal in at_once.items()]
    return [
        Figure(
            what="sensor write to first instruction of the command",
            size="p50",
            value=round(median(took) * 1000, 1),
            unit="ms",
            floor=round(floor * 1000, 1),
            goal=10,
        ),
        Figure(
            what="sensor write to first instruction of the command",
            size="p99",
            value=round(took[len(took) * 99 // 100] * 1000, 1),
            unit="ms",
        ),
        *(figure for burst in bursts for figure in burst),
    ]


def _burst(client: httpx.Client, folder: Path, count: int, goal: float) -> list[Figure]:
    progress(f"{count:,} pipelines at once")
    seconds, writes = _at_once(client, folder, count)
    writes.sort()
    size = f"{count:,} ready at once"
    slowest = writes[len(writes) * 99 // 100] * 1000
    return [
        Figure(what="all commands started", size=size, value=round(seconds, 2), unit="s", goal=goal),
        Figure(what="sensor write meanwhile, p99", size=size, value=round(slowest, 1), unit="ms", goal=MEANWHILE),
    ]


def _document(folder: Path, name: str) -> dict[str, Any]:
    condition = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
    begun = f"{folder}/begun/{name}-${{DATE}}"
    return {
        "pipeline": {"id": name},
        "schedule": {"trigger": condition},
        "validation": {"rules": [condition]},
        "job": {"type": "command", "config": {"command": ["sh", "-c", _PROGRAM, "sh", begun]}},
    }


def _floor(folder: Path) -> float:
    """A process that does the same, started by nobody but us."""
    took: list[float] = []
    for number in range(20):
        begun = folder / f"floor-{number}"
        began = time.time()
        subprocess.run(["sh", "-c", _PROGRAM, "sh", str(begun)], check=True)
        took.append(float(begun.read_text()) - began)
    return median(took)


@contextmanager
def _served(folder: Path) -> Iterator[httpx.Client]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "interlock", "serve", "--port", "0", "--log-level", "warning"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stderr=log, stdout=log, env=environment)
    try:
        while (found := find_server(folder / "interlock.db")) is None:
            if server.poll() is not None:
                raise RuntimeError((folder / "log").read_text()[-2000:])
            time.sleep(0.02)
        with httpx.Client(base_url=f"{found.url}/api/v1", timeout=60) as client:
            yield client
    finally:
        server.terminate()
        server.wait(60)


def _first_instruction(client: httpx.Client, folder: Path, day: int) -> float:
    date = f"2000-{day // 28 + 1:02d}-{day % 28 + 1:02d}"
    began = time.time()
    _write(client, "p0", date)
    return _begun(folder / "begun" / f"p0-{date}") - began


def _write(client: httpx.Client, pipeline: str, date: str) -> None:
    data = {"status": "ready", "date": date}
    client.put(f"/pipelines/{pipeline}/sensors/ready%23{date}", json=data).raise_for_status()


def _begun(file: Path) -> float:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if file.exists() and (text := file.read_text()):
            return float(text)
        time.sleep(0.001)
    raise TimeoutError(f"{file} was never written")


def _at_once(client: httpx.Client, folder: Path, count: int) -> tuple[float, list[float]]:
    """Seconds until the last has started; and the latencies of writes that start nothing meanwhile."""
    date = f"{2001 + count}-01-01"
    observations = [
        {"pipeline": f"p{number}", "key": f"ready#{date}", "data": {"status": "ready", "date": date}}
        for number in range(count)
    ]
    over = threading.Event()
    latencies: list[float] = []
    watcher = threading.Thread(target=_keep_writing, args=(client, over, latencies))
    watcher.start()
    began = time.time()
    for first in range(0, count, _BATCH):
        some = observations[first : first + _BATCH]
        client.post("/sensors:batch", json={"sensors": some}).raise_for_status()
    last = max(_begun(folder / "begun" / f"p{number}-{date}") for number in range(count))
    over.set()
    watcher.join()
    return last - began, latencies


def _keep_writing(client: httpx.Client, over: threading.Event, latencies: list[float]) -> None:
    number = 0
    while not over.is_set() or not latencies:
        number += 1
        began = time.perf_counter()
        client.put("/pipelines/p0/sensors/other", json={"n": number}).raise_for_status()
        latencies.append(time.perf_counter() - began)


def main() -> None:
    """Print the figures as JSON."""
    print(json.dumps({"bench": "commands", "figures": msgspec.to_builtins(measure())}))


if __name__ == "__main__":
    main()

"""From a sensor write over HTTP to the first instruction of the command it starts. `python -m bench.commands`.

A real `interlock serve`. From just before the first byte of the request is sent, over an open connection, to the time
that the command, `date`, writes first of all. The floor is the same command started by us, alone. Then many pipelines
are made ready at once: when has the last of them started, and how long does a write take meanwhile?
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO, Final

import httpx
import msgspec

from bench.figures import Figure, progress
from interlock.embedded.process.discovery import find_server
from interlock.embedded.sqlite.private_files import JOBS
from interlock.jobs.command.wrapper import OUTPUT

SAMPLES: Final = 60
# How many pipelines become ready at once, and how soon the last of their commands is to be started.
AT_ONCE: Final = {200: 2.0, 2_000: 20.0}
MEANWHILE: Final = 50.0
_PATIENCE: Final = 120.0
_BATCH: Final = 500
_PROGRAM: Final = 'date +%s.%N > "$1"'
_FIRST: Final = "first"
_NOW: Final = ("date", "+%s.%N")
_WARM_UP: Final = 3


def measure(samples: int = SAMPLES, at_once: Mapping[int, float] = AT_ONCE) -> list[Figure]:
    """All of it."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as name:
        folder = Path(name)
        (folder / "begun").mkdir()
        (folder / "pipelines").mkdir()
        (folder / "pipelines" / "first.json").write_text(json.dumps(_document(folder, _FIRST)))
        for number in range(max(at_once)):
            (folder / "pipelines" / f"p{number}.json").write_text(json.dumps(_document(folder, f"p{number}")))
        floor = _floor()
        with _served(folder) as client:
            progress("one command at a time")
            took = sorted(_first_instructions(client, folder, samples))
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
    command = list(_NOW) if name == _FIRST else ["sh", "-c", _PROGRAM, "sh", begun]
    return {
        "pipeline": {"id": name},
        "schedule": {"trigger": condition},
        "validation": {"rules": [condition]},
        "job": {"type": "command", "config": {"command": command}},
    }


def _floor() -> float:
    """A process that does the same, started by nobody but us."""
    took: list[float] = []
    for _ in range(20):
        began = time.time()
        took.append(float(subprocess.run(_NOW, check=True, capture_output=True).stdout) - began)
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


def _first_instructions(client: httpx.Client, folder: Path, samples: int) -> list[float]:
    """Seconds of each; the first few, which load what is loaded once, are left out."""
    jobs, seen = folder / f"interlock.db{JOBS}", set[str]()
    took: list[float] = []
    with socket.create_connection((client.base_url.host, client.base_url.port or 80)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = connection.makefile("rb")
        for day in range(samples + _WARM_UP):
            request = _request(f"2000-{day // 28 + 1:02d}-{day % 28 + 1:02d}")
            began = time.time()
            connection.sendall(request)
            _read_answer(answers)
            took.append(_begun(_new_output(jobs, seen)) - began)
            time.sleep(0.05)  # until its end is written down, too
    return took[_WARM_UP:]


def _read_answer(answers: BinaryIO) -> None:
    status, length = answers.readline(), 0
    while (line := answers.readline().lower().strip()) != b"":
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    body = answers.read(length)
    if not status.startswith(b"HTTP/1.1 200"):
        raise RuntimeError((status + body).decode())


def _request(date: str) -> bytes:
    body = json.dumps({"status": "ready", "date": date}).encode()
    path = f"/api/v1/pipelines/{_FIRST}/sensors/ready%23{date}"
    return f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _new_output(jobs: Path, seen: set[str]) -> Path:
    """The output of the command that was started last."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        new = [one for one in os.listdir(jobs) if one not in seen and one[0] != "."] if jobs.exists() else []
        if new:
            seen.update(new)
            return jobs / new[0] / OUTPUT
        time.sleep(0.001)
    raise TimeoutError(f"there is no new folder in {jobs}")


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

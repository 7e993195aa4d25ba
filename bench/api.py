"""Sensor writes over HTTP: acknowledged writes per second at 64 connections, each after a durable commit.

The server is a real `interlock serve` on a real file; the load comes from this process, over keep-alive connections and
plain sockets, so that what is measured is the server and not a client library. Beside it, in the same run, the floor
(`bench.bare`): a bare ASGI application with the same commit. On a busy machine the ratios and the processor time of a
write say more than the rates.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from interlock.embedded.process.discovery import find_server

CONNECTIONS: Final = 64
SECONDS: Final = 10.0
PIPELINES: Final = 20
GOAL: Final = 3000
GOAL_OF_FLOOR: Final = 0.3
BATCH_CONNECTIONS: Final = 4
BATCH: Final = 500
BATCH_GOAL: Final = 20_000
_TICKS: Final = os.sysconf("SC_CLK_TCK")

_DOCUMENT: Final = {
    "schedule": {"trigger": {"key": "up", "check": "equals", "field": "status", "value": "ready"}},
    "validation": {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 1000000000}]},
    "job": {"type": "external"},
}
SERVE: Final = ["interlock", "serve", "--port", "0", "--log-level", "warning"]
Request = Callable[[int, int], bytes]


def run(seconds: float = SECONDS) -> dict[str, Any]:
    """Measure; the figures and the goals."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pipelines(folder)
        floor = _serve(
            folder, ["bench.bare", str(folder)], lambda: _bare_port(folder / "port"), [(put, CONNECTIONS)], seconds
        )
        loads = [(put, CONNECTIONS), (_batch, BATCH_CONNECTIONS)]
        ours = _serve(folder, SERVE, lambda: port_of(folder / "interlock.db"), loads, seconds)
    return _report(floor[0], ours[0], ours[1], seconds)


def write_pipelines(folder: Path) -> None:
    """The pipelines that the load writes sensors of."""
    (folder / "pipelines").mkdir()
    for index in range(PIPELINES):
        document = {"pipeline": {"id": f"p{index}"}, **_DOCUMENT}
        (folder / "pipelines" / f"p{index}.json").write_text(json.dumps(document))


def _report(floor: "_Load", puts: "_Load", batches: "_Load", seconds: float) -> dict[str, Any]:
    latencies = sorted(puts.latencies)
    rate = round(len(latencies) / seconds)
    floor_rate = round(len(floor.latencies) / seconds)
    observations = round(len(batches.latencies) * BATCH / seconds)
    return {
        "bench": "api",
        "sensorWritesPerSecond": rate,
        "goalSensorWritesPerSecond": GOAL,
        "floorWritesPerSecond": floor_rate,
        "ofFloor": round(rate / floor_rate, 2),
        "goalOfFloor": GOAL_OF_FLOOR,
        "withinGoal": rate >= GOAL and rate >= GOAL_OF_FLOOR * floor_rate,
        "processorMicrosecondsPerWrite": puts.cost(),
        "floorProcessorMicrosecondsPerWrite": floor.cost(),
        "connections": CONNECTIONS,
        "p50Milliseconds": round(latencies[len(latencies) // 2] * 1000, 2),
        "p99Milliseconds": round(latencies[len(latencies) * 99 // 100] * 1000, 2),
        "writes": len(latencies),
        "batchObservationsPerSecond": observations,
        "goalBatchObservationsPerSecond": BATCH_GOAL,
        "batchWithinGoal": observations >= BATCH_GOAL,
        "processorMicrosecondsPerBatchObservation": round(batches.cost() / BATCH, 1),
    }


class _Load:
    """What came of a load: the latency of each request, and the processor time that the server took for all."""

    def __init__(self, latencies: list[float], processor: float) -> None:
        self.latencies = latencies
        self.processor = processor

    def cost(self) -> float:
        """Processor time of the server per request, in microseconds."""
        return round(self.processor / max(len(self.latencies), 1) * 1e6, 1)


def _serve(
    folder: Path,
    command: list[str],
    port: Callable[[], int | None],
    loads: Sequence[tuple[Request, int]],
    seconds: float,
) -> list[_Load]:
    """Start a server, put each load on it for some seconds, and stop it."""
    found: list[_Load] = []
    with serving(folder, command, port) as (pid, there):
        for request, connections in loads:
            asyncio.run(load(there, request, connections, 1.0))
            before = processor(pid)
            latencies = asyncio.run(load(there, request, connections, seconds))
            found.append(_Load(latencies, processor(pid) - before))
    return found


@contextmanager
def serving(folder: Path, command: list[str], port: Callable[[], int | None]) -> Iterator[tuple[int, int]]:
    """A server, by the module and its arguments, while it is needed: its process and its port."""
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, stderr=log, stdout=log, env=environment()
        )
    try:
        while (there := port()) is None:
            if server.poll() is not None:
                raise RuntimeError((folder / "log").read_text())
            time.sleep(0.05)
        yield server.pid, there
    finally:
        server.terminate()
        server.wait(30)


def environment() -> dict[str, str]:
    """Ours, in which modules of the benchmark are found from every folder."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def port_of(store: Path) -> int | None:
    """The port of the server of a store, as soon as there is one."""
    found = find_server(store)
    return None if found is None else int(found.url.rpartition(":")[2])


def _bare_port(file: Path) -> int | None:
    return int(file.read_text()) if file.exists() and file.read_text() else None


def processor(pid: int) -> float:
    """The processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def put(index: int, count: int) -> bytes:
    """A sensor write of a connection."""
    body = b'{"count": %d, "updatedAt": "2026-03-03T06:55:00Z"}' % count
    path = f"/api/v1/pipelines/p{index % PIPELINES}/sensors/rows-{index}"
    return f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _batch(index: int, count: int) -> bytes:
    sensors = [
        {
            "pipeline": f"p{one % PIPELINES}",
            "key": f"rows-{index}-{one}",
            "data": {"count": count, "updatedAt": "2026-03-03T06:55:00Z"},
        }
        for one in range(BATCH)
    ]
    body = json.dumps({"sensors": sensors}).encode()
    head = f"POST /api/v1/sensors:batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def load(port: int, request: Request, connections: int, seconds: float) -> list[float]:
    """Requests one after the other on each connection: how long each took."""
    end = time.monotonic() + seconds
    found = await asyncio.gather(*(_connection(port, request, index, end) for index in range(connections)))
    return [latency for one in found for latency in one]


async def _connection(port: int, request: Request, index: int, end: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    latencies: list[float] = []
    count = 0
    while (begun := time.monotonic()) < end:
        count += 1
        writer.write(request(index, count))
        headers = await reader.readuntil(b"\r\n\r\n")
        if not headers.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(headers.decode())
        length = int(headers.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        latencies.append(time.monotonic() - begun)
    writer.close()
    return latencies


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))

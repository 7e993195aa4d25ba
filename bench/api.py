"""Sensor writes over HTTP: acknowledged writes per second at 64 connections, each after a durable commit.

The server is a real `interlock serve` on a real file; the load comes from this process, over keep-alive connections and
plain sockets, so that what is measured is the server and not a client library.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from interlock.embedded.discovery import find_server

CONNECTIONS: Final = 64
SECONDS: Final = 10.0
PIPELINES: Final = 20
GOAL: Final = 1500

_DOCUMENT: Final = {
    "schedule": {"trigger": {"key": "up", "check": "equals", "field": "status", "value": "ready"}},
    "validation": {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 1000000000}]},
    "job": {"type": "external"},
}


def run(seconds: float = SECONDS) -> dict[str, Any]:
    """Measure; the figures and the goal."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pipelines").mkdir()
        for index in range(PIPELINES):
            document = {"pipeline": {"id": f"p{index}"}, **_DOCUMENT}
            (folder / "pipelines" / f"p{index}.json").write_text(json.dumps(document))
        with (folder / "log").open("wb") as log:
            arguments = [sys.executable, "-m", "interlock", "serve", "--port", "0", "--log-level", "warning"]
            server = subprocess.Popen(arguments, cwd=folder, stderr=log, stdout=log, env=dict(os.environ))
        try:
            port = _port(folder / "interlock.db", server)
            asyncio.run(_load(port, 1.0))
            latencies = asyncio.run(_load(port, seconds))
        finally:
            server.terminate()
            server.wait(30)
    latencies.sort()
    rate = round(len(latencies) / seconds)
    return {
        "bench": "api",
        "sensorWritesPerSecond": rate,
        "goalSensorWritesPerSecond": GOAL,
        "withinGoal": rate >= GOAL,
        "connections": CONNECTIONS,
        "p50Milliseconds": round(latencies[len(latencies) // 2] * 1000, 2),
        "p99Milliseconds": round(latencies[len(latencies) * 99 // 100] * 1000, 2),
        "writes": len(latencies),
    }


def _port(store: Path, server: "subprocess.Popen[bytes]") -> int:
    while server.poll() is None:
        found = find_server(store)
        if found is not None:
            return int(found.url.rpartition(":")[2])
        time.sleep(0.05)
    raise RuntimeError("serve did not start")


async def _load(port: int, seconds: float) -> list[float]:
    end = time.monotonic() + seconds
    found = await asyncio.gather(*(_connection(port, index, end) for index in range(CONNECTIONS)))
    return [latency for one in found for latency in one]


async def _connection(port: int, index: int, end: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    latencies: list[float] = []
    count = 0
    while (begun := time.monotonic()) < end:
        count += 1
        body = b'{"count": %d, "updatedAt": "2026-03-03T06:55:00Z"}' % count
        path = f"/api/v1/pipelines/p{index % PIPELINES}/sensors/rows-{index}"
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
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

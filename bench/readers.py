"""What readers of the event stream cost the sensor writes: `python -m bench.readers`.

The same writes as in `bench.api`, by turns without readers and with a hundred: on a machine that others use, too, what
one turn says of the next is more than any rate. The readers live in a process of their own. Those with sensors are told
of every write, as pages that show sensors are; those without get the events only, as the overview does.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import api

READERS: Final = 100
TURNS: Final = 5
SECONDS: Final = 4.0
GOAL: Final = 0.95


def run(turns: int = TURNS, seconds: float = SECONDS, readers: int = READERS) -> dict[str, Any]:
    """Measure; the figures and the goal."""
    with tempfile.TemporaryDirectory() as name, _serving(Path(name), readers) as (server, port):
        _writes(port, seconds)
        found: dict[str, list[tuple[float, float]]] = {"none": [], "events": [], "sensors": []}
        for _ in range(turns):
            for kind, turn in found.items():
                with _listening(port, 0 if kind == "none" else readers, sensors=kind == "sensors"):
                    before = api.processor(server)
                    writes = _writes(port, seconds)
                    turn.append((writes / seconds, (api.processor(server) - before) / max(writes, 1)))
    rates = {kind: median(rate for rate, _ in turn) for kind, turn in found.items()}
    costs = {kind: median(cost for _, cost in turn) * 1e6 for kind, turn in found.items()}
    return {
        "bench": "readers",
        "readers": readers,
        "writesPerSecond": {kind: round(rate) for kind, rate in rates.items()},
        "processorMicrosecondsPerWrite": {kind: round(cost, 1) for kind, cost in costs.items()},
        "ofWithout": {kind: round(rates[kind] / rates["none"], 3) for kind in ("events", "sensors")},
        "goalOfWithout": GOAL,
    }


def _serving(folder: Path, readers: int) -> AbstractContextManager[tuple[int, int]]:
    api.write_pipelines(folder)
    limits = f"[limits]\nstreams_per_peer = {readers + 1}\nstreams_per_token = {readers + 1}\n"
    (folder / "interlock.toml").write_text(limits)
    return api.serving(folder, api.SERVE, lambda: api.port_of(folder / "interlock.db"))


def _writes(port: int, seconds: float) -> int:
    return len(asyncio.run(api.load(port, api.put, api.CONNECTIONS, seconds)))


@contextmanager
def _listening(port: int, readers: int, *, sensors: bool) -> Iterator[None]:
    if not readers:
        yield
        return
    command = [sys.executable, "-m", "bench.readers", str(port), str(readers), "?sensors=true" if sensors else ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=api.environment()) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError("the readers could not connect")
            yield
        finally:
            process.terminate()


async def _listen(port: int, readers: int, query: str) -> None:
    """Read so many streams until somebody ends the process."""
    streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(readers)]
    for reader, writer in streams:
        writer.write(f"GET /api/v1/events/stream{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
    print("listening", flush=True)
    await asyncio.gather(*(_drain(reader) for reader, _ in streams))


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(2**16):
        pass


if __name__ == "__main__":
    if len(sys.argv) > 2:
        asyncio.run(_listen(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
    else:
        print(json.dumps(run(), indent=2))

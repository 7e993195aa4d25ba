"""A steady stream of events: real runs of a served store that `bench.seeded --streamed` made, so many a second.

`python -m bench.steady PORT --events 200 --seconds 120`. A run is opened by a sensor write, passes its rules, and is
reported done a second later: five events, spread over all pipelines that a sensor opens, an hour further back with
every round. Prints how many events came through the stream meanwhile, as JSON.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

EVENTS_OF_A_RUN: Final = 5
_JOB_SECONDS: Final = 1.0
_CONNECTIONS: Final = 4

Slot = tuple[str, str]


class Connection:
    """A keep-alive connection to the API."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: object = None) -> Any:
        """Send a request; what it is answered, decoded."""
        async with self._lock:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**26)
            reader, writer = self._streams
            content = b"" if body is None else json.dumps(body).encode()
            head = f"{method} /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
            headers = await reader.readuntil(b"\r\n\r\n")
            length = int(headers.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = await reader.readexactly(length)
            if not headers.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(f"{method} {path}: {headers.decode()}{answer.decode()}")
            return json.loads(answer)


def slots(pipelines: list[str], now: datetime) -> Iterator[Slot]:
    """An hour of every pipeline, then the hour before that of every pipeline, and so on."""
    hour = now
    while True:
        yield from ((pipeline, f"{hour:%Y-%m-%dT%H}") for pipeline in pipelines)
        hour -= timedelta(hours=1)


async def run(port: int, events: float, seconds: float, skip: int = 0) -> dict[str, Any]:
    """Make events; how many there were a second. `skip`: how many runs were made before."""
    connections = [Connection(port) for _ in range(_CONNECTIONS)]
    lanes = await connections[0].send("GET", "overview?limit=5000")
    pipelines = [lane["id"] for lane in lanes["items"] if "stream" in lane["schedules"]]
    rows = [{"pipeline": one, "key": "row-count", "data": {"count": 5000}} for one in pipelines]
    for first in range(0, len(rows), 500):
        await connections[0].send("POST", "sensors:batch", {"sensors": rows[first : first + 500]})
    counted = [0]
    counting = asyncio.create_task(_count(port, counted))
    begun, tasks, made = time.monotonic(), set[asyncio.Task[None]](), 0
    for slot in islice(slots(pipelines, datetime.now(UTC)), skip, None):
        due = begun + made * EVENTS_OF_A_RUN / events
        if due > begun + seconds:
            break
        await asyncio.sleep(max(due - time.monotonic(), 0))
        task = asyncio.create_task(_one_run(connections[made % _CONNECTIONS], slot))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        made += 1
    took = time.monotonic() - begun
    found = counted[0]
    await asyncio.gather(*tasks)
    counting.cancel()
    return {
        "pipelines": len(pipelines),
        "runs": made,
        "seconds": round(took, 1),
        "eventsPerSecond": round(found / took),
    }


async def _one_run(connection: Connection, slot: Slot) -> None:
    pipeline, period = slot
    await connection.send("PUT", f"pipelines/{pipeline}/sensors/upstream-complete%23{period}", {"status": "ready"})
    await asyncio.sleep(_JOB_SECONDS)
    await connection.send("POST", f"pipelines/{pipeline}/jobs", {"date": period, "result": "success"})


async def _count(port: int, counted: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while chunk := await reader.read(2**16):
        counted[0] += chunk.count(b"\nevent: ")


def main() -> None:
    """Print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.steady", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--events", type=float, default=200, help="a second")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--skip", type=int, default=0, help="how many runs were made before")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(run(given.port, given.events, given.seconds, given.skip))))


if __name__ == "__main__":
    main()

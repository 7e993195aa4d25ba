"""A steady stream of events: real runs of a served store that `bench.seeded --streamed` made, so many a second.

`python -m bench.steady PORT --events 200 --seconds 120`. A run is opened by a sensor write, passes its rules, and is
reported done a second later: five events, spread over all pipelines that a sensor opens, an hour further back with
every round, but for the hours that have had a run. Prints how many events came through the stream meanwhile, as JSON.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

EVENTS_OF_A_RUN: Final = 5
_JOB_SECONDS: Final = 1.0
# A run that a busy controller has not started by then is reported as soon as it is.
_PATIENCE_SECONDS: Final = 300
_CONNECTIONS: Final = 4

Slot = tuple[str, str]


class RefusedError(Exception):
    """An answer that is no success."""


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
                raise RefusedError(f"{method} {path}: {headers.decode()}{answer.decode()}")
            return json.loads(answer)


def slots(taken: dict[str, set[str]], now: datetime) -> Iterator[Slot]:
    """An hour of every pipeline, then the hour before of every pipeline, and so on, but for hours that are taken."""
    hour = now
    while True:
        period = f"{hour:%Y-%m-%dT%H}"
        yield from ((pipeline, period) for pipeline, periods in taken.items() if period not in periods)
        hour -= timedelta(hours=1)


async def run(port: int, events: float, seconds: float) -> dict[str, Any]:
    """Make events; how many there were a second."""
    connections = [Connection(port) for _ in range(_CONNECTIONS)]
    lanes = await connections[0].send("GET", "overview?limit=5000")
    pipelines = [lane["id"] for lane in lanes["items"] if "stream" in lane["schedules"]]
    taken = {pipeline: await _periods(connections[0], pipeline) for pipeline in pipelines}
    rows = [{"pipeline": one, "key": "row-count", "data": {"count": 5000}} for one in pipelines]
    for first in range(0, len(rows), 500):
        await connections[0].send("POST", "sensors:batch", {"sensors": rows[first : first + 500]})
    counted = [0]
    counting = asyncio.create_task(_count(port, counted))
    begun, made = time.monotonic(), 0
    async with asyncio.TaskGroup() as runs:
        for slot in slots(taken, datetime.now(UTC)):
            due = begun + made * EVENTS_OF_A_RUN / events
            if max(due, time.monotonic()) > begun + seconds:
                break
            await asyncio.sleep(max(due - time.monotonic(), 0))
            runs.create_task(_one_run(connections[made % _CONNECTIONS], slot))
            made += 1
        took, found = time.monotonic() - begun, counted[0]
    counting.cancel()
    return {
        "pipelines": len(pipelines),
        "runs": made,
        "seconds": round(took, 1),
        "eventsPerSecond": round(found / took),
    }


async def _periods(connection: Connection, pipeline: str) -> set[str]:
    """The periods of its latest runs: more than a load goes back."""
    answer = await connection.send("GET", f"pipelines/{pipeline}/runs?limit=500")
    return {run["date"] for run in answer["items"]}


async def _one_run(connection: Connection, slot: Slot) -> None:
    pipeline, period = slot
    await connection.send("PUT", f"pipelines/{pipeline}/sensors/upstream-complete%23{period}", {"status": "ready"})
    patient_until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        await asyncio.sleep(_JOB_SECONDS)
        try:
            await connection.send("POST", f"pipelines/{pipeline}/jobs", {"date": period, "result": "success"})
        except RefusedError:
            if time.monotonic() > patient_until:
                raise
        else:
            return


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
    given = parser.parse_args()
    print(json.dumps(asyncio.run(run(given.port, given.events, given.seconds))))


if __name__ == "__main__":
    main()

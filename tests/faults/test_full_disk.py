"""A full disk: what is refused is said, nothing hangs, nothing is lost, and it is over when there is room again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.running import Process, pipeline, serving, until, write_pipeline
from tests.faults.disk import SmallDisk, small_disk

V1 = "/api/v1"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as found:
        yield found


def put(server: Process, key: str, size: int = 100) -> int:
    """The status of a sensor write."""
    response = server.client.put(f"{V1}/pipelines/gold/sensors/{key}", json={"text": "x" * size})
    return response.status_code


def open_run(server: Process, date: str) -> int:
    """The status of a write that opens a run, which then waits for its rows."""
    response = server.client.put(f"{V1}/pipelines/gold/sensors/up", json={"status": "ready", "date": date})
    return response.status_code


def write_until_refused(server: Process, size: int = 40_000) -> list[str]:
    """Write sensors until one is refused; the keys of those that were acknowledged."""
    for number in range(1000):
        if put(server, f"filler-{number}", size) != 200:
            return [f"filler-{one}" for one in range(number)]
    raise AssertionError("the disk does not become full")


def test_writes_go_on_when_there_is_room_again_though_the_log_was_on_the_same_disk(disk: SmallDisk) -> None:
    write_pipeline(disk.folder, "gold", pipeline("gold"))
    with serving(disk.folder, "--log-level", "debug") as server:
        for day in range(1, 29):
            open_run(server, f"2026-01-{day:02}")
        disk.fill(leave=300_000)
        acknowledged = write_until_refused(server)
        disk.fill()
        # With runs to wake and to open there is work for the lifecycle, too, that fails and says so in the log.
        for number in range(60):
            put(server, f"refused-{number}", 40_000)
            open_run(server, f"2026-02-{number % 28 + 1:02}")
        disk.clear()
        until(lambda: put(server, "after") == 200 or None, "a write after there was room again")
        found = [one["key"] for one in server.client.get(f"{V1}/pipelines/gold/sensors?limit=1000").json()["items"]]
        assert set(acknowledged) <= set(found)
        until(lambda: server.client.get("/readyz").status_code == 200 or None, "its being ready again")
        assert server.stop() == 0


def test_readiness_agrees_with_what_writes_are_told(disk: SmallDisk) -> None:
    """Small writes fit into used pages of the log now and then: that does not make a full disk writable."""
    write_pipeline(disk.folder, "gold", pipeline("gold"))
    with serving(disk.folder) as server:
        disk.fill(leave=100_000)
        write_until_refused(server)
        disk.fill()
        seen = []
        for number in range(40):
            written = put(server, f"more-{number}", (100, 40_000)[number % 2])
            seen.append((written, server.client.get("/readyz").status_code))
        assert (503, 200) not in seen, seen
        assert any(written == 503 for written, _ in seen)
        assert server.client.get("/readyz").status_code == 503
        assert any("almost full" in one for one in server.client.get("/readyz").json()["degraded"])
        disk.clear()
        until(lambda: server.client.get("/readyz").status_code == 200 or None, "its being ready again")
        assert put(server, "after", 40_000) == 200

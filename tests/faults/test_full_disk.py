"""A full disk: what is refused is said, nothing hangs, nothing is lost, and it is over when there is room again."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from interlock.embedded.clock import SystemClock
from interlock.jobs.command.target import CommandRunner, ExitNotice
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobRequest, JobStarted, JobState
from tests.api.running import Process, pipeline, serving, until, write_pipeline
from tests.faults.disk import SmallDisk, small_disk

V1 = "/api/v1"
DAYS = [f"2026-03-{day:02}" for day in range(1, 13)]


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


# ------------------------------------------------------------------------------------------------------------- jobs


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder on another disk, where jobs write down their starts and wait to be let go."""
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def job_that_waits(outside: Path) -> dict[str, Any]:
    script = f"echo $INTERLOCK_DATE >> {outside}/starts; while [ ! -e {outside}/go ]; do sleep 0.05; done"
    config = {"command": ["sh", "-c", script]}
    return {"type": "command", "config": config, "maxRetries": 3, "pollInterval": "1h"}


def starts(outside: Path) -> list[str]:
    file = outside / "starts"
    return sorted(file.read_text().split()) if file.exists() else []


def ready(server: Process, date: str) -> None:
    for key, data in (("rows", {"count": 50}), ("up", {"status": "ready"})):
        response = server.client.put(f"{V1}/pipelines/gold/sensors/{key}%23{date}", json=data)
        assert response.status_code == 200, response.text


def test_jobs_that_end_well_on_a_full_disk_have_ended_well(disk: SmallDisk, outside: Path) -> None:
    write_pipeline(disk.folder, "gold", pipeline("gold", job=job_that_waits(outside)))
    with serving(disk.folder) as server:
        for day in DAYS:
            ready(server, day)
        until(lambda: starts(outside) == DAYS or None, "the start of all jobs")
        disk.fill()
        (outside / "go").touch()
        # All of them are over, and cannot say so, or can say it to nobody: until there is room again.
        until(lambda: put(server, "filler", 40_000) == 503 or None, "a full disk")
        until(lambda: not running_jobs(outside) or None, "the end of all jobs")
        disk.clear()
        for day in DAYS:
            run = server.await_status("gold", day, "COMPLETED")
            assert run["attempt"] == 1, run
        assert starts(outside) == DAYS
        assert server.stop() == 0


def running_jobs(outside: Path) -> list[int]:
    """The shells that wait."""
    found = psutil.process_iter(["cmdline"])
    return [one.pid for one in found if one.info["cmdline"] and f"{outside}/go" in " ".join(one.info["cmdline"][:3])]


def test_wrapper_waits_for_room_before_it_starts_a_command_and_to_say_how_it_ended(
    disk: SmallDisk, outside: Path
) -> None:
    """The wrapper alone, claimed while there is room; the disk is full before it makes its first step."""
    ended: list[ExitNotice] = []
    runner = CommandRunner(disk.folder / "jobs", ended.append, SystemClock(), working_folder=outside)
    (outside / "go").touch()
    disk.fill(leave=64 * 1024)
    real = os.posix_spawn

    def spawn_on_a_full_disk(*arguments: Any, **options: Any) -> int:
        disk.fill()
        return real(*arguments, **options)

    request = JobRequest(
        key=RunKey("gold", "stream", DAYS[0]), attempt=1, run_id="run-1", config=job_that_waits(outside)["config"]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "posix_spawn", spawn_on_a_full_disk)
        assert runner.start(request) == JobStarted(job_id="run-1")
    assert runner.check(request, "run-1").state is JobState.RUNNING
    assert starts(outside) == []
    assert runner.recover(request) == JobStarted(job_id="run-1")
    disk.clear()
    until(lambda: ended or None, "the end of the command")
    assert ended[0].status.state is JobState.SUCCEEDED
    assert starts(outside) == [DAYS[0]]
    runner.close()

"""Every thread of a controller is killed: by an exception at its start, and in the middle of its work. The controller
works again afterwards, and meanwhile its health names the loop. The writer's death ends the process (`test_log`)."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.embedded.service import Service
from interlock.loops import Loop, Loops, Step
from tests.api.running import ROOT, pipeline, running, until, write_pipeline

V1 = "/api/v1"
# Threads that are no loops: looks of probes, which are bounded by their timeout, and the story of the demo.
ONE_SHOT = {"probe_threads.py", "looking.py", "sql.py", "play.py"}
# Not in the middle of work here: ending is for the end, announcement and store-check have done theirs.
KILLED = (
    "stream-router",
    "event-sink",
    "alert-dispatcher",
    "executions",
    "clock",
    "watchdog",
    "sweeper",
    "probes",
    "alerts-console",
    "alerts-leftovers",
    "feed",
    "files",
    "housekeeping",
    "store-watch",
    "command-exits",
)


class Poison(BaseException):
    """Not even an Exception."""


COMMAND = pipeline(
    "shell",
    validation={"rules": [{"key": "up", "check": "equals", "field": "status", "value": "ready"}]},
    job={"type": "command", "config": {"command": ["true"]}},
)
DAYS = (f"2026-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 28))


def works(client: httpx.Client) -> None:
    """A sensor leads to a run, its command is run, and its end is noticed."""
    day = next(DAYS)
    answer = client.put(f"{V1}/pipelines/shell/sensors/up", json={"status": "ready", "date": day})
    assert answer.status_code == 200

    def completed() -> bool:
        found = client.get(f"{V1}/pipelines/shell/runs/stream/{day}")
        return found.status_code == 200 and found.json()["status"] == "COMPLETED"

    until(completed, f"the run of {day}")


@contextmanager
def controller(folder: Path) -> Iterator[tuple[Service, httpx.Client]]:
    write_pipeline(folder, "shell", COMMAND)
    with running(folder, pipelines=folder / "pipelines", insecure_no_auth=True) as (service, client):
        yield service, client


def test_every_loop_fails_as_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failed = Loops.add, set[str]()

    def add(self: Loops, name: str, step: Step, **how: Any) -> Loop:
        def raising_first() -> float | None:
            if name not in failed:
                failed.add(name)
                raise Poison(name)
            return step()

        return real(self, name, step if name in ("writer", "log") else raising_first, **how)

    monkeypatch.setattr(Loops, "add", add)
    with controller(tmp_path) as (_, client):
        works(client)
        until(lambda: failed >= set(KILLED), "the failure of every loop")
        works(client)
        until(lambda: client.get("/readyz").status_code == 200, "readiness")
        named = str(client.get("/readyz").json()["degraded"])
        assert "stream-router failed and was started again (Poison)" in named
        assert "stream-router failed" in str(client.get(f"{V1}/controller").json())


class Sabotage:
    """Has a loop of a running controller raise, in the middle of its work, until it is mended."""

    def __init__(self, service: Service, loop: Loop, patch: pytest.MonkeyPatch) -> None:
        self._thread = f"interlock-{loop.name}"
        self._loop = loop
        self.active = True
        match loop.name:
            case "stream-router" | "event-sink" | "alert-dispatcher":
                patch.setattr(service.database, "head", self.raising(service.database.head))
            case "feed":
                patch.setattr(service.database, "wait_for_change", self.raising(service.database.wait_for_change))
            case "files":
                assert service.files is not None
                patch.setattr(service.files, "look", self.raising(service.files.look))
            case _:
                patch.setattr(loop, "_step", self.raising(loop._step))
        self.nudge()

    def raising(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if self.active and threading.current_thread().name == self._thread:
                raise Poison(self._thread)
            return real(*arguments)

        return call

    def nudge(self) -> None:
        """Have it take its next step soon."""
        self._loop.ring()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, httpx.Client]]:
    with controller(tmp_path_factory.mktemp("served")) as (service, client):
        service.feed.join(lambda _: None, lambda: None)
        works(client)
        yield service, client


@pytest.mark.parametrize("name", KILLED)
def test_loop_fails_in_the_middle_of_its_work(
    served: tuple[Service, httpx.Client], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, client = served
    (loop,) = [one for one in service.loops if one.name == name]
    sabotage = Sabotage(service, loop, monkeypatch)
    if name in ("executions", "command-exits"):
        # These sleep until there is something to do.
        client.put(f"{V1}/pipelines/shell/sensors/up", json={"status": "ready", "date": next(DAYS)})

    def named() -> bool:
        said = client.get("/readyz").json()
        return any(one.startswith(f"{name} fail") for one in (*said["problems"], *said["degraded"]))

    until(named, f"health naming {name}")
    sabotage.active = False
    works(client)
    until(lambda: client.get("/readyz").status_code == 200, "readiness")
    assert loop.alive


def test_every_loop_of_a_controller_is_killed_here(served: tuple[Service, httpx.Client]) -> None:
    service, _ = served
    names = {re.sub(r"target-\d+", "target-1", loop.name) for loop in service.loops}
    assert names - {"writer", "store-check", "target-1"} == set(KILLED)


def test_nobody_makes_a_thread_by_hand() -> None:
    files = (ROOT / "src" / "interlock").rglob("*.py")
    by_hand = re.compile(r"threading\.(Thread|Timer)\(")
    made = {file.name for file in files if by_hand.search(file.read_text(encoding="utf-8"))}
    assert made == {"loops.py"} | ONE_SHOT

"""A controller to test against: in this process, over a real socket, or as the real `interlock serve`."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn

from interlock.api.connections import ConnectionLimits
from interlock.api.server import bind, server_config
from interlock.embedded.process.discovery import find_server
from interlock.embedded.service import Service, ServiceSettings

ROOT = Path(__file__).parents[2]
WAIT = 30.0
T = TypeVar("T")

GOLD: dict[str, Any] = {
    "pipeline": {"id": "gold", "owner": "analytics"},
    "schedule": {"trigger": {"key": "up", "check": "equals", "field": "status", "value": "ready"}},
    "validation": {
        "rules": [
            {"key": "up", "check": "equals", "field": "status", "value": "ready"},
            {"key": "rows", "check": "gte", "field": "count", "value": 10},
        ]
    },
    "job": {"type": "external", "maxManualReruns": 2},
}


def pipeline(name: str, **changes: Any) -> dict[str, Any]:
    """A pipeline like `gold`, of another name."""
    return {**GOLD, "pipeline": {"id": name, "owner": "analytics"}, **changes}


def until(look: Callable[[], T | None], what: str = "it") -> T:
    """Wait until `look` finds something."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        threading.Event().wait(0.02)
    raise AssertionError(f"{what} did not happen within {WAIT:.0f} s")


def problem(response: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """The problem document of a refused request, checked for its form."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert found["type"] == f"urn:interlock:problem:{slug}"
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    assert found["instance"].startswith("/")
    assert found["requestId"] == response.headers["x-request-id"]
    return found


@contextmanager
def running(
    folder: Path, *, limits: ConnectionLimits | None = None, public_url: str = "", **settings: Any
) -> Iterator[tuple[Service, httpx.Client]]:
    """A controller and its API in this process, on a real port."""
    service = Service(ServiceSettings(store=folder / "interlock.db", **settings))
    listener = bind("127.0.0.1", 0)
    service.start()
    config = server_config(service, limits or ConnectionLimits.of_this_process(), public_url=public_url)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=WAIT) as client:
            until(lambda: server.started or None, "the server's start")
            yield service, client
    finally:
        service.feed.stop()
        server.should_exit = True
        thread.join()
        service.stop()
        listener.close()


class Process:
    """A real `interlock serve`."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        module: Sequence[str] = ("interlock",),
        stderr: int | None = None,
    ) -> None:
        """`module`: another program, and its first arguments, that becomes `serve`. `stderr`: instead of the log."""
        self.folder = folder
        self.store = folder / "interlock.db"
        self.log = folder / "log.txt"
        command = [sys.executable, "-m", *module, "serve", "--port", "0", *arguments]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        path = os.pathsep.join([str(ROOT), *filter(None, [clean.get("PYTHONPATH")])])
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=log,
                stderr=log if stderr is None else stderr,
                env={**clean, "PYTHONPATH": path, **(environment or {})},
            )
        try:
            self.url = until(self._url, "the start of serve")
        except AssertionError:
            self.kill()
            raise
        self.client = httpx.Client(base_url=self.url, timeout=WAIT)

    def _url(self) -> str | None:
        if self.process.poll() is not None:
            raise AssertionError(f"serve ended with {self.process.returncode}: {self.log.read_text()}")
        found = find_server(self.store)
        return found.url if found is not None and found.pid == self.process.pid else None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end; the exit code."""
        self.client.close()
        return self.process.wait(WAIT)

    def kill(self) -> None:
        """As by `kill -9`, if it is still there."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT)

    def run(self, pipeline_id: str, date: str, schedule: str = "stream") -> dict[str, Any]:
        """A run, or nothing."""
        response = self.client.get(f"/api/v1/pipelines/{pipeline_id}/runs/{schedule}/{date}")
        return response.json() if response.status_code == 200 else {}

    def await_status(self, pipeline_id: str, date: str, status: str) -> dict[str, Any]:
        """The run, once it has that status."""

        def look() -> dict[str, Any] | None:
            found = self.run(pipeline_id, date)
            return found if found.get("status") == status else None

        return until(look, f"{pipeline_id}/{date} becoming {status}")


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    module: Sequence[str] = ("interlock",),
    stderr: int | None = None,
) -> Iterator[Process]:
    """A real `interlock serve`, ended at the end whatever happens."""
    process = Process(folder, *arguments, environment=environment, module=module, stderr=stderr)
    try:
        yield process
    finally:
        process.client.close()
        process.kill()


def write_pipeline(folder: Path, name: str, document: Mapping[str, Any]) -> Path:
    """A file in `pipelines/`."""
    place = folder / "pipelines"
    place.mkdir(exist_ok=True)
    file = place / f"{name}.json"
    draft = place / f".{name}.draft"
    draft.write_text(json.dumps(document), encoding="utf-8")
    draft.replace(file)
    return file

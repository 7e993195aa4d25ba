"""SIGTERM under load: new work is refused, what was accepted is finished, and the end comes within the grace."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from interlock.api.ending import Ending
from interlock.embedded.process.discovery import server_file
from tests.api.running import GOLD, ROOT, Process, pipeline, running, serving, until, write_pipeline
from tests.faults.serve_process import Weakness

V1 = "/api/v1"
GRACE = 8.0


class Callers:
    """Threads that ask again and again, and what they were answered."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.answers: Counter[tuple[str, int]] = Counter()
        self.unheaded: list[httpx.Response] = []
        self.accepted: set[tuple[str, str]] = set()

    def start(self, name: str, count: int, ask: Callable[[httpx.Client, int], httpx.Response]) -> None:
        for number in range(count):
            thread = threading.Thread(target=self._run, args=(name, number, ask), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, name: str, number: int, ask: Callable[[httpx.Client, int], httpx.Response]) -> None:
        turn = number * 100_000
        with httpx.Client(base_url=self._url, timeout=30) as client:
            while not self._stop.is_set():
                turn += 1
                try:
                    answer = ask(client, turn)
                except httpx.TransportError:
                    self.answers[name, 0] += 1
                    if self._stop.wait(0.01):
                        return
                    continue
                self.answers[name, answer.status_code] += 1
                if answer.status_code == 503 and "retry-after" not in answer.headers:
                    self.unheaded.append(answer)
                if name == "rerun" and answer.status_code == 202:
                    self.accepted.add((answer.json()["pipeline"], answer.json()["date"]))

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)


@contextmanager
def under_load(server: Process, pipelines: int) -> Iterator[Callers]:
    callers = Callers(server.url)

    def open_run(client: httpx.Client, turn: int) -> httpx.Response:
        date = f"2026-{turn % 12 + 1:02}-{turn % 28 + 1:02}"
        path = f"{V1}/pipelines/p{turn % pipelines}/sensors/up"
        return client.put(path, json={"status": "ready", "date": date, "turn": turn})

    def rerun(client: httpx.Client, turn: int) -> httpx.Response:
        body = {"date": f"2025-{turn % 12 + 1:02}-{turn % 28 + 1:02}", "reason": "load"}
        return client.post(f"{V1}/pipelines/p{turn % pipelines}/reruns", json=body)

    callers.start("sensor", 6, open_run)
    callers.start("rerun", 6, rerun)
    try:
        yield callers
    finally:
        callers.stop()


def test_new_work_is_refused_and_what_was_accepted_is_kept(tmp_path: Path) -> None:
    for number in range(20):
        write_pipeline(tmp_path, f"p{number}", pipeline(f"p{number}"))
    with serving(tmp_path) as server, under_load(server, 20) as callers:
        until(lambda: callers.answers["rerun", 202] >= 20 or None, "some reruns")
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(60)
        took = time.monotonic() - begun
        callers.stop()
    assert code == 0, server.log.read_text()[-3000:]
    assert took < GRACE + 2, f"{took:.1f} s"
    statuses = {status for _, status in callers.answers}
    assert statuses <= {0, 200, 202, 503}, callers.answers
    assert not callers.unheaded
    assert callers.answers["sensor", 503] + callers.answers["rerun", 503] > 0, callers.answers
    with serving(tmp_path) as server:
        until(lambda: callers.accepted <= decided(server) or None, "a decision on every accepted request")


def decided(server: Process) -> set[tuple[str, str]]:
    """The (pipeline, date) of all requests that were decided."""
    found: set[tuple[str, str]] = set()
    for type_ in ("RERUN_ACCEPTED", "RERUN_REJECTED"):
        cursor = ""
        while True:
            params = {"type": type_, "limit": 1000, **({"cursor": cursor} if cursor else {})}
            page = server.client.get(f"{V1}/events", params=params).json()
            found |= {(one["pipelineId"], one["date"]) for one in page["items"]}
            cursor = page["next"]
            if not cursor:
                break
    return found


def test_target_that_hangs_does_not_hold_up_the_end_beyond_the_grace(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    write_pipeline(tmp_path, "gold", pipeline("gold", job={"type": "http", "config": {"url": url, "timeout": "10m"}}))
    with serving(tmp_path, "--allow-private-addresses") as server, listener:
        for key, data in (("rows", {"count": 50}), ("up", {"status": "ready"})):
            server.client.put(f"{V1}/pipelines/gold/sensors/{key}%232026-03-03", json=data)
        called, _ = listener.accept()
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < GRACE + 2
        called.close()
        assert "ended before everything was done" in server.log.read_text()


def test_signal_on_the_way_up_ends_in_order(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.serve_process", Weakness.SIGNALLED_EARLY, "serve", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert '"event": "stopped"' in ended.stderr
    assert not server_file(tmp_path / "interlock.db").exists()


def test_busy_store_does_not_prolong_the_wait_for_a_decision(tmp_path: Path) -> None:
    """The answer to a rerun request waits for its decision, for a moment: also while everything else goes on."""
    with running(tmp_path) as (service, client):
        client.put(f"{V1}/pipelines/gold", json=GOLD)
        service.engine.router.stop()
        stop = threading.Event()

        def change_something() -> None:
            while not stop.wait(0.02):
                client.put(f"{V1}/pipelines/gold/sensors/other", json={"x": 1})

        busy = threading.Thread(target=change_something)
        busy.start()
        try:
            begun = time.monotonic()
            answer = client.post(f"{V1}/pipelines/gold/reruns", json={"date": "2026-03-03"}, timeout=15)
        finally:
            stop.set()
            busy.join()
        assert (answer.status_code, answer.json()["decision"]) == (202, "pending")
        assert time.monotonic() - begun < 6


def test_what_is_asked_of_a_controller_that_stops(tmp_path: Path) -> None:
    with running(tmp_path) as (service, client):
        client.put(f"{V1}/pipelines/gold", json=GOLD)
        service.refuse_new_work()
        asked = {
            "sensor": client.put(f"{V1}/pipelines/gold/sensors/up", json={"status": "ready"}),
            "rerun": client.post(f"{V1}/pipelines/gold/reruns", json={"date": "2026-03-03"}),
            "read": client.get(f"{V1}/pipelines"),
        }
        for answer in asked.values():
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "2"
            assert answer.headers["connection"] == "close"
            assert answer.json()["detail"] == "the controller is stopping: ask again in a moment"
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").json()["problems"] == ["the controller is stopping"]


def test_end_that_is_done_in_time_is_left_alone() -> None:
    ended: list[int] = []
    ending = Ending(0.2, ended.append)
    ending.begin()
    ending.done()
    never_begun = Ending(0.0, ended.append)
    never_begun.done()
    assert ended == []
    late = Ending(0.01, ended.append)
    late.begin()
    until(lambda: ended or None, "the end")
    late.done()
    assert ended == [0]

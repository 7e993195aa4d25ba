"""Everybody else in a campaign: who writes sensors, who follows the events, who receives the alerts."""

import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx

from tests.faults.workload import Slot, Workload

V1: Final = "/api/v1"


class Written(NamedTuple):
    """A write that was acknowledged."""

    pipeline: str
    key: str
    data: dict[str, Any]


class Writers:
    """Threads that write each slot until it is acknowledged, and count up sensors of their own beside it.

    `acknowledged` has a write from the moment it was answered with 200, and no other.
    """

    def __init__(self, url: str, workload: Workload, *, threads: int, per_second: float) -> None:
        self._url = url
        self._workload = workload
        self._pause = threads / per_second
        self._stop = threading.Event()
        self.acknowledged: list[Written] = []
        self.slots: list[Slot] = []
        self.answers: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the slots under way, and end."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self, number: int) -> None:
        count = 0
        with httpx.Client(base_url=self._url, timeout=15) as client:
            while not self._stop.is_set():
                slot = self._workload.next_slot()
                self._insist(client, slot.pipeline, f"rows#{slot.date}", {"count": 50})
                self._insist(client, slot.pipeline, f"up#{slot.date}", {"status": "ready"})
                self.slots.append(slot)
                count += 1
                self._insist(client, self._workload.COUNTED, f"counter-{number}", {"count": count})
                self._stop.wait(self._pause)

    def _insist(self, client: httpx.Client, pipeline: str, key: str, data: dict[str, Any]) -> None:
        while not self._write(client, pipeline, key, data):
            time.sleep(0.05)

    def _write(self, client: httpx.Client, pipeline: str, key: str, data: dict[str, Any]) -> bool:
        try:
            answer = client.put(f"{V1}/pipelines/{pipeline}/sensors/{quote(key, safe='')}", json=data)
        except httpx.TransportError:
            self.answers["no answer"] += 1
            return False
        self.answers[str(answer.status_code)] += 1
        if answer.status_code != httpx.codes.OK:
            return False
        self.acknowledged.append(Written(pipeline, key, data))
        return True


class Follower:
    """Follows the events from the beginning of the campaign, over every end of the connection."""

    def __init__(self, url: str, since: str) -> None:
        self._url = url
        self._since = since
        self._last = ""
        self._stop = threading.Event()
        self.ids: list[str] = []
        self.connections = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except httpx.HTTPError:
                self._stop.wait(0.1)

    def _follow(self) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        params = {} if self._last else {"since": self._since}
        timeout = httpx.Timeout(10, read=2)
        with httpx.stream(
            "GET", f"{self._url}{V1}/events/stream", headers=headers, params=params, timeout=timeout
        ) as response:
            if response.status_code != httpx.codes.OK:
                self._stop.wait(0.1)
                return
            self.connections += 1
            fields: dict[str, str] = {}
            for line in response.iter_lines():
                if self._stop.is_set():
                    return
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                    continue
                self._take(fields)
                fields = {}

    def _take(self, message: dict[str, str]) -> None:
        if message.get("event") in (None, "closed", "dropped"):
            self._last = message.get("id", self._last)
            return
        self.ids.append(str(json.loads(message["data"])["id"]))
        self._last = message["id"]


class Receiver:
    """A webhook for alerts, that can be down."""

    def __init__(self) -> None:
        self.down = False
        self.taken: list[tuple[str, str]] = []
        """(pipeline, alert id), in the order in which they came."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.down:
                    self.send_error(503)
                    return
                alert = json.loads(body)
                receiver.taken.append((str(alert["id"]).partition("/")[0], str(alert["id"])))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/alerts"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

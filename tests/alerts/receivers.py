"""Receivers on loopback: one that behaves like Slack's Bot API, one that takes webhooks. Both misbehave on demand."""

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from interlock.ports.clock import Clock


class Answer(msgspec.Struct, frozen=True):
    """What to answer; status 0 hangs up without a word."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    content_type: str = "application/json; charset=utf-8"


HANG_UP = Answer(0)


class Request(msgspec.Struct, frozen=True):
    """What was received."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class LocalServer:
    """A real HTTP server. Down, it refuses connections on the very same port."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[Request] = []
        self.gate: Callable[[], object] = lambda: None
        self.answered = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None
        self._reserved: socket.socket | None = None
        self.port = port
        self._reserve()

    def _reserve(self) -> None:
        # Bound and not listening: connections are refused, and nobody else gets the port.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", self.port))
        self.port = self._reserved.getsockname()[1]

    def up(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self._receive))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def down(self) -> None:
        self._stop()
        self._reserve()

    def close(self) -> None:
        self._stop()
        if self._reserved is not None:
            self._reserved.close()

    def _stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _receive(self, request: Request) -> Answer:
        self.gate()
        with self._lock:
            self.requests.append(request)
            answer = self.answer(request)
        self.answered.release()
        return answer

    def answer(self, request: Request) -> Answer:
        raise NotImplementedError


def _handler(receive: Callable[[Request], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            answer = receive(Request(self.path, dict(self.headers.items()), self.rfile.read(length)))
            if answer.status == 0:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            # A sender need not read all of an answer.
            with suppress(ConnectionError):
                self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the tests look at what was received."""

    return Handler


class Hook(LocalServer):
    """Takes webhooks, and remembers by their id those it has taken."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.next: deque[Answer] = deque()
        self.always: Callable[[dict[str, Any]], Answer | None] = lambda _: None
        self.taken: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def answer(self, request: Request) -> Answer:
        if self.next:
            return self.next.popleft()
        event = msgspec.json.decode(request.body)
        if (answer := self.always(event)) is not None:
            return answer
        self.taken.append(event)
        return Answer(204)


class Fault(msgspec.Struct, frozen=True):
    """Instead of an answer: `answer`; with `after` the call takes effect first."""

    answer: Answer
    after: bool = False


def limited(seconds: int) -> Fault:
    body = msgspec.json.encode({"ok": False, "error": "ratelimited"})
    return Fault(Answer(429, body, {"Retry-After": str(seconds)}))


def refusal(error: str, status: int = 200) -> Fault:
    return Fault(Answer(status, msgspec.json.encode({"ok": False, "error": error})))


class SlackRefusalError(Exception):
    """Slack's word for no."""


class FakeSlack(LocalServer):
    """`chat.postMessage`, `conversations.history` and `conversations.replies`, with Slack's checks and limits."""

    def __init__(self, token: str, clock: Clock, port: int = 0) -> None:
        super().__init__(port)
        self.token = token
        self.channels = {"C0123456789": "#data-alerts", "C9876543210": "#other"}
        self.messages: list[dict[str, Any]] = []
        self.faults: deque[Fault] = deque()
        self.scopes = {"chat:write", "channels:history"}
        self.page = 200
        self._clock = clock
        self._count = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    def ids(self) -> list[str]:
        """The ids of the alerts as they were posted."""
        return [message["metadata"]["event_payload"]["id"] for message in self.messages]

    def delete(self, ts: str) -> None:
        self.messages = [message for message in self.messages if message["ts"] != ts]

    def answer(self, request: Request) -> Answer:
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and not fault.after:
            return fault.answer
        try:
            data = {"ok": True, **self._perform(request)}
        except SlackRefusalError as error:
            data = {"ok": False, "error": str(error)}
        return fault.answer if fault is not None else Answer(200, msgspec.json.encode(data))

    def _perform(self, request: Request) -> dict[str, Any]:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            raise SlackRefusalError("invalid_auth")
        given = _arguments(request)
        match urlsplit(request.path).path:
            case "/api/chat.postMessage":
                return self._post(given)
            case "/api/conversations.history":
                return self._list(given, lambda message: "thread_ts" not in message)
            case "/api/conversations.replies":
                self._check_thread(given["channel"], given["ts"])
                return self._list(given, lambda message: given["ts"] in (message["ts"], message.get("thread_ts")))
            case _:
                raise SlackRefusalError("unknown_method")

    def _post(self, given: dict[str, Any]) -> dict[str, Any]:
        by_name = {name: id_ for id_, name in self.channels.items()}
        channel = by_name.get(given["channel"], given["channel"])
        if channel not in self.channels:
            raise SlackRefusalError("channel_not_found")
        check_blocks(given["blocks"])
        if not given.get("text"):
            raise SlackRefusalError("no_text")
        if "thread_ts" in given:
            self._check_thread(channel, given["thread_ts"])
        self._count += 1
        ts = f"{int(self._clock.now().timestamp())}.{self._count:06d}"
        self.messages.append({**given, "channel": channel, "ts": ts})
        return {"channel": channel, "ts": ts}

    def _check_thread(self, channel: str, ts: str) -> None:
        if not any(message["ts"] == ts and message["channel"] == channel for message in self.messages):
            raise SlackRefusalError("thread_not_found")

    def _list(self, given: dict[str, Any], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        if "channels:history" not in self.scopes:
            raise SlackRefusalError("missing_scope")
        # History knows channels by their id only.
        if given["channel"] not in self.channels:
            raise SlackRefusalError("channel_not_found")
        if given.get("include_all_metadata") not in ("1", "true", True):
            raise SlackRefusalError("test_wants_metadata")
        found = [
            message
            for message in reversed(self.messages)
            if message["channel"] == given["channel"]
            and wanted(message)
            and float(message["ts"]) >= float(given["oldest"])
        ]
        start = int(given.get("cursor") or 0)
        end = start + min(int(given["limit"]), self.page)
        cursor = str(end) if end < len(found) else ""
        return {"messages": found[start:end], "response_metadata": {"next_cursor": cursor}}


def _arguments(request: Request) -> dict[str, Any]:
    query = dict(parse_qsl(urlsplit(request.path).query))
    if request.headers.get("Content-Type", "").startswith("application/json"):
        return {**query, **msgspec.json.decode(request.body or b"{}")}
    return {**query, **dict(parse_qsl(request.body.decode()))}


def check_blocks(blocks: list[dict[str, Any]]) -> None:
    """Slack's limits."""
    if not 1 <= len(blocks) <= 50:
        raise SlackRefusalError("invalid_blocks")
    for block in blocks:
        texts = [(block["text"], 150 if block["type"] == "header" else 3000)] if "text" in block else []
        texts += [(field, 2000) for field in block.get("fields", [])]
        texts += [(element, 3000) for element in block.get("elements", [])]
        if not texts or len(block.get("fields", [])) > 10:
            raise SlackRefusalError("invalid_blocks")
        if any(not 1 <= len(text["text"]) <= limit for text, limit in texts):
            raise SlackRefusalError("invalid_blocks")


@contextmanager
def running(server: LocalServer) -> Iterator[None]:
    server.up()
    try:
        yield
    finally:
        server.close()

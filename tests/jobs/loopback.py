"""Real HTTP servers on loopback, that do what a test scripts and remember what they were sent."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class Seen(msgspec.Struct, frozen=True):
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """What to answer; `before` is called first, with the open connection."""

    status: int = 200
    body: bytes = b"ok"
    headers: Mapping[str, str] = {}
    before: Callable[[BaseHTTPRequestHandler], Any] | None = None


class Server:
    """Answers with `answers` in turn; the last one repeats."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers or [Answer()])
        self.seen: list[Seen] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self.port: int = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                server.seen.append(Seen(self.command, self.path, dict(self.headers), body))
                answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                if answer.before is not None:
                    answer.before(self)
                with contextlib.suppress(OSError):  # the other side may have gone
                    self.send_response(answer.status)
                    for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815 - the names http.server calls

            def log_message(self, *_args: object) -> None:
                pass

        return Handler

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextlib.contextmanager
def listener() -> Iterator[socket.socket]:
    """A bare listening socket: a server that says what the test says, byte by byte."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def unused_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])

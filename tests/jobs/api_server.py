"""A JSON API on loopback that a test plays: what a request leads to is a method of the subclass."""

import contextlib
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec


class Call(msgspec.Struct, frozen=True):
    """A request: its path in unquoted parts."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body, type=dict[str, Any])


class Reply(msgspec.Struct, frozen=True):
    """An answer. `lost`: everything was done, and then the connection broke."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = {}
    lost: bool = False

    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


class ApiServer:
    """Remembers its calls. `next_replies` are given before anything else is done, one each."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.next_replies: list[Reply] = []
        self.lose_next_post = False
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, call: Call) -> Reply:
        raise NotImplementedError

    def _reply(self, call: Call) -> Reply:
        self.calls.append(call)
        if self.next_replies:
            return self.next_replies.pop(0)
        reply = self.answer(call)
        if self.lose_next_post and call.method == "POST" and "token" not in call.path:
            self.lose_next_post = False
            return Reply(lost=True)
        return reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                path = tuple(unquote(part) for part in parts.path.split("/") if part)
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = server._reply(Call(self.command, path, dict(parse_qsl(parts.query)), headers, body))
                if reply.lost:
                    self.close_connection = True
                    return
                data = reply.data()
                with contextlib.suppress(OSError):  # the other side may have gone
                    self.send_response(reply.status)
                    headers = {"Content-Type": "application/json", "Content-Length": str(len(data)), **reply.headers}
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815 - the names http.server calls

            def log_message(self, *_args: object) -> None:
                pass

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

"""Requests that were made to be misunderstood, tokens on their way, and what terminals are shown."""

import gzip
import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from interlock.jobs.addresses import AddressPolicy, AddressRefusedError
from tests.api.running import Process, pipeline, problem, serving, until
from tests.security.commands import interlock

_SENSOR = "/api/v1/pipelines/gold/sensors/rows"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with serving(tmp_path_factory.mktemp("requests")) as process:
        assert process.client.put("/api/v1/pipelines/gold", json=pipeline("gold")).status_code == 201
        yield process


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", _SENSOR), ("PUT", f"{_SENSOR}?ttl=5"), ("PUT", "/api/v1/pipelines/x"), ("POST", "/api/v1/sensors:batch")],
)
def test_a_body_that_is_not_utf8(server: Process, method: str, path: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = server.client.request(method, path, content=b'{"count": "\xff\xfe"}', headers=headers)
    problem(answer, 400, "malformed")


def test_a_body_that_is_a_little_too_large_is_refused_at_once(server: Process) -> None:
    began = time.monotonic()
    answer = server.client.put(_SENSOR, json={"text": "x" * 80_000})
    problem(answer, 413, "too-large")
    assert time.monotonic() - began < 2.5


def _raw(server: Process, head: str, body: bytes = b"") -> tuple[str, bool]:
    """The status line of the answer to a request as written, and whether the connection was closed."""
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port or 80), timeout=10) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        connection.settimeout(5)
        received = b""
        try:
            while chunk := connection.recv(65536):
                received += chunk
        except TimeoutError:
            return received.split(b"\r\n", 1)[0].decode(), False
        return received.split(b"\r\n", 1)[0].decode(), True


def test_two_authorization_headers(server: Process) -> None:
    head = "GET /api/v1/pipelines HTTP/1.1\nHost: localhost\nAuthorization: Bearer a\nAuthorization: Bearer b"
    assert _raw(server, head) == ("HTTP/1.1 400 Bad Request", True)


def test_two_lengths_of_a_body(server: Process) -> None:
    head = f"PUT {_SENSOR} HTTP/1.1\nHost: localhost\nContent-Length: 4\nTransfer-Encoding: chunked"
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert _raw(server, head, b"0\r\n\r\n" + smuggled) == ("HTTP/1.1 400 Bad Request", True)


@pytest.mark.parametrize(
    "head",
    [
        "GET /api/v1/pipelines HTTP/1.1",
        "GET /api/v1/pipelines HTTP/1.1\nHost: localhost\nHost: evil.example",
        f"PUT {_SENSOR} HTTP/1.1\nContent-Length: 2",
        f"PUT {_SENSOR} HTTP/1.1\nHost: localhost\nHost: localhost\nContent-Length: 2",
        f"PUT {_SENSOR} HTTP/1.1\nHost: localhost\nContent-Length: 2\nContent-Length: 2",
        f"PUT {_SENSOR} HTTP/1.1\nHost: localhost\nContent-Length: +2",
        f"PUT {_SENSOR} HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked, x",
        "GET /api/v1/pipelines HTTP/1.1\nHost : localhost",
        "GET /api/v1/pipelines\x00 HTTP/1.1\nHost: localhost",
        "GET /api/v1/pipelines HTTP/1.1\nHost: localhost\nX: a\x00b",
    ],
    ids=lambda head: repr(head)[-48:],
)
def test_heads_that_mean_nothing_or_two_things(server: Process, head: str) -> None:
    assert _raw(server, head, b"{}") == ("HTTP/1.1 400 Bad Request", True)


def test_a_head_that_is_too_large(server: Process) -> None:
    head = "GET /api/v1/pipelines HTTP/1.1\nHost: localhost\n" + "\n".join(f"X-{n}: {'x' * 1000}" for n in range(60))
    status, closed = _raw(server, head)
    assert (status, closed) == ("HTTP/1.1 431 Request Header Fields Too Large", True)


# ---------------------------------------------------------------------------------------------- tokens on their way


class _Proxy(http.server.BaseHTTPRequestHandler):
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(f"{self.path} {self.headers.get('Authorization', '')}")
        self.send_error(502)

    do_PUT = do_POST = do_GET  # noqa: N815  named by the library

    def log_message(self, *_: object) -> None:
        pass


def test_no_proxy_sees_the_token_for_this_machine(server: Process, tmp_path: Path) -> None:
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{proxy.server_port}"
    environment = {"INTERLOCK_TOKEN": "ilk_mine", "HTTP_PROXY": address, "http_proxy": address, "NO_PROXY": ""}
    try:
        assert interlock(tmp_path, "init", "project").returncode == 0
        for command in (("plan", "project"), ("apply", "project"), ("status",), ("open", "--print")):
            done = interlock(tmp_path, *command, "--url", server.url, environment=environment)
            assert done.returncode == 0, done.stderr
        assert _Proxy.seen == []
    finally:
        proxy.shutdown()
        proxy.server_close()


def test_the_stream_of_a_revoked_token_ends_within_a_second(tmp_path: Path) -> None:
    made = interlock(tmp_path, "token", "create", "--name", "reader", "--scope", "read", "--json")
    assert made.returncode == 0
    token = json.loads(made.stdout)["token"]
    with serving(tmp_path) as server:
        headers = {"Authorization": f"Bearer {token}"}
        with server.client.stream("GET", "/api/v1/events/stream", headers=headers) as stream:
            lines = stream.iter_lines()
            next(lines)
            assert interlock(tmp_path, "token", "revoke", "reader").returncode == 0
            began = time.monotonic()
            assert any("your token or session has ended" in line for line in lines)
            assert time.monotonic() - began < 1.5


# --------------------------------------------------------------------------------------------------- what is shown

_EVIL = "\x1b]0;owned\x07\u202egnp"


def test_no_escape_reaches_a_terminal(server: Process, tmp_path: Path) -> None:
    key = f"rows{_EVIL}"
    for command in (
        ("sensor", "set", "gold", key, "count=1", "--url", server.url),
        ("sensor", "get", "gold", key, "--url", server.url),
        ("sensor", "delete", "gold", key, "--url", server.url),
    ):
        done = interlock(tmp_path, *command)
        assert not any(one in done.stdout + done.stderr for one in _EVIL if not one.isprintable()), command
    rules = [{"key": key, "check": "exists"}]
    document: dict[str, Any] = pipeline("gold", validation={"rules": rules})
    (tmp_path / "gold.json").write_text(json.dumps(document))
    done = interlock(tmp_path, "stpa", "gold.json")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------ what answers hold


def test_a_name_that_is_allowed_leads_to_no_metadata() -> None:
    policy = AddressPolicy(["etl.corp"])
    policy.check("etl.corp", ["10.0.0.1"])
    with pytest.raises(AddressRefusedError, match=r"name a network with 169\.254\.169\.254"):
        policy.check("etl.corp", ["169.254.169.254"])
    AddressPolicy(["etl.corp", "169.254.0.0/16"]).check("etl.corp", ["169.254.169.254"])


class _Bomb(http.server.BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.headers.get("Accept-Encoding", ""))
        body = gzip.compress(b"x" * 50_000_000)
        self.send_response(500)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_the_answer_of_a_webhook_is_not_unpacked(tmp_path: Path) -> None:
    bomb = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Bomb)
    threading.Thread(target=bomb.serve_forever, daemon=True).start()
    try:
        (tmp_path / "interlock.toml").write_text(
            f'[jobs]\nallow_private_addresses = true\n[[alerts]]\nchannel = "webhook"\nname = "hook"\n'
            f'url = "http://127.0.0.1:{bomb.server_port}/"\n'
        )
        done = interlock(tmp_path, "alerts", "test", "hook")
        until(lambda: _Bomb.asked or None, "the webhook's call")
        assert _Bomb.asked[0] == "identity"
        assert "HTTP 500" in done.stdout + done.stderr
        assert "xxxx" not in done.stdout + done.stderr
    finally:
        bomb.shutdown()
        bomb.server_close()

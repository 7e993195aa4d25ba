"""Clients that hold connections without asking anything, over raw sockets; and those that may take their time."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from interlock.api.connections import ConnectionLimits
from tests.api.running import WAIT, pipeline, running, until

SHORT = ConnectionLimits(connections=50, head_seconds=0.3)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
PIPELINES = b"GET /api/v1/pipelines HTTP/1.1\r\nHost: localhost\r\n\r\n"
STREAM = b"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with running(tmp_path_factory.mktemp("short"), limits=SHORT) as (_, client):
        yield client


@contextmanager
def connected(api: httpx.Client) -> Iterator[socket.socket]:
    with socket.create_connection((api.base_url.host, api.base_url.port or 0), timeout=WAIT) as found:
        yield found


def rest(connection: socket.socket) -> bytes:
    """Everything that comes until the server closes."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def answer(connection: socket.socket) -> tuple[int, dict[str, str], Any]:
    """The next answer, whole: status, headers and JSON."""
    with connection.makefile("rb") as reader:
        first = reader.readline()
        if not first:
            raise ConnectionError("closed without an answer")
        lines = iter(lambda: reader.readline().decode().strip(), "")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return int(first.split()[1]), headers, msgspec.json.decode(reader.read(int(headers["content-length"])))


def dribble(connection: socket.socket, piece: bytes) -> bytes:
    """Send piece after piece, as long as the server neither answers nor closes; what it said in the end."""
    try:
        while not select.select([connection], [], [], 0.01)[0]:
            connection.sendall(piece)
        return connection.recv(65536)
    except ConnectionError:
        return b""


def outlast_the_limit(api: httpx.Client) -> None:
    """Come back when a connection that was opened after all others has been closed for saying nothing."""
    with connected(api) as silent:
        assert rest(silent) == b""


def test_who_says_nothing_is_let_go_without_a_word(api: httpx.Client) -> None:
    outlast_the_limit(api)


def test_who_does_not_finish_a_head_is_told(api: httpx.Client) -> None:
    with connected(api) as slow:
        slow.sendall(HEALTH[:-2])
        status, headers, problem = answer(slow)
        assert status == 408
        assert headers["content-type"] == "application/problem+json"
        assert headers["connection"] == "close"
        assert problem["type"] == "urn:interlock:problem:timeout"
        assert "0.3 s" in problem["detail"]
        assert rest(slow) == b""


def test_more_bytes_of_a_head_win_no_more_time(api: httpx.Client) -> None:
    with connected(api) as slow:
        slow.sendall(HEALTH[:-2] + b"X-Slow: ")
        assert dribble(slow, b"x").startswith(b"HTTP/1.1 408")


def test_the_second_head_of_a_connection_is_limited_too(api: httpx.Client) -> None:
    with connected(api) as slow:
        slow.sendall(HEALTH)
        assert answer(slow)[0] == 200
        slow.sendall(HEALTH[:10])
        assert answer(slow)[0] == 408


def test_a_body_that_nobody_reads_can_not_be_sent_for_ever(api: httpx.Client) -> None:
    with connected(api) as slow:
        slow.sendall(HEALTH[:-2] + b"Content-Length: 1000000\r\n\r\n")
        assert answer(slow)[0] == 200
        assert dribble(slow, b"x") == b""


def test_a_head_in_pieces_and_a_slow_body_are_taken(api: httpx.Client) -> None:
    """The limit ends with the head: a body has a limit of its own."""
    assert api.put("/api/v1/pipelines/slow", json=pipeline("slow")).is_success
    body = b'{"count": 50}'
    with connected(api) as slow:
        slow.sendall(b"PUT /api/v1/pipelines/slow/sensors/rows HTTP/1.1\r\nHost: local")
        slow.sendall(b"host\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:5])
        outlast_the_limit(api)
        slow.sendall(body[5:])
        assert answer(slow)[0] == 200
        slow.sendall(HEALTH)
        assert answer(slow)[0] == 200


def test_a_stream_outlasts_the_limit(api: httpx.Client) -> None:
    with httpx.stream("GET", f"{api.base_url}/api/v1/events/stream", timeout=WAIT) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("id: ")
        outlast_the_limit(api)
        assert api.put("/api/v1/pipelines/streamed", json=pipeline("streamed")).is_success
        ready = {"status": "ready", "date": "2026-03-03"}
        assert api.put("/api/v1/pipelines/streamed/sensors/up", json=ready).is_success
        assert any(line == "event: TRIGGER_STARTED" for line in lines)


def test_beyond_the_limit_newcomers_are_refused_and_the_others_are_served(tmp_path: Path) -> None:
    with running(tmp_path, limits=ConnectionLimits(connections=4)) as (_, api), ExitStack() as open_:
        first, second = (open_.enter_context(connected(api)) for _ in range(2))
        for served in (first, second):
            served.sendall(STREAM)
            assert served.recv(12) == b"HTTP/1.1 200"
        third = open_.enter_context(connected(api))
        third.sendall(PIPELINES)
        status, headers, problem = answer(third)
        assert (status, headers["retry-after"]) == (429, "1")
        assert problem["type"] == "urn:interlock:problem:too-many-requests"
        assert rest(third) == b""
        # The health is told all the same.
        fourth = open_.enter_context(connected(api))
        fourth.sendall(HEALTH)
        status, headers, _ = answer(fourth)
        assert (status, headers["connection"]) == (200, "close")
        second.close()

        def served_again() -> bool:
            with connected(api) as next_, suppress(ConnectionError):
                next_.sendall(PIPELINES)
                return answer(next_)[0] == 200
            return False

        until(served_again, "a place for the next one")


def test_who_waits_longest_makes_room(tmp_path: Path) -> None:
    with running(tmp_path, limits=ConnectionLimits(connections=2, per_peer=2)) as (_, api), ExitStack() as open_:
        first, second, third = (open_.enter_context(connected(api)) for _ in range(3))
        for served in (second, third):
            served.sendall(HEALTH)
            assert answer(served)[0] == 200
        with suppress(ConnectionResetError):
            assert rest(first) == b""


def test_there_are_files_left_for_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may open few files serves few connections."""
    for files, connections in ((1024, 512), (20_000, 2000), (1, 1)):
        monkeypatch.setattr("resource.getrlimit", lambda _, soft=files: (soft, -1))
        limits = ConnectionLimits.of_this_process()
        assert (limits.connections, limits.head_seconds) == (connections, 30.0)

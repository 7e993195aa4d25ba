"""One client tries to use up the server; the health is told all the same, and so is everybody else."""

import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import pytest

from interlock.api.connection_table import ConnectionTable, Place, peer_of
from interlock.api.problems import RequestError
from interlock.api.stream_shares import StreamLimits, StreamShares
from tests.api.running import WAIT, Process, pipeline, problem, serving, until
from tests.security.commands import STRANGER, as_root, interlock

_LIMITS = """
[limits]
connections = 40
connections_per_peer = 30
head_timeout = "20s"
read_timeout = "1s"
streams_per_peer = 12
streams_per_token = 8
"""
_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
_LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
_STREAM = b"GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One for all attacks: it survives each."""
    folder = tmp_path_factory.mktemp("floods")
    (folder / "interlock.toml").write_text(_LIMITS)
    with serving(folder) as process:
        assert process.client.put("/api/v1/pipelines/gold", json=pipeline("gold")).status_code == 201
        process.client.close()
        yield process


def connect(server: Process, *, receive: int | None = None) -> socket.socket:
    made = socket.socket()
    if receive is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    made.settimeout(WAIT)
    address = httpx.URL(server.url)
    made.connect((address.host, address.port or 0))
    return made


@contextmanager
def flood(server: Process, number: int, sent: bytes, *, receive: int | None = None) -> Iterator[list[socket.socket]]:
    """That many connections, on each of which this was sent, and nothing is read."""
    with ExitStack() as opened:
        found = []
        for _ in range(number):
            connection = opened.enter_context(closing(connect(server, receive=receive)))
            connection.sendall(sent)
            found.append(connection)
        yield found


def healthy(server: Process) -> None:
    """The health is told, on new connections, each soon."""
    for _ in range(5):
        began = time.monotonic()
        for path in ("/healthz", "/readyz"):
            assert httpx.get(f"{server.url}{path}", timeout=10).status_code == 200
        assert time.monotonic() - began < 5


def ended(connections: list[socket.socket]) -> int:
    """How many the server has closed."""
    for one in connections:
        one.setblocking(False)
    count = 0
    for one in select.select(connections, [], [], 0)[0]:
        try:
            count += one.recv(1) == b""
        except ConnectionError:
            count += 1
    return count


def test_half_sent_heads(server: Process) -> None:
    with flood(server, 100, b"GET /healthz HTTP/1.1\r\nHost: local") as held:
        healthy(server)
        assert httpx.get(f"{server.url}/api/v1/pipelines").status_code == 200
        until(lambda: ended(held) >= 70 or None, "the end of those who came first")
        healthy(server)


def test_connections_that_say_nothing(server: Process) -> None:
    with flood(server, 200, b""):
        healthy(server)
        assert httpx.get(f"{server.url}/api/v1/pipelines").status_code == 200


def test_clients_that_never_read(server: Process) -> None:
    with flood(server, 60, _LARGE * 10, receive=4096):
        healthy(server)
        # The answers do not fit into what the system holds: after `read_timeout` the connections are ended.
        until(lambda: httpx.get(f"{server.url}/api/v1/pipelines").status_code == 200 or None, "a place")
        until(lambda: "answers that nobody reads" in server.log.read_text() or None, "the word of the log")
        healthy(server)


def test_a_slow_reader_gets_everything(server: Process) -> None:
    with flood(server, 1, _LARGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), receive=4096) as (slow,):
        received = b""
        while chunk := slow.recv(32768):
            received += chunk
            select.select([], [], [], 0.02)
        assert received.endswith(b"}")
        assert json.loads(received.partition(b"\r\n\r\n")[2])["openapi"]


def test_pipelined_requests_are_answered_in_turn(server: Process) -> None:
    with flood(server, 1, _HEALTH * 50) as (one,):
        received = b""
        while received.count(b"HTTP/1.1 200") < 50:
            received += one.recv(65536)
        healthy(server)


def test_event_streams_of_one_peer(server: Process) -> None:
    with flood(server, 100, _STREAM):
        healthy(server)
        refused = problem(httpx.get(f"{server.url}/api/v1/events/stream"), 429, "too-many-requests")
        assert "as many as one token may have" in refused["detail"]
        assert httpx.get(f"{server.url}/api/v1/events/stream").headers["retry-after"] == "10"
        assert httpx.get(f"{server.url}/api/v1/pipelines").status_code == 200

    def again() -> bool:
        with httpx.stream("GET", f"{server.url}/api/v1/events/stream") as stream:
            return stream.status_code == 200

    until(lambda: again() or None, "a place for a stream, when the others are gone")


def test_event_streams_of_one_token(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text(_LIMITS)
    tokens = []
    for name in ("many", "few"):
        made = interlock(tmp_path, "token", "create", "--name", name, "--scope", "read", "--json")
        tokens.append({"Authorization": f"Bearer {json.loads(made.stdout)['token']}"})
    many, few = tokens
    with serving(tmp_path) as server:
        asked = _STREAM.replace(b"\r\n\r\n", f"\r\nAuthorization: {many['Authorization']}\r\n\r\n".encode())
        with flood(server, 30, asked):
            until(
                lambda: (
                    httpx.get(f"{server.url}/api/v1/events/stream", headers=many, timeout=1).status_code == 429 or None
                ),
                "the refusal",
            )
            with httpx.stream("GET", f"{server.url}/api/v1/events/stream", headers=few) as stream:
                assert stream.status_code == 200
            healthy(server)


_ATTACK = f"""
import encodings.idna, os, socket, sys
os.setgid({STRANGER})
os.setuid({STRANGER})
held = []
for _ in range(200):
    one = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    one.sendall(b"PUT /api/v1/pipelines/gold/sensors/x HTTP/1.1\\r\\nHost: localhost\\r\\n")
    one.sendall(b"Content-Length: 9\\r\\n\\r\\n{{")
    held.append(one)
print("held", flush=True)
sys.stdin.read()
"""


@as_root
def test_another_user_does_not_take_the_places_of_the_owner(server: Process) -> None:
    port = str(httpx.URL(server.url).port)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _ATTACK, port],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as attack:
        try:
            assert attack.stdout is not None
            assert attack.stdout.readline() == b"held\n"
            healthy(server)
            for _ in range(5):
                assert httpx.put(f"{server.url}/api/v1/pipelines/gold/sensors/y", json={"n": 1}).status_code == 200
        finally:
            attack.kill()


def test_requests_that_are_sent_before_the_first_is_answered(server: Process) -> None:
    """They wait outside: of 64 MB the server takes in little."""
    before = _memory(server)
    with flood(server, 8, _STREAM) as held:
        for one in held:
            one.setblocking(False)
            taken = 0
            while taken < 8_000_000 and select.select([], [one], [], 0.3)[1]:
                taken += one.send(_HEALTH * 2000)
            assert taken < 6_000_000
        healthy(server)
        assert _memory(server) - before < 30_000_000


def _memory(server: Process) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(one for one in status.splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


# ------------------------------------------------------------------------------------------------------ the counting


def test_a_peer_ends_its_own_connections_first() -> None:
    table: ConnectionTable[str] = ConnectionTable(connections=4, per_peer=2, reserved=1)
    assert table.enter("a1", "a") == (Place.SERVED, None)
    assert table.enter("a2", "a") == (Place.SERVED, None)
    assert table.enter("b1", "b") == (Place.SERVED, None)
    assert table.enter("a3", "a") == (Place.SERVED, "a1")
    table.works("a2")
    table.works("a3")
    assert table.enter("a4", "a") == (Place.SHARE, None)
    assert table.enter("a5", "a") == (Place.SHARE, "a4")
    table.works("a5")
    assert table.enter("a6", "a") == (Place.NONE, None)
    assert table.enter("b2", "b") == (Place.SERVED, None)
    assert table.enter("c1", "c") == (Place.SERVED, "b1")
    table.works("b2")
    table.works("c1")
    assert table.enter("d1", "d") == (Place.NONE, None)
    table.leave("a5")
    assert table.enter("d1", "d") == (Place.FULL, None)
    table.leave("d1")
    table.leave("b2")
    assert table.enter("d2", "d") == (Place.SERVED, None)
    table.waits("a2")
    assert table.enter("e1", "e") == (Place.SERVED, "a2")
    for one in ("a2", "a3", "c1", "d2", "e1", "unknown"):
        table.leave(one)
    assert len(table) == 0


@pytest.mark.parametrize(
    ("host", "user", "peer"),
    [
        ("127.0.0.1", 1000, "user 1000"),
        ("192.0.2.7", None, "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", None, "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", None, "192.0.2.7"),
        ("fe80::1%eth0", None, "fe80::/64"),
        (None, None, "unknown"),
    ],
)
def test_who_a_peer_is(host: str | None, user: int | None, peer: str) -> None:
    assert peer_of(host, user) == peer


def test_streams_are_counted_and_forgotten() -> None:
    shares = StreamShares(StreamLimits(streams=3, per_peer=2, per_token=2))
    with ExitStack() as held:
        held.enter_context(shares.held("p", "a"))
        held.enter_context(shares.held("q", "a"))
        with pytest.raises(RequestError, match="one token"):
            held.enter_context(shares.held("r", "a"))
        held.enter_context(shares.held("q", "b"))
        for peer, match in (("q", "one peer"), ("r", "the controller serves")):
            with pytest.raises(RequestError, match=match):
                held.enter_context(shares.held(peer, "c"))
        held.enter_context(shares.held("q", None))
    assert (shares._open, shares._peers, shares._tokens) == (0, {}, {})

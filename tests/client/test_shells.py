"""Both shells on a network that misbehaves: a server that stumbles, cuts answers short, or never answers."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from interlock import AsyncClient, Client
from interlock.client import ConnectionFailedError, RetryPolicy, ServerFailedError

QUICK = RetryPolicy(retries=2, first_delay=0.01, longest_delay=0.02)
PIPELINE = b'{"id": "gold"}'
ACCEPTED = b'{"id": "1", "pipeline": "gold", "schedule": "cron", "date": "2026-03-02", "decision": "accepted"}'

Answer = Callable[[BaseHTTPRequestHandler], None]
Ask = Callable[[str], Any]


def says(status: int, body: bytes = PIPELINE, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def cuts_short(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "go')
    handler.close_connection = True


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


class Stage:
    """A server that answers from a script, and what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.script: list[Answer] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []


@contextmanager
def staged() -> Iterator[Stage]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            made.asked.append((self.command, self.path, headers))
            made.script.pop(0)(self)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nothing: the test says what went wrong."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Stage(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as made:
        yield made


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, stage: Stage) -> Ask:
    """Ask for a pipeline (`read`), or for a rerun."""

    def sync(what: str) -> Any:
        with Client(stage.url, "secret", retry=QUICK, timeout=5) as client:
            return client.pipeline("gold") if what == "read" else client.rerun("gold", "2026-03-02")

    async def awaited(what: str) -> Any:
        async with AsyncClient(stage.url, "secret", retry=QUICK, timeout=5) as client:
            if what == "read":
                return await client.pipeline("gold")
            return await client.rerun("gold", "2026-03-02")

    return sync if request.param == "sync" else lambda what: asyncio.run(awaited(what))


def test_a_server_that_stumbles(stage: Stage, ask: Ask) -> None:
    stage.script = [says(503, b"busy", Retry_After="0"), cuts_short, says(200)]
    assert ask("read").id == "gold"
    assert [path for _, path, _ in stage.asked] == ["/api/v1/pipelines/gold"] * 3


def test_the_token_and_who_we_are(stage: Stage, ask: Ask) -> None:
    stage.script = [says(200)]
    ask("read")
    [(_, _, headers)] = stage.asked
    assert headers["authorization"] == "Bearer secret"
    assert headers["user-agent"].startswith("interlock-python/")


def test_what_may_have_been_done_is_not_done_again(stage: Stage, ask: Ask) -> None:
    stage.script = [hangs_up, says(202, ACCEPTED)]
    with pytest.raises(ConnectionFailedError):
        ask("rerun")
    assert len(stage.asked) == 1


def test_what_was_not_done_is_done_again(stage: Stage, ask: Ask) -> None:
    stage.script = [says(429, b"slow down", Retry_After="0"), says(202, ACCEPTED)]
    assert ask("rerun").decision == "accepted"
    assert len(stage.asked) == 2


def test_a_redirect_gets_no_token(stage: Stage, ask: Ask) -> None:
    with staged() as elsewhere:
        elsewhere.script = [says(200)]
        stage.script = [says(307, b"{}", Location=f"{elsewhere.url}/api/v1/pipelines/gold")]
        with pytest.raises(Exception, match="something else than expected"):
            ask("read")
        assert elsewhere.asked == []


def test_a_proxy_is_not_asked_for_a_server_of_this_machine(
    stage: Stage, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    stage.script = [says(200)]
    assert ask("read").id == "gold"


def test_there_is_an_end_to_it(stage: Stage, ask: Ask) -> None:
    stage.script = [says(503, b"{}")] * 3
    with pytest.raises(ServerFailedError, match="503"):
        ask("read")


def test_a_stream_is_taken_up_again_after_a_cut(stage: Stage) -> None:
    event = (
        b'{"id": "e%d", "type": "JOB_COMPLETED", "severity": "info", "pipelineId": "gold", "message": "m",'
        b' "timestamp": "2026-03-02T08:00:00Z"}'
    )

    def streams(*numbers: int) -> Answer:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Type", "text/event-stream")
            handler.end_headers()
            for number in numbers:
                handler.wfile.write(b"id: %d\ndata: %s\n\n" % (number, event % number))
            handler.close_connection = True

        return answer

    stage.script = [streams(1, 2), hangs_up, streams(3)]
    with Client(stage.url, retry=QUICK) as client:
        coming = client.events(follow=True)
        assert [next(coming).id for _ in range(3)] == ["e1", "e2", "e3"]
    assert [headers.get("last-event-id") for _, _, headers in stage.asked] == [None, "2", "2"]

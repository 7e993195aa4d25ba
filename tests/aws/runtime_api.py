"""The Runtime API of Lambda, as far as `awslambdaric` asks for it, and an AWS that knows of nothing.

One function at a time, as in Lambda: it asks for the next invocation and answers it with a result or an error, both
kept here. Source: Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes".
"""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

_ROOT: Final = "/2018-06-01/runtime"
_FAR_AHEAD: Final = 4_102_444_800_000
"""The deadline that functions are told: in 2100. Who waits for them decides when it is over."""


@dataclass(frozen=True)
class Answer:
    """What a function said: `path` ends with response or error."""

    path: str
    body: Any
    headers: Mapping[str, str]

    @property
    def failed(self) -> bool:
        """Is it an error?"""
        return self.path.endswith("/error")


class RuntimeApi:
    """What stands between Lambda and a function."""

    def __init__(self) -> None:
        self._events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._answers: queue.Queue[Answer] = queue.Queue()
        self._ended = threading.Event()
        self._count = 0
        self.server = _serve(self._handler())

    @property
    def address(self) -> str:
        """AWS_LAMBDA_RUNTIME_API."""
        return f"127.0.0.1:{self.server.server_port}"

    def invoke(self, event: Any, *, seconds: float = 30) -> Answer | None:
        """The answer to an event; None when there is none within the time a function has."""
        self.send(event)
        return self.answer(seconds=seconds)

    def send(self, event: Any) -> None:
        """Hand an event over."""
        self._count += 1
        self._events.put((f"request-{self._count}", event))

    def answer(self, *, seconds: float = 30) -> Answer | None:
        """What the function says to the last event; None when it says nothing in time."""
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def init_error(self, *, seconds: float = 30) -> Answer:
        """What a function says that cannot even be loaded."""
        return self._answers.get(timeout=seconds)

    def close(self) -> None:
        """Let the function that waits go, and stop."""
        self._ended.set()
        self.server.shutdown()
        self.server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(_Quiet):
            def do_GET(self) -> None:
                while not api._ended.is_set():
                    try:
                        request, event = api._events.get(timeout=0.1)
                    except queue.Empty:
                        continue
                    headers = {
                        "Lambda-Runtime-Aws-Request-Id": request,
                        "Lambda-Runtime-Deadline-Ms": str(_FAR_AHEAD),
                        "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:123456789012:function:f",
                    }
                    self.answer(200, event, headers)
                    return
                self.answer(410, {})

            def do_POST(self) -> None:
                api._answers.put(Answer(self.path.removeprefix(_ROOT), self.sent(), dict(self.headers.items())))
                self.answer(202, {})

        return Handler


_ANSWERS: Final[Mapping[str, Any]] = {
    "Query": {"Items": []},
    "PutEvents": {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]},
}


class EmptyAws:
    """Every table is empty and every call succeeds; or, when told so, nobody answers."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.mute = False
        self.reached = threading.Event()
        """Set when somebody calls."""
        self._released = threading.Event()
        self.server = _serve(self._handler())

    @property
    def address(self) -> str:
        """AWS_ENDPOINT_URL."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        """Let go of those who wait, and stop."""
        self._released.set()
        self.server.shutdown()
        self.server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        aws = self

        class Handler(_Quiet):
            def do_POST(self) -> None:
                self.sent()
                aws.calls.append(self.headers.get("X-Amz-Target", self.path))
                aws.reached.set()
                if aws.mute:
                    aws._released.wait()
                self.answer(200, _ANSWERS.get(aws.calls[-1].partition(".")[2], {}))

        return Handler


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def sent(self) -> Any:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return json.loads(body) if body else None

    def answer(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError, ValueError):  # the function was stopped in mid-sentence
            super().handle()


def _serve(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


@contextmanager
def started(python: Path, package: Path, handler: str, variables: Mapping[str, str]) -> Iterator[None]:
    """A function as Lambda starts it: its package unpacked, its own variables, a Python with boto3 and nothing else."""
    environment = {
        "PATH": os.defpath,
        "LAMBDA_TASK_ROOT": str(package),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        **variables,
    }
    process = subprocess.Popen(
        [str(python), "-m", "awslambdaric", handler],
        cwd=package,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield
    finally:
        process.kill()
        process.communicate()

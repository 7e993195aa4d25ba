"""The log: whatever becomes of it, the controller works on and ends in order."""

import fcntl
import io
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from interlock.embedded.process.log_sink import LogSink
from interlock.embedded.process.logging import configure_logging
from tests.api.running import pipeline, serving, until, write_pipeline
from tests.faults.serve_process import Weakness

V1 = "/api/v1"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe of 4 KiB; whichever is still open at the end is closed."""
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    yield out, into
    for end in (out, into):
        with suppress(OSError):
            os.close(end)


def test_pipe_whose_reader_went_away_does_not_spoil_the_end(tmp_path: Path, pipe: tuple[int, int]) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    out, into = pipe
    with serving(tmp_path, "--log-level", "debug", stderr=into) as server:
        os.close(into)
        os.close(out)
        for number in range(5):
            body = {"count": number}
            assert server.client.put(f"{V1}/pipelines/gold/sensors/rows", json=body).status_code == 200
        assert server.stop() == 0


def test_pipe_whose_reader_stopped_reading_holds_nothing_up(tmp_path: Path, pipe: tuple[int, int]) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    out, into = pipe
    with serving(tmp_path, "--log-level", "debug", stderr=into) as server:
        os.close(into)
        for number in range(200):
            body = {"count": number}
            assert server.client.put(f"{V1}/pipelines/gold/sensors/rows", json=body).status_code == 200
        assert server.client.get("/readyz").status_code == 200
        assert server.stop(signal.SIGTERM) == 0
    assert os.read(out, 100)


def test_dead_writer_thread_ends_the_process_at_once(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    module = ("tests.faults.serve_process", Weakness.WRITER_DIES)
    with serving(tmp_path, module=module) as server:
        assert server.client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 1}).status_code == 200
        (tmp_path / Weakness.WRITER_DIES).touch()
        with suppress(Exception):
            server.client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": 2}, timeout=5)
        assert server.wait() == 70
    log = server.log.read_text()
    assert "Error: the writer thread died of MemoryError('out of memory')" in log
    (tmp_path / Weakness.WRITER_DIES).unlink()
    with serving(tmp_path) as server:
        found = server.client.get(f"{V1}/pipelines/gold/sensors/rows").json()
        assert found["data"] == {"count": 1}


# ---------------------------------------------------------------------------------------------------- the sink alone


class Unwritable(io.StringIO):
    """A stream that is no file, and fails."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


class Unspeakable:
    """A value that has no text."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


@pytest.fixture
def configured() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize("json", [True, False])
def test_what_cannot_be_logged_raises_nothing(json: bool) -> None:
    stream = io.StringIO()
    configure_logging(json=json, stream=stream)
    log = structlog.get_logger()
    log.error("odd", value=Unspeakable())
    log.error("whole %s")
    log.info("method and level are names too", method="PUT", level="x", event_kw=1)
    assert "whole %s" in stream.getvalue()
    assert "PUT" in stream.getvalue()
    configure_logging(json=json, stream=Unwritable())
    log.error("nobody hears this")


def test_lines_wait_for_room_and_what_did_not_fit_is_counted(pipe: tuple[int, int]) -> None:
    out, into = pipe
    sink = LogSink(os.fdopen(into, "w"))
    for number in range(6000):
        sink.write(f"line {number}\n")
    read = b""

    def all_read() -> bool | None:
        nonlocal read
        read += os.read(out, 1 << 16)
        return b"line 4999\n" in read or None

    until(all_read, "the lines that were kept")
    assert read.startswith(b"line 0\nline 1\n")
    sink.drain()
    lines = read.decode().splitlines()
    assert lines[:5000] == [f"line {number}" for number in range(5000)]

"""The controller of a campaign: a real `interlock serve` that is started, killed, frozen and stopped."""

import os
import signal
import socket
import subprocess
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Final

import httpx
import psutil

from tests.api.running import ROOT

_READY_SECONDS: Final = 60.0


class Log(StrEnum):
    """Where its log goes."""

    FILE = "a file on the same disk"
    GONE = "a pipe whose reader is gone"
    STALLED = "a pipe that nobody reads"


class Controller:
    """One at a time, always at the same address."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.store = project / "interlock.db"
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = int(listener.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.ready_after: list[float] = []
        self.stopped_after: list[float] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(base_url=self.url, timeout=10)
        self._pipe = -1

    @property
    def log(self) -> Path:
        return self.project / "log.txt"

    def start(self, log: Log = Log.FILE) -> None:
        """Start it; returns when it is ready."""
        assert self._process is None
        clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        path = os.pathsep.join([str(ROOT / "src"), *filter(None, [clean.get("PYTHONPATH")])])
        out = self._open_log(log)
        begun = time.monotonic()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "interlock", "serve", "--port", str(self.port)],
                cwd=self.project,
                env={**clean, "PYTHONPATH": path},
                stdout=out,
                stderr=out,
            )
        finally:
            os.close(out)
        if log is Log.GONE:
            self._close_pipe()
        self.await_ready()
        self.ready_after.append(time.monotonic() - begun)

    def _open_log(self, log: Log) -> int:
        self._close_pipe()
        if log is Log.FILE:
            return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._pipe, into = os.pipe()
        return into

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def await_ready(self) -> None:
        """Wait until it does its work."""
        end = time.monotonic() + _READY_SECONDS
        while not self.is_ready():
            assert self._process is not None
            if self._process.poll() is not None:
                raise AssertionError(f"serve ended with {self._process.returncode}: {self._last_words()}")
            if time.monotonic() >= end:
                raise AssertionError(f"serve was not ready within {_READY_SECONDS:.0f} s: {self._last_words()}")
            time.sleep(0.02)

    def is_ready(self) -> bool:
        """What `/readyz` says."""
        try:
            return self._client.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:] if self.log.exists() else "no log"

    # ------------------------------------------------------------------------------------------------------- ends

    def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        begun = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(60)
        self.stopped_after.append(time.monotonic() - begun)
        self._process = None
        return code

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and after a while SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def usage(self) -> dict[str, int]:
        """What it takes of the machine just now."""
        assert self._process is not None
        process = psutil.Process(self._process.pid)
        return {
            "megabytes": process.memory_info().rss // 1024 // 1024,
            "descriptors": process.num_fds(),
            "threads": process.num_threads(),
        }

    def close(self) -> None:
        """The end of the campaign."""
        self.kill()
        self._close_pipe()
        self._client.close()

"""What the tests of commands share: requests, a place where exits are told, and jobs that end when they are told to."""

import fcntl
import os
import shlex
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.jobs.command.target import ExitNotice
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobRequest

LONG = 30.0
"""Longer than anything here takes: a wait that gets there has failed."""


def request(run_id: str = "run-1", /, **config: Any) -> JobRequest:
    return JobRequest(key=RunKey("gold", "cron", "2026-03-02"), attempt=2, run_id=run_id, config=config)


class Notices:
    """An `on_exit` to wait on."""

    def __init__(self) -> None:
        self.reported: list[ExitNotice] = []
        self._changed = threading.Condition()

    def __call__(self, notice: ExitNotice) -> None:
        with self._changed:
            self.reported.append(notice)
            self._changed.notify_all()

    def of(self, run_id: str) -> ExitNotice:
        """The notice of a run, when it comes."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._find(run_id), LONG)
        assert found is not None, f"{run_id} did not end"
        return found

    def all_of(self, count: int) -> list[ExitNotice]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.reported) >= count, LONG), (
                f"{len(self.reported)} of {count} ended"
            )
            return list(self.reported)

    def _find(self, run_id: str) -> ExitNotice | None:
        return next((notice for notice in self.reported if notice.run_id == run_id), None)


class Gate:
    """A job that runs until the test lets it go, with the exit code the test chooses."""

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self.path = folder / name
        os.mkfifo(self.path)

    @property
    def command(self) -> list[str]:
        return ["sh", "-c", f"echo waiting; read code < {shlex.quote(str(self.path))}; exit $code"]

    def release(self, code: int = 0) -> None:
        """Opening a pipe for writing waits for its reader, and so for the job to run."""
        self.path.write_text(f"{code}\n")


def marker(root: Path, run_id: str, name: str) -> Mapping[str, Any]:
    """A marker of a run's folder."""
    return msgspec.json.decode((root / run_id / name).read_bytes(), type=dict[str, Any])


def wait_for_wrapper(root: Path, run_id: str) -> None:
    """Return when the wrapper of a run is gone: until then it holds the lock."""
    with (root / run_id / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)

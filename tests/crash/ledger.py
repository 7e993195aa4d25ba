"""A job target that outlives the controller: every start is one durable line of a file, found again by its run id."""

import os
import signal
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from zlib import crc32

from interlock.ports.jobs import JobRequest, JobStarted, JobState, JobStatus, Recovery
from tests.mute_target import MuteTarget

_DONE = JobStatus(state=JobState.SUCCEEDED)


class CrashPoint(StrEnum):
    """Where the process kills itself, the first time it gets there."""

    NOWHERE = ""
    BEFORE_CALL = "before-call"
    AFTER_CALL = "after-call"
    AT_CHECK = "at-check"


def read_starts(path: Path) -> list[tuple[str, str, int, str]]:
    """(pipeline, date, attempt, run id) of every start."""
    if not path.exists():
        return []
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [(pipeline, day, int(attempt), run_id) for pipeline, day, attempt, run_id in lines]


class LedgerTarget(MuteTarget):
    """`ports.jobs.JobRunner`. A third of the jobs are over at once, a third tell of their end after some milliseconds,
    a third are found at the next poll. `searchable`: can a job be found by our run id?"""

    def __init__(self, path: Path, *, searchable: bool = True, crash_at: CrashPoint = CrashPoint.NOWHERE) -> None:
        self._path = path
        self._searchable = searchable
        self._crash_at = crash_at
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._started: dict[str, float] = {}
        self.on_end: Callable[[JobRequest], object] = lambda request: None

    def start(self, request: JobRequest) -> JobStarted:
        self._die_at(CrashPoint.BEFORE_CALL)
        line = f"{request.key.pipeline}\t{request.key.date}\t{request.attempt}\t{request.run_id}\n"
        os.write(self._file, line.encode())
        os.fsync(self._file)
        self._die_at(CrashPoint.AFTER_CALL)
        self._started[request.run_id] = time.monotonic()
        kind = 2 if self._crash_at is CrashPoint.AT_CHECK else crc32(request.run_id.encode()) % 3
        if kind == 1:
            timer = threading.Timer(0.005, self.on_end, [request])
            timer.daemon = True
            timer.start()
        return JobStarted(job_id=f"job-{request.run_id}", status=_DONE if kind == 0 else None)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        if not self._searchable:
            return Recovery.UNDECIDABLE
        known = any(run_id == request.run_id for *_, run_id in read_starts(self._path))
        return JobStarted(job_id=f"job-{request.run_id}") if known else Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        self._die_at(CrashPoint.AT_CHECK)
        started = self._started.get(request.run_id)
        # What another process started is over long ago.
        over = started is None or time.monotonic() >= started + 0.005
        return _DONE if over else JobStatus(state=JobState.RUNNING)

    def _die_at(self, point: CrashPoint) -> None:
        if self._crash_at is point:
            os.kill(os.getpid(), signal.SIGKILL)

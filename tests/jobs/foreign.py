"""A package of somebody else that adds a type of job: made in a folder, and installed as far as Python can tell."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interlock.ports.job_types import foreign_targets

MODULE = """
import msgspec

from interlock.ports.job_targets import JobTarget
from interlock.ports.jobs import JobOutput, JobStarted, JobState, JobStatus, JobStop, Recovery


class Config(msgspec.Struct, forbid_unknown_fields=True):
    queue: str


class Runner:
    def start(self, request):
        return JobStarted(job_id=f"{request.config['queue']}/{request.run_id}")

    def recover(self, request):
        return Recovery.START_AGAIN

    def check(self, request, job_id):
        return JobStatus(state=JobState.SUCCEEDED)

    def stop(self, request, job_id):
        return JobStop.ENDED

    def output(self, request, job_id, *, offset=0):
        return JobOutput(text="done", next_offset=4, complete=True)

    def link(self, request, job_id):
        return f"https://queue.example.org/{job_id}"


TARGET = JobTarget(make=lambda settings: Runner(), config=Config)
"""


@contextmanager
def installed(folder: Path, *entries: str, module: str = MODULE) -> Iterator[None]:
    """A package `queue_target` is installed, with these lines as its entry points."""
    package = folder / "queue_target-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: queue-target\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("\n".join(["[interlock.jobs]", *entries]) + "\n")
    (folder / "queue_target.py").write_text(module)
    sys.path.insert(0, str(folder))
    foreign_targets.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("queue_target", None)
        foreign_targets.cache_clear()

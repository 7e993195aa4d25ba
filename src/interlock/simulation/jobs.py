"""Scripted jobs. They live outside the controller, as real ones do: a crash does not touch them."""

import heapq
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from interlock.model.config import JobType
from interlock.model.errors import JobStartError
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory
from interlock.ports.clock import Clock
from interlock.ports.job_types import known_types
from interlock.ports.jobs import (
    JobOutput,
    JobRequest,
    JobRunner,
    JobStarted,
    JobState,
    JobStatus,
    JobStop,
    Recovery,
)
from interlock.simulation.scenario import ScriptedJob

_DEFAULT: Final = (ScriptedJob(),)
# These report their end at once; the end of others is found at the next poll.
_PUSHED: Final = frozenset({JobType.COMMAND, JobType.EXTERNAL, JobType.HTTP, JobType.LAMBDA})
_RESULTS: Final = {
    "success": JobState.SUCCEEDED,
    "fail": JobState.FAILED,
    "timeout": JobState.TIMED_OUT,
}


class _Job(msgspec.Struct, frozen=True):
    request: JobRequest
    script: ScriptedJob
    started_at: datetime


class ScriptedTargets:
    """All the systems in which the jobs of a scenario live."""

    def __init__(self, scripts: Mapping[str, Sequence[ScriptedJob]], clock: Clock) -> None:
        self._scripts = scripts
        self._clock = clock
        self._jobs: dict[str, _Job] = {}
        self._attempts: dict[RunKey, list[int]] = {}
        self._refused: dict[str, int] = {}
        self._stopped: dict[str, datetime] = {}
        self._ends: list[tuple[datetime, str]] = []
        self.starts: list[tuple[str, int]] = []

    def runners(self) -> dict[str, JobRunner]:
        """A runner per job type."""
        return {type_: _Runner(self, pushed=type_ in _PUSHED) for type_ in known_types()}

    def start(self, request: JobRequest, *, pushed: bool) -> JobStarted:
        """Start the scripted job of this attempt, or refuse as scripted."""
        script = self._script(request)
        if script.result == "refuse":
            self._refused[request.run_id] = self._refused.get(request.run_id, 0) + 1
            permanent = script.category is FailureCategory.PERMANENT
            raise JobStartError(script.error or "refused by the scenario", permanent=permanent)
        now = self._clock.now()
        self._jobs[request.run_id] = _Job(request, script, now)
        self.starts.append((str(request.key), request.attempt))
        if pushed and script.result != "hang":
            heapq.heappush(self._ends, (now + script.after, request.run_id))
        return JobStarted(job_id=f"job-{request.run_id}")

    def _script(self, request: JobRequest) -> ScriptedJob:
        """In order per run: the entry of the n-th attempt that calls the target; the last repeats."""
        attempts = self._attempts.setdefault(request.key, [])
        if request.attempt not in attempts:
            attempts.append(request.attempt)
        scripts = list(self._scripts.get(request.key.pipeline) or _DEFAULT)
        index = attempts.index(request.attempt)
        script = scripts[min(index, len(scripts) - 1)]
        if script.times is not None and self._refused.get(request.run_id, 0) >= script.times:
            return scripts[min(index + 1, len(scripts) - 1)]
        return script

    def check(self, run_id: str) -> JobStatus:
        """The job's state at this instant."""
        job = self._jobs.get(run_id)
        if job is None:
            return JobStatus(state=JobState.FAILED, error=f"no job {run_id}")
        if run_id in self._stopped:
            return JobStatus(state=JobState.FAILED, category=FailureCategory.TRANSIENT, error="stopped on request")
        over = self._clock.now() >= job.started_at + job.script.after
        if job.script.result == "hang" or not over:
            return JobStatus(state=JobState.RUNNING)
        return JobStatus(state=_RESULTS[job.script.result], category=job.script.category, error=job.script.error)

    def stop(self, run_id: str, *, pushed: bool) -> JobStop:
        """End a job at this instant."""
        if self.check(run_id).state.terminal:
            return JobStop.ENDED
        self._stopped[run_id] = self._clock.now()
        if pushed:
            # In place of its own end, if it had one: no end is reported twice.
            self._ends = [one for one in self._ends if one[1] != run_id]
            heapq.heapify(self._ends)
            heapq.heappush(self._ends, (self._clock.now(), run_id))
        return JobStop.REQUESTED

    def find(self, run_id: str) -> JobStarted | None:
        """The job of an id of ours, if it was started."""
        return JobStarted(job_id=f"job-{run_id}") if run_id in self._jobs else None

    def next_end(self) -> datetime | None:
        """When the next job tells of its end by itself."""
        return self._ends[0][0] if self._ends else None

    def ended(self, now: datetime) -> JobRequest | None:
        """The next job that reports its end now; reported again until received, as a restarted controller asks."""
        if not self._ends or self._ends[0][0] > now:
            return None
        return self._jobs[self._ends[0][1]].request

    def heard(self) -> None:
        """What `ended` reported has arrived."""
        heapq.heappop(self._ends)


class _Runner:
    def __init__(self, targets: ScriptedTargets, *, pushed: bool) -> None:
        self._targets = targets
        self._pushed = pushed

    def start(self, request: JobRequest) -> JobStarted:
        return self._targets.start(request, pushed=self._pushed)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        return self._targets.find(request.run_id) or Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        del job_id
        return self._targets.check(request.run_id)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        del job_id
        return self._targets.stop(request.run_id, pushed=self._pushed)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        del job_id
        over = self._targets.check(request.run_id).state.terminal
        return JobOutput(next_offset=offset, complete=over)

    def link(self, request: JobRequest, job_id: str) -> str:
        del request, job_id
        return ""

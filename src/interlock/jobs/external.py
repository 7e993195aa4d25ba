"""The gate alone: somebody else's scheduler starts the job when it hears `JOB_TRIGGERED`, and reports how it ended.

Nothing is called here, so nothing can get lost: a start after a crash is the same start, and the job runs until an
outcome for it is in the job log.
"""

from typing import Final

from interlock.model.errors import JobStopError
from interlock.model.job_configs import ExternalConfig
from interlock.ports.job_targets import JobTarget
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, JobStop, Recovery


class ExternalRunner:
    """Jobs that others run."""

    def start(self, request: JobRequest) -> JobStarted:
        """Nothing to do: the controller's `JOB_TRIGGERED` is the signal, and the run id is what to report back."""
        return JobStarted(job_id=request.run_id)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """A start that does nothing cannot be half done."""
        return JobStarted(job_id=request.run_id)

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """Running, until somebody reports otherwise."""
        return JobStatus(state=JobState.RUNNING)

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """Refused: the job may well be running, and only the scheduler that started it can end it."""
        raise JobStopError(
            f"{job_id} runs in another scheduler: stop it there, then report its end"
            f" (interlock job report {request.key.pipeline} --date {request.key.date} fail)"
        )

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """Nothing: what the job writes is in the other scheduler."""
        return JobOutput(next_offset=offset, complete=True)

    def link(self, request: JobRequest, job_id: str) -> str:
        """None is known."""
        return ""


TARGET: Final = JobTarget(make=lambda _: ExternalRunner(), config=ExternalConfig)

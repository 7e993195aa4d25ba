"""What a job target must be able to do. One module of `interlock.jobs` each."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory

OUTPUT_LIMIT: Final = 64 * 1024


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A job to start, with templates already filled in. `run_id` is ours, made and stored before the start.

    What the controller hands out still has its secrets as `decide.templates.SecretText`; what a target gets does not.
    `started_at` is when the target had answered the start; None until then. `begins_at` is the instant at which the
    run's period begins, in the zone of its schedule.
    """

    key: RunKey
    attempt: int
    run_id: str
    config: Mapping[str, Any]
    started_at: datetime | None = None
    begins_at: datetime | None = None


class JobState(StrEnum):
    """What a target says of a job."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed-out"

    @property
    def terminal(self) -> bool:
        """It will not change any more."""
        return self is not JobState.RUNNING


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A job's state, and whose fault a failure is."""

    state: JobState
    category: FailureCategory | None = None
    error: str = ""
    warning: str = ""
    """What somebody should know of a job that succeeded all the same; it goes into the job log."""
    ask_again: timedelta | None = None
    """More will be known after this long, which may be sooner than the next poll."""
    answer: str = ""
    """What the target said of the end, at most some hundred bytes; it goes into the job log."""


class JobStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The target accepted the job. `status` is given when it is already over (a synchronous call)."""

    job_id: str
    status: JobStatus | None = None
    answer: str = ""
    """What the target said, at most some hundred bytes; it goes into JOB_TRIGGERED."""


class Recovery(StrEnum):
    """What can be said of a start whose answer was lost."""

    START_AGAIN = "start-again"
    UNDECIDABLE = "undecidable"


class JobStop(StrEnum):
    """What came of asking a target to stop a job."""

    REQUESTED = "requested"  # it will end soon; `check` says when
    ENDED = "ended"  # it was already over


class JobOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of what a job wrote. `text` is at most OUTPUT_LIMIT bytes of it, from the offset that was asked for."""

    text: str = ""
    next_offset: int = 0
    complete: bool = False
    """Nothing more will come."""
    link: str = ""
    """Where a person reads the rest; "" if nowhere."""


class JobRunner(Protocol):
    """A target. Called from worker threads; a call may take long and must not hold a lock."""

    def start(self, request: JobRequest) -> JobStarted:
        """Start the job. Raises JobStartError; any other exception counts as a passing infrastructure error."""
        ...

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        """After a crash between our commit of `run_id` and the target's answer: find the job by `run_id`.

        START_AGAIN when a second start is harmless (the run id is an idempotency key) or the job surely never started.
        """
        ...

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        """The job's state now."""
        ...

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        """Ask the target to end the job; asking again does no harm. Returns before the job has ended.

        Raises JobStopError when this target cannot stop it; any other exception counts as a passing error.
        """
        ...

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        """What the job wrote from `offset` on, which is a `next_offset` of before, or 0; also while it runs.

        A target that keeps no text answers with the link alone.
        """
        ...

    def link(self, request: JobRequest, job_id: str) -> str:
        """Where a person looks at the job; "" if nowhere. Calls nobody, and tells no secret."""
        ...

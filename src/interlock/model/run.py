"""Runs and what hangs on them: attempts, job log, reruns, SLA state."""

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from interlock.model.keys import RunKey


class _Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class RunStatus(StrEnum):
    """Where the latest attempt of a run is."""

    PENDING = "PENDING"
    TRIGGERING = "TRIGGERING"
    RUNNING = "RUNNING"
    FAILED = "FAILED"
    JOB_POLL_EXHAUSTED = "JOB_POLL_EXHAUSTED"
    COMPLETED = "COMPLETED"
    FAILED_FINAL = "FAILED_FINAL"

    @property
    def terminal(self) -> bool:
        """Only a new attempt (or a late success) leaves these."""
        return self in (RunStatus.COMPLETED, RunStatus.FAILED_FINAL)


class FinalReason(StrEnum):
    """Why a run is FAILED_FINAL."""

    VALIDATION_EXHAUSTED = "validation-exhausted"
    DEADLINE_EXPIRED = "deadline-expired"
    TRIGGER_EXHAUSTED = "trigger-exhausted"
    UNCERTAIN = "uncertain"
    INFRA = "infra"
    STALE = "stale"
    RETRIES_USED_UP = "retries-used-up"
    POLL_EXHAUSTED = "poll-exhausted"
    WITHDRAWN = "withdrawn"
    CANCELLED = "cancelled"

    @property
    def closes_sla(self) -> bool:
        """Are the SLA timers cancelled? They stay armed for a failure that a person should still be reminded of."""
        return self in (
            FinalReason.RETRIES_USED_UP,
            FinalReason.POLL_EXHAUSTED,
            FinalReason.WITHDRAWN,
            FinalReason.CANCELLED,
        )


class Source(StrEnum):
    """Why an attempt was opened."""

    FIRST = "first"
    REOPEN = "reopen"
    JOB_FAIL_TRANSIENT = "job-fail-transient"
    JOB_FAIL_CODE = "job-fail-code"
    DATA_DRIFT = "data-drift"
    LATE_DATA = "late-data"
    UPSTREAM = "upstream"
    MANUAL = "manual"


class Word(StrEnum):
    """What people are shown. `held`: the gate never opened, so no job was started."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    HELD = "held"


def word_of(status: RunStatus, final_reason: FinalReason | None, *, started: bool) -> Word:
    """A status in the words people are shown; `started`: was its job?"""
    match status:
        case RunStatus.PENDING | RunStatus.FAILED:
            return Word.WAITING
        case RunStatus.TRIGGERING | RunStatus.RUNNING:
            return Word.RUNNING
        case RunStatus.COMPLETED:
            return Word.DONE
        case RunStatus.FAILED_FINAL | RunStatus.JOB_POLL_EXHAUSTED:
            if final_reason in (FinalReason.WITHDRAWN, FinalReason.CANCELLED):
                return Word.FAILED if started else Word.HELD
            held = (FinalReason.VALIDATION_EXHAUSTED, FinalReason.DEADLINE_EXPIRED)
            return Word.HELD if final_reason in held else Word.FAILED


class Cancel(_Record, frozen=True, kw_only=True):
    """Somebody asked for the job of an attempt to be stopped. `problem`: why its target cannot do that."""

    at: datetime
    by: str = ""
    reason: str = ""
    problem: str = ""


class Run(_Record, frozen=True, kw_only=True):
    """The trigger record: one slot, its latest attempt.

    `refused`: the last call of the target surely started nothing, so it may be called again without looking for a job.
    `part`: which execution of the attempt drives it; they follow one another. `part_at`: when a later one began.
    `early_ends`: how many of them in a row ended without having handed over.
    `inputs`: digests of the sensors the attempt was decided on; the circuit breaker compares them.
    `slot`: its place in the pool of its job (`POOL#{pool}` `SLOT#{number}`), which it may have given back since.
    `markers_left`: more pipelines run after it than fit its commit; the rest get their markers from its change.
    `claim_id`, `claimed_by`: the claim on the job of an `external` attempt, and whose it is.
    `sla_closed`: the run failed for good once; its SLA is over for all later attempts, even once its state is gone.
    """

    pipeline: str
    schedule: str
    date: str
    status: RunStatus
    version: int
    attempt: int
    source: Source
    config_version: str
    opened_at: datetime
    first_opened_at: datetime
    updated_at: datetime
    opened_by: str = ""
    requested_by: str = ""
    lease_until: datetime | None = None
    tick_at: datetime | None = None
    retry_at: datetime | None = None
    final_reason: FinalReason | None = None
    run_id: str = ""
    job_id: str = ""
    passed_at: datetime | None = None
    triggered_at: datetime | None = None
    job_started_at: datetime | None = None
    ended_at: datetime | None = None
    first_completed_at: datetime | None = None
    markers_left: bool = False
    sla_closed: bool = False
    trigger_failures: int = 0
    refused: bool = False
    part: int = 1
    part_at: datetime | None = None
    early_ends: int = 0
    slot: str = ""
    cancel: Cancel | None = None
    inputs: dict[str, str] = {}
    trigger_payload: dict[str, Any] | None = None
    post_run_sensors: dict[str, Any] | None = None
    claim_id: str = ""
    claimed_by: str = ""
    message: str = ""

    @property
    def key(self) -> RunKey:
        """Its slot."""
        return RunKey(self.pipeline, self.schedule, self.date)

    @property
    def active(self) -> bool:
        """An attempt is under way."""
        return not self.status.terminal

    @property
    def word(self) -> Word:
        """Its status in the words people are shown."""
        return word_of(self.status, self.final_reason, started=self.triggered_at is not None)


class JobEvent(StrEnum):
    """What a job-log record says."""

    SUCCESS = "success"
    FAIL = "fail"
    TIMEOUT = "timeout"
    INFRA_TRIGGER_FAILURE = "infra-trigger-failure"
    INFRA_TRIGGER_EXHAUSTED = "infra-trigger-exhausted"
    VALIDATION_EXHAUSTED = "validation-exhausted"
    RERUN_REJECTED = "rerun-rejected"

    @property
    def outcome(self) -> bool:
        """Does it end a job?"""
        return self in (JobEvent.SUCCESS, JobEvent.FAIL, JobEvent.TIMEOUT)


class FailureCategory(StrEnum):
    """Whose fault it is: PERMANENT is the code's, the rest is the world's."""

    PERMANENT = "PERMANENT"
    TRANSIENT = "TRANSIENT"
    TIMEOUT = "TIMEOUT"


class JobRecord(_Record, frozen=True, kw_only=True):
    """One append-only line of the job log."""

    pipeline: str
    schedule: str
    date: str
    event: JobEvent
    attempt: int
    at: datetime
    run_id: str = ""
    job_id: str = ""
    category: FailureCategory | None = None
    error: str = ""
    warning: str = ""
    answer: str = ""
    reported_by: str = ""

    @property
    def key(self) -> RunKey:
        """The run it belongs to."""
        return RunKey(self.pipeline, self.schedule, self.date)


class RerunRequest(_Record, frozen=True, kw_only=True):
    """Somebody (or a detector) asks for another attempt."""

    pipeline: str
    schedule: str
    date: str
    id: str
    source: Source
    at: datetime
    reason: str = ""
    force: bool = False
    requested_by: str = ""
    ttl: int | None = None

    @property
    def key(self) -> RunKey:
        """The run it is for."""
        return RunKey(self.pipeline, self.schedule, self.date)


class RerunRecord(_Record, frozen=True, kw_only=True):
    """An attempt was opened by a retry or a rerun; the budgets are counted from these."""

    pipeline: str
    schedule: str
    date: str
    attempt: int
    source: Source
    at: datetime
    reason: str = ""
    requested_by: str = ""


class SlaKind(StrEnum):
    """The alerts a run can give."""

    READINESS = "readiness"
    WARNING = "warning"
    BREACH = "breach"
    RELATIVE_WARNING = "relative-warning"
    RELATIVE_BREACH = "relative-breach"


class SlaOutcome(StrEnum):
    """How the SLA of a run ended."""

    MET = "met"
    RECOVERED = "recovered"
    CANCELLED = "cancelled"


class SlaState(_Record, frozen=True, kw_only=True):
    """The SLA of one run: its instants, which alerts were given, how it ended.

    Alert and "has it finished" are decided in one commit on this record; that is why it is apart from the run.
    `ready_at`: when the rules first passed. `back_fill`: somebody asked for the run after its deadline, which nobody
    was waiting for: its margin is recorded and nobody is alerted.
    """

    pipeline: str
    schedule: str
    date: str
    version: int
    config_version: str
    deadline: str = ""
    ready_by: str = ""
    ready_by_at: datetime | None = None
    warning_at: datetime | None = None
    breach_at: datetime | None = None
    relative_warning_at: datetime | None = None
    relative_breach_at: datetime | None = None
    first_arrival: datetime | None = None
    ready_at: datetime | None = None
    critical: bool = False
    back_fill: bool = False
    fired: dict[SlaKind, datetime] = {}
    outcome: SlaOutcome | None = None
    closed_at: datetime | None = None

    @property
    def key(self) -> RunKey:
        """The run it belongs to."""
        return RunKey(self.pipeline, self.schedule, self.date)

    def instant(self, kind: SlaKind) -> datetime | None:
        """When that alert is due."""
        match kind:
            case SlaKind.READINESS:
                return self.ready_by_at
            case SlaKind.WARNING:
                return self.warning_at
            case SlaKind.BREACH:
                return self.breach_at
            case SlaKind.RELATIVE_WARNING:
                return self.relative_warning_at
            case SlaKind.RELATIVE_BREACH:
                return self.relative_breach_at


class Active(_Record, frozen=True, kw_only=True):
    """The wake-up record of an active run (SPEC 5): apart from the run so that wake-ups do not disturb its version.

    `rules`: what the rules came to so far, as `decide.verdicts` writes it, stored with the token of the wait.
    `woken_at`: when a token was last answered; `wake_due`: a wake-up that joins several is on its way for that instant.
    """

    attempt: int
    wake_seq: int
    token: str | None = None
    rules: str = ""
    woken_at: datetime | None = None
    wake_due: datetime | None = None


class Marker(_Record, frozen=True, kw_only=True):
    """An upstream completed a period; lies in the downstream's partition. `again`: it had completed it before."""

    upstream: str
    date: str
    completed_at: datetime
    attempt: int
    upstream_schedule: str = ""
    again: bool = False


class Baseline(_Record, frozen=True, kw_only=True):
    """The post-run sensors as they were when the run completed, by rule key; a later one as it first was.

    Of large ones only the drift field is kept. `digests`: those of the sensors that first came after the completion.
    `seen`: the last write of each sensor that was considered (when it was received and the digest of what it said), so
    that a redelivered change is not considered twice.
    """

    attempt: int
    at: datetime
    version: int
    sensors: dict[str, dict[str, Any]] = {}
    digests: dict[str, str] = {}
    seen: dict[str, str] = {}
    verdict: bool | None = None


class DryRun(_Record, frozen=True, kw_only=True):
    """What a dry run has observed of one run; no run record ever exists beside it."""

    pipeline: str
    schedule: str
    date: str
    version: int
    opened_at: datetime
    config_version: str
    ttl: int
    would_trigger_at: datetime | None = None
    trigger_payload: dict[str, Any] | None = None
    post_run_sensors: dict[str, Any] | None = None
    first_arrival: datetime | None = None
    seen: dict[str, str] = {}
    used: dict[Source, int] = {}

    @property
    def key(self) -> RunKey:
        """The run it stands for."""
        return RunKey(self.pipeline, self.schedule, self.date)

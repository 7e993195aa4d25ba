"""Events: one enum, one table (type, severity, when, fields). The event catalogue of the docs is printed from here."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

SOURCE: Final = "interlock"
EVENT_TTL_DAYS: Final = 90


class Severity(StrEnum):
    """How much somebody should care."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Info is 0, critical is 3."""
        return list(Severity).index(self)

    def raised(self) -> "Severity":
        """One step more severe."""
        return list(Severity)[min(self.rank + 1, 3)]


class EventType(StrEnum):
    """Everything Interlock publishes."""

    TRIGGER_STARTED = "TRIGGER_STARTED"
    PIPELINE_EXCLUDED = "PIPELINE_EXCLUDED"
    VALIDATION_PASSED = "VALIDATION_PASSED"
    VALIDATION_EXHAUSTED = "VALIDATION_EXHAUSTED"
    JOB_TRIGGERED = "JOB_TRIGGERED"
    JOB_STARTED = "JOB_STARTED"
    JOB_COMPLETED = "JOB_COMPLETED"
    JOB_FAILED = "JOB_FAILED"
    JOB_TIMEOUT = "JOB_TIMEOUT"
    JOB_POLL_EXHAUSTED = "JOB_POLL_EXHAUSTED"
    RETRY_EXHAUSTED = "RETRY_EXHAUSTED"
    TRIGGER_UNCERTAIN = "TRIGGER_UNCERTAIN"
    INFRA_FAILURE = "INFRA_FAILURE"
    RUN_WITHDRAWN = "RUN_WITHDRAWN"
    JOB_CANCELLED = "JOB_CANCELLED"
    RERUN_ACCEPTED = "RERUN_ACCEPTED"
    RERUN_REJECTED = "RERUN_REJECTED"
    LATE_DATA_ARRIVAL = "LATE_DATA_ARRIVAL"
    READINESS_LATE = "READINESS_LATE"
    SLA_WARNING = "SLA_WARNING"
    SLA_BREACH = "SLA_BREACH"
    SLA_MET = "SLA_MET"
    SLA_RECOVERED = "SLA_RECOVERED"
    RELATIVE_SLA_WARNING = "RELATIVE_SLA_WARNING"
    RELATIVE_SLA_BREACH = "RELATIVE_SLA_BREACH"
    POST_RUN_BASELINE_CAPTURED = "POST_RUN_BASELINE_CAPTURED"
    BASELINE_CAPTURE_FAILED = "BASELINE_CAPTURE_FAILED"
    POST_RUN_PASSED = "POST_RUN_PASSED"
    POST_RUN_FAILED = "POST_RUN_FAILED"
    POST_RUN_DRIFT = "POST_RUN_DRIFT"
    POST_RUN_DRIFT_INFLIGHT = "POST_RUN_DRIFT_INFLIGHT"
    POST_RUN_SENSOR_MISSING = "POST_RUN_SENSOR_MISSING"
    SFN_TIMEOUT = "SFN_TIMEOUT"
    SCHEDULE_MISSED = "SCHEDULE_MISSED"
    IRREGULAR_SCHEDULE_MISSED = "IRREGULAR_SCHEDULE_MISSED"
    TRIGGER_RECOVERED = "TRIGGER_RECOVERED"
    SENSOR_DEADLINE_EXPIRED = "SENSOR_DEADLINE_EXPIRED"
    WATCHDOG_DEGRADED = "WATCHDOG_DEGRADED"
    CONFIG_INVALID = "CONFIG_INVALID"
    CONFIG_RESTORED = "CONFIG_RESTORED"
    CONFIG_FOLDER_LOST = "CONFIG_FOLDER_LOST"
    PIPELINE_REMOVED = "PIPELINE_REMOVED"
    SENSOR_INVALID = "SENSOR_INVALID"
    PROBE_FAILED = "PROBE_FAILED"
    INFRA_ALARM = "INFRA_ALARM"
    DRY_RUN_WOULD_TRIGGER = "DRY_RUN_WOULD_TRIGGER"
    DRY_RUN_SLA_PROJECTION = "DRY_RUN_SLA_PROJECTION"
    DRY_RUN_COMPLETED = "DRY_RUN_COMPLETED"
    DRY_RUN_LATE_DATA = "DRY_RUN_LATE_DATA"
    DRY_RUN_DRIFT = "DRY_RUN_DRIFT"
    DRY_RUN_WOULD_RERUN = "DRY_RUN_WOULD_RERUN"
    DRY_RUN_RERUN_REJECTED = "DRY_RUN_RERUN_REJECTED"
    DRY_RUN_WOULD_RETRY = "DRY_RUN_WOULD_RETRY"
    DRY_RUN_RETRY_EXHAUSTED = "DRY_RUN_RETRY_EXHAUSTED"


class Entry(msgspec.Struct, frozen=True):
    """A row of the catalogue; `fields` are those of the inner `detail`."""

    severity: Severity
    when: str
    fields: tuple[str, ...] = ()


_I, _W, _E = Severity.INFO, Severity.WARNING, Severity.ERROR
_SLA_FIELDS: Final = ("status", "deadline", "breachAt", "waitingFor", "actionHint", "dedupKey")
_RESULTS: Final = ("attempt", "results")
_JOB: Final = ("attempt", "runId", "jobId")

CATALOGUE: Final[dict[EventType, Entry]] = {
    EventType.TRIGGER_STARTED: Entry(
        _I, "an attempt was opened", ("attempt", "source", "openedBy", "configVersion", "requestedBy")
    ),
    EventType.PIPELINE_EXCLUDED: Entry(_I, "a start was withheld by the calendar", ("reason",)),
    EventType.VALIDATION_PASSED: Entry(_I, "the rules passed", _RESULTS),
    EventType.VALIDATION_EXHAUSTED: Entry(_W, "the evaluation window closed and the rules had not passed", _RESULTS),
    EventType.JOB_TRIGGERED: Entry(_I, "the job was started", (*_JOB, "jobType", "answer", "claimedBy")),
    EventType.JOB_STARTED: Entry(_I, "the job was first seen running", _JOB),
    EventType.JOB_COMPLETED: Entry(_I, "the job finished successfully", (*_JOB, "durationSeconds")),
    EventType.JOB_FAILED: Entry(_E, "the job failed", (*_JOB, "category", "error", "actionHint")),
    EventType.JOB_TIMEOUT: Entry(_E, "the job reported a time-out", (*_JOB, "category", "error", "actionHint")),
    EventType.JOB_POLL_EXHAUSTED: Entry(_E, "the poll window closed and the job had not ended", _JOB),
    EventType.RETRY_EXHAUSTED: Entry(_E, "no retry is left", ("attempt", "budget", "used", "error", "actionHint")),
    EventType.TRIGGER_UNCERTAIN: Entry(
        Severity.CRITICAL,
        "nobody can tell whether the job was started; it is not started again",
        ("attempt", "runId"),
    ),
    EventType.INFRA_FAILURE: Entry(_E, "an unrecoverable error in the controller's own services", ("attempt", "error")),
    EventType.RUN_WITHDRAWN: Entry(
        _W,
        "a run ended because its pipeline became a dry run or was deleted: no job is started for it any more",
        ("attempt", "reason", "status"),
    ),
    EventType.JOB_CANCELLED: Entry(
        _W,
        "somebody cancelled an attempt: it waits no more, or its job was stopped at its target",
        ("attempt", "reason", "requestedBy", "requestedAt", "runId", "jobId", "error"),
    ),
    EventType.RERUN_ACCEPTED: Entry(
        _I,
        "a rerun request was accepted; of a past period with the sensors that it reads although they name no period",
        ("attempt", "source", "reason", "requestedBy", "undatedSensors"),
    ),
    EventType.RERUN_REJECTED: Entry(_W, "a rerun request was refused", ("source", "code", "reason", "requestedBy")),
    EventType.LATE_DATA_ARRIVAL: Entry(_W, "the trigger sensor changed after completion", ("changed",)),
    EventType.READINESS_LATE: Entry(
        _W,
        "sla.readyBy passed and the rules had not passed",
        ("status", "readyBy", "readyByAt", "waitingFor", "actionHint", "dedupKey"),
    ),
    EventType.SLA_WARNING: Entry(_W, "the warning time passed and the run had not finished", _SLA_FIELDS),
    EventType.SLA_BREACH: Entry(_E, "the deadline passed and the run had not finished", _SLA_FIELDS),
    EventType.SLA_MET: Entry(_I, "the run completed before the warning", ("deadline", "breachAt", "marginSeconds")),
    EventType.SLA_RECOVERED: Entry(
        _W,
        "the run completed after the warning or the breach (info for a back-fill)",
        ("deadline", "breachAt", "marginSeconds", "backFill"),
    ),
    EventType.RELATIVE_SLA_WARNING: Entry(_W, "most of maxDuration is used", (*_SLA_FIELDS, "firstArrival")),
    EventType.RELATIVE_SLA_BREACH: Entry(
        _E, "maxDuration passed since the first arrival", (*_SLA_FIELDS, "firstArrival")
    ),
    EventType.POST_RUN_BASELINE_CAPTURED: Entry(
        _I,
        "the post-run sensors were snapshotted; `late`: one that first came after the completion is its own baseline",
        ("attempt", "baseline", "late"),
    ),
    EventType.BASELINE_CAPTURE_FAILED: Entry(_E, "the baseline could not be taken", ("attempt", "error")),
    EventType.POST_RUN_PASSED: Entry(_I, "the post-run rules pass", ("results",)),
    EventType.POST_RUN_FAILED: Entry(_W, "the post-run rules fail", ("results",)),
    EventType.POST_RUN_DRIFT: Entry(
        _W,
        "a post-run sensor drifted after completion",
        ("key", "field", "baseline", "current", "change", "threshold"),
    ),
    EventType.POST_RUN_DRIFT_INFLIGHT: Entry(
        _I,
        "a post-run sensor drifted while the job runs",
        ("key", "field", "baseline", "current", "change", "threshold"),
    ),
    EventType.POST_RUN_SENSOR_MISSING: Entry(
        _W, "no post-run data newer than the completion", ("keys", "sensorTimeout")
    ),
    EventType.SFN_TIMEOUT: Entry(_E, "an attempt outlived its lease", ("attempt", "status", "leaseUntil")),
    EventType.SCHEDULE_MISSED: Entry(_E, "a cron tick passed without a run", ("tick",)),
    EventType.IRREGULAR_SCHEDULE_MISSED: Entry(_E, "an inclusion date passed without a run", ("expectedAt",)),
    EventType.TRIGGER_RECOVERED: Entry(_W, "the watchdog started what had been lost", ("reason",)),
    EventType.SENSOR_DEADLINE_EXPIRED: Entry(
        _E, "the trigger deadline passed without a run", ("deadline", "deadlineAt")
    ),
    EventType.WATCHDOG_DEGRADED: Entry(_E, "watchdog checks failed", ("checks", "errors")),
    EventType.CONFIG_INVALID: Entry(
        _E,
        "a config is invalid; `inForce` is the version that goes on, without it nothing of the pipeline is run",
        ("errors", "configVersion", "file", "inForce"),
    ),
    EventType.CONFIG_RESTORED: Entry(
        _I, "an invalid config was mended, or a lost folder is back", ("file", "configVersion", "folder")
    ),
    EventType.CONFIG_FOLDER_LOST: Entry(
        _E,
        "the folder of pipelines is missing, unreadable, empty, or lost most of its files at once; "
        "the pipelines that came from it stay in force",
        ("folder", "reason", "pipelines"),
    ),
    EventType.PIPELINE_REMOVED: Entry(
        _W, "a pipeline was removed: it opens nothing new, what is under way ends", ("reason", "removedBy")
    ),
    EventType.SENSOR_INVALID: Entry(_W, "a sensor write has a malformed period; no run was started", ("key", "reason")),
    EventType.PROBE_FAILED: Entry(_W, "a probe failed or timed out", ("key", "error")),
    EventType.INFRA_ALARM: Entry(_E, "an alarm of the underlying infrastructure", ("alarm", "state")),
    EventType.DRY_RUN_WOULD_TRIGGER: Entry(_I, "dry run: the job would be started now", ("results",)),
    EventType.DRY_RUN_SLA_PROJECTION: Entry(
        _I,
        "dry run: the SLA as it would turn out",
        ("status", "estimatedCompletion", "deadline", "marginSeconds"),
    ),
    EventType.DRY_RUN_COMPLETED: Entry(_I, "dry run: the observation is complete", ("verdict",)),
    EventType.DRY_RUN_LATE_DATA: Entry(_I, "dry run: the trigger sensor changed afterwards", ("changed",)),
    EventType.DRY_RUN_DRIFT: Entry(
        _I,
        "dry run: a post-run sensor drifted",
        ("key", "field", "baseline", "current", "change", "threshold"),
    ),
    EventType.DRY_RUN_WOULD_RERUN: Entry(_I, "dry run: a rerun would be accepted", ("source", "reason")),
    EventType.DRY_RUN_RERUN_REJECTED: Entry(_I, "dry run: a rerun would be refused", ("source", "reason")),
    EventType.DRY_RUN_WOULD_RETRY: Entry(
        _I, "dry run: a reported failure would be retried", ("category", "budget", "used")
    ),
    EventType.DRY_RUN_RETRY_EXHAUSTED: Entry(
        _I, "dry run: a reported failure would be final", ("category", "budget", "used")
    ),
}


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that happened, as it is stored in the events table."""

    type: EventType
    severity: Severity
    pipeline_id: str
    message: str
    timestamp: datetime
    schedule_id: str = ""
    date: str = ""
    detail: dict[str, Any] = {}

    def envelope(self) -> dict[str, Any]:
        """The form subscribers receive: EventBridge's."""
        inner: dict[str, Any] = {
            "pipelineId": self.pipeline_id,
            "scheduleId": self.schedule_id,
            "date": self.date,
            "message": self.message,
            "timestamp": msgspec.to_builtins(self.timestamp),
            "severity": self.severity.value,
        }
        if self.detail:
            inner["detail"] = self.detail
        return {"source": SOURCE, "detail-type": self.type.value, "detail": inner}

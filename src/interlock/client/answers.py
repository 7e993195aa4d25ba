"""What the server answers, as the SDK gives it to a program: plain frozen values.

They say what the server's views say, and may be read from an older or newer server: a field that is not known is
passed over, one that is missing has its default, and words such as a status are text, so that a new one is no error.
"""

from datetime import datetime
from typing import Any

import msgspec


class _Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class Written(_Answer, frozen=True, kw_only=True):
    """A stored observation. `period` is the one it names for itself; `warnings` say what is odd about it."""

    pipeline: str
    key: str
    received_at: datetime
    period: str = ""
    warnings: list[str] = []


class Sensor(_Answer, frozen=True, kw_only=True):
    """The latest observation of a key. `read`: some rule of the pipeline reads it; `ttl`: epoch seconds; `by`: who
    wrote it.
    """

    pipeline: str
    key: str
    data: dict[str, Any]
    received_at: datetime
    period: str = ""
    read: bool = True
    ttl: int | None = None
    by: str = ""


class RuleResult(_Answer, frozen=True, kw_only=True):
    """What one rule came to; `reason` is a line a person can act on."""

    key: str
    check: str
    passed: bool
    reason: str = ""
    actual: Any = None
    expected: Any = None
    field: str | None = None


class Run(_Answer, frozen=True, kw_only=True):
    """A run in one line. `word` is one of waiting, running, done, failed, held."""

    pipeline: str
    schedule: str
    date: str
    status: str
    word: str
    attempt: int
    source: str
    opened_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    final_reason: str | None = None
    duration_seconds: float | None = None
    message: str = ""


class Attempt(_Answer, frozen=True, kw_only=True):
    """One pass of the lifecycle, as far as is known of it."""

    attempt: int
    source: str | None = None
    opened_at: datetime | None = None
    opened_by: str = ""
    requested_by: str = ""
    reason: str = ""
    run_id: str = ""
    job_id: str = ""
    passed_at: datetime | None = None
    triggered_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str = ""


class JobRecord(_Answer, frozen=True, kw_only=True):
    """One line of the job log."""

    pipeline: str
    schedule: str
    date: str
    event: str
    attempt: int
    at: datetime
    run_id: str = ""
    job_id: str = ""
    category: str | None = None
    error: str = ""
    warning: str = ""
    reported_by: str = ""


class RerunRecord(_Answer, frozen=True, kw_only=True):
    """An attempt that a retry or a rerun opened."""

    pipeline: str
    schedule: str
    date: str
    attempt: int
    source: str
    at: datetime
    reason: str = ""
    requested_by: str = ""


class Sla(_Answer, frozen=True, kw_only=True):
    """The SLA of a run: when its alerts are due, which were given, how it ended."""

    deadline: str = ""
    ready_by: str = ""
    ready_by_at: datetime | None = None
    ready_at: datetime | None = None
    warning_at: datetime | None = None
    breach_at: datetime | None = None
    relative_warning_at: datetime | None = None
    relative_breach_at: datetime | None = None
    critical: bool = False
    back_fill: bool = False
    fired: dict[str, datetime] = {}
    outcome: str | None = None


class Event(_Answer, frozen=True, kw_only=True):
    """Something that happened. `id` is its place in the events table."""

    id: str
    type: str
    severity: str
    pipeline_id: str
    message: str
    timestamp: datetime
    schedule_id: str = ""
    date: str = ""
    detail: dict[str, Any] = {}


class Cancel(_Answer, frozen=True, kw_only=True):
    """Somebody asked for the job of an attempt to be stopped. `problem`: why its target cannot do that."""

    at: datetime
    by: str = ""
    reason: str = ""
    problem: str = ""


class RunDetail(Run, frozen=True, kw_only=True):
    """A run with everything that hangs on it. `rules_live`: as they are now, while it waits."""

    config_version: str = ""
    opened_by: str = ""
    requested_by: str = ""
    claimed_by: str = ""
    run_id: str = ""
    job_id: str = ""
    first_opened_at: datetime | None = None
    passed_at: datetime | None = None
    triggered_at: datetime | None = None
    job_started_at: datetime | None = None
    retry_at: datetime | None = None
    first_completed_at: datetime | None = None
    attempts: list[Attempt] = []
    rules: list[RuleResult] = []
    rules_live: bool = False
    job_log: list[JobRecord] = []
    reruns: list[RerunRecord] = []
    cancel: Cancel | None = None
    events: list[Event] = []
    sla: Sla | None = None


class Readiness(_Answer, frozen=True, kw_only=True):
    """Would the rules let a run of that date start now, and what of each.

    `config_changed`: an attempt is under way, and goes by an earlier config than the current one.
    """

    pipeline: str
    schedule: str
    date: str
    ready: bool
    mode: str
    summary: str
    evaluated_at: datetime
    results: list[RuleResult] = []
    excluded: str | None = None
    awaited_upstreams: list[str] = []
    run: Run | None = None
    config_changed: bool = False


class Statement(_Answer, frozen=True, kw_only=True):
    """One line of an explanation; `mark` is pass, fail or none."""

    text: str
    mark: str = "none"


class Section(_Answer, frozen=True, kw_only=True):
    """The statements about one question."""

    title: str
    lines: list[Statement] = []


class Explanation(_Answer, frozen=True, kw_only=True):
    """Why a pipeline ran, or has not. `state` is the word of the run, or what there is instead of a run.

    As text (`str(explanation)`) it is made to be pasted into a chat.
    """

    pipeline: str
    schedule: str
    date: str
    at: datetime
    verdict: str
    timezone: str = "UTC"
    state: str = ""
    sections: list[Section] = []
    advice: str = ""

    def __str__(self) -> str:
        signs = {"pass": "+", "fail": "x"}
        parts = [self.verdict]
        for section in self.sections:
            parts += ["", section.title, *(f"  {signs.get(one.mark, '-')} {one.text}" for one in section.lines)]
        return "\n".join([*parts, *(["", f"What to do: {self.advice}"] if self.advice else [])])


class Calendar(_Answer, frozen=True, kw_only=True):
    """A named calendar: weekdays, dates, or both."""

    name: str
    days: list[str] = []
    dates: list[str] = []
    description: str = ""


class Calendars(_Answer, frozen=True, kw_only=True):
    """Every named calendar."""

    items: list[Calendar]


class NextRun(_Answer, frozen=True, kw_only=True):
    """The next run of a schedule. Without `start_at` the clock does not open it: `opens` says what does."""

    schedule: str
    date: str | None = None
    start_at: datetime | None = None
    opens: str = ""
    warning_at: datetime | None = None
    breach_at: datetime | None = None


class ScheduleStanding(_Answer, frozen=True, kw_only=True):
    """How a schedule stands: its latest run, that run's SLA, and its next run."""

    schedule: str
    latest: Run | None = None
    sla: Sla | None = None
    next_run: NextRun | None = None


class Pipeline(_Answer, frozen=True, kw_only=True):
    """A pipeline in one line. One that is not `valid` is not run; `errors` say why; `latest_sla` is of `latest`."""

    id: str
    owner: str = ""
    description: str = ""
    version: str = ""
    valid: bool = True
    errors: list[str] = []
    dry_run: bool = False
    job_type: str | None = None
    schedules: list[str] = []
    after: list[str] = []
    active_runs: int = 0
    latest: Run | None = None
    latest_sla: Sla | None = None
    by_schedule: list[ScheduleStanding] = []


class PipelineDetail(Pipeline, frozen=True, kw_only=True):
    """A pipeline with the document it was read from; what looks like a secret in it is hidden."""

    document: dict[str, Any] = {}
    reads: list[str] = []
    first_applied_at: datetime | None = None


class ConfigFolder(_Answer, frozen=True, kw_only=True):
    """A folder of pipelines that the controller follows. `lost`: why nothing that it lacks is removed."""

    folder: str
    pipelines: int = 0
    lost: str = ""
    lost_since: datetime | None = None


class InvalidFile(_Answer, frozen=True, kw_only=True):
    """A config file that cannot be used. `in_force`: the version that goes on; "" when nothing of it is run."""

    pipeline: str
    file: str
    errors: list[str] = []
    since: datetime | None = None
    in_force: str = ""
    verdict: str = ""


class RemovedPipeline(_Answer, frozen=True, kw_only=True):
    """A pipeline that was removed, with its runs that are still under way."""

    pipeline: str
    runs: list[Run] = []


class Controller(_Answer, frozen=True, kw_only=True):
    """How the controller stands. `degraded`: what it works in spite of, in words."""

    folders: list[ConfigFolder] = []
    invalid_files: list[InvalidFile] = []
    removed: list[RemovedPipeline] = []
    degraded: list[str] = []


class Delivery(_Answer, frozen=True, kw_only=True):
    """An alert on its way to a channel. `state` is waiting, sent or dead; `due_at` is the next try."""

    id: int
    channel: str
    event_id: str = ""
    pipeline: str = ""
    state: str = ""
    tries: int = 0
    queued_at: datetime | None = None
    due_at: datetime | None = None
    settled_at: datetime | None = None
    error: str = ""


class Actor(_Answer, frozen=True, kw_only=True):
    """Who changed something. `kind` is token, sign-on, owner, os-user, anybody, job, folder or controller."""

    kind: str
    name: str
    address: str = ""
    os_user: str = ""


class AuditRecord(_Answer, frozen=True, kw_only=True):
    """A change on the record: who, from where, what, why, and what was there before and after."""

    seq: int
    at: datetime
    action: str
    actor: Actor
    pipeline: str = ""
    schedule: str = ""
    date: str = ""
    subject: str = ""
    reason: str = ""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    hash: str = ""


class ProbeTrial(_Answer, frozen=True, kw_only=True):
    """What a probe saw when it was tried by hand, or why it failed."""

    pipeline: str
    key: str
    ok: bool
    date: str = ""
    data: dict[str, Any] | None = None
    error: str = ""


class ChannelTest(_Answer, frozen=True, kw_only=True):
    """What became of a test alert on one channel."""

    channel: str
    ok: bool
    error: str = ""


class AlertTest(_Answer, frozen=True, kw_only=True):
    """What became of a test alert on each channel."""

    channels: list[ChannelTest] = []


class DeadLetter(_Answer, frozen=True, kw_only=True):
    """A record that was given up on, whole. `source` is who failed on it."""

    id: int
    kind: str
    source: str
    record: dict[str, Any]
    error: str
    tries: int
    first_at: datetime
    last_at: datetime


class Batch(_Answer, frozen=True, kw_only=True):
    """The observations of a batch, stored, in the order they were given."""

    written: list[Written]


class Applied(_Answer, frozen=True, kw_only=True):
    """What became of a config. `changed` is false when the same was applied already."""

    id: str
    version: str = ""
    changed: bool = True
    warnings: list[str] = []


class Claim(_Answer, frozen=True, kw_only=True):
    """A run whose job is yours to do; report its outcome with `run_id`, or with the date alone."""

    pipeline: str
    schedule: str
    date: str
    reason: str = ""
    attempt: int | None = None
    run_id: str = ""
    claimed_by: str = ""


class Rerun(_Answer, frozen=True, kw_only=True):
    """A rerun request: `accepted`, `rejected`, or `pending` when nobody has decided it yet; an event will tell.

    `undated_sensors`: of a past period, the sensors that it reads as they are now, since they name no period.
    """

    id: str
    pipeline: str
    schedule: str
    date: str
    decision: str
    reason: str = ""
    undated_sensors: list[str] = []


class Cancelled(_Answer, frozen=True, kw_only=True):
    """What came of a cancellation: `cancelled`, or `stopping` while the target has not ended the job yet."""

    pipeline: str
    schedule: str
    date: str
    outcome: str


class JobOutput(_Answer, frozen=True, kw_only=True):
    """A piece of what a job wrote; `next_offset` is where to read on. `link`: where a person reads the rest."""

    text: str = ""
    next_offset: int = 0
    complete: bool = False
    link: str = ""


class WatchdogPass(_Answer, frozen=True, kw_only=True):
    """A pass of the watchdog. `failed_checks` could not be made; what the others found are events."""

    failed_checks: list[str] = []


class Redriven(_Answer, frozen=True, kw_only=True):
    """How many dead letters are done again."""

    redriven: int

"""A pipeline as its owner declares it (SPEC 2). What a person writes is camelCase; durations and clock times are typed.

The types are the schema: the decoder, the error messages and the JSON Schema for editors are all made from them.
Checks that span several fields live in `interlock.config.semantics`.
"""

from datetime import time, timedelta
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from interlock.model.durations import Duration
from interlock.model.errors import InvalidValueError
from interlock.model.keys import ID_PATTERN

HOUR: Final = Duration(hours=1)

# In Python `$` also matches before a final newline, and `\d` every script's digits; editors read these patterns too.
_END: Final = r"$(?!\n)"
_HOUR: Final = "([01]?[0-9]|2[0-3])"

# `form` says in words what the pattern asks for; errors quote it.
Id = Annotated[str, Meta(pattern=f"^{ID_PATTERN}{_END}", extra={"form": "letters, digits, '.', '_', '-'; at most 128"})]
ClockTime = Annotated[str, Meta(pattern=f"^{_HOUR}:[0-5][0-9]{_END}", extra={"form": "HH:MM"})]
Deadline = Annotated[
    str, Meta(pattern=f"^{_HOUR}?:[0-5][0-9]{_END}", extra={"form": "HH:MM, or :MM for hourly periods"})
]
Day = Annotated[str, Meta(pattern=f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_END}", extra={"form": "YYYY-MM-DD"})]
Scalar = str | int | float | bool | None


class _Config(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    pass


class Check(StrEnum):
    """What a rule asks of a sensor."""

    EXISTS = "exists"
    EQUALS = "equals"
    NE = "ne"
    IN = "in"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    AGE_LT = "age_lt"
    AGE_GT = "age_gt"


class Mode(StrEnum):
    """How rules combine."""

    ALL = "ALL"
    ANY = "ANY"


class Weekday(StrEnum):
    """Days of the week, in the order of `date.weekday()`."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


class JobType(StrEnum):
    """The systems a job can live in."""

    COMMAND = "command"
    HTTP = "http"
    AIRFLOW = "airflow"
    GLUE = "glue"
    EMR = "emr"
    EMR_SERVERLESS = "emr-serverless"
    STEP_FUNCTION = "step-function"
    DATABRICKS = "databricks"
    LAMBDA = "lambda"
    EXTERNAL = "external"


class Info(_Config, frozen=True, kw_only=True):
    """Who a pipeline is and who owns it."""

    id: Id
    owner: str = ""
    description: str = ""


class Rule(_Config, frozen=True, kw_only=True):
    """One declarative check of a sensor."""

    key: Annotated[str, Meta(min_length=1)]
    check: Check
    field: str | None = None
    value: Scalar | list[Scalar] = None
    period: Literal["run", "any"] = "run"


class Trigger(_Config, frozen=True, kw_only=True):
    """A sensor write that meets this opens a run."""

    key: Annotated[str, Meta(min_length=1)]
    check: Check
    field: str | None = None
    value: Scalar | list[Scalar] = None
    deadline: Deadline | None = None

    def as_rule(self) -> Rule:
        """The condition, without its deadline; the write's own period is what it is about."""
        return Rule(key=self.key, check=self.check, field=self.field, value=self.value, period="any")


class Evaluation(_Config, frozen=True, kw_only=True):
    """How long and how often the rules are evaluated."""

    window: Duration = HOUR
    interval: Duration = Duration(minutes=5)
    after_window: Literal["reopen", "stop"] = "reopen"


class Exclude(_Config, frozen=True, kw_only=True):
    """Days on which nothing is opened."""

    weekends: bool = False
    holidays: str | None = None
    dates: list[Day] = []
    days: list[Weekday] = []
    calendar: str | None = None


class Include(_Config, frozen=True, kw_only=True):
    """The only dates on which a run is opened."""

    dates: list[Day] = []
    calendar: str | None = None


class Calendar(_Config, frozen=True, kw_only=True):
    """A named calendar: a file in `calendars/`."""

    name: Annotated[str, Meta(min_length=1)]
    days: list[Weekday] = []
    dates: list[Day] = []
    description: str = ""


class Schedule(_Config, frozen=True, kw_only=True):
    """When a pipeline's runs are opened, and what for."""

    id: Id | None = None
    cron: str | None = None
    timezone: str = "UTC"
    period: Literal["current", "previous"] = "current"
    granularity: Literal["day", "hour"] | None = None
    time: ClockTime | None = None
    trigger: Trigger | None = None
    evaluation: Evaluation = Evaluation()
    exclude: Exclude | None = None
    include: Include | None = None

    @property
    def schedule_id(self) -> str:
        """`cron` or `stream`, or the id of an entry of `schedules`."""
        return self.id or ("cron" if self.cron else "stream")


class Sla(_Config, frozen=True, kw_only=True):
    """By when a run must be finished, and by when its inputs must be ready."""

    deadline: Deadline | None = None
    ready_by: Deadline | None = None
    expected_duration: Duration | None = None
    max_duration: Duration | None = None
    day_offset: Annotated[int, Meta(ge=0, le=31)] | None = None
    timezone: str | None = None
    critical: bool = False


class Validation(_Config, frozen=True, kw_only=True):
    """The safety constraint."""

    rules: Annotated[list[Rule], Meta(min_length=1)]
    trigger: Mode = Mode.ALL


class Job(_Config, frozen=True, kw_only=True):
    """What is started, where, and how often it is tried. `type`: a JobType, or one that an installed package adds."""

    type: Annotated[str, Meta(min_length=1)]
    config: dict[str, Any] = {}
    max_retries: Annotated[int, Meta(ge=0, le=10)] = 0
    max_code_retries: Annotated[int, Meta(ge=0, le=3)] = 1
    max_drift_reruns: Annotated[int, Meta(ge=0, le=5)] = 1
    max_manual_reruns: Annotated[int, Meta(ge=0, le=5)] = 1
    job_poll_window_seconds: Annotated[int, Meta(ge=0, le=86400)] = 3600
    poll_interval: Duration = Duration(seconds=60)
    pool: Id | None = None
    on_poll_exhausted: Literal["leave", "stop"] = "leave"
    retry_delay: Duration = Duration(0)

    @property
    def poll_window(self) -> timedelta:
        """How long a job is polled; 0 means the default."""
        return timedelta(seconds=self.job_poll_window_seconds or 3600)


class PostRunEvaluation(_Config, frozen=True, kw_only=True):
    """Re-check the post-run rules on a timer, too."""

    window: Duration = Duration(hours=2)
    interval: Duration = Duration(minutes=10)


class PostRun(_Config, frozen=True, kw_only=True):
    """What is watched after a run has completed."""

    rules: list[Rule] = []
    drift_field: str = "sensor_count"
    drift_threshold: (
        Annotated[float, Meta(ge=0)]
        | Annotated[int, Meta(ge=0)]
        | Annotated[str, Meta(pattern=rf"^[0-9]+(\.[0-9]+)?%{_END}", extra={"form": "a percentage such as 2%"})]
    ) = 0
    on_drift: Literal["rerun", "alert"] = "rerun"
    sensor_timeout: Duration = Duration(hours=2)
    evaluation: PostRunEvaluation | None = None


class Upstream(_Config, frozen=True, kw_only=True):
    """An upstream pipeline whose completion opens this one."""

    pipeline: Id
    require: Literal["same-period", "all-hours"] = "same-period"


class ProbeType(StrEnum):
    """Kinds of pull sensors."""

    HTTP = "http"
    COMMAND = "command"
    SQL = "sql"
    S3 = "s3"
    FILE = "file"


class Probe(_Config, frozen=True, kw_only=True):
    """A pull sensor: run on an interval and before an evaluation, writes its result as the sensor `key`."""

    key: Annotated[str, Meta(min_length=1)]
    type: ProbeType
    config: dict[str, Any] = {}
    interval: Duration | None = None
    timeout: Duration = Duration(seconds=30)
    ttl: Duration | None = None


class PipelineConfig(_Config, frozen=True, kw_only=True, dict=True):
    """A whole pipeline. `version` is the hash of the document it was read from."""

    pipeline: Info
    validation: Validation
    job: Job | None = None
    schedule: Schedule | None = None
    schedules: list[Schedule] = []
    sla: Sla | None = None
    post_run: PostRun | None = None
    dry_run: bool = False
    after: list[Upstream] = []
    probes: list[Probe] = []
    archetype: str | None = None

    @property
    def id(self) -> str:
        """The pipeline's id."""
        return self.pipeline.id

    @property
    def required_job(self) -> Job:
        """The job. Only a document that is still being checked may lack one: no such config is ever in force."""
        if self.job is None:
            raise InvalidValueError(f"pipeline {self.id} has no job: say what is to be started")
        return self.job

    @cached_property
    def all_schedules(self) -> tuple[Schedule, ...]:
        """Every schedule; a pipeline that declares none has one that only cascades and reruns open."""
        return tuple(self.schedules) or (self.schedule or Schedule(),)

    def find_schedule(self, schedule_id: str) -> Schedule | None:
        """The schedule of that id."""
        return next((one for one in self.all_schedules if one.schedule_id == schedule_id), None)

    def schedule_of(self, schedule_id: str) -> Schedule:
        """The schedule of that id; the error names those there are."""
        found = self.find_schedule(schedule_id)
        if found is None:
            known = ", ".join(one.schedule_id for one in self.all_schedules)
            raise InvalidValueError(f"pipeline {self.id} has no schedule {schedule_id!r}: it has {known}")
        return found


@lru_cache(maxsize=1024)
def parse_clock(text: str) -> tuple[int | None, int]:
    """`(hour, minute)` of `HH:MM`; the hour is None for `:MM`."""
    hour, _, minute = text.partition(":")
    try:
        return (int(hour) if hour else None), int(minute)
    except ValueError as error:
        raise InvalidValueError(f"{text!r} is not a clock time: write HH:MM") from error


def past_the_hour(deadline: str | None) -> bool:
    """Is it `:MM`, so that it speaks of hourly periods?"""
    return deadline is not None and parse_clock(deadline)[0] is None


def clock_time(text: str) -> time:
    """The time of day of `HH:MM`."""
    hour, minute = parse_clock(text)
    return time(hour or 0, minute)

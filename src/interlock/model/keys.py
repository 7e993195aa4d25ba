"""Names and keys: what identifies a pipeline, a sensor, a run, and where their records are kept.

Every record of a pipeline lies in the partition `PIPELINE#{id}`; the sort key says what it is. Ids never contain `#`,
so a sort key splits without ambiguity; a sensor key may, and is therefore always the rest of its sort key.
"""

import re
from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec

from interlock.model.errors import InvalidValueError, SensorRefusedError
from interlock.model.periods import Period, parse_period

ID_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_ID: Final = re.compile(ID_PATTERN)
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f]")
_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX_SENSOR_KEY: Final = 512
_MAX_EXECUTION_NAME: Final = 80
_MAX_TIMER_NAME: Final = 64

PIPELINE: Final = "PIPELINE#"
CONFIG: Final = "CONFIG"
APPLIED: Final = "APPLIED"
CONFIG_VERSION: Final = "CONFIGV#"
INVALID: Final = "INVALID"
IN_USE: Final = "INUSE#"
SENSOR: Final = "SENSOR#"
RUN: Final = "TRIGGER#"
ACTIVE: Final = "ACTIVE#"
SLA: Final = "SLA#"
MARKER: Final = "MARKER#"
RERUN_REQUEST: Final = "RERUN_REQUEST#"
DRY_RUN: Final = "DRY_RUN#"
BASELINE: Final = "BASELINE#"
ALERTED: Final = "ALERTED#"
EXHAUSTED: Final = "EXHAUSTED#"
AWAITED: Final = "AWAITED#"
DOWNSTREAM: Final = "DOWNSTREAM#"
CALENDARS: Final = "CALENDARS"
CONTROLLER: Final = "CONTROLLER"
INSTALLATION: Final = "INSTALLATION"
RETIRED: Final = "RETIRED#"
JOB: Final = "JOB#"
RERUN: Final = "RERUN#"
THREAD: Final = "THREAD#"
PROBE: Final = "PROBE#"
TICK: Final = "TICK#"
UPSTREAM: Final = "upstream:"

UNSTREAMED: Final = (APPLIED, CONFIG_VERSION, DOWNSTREAM)
"""Records that are only ever read: nothing follows from their changes. The CONFIG that they come with is streamed."""

LAST: Final = "\U0010ffff"
"""Behind every sort key of a prefix: `Span(pk, prefix, prefix + LAST)` is all of them."""


class Table(StrEnum):
    """The four tables."""

    # Enum's own is a call of Python for each look-up, and every read and write looks its table up.
    __hash__ = str.__hash__

    CONTROL = "control"
    JOBLOG = "joblog"
    RERUN = "rerun"
    EVENTS = "events"


class RunKey(msgspec.Struct, frozen=True, order=True):
    """The slot of a run: (pipeline, schedule, date)."""

    pipeline: str
    schedule: str
    date: str

    @property
    def pk(self) -> str:
        """The partition of its pipeline."""
        return pipeline_pk(self.pipeline)

    @property
    def slot(self) -> str:
        """`{schedule}#{date}`, the tail of its sort keys."""
        return f"{self.schedule}#{self.date}"

    @property
    def period(self) -> Period:
        """The date as a period."""
        return parse_period(self.date)

    def sk(self, kind: str) -> str:
        """The sort key of one of its records: `key.sk(keys.RUN)`."""
        return f"{kind}{self.schedule}#{self.date}"

    def __str__(self) -> str:
        return f"{self.pipeline}/{self.schedule}/{self.date}"


def check_id(text: str, what: str = "pipeline id") -> str:
    """The id itself, or a clear error."""
    if not _ID.fullmatch(text):
        raise InvalidValueError(
            f"{text!r} is not a {what}: use letters, digits, '.', '_' and '-', "
            "starting with a letter or digit, at most 128"
        )
    return text


def check_sensor_key(key: str) -> str:
    """The key itself if a person may write it, or a clear error."""
    if not key or len(key) > _MAX_SENSOR_KEY:
        raise SensorRefusedError(f"a sensor key has 1 to {_MAX_SENSOR_KEY} characters, this one has {len(key)}")
    if _CONTROL_CHARACTERS.search(key):
        raise SensorRefusedError(f"sensor key {key!r} contains control characters")
    if key.startswith(("_", UPSTREAM)):
        raise SensorRefusedError(
            f"sensor key {key!r} is reserved: keys starting with '_' or 'upstream:' are the controller's own"
        )
    return key


def split_sensor_key(key: str) -> tuple[str, Period | None]:
    """`('hourly-status', 2026-03-03T10)` of `hourly-status#20260303T10`.

    A suffix that is not a period belongs to the key itself.
    """
    name, mark, suffix = key.rpartition("#")
    if not mark or not name:
        return key, None
    try:
        return name, parse_period(suffix)
    except InvalidValueError:
        return key, None


def pipeline_pk(pipeline: str) -> str:
    """The partition of a pipeline."""
    return PIPELINE + pipeline


def pipeline_of(pk: str) -> str:
    """The pipeline of a partition."""
    if not pk.startswith(PIPELINE):
        raise InvalidValueError(f"{pk!r} is not a pipeline's partition")
    return pk[len(PIPELINE) :]


def sensor_sk(key: str) -> str:
    """Sort key of a sensor."""
    return SENSOR + key


def run_of(pk: str, sk: str, kind: str) -> RunKey:
    """The run a `{kind}{schedule}#{date}` record belongs to; longer tails are ignored."""
    parts = sk[len(kind) :].split("#")
    if not sk.startswith(kind) or len(parts) < 2:
        raise InvalidValueError(f"{sk!r} is not a {kind} record")
    return RunKey(pipeline_of(pk), parts[0], parts[1])


def marker_sk(schedule: str, date: str, upstream: str, upstream_schedule: str = "") -> str:
    """Sort key of a cascade marker, in the downstream's partition; `date` is the upstream's period.

    An upstream with named schedules leaves a marker for each, so that none overwrites another's.
    """
    named = named_schedule(upstream_schedule)
    return f"{MARKER}{schedule}#{date}#{upstream}{f'#{named}' if named else ''}"


def named_schedule(schedule: str) -> str:
    """The id of an entry of `schedules`; nothing for the only schedule of a pipeline."""
    return "" if schedule in ("cron", "stream") else schedule


def rerun_request_sk(key: RunKey, request: str) -> str:
    """Sort key of a rerun request."""
    return f"{key.sk(RERUN_REQUEST)}#{request}"


def rerun_sk(key: RunKey, attempt: int) -> str:
    """Sort key of the record that an attempt was opened by a rerun or retry."""
    return f"{key.sk(RERUN)}#{attempt}"


def job_sk(key: RunKey, timestamp: str) -> str:
    """Sort key of a job-log record; `timestamp` carries a uniquifier."""
    return f"{key.sk(JOB)}#{timestamp}"


def event_sk(millis: int, type_: str, unique: str) -> str:
    """Sort key of an event: sorts by time."""
    return f"{millis:013d}#{type_}#{unique}"


def execution_name(key: RunKey, attempt: int, part: int = 1) -> str:
    """The deterministic name of an execution of an attempt, at most 80 characters, safe for Step Functions.

    The hash covers the exact values of the attempt, so that shortened or cleaned names never collide. `part`: which of
    the attempt's executions it is, one after the other.
    """
    digest = sha256("\x00".join((key.pipeline, key.schedule, key.date, str(attempt))).encode()).hexdigest()[:12]
    rerun = f"-rerun-{attempt}" if attempt > 1 else ""
    tail = f"{rerun}-{digest}{f'-part-{part}' if part > 1 else ''}"
    stem = _UNSAFE_IN_NAMES.sub("_", f"{key.pipeline}-{key.schedule}-{key.date}")
    return stem[: _MAX_EXECUTION_NAME - len(tail)] + tail


def tick_timer_name(pipeline: str, schedule: str) -> str:
    """The deterministic name of the timer that brings a schedule's next tick, at most 64 characters."""
    digest = sha256("\x00".join((pipeline, schedule)).encode()).hexdigest()[:16]
    stem = _UNSAFE_IN_NAMES.sub("_", f"tick-{pipeline}-{schedule}")
    return f"{stem[: _MAX_TIMER_NAME - len(digest) - 1]}-{digest}"

"""What the overview reads of each pipeline: its config, its recent runs, their SLA, in few statements.

Rows have only the attributes that a lane needs, and times stay text, so that thousands of runs cost little. How much is
read depends on the pipelines and on the span that is shown, never on the history behind it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec

from interlock.control import catalog
from interlock.control.catalog import Stored
from interlock.decide.expected import declared_granularity
from interlock.decide.lanes import Bucket, Columns
from interlock.model import keys
from interlock.model.config import Schedule
from interlock.model.keys import Table
from interlock.model.periods import Granularity, period_of
from interlock.model.run import FinalReason, RunStatus, SlaKind, SlaOutcome, Word, word_of
from interlock.model.times import to_local, zone
from interlock.ports.store import Span, Store

# How far back a run that is not done counts as the pipeline's present.
RECENT: Final = timedelta(hours=24)
_SLA_ROWS: Final = 3
# A day's run may be opened a day or two after its date: `period: previous`, data that is complete the day after.
_DAYS_BEFORE: Final = timedelta(days=2)
_DAYS_AFTER: Final = timedelta(days=2)


class RunRow(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a lane needs of a run."""

    schedule: str
    date: str
    status: RunStatus
    attempt: int
    opened_at: str
    first_opened_at: str
    final_reason: FinalReason | None = None
    passed_at: str | None = None
    triggered_at: str | None = None
    ended_at: str | None = None
    message: str = ""
    ttl: Any = None

    @property
    def word(self) -> Word:
        """Its status in the words people are shown."""
        return word_of(self.status, self.final_reason, started=self.triggered_at is not None)


class SlaRow(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a lane needs of a run's SLA."""

    schedule: str
    date: str
    warning_at: datetime | None = None
    breach_at: datetime | None = None
    relative_warning_at: datetime | None = None
    relative_breach_at: datetime | None = None
    fired: dict[SlaKind, datetime] = {}
    outcome: SlaOutcome | None = None
    ttl: Any = None


class DryRow(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a lane needs of an observed run."""

    schedule: str
    date: str
    opened_at: str
    would_trigger_at: str | None = None
    ttl: Any = None


class ActiveRow(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a lane needs of the record of an attempt under way."""

    attempt: int
    rules: str = ""
    ttl: Any = None

    @property
    def summary(self) -> str:
        """What the attempt waits for, in words; nothing before its first wait."""
        return read_summary(self.rules)


class _Summary(msgspec.Struct, frozen=True):
    summary: str = ""


def read_summary(rules: str) -> str:
    """The one line of what `decide.verdicts` wrote."""
    try:
        return msgspec.json.decode(rules, type=_Summary).summary if rules else ""
    except msgspec.DecodeError:
        return ""


class Rows(msgspec.Struct, gc=False):
    """Everything that is read of one pipeline."""

    found: Stored
    runs: list[RunRow]
    sla: list[SlaRow]
    dry: list[DryRow]
    active: dict[tuple[str, str], ActiveRow]

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """Its schedules; none when the config is invalid."""
        return self.found.config.all_schedules if self.found.config is not None else ()


def read_configs(store: Store, ids: Sequence[str]) -> list[Stored]:
    """The stored pipelines of these ids that are still there."""
    return catalog.stored_many(store, ids)


def read_rows(store: Store, pipelines: Sequence[Stored], columns: Columns | None, now: datetime) -> list[Rows]:
    """The rows of these pipelines: of the columns, if any, and always of the last day and of what is under way."""
    made = [Rows(one, [], [], [], {}) for one in pipelines]
    slots = [(rows, span) for rows in made for span in _run_spans(rows, columns, now)]
    for (rows, _), runs in zip(slots, _read(store, [span for _, span in slots], RunRow), strict=True):
        rows.runs += [run for _, run in runs]
    watched = [(rows, Span(_pk(rows), keys.ACTIVE, keys.ACTIVE + keys.LAST)) for rows in made]
    for (rows, span), active in zip(watched, _read(store, [span for _, span in watched], ActiveRow), strict=True):
        for sk, found in active:
            key = keys.run_of(span.pk, sk, keys.ACTIVE)
            rows.active[key.schedule, key.date] = found
    alerts = [(rows, span) for rows in made for span in _last_of(rows, keys.SLA, _SLA_ROWS)]
    for (rows, _), states in zip(alerts, _read(store, [span for _, span in alerts], SlaRow), strict=True):
        rows.sla += [state for _, state in states]
    observed = [(rows, span) for rows in made for span in _dry_spans(rows)]
    for (rows, _), seen in zip(observed, _read(store, [span for _, span in observed], DryRow), strict=True):
        rows.dry += [one for _, one in seen]
    _read_further(store, made)
    return made


def _read_further(store: Store, made: Sequence[Rows]) -> None:
    """The latest run of schedules that have none in what was read, and active runs of older dates."""
    wanted: list[tuple[Rows, Span]] = []
    for rows in made:
        known = {(run.schedule, run.date) for run in rows.runs}
        seen = {run.schedule for run in rows.runs}
        wanted += [(rows, _exactly(rows, keys.RUN, *one)) for one in rows.active if one not in known]
        idle = [one.schedule_id for one in rows.schedules if one.schedule_id not in seen]
        wanted += [(rows, _of_schedule(rows, keys.RUN, name, 1)) for name in idle]
    for (rows, _), runs in zip(wanted, _read(store, [span for _, span in wanted], RunRow), strict=True):
        known = {(run.schedule, run.date) for run in rows.runs}
        rows.runs += [run for _, run in runs if (run.schedule, run.date) not in known]
    unknown = [(rows, _exactly(rows, keys.SLA, run.schedule, run.date)) for rows in made for run in _without_sla(rows)]
    for (rows, _), states in zip(unknown, _read(store, [span for _, span in unknown], SlaRow), strict=True):
        rows.sla += [state for _, state in states]


def _without_sla(rows: Rows) -> Iterator[RunRow]:
    """The runs that are not done and whose SLA was not among the latest."""
    config = rows.found.config
    if config is None or config.sla is None:
        return
    known = {(one.schedule, one.date) for one in rows.sla}
    yield from (
        run for run in rows.runs if run.status is not RunStatus.COMPLETED and (run.schedule, run.date) not in known
    )


def _read(store: Store, spans: list[Span], into: type[Any]) -> list[list[tuple[str, Any]]]:
    return store.read_spans(Table.CONTROL, spans, into)


# -------------------------------------------------------------------------------------------------- what is read


def _pk(rows: Rows) -> str:
    return keys.pipeline_pk(rows.found.pipeline)


def _run_spans(rows: Rows, columns: Columns | None, now: datetime) -> Iterator[Span]:
    for schedule in rows.schedules:
        recent = _dates(schedule, now - RECENT, now, Bucket.HOUR)
        shown = recent if columns is None else _dates(schedule, columns.first, columns.end, columns.bucket)
        if shown[0] <= recent[1] and recent[0] <= shown[1]:
            stretches = [(min(shown[0], recent[0]), max(shown[1], recent[1]))]
        else:
            stretches = [shown, recent]
        prefix = f"{keys.RUN}{schedule.schedule_id}#"
        yield from (Span(_pk(rows), prefix + first, prefix + end) for first, end in stretches)


def _dates(schedule: Schedule, since: datetime, until: datetime, bucket: Bucket) -> tuple[str, str]:
    """The dates of the runs that may belong into a span: first <= date < end."""
    return _dates_of(declared_granularity(schedule), schedule.timezone, since, until, bucket)


@lru_cache(maxsize=1000)
def _dates_of(
    granularity: Granularity | None, timezone: str, since: datetime, until: datetime, bucket: Bucket
) -> tuple[str, str]:
    end = (until + _DAYS_AFTER).date().isoformat()
    if bucket is Bucket.DAY:
        return since.date().isoformat(), (until.date() + timedelta(days=1)).isoformat()
    if granularity in (Granularity.HOUR, Granularity.MINUTE):
        return str(period_of(to_local(since, zone(timezone)), Granularity.HOUR)), end
    return (since.astimezone(UTC) - _DAYS_BEFORE).date().isoformat(), end


def _last_of(rows: Rows, kind: str, count: int) -> Iterator[Span]:
    config = rows.found.config
    if config is not None and config.sla is not None:
        yield from (_of_schedule(rows, kind, one.schedule_id, count) for one in rows.schedules)


def _dry_spans(rows: Rows) -> Iterator[Span]:
    config = rows.found.config
    if config is not None and config.dry_run:
        yield Span(_pk(rows), keys.DRY_RUN, keys.DRY_RUN + keys.LAST)


def _of_schedule(rows: Rows, kind: str, schedule: str, last: int | None) -> Span:
    prefix = f"{kind}{schedule}#"
    return Span(_pk(rows), prefix, prefix + keys.LAST, last)


def _exactly(rows: Rows, kind: str, schedule: str, date: str) -> Span:
    sk = f"{kind}{schedule}#{date}"
    return Span(_pk(rows), sk, sk + "\0")

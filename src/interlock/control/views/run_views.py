"""Runs for readers: a page of them, and one with everything that hangs on it (see `pipeline_views`)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from interlock.control import catalog, readiness, records
from interlock.control.views import event_views
from interlock.control.views.event_views import EventView
from interlock.decide.checks import RuleResult
from interlock.decide.reruns import Budget, budgets_of
from interlock.decide.verdicts import read_verdicts, remember, with_history
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import (
    Cancel,
    FinalReason,
    JobRecord,
    RerunRecord,
    Run,
    RunStatus,
    SlaKind,
    SlaOutcome,
    SlaState,
    Source,
    Word,
)
from interlock.ports.store import Record, Store


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class RunSummary(_View, frozen=True, kw_only=True):
    """A run in one line. `word` is its status in the five words people are shown."""

    pipeline: str
    schedule: str
    date: str
    status: RunStatus
    word: Word
    attempt: int
    source: Source
    opened_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    final_reason: FinalReason | None = None
    duration_seconds: float | None = None
    message: str = ""


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs; `next` is the cursor of the following page, null on the last."""

    items: list[RunSummary]
    next: str | None = None


class Attempt(_View, frozen=True, kw_only=True):
    """One pass of the lifecycle, as far as is known of it: an old one is known from its events."""

    attempt: int
    source: Source | None = None
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


class SlaView(_View, frozen=True, kw_only=True):
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
    fired: dict[SlaKind, datetime] = {}
    outcome: SlaOutcome | None = None


class RunDetail(RunSummary, frozen=True, kw_only=True):
    """A run with everything that hangs on it.

    `rules` are those of the latest attempt: as they were when it was decided, or as they are now while it waits.
    """

    config_version: str
    opened_by: str
    requested_by: str
    claimed_by: str
    run_id: str
    job_id: str
    first_opened_at: datetime
    passed_at: datetime | None = None
    triggered_at: datetime | None = None
    job_started_at: datetime | None = None
    retry_at: datetime | None = None
    first_completed_at: datetime | None = None
    attempts: list[Attempt]
    rules: list[RuleResult]
    rules_live: bool
    job_log: list[JobRecord]
    reruns: list[RerunRecord]
    cancel: Cancel | None = None
    events: list[EventView]
    budgets: dict[str, Budget]
    sla: SlaView | None = None


def summary_of(run_: Run) -> RunSummary:
    """A run in one line."""
    return RunSummary(**_run_fields(run_))


def _run_fields(run_: Run) -> dict[str, Any]:
    ended = run_.ended_at
    began = run_.triggered_at
    return {
        "pipeline": run_.pipeline,
        "schedule": run_.schedule,
        "date": run_.date,
        "status": run_.status,
        "word": run_.word,
        "attempt": run_.attempt,
        "source": run_.source,
        "opened_at": run_.opened_at,
        "updated_at": run_.updated_at,
        "ended_at": ended,
        "final_reason": run_.final_reason,
        "duration_seconds": (ended - began).total_seconds() if ended and began and ended >= began else None,
        "message": run_.message,
    }


def runs(
    store: Store, pipeline_id: str, *, schedule: str | None = None, after: str | None = None, limit: int = 50
) -> RunPage:
    """The runs of a pipeline, the latest date first. A deleted pipeline's runs are still there."""
    found = newest(store, pipeline_id, schedule, limit + 1, after)
    more = f"{found[limit - 1].date}~{found[limit - 1].schedule}" if len(found) > limit else None
    return RunPage(items=[summary_of(one) for one in found[:limit]], next=more)


def newest(store: Store, pipeline_id: str, schedule: str | None, limit: int, after: str | None = None) -> list[Run]:
    """The runs of a pipeline (of one schedule), the latest date first, behind a cursor."""
    pk = keys.pipeline_pk(pipeline_id)
    date, _, last = (after or "").partition("~")
    found: list[Record] = []
    for name in [schedule] if schedule else schedules_with_runs(store, pk):
        prefix = f"{keys.RUN}{name}#"
        # Ordered by (date, schedule), both downwards: of the cursor's own date, schedules before its own are to come.
        begin = f"{prefix}{date}{chr(1) if name < last else ''}" if date else None
        found += store.query(Table.CONTROL, pk, prefix, after=begin, limit=limit, reverse=True)
    made = [records.convert(one.item, Run, one.key) for one in found]
    return sorted(made, key=lambda one: (one.date, one.schedule), reverse=True)[:limit]


def schedules_with_runs(store: Store, pk: str) -> Iterator[str]:
    """The schedules that have ever had a run, the config's or an earlier one's: one small read each."""
    after: str | None = None
    while found := store.query(Table.CONTROL, pk, keys.RUN, after=after, limit=1):
        name = keys.run_of(pk, found[0].key.sk, keys.RUN).schedule
        yield name
        after = f"{keys.RUN}{name}#{keys.LAST}"


def run(store: Store, key: RunKey, now: datetime) -> RunDetail | None:
    """A run with everything that hangs on it; None when there never was one."""
    found = records.get_run(store, key)
    if found is None:
        return None
    events = event_views.of_run(store, found)
    reruns = records.reruns_of(store, key)
    rules, live = _rules(store, found, events, now)
    return RunDetail(
        **_run_fields(found),
        config_version=found.config_version,
        opened_by=found.opened_by,
        requested_by=found.requested_by,
        claimed_by=found.claimed_by,
        run_id=found.run_id,
        job_id=found.job_id,
        first_opened_at=found.first_opened_at,
        passed_at=found.passed_at,
        triggered_at=found.triggered_at,
        job_started_at=found.job_started_at,
        retry_at=found.retry_at,
        first_completed_at=found.first_completed_at,
        attempts=attempts_of(found, reruns, events),
        rules=rules,
        rules_live=live,
        job_log=records.job_log(store, key),
        reruns=reruns,
        cancel=found.cancel,
        events=events,
        budgets=_budgets(store, found, reruns),
        sla=sla_of(store, key),
    )


def _rules(store: Store, run_: Run, events: Sequence[EventView], now: datetime) -> tuple[list[RuleResult], bool]:
    if run_.status is RunStatus.PENDING and run_.passed_at is None:
        config = catalog.opened_with(store, run_.pipeline, run_.config_version)
        results = readiness.readiness(store, config, run_.key, now).results
        active = records.get_active(store, run_.key)
        known = read_verdicts(active.rules if active is not None and active.attempt == run_.attempt else "")
        return with_history(results, remember(known, results, "", now)), True
    decided = (EventType.VALIDATION_PASSED, EventType.VALIDATION_EXHAUSTED)
    for one in reversed(events):
        if one.type in decided and one.detail.get("attempt") == run_.attempt:
            return msgspec.convert(one.detail.get("results", []), list[RuleResult]), False
    return [], False


def _budgets(store: Store, run_: Run, reruns: Sequence[RerunRecord]) -> dict[str, Budget]:
    """What the run has used of its budgets: by the config in force, which is what the next request is judged by."""
    config = catalog.current(store, run_.pipeline)
    return budgets_of(config.job if config is not None else None, reruns)


def attempts_of(run_: Run, reruns: Sequence[RerunRecord], events: Sequence[EventView]) -> list[Attempt]:
    """Every attempt of a run: the latest from its record, earlier ones from their events."""
    made = {number: Attempt(attempt=number) for number in range(1, run_.attempt + 1)}
    for one in events:
        number = one.detail.get("attempt")
        if number in made:
            made[number] = _learnt(made[number], one)
    for record in reruns:
        if record.attempt in made:
            before = made[record.attempt]
            made[record.attempt] = msgspec.structs.replace(
                before,
                source=record.source,
                opened_at=before.opened_at or record.at,
                reason=record.reason,
                requested_by=record.requested_by,
            )
    made[run_.attempt] = _latest(made[run_.attempt], run_)
    return list(made.values())


def _learnt(attempt: Attempt, events: EventView) -> Attempt:
    """What an event adds to what is known of its attempt."""
    known_ = attempt
    detail, at = events.detail, events.timestamp
    ids = {"run_id": detail.get("runId") or known_.run_id, "job_id": detail.get("jobId") or known_.job_id}
    match events.type:
        case EventType.TRIGGER_STARTED:
            source = Source(detail["source"]) if detail.get("source") in list(Source) else None
            return msgspec.structs.replace(
                known_, opened_at=at, source=source, opened_by=str(detail.get("openedBy", ""))
            )
        case EventType.VALIDATION_PASSED:
            return msgspec.structs.replace(known_, passed_at=at)
        case EventType.JOB_TRIGGERED:
            return msgspec.structs.replace(known_, triggered_at=at, **ids)
        case EventType.RUN_WITHDRAWN if not known_.outcome:
            return msgspec.structs.replace(known_, ended_at=at, outcome="withdrawn")
        case type_ if type_ in _ENDS:
            return msgspec.structs.replace(known_, ended_at=at, outcome=_ENDS[type_], **ids)
        case _:
            return known_


_ENDS: Final = {
    EventType.JOB_COMPLETED: "completed",
    EventType.JOB_FAILED: "failed",
    EventType.JOB_TIMEOUT: "timed out",
    EventType.JOB_POLL_EXHAUSTED: "poll window closed",
    EventType.VALIDATION_EXHAUSTED: "evaluation window closed",
    EventType.TRIGGER_UNCERTAIN: "start uncertain",
    EventType.INFRA_FAILURE: "infrastructure failure",
    EventType.SFN_TIMEOUT: "lease expired",
    EventType.JOB_CANCELLED: "cancelled",
}


def _latest(attempt: Attempt, run_: Run) -> Attempt:
    outcome = attempt.outcome or (run_.final_reason or "" if run_.status.terminal else "")
    return msgspec.structs.replace(
        attempt,
        source=run_.source,
        opened_at=run_.opened_at,
        opened_by=run_.opened_by,
        requested_by=run_.requested_by,
        run_id=run_.run_id,
        job_id=run_.job_id,
        passed_at=run_.passed_at,
        triggered_at=run_.triggered_at,
        ended_at=run_.ended_at,
        outcome=str(outcome),
    )


def sla_of(store: Store, key: RunKey) -> SlaView | None:
    """The SLA of a run, if it has one."""
    state = records.get_sla(store, key)
    return None if state is None else sla_view(state)


def sla_view(state: SlaState) -> SlaView:
    """An SLA as people are shown it."""
    return SlaView(
        deadline=state.deadline,
        ready_by=state.ready_by,
        ready_by_at=state.ready_by_at,
        ready_at=state.ready_at,
        warning_at=state.warning_at,
        breach_at=state.breach_at,
        relative_warning_at=state.relative_warning_at,
        relative_breach_at=state.relative_breach_at,
        critical=state.critical,
        back_fill=state.back_fill,
        fired=state.fired,
        outcome=state.outcome,
    )

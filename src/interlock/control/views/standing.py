"""Which run a pipeline's lane speaks of, and how it stands: what is late, and why, in one line.

A pipeline stands as the worst of these does: its latest run; what is under way; what was opened or due in the last day
and is not done; a period whose SLA has given an alert although nothing opened it. Nothing is decided here: words,
alerts and reasons are those of the run, its SLA and its rules.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from interlock.control.views.lane_rows import RECENT, DryRow, Rows, RunRow, SlaRow
from interlock.decide.calendars import Calendars, exclusion
from interlock.decide.lanes import due_between
from interlock.decide.plan import opened_by
from interlock.decide.why_words import clock
from interlock.model.config import Schedule
from interlock.model.run import RunStatus, SlaKind, SlaOutcome, Word
from interlock.model.times import format_instant, parse_instant

NOT_OPENED: Final = "not opened"
_BREACHES: Final = frozenset({SlaKind.BREACH, SlaKind.RELATIVE_BREACH})


class Standing(StrEnum):
    """How a pipeline stands, the worst first. The counters of the overview are these."""

    BREACHED = "breached"
    AT_RISK = "at-risk"
    FAILED = "failed"
    HELD = "held"
    MISSED = "missed"
    INVALID = "invalid"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    DRY_RUN = "dry-run"
    NOT_DUE = "not-due"


_RANK: Final = {standing: rank for rank, standing in enumerate(Standing)}
_BY_WORD: Final = {
    Word.DONE: Standing.DONE,
    Word.RUNNING: Standing.RUNNING,
    Word.WAITING: Standing.WAITING,
    Word.FAILED: Standing.FAILED,
    Word.HELD: Standing.HELD,
}


class SlaStanding(StrEnum):
    """Where the SLA of a run stands: its alerts ahead, its warning or breach given and the run not done, or over."""

    PENDING = "pending"
    AT_RISK = "at-risk"
    BREACHED = "breached"
    MET = "met"
    RECOVERED = "recovered"
    CANCELLED = "cancelled"


class _View(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    pass


class Current(_View, frozen=True, kw_only=True):
    """The run a lane speaks of. `word` is one of the five, or what there is instead of a run.

    `opened_at` is when the run was first opened; `since`, since when it has been what `word` says.
    """

    schedule: str
    date: str
    word: str
    attempt: int
    opened_at: str | None = None
    since: str | None
    summary: str


class SlaSummary(_View, frozen=True, kw_only=True):
    """The SLA of that run; of two, the earlier instants."""

    state: SlaStanding
    warning_at: datetime | None = None
    breach_at: datetime | None = None


class Stand(msgspec.Struct, frozen=True, gc=False):
    """How a pipeline stands, and by which run."""

    standing: Standing
    current: Current | None = None
    sla: SlaSummary | None = None


def stand_of(rows: Rows, calendars: Calendars, now: datetime, *, watched_since: datetime, grace: timedelta) -> Stand:
    """How a pipeline stands."""
    found = rows.found
    if found.config is None:
        word = Standing.INVALID.value
        summary = f"not run: {'; '.join(found.errors)}"
        current = Current(schedule="", date="", word=word, attempt=0, since=None, summary=summary)
        return Stand(Standing.INVALID, current)
    if found.config.dry_run:
        return _of_dry_run(rows)
    stands = [
        *_of_runs(rows, now),
        *_of_missed(rows, calendars, now, watched_since=watched_since, grace=grace),
        *_of_alerts(rows),
    ]
    if not stands:
        return Stand(Standing.NOT_DUE)
    # The worst; of several, the latest period.
    worst = min(_RANK[one.standing] for one in stands)
    return max((one for one in stands if _RANK[one.standing] == worst), key=_date)


def _date(stand: Stand) -> str:
    return stand.current.date if stand.current is not None else ""


# ----------------------------------------------------------------------------------------------------------- runs


def _of_runs(rows: Rows, now: datetime) -> Iterator[Stand]:
    since = format_instant(now - RECENT)
    latest = {schedule.schedule_id: "" for schedule in rows.schedules}
    for run in rows.runs:
        latest[run.schedule] = max(latest.get(run.schedule, ""), run.date)
    states = {(one.schedule, one.date): one for one in rows.sla}
    for run in rows.runs:
        open_ = run.status is not RunStatus.COMPLETED and (run.opened_at >= since or run.ended_at is None)
        if run.date == latest[run.schedule] or open_:
            yield _of_run(rows, run, states.get((run.schedule, run.date)))


def _of_run(rows: Rows, run: RunRow, state: SlaRow | None) -> Stand:
    word = run.word
    standing = _BY_WORD[word]
    summary = None if state is None else _sla(state)
    if word is not Word.DONE and summary is not None:
        standing = _alerted(summary.state, standing)
    current = Current(
        schedule=run.schedule,
        date=run.date,
        word=word.value,
        attempt=run.attempt,
        opened_at=run.first_opened_at,
        since=_since(run, word),
        summary=_summary(rows, run, word),
    )
    return Stand(standing, current, summary)


def _alerted(state: SlaStanding, otherwise: Standing) -> Standing:
    alerted = {SlaStanding.BREACHED: Standing.BREACHED, SlaStanding.AT_RISK: Standing.AT_RISK}
    return alerted.get(state, otherwise)


def _since(run: RunRow, word: Word) -> str:
    if word is Word.WAITING:
        return run.opened_at
    if word is Word.RUNNING:
        return run.triggered_at or run.opened_at
    return run.ended_at or run.opened_at


def _summary(rows: Rows, run: RunRow, word: Word) -> str:
    match word:
        case Word.WAITING if run.status is RunStatus.PENDING and run.passed_at is None:
            active = rows.active.get((run.schedule, run.date))
            return (active.summary if active is not None else "") or "the rules are evaluated"
        case Word.WAITING if run.status is RunStatus.PENDING:
            return "the rules have passed, its job is about to start"
        case Word.RUNNING if run.status is RunStatus.RUNNING:
            return "its job is under way"
        case Word.RUNNING:
            return run.message or "its job is being started"
        case _:
            return run.message


def _sla(state: SlaRow) -> SlaSummary:
    return SlaSummary(
        state=_sla_standing(state),
        warning_at=_earliest(state.warning_at, state.relative_warning_at),
        breach_at=_earliest(state.breach_at, state.relative_breach_at),
    )


def _sla_standing(state: SlaRow) -> SlaStanding:
    match state.outcome:
        case SlaOutcome.MET:
            return SlaStanding.MET
        case SlaOutcome.RECOVERED:
            return SlaStanding.RECOVERED
        case SlaOutcome.CANCELLED:
            return SlaStanding.CANCELLED
        case None:
            if not _BREACHES.isdisjoint(state.fired):
                return SlaStanding.BREACHED
            return SlaStanding.AT_RISK if state.fired else SlaStanding.PENDING


def _earliest(*instants: datetime | None) -> datetime | None:
    return min((one for one in instants if one is not None), default=None)


# ------------------------------------------------------------------------------------------- periods without a run


def _of_missed(
    rows: Rows, calendars: Calendars, now: datetime, *, watched_since: datetime, grace: timedelta
) -> Iterator[Stand]:
    """The ticks of the last day that opened nothing."""
    known = {(run.schedule, run.date) for run in rows.runs}
    states = {(one.schedule, one.date): one for one in rows.sla}
    for schedule in rows.schedules:
        for due in due_between(schedule, max(now - RECENT, watched_since), now - grace):
            slot = (schedule.schedule_id, due.period)
            if slot in known or exclusion(schedule, calendars, due.day) is not None:
                continue
            at = parse_instant(due.at) or now
            summary = f"it should have opened {clock(at, schedule.timezone, now)}, and nothing opened it"
            since = format_instant(at)
            yield _absent(slot, Standing.MISSED, Standing.MISSED.value, since, summary, states.get(slot))


def _of_alerts(rows: Rows) -> Iterator[Stand]:
    """Periods that have given an alert of their SLA although nothing has opened them."""
    known = {(run.schedule, run.date) for run in rows.runs}
    for state in rows.sla:
        slot = (state.schedule, state.date)
        schedule = next((one for one in rows.schedules if one.schedule_id == state.schedule), None)
        if slot in known or schedule is None or state.outcome is not None or not state.fired:
            continue
        yield _absent(slot, Standing.NOT_DUE, NOT_OPENED, None, _nothing_opened(rows, schedule), state)


def _nothing_opened(rows: Rows, schedule: Schedule) -> str:
    config = rows.found.config
    return "" if config is None else f"nothing has opened it; what opens it: {opened_by(config, schedule)}"


def _absent(
    slot: tuple[str, str], standing: Standing, word: str, since: str | None, summary: str, state: SlaRow | None
) -> Stand:
    alerts = None if state is None else _sla(state)
    if alerts is not None:
        standing = _alerted(alerts.state, standing)
    current = Current(schedule=slot[0], date=slot[1], word=word, attempt=0, since=since, summary=summary)
    return Stand(standing, current, alerts)


def _of_dry_run(rows: Rows) -> Stand:
    latest: DryRow | None = max(rows.dry, key=lambda one: (one.date, one.schedule), default=None)
    if latest is None:
        return Stand(Standing.DRY_RUN)
    would = latest.would_trigger_at
    summary = "its job would have been started" if would else "it would be waiting"
    made: dict[str, Any] = {"schedule": latest.schedule, "date": latest.date, "attempt": 0, "summary": summary}
    return Stand(Standing.DRY_RUN, Current(word="dry run", since=would or latest.opened_at, **made))

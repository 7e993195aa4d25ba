"""Statistics for people: SLA compliance, how long jobs take, what happened on each day. Counted from the events.

Days are UTC days. The events of a span are read by type, a page at a time, up to a bound; the answer says when it was
reached.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from interlock.control.views import event_views
from interlock.control.views.event_views import EventView, Wanted
from interlock.model.events import EventType
from interlock.ports.store import Store

_PAGE: Final = 1000
_MOST: Final = 100_000

_OPENED: Final = (EventType.TRIGGER_STARTED,)
_COMPLETED: Final = (EventType.JOB_COMPLETED,)
_FAILED: Final = (EventType.JOB_FAILED, EventType.JOB_TIMEOUT, EventType.JOB_POLL_EXHAUSTED)
_HELD: Final = (EventType.VALIDATION_EXHAUSTED, EventType.SENSOR_DEADLINE_EXPIRED)
_JUDGED: Final = (EventType.SLA_MET, EventType.SLA_RECOVERED)
_BREACHED: Final = (EventType.SLA_BREACH, EventType.RELATIVE_SLA_BREACH)
_COUNTED: Final = (*_OPENED, *_COMPLETED, *_FAILED, *_HELD, *_JUDGED, *_BREACHED)

_RunId = tuple[str, str, str]


class _Stat(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class SlaStats(_Stat, frozen=True, kw_only=True):
    """Runs with an SLA that was decided or breached. `compliance` is the part without a breach, null without runs."""

    runs: int
    met: int
    recovered: int
    breached: int
    compliance: float | None = None


class DurationStats(_Stat, frozen=True, kw_only=True):
    """How long jobs took that completed, in seconds; null without any."""

    count: int
    p50: float | None = None
    p95: float | None = None
    longest: float | None = None


class DayStats(_Stat, frozen=True, kw_only=True):
    """One UTC day: attempts opened, jobs completed and failed, runs held back, SLAs breached."""

    date: str
    opened: int = 0
    completed: int = 0
    failed: int = 0
    held: int = 0
    breached: int = 0


class PipelineStats(_Stat, frozen=True, kw_only=True):
    """The same of one pipeline."""

    pipeline: str
    opened: int
    completed: int
    failed: int
    held: int
    sla: SlaStats
    durations: DurationStats


class Stats(_Stat, frozen=True, kw_only=True):
    """Statistics of a span. `truncated`: there were more events than are counted at once; ask for fewer days."""

    since: datetime
    until: datetime
    sla: SlaStats
    durations: DurationStats
    days: list[DayStats]
    pipelines: list[PipelineStats]
    truncated: bool


def collect(store: Store, now: datetime, *, days: int = 7, pipeline: str | None = None) -> Stats:
    """The statistics of the last days, of all pipelines or of one."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight - timedelta(days=days - 1)
    events: list[EventView] = []
    for event in _events(store, since, now, pipeline):
        events.append(event)
        if len(events) >= _MOST:
            break
    names = sorted({event.pipeline_id for event in events})
    by_name: dict[str, list[EventView]] = {name: [] for name in names}
    for event in events:
        by_name[event.pipeline_id].append(event)
    return Stats(
        since=since,
        until=now,
        sla=_sla(events),
        durations=_durations(events),
        days=_days(events, since, days),
        pipelines=[_of_pipeline(name, by_name[name]) for name in names],
        truncated=len(events) >= _MOST,
    )


def _events(store: Store, since: datetime, now: datetime, pipeline: str | None) -> Iterator[EventView]:
    wanted = Wanted(pipeline=pipeline, types=_COUNTED, since=since, newest_first=False)
    cursor: str | None = None
    while True:
        page = event_views.page(store, wanted, now, cursor=cursor, limit=_PAGE)
        yield from page.items
        if page.next is None:
            return
        cursor = page.next


def _run_of(event: EventView) -> _RunId:
    return event.pipeline_id, event.schedule_id, event.date


def _count(events: Iterable[EventView], types: tuple[EventType, ...]) -> int:
    return sum(event.type in types for event in events)


def _sla(found: list[EventView]) -> SlaStats:
    # A back-fill has no deadline that anybody waited for: it says nothing about how promises were kept.
    events = [event for event in found if not event.detail.get("backFill")]
    late = {
        _run_of(event)
        for event in events
        if event.type in _BREACHED
        or (event.type is EventType.SLA_RECOVERED and float(event.detail.get("marginSeconds") or 0) < 0)
    }
    judged = late | {_run_of(event) for event in events if event.type in _JUDGED}
    return SlaStats(
        runs=len(judged),
        met=_count(events, (EventType.SLA_MET,)),
        recovered=_count(events, (EventType.SLA_RECOVERED,)),
        breached=len(late),
        compliance=round(1 - len(late) / len(judged), 6) if judged else None,
    )


def _durations(events: list[EventView]) -> DurationStats:
    found = [event.detail.get("durationSeconds") for event in events if event.type in _COMPLETED]
    seconds = sorted(float(one) for one in found if isinstance(one, int | float))
    if not seconds:
        return DurationStats(count=0)
    return DurationStats(
        count=len(seconds), p50=_quantile(seconds, 0.50), p95=_quantile(seconds, 0.95), longest=seconds[-1]
    )


def _quantile(ordered: list[float], part: float) -> float:
    """The smallest value that at least this part of all does not exceed."""
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]


def _days(events: list[EventView], since: datetime, days: int) -> list[DayStats]:
    counts: Counter[tuple[str, EventType]] = Counter()
    for event in events:
        counts[event.timestamp.date().isoformat(), event.type] += 1
    made: list[DayStats] = []
    for offset in range(days):
        date = (since + timedelta(days=offset)).date().isoformat()

        def of(types: tuple[EventType, ...], day: str = date) -> int:
            return sum(counts[day, type_] for type_ in types)

        made.append(
            DayStats(
                date=date,
                opened=of(_OPENED),
                completed=of(_COMPLETED),
                failed=of(_FAILED),
                held=of(_HELD),
                breached=of(_BREACHED),
            )
        )
    return made


def _of_pipeline(name: str, events: list[EventView]) -> PipelineStats:
    return PipelineStats(
        pipeline=name,
        opened=_count(events, _OPENED),
        completed=_count(events, _COMPLETED),
        failed=_count(events, _FAILED),
        held=_count(events, _HELD),
        sla=_sla(events),
        durations=_durations(events),
    )

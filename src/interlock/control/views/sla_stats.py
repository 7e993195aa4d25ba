"""How well each pipeline keeps its SLA, week by week, and which runs were the latest of all (see `pipeline_views`).

Counted from the events of the SLA alone. Weeks begin on Monday, UTC; a run belongs to the week in which its SLA was
decided or breached.
"""

from collections import defaultdict
from collections.abc import Container, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.control.views import lane_rows
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.times import epoch_millis, parse_instant
from interlock.ports.store import Key, Record, Store

_TYPES: Final = (EventType.SLA_MET, EventType.SLA_RECOVERED, EventType.SLA_BREACH, EventType.RELATIVE_SLA_BREACH)
_BREACHES: Final = frozenset({EventType.SLA_BREACH, EventType.RELATIVE_SLA_BREACH})
_PAGE: Final = 5000
_MOST: Final = 200_000
_WORST: Final = 10


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class WeekSla(_View, frozen=True, kw_only=True):
    """Runs whose SLA was decided or breached in a week, and how many of them were late."""

    runs: int
    late: int


class PipelineSla(_View, frozen=True, kw_only=True):
    """One pipeline: a number a week, the oldest first; null for a week without runs.

    Margins are seconds before the breach, negative when late: a tenth of the runs have less than `p10`.
    """

    pipeline: str
    owner: str
    runs: int
    late: int
    compliance: float
    weeks: list[WeekSla | None]
    p10: float | None
    p50: float | None


class WorstRun(_View, frozen=True, kw_only=True):
    """A run that was late, by how much; one that is not done yet has no margin."""

    pipeline: str
    schedule: str
    date: str
    breach_at: datetime | None
    margin_seconds: int | None


class SlaOverview(_View, frozen=True, kw_only=True):
    """Compliance per pipeline and week, the worst first, and the latest runs.

    `weeks` are the days they begin on. `truncated`: there were more events than are counted at once.
    """

    at: datetime
    weeks: list[str]
    runs: int
    late: int
    items: list[PipelineSla]
    worst: list[WorstRun]
    truncated: bool


class _Outcome(msgspec.Struct):
    week: int
    margin: int | None = None
    late: bool = False
    breach_at: datetime | None = None


_RunId = tuple[str, str, str]


def collect(store: Store, now: datetime, *, weeks: int, visible: Container[str] | None = None) -> SlaOverview:
    """The last weeks, the current one included. `visible`: the pipelines the reader may see; None means all."""
    monday = (now - timedelta(days=now.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    first = monday - timedelta(weeks=weeks - 1)
    outcomes: dict[_RunId, _Outcome] = {}
    read = 0
    for record in _events(store, first, now):
        read += 1
        if visible is None or keys.pipeline_of(record.key.pk) in visible:
            _count(outcomes, record, first)
    names = sorted({name for name, _, _ in outcomes})
    owners = {
        one.pipeline: one.config.pipeline.owner if one.config is not None else ""
        for one in lane_rows.read_configs(store, names)
    }
    by_name: dict[str, list[_Outcome]] = defaultdict(list)
    for (name, _, _), outcome in outcomes.items():
        by_name[name].append(outcome)
    items = [_of_pipeline(name, owners.get(name, ""), by_name[name], weeks) for name in names]
    items.sort(key=lambda one: (one.compliance, -one.late, one.pipeline))
    return SlaOverview(
        at=now,
        weeks=[(first + timedelta(weeks=index)).date().isoformat() for index in range(weeks)],
        runs=len(outcomes),
        late=sum(one.late for one in outcomes.values()),
        items=items,
        worst=_worst(outcomes),
        truncated=read >= _MOST,
    )


def _events(store: Store, since: datetime, until: datetime) -> Iterator[Record]:
    left = _MOST
    begin, end = epoch_millis(since), epoch_millis(until) + 60_000
    for type_ in _TYPES:
        after: Key | None = None
        while left > 0:
            wanted = min(_PAGE, left)
            found = store.events_by_type(type_, since=begin, until=end, limit=wanted, after=after)
            yield from found
            left -= len(found)
            if len(found) < wanted:
                break
            after = found[-1].key


def _count(outcomes: dict[_RunId, _Outcome], record: Record, first: datetime) -> None:
    item = record.item
    at = parse_instant(item.get("timestamp")) or first
    key = (keys.pipeline_of(record.key.pk), str(item.get("scheduleId", "")), str(item.get("date", "")))
    detail: dict[str, Any] = item.get("detail") or {}
    week = max((at - first) // timedelta(weeks=1), 0)
    known = outcomes.setdefault(key, _Outcome(week))
    known.breach_at = parse_instant(detail.get("breachAt")) or known.breach_at
    if item.get("type") in _BREACHES:
        known.late = True
        return
    margin = detail.get("marginSeconds")
    known.week = week
    if isinstance(margin, int | float):
        known.margin = int(margin)
        known.late = known.late or margin < 0


def _of_pipeline(name: str, owner: str, own: list[_Outcome], weeks: int) -> PipelineSla:
    by_week: dict[int, list[_Outcome]] = defaultdict(list)
    for one in own:
        by_week[min(one.week, weeks - 1)].append(one)
    margins = sorted(float(one.margin) for one in own if one.margin is not None)
    late = sum(one.late for one in own)
    return PipelineSla(
        pipeline=name,
        owner=owner,
        runs=len(own),
        late=late,
        compliance=round(1 - late / len(own), 6),
        weeks=[
            WeekSla(runs=len(by_week[index]), late=sum(one.late for one in by_week[index])) if by_week[index] else None
            for index in range(weeks)
        ],
        p10=_quantile(margins, 0.1),
        p50=_quantile(margins, 0.5),
    )


def _worst(outcomes: dict[_RunId, _Outcome]) -> list[WorstRun]:
    """Those that are not done yet first, by when they were due; then the latest."""
    late = [(key, one) for key, one in outcomes.items() if one.late]

    def rank(entry: tuple[_RunId, _Outcome]) -> tuple[bool, float]:
        outcome = entry[1]
        due = outcome.breach_at.timestamp() if outcome.breach_at is not None else 0.0
        return outcome.margin is not None, float(outcome.margin) if outcome.margin is not None else due

    return [
        WorstRun(pipeline=key[0], schedule=key[1], date=key[2], breach_at=one.breach_at, margin_seconds=one.margin)
        for key, one in sorted(late, key=rank)[:_WORST]
    ]


def _quantile(ordered: list[float], part: float) -> float | None:
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]

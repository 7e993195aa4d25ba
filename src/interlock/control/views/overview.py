"""The overview: every pipeline as a lane, with how it stands, its SLA and what comes next (see `pipeline_views`).

Cells come from runs, and where there is none from schedule and calendar; marks on them from the alerts of the SLA. The
cost grows with the pipelines and with the span that is shown. A page holds fewer lanes where the span is long.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec

from interlock.control import catalog
from interlock.control.catalog import Stored
from interlock.control.views import lane_rows
from interlock.control.views.kept_lanes import Kept, KeptLanes, expiry, holds_until, key_of
from interlock.control.views.lane_rows import Rows
from interlock.control.views.next_runs import NextRuns, NextView
from interlock.control.views.standing import Current, SlaSummary, Stand, Standing, stand_of
from interlock.decide import lanes
from interlock.decide.calendars import exclusion, withheld
from interlock.decide.lanes import Bucket, Columns, Lane, Letter, Mark
from interlock.model import keys
from interlock.model.config import Schedule, clock_time
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.times import epoch_millis, local_time_on, zone
from interlock.ports.store import Store

MOST_LANES: Final = 5000
MOST_HOURS: Final = 7 * 24
MOST_DAYS: Final = 92
# Cells of a page, about: a request for 90 days of thousands of pipelines is answered in several pages.
_MOST_CELLS: Final = 130_000
_MOST_ALERTS: Final = 20_000
# An alert may come long before its run's cell or long after it.
_ALERTS_BESIDE: Final = timedelta(days=2)
_MARKS: Final = {
    EventType.SLA_WARNING: Mark.WARNED,
    EventType.RELATIVE_SLA_WARNING: Mark.WARNED,
    EventType.SLA_BREACH: Mark.BREACHED,
    EventType.RELATIVE_SLA_BREACH: Mark.BREACHED,
}
_LEGEND: Final = (
    "One letter a column: d done, r running, w waiting, f failed, h held, m missed, x excluded, o dry run, - not due."
)
_MARKS_LEGEND: Final = "One letter a column: w SLA warning given, b SLA breach given, - neither; empty without any."


class _View(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    pass


class LaneView(_View, frozen=True, kw_only=True):
    """A pipeline as a lane. One that is not `valid` is not run; `errors` say why."""

    id: str
    owner: str
    timezone: str
    valid: bool
    errors: list[str]
    dry_run: bool
    schedules: list[str]
    after: list[str]
    standing: Standing
    cells: Annotated[str, msgspec.Meta(description=_LEGEND)]
    marks: Annotated[str, msgspec.Meta(description=_MARKS_LEGEND)]
    multiple: Annotated[
        dict[str, int], msgspec.Meta(description="How many runs are in a column that has several, by its index.")
    ]
    current: Current | None = None
    sla: SlaSummary | None = None
    next_run: NextView | None = None


class Overview(_View, frozen=True, kw_only=True):
    """Lanes by id.

    `at` is the controller's time, `rate` how many of its seconds pass in one of the world's. `position` is where the
    event stream goes on from. `counts` are of all pipelines that the filters other than `state` leave, on the first
    page only. `next` is the cursor of the following page, null on the last.
    """

    at: datetime
    rate: float
    bucket: Bucket
    from_: Annotated[datetime, msgspec.Meta(description="The beginning of the first column.")] = msgspec.field(
        name="from"
    )
    to: Annotated[datetime, msgspec.Meta(description="The end of the last column.")]
    position: str
    total: int
    counts: dict[Standing, int]
    owners: list[str]
    items: list[LaneView]
    next: str | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which lanes, and which columns. `visible`: the pipelines that the reader may see; None means all."""

    columns: Columns
    owner: str | None = None
    standings: frozenset[Standing] = frozenset()
    text: str = ""
    pipelines: tuple[str, ...] = ()
    visible: Container[str] | None = None
    after: str | None = None
    limit: int = 1000


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's present: its time, its speed, the position of its event stream, how late a tick may be."""

    at: datetime
    rate: float
    position: str
    grace: timedelta


def columns_of(now: datetime, since: datetime | None, until: datetime | None, bucket: Bucket) -> Columns:
    """The columns that are asked for: by default the last day in hours, or the last fortnight in days."""
    length = timedelta(hours=24) if bucket is Bucket.HOUR else timedelta(days=14)
    until = until or (now if since is None else since + length)
    since = since or until - length
    if until <= since:
        raise InvalidValueError(f"to: {until.isoformat()} is not after {since.isoformat()}")
    most = MOST_HOURS if bucket is Bucket.HOUR else MOST_DAYS
    columns = Columns.between(since, until, bucket)
    if columns.count > most:
        raise InvalidValueError(f"from, to: {columns.count} columns are too many: at most {most} of bucket={bucket}")
    return columns


def read(store: Store, asked: Asked, now: Now, kept: KeptLanes["Looked"] | None = None) -> Overview:
    """The lanes that are asked for. `kept`: those that were made before."""
    lanes_ = _Lanes(store, asked.columns, now, kept)
    ids = list(asked.pipelines) or store.pipelines()
    if asked.visible is not None:
        ids = [one for one in ids if one in asked.visible]
    found = lanes_.configs([one for one in ids if asked.after is None or one > asked.after])
    if asked.owner is not None or asked.text:
        found = [one for one in found if _wanted(one, asked)]
    size = max(1, min(asked.limit, _MOST_CELLS // asked.columns.count))
    # The first page counts all pipelines; where the state is asked for, all are looked at to know which are meant.
    all_ = asked.after is None or bool(asked.standings)
    shown, rest = (found, []) if len(found) <= size else (found[:size], found[size:])
    whole = not asked.standings
    looked = lanes_.look(shown if whole else found, cells=whole)
    behind = lanes_.look(rest, cells=False) if whole and all_ else []
    counts = Counter(one.stand.standing for one in [*looked, *behind])
    meant = [one for one in looked if whole or one.stand.standing in asked.standings]
    page = meant[:size]
    if not whole:
        page = lanes_.look([one.found for one in page], cells=True)
    more = bool(rest) if whole else len(meant) > size
    owners = {one.config.pipeline.owner for one in found if one.config is not None}
    return Overview(
        at=now.at,
        rate=now.rate,
        bucket=asked.columns.bucket,
        from_=asked.columns.first,
        to=asked.columns.end,
        position=now.position,
        total=len(found),
        counts={one: counts[one] for one in Standing if asked.after is None},
        owners=sorted(owners - {""}) if asked.after is None else [],
        items=[one.view for one in page if one.view is not None],
        next=page[-1].found.pipeline if more and page else None,
    )


class Looked(msgspec.Struct, frozen=True):
    """A pipeline with how it stands and, if its cells were asked for, its lane."""

    found: Stored
    stand: Stand
    view: LaneView | None


def _wanted(found: Stored, asked: Asked) -> bool:
    info = found.config.pipeline if found.config is not None else None
    owner = info.owner if info is not None else ""
    if asked.owner is not None and owner != asked.owner:
        return False
    text = asked.text.casefold()
    described = f"{found.pipeline}\n{owner}\n{info.description if info is not None else ''}"
    return text in described.casefold()


class _Lanes:
    """Makes lanes; what is the same for all of them is read once."""

    def __init__(self, store: Store, columns: Columns, now: Now, kept: KeptLanes[Looked] | None) -> None:
        self._store = store
        self._columns = columns
        self._now = now
        # First of all: whatever is written from here on is seen by the next look.
        self._kept = kept
        self._look = kept.begin() if kept is not None else None
        self._next = NextRuns(store, now.at)
        self._calendars = self._next.calendars
        self._started = catalog.controller_started(store) or now.at
        self._applied: dict[str, datetime | None] = {}
        if kept is not None and self._look is not None:
            kept.share(self._look, (self._next.encoded, self._started, now.grace))

    def configs(self, ids: Sequence[str]) -> list[Stored]:
        """The stored pipelines of these ids that are still there."""
        known = {} if self._kept is None else self._kept.configs(ids)
        read = lane_rows.read_configs(self._store, [one for one in ids if one not in known])
        if self._kept is not None and self._look is not None and read:
            self._kept.keep_configs(self._look, read)
        known |= {one.pipeline: one for one in read}
        return [known[one] for one in ids if one in known]

    def look(self, found: Sequence[Stored], *, cells: bool) -> list[Looked]:
        """How pipelines stand and, with `cells`, their lanes."""
        columns = key_of(self._columns) if cells else None
        names = [one.pipeline for one in found]
        known = {} if self._kept is None else self._kept.lanes(columns, names, self._now.at)
        made = self._make([one for one in found if one.pipeline not in known], cells=cells)
        if self._kept is not None and self._look is not None and made:
            self._kept.keep(self._look, columns, {name: one for name, one in made.items() if one.until > one.at})
        return [known[name] if name in known else made[name].lane for name in names]

    def _make(self, found: Sequence[Stored], *, cells: bool) -> dict[str, Kept[Looked]]:
        if not found:
            return {}
        now = self._now
        applied = catalog.first_applied_of_all(self._store, found)
        self._applied |= {one.pipeline: at for one, at in zip(found, applied, strict=True)}
        alerts = self._alerts() if cells else {}
        read = lane_rows.read_rows(self._store, found, self._columns if cells else None, now.at)
        return {
            rows.found.pipeline: self._made(rows, alerts.get(rows.found.pipeline, ()), cells=cells) for rows in read
        }

    def _made(self, rows: Rows, alerts: Sequence["_Alert"], *, cells: bool) -> Kept[Looked]:
        now, since = self._now, self._watched_since(rows.found)
        stand = stand_of(rows, self._calendars, now.at, watched_since=since, grace=now.grace)
        looked = Looked(rows.found, stand, self._view(rows, stand, alerts) if cells else None)
        if self._kept is None:
            return Kept(looked, now.at, now.at)
        others = (self._next.until(rows.found) if cells else None, *(expiry(one.ttl) for one in alerts))
        until = holds_until(rows, now.at, now.grace, [at for at in others if at is not None])
        return Kept(looked, now.at, until)

    def _watched_since(self, found: Stored) -> datetime:
        applied = self._applied.get(found.pipeline)
        return self._started if applied is None else max(self._started, applied)

    # ------------------------------------------------------------------------------------------------------- cells

    def _view(self, rows: Rows, stand: Stand, alerts: Sequence["_Alert"]) -> LaneView:
        found, config = rows.found, rows.found.config
        lane = Lane(self._columns)
        for schedule in rows.schedules:
            self._fill(lane, rows, schedule, alerts)
        return LaneView(
            id=found.pipeline,
            owner=config.pipeline.owner if config else "",
            timezone=rows.schedules[0].timezone if rows.schedules else "UTC",
            valid=config is not None,
            errors=list(found.errors),
            dry_run=config.dry_run if config else False,
            schedules=[one.schedule_id for one in rows.schedules],
            after=[one.pipeline for one in config.after] if config else [],
            standing=stand.standing,
            cells=lane.cells,
            marks=lane.marks,
            multiple=lane.multiple,
            current=stand.current,
            sla=stand.sla,
            next_run=self._next.first(found),
        )

    def _fill(self, lane: Lane, rows: Rows, schedule: Schedule, alerts: Sequence["_Alert"]) -> None:
        columns, name, timezone = self._columns, schedule.schedule_id, schedule.timezone
        places: dict[str, int | None] = {}
        for run in rows.runs:
            if run.schedule == name:
                places[run.date] = index = columns.of_run(run.date, timezone, run.first_opened_at)
                lane.put(index, lanes.LETTERS[run.word])
        for seen in rows.dry:
            if seen.schedule == name:
                places[seen.date] = index = columns.of_run(seen.date, timezone, seen.opened_at)
                lane.put(index, Letter.DRY_RUN)
        if rows.found.config is not None and not rows.found.config.dry_run:
            for period, index, letter in self._without_run(rows, schedule, places):
                places[period] = index
                lane.put(index, letter)
        for alert in alerts:
            if alert.schedule == name:
                index = places[alert.date] if alert.date in places else columns.of_run(alert.date, timezone, alert.at)
                lane.mark(index, alert.mark)

    def _without_run(
        self, rows: Rows, schedule: Schedule, known: Mapping[str, int | None]
    ) -> Iterator[tuple[str, int | None, Letter]]:
        """The periods that schedule and calendar say something about, and that have no run: missed or excluded."""
        columns, now = self._columns, self._now
        since, late = self._watched_since(rows.found), now.at - now.grace
        if schedule.cron is not None:
            begin, end = since.isoformat(), late.isoformat()
            for due in lanes.due_around(schedule, columns):
                if due.period in known:
                    continue
                index = columns.of_run(due.period, schedule.timezone, due.at)
                if index is None:
                    continue
                if exclusion(schedule, self._calendars, due.day) is not None:
                    yield due.period, index, Letter.EXCLUDED
                elif begin <= due.at <= end:
                    yield due.period, index, Letter.MISSED
            return
        yield from self._without_run_by_day(schedule, known, since, late)

    def _without_run_by_day(
        self, schedule: Schedule, known: Mapping[str, int | None], since: datetime, late: datetime
    ) -> Iterator[tuple[str, int | None, Letter]]:
        columns = self._columns
        if schedule.exclude is None and schedule.include is None:
            return
        tz, at = zone(schedule.timezone), clock_time(schedule.time or "00:00")
        for offset in range((columns.end - columns.first).days + 2):
            day = (columns.first + timedelta(days=offset)).date()
            period = day.isoformat()
            due = local_time_on(day, at, tz)
            index = columns.of_run(period, schedule.timezone, due.isoformat())
            if period in known or index is None:
                continue
            if withheld(schedule, self._calendars, day) is not None:
                if exclusion(schedule, self._calendars, day) is not None and columns.bucket is Bucket.DAY:
                    yield period, index, Letter.EXCLUDED
            elif schedule.include is not None and schedule.trigger is None and since <= due <= late:
                yield period, index, Letter.MISSED

    # ------------------------------------------------------------------------------------------------------- alerts

    def _alerts(self) -> dict[str, list["_Alert"]]:
        """The alerts of the SLA around the columns, by pipeline."""
        columns = self._columns
        since = max(epoch_millis(columns.first - _ALERTS_BESIDE), 0)
        until = max(epoch_millis(columns.end + _ALERTS_BESIDE), 0)
        found: dict[str, list[_Alert]] = {}
        for type_, mark in _MARKS.items():
            for record in self._store.events_by_type(type_, since=since, until=until, limit=_MOST_ALERTS):
                item = record.item
                schedule, date, at = str(item.get("scheduleId", "")), str(item.get("date", "")), item["timestamp"]
                alert = _Alert(schedule, date, at, mark, item.get("ttl"))
                found.setdefault(keys.pipeline_of(record.key.pk), []).append(alert)
        return found


class _Alert(msgspec.Struct, frozen=True, gc=False):
    schedule: str
    date: str
    at: str
    mark: Mark
    ttl: Any

"""How the runs of a pipeline turned out lately, and which come next (see `pipeline_views`).

When a run was due and by how much it was kept is what its SLA's events say; where there are none, its SLA record; where
that is gone, the config in force. Nothing is decided here.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Final

import msgspec

from interlock.control import catalog, promises, records
from interlock.control.views import pipeline_views, run_views
from interlock.decide import calendars, cron
from interlock.decide.calendars import Calendars
from interlock.decide.expected import expected_granularity
from interlock.decide.sla import sla_times
from interlock.model import keys
from interlock.model.config import PipelineConfig, Schedule, clock_time
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import Table
from interlock.model.periods import Granularity, Period, day_period, parse_period
from interlock.model.run import Run, Word
from interlock.model.times import epoch_millis, local_time_on, to_local, zone
from interlock.ports.store import Span, Store

MOST_DAYS: Final = 90
_MOST_UPCOMING: Final = 500
_VERDICTS: Final = {EventType.SLA_MET: "met", EventType.SLA_RECOVERED: "recovered"}
_BREACHES: Final = frozenset({EventType.SLA_BREACH, EventType.RELATIVE_SLA_BREACH})


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class TrendRun(_View, frozen=True, kw_only=True):
    """A run, as far as a chart needs it. `margin_seconds` is how long before its breach it was done, negative if late.

    `sla`: met, recovered (done after the warning or the breach), breached (not done by then), or nothing of these.
    """

    schedule: str
    date: str
    opened_at: datetime
    passed_at: datetime | None
    triggered_at: datetime | None
    completed_at: datetime | None
    word: Word
    attempts: int
    duration_seconds: float | None
    breach_at: datetime | None
    margin_seconds: int | None
    sla: str | None


class Finish(_View, frozen=True, kw_only=True):
    """How long before its breach a run is done, in seconds: a tenth of the runs have less than `p10`."""

    p10: float | None = None
    p50: float | None = None
    p90: float | None = None


class Durations(_View, frozen=True, kw_only=True):
    """How long its jobs take, in seconds."""

    p50: float | None = None
    p95: float | None = None


class Trend(_View, frozen=True, kw_only=True):
    """The runs of the last days, the oldest first."""

    items: list[TrendRun]
    finish: Finish
    duration: Durations


class UpcomingRun(_View, frozen=True, kw_only=True):
    """A run that is to come. Without `start_at` something else than the clock opens it; `excluded` says why not."""

    schedule: str
    date: str
    start_at: datetime | None
    excluded: str | None
    warning_at: datetime | None
    breach_at: datetime | None


class Upcoming(_View, frozen=True, kw_only=True):
    """The runs to come, the next first."""

    items: Annotated[list[UpcomingRun], msgspec.Meta(description=f"At most {_MOST_UPCOMING}.")]


# ------------------------------------------------------------------------------------------------------ the past


class _SlaDetail(msgspec.Struct, frozen=True, rename="camel"):
    breach_at: datetime | None = None
    margin_seconds: float | None = None


class _SlaEvent(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    schedule_id: str = ""
    date: str = ""
    detail: _SlaDetail = _SlaDetail()


class _Outcome(msgspec.Struct, frozen=True):
    breach_at: datetime | None = None
    margin: int | None = None
    verdict: str | None = None


def read(store: Store, pipeline: str, now: datetime, *, days: int, schedule: str | None = None) -> Trend:
    """The runs of the last days, of all schedules or of one. A deleted pipeline's are still there."""
    runs = _runs(store, pipeline, now, days, schedule)
    if not runs:
        pipeline_views.known(store, pipeline)
    config = catalog.current(store, pipeline)
    outcomes = _outcomes(store, pipeline, runs, now)
    items = [_item(store, one, config, outcomes.get((one.schedule, one.date))) for one in runs]
    margins = sorted(float(one.margin_seconds) for one in items if one.margin_seconds is not None)
    seconds = sorted(one.duration_seconds for one in items if one.duration_seconds is not None and one.completed_at)
    return Trend(
        items=items,
        finish=Finish(p10=_quantile(margins, 0.1), p50=_quantile(margins, 0.5), p90=_quantile(margins, 0.9)),
        duration=Durations(p50=_quantile(seconds, 0.5), p95=_quantile(seconds, 0.95)),
    )


def _runs(store: Store, pipeline: str, now: datetime, days: int, schedule: str | None) -> list[Run]:
    """By date, the oldest first: only those of the last days are read."""
    pk = keys.pipeline_pk(pipeline)
    first = (now - timedelta(days=days - 1)).date().isoformat()
    names = [schedule] if schedule else list(run_views.schedules_with_runs(store, pk))
    spans = [Span(pk, f"{keys.RUN}{name}#{first}", f"{keys.RUN}{name}#~") for name in names]
    found = [run for rows in store.read_spans(Table.CONTROL, spans, Run) for _, run in rows]
    return sorted(found, key=lambda one: (one.date, one.schedule))


def _outcomes(store: Store, pipeline: str, runs: Sequence[Run], now: datetime) -> dict[tuple[str, str], _Outcome]:
    """What the events say of the SLA of these runs."""
    if not runs:
        return {}
    begin = min(one.first_opened_at for one in runs) - timedelta(days=1)
    span = Span(keys.pipeline_pk(pipeline), f"{max(epoch_millis(begin), 0):013d}", f"{epoch_millis(now) + 1000:013d}")
    found: dict[tuple[str, str], _Outcome] = {}
    (events,) = store.read_spans(Table.EVENTS, [span], _SlaEvent)
    for _, event in events:
        key = (event.schedule_id, event.date)
        known = found.get(key, _Outcome())
        if event.type in _VERDICTS:
            margin = event.detail.margin_seconds
            verdict = _VERDICTS[EventType(event.type)]
            found[key] = _Outcome(event.detail.breach_at, None if margin is None else int(margin), verdict)
        elif event.type in _BREACHES and known.verdict is None:
            found[key] = _Outcome(event.detail.breach_at, None, "breached")
    return found


def _item(store: Store, run: Run, config: PipelineConfig | None, outcome: _Outcome | None) -> TrendRun:
    outcome = outcome or _Outcome()
    breach = outcome.breach_at or _breach_of(store, run, config)
    margin = outcome.margin
    if margin is None and breach is not None and run.first_completed_at is not None:
        margin = (breach - run.first_completed_at) // timedelta(seconds=1)
    return TrendRun(
        schedule=run.schedule,
        date=run.date,
        opened_at=run.first_opened_at,
        passed_at=run.passed_at,
        triggered_at=run.triggered_at,
        completed_at=run.first_completed_at,
        word=run.word,
        attempts=run.attempt,
        duration_seconds=run_views.summary_of(run).duration_seconds,
        breach_at=breach,
        margin_seconds=margin,
        sla=outcome.verdict,
    )


def _breach_of(store: Store, run: Run, config: PipelineConfig | None) -> datetime | None:
    if config is None or config.sla is None:
        return None
    state = None if run.first_completed_at is not None else records.get_sla(store, run.key)
    if state is not None:
        return state.breach_at or state.relative_breach_at
    schedule = config.find_schedule(run.schedule)
    if schedule is None or config.sla.deadline is None:
        return None
    try:
        return sla_times(config.sla, schedule, parse_period(run.date), None, tick_at=run.tick_at).breach_at
    except InvalidValueError:
        return None


def _quantile(ordered: Sequence[float], part: float) -> float | None:
    """The smallest value that at least this part of all does not exceed; None without any."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]


# ----------------------------------------------------------------------------------------------------- the future


def upcoming(store: Store, pipeline: str, now: datetime, *, days: int) -> Upcoming:
    """The runs to come within some days, excluded ones with the reason."""
    config = pipeline_views.valid(store, pipeline)
    named = catalog.calendars(store)
    until = now + timedelta(days=days)
    items = [
        one for schedule in config.all_schedules for one in _of_schedule(store, config, schedule, named, (now, until))
    ]
    items.sort(key=lambda one: (one.date, one.schedule))
    return Upcoming(items=items[:_MOST_UPCOMING])


def _of_schedule(
    store: Store, config: PipelineConfig, schedule: Schedule, named: Calendars, span: tuple[datetime, datetime]
) -> Iterator[UpcomingRun]:
    now, until = span
    if schedule.cron is not None:
        for tick in islice(cron.ticks_between(schedule, now, until), _MOST_UPCOMING):
            excluded = calendars.exclusion(schedule, named, tick.local.date())
            yield _upcoming(config, schedule, tick.period, tick.at, excluded)
        return
    tz, at = zone(schedule.timezone), clock_time(schedule.time or "00:00")
    today = to_local(now, tz).date()
    for offset in range((to_local(until, tz).date() - today).days + 1):
        day = today + timedelta(days=offset)
        excluded = calendars.exclusion(schedule, named, day)
        if schedule.include is not None and calendars.inclusion(schedule, named, day) is not None:
            continue
        if _hourly(store, config, schedule):
            yield from _hours(config, schedule, day_period(day), now, excluded)
            continue
        by_clock = schedule.include is not None and schedule.trigger is None
        start = local_time_on(day, at, tz) if by_clock else None
        if start is None or start > now:
            yield _upcoming(config, schedule, day_period(day), start, excluded)


def _hourly(store: Store, config: PipelineConfig, schedule: Schedule) -> bool:
    latest = promises.latest_of(store, config.id, schedule.schedule_id)
    return expected_granularity(schedule, config.sla, latest) is Granularity.HOUR


def _hours(
    config: PipelineConfig, schedule: Schedule, day: Period, now: datetime, excluded: str | None
) -> Iterator[UpcomingRun]:
    """The hours of a day that are not over; of an excluded day, the day."""
    if excluded is not None:
        yield _upcoming(config, schedule, day, None, excluded)
        return
    tz = zone(schedule.timezone)
    for hour in day.hours():
        if hour.exists(tz) and hour.end(tz) > now:
            yield _upcoming(config, schedule, hour, None, None)


def _upcoming(
    config: PipelineConfig, schedule: Schedule, period: Period, start: datetime | None, excluded: str | None
) -> UpcomingRun:
    warning = breach = None
    hourly = period.granularity is not Granularity.DAY
    if config.sla is not None and config.sla.deadline is not None and excluded is None:
        try:
            times = sla_times(config.sla, schedule, period, None, tick_at=start if schedule.cron or hourly else None)
            warning, breach = times.warning_at, times.breach_at
        except InvalidValueError:
            pass  # beyond the calendar: it has no instants
    return UpcomingRun(
        schedule=schedule.schedule_id,
        date=str(period),
        start_at=start,
        excluded=excluded,
        warning_at=warning,
        breach_at=breach,
    )

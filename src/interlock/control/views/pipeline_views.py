"""The read model: what the API, the command line and the page show of pipelines, sensors and runs.

Typed values over the store port, so that every reader shows the same thing whichever store it reads. Nothing is
decided and nothing is written here. Lists are pages; a page's `next` is the cursor of the following one.
The list of pipelines, runs, events and statistics have modules of their own: `pipeline_list`, `run_views`,
`event_views`, `stats`.
"""

from datetime import datetime
from typing import Any

import msgspec

from interlock.control import catalog, promises, readiness, records
from interlock.control.catalog import Stored
from interlock.control.views import pipeline_list, run_views
from interlock.control.views.pipeline_list import PipelineSummary
from interlock.control.views.run_views import RunSummary
from interlock.decide import cron
from interlock.decide.checks import RuleResult
from interlock.decide.expected import expected_granularity
from interlock.decide.sensors import key_matches, period_of_write
from interlock.decide.shown_configs import without_secrets
from interlock.model import keys
from interlock.model.config import Mode, PipelineConfig, Schedule
from interlock.model.errors import InvalidConfigError, InvalidValueError, UnknownPipelineError
from interlock.model.keys import RunKey, Table
from interlock.model.periods import parse_period, period_of
from interlock.model.times import to_local, zone
from interlock.ports.store import Store


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class PipelineDetail(PipelineSummary, frozen=True, kw_only=True):
    """A pipeline with the document it was read from; what looks like a secret in it is hidden."""

    document: dict[str, Any]
    reads: list[str]
    first_applied_at: datetime | None = None


class SensorView(_View, frozen=True, kw_only=True):
    """The latest observation of a key. `period` is the one it names for itself; `read`: some rule reads it; `by`: who
    wrote it, where that is known.
    """

    pipeline: str
    key: str
    data: dict[str, Any]
    received_at: datetime
    period: str = ""
    read: bool = True
    ttl: int | None = None
    by: str = ""


class SensorPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some sensors; `next` is the cursor of the following page, null on the last."""

    items: list[SensorView]
    next: str | None = None


class ReadinessView(_View, frozen=True, kw_only=True):
    """Would the rules let a run of that date start now, and what of each.

    While an attempt is under way these are its own rules, of the config it was opened with; `config_changed` says that
    the current config is another.
    """

    pipeline: str
    schedule: str
    date: str
    ready: bool
    mode: Mode
    summary: str
    results: list[RuleResult]
    evaluated_at: datetime
    excluded: str | None = None
    awaited_upstreams: list[str] = []
    run: RunSummary | None = None
    config_changed: bool = False


# ---------------------------------------------------------------------------------------------------- pipelines


def known(store: Store, pipeline: str) -> Stored:
    """A stored pipeline, valid or not; an unknown name is an error with the nearest names."""
    # A name that cannot be one would only be refused by the store as an oversized key.
    found = catalog.stored(store, pipeline) if pipeline and len(pipeline) <= 128 else None
    if found is not None:
        return found
    raise UnknownPipelineError(f"there is no pipeline {pipeline[:128]!r}", pipeline, store.pipelines)


def valid(store: Store, pipeline: str) -> PipelineConfig:
    """The config of a pipeline that must be a valid one."""
    found = known(store, pipeline)
    if found.config is None:
        raise InvalidConfigError(f"the config of {pipeline} is invalid and is not run: {'; '.join(found.errors)}")
    return found.config


def followed(store: Store, pipeline: str) -> PipelineConfig:
    """The config by which a job's outcome is reported: the current one, or, of a pipeline that is gone, its job's."""
    found = catalog.stored(store, pipeline) if pipeline and len(pipeline) <= 128 else None
    if found is None or found.config is None:
        under_way = (records.get_run(store, key) for key in records.active_runs(store, pipeline[:128]))
        run_ = next((one for one in under_way if one is not None), None)
        if run_ is not None:
            return catalog.opened_with(store, pipeline, run_.config_version)
    return valid(store, pipeline)


def pipeline(store: Store, pipeline_id: str, now: datetime) -> PipelineDetail:
    """One pipeline, with its document."""
    found = known(store, pipeline_id)
    return PipelineDetail(
        **pipeline_list.summaries(store, [found], now)[0],
        document=without_secrets(found.document),
        reads=reads_of(found.config) if found.config else [],
        first_applied_at=catalog.first_applied(store, found),
    )


def reads_of(config: PipelineConfig) -> list[str]:
    """Every sensor key that anything in a config reads."""
    names = [rule.key for rule in config.validation.rules]
    names += [schedule.trigger.key for schedule in config.all_schedules if schedule.trigger is not None]
    names += readiness.post_run_names(config)
    return list(dict.fromkeys(names))


# ------------------------------------------------------------------------------------------------------ sensors


def sensors(store: Store, pipeline_id: str, now: datetime, *, after: str | None = None, limit: int = 100) -> SensorPage:
    """The sensors of a pipeline by key; expired ones are absent."""
    found = known(store, pipeline_id)
    begin = None if after is None else keys.sensor_sk(after)
    rows = store.query(Table.CONTROL, keys.pipeline_pk(pipeline_id), keys.SENSOR, after=begin, limit=limit + 1)
    items = [_sensor_view(found, row.key.sk[len(keys.SENSOR) :], row.item) for row in rows[:limit]]
    more = items[-1].key if items and len(rows) > limit else None
    return SensorPage(items=[one for one in items if one.ttl is None or one.ttl > now.timestamp()], next=more)


def sensor(store: Store, pipeline_id: str, key: str) -> SensorView | None:
    """One sensor; None when it was never written or has expired."""
    found = known(store, pipeline_id)
    item = store.get(records.control_key(keys.pipeline_pk(pipeline_id), keys.sensor_sk(key)))
    return None if item is None else _sensor_view(found, key, item)


def _sensor_view(found: Stored, key: str, item: dict[str, Any]) -> SensorView:
    observed = records.sensor_of(key, item)
    own = period_of_write(key, observed.data).period
    names = reads_of(found.config) if found.config else []
    return SensorView(
        pipeline=found.pipeline,
        key=key,
        data=observed.data,
        received_at=observed.received_at,
        period=str(own) if own else "",
        read=any(key_matches(name, key) for name in names),
        ttl=observed.ttl,
        by=str(item.get(records.WRITTEN_BY, "")),
    )


# ---------------------------------------------------------------------------------------------------- readiness


def choose_schedule(config: PipelineConfig, schedule: str | None) -> Schedule:
    """The named schedule; without a name the only one there is."""
    if schedule:
        return config.schedule_of(schedule)
    if len(config.all_schedules) > 1:
        names = ", ".join(one.schedule_id for one in config.all_schedules)
        raise InvalidValueError(f"pipeline {config.id} has several schedules ({names}): name one")
    return config.all_schedules[0]


def current_date(store: Store, config: PipelineConfig, schedule: Schedule, now: datetime) -> str:
    """The period people mean without naming one: the latest active run's, the last tick's, or today."""
    active = [key.date for key in records.active_runs(store, config.id) if key.schedule == schedule.schedule_id]
    if active:
        return max(active)
    tick = cron.previous_tick(schedule, now) if schedule.cron is not None else None
    if tick is not None:
        return str(tick.period)
    wanted = expected_granularity(schedule, config.sla, promises.latest_of(store, config.id, schedule.schedule_id))
    return str(period_of(to_local(now, zone(schedule.timezone)), wanted))


def readiness_of(
    store: Store, pipeline_id: str, now: datetime, *, date: str | None = None, schedule: str | None = None
) -> ReadinessView:
    """The rules as they stand for a run, whether it was opened or not; those of its attempt, if one is under way."""
    current = valid(store, pipeline_id)
    chosen = choose_schedule(current, schedule)
    key = RunKey(current.id, chosen.schedule_id, str(parse_period(date or current_date(store, current, chosen, now))))
    run_ = records.get_run(store, key)
    active = run_ is not None and run_.active
    config = catalog.judged_by(store, current, run_)
    verdict = readiness.readiness(store, config, key, now)
    return ReadinessView(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        ready=verdict.passed,
        mode=config.validation.trigger,
        summary=verdict.summary(),
        results=list(verdict.results),
        evaluated_at=now,
        # An open run is not checked against the calendar again.
        excluded=None if active else catalog.calendar_reason(store, chosen, key.period),
        # Nor does it wait for upstreams, but for those that its rules read.
        awaited_upstreams=[] if active else list(readiness.awaited_upstreams(store, config, key)),
        run=run_views.summary_of(run_) if run_ else None,
        config_changed=config != current,
    )

"""The list of pipelines: each in a line, with the latest run of every schedule and what comes next.

A page is read in a handful of statements, whatever number of pipelines is on it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from interlock.control.catalog import Stored
from interlock.control.views import lane_rows, run_views
from interlock.control.views.next_runs import NextRuns, NextView
from interlock.control.views.run_views import RunSummary, SlaView
from interlock.model import keys
from interlock.model.keys import RunKey, Table
from interlock.model.run import Active, Run, SlaState
from interlock.ports.store import Span, Store


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class ScheduleView(_View, frozen=True, kw_only=True):
    """How a schedule stands: its latest run, that run's SLA, and its next run."""

    schedule: str
    latest: RunSummary | None = None
    sla: SlaView | None = None
    next_run: NextView | None = None


class PipelineSummary(_View, frozen=True, kw_only=True):
    """A pipeline in one line. One that is not `valid` is not run; `errors` say why; `latest_sla` is of `latest`."""

    id: str
    owner: str
    description: str
    version: str
    valid: bool
    errors: list[str]
    dry_run: bool
    job_type: str | None
    schedules: list[str]
    after: list[str]
    active_runs: int
    latest: RunSummary | None = None
    latest_sla: SlaView | None = None
    by_schedule: list[ScheduleView] = []


class PipelinePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some pipelines; `next` is the cursor of the following page, null on the last."""

    items: list[PipelineSummary]
    next: str | None = None


def pipelines(store: Store, now: datetime, *, after: str | None = None, limit: int = 100) -> PipelinePage:
    """Pipelines by id."""
    ids = [one for one in store.pipelines() if after is None or one > after]
    found = lane_rows.read_configs(store, ids[:limit])
    items = [PipelineSummary(**fields) for fields in summaries(store, found, now)]
    return PipelinePage(items=items, next=ids[limit - 1] if len(ids) > limit else None)


def summaries(store: Store, found: Sequence[Stored], now: datetime) -> list[dict[str, Any]]:
    """The fields of a summary, of each of these."""
    upcoming = NextRuns(store, now)
    runs = _latest_runs(store, found)
    states = _sla_states(store, [run for by_name in runs for run in by_name.values()])
    watched = [Span(keys.pipeline_pk(one.pipeline), keys.ACTIVE, keys.ACTIVE + keys.LAST) for one in found]
    active = store.read_spans(Table.CONTROL, watched, Active)
    return [
        _summary(one, by_name, states, upcoming.of(one), len(under_way))
        for one, by_name, under_way in zip(found, runs, active, strict=True)
    ]


def _latest_runs(store: Store, found: Sequence[Stored]) -> list[dict[str, Run]]:
    """The latest run of each schedule. Where no schedule of the config has any, that of an earlier config's."""
    slots = [(index, name) for index, one in enumerate(found) for name in _schedules(one)]
    spans = [_last_run(found[index].pipeline, name) for index, name in slots]
    made: list[dict[str, Run]] = [{} for _ in found]
    for (index, name), rows in zip(slots, store.read_spans(Table.CONTROL, spans, Run), strict=True):
        made[index].update((name, run) for _, run in rows)
    for by_name, one in zip(made, found, strict=True):
        if not by_name:
            by_name.update((run.schedule, run) for run in run_views.newest(store, one.pipeline, None, 1))
    return made


def _sla_states(store: Store, runs: Sequence[Run]) -> dict[RunKey, SlaState]:
    spans = [Span(run.key.pk, run.key.sk(keys.SLA), run.key.sk(keys.SLA) + "\0") for run in runs]
    read = store.read_spans(Table.CONTROL, spans, SlaState)
    return {run.key: rows[0][1] for run, rows in zip(runs, read, strict=True) if rows}


def _schedules(found: Stored) -> list[str]:
    return [one.schedule_id for one in found.config.all_schedules] if found.config is not None else []


def _last_run(pipeline: str, schedule: str) -> Span:
    prefix = f"{keys.RUN}{schedule}#"
    return Span(keys.pipeline_pk(pipeline), prefix, prefix + keys.LAST, 1)


def _summary(
    found: Stored,
    runs: Mapping[str, Run],
    states: Mapping[RunKey, SlaState],
    upcoming: Sequence[NextView],
    active_runs: int,
) -> dict[str, Any]:
    config = found.config
    by_schedule = [_standing(name, runs.get(name), states, upcoming) for name in _schedules(found)]
    newest = max(runs.values(), key=lambda run: (run.date, run.schedule), default=None)
    return {
        "id": found.pipeline,
        "owner": config.pipeline.owner if config else "",
        "description": config.pipeline.description if config else "",
        "version": found.version,
        "valid": config is not None,
        "errors": list(found.errors),
        "dry_run": config.dry_run if config else False,
        "job_type": config.job.type if config and config.job else None,
        "schedules": _schedules(found),
        "after": [one.pipeline for one in config.after] if config else [],
        "active_runs": active_runs,
        "latest": run_views.summary_of(newest) if newest else None,
        "latest_sla": _sla(newest, states),
        "by_schedule": by_schedule,
    }


def _standing(
    name: str, run: Run | None, states: Mapping[RunKey, SlaState], upcoming: Sequence[NextView]
) -> ScheduleView:
    return ScheduleView(
        schedule=name,
        latest=run_views.summary_of(run) if run is not None else None,
        sla=_sla(run, states),
        next_run=next((one for one in upcoming if one.schedule == name), None),
    )


def _sla(run: Run | None, states: Mapping[RunKey, SlaState]) -> SlaView | None:
    state = states.get(run.key) if run is not None else None
    return run_views.sla_view(state) if state is not None else None

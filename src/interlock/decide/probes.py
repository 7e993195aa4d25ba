"""Probes: which sensors a probe writes, when the next look is due, and which runs wait for it (SPEC 14).

A probe whose config names `${DATE}`, `${HOUR}` or `${PERIOD}` is *dated*: it looks for one period, and writes the
sensor `key#period`. Any other looks at one thing, whatever the period, and writes `key`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.decide.templates import fill_in, for_jobs, template_names
from interlock.model.config import PipelineConfig, Probe, Schedule
from interlock.model.durations import Duration
from interlock.model.periods import Granularity, Period, period_of
from interlock.model.probe import ProbeState
from interlock.model.times import zone

# What a look may take beyond its timeout until its end is recorded.
GRACE: Final = timedelta(seconds=5)
_DATED: Final = frozenset({"DATE", "HOUR", "PERIOD"})


def interval_of(config: PipelineConfig, probe: Probe) -> Duration:
    """The time between two looks; by default that between two evaluations."""
    return probe.interval or min(schedule.evaluation.interval for schedule in config.all_schedules)


def ttl_of(config: PipelineConfig, probe: Probe) -> timedelta:
    """How long an observation counts: by default one look may fail without anybody missing it, not two in a row."""
    return probe.ttl or 2 * interval_of(config, probe) + probe.timeout


def is_dated(probe: Probe) -> bool:
    """Does it look for a period?"""
    return any(name in _DATED for name in template_names(probe.config))


def sensor_key(probe: Probe, period: Period | None) -> str:
    """The sensor that a look writes."""
    return probe.key if period is None else f"{probe.key}#{period}"


def current_period(probe: Probe, schedule: Schedule, now: datetime) -> Period:
    """The period whose trigger sensor a dated probe looks for while no run of it is open."""
    hourly = schedule.granularity == "hour" or (
        schedule.granularity is None and bool({"HOUR", "PERIOD"} & set(template_names(probe.config)))
    )
    local = now.astimezone(zone(schedule.timezone)).replace(tzinfo=None)
    return period_of(local, Granularity.HOUR if hourly else Granularity.DAY)


def fill_probe(
    probe: Probe, pipeline: str, period: Period | None, environment: Mapping[str, str], *, where: str
) -> dict[str, Any]:
    """The config of a look: all templates filled in, except secrets."""
    variables = for_jobs(environment)
    if period is not None:
        variables |= {
            "DATE": str(period.day),
            "HOUR": "" if period.hour is None else f"{period.hour:02d}",
            "PERIOD": str(period),
        }
    return fill_in(probe.config, {**variables, "PIPELINE": pipeline}, where)


def definition(probe: Probe) -> dict[str, Any]:
    """What makes it this probe: a change of it is looked at at once. Not how often and how long it is asked."""
    return {"type": probe.type.value, "config": msgspec.to_builtins(probe.config)}


# ------------------------------------------------------------------------------------------------------------ when


def due_at(state: ProbeState | None, definition: str, interval: timedelta, now: datetime) -> datetime:
    """When the next look may begin: at once if there was none, else an interval after the last one began."""
    if state is None:
        return now
    at = now if state.definition != definition else state.started_at + interval
    return max(at, state.ends_by) if state.under_way(now) else at


def awaited_until(state: ProbeState | None, interval: timedelta, now: datetime) -> datetime | None:
    """Until when an evaluation waits for a look that is due or under way; None when there is none to wait for.

    The end of the look wakes the evaluation sooner.
    """
    if state is not None and state.under_way(now):
        return state.ends_by
    return now + interval if state is None or now >= state.started_at + interval else None

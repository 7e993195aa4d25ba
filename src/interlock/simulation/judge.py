"""Did the scenario come out as expected? Compares a timeline with the expectations; every difference is reported."""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from interlock.model.events import Event
from interlock.model.keys import RunKey
from interlock.model.run import Run
from interlock.model.times import format_instant
from interlock.simulation.scenario import (
    Expectations,
    ExpectedCount,
    ExpectedEvent,
    ExpectedRun,
    Scenario,
    instant,
)


class Failure(msgspec.Struct, frozen=True):
    """Something expected that did not happen, or something that must never happen and did. `event`: its index."""

    message: str
    event: int | None = None


FindRun = Callable[[ExpectedRun], Run | None]


def judge(scenario: Scenario, events: Sequence[Event], find: FindRun) -> list[Failure]:
    """Everything that came out differently."""
    expect: Expectations = scenario.expect
    failures = _in_order(expect.events, events, scenario.start)
    for unwanted in expect.never:
        for index, event in enumerate(events):
            if _fits(unwanted, event, scenario.start):
                failures.append(Failure(f"must never happen, and did: {_told(event)}", index))
    for wanted in expect.counts:
        failures += _counted(wanted, events, scenario.start)
    for run in expect.runs:
        failures += _stands(run, find(run))
    return failures


def _in_order(expected: Sequence[ExpectedEvent], events: Sequence[Event], start: datetime) -> list[Failure]:
    """Expected events must occur in this order; others may come between. The earliest fit leaves most room."""
    failures: list[Failure] = []
    position = 0
    for wanted in expected:
        found = next((i for i in range(position, len(events)) if _fits(wanted, events[i], start)), None)
        if found is None:
            failures.append(Failure(f"expected, did not happen{_hint(wanted, events, start)}: {_asked(wanted)}"))
        else:
            position = found + 1
    return failures


def _hint(wanted: ExpectedEvent, events: Sequence[Event], start: datetime) -> str:
    """Where it did happen, if it happened at another time or in another order."""
    same = [one for one in events if _fits(msgspec.structs.replace(wanted, at=None), one, start)]
    if not same:
        return ""
    times = ", ".join(format_instant(one.timestamp) for one in same[:3])
    return f" in this order or at this time (it happened at {times})"


def _fits(wanted: ExpectedEvent, event: Event, start: datetime) -> bool:
    if event.type is not wanted.type:
        return False
    pairs: tuple[tuple[object, object], ...] = (
        (wanted.pipeline, event.pipeline_id),
        (wanted.schedule, event.schedule_id),
        (wanted.date, event.date),
        (wanted.severity, event.severity),
        *((value, event.detail.get(name)) for name, value in wanted.detail.items()),
    )
    if any(asked is not None and asked != given for asked, given in pairs):
        return False
    if wanted.at is None:
        return True
    return instant(wanted.at, start).replace(microsecond=0) == event.timestamp.replace(microsecond=0)


def _counted(wanted: ExpectedCount, events: Sequence[Event], start: datetime) -> list[Failure]:
    count = sum(1 for event in events if _fits(wanted, event, start))
    if count == wanted.n:
        return []
    return [Failure(f"expected {wanted.n} times, happened {count} times: {_asked(wanted)}")]


def _stands(wanted: ExpectedRun, run: Run | None) -> list[Failure]:
    name = f"{wanted.pipeline} {wanted.date}"
    if wanted.status is None:
        return [] if run is None else [Failure(f"run {name} must not exist, but is {run.status}")]
    if run is None:
        return [Failure(f"run {name} must be {wanted.status}, but there is none")]
    failures: list[Failure] = []
    if run.status is not wanted.status:
        reason = f" ({run.final_reason})" if run.final_reason else ""
        failures.append(Failure(f"run {name} must be {wanted.status}, but is {run.status}{reason}"))
    if wanted.attempt is not None and run.attempt != wanted.attempt:
        failures.append(Failure(f"run {name} must be at attempt {wanted.attempt}, but is at {run.attempt}"))
    if wanted.reason is not None and run.final_reason is not wanted.reason:
        failures.append(Failure(f"run {name} must have ended by {wanted.reason}, but by {run.final_reason}"))
    return failures


def _asked(wanted: ExpectedEvent) -> str:
    parts = [wanted.type.value, wanted.pipeline, wanted.schedule, wanted.date, f"at {wanted.at}" if wanted.at else None]
    parts += [wanted.severity, *(f"{name}={value}" for name, value in wanted.detail.items())]
    return " ".join(part for part in parts if part)


def _told(event: Event) -> str:
    return f"{event.type} {event.pipeline_id} {event.date} at {format_instant(event.timestamp)}"


def default_key(scenario: Scenario, wanted: ExpectedRun) -> RunKey:
    """The slot an expected run means: its pipeline's first schedule unless it names one."""
    applied = (pipeline for step in scenario.steps for pipeline in step.applied)
    every = (*scenario.pipelines, *applied)
    config = next((one.config for one in every if one.config.id == wanted.pipeline), None)
    schedule = wanted.schedule or (config.all_schedules[0].schedule_id if config else "stream")
    return RunKey(wanted.pipeline, schedule, wanted.date)

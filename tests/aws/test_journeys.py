"""The scenario files of `tests/journeys` on the in-process AWS: the same events, runs and virtual times as embedded.

`make test` plays a sample; `make test-all`, or `pytest tests/aws`, plays all of them.
"""

import json
import re
from collections.abc import Collection, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.simulation.play import play
from interlock.simulation.world import World
from tests.aws.world.moto_machine import MotoMachine
from tests.aws.world.play import on_aws
from tests.journeys.test_journeys import FILES, named, runs_of, scenario_of

# One of each kind: a cascade, a calendar, a removed config, a crash, a dry run, late data, a pool, drift, a rerun, a
# refused start, retries, SLA timers near and far, a woken wait, the watchdog.
SAMPLE: Final = frozenset(
    {
        "calendar-changed",
        "cascade-two-upstreams",
        "config-removed-and-back",
        "crash-while-starting",
        "dry-run-observes",
        "late-data-while-running",
        "pool-in-turn",
        "postrun-drift-rerun",
        "rerun-budget-and-circuit-breaker",
        "retry-delay-doubles",
        "sla-max-duration",
        "sla-met-warned-breached",
        "trigger-refused-then-started",
        "waiting-woken-by-a-write",
        "watchdog-recovers-a-start",
    }
)
# On moto's own interpreter of the state machine: waits, retries of a task, polls, an SLA, a wake-up, a time-out.
ON_MOTO: Final = (
    "job-poll-exhausted-for-good",
    "sla-max-duration",
    "trigger-refused-then-started",
    "waiting-window-closes",
    "waiting-woken-by-a-write",
)
# What a journey may tell otherwise on AWS, and why.
DIFFERENT: Final = {
    # An embedded execution is stretched to the windows of its run. On AWS `apply` refuses such windows, and an
    # execution that timed out goes on by its status event, which says so, before the watchdog finds it.
    "pool-outlasts-the-execution": frozenset({EventType.TRIGGER_RECOVERED}),
    # On AWS the orchestrator looks before it evaluates: the first look comes with the run, not before it, and the
    # history of the rule, which is in the detail of VALIDATION_PASSED, begins with it.
    "probe-fails-and-recovers": frozenset({EventType.PROBE_FAILED, EventType.VALIDATION_PASSED}),
}
# Journeys in which a run is woken twice within a second: on AWS the second wake-up waits until the second is over, so
# that what follows is a second later, and a timer far ahead that follows from it fires on the next whole minute.
JOINED: Final = frozenset({"sla-ready-by"})
# What cannot be the same: on AWS nobody looks for a probe while no run waits for it.
UNLIKE: Final = {
    "probe-opens-the-run": "a probe that is to open the run is refused by `plan` and `apply`",
    "probe-in-a-dry-run": "nobody looks for a dry run, which has no execution",
    "probe-looks-for-the-period-of-the-run": "nobody looks for a run whose window has closed",
}
# Ids are counted, and the two runtimes count them in another order.
_ID: Final = re.compile(r"-\d{6}\b")

Account = list[tuple[str, ...]]


def account(events: Iterable[Event], left_out: Collection[EventType] = ()) -> Account:
    """All events, by time; at one instant the runtimes may have those of two pipelines in another order."""
    return sorted(
        (
            event.timestamp.isoformat(),
            event.type.value,
            event.pipeline_id,
            event.schedule_id,
            event.date,
            event.severity.value,
            _ID.sub("-ID", event.message),
            _ID.sub("-ID", json.dumps(event.detail, sort_keys=True, default=str)),
        )
        for event in events
        if event.type not in left_out
    )


def assert_a_little_later(events: Iterable[Event], embedded: Iterable[Event]) -> None:
    """The same events, each at the same time or up to two minutes later."""

    def ordered(found: Iterable[Event]) -> list[Event]:
        return sorted(found, key=lambda one: (one.pipeline_id, one.schedule_id, one.date, one.type, one.timestamp))

    for late, event in zip(ordered(events), ordered(embedded), strict=True):
        assert (late.type, late.pipeline_id, late.date) == (event.type, event.pipeline_id, event.date)
        assert timedelta(0) <= late.timestamp - event.timestamp < timedelta(minutes=2)


def by_run(events: Iterable[Event], left_out: Collection[EventType] = ()) -> dict[RunKey, list[EventType]]:
    """The types of the events of each run, in the order of their commits: that order is kept on AWS, too."""
    found: dict[RunKey, list[EventType]] = {}
    for event in events:
        if event.type not in left_out:
            found.setdefault(RunKey(event.pipeline_id, event.schedule_id, event.date), []).append(event.type)
    return found


def stands(world: World) -> Account:
    """How the runs stand in the end."""
    return sorted(
        (str(run.key), run.status.value, str(run.attempt), run.source.value, str(run.final_reason))
        for run in runs_of(world)
    )


def _marked(path: Path) -> object:
    marks = [] if named(path) in SAMPLE else [pytest.mark.long]
    if named(path) in UNLIKE:
        marks.append(pytest.mark.xfail(strict=True, reason=UNLIKE[named(path)]))
    return pytest.param(path, marks=marks, id=named(path))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", [_marked(path) for path in FILES])
def test_a_journey_is_the_same_on_aws(path: Path) -> None:
    scenario = scenario_of(path)
    embedded = play(scenario).world

    with on_aws(scenario) as world:
        world.play()

        left_out = DIFFERENT.get(named(path), frozenset())
        if named(path) in JOINED:
            assert_a_little_later(world.events, embedded.events)
        else:
            assert account(world.events, left_out) == account(embedded.events, left_out)
        assert by_run(world.events, left_out) == by_run(embedded.events, left_out)
        assert stands(world) == stands(embedded)
        assert world.dead_letters() == 0


@pytest.mark.parametrize("name", ON_MOTO)
def test_a_journey_is_the_same_on_the_interpreter_of_moto(name: str) -> None:
    scenario = scenario_of(next(path for path in FILES if named(path) == name))

    with on_aws(scenario, machine=MotoMachine) as world:
        world.play()

        assert account(world.events) == account(play(scenario).world.events)
        assert world.dead_letters() == 0


def test_the_sample_is_of_journeys_that_exist() -> None:
    assert {named(path) for path in FILES} >= SAMPLE

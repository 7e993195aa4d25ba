"""Ticks as timers on AWS, when the way of a tick breaks: no tick is lost, and none is dropped without a word.

The way: a record, a message (SQS within 15 minutes, Scheduler further ahead), the function that opens the run and arms
the next tick. It is broken at each of its commits, and its message is lost.
"""

from typing import Any, Final

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from interlock.model.events import EventType
from interlock.simulation.scenario import Scenario, inline_scenario
from tests.aws.test_properties import ASKED, aws_faults, examples
from tests.aws.world.faults import AwsFaults, faulty
from tests.safety.faults import Loss
from tests.safety.invariants import violations

NEAR: Final = "10 0 * * *"  # ten minutes after the start: a delayed message
FAR: Final = "40 0 * * *"  # an entry of Scheduler
TOLD: Final = {
    EventType.TRIGGER_STARTED,
    EventType.SCHEDULE_MISSED,
    EventType.PIPELINE_EXCLUDED,
}
Json = dict[str, Any]


def ticking(
    cron: str, *, window: str = "30m", excluded: bool = False, changed: str | None = None, hours: int = 2
) -> Scenario:
    """A pipeline that a cron opens, on a Thursday; `changed`: the cron that it has after five minutes."""
    return inline_scenario(**_fields(cron, window, excluded=excluded, changed=changed, hours=hours))


def _fields(cron: str, window: str, *, excluded: bool, changed: str | None, hours: int) -> Json:
    schedule: Json = {"cron": cron, "evaluation": {"window": window, "interval": "5m"}}
    if excluded:
        schedule["exclude"] = {"days": ["thursday"]}
    pipeline: Json = {
        "pipeline": {"id": "gamma"},
        "schedule": schedule,
        "validation": {"rules": [{"key": "rows", "check": "exists"}]},
        "job": {"type": "glue", "config": {"jobName": "x"}},
    }
    steps: list[Json] = [{"at": "+1m", "sensor": "gamma/rows", "data": {"count": 1}}]
    if changed is not None:
        steps.append({"at": "+5m", "apply": pipeline | {"schedule": schedule | {"cron": changed}}})
    return {
        "name": "ticking",
        "start": "2026-03-05T00:00:00Z",
        "until": f"2026-03-05T{hours:02d}:00:00Z",
        "pipelines": [pipeline],
        "jobs": {"gamma": [{"result": "success", "after": "1m"}]},
        "steps": steps,
    }


def events_of_tick(scenario: Scenario, plan: AwsFaults) -> list[EventType]:
    """The events of the tick; the properties hold, whatever they are."""
    with faulty(scenario, plan) as world:
        assert violations(world.finish()) == [], plan
        assert world.struck or plan == AwsFaults(), f"{plan} struck nothing"
        return [event.type for event in world.events if event.type in TOLD]


def points(scenario: Scenario) -> int:
    """At how many points a function could be killed in it."""
    with faulty(scenario) as world:
        world.finish()
        return world.points


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        pytest.param(ticking(NEAR), EventType.TRIGGER_STARTED, id="a-delayed-message", marks=pytest.mark.long),
        pytest.param(ticking(FAR), EventType.TRIGGER_STARTED, id="an-entry-of-scheduler", marks=pytest.mark.long),
        pytest.param(ticking(FAR, excluded=True), EventType.PIPELINE_EXCLUDED, id="an-excluded-day"),
        pytest.param(
            ticking("15 3 * * *", changed=NEAR),
            EventType.TRIGGER_STARTED,
            id="moved-by-a-config-change",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_function_killed_at_any_commit_of_the_tick_loses_no_tick(scenario: Scenario, expected: EventType) -> None:
    count = points(scenario)
    assert count > 10
    for number in range(count):
        assert events_of_tick(scenario, AwsFaults(kills=(number,))) == [expected], f"killed at {number} of {count}"


@pytest.mark.parametrize("window", ["1m", "30m"])
@pytest.mark.parametrize("excluded", [False, True])
@pytest.mark.parametrize(
    ("cron", "lost"),
    [
        pytest.param(NEAR, AwsFaults(dropped=(Loss(0, 0),)), id="message"),
        pytest.param(FAR, AwsFaults(unscheduled=(Loss(0, 0),)), id="entry"),
    ],
)
def test_a_lost_tick_is_delivered_late_or_reported(cron: str, lost: AwsFaults, excluded: bool, window: str) -> None:
    found = events_of_tick(ticking(cron, window=window, excluded=excluded), lost)
    assert found == [EventType.PIPELINE_EXCLUDED if excluded else EventType.TRIGGER_STARTED]


def test_after_a_lost_tick_the_next_comes_by_its_own_timer() -> None:
    """And not by the watchdog, up to five minutes late, until the window of the lost one is over."""
    scenario = ticking("7 * * * *", window="3h", hours=4)
    with faulty(scenario, AwsFaults(dropped=(Loss(0, 0),))) as world:
        assert violations(world.finish()) == []
        opened = [event.timestamp.strftime("%H:%M") for event in world.events if event.type in TOLD]
    assert opened[:4] == ["00:10", "01:07", "02:07", "03:07"]


@st.composite
def _tick_scenarios(draw: st.DrawFn) -> Json:
    """One pipeline that a cron opens: small, so that many can be played."""
    crons = st.sampled_from((NEAR, FAR, "0 * * * *", "*/20 * * * *", "15 1 * * *"))
    return _fields(
        draw(crons),
        draw(st.sampled_from(("1m", "10m", "1h"))),
        excluded=draw(st.booleans()),
        changed=draw(st.none() | crons),
        hours=2,
    )


@pytest.mark.long
@pytest.mark.timeout(0)
@examples(int(ASKED or "60"))
@given(fields=_tick_scenarios(), plan=aws_faults(most=60, kills=2))
def test_no_tick_is_lost_whatever_goes_wrong(fields: Json, plan: AwsFaults) -> None:
    with faulty(inline_scenario(**fields), plan) as world:
        found = violations(world.finish())
        note(f"faults: {plan}\nscenario: {fields}")
        assert found == []

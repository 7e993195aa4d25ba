"""A scenario refuses whatever `interlock validate` would refuse of its configs, also of those written inside it."""

import re
from datetime import timedelta
from typing import Any

import pytest

from interlock.model.events import EventType
from interlock.simulation.scenario import ScenarioError, inline_scenario
from interlock.simulation.world import World

GOLD: dict[str, Any] = {
    "pipeline": {"id": "gold"},
    "schedule": {"cron": "0 8 * * *"},
    "validation": {"rules": [{"key": "rows", "check": "exists"}]},
    "job": {"type": "external"},
}
SILVER = GOLD | {"pipeline": {"id": "silver"}}


def after(id_: str, *upstreams: str, require: str = "same-period") -> dict[str, Any]:
    entries = [{"pipeline": name, "require": require} for name in upstreams]
    return {**GOLD, "pipeline": {"id": id_}, "schedule": {}, "after": entries}


def problems(**fields: Any) -> list[str]:
    made = {"start": "2026-03-02T08:00:00Z", "until": "2026-03-02T09:00:00Z"} | fields
    try:
        inline_scenario(**made)
    except ScenarioError as error:
        return [f"{one.path}: {one.message}" for one in error.problems]
    return []


@pytest.mark.parametrize(
    ("pipelines", "expected"),
    [
        ([GOLD, SILVER], []),
        ([GOLD, GOLD], ["pipelines[1].pipeline.id: 'gold' is the id of another pipeline too: pipelines[0]"]),
        ([after("gold", "silver"), SILVER], []),
        ([after("gold", "silver")], []),  # a scenario may be about a part of a project
        ([after("gold", "silver", require="all-hours"), SILVER], ["pipelines[0].after[0].require: all-hours waits"]),
        ([after("gold", "silver"), after("silver", "gold")], ["waits for itself (silver -> gold -> silver)"]),
        ([GOLD | {"archetype": "medallion"}], ["pipelines[0].archetype: a config inside a scenario"]),
        ([GOLD | {"validation": {"rules": []}}], ["pipelines[0].validation.rules"]),
    ],
)
def test_pipelines_are_checked_as_one_set(pipelines: list[dict[str, Any]], expected: list[str]) -> None:
    found = problems(pipelines=pipelines)
    assert len(found) == len(expected), found
    assert all(part in one for part, one in zip(expected, found, strict=True)), found


def test_configs_that_are_applied_on_the_way_are_checked_too() -> None:
    step = {"at": "+10m", "apply": after("silver", "gold", require="all-hours")}
    (found,) = problems(pipelines=[GOLD], steps=[step])
    assert found.startswith("steps[0].apply.after[0].require: all-hours waits")


def test_a_pipeline_may_be_changed_on_the_way() -> None:
    assert problems(pipelines=[GOLD], steps=[{"at": "+10m", "apply": GOLD}]) == []


def test_a_calendar_needs_days_that_exist() -> None:
    found = problems(pipelines=[GOLD], calendars=[{"name": "odd", "dates": ["2026-02-30"]}])
    assert len(found) == 1
    assert found[0].startswith("calendars[0].dates[0]: ")


# ------------------------------------------------------------------------------------------------------------ probes


def probed(*looks: dict[str, Any], key: str = "landed", pipeline: str = "gold") -> dict[str, Any]:
    return {
        "start": "2026-03-02T08:00:00Z",
        "until": "2026-03-02T09:00:00Z",
        "pipelines": [
            {
                "pipeline": {"id": "gold"},
                "schedule": {"cron": "0 8 * * *"},
                "validation": {"rules": [{"key": "landed", "check": "exists"}]},
                "probes": [{"key": "landed", "type": "file", "config": {"path": "x"}}],
                "job": {"type": "command", "config": {"command": ["true"]}},
            }
        ],
        "probes": {pipeline: {key: list(looks)}},
    }


def test_answers_of_probes_are_timed() -> None:
    scenario = inline_scenario(**probed({"data": {"n": 1}}, {"at": "+10m", "error": "gone"}))
    first, second = scenario.probes["gold"]["landed"]
    assert (first.at, first.look.data) == (scenario.start, {"n": 1})
    assert (second.at, second.look.error) == (scenario.start + timedelta(minutes=10), "gone")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (probed({}), "an answer of a probe is {data: {...}} or {error: ...}"),
        (probed({"data": {}, "error": "x"}), "an answer of a probe is {data: {...}} or {error: ...}"),
        (probed({"at": "+1m", "data": {}}), "the first answer is from the start on"),
        (probed({"data": {}}, {"data": {}}), "each later one needs its `at`"),
        (probed({"data": {}}, {"at": "+2m", "data": {}}, {"at": "+1m", "data": {}}), "is not after the answer before"),
        (probed({"data": {}}, {"at": "soon", "data": {}}), "'soon' is not a time"),
        (probed({"data": {}}, key="lande"), "no pipeline 'gold' of this scenario has a probe 'lande'"),
        (probed({"data": {}}, pipeline="gol"), "no pipeline 'gol' of this scenario has a probe 'landed'"),
        (probed(), "probes.gold.landed: a probe has at least one answer"),
        (probed({"dta": {}}), "probes.gold.landed[0].dta: unknown key"),
    ],
)
def test_answers_of_probes_that_cannot_be_played(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        inline_scenario(**fields)


def test_a_probe_without_a_script_is_left_to_the_steps() -> None:
    fields = probed({"data": {}})
    del fields["probes"]
    steps = [{"at": "+10m", "sensor": "gold/landed", "data": {"by": "hand"}}]
    world = World(inline_scenario(**fields, steps=steps))
    world.play()
    passed = [event for event in world.events if event.type is EventType.VALIDATION_PASSED]
    assert [event.timestamp for event in passed] == [world.scenario.start + timedelta(minutes=10)]

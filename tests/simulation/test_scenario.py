"""A scenario refuses whatever `interlock validate` would refuse of its configs, also of those written inside it."""

from typing import Any

import pytest

from interlock.simulation.scenario import ScenarioError, inline_scenario

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

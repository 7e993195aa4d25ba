"""Hazard coverage: each gap appears when its constraint is missing, and its own suggestion closes it."""

from typing import Any

import pytest
import yaml

from interlock.config.stored import read_stored
from interlock.decide.stpa import Cover, Coverage, Hazard, Unsafe, analyse
from interlock.model.config import PipelineConfig

SAFE: dict[str, Any] = {
    "pipeline": {"id": "gold"},
    "schedule": {
        "cron": "0 8 * * *",
        "exclude": {"weekends": True},
        "trigger": {"key": "up", "check": "equals", "field": "status", "value": "ready"},
    },
    "sla": {"deadline": "10:00", "expectedDuration": "30m"},
    "validation": {
        "rules": [
            {"key": "up", "check": "equals", "field": "status", "value": "ready"},
            {"key": "freshness", "check": "age_lt", "field": "updatedAt", "value": "2h"},
        ]
    },
    "job": {"type": "glue", "config": {"jobName": "x"}, "maxRetries": 2},
    "postRun": {"rules": [{"key": "out", "check": "gte", "field": "count", "value": 1}]},
}


def coverage(**changes: Any) -> Coverage:
    document = {name: value for name, value in {**SAFE, **changes}.items() if value is not None}
    found = read_stored(document, {})
    assert isinstance(found, PipelineConfig), found
    return analyse(found)


def hazard(found: Coverage, name: str) -> Hazard:
    return next(one for one in found.hazards if one.hazard == name)


def test_a_careful_config_covers_everything() -> None:
    found = coverage()
    assert [one.hazard for one in found.hazards if one.cover is not Cover.COVERED] == []
    assert all(one.constraints for one in found.hazards)
    assert {one.kind for one in found.hazards} == set(Unsafe)


def test_the_four_kinds_are_in_order() -> None:
    kinds = [one.kind for one in coverage().hazards]
    assert kinds == sorted(kinds, key=list(Unsafe).index)


TRIGGER_ONLY = {"trigger": {"key": "up", "check": "exists"}}


@pytest.mark.parametrize(
    ("changes", "name", "cover"),
    [
        ({"schedule": TRIGGER_ONLY, "sla": None}, "no run is ever opened", Cover.UNCOVERED),
        ({"schedule": None, "sla": None, "after": [{"pipeline": "b"}]}, "no run is ever opened", Cover.UNCOVERED),
        (
            {"schedule": {**TRIGGER_ONLY, "evaluation": {"afterWindow": "stop"}}},
            "the inputs never become ready",
            Cover.WEAK,
        ),
        ({"job": {"type": "external"}}, "the job is lost to a passing failure", Cover.WEAK),
        (
            {"validation": {**SAFE["validation"], "trigger": "ANY"}},
            "the inputs are not ready",
            Cover.WEAK,
        ),
        ({"validation": {"rules": [{"key": "a", "check": "exists"}]}}, "the inputs are not ready", Cover.WEAK),
        ({"validation": {"rules": [{"key": "a", "check": "exists"}]}}, "the inputs are stale", Cover.WEAK),
        (
            {"validation": {"rules": [{"key": "a", "check": "exists", "period": "any"}]}},
            "the inputs are of another period",
            Cover.UNCOVERED,
        ),
        ({"sla": None}, "it is done too late", Cover.UNCOVERED),
        ({"sla": {"deadline": "10:00"}}, "it is done too late", Cover.WEAK),
        ({"schedule": {"cron": "0 8 * * *"}, "postRun": None}, "data arrives after it has run", Cover.WEAK),
        ({"job": {**SAFE["job"], "maxDriftReruns": 0}}, "data arrives after it has run", Cover.WEAK),
        (
            {"sla": {"deadline": "20:00", "expectedDuration": "3h"}},
            "the job is given up while it still runs",
            Cover.UNCOVERED,
        ),
        ({"job": {"type": "command", "config": {"command": ["x"]}}}, "the job hangs", Cover.WEAK),
        ({"postRun": None}, "the job succeeds, but its output is wrong", Cover.UNCOVERED),
        ({"postRun": {"rules": []}}, "the job succeeds, but its output is wrong", Cover.UNCOVERED),
    ],
)
def test_a_missing_constraint_is_a_gap_with_a_suggestion(changes: dict[str, Any], name: str, cover: Cover) -> None:
    found = hazard(coverage(**changes), name)
    assert found.cover is cover
    assert found.gap
    assert yaml.safe_load(found.suggestion)


def merged(document: dict[str, Any], addition: dict[str, Any]) -> dict[str, Any]:
    """The suggestion put into the config, as a person would."""
    result = dict(document)
    for key, value in addition.items():
        old = result.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            result[key] = merged(old, value)
        elif key == "rules" and isinstance(old, list):
            result[key] = [*old, *value]
        else:
            result[key] = value
    return result


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"schedule": TRIGGER_ONLY, "sla": None}, "no run is ever opened"),
        ({"schedule": {**TRIGGER_ONLY, "evaluation": {"afterWindow": "stop"}}}, "the inputs never become ready"),
        ({"job": {"type": "external"}}, "the job is lost to a passing failure"),
        ({"validation": {**SAFE["validation"], "trigger": "ANY"}}, "the inputs are not ready"),
        ({"validation": {"rules": [{"key": "a", "check": "exists"}]}}, "the inputs are stale"),
        ({"sla": None}, "it is done too late"),
        ({"sla": {"deadline": "11:00"}}, "it is done too late"),
        ({"schedule": {"cron": "0 8 * * *"}, "postRun": None}, "data arrives after it has run"),
        ({"job": {**SAFE["job"], "maxDriftReruns": 0}}, "data arrives after it has run"),
        ({"sla": {"deadline": "20:00", "expectedDuration": "3h"}}, "the job is given up while it still runs"),
        ({"job": {"type": "command", "config": {"command": ["x"]}}}, "the job hangs"),
        ({"postRun": None}, "the job succeeds, but its output is wrong"),
    ],
)
def test_following_the_suggestion_closes_the_gap(changes: dict[str, Any], name: str) -> None:
    suggestion = hazard(coverage(**changes), name).suggestion.split("# or")[0]
    followed = merged({**SAFE, **changes}, yaml.safe_load(suggestion))
    assert hazard(coverage(**followed), name).cover is Cover.COVERED


def test_freshness_of_the_same_sensor_makes_any_period_safe() -> None:
    rules = [
        {"key": "a", "check": "exists", "period": "any"},
        {"key": "a", "check": "age_lt", "field": "at", "value": "2h", "period": "any"},
    ]
    found = hazard(coverage(validation={"rules": rules}), "the inputs are of another period")
    assert found.cover is Cover.COVERED


def test_one_unwatched_schedule_of_several_is_named() -> None:
    schedules = [{"id": "am", "cron": "0 8 * * *"}, {"id": "feed", **TRIGGER_ONLY}]
    found = hazard(coverage(schedule=None, schedules=schedules, sla=None), "no run is ever opened")
    assert found.cover is Cover.UNCOVERED
    assert "schedule feed" in found.gap
    assert found.constraints == ("watchdog: missed ticks of cron 0 8 * * *",)


def test_counts() -> None:
    found = coverage(postRun=None)
    assert found.count(Cover.UNCOVERED) == 1
    assert found.count(Cover.COVERED) + found.count(Cover.WEAK) + 1 == len(found.hazards)


def test_a_duration_without_a_deadline_bounds_a_late_run_with_or_without_a_warning() -> None:
    late = next(one.hazard for one in coverage().hazards if "warning 30m before" in one.constraints)
    alone = hazard(coverage(sla={"maxDuration": "2h"}), late)
    assert (alone.cover, alone.constraints) == (Cover.COVERED, ("sla.maxDuration 2h",))
    warned = hazard(coverage(sla={"maxDuration": "2h", "expectedDuration": "30m"}), late)
    assert warned.constraints == ("sla.maxDuration 2h", "warning 30m before")

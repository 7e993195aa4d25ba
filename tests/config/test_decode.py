"""Documents to the model: every problem with its path, and a walk that agrees with the decoder."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.config.decode import MAX_FINDINGS, decode, encode_duration
from interlock.config.problems import Problem, Severity, format_path
from interlock.decide.values import read_duration
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.durations import Duration
from interlock.model.errors import InvalidValueError


def minimal(**changes: object) -> dict[str, Any]:
    return {
        "pipeline": {"id": "p"},
        "validation": {"rules": [{"key": "k", "check": "exists"}]},
        "job": {"type": "external"},
        **changes,
    }


def findings(document: object) -> list[str]:
    found = decode(document, PipelineConfig)
    assert isinstance(found, tuple), "it decoded"
    return [f"{format_path(one.path)}: {one.message}" for one in found]


def job(**changes: object) -> dict[str, Any]:
    return minimal(job={"type": "external", **changes})


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (job(maxRetries=11), "job.maxRetries: 11 is not in 0..10"),
        (job(maxCodeRetries=-1), "job.maxCodeRetries: -1 is not in 0..3"),
        (job(maxRetries="2"), 'job.maxRetries: "2" is text, not a whole number'),
        (job(maxRetries=True), "job.maxRetries: true is true or false, not a whole number"),
        (job(maxRetries=1.5), "job.maxRetries: 1.5 is not a whole number"),
        (job(maxRetries=None), "job.maxRetries: has no value; give it a whole number, or remove the key"),
        (job(maxRetrys=1), "job.maxRetrys: unknown key; did you mean maxRetries?"),
        (job(zzz=1), "job.zzz: unknown key"),
        (job(config=[1]), "job.config: [1] is a list, not a mapping"),
        (
            job(retryDelay="soon"),
            "job.retryDelay: 'soon' is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H",
        ),
        (
            job(retryDelay=30),
            "job.retryDelay: 30 is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H; write 30s for seconds",
        ),
        (minimal(job={"type": 5}), None),
        (minimal(job={}), "job.type: is missing: write type: command, or one of http, external, airflow, glue, ..."),
        (minimal(job="glue"), 'job: "glue" is text, not a mapping'),
        (minimal(pipeline={"id": "p", "owner": 5}), "pipeline.owner: 5 is a number, not text; quote it"),
        (minimal(pipeline={"id": "p\n"}), None),
        (minimal(pipeline={"id": ""}), None),
        (minimal(dryRun="yes"), 'dryRun: "yes" is text, not true or false; write true'),
        (minimal(dryRun="maybe"), 'dryRun: "maybe" is text, not true or false'),
        (minimal(after={}), "after: {} is a mapping, not a list"),
        (minimal(validation={"rules": []}), "validation.rules: must not be empty"),
        (
            minimal(validation={"rules": [{"key": "", "check": "exists"}]}),
            "validation.rules[0].key: must not be empty",
        ),
        (
            minimal(validation={"rules": [{"key": "k", "check": "in", "value": {"a": 1}}]}),
            'validation.rules[0].value: {"a":1} is a mapping,'
            " not text, a whole number, a number, true or false or a list",
        ),
        (
            minimal(validation={"rules": [{"key": "k", "check": "in", "value": [[1]]}]}),
            "validation.rules[0].value[0]: [1] is a list, not text, a whole number, a number or true or false",
        ),
        (minimal(schedule={"time": "25:00"}), 'schedule.time: "25:00" is not of the form HH:MM'),
        (minimal(schedule={"time": "10:00\n"}), None),
        (minimal(schedule={"time": "\uff11\uff10:\uff10\uff10"}), None),
        (minimal(schedule={"time": 600}), "schedule.time: 600 is a number, not text; quote it"),
        (
            minimal(schedule={"evaluation": {"afterWindow": "stopp"}}),
            'schedule.evaluation.afterWindow: "stopp" is not one of reopen, stop; did you mean stop?',
        ),
        (minimal(postRun={"driftThreshold": -1}), "postRun.driftThreshold: -1 is not 0 or more"),
        (minimal(postRun={"driftThreshold": -0.5}), "postRun.driftThreshold: -0.5 is not 0 or more"),
        (minimal(postRun={"driftThreshold": float("nan")}), None),
        (
            minimal(postRun={"driftThreshold": "2 percent"}),
            'postRun.driftThreshold: "2 percent" is not of the form a percentage such as 2%',
        ),
        (minimal(postRun={"driftThreshold": True}), None),
        ({}, None),
        ([], None),
        ("text", None),
        (None, None),
    ],
)
def test_a_problem_is_named(document: object, expected: str | None) -> None:
    found = findings(document)
    if expected is None:
        assert found
        assert all("at `$" not in one for one in found), "the walk did not know; the decoder's own words came through"
    else:
        assert found == [expected]


def test_all_problems_are_found_at_once() -> None:
    document = {
        "pipelin": {},
        "validation": {"rules": [{"check": "equalz"}], "trigger": "SOME"},
        "job": {"type": "glue", "maxRetries": 99},
        "sla": {"dayOffset": 32},
    }
    assert findings(document) == [
        "pipelin: unknown key; did you mean pipeline?",
        "pipeline: is missing: write pipeline: {id: gold-revenue}",
        "validation.rules[0].key: is missing: write key: orders, the sensor it reads",
        'validation.rules[0].check: "equalz" is not one of'
        " exists, equals, ne, in, gt, gte, lt, lte, age_lt, age_gt; did you mean equals?",
        'validation.trigger: "SOME" is not one of ALL, ANY',
        "job.maxRetries: 99 is not in 0..10",
        "sla.dayOffset: 32 is not in 0..31",
    ]


def test_a_flood_of_problems_is_cut() -> None:
    assert len(findings(minimal(**{f"key{n}": n for n in range(5000)}))) == MAX_FINDINGS


def test_a_key_given_already_is_not_suggested() -> None:
    assert findings(minimal(schedule={}, schedul={})) == ["schedul: unknown key; did you mean schedules?"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 100)
    | st.floats()
    | st.sampled_from(["p", "ALL", "1h", "x y", "", "10:00", "2%"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "key", "check", "type", "rules", "window"]), inner, max_size=3)
    ),
    max_leaves=5,
)
PLACES = [
    ("pipeline",),
    ("pipeline", "id"),
    ("validation",),
    ("validation", "trigger"),
    ("validation", "rules"),
    ("validation", "rules", 0),
    ("validation", "rules", 0, "value"),
    ("validation", "rules", 0, "period"),
    ("job",),
    ("job", "type"),
    ("job", "config"),
    ("job", "maxRetries"),
    ("job", "pollInterval"),
    ("schedule",),
    ("schedule", "time"),
    ("schedule", "exclude"),
    ("schedule", "exclude", "days"),
    ("schedule", "evaluation"),
    ("schedules",),
    ("sla",),
    ("sla", "dayOffset"),
    ("postRun",),
    ("postRun", "driftThreshold"),
    ("dryRun",),
    ("after",),
    ("probes",),
]


@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), max_size=3))
def test_the_walk_agrees_with_the_decoder(changes: list[tuple[tuple[str | int, ...], object]]) -> None:
    document: dict[str, Any] = minimal(schedule={"exclude": {}}, sla={}, postRun={})
    for path, value in changes:
        place: Any = document
        for step in path[:-1]:
            within = place.get(step) if isinstance(place, dict) else None
            place = place[0] if isinstance(place, list) and place and step == 0 else within
        if isinstance(place, dict):
            place[path[-1]] = value
    found = decode(document, PipelineConfig)
    if isinstance(found, tuple):
        assert found
        assert all("at `$" not in one.message for one in found)
    else:
        assert found == msgspec.convert(document, PipelineConfig, dec_hook=lambda _, value: read_duration(value))


def test_a_calendar_decodes_too() -> None:
    assert decode({"name": "x", "days": ["monday"]}, Calendar) == msgspec.convert(
        {"name": "x", "days": ["monday"]}, Calendar
    )


def test_durations_are_read_and_written() -> None:
    assert read_duration("90m") == Duration(hours=1, minutes=30)
    assert encode_duration(Duration(hours=1, minutes=30)) == "1h30m"
    with pytest.raises(InvalidValueError, match="true is not a duration"):
        read_duration(True)
    with pytest.raises(NotImplementedError, match="object"):
        encode_duration(object())


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            Problem("pipelines/gold.yaml", 14, "job.maxRetries", "11 is not in 0..10"),
            "pipelines/gold.yaml:14 job.maxRetries: 11 is not in 0..10",
        ),
        (Problem("a.yaml", 1, "", "empty"), "a.yaml:1: empty"),
        (Problem("a.yaml", None, "", "gone"), "a.yaml: gone"),
        (Problem("", None, "job", "is missing"), "job: is missing"),
        (Problem("", None, "", "is no mapping"), "is no mapping"),
        (Problem("a.yaml", 2, "sla", "late", Severity.WARNING), "a.yaml:2 sla: warning: late"),
    ],
)
def test_a_problem_prints_as_one_line(problem: Problem, text: str) -> None:
    assert str(problem) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a", 0, "b"), "a[0].b"),
        (("job", "config", "spark.sql"), "job.config.'spark.sql'"),
        (("a\nb",), "'a\\nb'"),
        (("",), "''"),
    ],
)
def test_paths_print_without_ambiguity(path: tuple[str | int, ...], text: str) -> None:
    assert format_path(path) == text

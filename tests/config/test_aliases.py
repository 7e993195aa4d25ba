"""The other ways to write things: same config, and errors under the path that was written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.config.aliases import normalise, normalise_calendar, spread_exclusions
from interlock.config.problems import format_path
from interlock.config.stored import read_stored
from interlock.model.config import Check, Exclude, Mode, PipelineConfig, Weekday

RULE = {"key": "k", "check": "exists"}


def config(**changes: object) -> PipelineConfig:
    document: dict[str, Any] = {
        "pipeline": {"id": "p"},
        "validation": {"rules": [RULE]},
        "job": {"type": "external"},
        **changes,
    }
    found = read_stored(document, {"cal": None})  # type: ignore[dict-item]  # only the names are looked at
    assert isinstance(found, PipelineConfig), [str(one) for one in found]
    return found


def errors(document: dict[str, object]) -> list[str]:
    return [f"{format_path(one.path)}: {one.message}" for one in normalise(document).findings]


@pytest.mark.parametrize("word", ["any", "ANY", "Any"])
@pytest.mark.parametrize("key", ["mode", "trigger"])
def test_the_mode_of_validation(key: str, word: str) -> None:
    assert config(validation={key: word, "rules": [RULE]}).validation.trigger is Mode.ANY


@pytest.mark.parametrize("word", ["EXISTS", "Exists", "exists"])
def test_checks_in_any_case(word: str) -> None:
    rule = {"key": "k", "check": word}
    found = config(
        validation={"rules": [rule]},
        postRun={"rules": [rule]},
        schedule={"trigger": rule},
    )
    assert found.validation.rules[0].check is Check.EXISTS
    assert found.post_run is not None
    assert found.post_run.rules[0].check is Check.EXISTS
    assert found.schedule is not None
    assert found.schedule.trigger is not None
    assert found.schedule.trigger.check is Check.EXISTS


@pytest.mark.parametrize(
    ("written", "day"),
    [("mon", Weekday.MONDAY), ("Tues", Weekday.TUESDAY), ("WEDNESDAY", Weekday.WEDNESDAY), ("Thu", Weekday.THURSDAY)],
)
def test_weekdays(written: str, day: Weekday) -> None:
    assert config(schedule={"exclude": {"days": [written]}}).all_schedules[0].exclude == Exclude(days=[day])
    assert config(exclusions={"days": [written]}).all_schedules[0].exclude == Exclude(days=[day])
    assert normalise_calendar({"days": [written, 5]}) == {"days": [day.value, 5]}


def test_a_calendar_of_the_schedule_is_one_to_exclude() -> None:
    (schedule,) = config(schedule={"calendar": "cal", "exclude": {"weekends": True}}).all_schedules
    assert schedule.exclude == Exclude(calendar="cal", weekends=True)
    (schedule,) = config(exclusions={"weekends": True}, schedule={"calendar": "cal"}).all_schedules
    assert schedule.exclude == Exclude(calendar="cal", weekends=True)


def test_exclusions_hold_for_every_schedule() -> None:
    found = config(exclusions={"days": ["sun"]}, schedules=[{"id": "a"}, {"id": "b", "calendar": "cal"}])
    assert [one.exclude for one in found.all_schedules] == [
        Exclude(days=[Weekday.SUNDAY]),
        Exclude(days=[Weekday.SUNDAY], calendar="cal"),
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"validation": {"mode": "ALL", "trigger": "ANY"}},
            "validation.mode: is another way to write trigger: give mode or trigger, not both",
        ),
        (
            {"schedule": {"calendar": "a", "exclude": {"calendar": "a"}}},
            "schedule.calendar: is another way to write exclude.calendar: give calendar or exclude.calendar, not both",
        ),
        (
            {"exclusions": {}, "schedule": {"exclude": {}}},
            "exclusions: is another way to write schedule.exclude: give exclusions or schedule.exclude, not both",
        ),
        (
            {"exclusions": {"calendar": "a"}, "schedule": {"calendar": "b"}},
            "schedule.calendar: is another way to write exclude.calendar: give calendar or exclude.calendar, not both",
        ),
        (
            {"exclusions": {}, "schedules": [{"id": "x", "exclude": {}}]},
            "exclusions: is another way to write schedules.exclude: give exclusions or schedules.exclude, not both",
        ),
    ],
)
def test_both_forms_are_an_error(document: dict[str, object], message: str) -> None:
    assert errors(document) == [message]
    assert message in [str(one) for one in _problems(document)]


def _problems(document: dict[str, object]) -> tuple[object, ...]:
    found = read_stored(document, {})
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"exclusions": {"days": ["noday"]}}, "exclusions.days[0]"),
        ({"exclusions": 5}, "exclusions"),
        ({"schedule": {"calendar": 5}}, "schedule.calendar"),
        ({"validation": {"mode": "SOME", "rules": [RULE]}}, "validation.mode"),
        ({"exclusions": {"days": ["noday"]}, "schedules": [{"id": "a"}]}, "exclusions.days[0]"),
        ({"schedule": 5, "exclusions": {}}, "schedule"),
        ({"schedule": {"calendar": "x", "exclude": 5}}, "schedule.exclude"),
    ],
)
def test_errors_show_the_path_that_was_written(changes: dict[str, object], path: str) -> None:
    document = {"pipeline": {"id": "p"}, "validation": {"rules": [RULE]}, "job": {"type": "external"}, **changes}
    found = read_stored(document, {})
    assert isinstance(found, tuple)
    assert [problem.path for problem in found] == [path]


def test_exclusions_spread_over_the_schedules_of_another_file() -> None:
    document: dict[str, object] = {
        "exclusions": {"weekends": True, "dates": ["2026-01-01"]},
        "schedules": [{"id": "a"}, {"id": "b", "exclude": {"dates": []}}, {"id": "c", "exclude": 5}, 7],
    }
    spread = spread_exclusions(document)
    assert spread.document == {
        "schedules": [
            {"id": "a", "exclude": {"weekends": True, "dates": ["2026-01-01"]}},
            {"id": "b", "exclude": {"weekends": True, "dates": []}},
            {"id": "c", "exclude": 5},
            7,
        ]
    }
    assert spread.written(("schedules", 0, "exclude", "dates", 0)) == ("exclusions", "dates", 0)
    assert spread.written(("schedules", 1, "exclude", "dates")) == ("schedules", 1, "exclude", "dates")


NAMES = [
    "schedule",
    "schedules",
    "exclusions",
    "calendar",
    "exclude",
    "days",
    "validation",
    "mode",
    "trigger",
    "rules",
    "check",
    "postRun",
]
DOCUMENTS = st.dictionaries(
    st.sampled_from(NAMES),
    st.recursive(
        st.none() | st.integers() | st.sampled_from(["any", "EQUALS", "Mon", "cal"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
        max_leaves=12,
    ),
)


@given(DOCUMENTS)
def test_normalising_twice_changes_nothing_and_leaves_the_original_alone(document: dict[str, object]) -> None:
    before = repr(document)
    once = normalise(document)
    assert repr(document) == before
    if not once.findings:
        again = normalise(once.document)
        assert again.document == once.document
        assert not again.findings

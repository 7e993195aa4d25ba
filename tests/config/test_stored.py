"""Configs that come from a store."""

import pytest

from interlock.config.stored import read_stored
from interlock.config.versions import canonical_json, config_version
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.errors import InvalidValueError

DOCUMENT = {
    "pipeline": {"id": "p"},
    "schedule": {"cron": "0 8 * * *", "calendar": "cal"},
    "validation": {"mode": "any", "rules": [{"key": "k", "check": "Exists"}]},
    "job": {"type": "external"},
}
CALENDARS = {"cal": Calendar(name="cal", dates=["2026-01-01"])}


def test_a_valid_document_is_a_config() -> None:
    config = read_stored(DOCUMENT, CALENDARS)
    assert isinstance(config, PipelineConfig)
    assert config.id == "p"


@pytest.mark.parametrize(
    ("document", "errors"),
    [
        (None, ["the stored config is not a mapping"]),
        ([], ["the stored config is not a mapping"]),
        (
            {},
            [
                "pipeline: is missing: write pipeline: {id: gold-revenue}",
                "validation: is missing: write what must hold before the job starts,"
                " validation: {rules: [{key: orders, check: exists}]};"
                " it may be left out only where `after` is given",
                "job: is missing: say what is to be started, such as job: {type: command, config: {command: [...]}}",
            ],
        ),
        ({**DOCUMENT, "job": {"type": "external", "maxRetries": 11}}, ["job.maxRetries: 11 is not in 0..10"]),
        ({**DOCUMENT, "schedule": {"cron": "x"}}, None),
        (
            {**DOCUMENT, "schedule": {"calendar": "gone"}},
            ['schedule.calendar: there is no calendar "gone" in calendars/ (cal)'],
        ),
        (
            {**DOCUMENT, "validation": {"mode": "any", "trigger": "all", "rules": [{"key": "k", "check": "exists"}]}},
            ["validation.mode: is another way to write trigger: give mode or trigger, not both"],
        ),
    ],
)
def test_an_invalid_one_is_all_its_errors(document: object, errors: list[str] | None) -> None:
    found = read_stored(document, CALENDARS)
    assert isinstance(found, tuple)
    if errors is None:
        assert len(found) == 1
    else:
        assert [str(problem) for problem in found] == errors


def test_a_document_without_end_is_refused() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    found = read_stored({**DOCUMENT, "schedule": deep}, CALENDARS)
    assert isinstance(found, tuple)
    with pytest.raises(InvalidValueError, match="cannot be written as JSON"):
        config_version({"a": deep})


def test_the_version_ignores_the_order_of_keys() -> None:
    assert config_version({"a": 1, "b": [1, 2]}) == config_version({"b": [1, 2], "a": 1})
    assert config_version({"a": [1, 2]}) != config_version({"a": [2, 1]})
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()


@pytest.mark.parametrize("value", [object(), "\ud800"])
def test_what_is_not_json_has_no_version(value: object) -> None:
    with pytest.raises(InvalidValueError):
        config_version({"a": value})

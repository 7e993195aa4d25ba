"""The pipeline as a value: defaults, schedules, clock times."""

from datetime import time, timedelta

import msgspec
import pytest

from interlock.model.config import (
    Check,
    Evaluation,
    Job,
    JobType,
    PipelineConfig,
    Rule,
    Schedule,
    Trigger,
    clock_time,
    parse_clock,
)
from interlock.model.errors import InvalidValueError

DOCUMENT = {"pipeline": {"id": "p"}, "validation": {"rules": [{"key": "k", "check": "exists"}]}}


def config(**changes: object) -> PipelineConfig:
    return msgspec.convert({**DOCUMENT, **changes}, PipelineConfig)


def test_a_document_goes_there_and_back() -> None:
    document = {**DOCUMENT, "job": {"type": "glue", "maxRetries": 2}, "schedule": {"cron": "0 8 * * *"}}
    assert msgspec.to_builtins(msgspec.convert(document, PipelineConfig)) == document


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({}, ["stream"]),
        ({"schedule": {"cron": "0 8 * * *"}}, ["cron"]),
        ({"schedule": {"trigger": {"key": "k", "check": "exists"}}}, ["stream"]),
        ({"schedule": {"id": "own", "cron": "0 8 * * *"}}, ["own"]),
        ({"schedules": [{"id": "a"}, {"id": "b"}]}, ["a", "b"]),
    ],
)
def test_schedules(changes: dict[str, object], ids: list[str]) -> None:
    found = config(**changes)
    assert [one.schedule_id for one in found.all_schedules] == ids
    for id_ in ids:
        assert found.schedule_of(id_).schedule_id == id_
    assert found.find_schedule("nope") is None
    with pytest.raises(InvalidValueError, match=f"it has {', '.join(ids)}"):
        found.schedule_of("nope")
    assert found.id == "p"


def test_defaults_are_those_of_the_documents() -> None:
    assert Schedule().evaluation == Evaluation()
    job = Job(type=JobType.GLUE)
    budgets = (job.max_retries, job.max_code_retries, job.max_drift_reruns, job.max_manual_reruns)
    assert budgets == (0, 1, 1, 1)
    assert (job.poll_interval, job.retry_delay) == (timedelta(minutes=1), timedelta(0))


@pytest.mark.parametrize(("seconds", "window"), [(0, 3600), (60, 60), (3600, 3600)])
def test_poll_window(seconds: int, window: int) -> None:
    assert Job(type=JobType.GLUE, job_poll_window_seconds=seconds).poll_window == timedelta(seconds=window)


def test_a_trigger_is_a_rule_about_its_own_period() -> None:
    trigger = Trigger(key="k", check=Check.EQUALS, field="f", value=1, deadline="10:00")
    assert trigger.as_rule() == Rule(key="k", check=Check.EQUALS, field="f", value=1, period="any")


@pytest.mark.parametrize(
    ("text", "clock"), [("08:05", (8, 5)), ("8:05", (8, 5)), ("23:59", (23, 59)), (":30", (None, 30))]
)
def test_clock(text: str, clock: tuple[int | None, int]) -> None:
    assert parse_clock(text) == clock
    assert clock_time(text) == time(clock[0] or 0, clock[1])


def test_no_clock() -> None:
    with pytest.raises(InvalidValueError, match="is not a clock time"):
        parse_clock("noon")


@pytest.mark.parametrize("text", ["24:00", "10:60", "1000", "10:00\n", "10:0", "", "\u0661\u0660:00"])
def test_the_forms_of_times_are_strict(text: str) -> None:
    for changes in ({"schedule": {"time": text}}, {"sla": {"deadline": text}}):
        with pytest.raises(msgspec.ValidationError):
            config(**changes)


@pytest.mark.parametrize("id_", ["", "a b", "a\n", "-a", "x" * 129, "ä"])
def test_the_form_of_an_id_is_strict(id_: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        config(pipeline={"id": id_})

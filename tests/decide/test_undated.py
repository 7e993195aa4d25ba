"""Until when a write that names no period may re-open a run, and which of them a rerun reads."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.config.stored import read_stored
from interlock.decide.transitions import open_attempt
from interlock.decide.undated import is_past, keys_without_period, reopens_until
from interlock.model.config import PipelineConfig, Schedule
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period
from interlock.model.run import Source
from interlock.model.sensor import Sensor
from interlock.model.times import format_instant, parse_instant

TRIGGER = {"key": "ready", "check": "exists"}


def schedule_of(document: dict[str, Any]) -> Schedule:
    config = read_stored(
        {
            "pipeline": {"id": "gold"},
            "schedule": document,
            "validation": {"rules": [{"key": "rows", "check": "exists"}]},
            "job": {"type": "external"},
        },
        {},
    )
    assert isinstance(config, PipelineConfig), config
    return config.all_schedules[0]


def at(text: str) -> datetime:
    found = parse_instant(text)
    assert found is not None
    return found


NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("schedule", "date", "opened", "expected"),
    [
        ({"cron": "0 8 * * *"}, "2026-03-02", "2026-03-02T08:00:00Z", "2026-03-03T00:00:00Z"),
        ({"cron": "0 2 * * *"}, "2026-03-02", "2026-03-02T02:00:00Z", "2026-03-03T00:00:00Z"),
        ({"cron": "0 22 * * *"}, "2026-03-02", "2026-03-02T22:00:00Z", "2026-03-03T10:00:00Z"),
        ({"cron": "0 8 * * *", "period": "previous"}, "2026-03-02", "2026-03-03T08:00:00Z", "2026-03-04T00:00:00Z"),
        # Opened by a rerun request days later: it is still the tick's day that counts.
        ({"cron": "0 8 * * *"}, "2026-03-02", "2026-03-05T11:00:00Z", "2026-03-03T00:00:00Z"),
        ({"cron": "0 8 * * *", "timezone": NEW_YORK}, "2026-03-02", "2026-03-02T13:00:00Z", "2026-03-03T05:00:00Z"),
        ({"cron": "0 8 * * *", "timezone": NEW_YORK}, "2026-03-08", "2026-03-08T12:00:00Z", "2026-03-09T04:00:00Z"),
        ({"cron": "0 * * * *"}, "2026-03-02T08", "2026-03-02T08:00:00Z", "2026-03-02T09:00:00Z"),
        ({"cron": "20 * * * *"}, "2026-03-02T08", "2026-03-02T08:20:00Z", "2026-03-02T09:00:00Z"),
        ({"cron": "0 * * * *", "period": "previous"}, "2026-03-02T08", "2026-03-02T09:00:00Z", "2026-03-02T10:00:00Z"),
        ({"cron": "*/15 * * * *"}, "2026-03-02T0815", "2026-03-02T08:15:00Z", "2026-03-02T08:30:00Z"),
        ({"cron": "0,50 8 * * *"}, "2026-03-02T0850", "2026-03-02T08:50:00Z", "2026-03-02T09:00:00Z"),
        ({"trigger": TRIGGER}, "2026-03-02", "2026-03-03T01:00:00Z", "2026-03-04T00:00:00Z"),
        ({"trigger": TRIGGER}, "2026-03-02", "2026-03-02T23:59:00Z", "2026-03-03T00:00:00Z"),
        ({"trigger": TRIGGER, "timezone": NEW_YORK}, "2026-03-02", "2026-03-03T04:59:00Z", "2026-03-03T05:00:00Z"),
        ({"trigger": TRIGGER}, "2026-03-02T08", "2026-03-02T09:10:00Z", "2026-03-02T10:00:00Z"),
        # A day without a tick, opened by its trigger: its opening counts.
        (
            {"cron": "0 8 * * 1-5", "trigger": TRIGGER},
            "2026-03-07",
            "2026-03-07T10:00:00Z",
            "2026-03-08T00:00:00Z",
        ),
    ],
)
def test_until_when_a_write_without_a_period_reopens(
    schedule: dict[str, Any], date: str, opened: str, expected: str
) -> None:
    assert format_instant(reopens_until(schedule_of(schedule), parse_period(date), at(opened), None)) == expected


def test_the_tick_that_opened_the_run_counts_although_the_cron_has_changed_since() -> None:
    schedule = schedule_of({"cron": "0 20 * * *"})
    until = reopens_until(schedule, parse_period("2026-03-02"), at("2026-03-02T06:00:00Z"), at("2026-03-02T06:00:00Z"))
    assert format_instant(until) == "2026-03-02T20:00:00Z", "never beyond the next tick"


@pytest.mark.parametrize(
    ("schedule", "now", "past"),
    [
        ({"cron": "0 8 * * *"}, "2026-03-02T23:59:59Z", False),
        ({"cron": "0 8 * * *"}, "2026-03-03T00:00:00Z", True),
        ({"cron": "0 8 * * *", "period": "previous"}, "2026-03-03T23:59:59Z", False),
        ({"cron": "0 8 * * *", "period": "previous"}, "2026-03-04T00:00:00Z", True),
        ({"trigger": TRIGGER}, "2026-03-02T23:59:59Z", False),
        ({"trigger": TRIGGER}, "2026-03-03T00:00:00Z", True),
    ],
)
def test_a_period_that_never_ran_is_past_by_its_tick_or_its_end(schedule: dict[str, Any], now: str, past: bool) -> None:
    assert is_past(schedule_of(schedule), parse_period("2026-03-02"), None, at(now)) is past


@pytest.mark.parametrize(
    ("tick_at", "now", "past"),
    [
        # Opened by its trigger the day after: the day of its opening counts, however often it is attempted later.
        (None, "2026-03-03T23:59:59Z", False),
        (None, "2026-03-04T00:00:00Z", True),
        ("2026-03-02T06:00:00Z", "2026-03-02T23:59:59Z", False),
        ("2026-03-02T06:00:00Z", "2026-03-03T00:00:00Z", True),
    ],
)
def test_a_run_is_past_by_its_own_tick_or_opening(tick_at: str | None, now: str, past: bool) -> None:
    run = open_attempt(
        None,
        RunKey("gold", "stream", "2026-03-02"),
        Source.FIRST,
        at("2026-03-03T09:00:00Z"),
        config_version="v1",
        lease_until=at("2026-03-03T14:00:00Z"),
        tick_at=None if tick_at is None else at(tick_at),
    )
    again = replace(run, attempt=2, opened_at=at("2026-03-08T09:00:00Z"))
    for one in (run, again):
        assert is_past(schedule_of({"trigger": TRIGGER}), parse_period("2026-03-02"), one, at(now)) is past


def test_only_those_that_name_no_period_are_listed() -> None:
    now = at("2026-03-02T00:00:00Z")
    found = [
        Sensor("rows", {"count": 1}, now),
        Sensor("day", {"date": "2026-03-02"}, now),
        Sensor("key#2026-03-02", {}, now),
        Sensor("ready", {}, now),
    ]
    assert keys_without_period(found) == ["ready", "rows"]


def test_a_run_whose_cron_is_gone_ends_with_the_day_of_its_tick() -> None:
    trigger = schedule_of({"trigger": TRIGGER})
    opened = at("2026-03-02T22:00:00Z")
    assert reopens_until(trigger, parse_period("2026-03-02"), opened, opened) == at("2026-03-03T00:00:00Z")

"""Which periods should have a run: what the config declares, what a deadline or the latest runs say."""

from collections.abc import Sequence
from datetime import date
from itertools import product
from typing import Any

import pytest

from interlock.decide.expected import (
    LATEST,
    calendar_reason,
    declared_granularity,
    expected_granularity,
    expected_in,
    is_expected,
)
from interlock.model.config import Check, Exclude, Include, Schedule, Sla, Trigger
from interlock.model.periods import Granularity, Period, day_period, parse_period

DAY, HOUR, MINUTE = Granularity.DAY, Granularity.HOUR, Granularity.MINUTE
LANDED = Trigger(key="landed", check=Check.EXISTS)


def runs(letters: str) -> Sequence[Period]:
    """The latest runs, newest first: `D` a day, `H` an hour."""
    texts = {"D": "2026-03-0{}", "H": "2026-03-0{}T10", "M": "2026-03-0{}T1015"}
    return [parse_period(texts[letter].format(9 - index)) for index, letter in enumerate(letters)]


def nobody() -> Sequence[Period]:
    raise AssertionError("the config says it: the runs need not be read")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"granularity": "day"}, DAY),
        ({"granularity": "hour"}, HOUR),
        ({"cron": "0 8 * * *"}, DAY),
        ({"cron": "0 * * * *"}, HOUR),
        ({"cron": "*/15 * * * *"}, MINUTE),
    ],
)
def test_what_a_config_declares(given: dict[str, Any], expected: Granularity | None) -> None:
    assert declared_granularity(Schedule(**given)) is expected


@pytest.mark.parametrize(
    ("schedule", "sla", "expected"),
    [
        (Schedule(granularity="hour"), Sla(deadline="10:00"), HOUR),
        (Schedule(granularity="day"), None, DAY),
        (Schedule(include=Include(dates=["2026-03-31"])), None, DAY),
        (Schedule(), Sla(deadline=":30"), HOUR),
        (Schedule(), Sla(ready_by=":30"), HOUR),
        (Schedule(trigger=Trigger(key="landed", check=Check.EXISTS, deadline=":10")), Sla(deadline="10:00"), HOUR),
    ],
)
def test_what_the_config_says_is_expected_whatever_ran(schedule: Schedule, sla: Sla | None, expected: Any) -> None:
    assert expected_granularity(schedule, sla, nobody) is expected


@pytest.mark.parametrize(
    ("latest", "expected"),
    [
        ("", DAY),
        ("H", DAY),
        ("HH", DAY),
        ("HHH", HOUR),
        ("HHHH", HOUR),
        ("HHHD", HOUR),
        # One write of the other kind changes nothing.
        ("HDDD", DAY),
        ("DHHH", HOUR),
        ("HHDH", HOUR),
        ("HHDD", DAY),
        ("DDHH", DAY),
        ("MMM", DAY),
    ],
)
def test_else_days_are_expected_unless_the_latest_runs_were_hours(latest: str, expected: Granularity) -> None:
    for sla in (None, Sla(deadline="10:00", ready_by="09:00")):
        for include in (None, Include(dates=["2026-03-09"])):
            schedule = Schedule(trigger=LANDED, include=include)
            assert expected_granularity(schedule, sla, lambda: runs(latest)) is expected


def expected_after(history: str) -> Granularity:
    """What is expected after runs of these kinds, the oldest first."""
    return expected_granularity(Schedule(trigger=LANDED), None, lambda: runs(history[::-1][:LATEST]))


@pytest.mark.parametrize("history", ["".join(kinds) for kinds in product("DH", repeat=6)])
def test_three_hourly_runs_in_a_row_say_hours_and_one_stray_write_changes_nothing(history: str) -> None:
    if history.endswith("HHH"):
        assert expected_after(history) is HOUR
    for steady, kind in (("DDDD", DAY), ("HHHH", HOUR)):
        stray = "H" if kind is DAY else "D"
        for after in range(5):
            assert expected_after(history + steady + stray + steady[0] * after) is kind


def test_the_hours_that_a_day_has() -> None:
    spring = day_period(date(2026, 3, 8))
    hours = expected_in(Schedule(granularity="hour", timezone="America/New_York"), None, spring, nobody)
    assert len(hours) == 23
    assert parse_period("2026-03-08T02") not in hours
    assert expected_in(Schedule(granularity="day"), None, spring, nobody) == [spring]


@pytest.mark.parametrize(
    ("schedule", "period", "expected"),
    [
        (Schedule(granularity="day"), "2026-03-08", True),
        (Schedule(granularity="day"), "2026-03-08T02", False),
        (Schedule(granularity="hour"), "2026-03-08T02", True),
        (Schedule(granularity="hour"), "2026-03-08", False),
        (Schedule(granularity="hour", timezone="America/New_York"), "2026-03-08T02", False),
        (Schedule(cron="0 8 * * 1-5"), "2026-03-06", True),
        (Schedule(cron="0 8 * * 1-5"), "2026-03-07", False),
        (Schedule(cron="0 8 * * *"), "2026-03-06T08", False),
        (Schedule(cron="0 8 * * *", period="previous"), "2026-03-06", True),
    ],
)
def test_is_expected(schedule: Schedule, period: str, expected: bool) -> None:
    assert is_expected(schedule, None, parse_period(period), nobody) is expected


def test_the_calendar_is_asked_about_the_day_of_the_tick() -> None:
    weekends = Exclude(weekends=True)
    previous = Schedule(cron="0 8 * * *", period="previous", exclude=weekends)
    assert calendar_reason(previous, {}, parse_period("2026-03-08")) is None  # Sunday's run, by Monday's tick
    assert calendar_reason(previous, {}, parse_period("2026-03-06")) is not None  # Friday's, by Saturday's
    by_sensor = Schedule(exclude=weekends)
    assert calendar_reason(by_sensor, {}, parse_period("2026-03-08T10")) is not None
    assert calendar_reason(by_sensor, {}, parse_period("2026-03-06T10")) is None
    nightly = Schedule(cron="0 8 * * 1-5", exclude=weekends)
    assert calendar_reason(nightly, {}, parse_period("2026-03-08")) is not None  # a rerun of a day without a tick
    included = Schedule(include=Include(dates=["2026-03-31"]))
    assert calendar_reason(included, {}, parse_period("2026-03-30")) == "2026-03-30 is not an inclusion date"

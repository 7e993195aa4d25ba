"""Which periods a schedule can have a run of, and which are the nearest when it cannot."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.config.stored import read_stored
from interlock.decide import cron
from interlock.decide.real_periods import NoSuchPeriod, no_such_period
from interlock.model.config import PipelineConfig
from interlock.model.periods import Granularity, parse_period, period_of

TRIGGER = {"key": "ready", "check": "exists"}


def config_of(schedule: dict[str, Any], **parts: Any) -> PipelineConfig:
    document = {
        "pipeline": {"id": "gold"},
        "schedule": schedule,
        "validation": {"rules": [{"key": "rows", "check": "exists"}]},
        "job": {"type": "external"},
    }
    config = read_stored(document | parts, {})
    assert isinstance(config, PipelineConfig), config
    return config


def nearest(schedule: dict[str, Any], period: str, **parts: Any) -> list[str] | None:
    config = config_of(schedule, **parts)
    found = no_such_period(config, config.all_schedules[0], parse_period(period))
    return None if found is None else [str(one) for one in found.nearest]


DAILY = {"cron": "0 8 * * *"}
HOURLY = {"cron": "0 * * * *"}
MIDNIGHT = {"cron": "0 0 * * *", "timezone": "America/New_York"}
QUARTERS = {"cron": "*/15 * * * *"}


@pytest.mark.parametrize(
    ("schedule", "period", "expected"),
    [
        (DAILY, "2026-03-02", None),
        (DAILY, "2026-03-02T10", ["2026-03-02"]),
        (DAILY, "2026-03-02T0800", ["2026-03-02"]),
        (DAILY | {"period": "previous"}, "2026-03-02T10", ["2026-03-02"]),
        (HOURLY, "2026-03-02T10", None),
        (HOURLY, "2026-03-02", ["2026-03-02T00", "2026-03-02T23"]),
        (HOURLY | {"period": "previous"}, "2026-03-02", ["2026-03-02T00", "2026-03-02T23"]),
        (HOURLY, "2026-03-02T1000", ["2026-03-02T10"]),
        ({"cron": "0 8-10 * * *"}, "2026-03-02T11", ["2026-03-02T10", "2026-03-03T08"]),
        ({"cron": "0 8-10 * * *"}, "2026-03-02", ["2026-03-02T08", "2026-03-02T10"]),
        (QUARTERS, "2026-03-02T1015", None),
        (QUARTERS, "2026-03-02T1007", ["2026-03-02T1000", "2026-03-02T1015"]),
        (QUARTERS | {"period": "previous"}, "2026-03-02T1007", ["2026-03-02T1000", "2026-03-02T1015"]),
        (QUARTERS, "2026-03-02T10", ["2026-03-02T1000", "2026-03-02T1045"]),
        ({"cron": "0 8 * * 1-5"}, "2026-03-07", ["2026-03-06", "2026-03-09"]),
        ({"cron": "0 8 1 1 *"}, "2026-07-01", ["2026-01-01", "2027-01-01"]),
        (HOURLY | {"timezone": "America/New_York"}, "2026-03-08T02", ["2026-03-08T01", "2026-03-08T03"]),
        # That day has 25 hours: its tick lies more than a day before its last half hour.
        (MIDNIGHT, "2026-11-01T2330", ["2026-11-01"]),
        (MIDNIGHT | {"period": "previous"}, "2026-11-01T2330", ["2026-11-01"]),
        ({"cron": "0 0 1 * *", "timezone": "America/New_York"}, "2026-11-01T2330", ["2026-11-01"]),
        (DAILY | {"trigger": TRIGGER}, "2026-03-02", None),
        ({"cron": "0 8 * * 1-5", "trigger": TRIGGER}, "2026-03-07", None),
        ({"cron": "0 8 * * 1-5", "trigger": TRIGGER}, "2026-03-07T08", ["2026-03-06", "2026-03-09"]),
        ({"trigger": TRIGGER}, "2026-03-07", None),
        ({"trigger": TRIGGER}, "2026-03-07T08", None),
        ({"trigger": TRIGGER, "timezone": "America/New_York"}, "2026-03-08T02", ["2026-03-08T01", "2026-03-08T03"]),
        ({"trigger": TRIGGER, "granularity": "day"}, "2026-03-07T08", ["2026-03-07"]),
        ({"trigger": TRIGGER, "granularity": "hour"}, "2026-03-07", ["2026-03-07T00", "2026-03-07T23"]),
        ({"include": {"dates": ["2026-03-31"]}}, "2026-03-31", None),
        ({"include": {"dates": ["2026-03-31"]}}, "2026-03-31T08", ["2026-03-31"]),
        ({"include": {"dates": ["2026-03-31"]}, "trigger": TRIGGER}, "2026-03-31T08", None),
    ],
)
def test_periods_and_the_nearest_that_are_real(
    schedule: dict[str, Any], period: str, expected: list[str] | None
) -> None:
    assert nearest(schedule, period) == expected


def test_before_the_first_tick_there_is_only_the_one_after() -> None:
    assert nearest({"cron": "0 8 29 2 *"}, "0003-01-03") == ["0004-02-29"]


def test_a_cascade_opens_days_that_its_cron_does_not() -> None:
    assert nearest({"cron": "0 8 * * 1-5"}, "2026-03-07", after=[{"pipeline": "silver"}]) is None


@pytest.mark.parametrize(
    ("schedule", "period", "sentence"),
    [
        (
            DAILY,
            "2026-03-02T10",
            "2026-03-02T10 is one hour, but each run of gold is for one day; the nearest: 2026-03-02",
        ),
        (
            HOURLY | {"timezone": "America/New_York"},
            "2026-03-08T02",
            "2026-03-08T02 does not exist in America/New_York: the clocks skip it;"
            " the nearest: 2026-03-08T01 and 2026-03-08T03",
        ),
        (
            {"cron": "0 8 * * 1-5"},
            "2026-03-07",
            "the cron 0 8 * * 1-5 has no tick for 2026-03-07; the nearest: 2026-03-06 and 2026-03-09",
        ),
    ],
)
def test_it_is_said_in_one_sentence(schedule: dict[str, Any], period: str, sentence: str) -> None:
    config = config_of(schedule)
    assert str(no_such_period(config, config.all_schedules[0], parse_period(period))) == sentence


def test_without_a_nearest_the_reason_stands_alone() -> None:
    assert str(NoSuchPeriod("no tick", ())) == "no tick"


CRONS = ["0 8 * * *", "0 * * * *", "*/15 * * * *", "0 8,20 * * 1-5", "30 2 * * *", "0 0 1 * *", "0 2 29 2 *"]
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe"]


@given(
    st.sampled_from(CRONS),
    st.sampled_from(ZONES),
    st.sampled_from(["current", "previous"]),
    st.datetimes(min_value=parse_period("2026-01-01").at, max_value=parse_period("2027-01-01").at),
    st.sampled_from(list(Granularity)),
)
def test_a_period_is_real_if_and_only_if_a_tick_has_it_and_the_nearest_are_real(
    expr: str, tz: str, which: str, at: Any, length: Granularity
) -> None:
    config = config_of({"cron": expr, "timezone": tz, "period": which})
    schedule, period = config.all_schedules[0], period_of(at, length)
    found = no_such_period(config, schedule, period)
    assert (found is None) == (cron.tick_of_period(schedule, period) is not None)
    if found is not None:
        assert 1 <= len(found.nearest) <= 2
        assert all(no_such_period(config, schedule, one) is None for one in found.nearest)
        holding = period_of(period.at, cron.granularity(expr))
        if no_such_period(config, schedule, holding) is None:
            assert holding in found.nearest, "what holds it, or the first of what it holds, is meant"

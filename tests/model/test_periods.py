"""Periods: days, hours and minutes on the wall clock."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.errors import InvalidValueError
from interlock.model.periods import Granularity, Period, day_period, hour_period, parse_period, period_of

BERLIN = ZoneInfo("Europe/Berlin")
WALL = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001 - wall-clock times
PERIODS = st.builds(period_of, WALL, st.sampled_from(Granularity))


@pytest.mark.parametrize(
    ("text", "canonical", "granularity"),
    [
        ("2026-03-03", "2026-03-03", Granularity.DAY),
        ("20260303", "2026-03-03", Granularity.DAY),
        ("2026-03-03T10", "2026-03-03T10", Granularity.HOUR),
        ("20260303T10", "2026-03-03T10", Granularity.HOUR),
        ("2026-03-03T1015", "2026-03-03T1015", Granularity.MINUTE),
        ("20260303T1015", "2026-03-03T1015", Granularity.MINUTE),
    ],
)
def test_forms(text: str, canonical: str, granularity: Granularity) -> None:
    period = parse_period(text)
    assert str(period) == canonical
    assert period.granularity is granularity
    assert period.compact == canonical.replace("-", "")


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-3-3", "2026-0303", "202603-03", "2026-03-03T", "2026-03-03T1", "2026-03-03T10:15",
        "2026-02-30", "2026-03-03T24", "2026-03-03T1060", "0001-01-01", "9999-12-31", "2026-03-03T10Z", "x2026-03-03",
    ],
)  # fmt: skip
def test_what_is_no_period(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not a period"):
        parse_period(text)


@given(PERIODS)
def test_what_is_written_reads_back(period: Period) -> None:
    assert parse_period(str(period)) == period
    assert parse_period(period.compact) == period
    assert msgspec.json.decode(msgspec.json.encode(period), type=Period) == period


@given(PERIODS, PERIODS)
def test_overlap_is_mutual_and_follows_from_containment(one: Period, other: Period) -> None:
    assert one.overlaps(other) == other.overlaps(one)
    assert one.overlaps(one)
    assert one.contains(one)
    if one.contains(other):
        assert one.overlaps(other)


@given(PERIODS, st.integers(-1000, 1000))
def test_shifting_there_and_back(period: Period, steps: int) -> None:
    assert period.shifted(steps).shifted(-steps) == period
    assert period.shifted(1).at == period.ends


@given(WALL, st.sampled_from(Granularity))
def test_a_moment_lies_in_its_period(moment: datetime, granularity: Granularity) -> None:
    period = period_of(moment, granularity)
    assert period.at <= moment < period.ends
    assert period.ends - period.at == granularity.length


def test_parts() -> None:
    day, hour = day_period(date(2026, 3, 3)), hour_period(date(2026, 3, 3), 10)
    assert (day.day, day.hour) == (date(2026, 3, 3), None)
    assert (hour.day, hour.hour) == (date(2026, 3, 3), 10)
    assert day.contains(hour)
    assert not hour.contains(day)
    assert not hour.overlaps(hour.shifted(1))
    assert [one.hour for one in hour.hours()] == list(range(24))


@pytest.mark.parametrize(
    ("text", "exists", "length"),
    [
        ("2026-03-29", True, timedelta(hours=23)),
        ("2026-10-25", True, timedelta(hours=25)),
        ("2026-03-29T02", False, timedelta(0)),
        ("2026-03-29T0230", False, timedelta(0)),
        ("2026-03-29T03", True, timedelta(hours=1)),
        ("2026-10-25T02", True, timedelta(hours=2)),
        ("2026-06-01", True, timedelta(days=1)),
    ],
)
def test_periods_in_a_zone(text: str, exists: bool, length: timedelta) -> None:
    period = parse_period(text)
    assert period.exists(BERLIN) is exists
    assert period.end(BERLIN) - period.start(BERLIN) == length
    assert period.start(BERLIN).tzinfo is UTC

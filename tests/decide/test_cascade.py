"""Cascade: which period a marker is for, what is still awaited, and what rules read of an upstream."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.cascade import (
    existing_hours,
    expected_hours,
    missing_markers,
    upstream_sensor,
    wanted_periods,
)
from interlock.model.config import (
    Calendar,
    Check,
    Exclude,
    Include,
    Info,
    PipelineConfig,
    Rule,
    Schedule,
    Upstream,
    Validation,
    Weekday,
)
from interlock.model.periods import Period, day_period, hour_period, parse_period
from interlock.model.run import Marker
from interlock.model.times import zone

NEW_YORK, UTC_ZONE = zone("America/New_York"), zone("UTC")
SAME = Upstream(pipeline="silver")
HOURS = Upstream(pipeline="silver", require="all-hours")
BRONZE = Upstream(pipeline="bronze")
DAY = parse_period("2026-03-02")
CLOCKS_FORWARD = parse_period("2026-03-08")  # New York skips 02:00
CLOCKS_BACK = parse_period("2026-11-01")  # New York has 01:00 twice
ALL_DAY = tuple(f"2026-03-02T{hour:02}" for hour in range(24))


def a_pipeline(*schedules: Schedule) -> PipelineConfig:
    return PipelineConfig(
        pipeline=Info(id="silver"),
        validation=Validation(rules=[Rule(key="rows", check=Check.EXISTS)]),
        schedules=list(schedules),
    )


def a_marker(period: str, minute: int = 0, attempt: int = 1, upstream: str = "silver") -> Marker:
    at = datetime(2026, 3, 2, 12, 0, tzinfo=UTC) + timedelta(minutes=minute)
    return Marker(upstream=upstream, date=period, completed_at=at, attempt=attempt)


def text(periods: tuple[Period, ...]) -> list[str]:
    return [str(period) for period in periods]


@pytest.mark.parametrize(
    ("require", "cron", "marker", "wanted"),
    [
        ("same-period", None, "2026-03-02", "2026-03-02"),
        ("same-period", None, "2026-03-02T10", "2026-03-02T10"),
        ("same-period", None, "2026-03-02T1015", "2026-03-02T1015"),
        ("same-period", "0 8 * * *", "2026-03-02", "2026-03-02"),
        ("same-period", "0 8 * * *", "2026-03-02T10", None),
        ("same-period", "0 * * * *", "2026-03-02T10", "2026-03-02T10"),
        ("same-period", "0 * * * *", "2026-03-02", None),
        ("all-hours", None, "2026-03-02T10", "2026-03-02"),
        ("all-hours", None, "2026-03-02T1015", "2026-03-02"),
        ("all-hours", None, "2026-03-02", "2026-03-02"),
        ("all-hours", "0 8 * * *", "2026-03-02T23", "2026-03-02"),
        ("all-hours", "0 * * * *", "2026-03-02T10", None),
    ],
)
def test_which_downstream_period_a_marker_is_for(
    require: Literal["same-period", "all-hours"], cron: str | None, marker: str, wanted: str | None
) -> None:
    entry = Upstream(pipeline="silver", require=require)
    found = wanted_periods(entry, Schedule(cron=cron), parse_period(marker))
    assert found == (None if wanted is None else parse_period(wanted))


# ---------------------------------------------------------------------------------------------- expected hours


@pytest.mark.parametrize(
    ("day", "count", "absent"), [(DAY, 24, None), (CLOCKS_FORWARD, 23, 2), (CLOCKS_BACK, 24, None)]
)
def test_the_hours_of_a_local_day(day: Period, count: int, absent: int | None) -> None:
    hours = existing_hours(day, NEW_YORK)
    assert len(hours) == count
    assert absent is None or hour_period(day.day, absent) not in hours


@given(st.dates(date(2000, 1, 1), date(2035, 12, 31)), st.sampled_from(["America/New_York", "Europe/Berlin", "UTC"]))
def test_the_existing_hours_cover_the_local_day_exactly(day: date, name: str) -> None:
    tz, period = zone(name), day_period(day)
    hours = existing_hours(period, tz)
    assert hours[0].start(tz) == period.start(tz)
    assert hours[-1].end(tz) == period.end(tz)
    assert sum((hour.end(tz) - hour.start(tz) for hour in hours), timedelta(0)) == period.end(tz) - period.start(tz)


@pytest.mark.parametrize(
    ("schedule", "day", "expected"),
    [
        (Schedule(cron="0 * * * *"), "2026-03-02", list(ALL_DAY)),
        (Schedule(cron="5 9-11 * * *"), "2026-03-02", ["2026-03-02T09", "2026-03-02T10", "2026-03-02T11"]),
        (Schedule(cron="0 0,12 * * 1"), "2026-03-02", ["2026-03-02T00", "2026-03-02T12"]),
        (Schedule(cron="0 0,12 * * 1"), "2026-03-03", []),
        (Schedule(cron="*/30 9 * * *"), "2026-03-02", ["2026-03-02T0900", "2026-03-02T0930"]),
        (Schedule(cron="0 8 * * *"), "2026-03-02", ["2026-03-02"]),
        (Schedule(cron="0 8 * * *", period="previous"), "2026-03-02", ["2026-03-02"]),
        (Schedule(cron="0 0 * * *", period="previous"), "2026-03-02", ["2026-03-02"]),
        (
            Schedule(cron="*/30 9 * * 1", period="previous"),  # 09:30 is what the tick of a week later is for
            "2026-03-02",
            ["2026-03-02T0900", "2026-03-02T0930"],
        ),
    ],
)
def test_a_cron_names_the_periods_of_a_day(schedule: Schedule, day: str, expected: list[str]) -> None:
    assert text(expected_hours(a_pipeline(schedule), parse_period(day), {}, NEW_YORK)) == expected


def test_an_hourly_cron_of_the_hour_before_has_the_hour_before_midnight() -> None:
    schedule = Schedule(cron="5 * * * *", period="previous")
    assert text(expected_hours(a_pipeline(schedule), DAY, {}, UTC_ZONE)) == list(ALL_DAY)


def test_a_skipped_hour_is_not_expected_of_a_cron_in_its_own_zone() -> None:
    schedule = Schedule(cron="0 * * * *", timezone="America/New_York")
    hours = text(expected_hours(a_pipeline(schedule), CLOCKS_FORWARD, {}, UTC_ZONE))
    assert len(hours) == 23
    assert "2026-03-08T02" not in hours


def test_a_cron_tick_is_excluded_by_its_own_day() -> None:
    # The tick of Saturday 00:05 is for Friday 23; weekends are excluded, so Friday 23 never runs.
    schedule = Schedule(cron="5 * * * *", period="previous", exclude=Exclude(weekends=True))
    friday = expected_hours(a_pipeline(schedule), parse_period("2026-03-06"), {}, UTC_ZONE)
    assert text(friday)[-1] == "2026-03-06T22"
    assert expected_hours(a_pipeline(schedule), parse_period("2026-03-07"), {}, UTC_ZONE) == ()


@pytest.mark.parametrize(
    ("schedule", "count"),
    [
        (Schedule(), 24),
        (Schedule(exclude=Exclude(dates=["2026-03-02"])), 0),
        (Schedule(exclude=Exclude(calendar="closed")), 0),
        (Schedule(include=Include(dates=["2026-03-31"])), 0),
        (Schedule(include=Include(dates=["2026-03-02"])), 24),
    ],
)
def test_without_a_cron_every_hour_of_a_day_that_is_not_withheld(schedule: Schedule, count: int) -> None:
    calendars = {"closed": Calendar(name="closed", days=[Weekday.MONDAY])}
    assert len(expected_hours(a_pipeline(schedule), DAY, calendars, NEW_YORK)) == count


def test_without_a_cron_the_downstream_zone_says_which_hours_exist() -> None:
    assert len(expected_hours(a_pipeline(Schedule()), CLOCKS_FORWARD, {}, NEW_YORK)) == 23
    assert len(expected_hours(a_pipeline(Schedule()), CLOCKS_FORWARD, {}, UTC_ZONE)) == 24


def test_an_unknown_upstream_is_expected_every_hour() -> None:
    assert len(expected_hours(None, CLOCKS_FORWARD, {}, NEW_YORK)) == 23


def test_of_several_schedules_those_with_hours_and_a_cron_count() -> None:
    hourly, daily = Schedule(id="h", cron="0 9,10 * * *"), Schedule(id="d", cron="0 8 * * *")
    upstream = a_pipeline(hourly, daily, Schedule(id="s"))
    assert text(expected_hours(upstream, DAY, {}, UTC_ZONE)) == ["2026-03-02T09", "2026-03-02T10"]


# --------------------------------------------------------------------------------------------- missing markers


def missing(
    after: list[Upstream],
    have: dict[str, set[str]],
    expected: dict[str, tuple[Period, ...]] | None = None,
    period: Period = DAY,
) -> tuple[str, ...]:
    given_ = {name: frozenset(dates) for name, dates in have.items()}
    return missing_markers(after, Schedule(timezone="America/New_York"), period, given_, expected or {})


NINE_TO_ELEVEN = tuple(parse_period(f"2026-03-02T{hour:02}") for hour in (9, 10, 11))


@pytest.mark.parametrize(
    ("after", "have", "expected", "words"),
    [
        ([SAME], {}, {}, ("silver 2026-03-02",)),
        ([SAME], {"silver": {"2026-03-02"}}, {}, ()),
        ([SAME], {"silver": {"2026-03-02T10", "2026-03-01"}}, {}, ("silver 2026-03-02",)),
        ([SAME, BRONZE], {"silver": {"2026-03-02"}}, {}, ("bronze 2026-03-02",)),
        ([SAME, BRONZE], {}, {}, ("silver 2026-03-02", "bronze 2026-03-02")),
        ([SAME, BRONZE], {"silver": {"2026-03-02"}, "bronze": {"2026-03-02"}}, {}, ()),
        (
            [HOURS],
            {"silver": {"2026-03-02T10"}},
            {"silver": NINE_TO_ELEVEN},
            ("silver 2026-03-02T09, 2026-03-02T11 (2 of 3)",),
        ),
        ([HOURS], {"silver": {str(hour) for hour in NINE_TO_ELEVEN}}, {"silver": NINE_TO_ELEVEN}, ()),
        ([HOURS], {"silver": {"2026-03-02"}}, {"silver": NINE_TO_ELEVEN}, ()),
        ([HOURS], {"silver": {"2026-03-01"}}, {"silver": NINE_TO_ELEVEN[:1]}, ("silver 2026-03-02T09 (1 of 1)",)),
        # The minute in which an hour begins is not the hour.
        ([HOURS], {"silver": {"2026-03-02T0900"}}, {"silver": NINE_TO_ELEVEN[:1]}, ("silver 2026-03-02T09 (1 of 1)",)),
        (
            [HOURS],
            {"silver": {"2026-03-02T09"}},
            {"silver": (parse_period("2026-03-02T0900"), parse_period("2026-03-02T0930"))},
            (),
        ),
        ([HOURS, BRONZE], {"bronze": {"2026-03-02"}}, {"silver": ()}, ()),
        ([HOURS], {}, {"silver": ()}, ("silver has no run on 2026-03-02",)),
        ([HOURS], {"silver": {"2026-03-02T09"}}, {"silver": ()}, ()),
    ],
)
def test_what_is_still_awaited(
    after: list[Upstream],
    have: dict[str, set[str]],
    expected: dict[str, tuple[Period, ...]],
    words: tuple[str, ...],
) -> None:
    assert missing(after, have, expected) == words


def test_many_missing_hours_are_counted_not_listed() -> None:
    hours = tuple(parse_period(hour) for hour in ALL_DAY)
    (words,) = missing([HOURS], {"silver": {"2026-03-02T00"}}, {"silver": hours})
    assert words.startswith("silver 2026-03-02T01, ")
    assert words.endswith("2026-03-02T06 and 17 more (23 of 24)")


def test_six_missing_hours_are_still_all_named() -> None:
    hours = tuple(parse_period(hour) for hour in ALL_DAY[:6])
    (words,) = missing([HOURS], {}, {"silver": hours})
    assert words == f"silver {', '.join(ALL_DAY[:6])} (6 of 6)"


def test_all_hours_belongs_to_a_day() -> None:
    period = parse_period("2026-03-02T10")
    words = missing([SAME, HOURS], {"silver": {"2026-03-02T10"}}, {"silver": (period,)}, period)
    assert words == ("silver: all-hours belongs to a run of a day, not of 2026-03-02T10",)


def test_without_expected_hours_every_hour_of_the_downstream_day() -> None:
    have = {str(hour) for hour in existing_hours(CLOCKS_FORWARD, NEW_YORK)}
    assert missing([HOURS], {"silver": have}, period=CLOCKS_FORWARD) == ()
    assert missing([HOURS], {"silver": have - {"2026-03-08T23"}}, period=CLOCKS_FORWARD) != ()


@given(st.sets(st.sampled_from(ALL_DAY)), st.sets(st.sampled_from(ALL_DAY), min_size=1))
def test_all_hours_opens_exactly_when_every_expected_hour_is_there(have: set[str], expected: set[str]) -> None:
    hours = tuple(parse_period(hour) for hour in sorted(expected))
    assert (missing([HOURS], {"silver": have}, {"silver": hours}) == ()) == (expected <= have)


# --------------------------------------------------------------------------------------------- upstream sensors


@pytest.mark.parametrize(
    ("entry", "markers", "complete", "sensor"),
    [
        (SAME, [], True, None),
        (SAME, [a_marker("2026-03-01"), a_marker("2026-03-02T10")], True, None),
        (SAME, [a_marker("2026-03-02", upstream="bronze")], True, None),
        (
            SAME,
            [a_marker("2026-03-02", 5, 2)],
            False,
            {"status": "COMPLETED", "date": "2026-03-02", "completedAt": "2026-03-02T12:05:00Z", "attempt": 2},
        ),
        (HOURS, [a_marker("2026-03-02T09")], False, None),
        (HOURS, [], True, None),
        (
            HOURS,
            [
                a_marker("2026-03-02T09", 30, 1),
                a_marker("2026-03-02T10", 10, 3),
                a_marker("2026-03-03T00", 50, 9),
                a_marker("2026-03-02T11", 50, 9, upstream="bronze"),
            ],
            True,
            {"status": "COMPLETED", "date": "2026-03-02", "completedAt": "2026-03-02T12:30:00Z", "attempt": 3},
        ),
    ],
)
def test_what_a_rule_reads_of_an_upstream(
    entry: Upstream, markers: list[Marker], complete: bool, sensor: dict[str, Any] | None
) -> None:
    assert upstream_sensor(entry, markers, DAY, complete) == sensor

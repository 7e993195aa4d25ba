"""Lanes: which run belongs into which cell, what a cell shows of several, and which ticks are due."""

from datetime import UTC, datetime
from typing import Final

import pytest

from interlock.decide.lanes import Bucket, Columns, Lane, Letter, Mark, due_around, due_between
from interlock.model.config import Schedule

FROM: Final = datetime(2026, 3, 2, 7, 40, tzinfo=UTC)


def hours(count: int = 4) -> Columns:
    return Columns(Bucket.HOUR, datetime(2026, 3, 2, 7, tzinfo=UTC), count)


# -------------------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("until", "bucket", "first", "count"),
    [
        (datetime(2026, 3, 2, 10, tzinfo=UTC), Bucket.HOUR, "2026-03-02T07:00:00+00:00", 3),
        (datetime(2026, 3, 2, 10, 1, tzinfo=UTC), Bucket.HOUR, "2026-03-02T07:00:00+00:00", 4),
        (FROM, Bucket.HOUR, "2026-03-02T07:00:00+00:00", 1),
        (datetime(2026, 3, 2, tzinfo=UTC), Bucket.HOUR, "2026-03-02T07:00:00+00:00", 1),
        (datetime(2026, 3, 4, tzinfo=UTC), Bucket.DAY, "2026-03-02T00:00:00+00:00", 2),
        (datetime(2026, 3, 4, 0, 1, tzinfo=UTC), Bucket.DAY, "2026-03-02T00:00:00+00:00", 3),
    ],
)
def test_a_span_is_covered_by_whole_columns_and_has_at_least_one(
    until: datetime, bucket: Bucket, first: str, count: int
) -> None:
    columns = Columns.between(FROM, until, bucket)
    assert (columns.first.isoformat(), columns.count) == (first, count)


def test_an_instant_belongs_into_its_hour_or_day_and_outside_into_none() -> None:
    assert [hours().of_instant(f"2026-03-02T{hour:02}:59:59Z") for hour in (6, 7, 10, 11)] == [None, 0, 3, None]
    days = Columns(Bucket.DAY, datetime(2026, 3, 2, tzinfo=UTC), 2)
    assert [days.of_instant(f"2026-03-0{day}T23:59:00Z") for day in (1, 2, 3, 4)] == [None, 0, 1, None]


def test_a_run_belongs_into_the_column_of_its_period_or_of_the_hour_it_opened() -> None:
    assert hours().of_run("2026-03-02T08", "UTC", "2026-03-02T10:00:00Z") == 1
    assert hours().of_run("2026-03-02T09", "Europe/Zurich", "2026-03-02T10:00:00Z") == 1
    assert hours().of_run("2026-03-02", "UTC", "2026-03-02T10:00:00Z") == 3
    days = Columns(Bucket.DAY, datetime(2026, 3, 2, tzinfo=UTC), 2)
    assert days.of_run("2026-03-02T09", "UTC", "2026-03-03T10:00:00Z") == 0
    assert days.of_run("2026-03-01", "UTC", "2026-03-02T10:00:00Z") is None


# ---------------------------------------------------------------------------------------------------------- cells


def test_the_worst_of_several_runs_is_shown_and_all_are_counted() -> None:
    lane = Lane(hours())
    for letter in (Letter.DONE, Letter.FAILED, Letter.RUNNING):
        lane.put(1, letter)
    lane.put(2, Letter.DONE)
    lane.put(3, Letter.DONE)
    lane.put(3, Letter.DONE)
    lane.put(None, Letter.FAILED)
    assert (lane.cells, lane.multiple) == ("-fdd", {"1": 3, "3": 2})


def test_every_letter_hides_what_is_less_bad() -> None:
    worst_first = "fhmwrodx-"
    for better, worse in zip(worst_first[1:], worst_first, strict=False):
        for order in ((better, worse), (worse, better)):
            lane = Lane(hours(1))
            for letter in order:
                lane.put(0, Letter(letter))
            assert lane.cells == worse


def test_an_excluded_run_is_shown_and_not_counted() -> None:
    lane = Lane(hours(1))
    lane.put(0, Letter.EXCLUDED)
    lane.put(0, Letter.DONE)
    assert (lane.cells, lane.multiple) == ("d", {})


def test_a_breach_hides_the_warning_whichever_comes_first() -> None:
    lane = Lane(hours())
    assert lane.marks == ""
    lane.mark(None, Mark.BREACHED)
    assert lane.marks == ""
    for mark in (Mark.WARNED, Mark.BREACHED, Mark.WARNED):
        lane.mark(1, mark)
    lane.mark(3, Mark.WARNED)
    assert lane.marks == "-b-w"


# ---------------------------------------------------------------------------------------------------------- ticks


def test_the_ticks_of_a_span_are_those_from_its_beginning_to_before_its_end() -> None:
    schedule = Schedule(cron="0 * * * *")
    found = due_between(schedule, datetime(2026, 3, 2, 7, tzinfo=UTC), datetime(2026, 3, 2, 9, tzinfo=UTC))
    assert [(due.at, due.period) for due in found] == [
        ("2026-03-02T07:00:00+00:00", "2026-03-02T07"),
        ("2026-03-02T08:00:00+00:00", "2026-03-02T08"),
    ]
    assert due_between(Schedule(), FROM, FROM) == []


def test_the_local_day_of_a_tick_may_lie_beside_that_of_utc() -> None:
    schedule = Schedule(cron="0 8 * * *", timezone="Pacific/Auckland")
    found = due_between(schedule, datetime(2026, 3, 2, 18, tzinfo=UTC), datetime(2026, 3, 2, 20, tzinfo=UTC))
    assert [(due.at, str(due.day)) for due in found] == [("2026-03-02T19:00:00+00:00", "2026-03-03")]


def test_in_day_columns_the_ticks_beside_are_due_too() -> None:
    schedule = Schedule(cron="0 8 * * *", period="previous")
    days = Columns(Bucket.DAY, datetime(2026, 3, 2, tzinfo=UTC), 1)
    periods = [due.period for due in due_around(schedule, days)]
    assert periods[0] < "2026-03-02" < periods[-1]
    assert "2026-03-02" in periods
    assert [due.period for due in due_around(schedule, hours())] == ["2026-03-01"]

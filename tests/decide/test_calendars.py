"""Exclusion and inclusion: which days open nothing, and the reason a person is given."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.calendars import exclusion, holidays_of, included_days, inclusion, withheld
from interlock.model.config import Calendar, Exclude, Include, Schedule, Weekday
from interlock.model.errors import InvalidValueError

CALENDARS = {
    "us-federal": Calendar(name="us-federal", dates=["2026-07-03"]),
    "fridays": Calendar(name="fridays", days=[Weekday.FRIDAY]),
    "month-end": Calendar(name="month-end", dates=["2026-03-31", "2026-01-31", "2026-02-28"]),
}


def day(text: str) -> date:
    return date.fromisoformat(text)


@pytest.mark.parametrize(
    ("exclude", "text", "expected"),
    [
        (None, "2026-03-07", None),
        (Exclude(), "2026-03-07", None),
        (Exclude(weekends=True), "2026-03-06", None),
        (Exclude(weekends=True), "2026-03-07", "2026-03-07 is excluded: it is a Saturday (weekends)"),
        (Exclude(weekends=True), "2026-03-08", "2026-03-08 is excluded: it is a Sunday (weekends)"),
        (Exclude(weekends=True), "2026-03-09", None),
        (Exclude(holidays="US"), "2026-12-25", "2026-12-25 is excluded: Christmas Day (holidays US)"),
        (Exclude(holidays="USA"), "2026-12-25", "2026-12-25 is excluded: Christmas Day (holidays USA)"),
        (Exclude(holidays="US"), "2026-12-24", None),
        # 4 July 2026 is a Saturday and 1 January 2028 too: the Friday before is the day off.
        (Exclude(holidays="US"), "2026-07-03", "2026-07-03 is excluded: Independence Day (observed) (holidays US)"),
        (Exclude(holidays="US"), "2027-12-31", "2027-12-31 is excluded: New Year's Day (observed) (holidays US)"),
        (Exclude(holidays="DE"), "2026-01-06", None),
        (Exclude(holidays="DE-BY"), "2026-01-06", "2026-01-06 is excluded: Epiphany (holidays DE-BY)"),
        (Exclude(dates=["2026-12-25"]), "2026-12-25", "2026-12-25 is excluded: it is one of the excluded dates"),
        (Exclude(dates=["2026-12-25"]), "2027-12-25", None),
        (Exclude(days=[Weekday.FRIDAY]), "2026-03-06", "2026-03-06 is excluded: it is a Friday (excluded days)"),
        (Exclude(days=[Weekday.FRIDAY]), "2026-03-07", None),
        (Exclude(calendar="us-federal"), "2026-07-03", "2026-07-03 is excluded: calendar us-federal"),
        (Exclude(calendar="us-federal"), "2026-07-04", None),
        (Exclude(calendar="fridays"), "2026-03-06", "2026-03-06 is excluded: calendar fridays"),
        (Exclude(calendar="fridays"), "2026-03-05", None),
        # Several sections: any of them excludes.
        (Exclude(weekends=True, holidays="US", calendar="fridays"), "2026-03-06", "calendar fridays"),
        (Exclude(weekends=True, holidays="US", calendar="fridays"), "2026-12-25", "Christmas Day (holidays US)"),
    ],
)
def test_exclusion(exclude: Exclude | None, text: str, expected: str | None) -> None:
    reason = exclusion(Schedule(exclude=exclude), CALENDARS, day(text))
    if expected is None:
        assert reason is None
    else:
        assert reason is not None
        assert reason.endswith(expected)
        assert reason.startswith(f"{text} is excluded: ")


@pytest.mark.parametrize(
    ("include", "text", "expected"),
    [
        (None, "2026-03-30", None),
        (Include(), "2026-03-30", "2026-03-30 is not an inclusion date"),
        (Include(dates=["2026-03-31"]), "2026-03-31", None),
        (Include(dates=["2026-03-31"]), "2026-03-30", "2026-03-30 is not an inclusion date"),
        (Include(calendar="month-end"), "2026-02-28", None),
        (Include(calendar="month-end"), "2026-02-27", "2026-02-27 is not an inclusion date"),
        (Include(calendar="fridays"), "2026-02-27", None),
        (Include(dates=["2026-02-26"], calendar="fridays"), "2026-02-26", None),
    ],
)
def test_inclusion(include: Include | None, text: str, expected: str | None) -> None:
    assert inclusion(Schedule(include=include), CALENDARS, day(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-31", None),
        ("2026-01-31", "2026-01-31 is excluded: it is a Saturday (weekends)"),
        ("2026-03-30", "2026-03-30 is not an inclusion date"),
        ("2026-03-28", "2026-03-28 is excluded: it is a Saturday (weekends)"),
    ],
)
def test_withheld_says_the_exclusion_first(text: str, expected: str | None) -> None:
    schedule = Schedule(include=Include(calendar="month-end"), exclude=Exclude(weekends=True))
    assert withheld(schedule, CALENDARS, day(text)) == expected


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Schedule(), []),
        (Schedule(include=Include()), []),
        (Schedule(include=Include(dates=["2026-03-31", "2026-03-01", "2026-04-01"])), ["2026-03-01", "2026-03-31"]),
        (Schedule(include=Include(dates=["2026-03-31"], calendar="month-end")), ["2026-03-31"]),
        (
            Schedule(include=Include(dates=["2026-03-03", "2026-03-06"], calendar="fridays")),
            ["2026-03-03", "2026-03-06", "2026-03-13", "2026-03-20", "2026-03-27"],
        ),
        (
            Schedule(include=Include(calendar="fridays"), exclude=Exclude(dates=["2026-03-13"])),
            ["2026-03-06", "2026-03-20", "2026-03-27"],
        ),
    ],
)
def test_included_days_of_march(schedule: Schedule, expected: list[str]) -> None:
    days = included_days(schedule, CALENDARS, day("2026-03-01"), day("2026-03-31"))
    assert [one.isoformat() for one in days] == expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2026-03-06", "2026-03-06", ["2026-03-06"]),
        ("2026-03-07", "2026-03-12", []),
        ("2026-03-07", "2026-03-13", ["2026-03-13"]),
        ("2026-02-28", "2026-03-05", ["2026-02-28"]),
        ("2026-03-01", "2026-03-05", []),
    ],
)
def test_the_first_and_the_last_day_of_an_interval_belong_to_it(first: str, last: str, expected: list[str]) -> None:
    calendars = {"both": Calendar(name="both", days=[Weekday.FRIDAY], dates=["2026-02-28"])}
    days = included_days(Schedule(include=Include(calendar="both")), calendars, day(first), day(last))
    assert [one.isoformat() for one in days] == expected


def test_an_interval_that_ends_before_it_begins_has_no_days() -> None:
    schedule = Schedule(include=Include(dates=["2026-03-06"], calendar="fridays"))
    assert included_days(schedule, CALENDARS, day("2026-03-31"), day("2026-03-01")) == []


@pytest.mark.parametrize(
    "schedule",
    [Schedule(exclude=Exclude(calendar="gone")), Schedule(include=Include(calendar="gone"))],
)
def test_a_missing_calendar_is_never_taken_for_an_empty_one(schedule: Schedule) -> None:
    with pytest.raises(InvalidValueError, match=r"'gone' \(there is: fridays, month-end, us-federal\)"):
        withheld(schedule, CALENDARS, day("2026-03-02"))


def test_a_missing_inclusion_calendar_has_no_days_to_list() -> None:
    schedule = Schedule(include=Include(calendar="gone"))
    with pytest.raises(InvalidValueError, match=r"'gone' \(there is: none\)"):
        included_days(schedule, {}, day("2026-03-01"), day("2026-03-31"))


def test_an_inclusion_date_that_is_no_day_is_named() -> None:
    schedule = Schedule(include=Include(dates=["2026-02-30"]))
    with pytest.raises(InvalidValueError, match="2026-02-30"):
        included_days(schedule, CALENDARS, day("2026-02-01"), day("2026-03-31"))


@pytest.mark.parametrize("code", ["XX", "us", "", "HolidayBase", "country_holidays", "US-ZZ", "DE-by", "-CA"])
def test_an_unknown_holiday_code_is_named(code: str) -> None:
    with pytest.raises(InvalidValueError, match=f"holidays '{code}'"):
        exclusion(Schedule(exclude=Exclude(holidays=code)), CALENDARS, day("2026-03-02"))


def test_holiday_names_do_not_follow_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.setenv(name, "de")
    holidays_of.cache_clear()
    assert holidays_of("DE", 2026)[date(2026, 1, 1)] == "New Year's Day"


def test_a_year_of_holidays_is_made_once() -> None:
    assert holidays_of("US-CA", 2026) is holidays_of("US-CA", 2026)


DAYS = st.dates(date(2020, 1, 1), date(2030, 12, 31))
SCHEDULES = st.builds(
    Schedule,
    exclude=st.none()
    | st.builds(
        Exclude,
        weekends=st.booleans(),
        holidays=st.sampled_from([None, "US", "DE-BY"]),
        days=st.lists(st.sampled_from(list(Weekday)), max_size=2),
        calendar=st.sampled_from([None, *CALENDARS]),
    ),
    include=st.none()
    | st.builds(
        Include,
        dates=st.lists(DAYS.map(date.isoformat), max_size=5),
        calendar=st.sampled_from([None, *CALENDARS]),
    ),
)


@given(SCHEDULES, DAYS, st.integers(0, 60))
def test_included_days_are_those_not_withheld(schedule: Schedule, first: date, length: int) -> None:
    days = [first + timedelta(days=offset) for offset in range(length + 1)]
    opened = [one for one in days if withheld(schedule, CALENDARS, one) is None]
    listed = included_days(schedule, CALENDARS, first, days[-1])
    assert listed == (opened if schedule.include is not None else [])

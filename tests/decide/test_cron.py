"""Cron on the wall clock: gaps, overlaps, periods, and the laws that hold between the five functions."""

import re
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise

import pytest
from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.decide.cron import (
    Tick,
    check_cron,
    granularity,
    local_times,
    next_tick,
    previous_tick,
    shortest_gap,
    tick_of_period,
    ticks_between,
    ticks_on,
)
from interlock.model.config import Schedule
from interlock.model.errors import InvalidValueError
from interlock.model.periods import Granularity, parse_period
from interlock.model.times import format_instant, to_local, to_utc, zone

NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"
# Half-hour DST, a gap from a quarter to, a two-hour gap, a day that never was, an offset that is not in hours.
ODD_ZONES = ("Australia/Lord_Howe", "Pacific/Chatham", "Antarctica/Troll", "Pacific/Apia", "Asia/Kolkata")
ZONES = ("UTC", NEW_YORK, BERLIN, *ODD_ZONES)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def schedule(cron: str, tz: str = "UTC", period: str = "current") -> Schedule:
    return Schedule(cron=cron, timezone=tz, period="previous" if period == "previous" else "current")


def shown(tick: Tick) -> str:
    return f"{tick.period} {format_instant(tick.at)}"


@pytest.mark.parametrize(
    "expr",
    [
        "0 8 * * *",
        "*/5 * * * *",
        "0 0 L * *",
        "0 0 LW * *",
        "0 9 * * MON#1",
        "0 9 * * 5L",
        "0 0 29 2 *",
        "0 0 * 2 MON#5",
        "  0  8 * *  mon-fri ",
    ],
)
def test_good_expressions(expr: str) -> None:
    check_cron(expr)


@pytest.mark.parametrize(
    ("expr", "says"),
    [
        ("", "has 0 field"),
        ("@daily", "is not read here: write '0 0 * * *'"),
        ("@Hourly ", "write '0 * * * *'"),
        ("@reboot", "has 1 field"),
        ("0 0 8 * * *", "has 6 field"),
        ("60 * * * *", "'60' is not a valid minute"),
        ("0 24 * * *", "'24' is not a valid hour"),
        ("0 0 32 * *", "'32' is not a valid day-of-month"),
        ("0 0 0 * *", "'0' is not a valid day-of-month"),
        ("0 0 * foo *", "'foo' is not a valid month"),
        ("0 0 * * fri-mon", "'fri-mon' is not a valid day-of-week"),
        ("*/0 * * * *", "'*/0' is not a valid minute"),
        ("1,,2 * * * *", "'1,,2' is not a valid minute"),
        ("0 " + "9" * 5000 + " * * *", "far too large"),
        ("30 2 31 2 *", "never fires"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        ("0 0 */30 2 MON#2", "never fires"),  # 1 and 31 February are no second Monday; cronsim only runs dry
    ],
)
def test_bad_expressions_are_named(expr: str, says: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        check_cron(expr)
    assert says in str(caught.value)
    assert repr(expr) in str(caught.value)


@pytest.mark.parametrize(
    ("macro", "written"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_a_macro_of_crontab_is_answered_by_what_it_means(macro: str, written: str) -> None:
    with pytest.raises(InvalidValueError, match=f"write '{re.escape(written)}'"):
        check_cron(macro)
    check_cron(written)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("0 8 * * *", Granularity.DAY),
        ("0 8 * * 1-5", Granularity.DAY),
        ("0 0 1 1 *", Granularity.DAY),
        ("*/60 8 * * *", Granularity.DAY),
        ("0 * * * *", Granularity.HOUR),
        ("15 8,20 * * *", Granularity.HOUR),
        ("59 23,0 * * *", Granularity.HOUR),
        ("*/30 * * * *", Granularity.MINUTE),
        ("0,59 8 * * *", Granularity.MINUTE),
        ("* * * * *", Granularity.MINUTE),
    ],
)
def test_granularity(expr: str, expected: Granularity) -> None:
    assert granularity(expr) is expected


FIELD = st.lists(st.integers(0, 23), min_size=1, max_size=4).map(lambda values: ",".join(map(str, values)))


@given(minutes=FIELD, hours=FIELD, days=st.sampled_from(["* * *", "* * 1-5", "1,15 * *", "* 3 6"]))
def test_granularity_is_the_smallest_gap(minutes: str, hours: str, days: str) -> None:
    expr = f"{minutes} {hours} {days}"
    ticks = list(ticks_between(schedule(expr), at("2026-02-20T00:00"), at("2026-04-05T00:00")))
    smallest = min(later.at - earlier.at for earlier, later in pairwise(ticks))
    if smallest >= timedelta(days=1):
        assert granularity(expr) is Granularity.DAY
    else:
        assert granularity(expr) is (Granularity.HOUR if smallest >= timedelta(hours=1) else Granularity.MINUTE)


# What the schedule is, the interval (after, until], and `period@instant` of each of its ticks.
TICKS = {
    "the offset changes, the local time does not": (
        schedule("0 8 * * *", NEW_YORK),
        "2026-03-07T13:00 2026-03-09T12:00",
        "2026-03-08@03-08T12:00 2026-03-09@03-09T12:00",
    ),
    "a daily tick in the gap fires at its end": (
        schedule("30 2 * * *", NEW_YORK),
        "2026-03-07T07:30 2026-03-09T12:00",
        "2026-03-08@03-08T07:00 2026-03-09@03-09T06:30",
    ),
    "a daily tick in the overlap fires the first time": (
        schedule("30 1 * * *", NEW_YORK),
        "2026-11-01T00:00 2026-11-02T07:00",
        "2026-11-01@11-01T05:30 2026-11-02@11-02T06:30",
    ),
    "hourly: the skipped hour has no tick": (
        schedule("0 * * * *", NEW_YORK),
        "2026-03-08T05:00 2026-03-08T08:00",
        "2026-03-08T01@03-08T06:00 2026-03-08T03@03-08T07:00 2026-03-08T04@03-08T08:00",
    ),
    "hourly, previous: every hour that exists has its run, the skipped one has none": (
        schedule("15 * * * *", NEW_YORK, "previous"),
        "2026-03-08T06:00 2026-03-08T09:00",
        "2026-03-08T00@03-08T06:15 2026-03-08T01@03-08T07:00 2026-03-08T03@03-08T08:15",
    ),
    "hourly: the repeated hour ticks once": (
        schedule("0 * * * *", NEW_YORK),
        "2026-11-01T04:00 2026-11-01T07:00",
        "2026-11-01T01@11-01T05:00 2026-11-01T02@11-01T07:00",
    ),
    "sub-hourly: nothing in the gap": (
        schedule("*/30 * * * *", BERLIN),
        "2026-03-29T00:00 2026-03-29T01:30",
        "2026-03-29T0130@03-29T00:30 2026-03-29T0300@03-29T01:00 2026-03-29T0330@03-29T01:30",
    ),
    "sub-hourly, previous: the tick before, across the gap": (
        schedule("*/30 * * * *", BERLIN, "previous"),
        "2026-03-29T00:00 2026-03-29T01:30",
        "2026-03-29T0100@03-29T00:30 2026-03-29T0130@03-29T01:00 2026-03-29T0300@03-29T01:30",
    ),
    "sub-hourly: what ticked in the first pass is not to come in the second": (
        schedule("*/15 * * * *", NEW_YORK),
        "2026-11-01T06:10 2026-11-01T07:00",
        "2026-11-01T0200@11-01T07:00",
    ),
    "sub-hourly: nothing in the second pass": (
        schedule("*/30 * * * *", BERLIN),
        "2026-10-25T00:00 2026-10-25T02:00",
        "2026-10-25T0230@10-25T00:30 2026-10-25T0300@10-25T02:00",
    ),
    "sub-hourly, previous: the tick before may be yesterday's": (
        schedule("0,30 8 * * *", "UTC", "previous"),
        "2026-03-02T07:00 2026-03-02T09:00",
        "2026-03-01T0830@03-02T08:00 2026-03-02T0800@03-02T08:30",
    ),
    "daily, previous: the day before, not the tick before": (
        schedule("0 8 * * 1-5", "UTC", "previous"),
        "2026-03-06T08:00 2026-03-09T08:00",
        "2026-03-08@03-09T08:00",
    ),
    "hours of a zone with a half-hour offset": (
        schedule("0 * * * *", "Asia/Kolkata"),
        "2026-03-02T00:00 2026-03-02T02:00",
        "2026-03-02T06@03-02T00:30 2026-03-02T07@03-02T01:30",
    ),
    "half an hour is skipped: the hour exists, its tick is at the end of the gap": (
        schedule("0 * * * *", "Australia/Lord_Howe"),
        "2026-10-03T14:30 2026-10-03T16:30",
        "2026-10-04T02@10-03T15:30 2026-10-04T03@10-03T16:00",
    ),
    "half an hour is repeated": (
        schedule("0,15,30,45 * * * *", "Australia/Lord_Howe"),
        "2026-04-04T14:30 2026-04-04T15:45",
        "2026-04-05T0145@04-04T14:45 2026-04-05T0200@04-04T15:30 2026-04-05T0215@04-04T15:45",
    ),
    "a day that never was has no run": (
        schedule("0 0 * * *", "Pacific/Apia"),
        "2011-12-29T00:00 2011-12-31T10:00",
        "2011-12-29@12-29T10:00 2011-12-31@12-30T10:00 2012-01-01@12-31T10:00",
    ),
    "nor is it the day before another, and the day before it is not lost": (
        schedule("0 0 * * *", "Pacific/Apia", "previous"),
        "2011-12-29T00:00 2011-12-31T10:00",
        "2011-12-28@12-29T10:00 2011-12-29@12-30T10:00 2011-12-31@12-31T10:00",
    ),
    "two hours that exist, one instant: both have their run": (
        schedule("45 * * * *", "Pacific/Chatham"),
        "2026-09-26T13:00 2026-09-26T14:00",
        "2026-09-27T02@09-26T14:00 2026-09-27T03@09-26T14:00",
    ),
}


@pytest.mark.parametrize(("cron", "between", "expected"), TICKS.values(), ids=TICKS.keys())
def test_ticks(cron: Schedule, between: str, expected: str) -> None:
    after, until = (at(text) for text in between.split())
    assert [f"{tick.period}@{tick.at:%m-%dT%H:%M}" for tick in ticks_between(cron, after, until)] == expected.split()


def test_a_tick_keeps_its_scheduled_local_time() -> None:
    tick = next_tick(schedule("30 2 * * *", NEW_YORK), at("2026-03-08T00:00"))
    assert tick is not None
    assert tick.local.isoformat() == "2026-03-08T02:30:00"
    assert tick.local.tzinfo is None
    assert tick.at.tzinfo is UTC


@pytest.mark.parametrize(
    ("cron", "tz", "before", "expected"),
    [
        ("0 8 * * *", "UTC", "2026-03-02T08:00", "2026-03-02 2026-03-02T08:00:00Z"),
        ("0 8 * * *", "UTC", "2026-03-02T07:59:59.999999", "2026-03-01 2026-03-01T08:00:00Z"),
        ("0 8 * * *", "UTC", "2026-03-02T08:00:00.000001", "2026-03-02 2026-03-02T08:00:00Z"),
        ("*/15 * * * *", NEW_YORK, "2026-11-01T05:10", "2026-11-01T0100 2026-11-01T05:00:00Z"),
        # 01:10 for the second time: 01:45 has ticked already, in the first pass.
        ("*/15 * * * *", NEW_YORK, "2026-11-01T06:10", "2026-11-01T0145 2026-11-01T05:45:00Z"),
        ("0 2 * * *", NEW_YORK, "2026-11-01T06:59", "2026-10-31 2026-10-31T06:00:00Z"),
        ("30 2 * * *", NEW_YORK, "2026-03-08T07:00", "2026-03-08 2026-03-08T07:00:00Z"),
        ("30 2 * * *", NEW_YORK, "2026-03-08T06:59:59", "2026-03-07 2026-03-07T07:30:00Z"),
        ("0 * * * *", NEW_YORK, "2026-03-08T06:59", "2026-03-08T01 2026-03-08T06:00:00Z"),
        ("45 * * * *", "Pacific/Chatham", "2026-09-26T14:00", "2026-09-27T03 2026-09-26T14:00:00Z"),
    ],
)
def test_previous_tick(cron: str, tz: str, before: str, expected: str) -> None:
    tick = previous_tick(schedule(cron, tz), at(before))
    assert tick is not None
    assert shown(tick) == expected


@pytest.mark.parametrize(
    ("cron", "tz", "period", "text", "expected"),
    [
        ("0 8 * * *", NEW_YORK, "current", "2026-03-08", "2026-03-08T12:00:00Z"),
        ("0 8 * * *", NEW_YORK, "previous", "2026-03-07", "2026-03-08T12:00:00Z"),
        ("0 8 * * 1-5", "UTC", "current", "2026-03-07", None),
        ("0 8 * * 1-5", "UTC", "previous", "2026-03-08", "2026-03-09T08:00:00Z"),
        ("0 8 * * 1-5", "UTC", "previous", "2026-03-06", None),
        ("0 8 * * *", "UTC", "current", "2026-03-07T08", None),
        ("0 * * * *", "UTC", "current", "2026-03-07", None),
        ("0 * * * *", NEW_YORK, "current", "2026-03-08T02", None),
        ("0 * * * *", NEW_YORK, "previous", "2026-03-08T02", None),
        ("0 * * * *", NEW_YORK, "previous", "2026-03-08T01", "2026-03-08T07:00:00Z"),
        ("0 * * * *", NEW_YORK, "current", "2026-11-01T01", "2026-11-01T05:00:00Z"),
        ("30 2 * * *", NEW_YORK, "current", "2026-03-08", "2026-03-08T07:00:00Z"),
        ("*/30 * * * *", "UTC", "current", "2026-03-07T0830", "2026-03-07T08:30:00Z"),
        ("*/30 * * * *", "UTC", "current", "2026-03-07T0831", None),
        ("*/30 * * * *", "UTC", "previous", "2026-03-07T0830", "2026-03-07T09:00:00Z"),
        ("*/30 * * * *", "UTC", "previous", "2026-03-07T0831", None),
        ("0 0 * * *", "Pacific/Apia", "current", "2011-12-30", None),
    ],
)
def test_tick_of_period(cron: str, tz: str, period: str, text: str, expected: str | None) -> None:
    tick = tick_of_period(schedule(cron, tz, period), parse_period(text))
    assert (None if tick is None else format_instant(tick.at)) == expected


def test_the_ends_of_the_calendar_have_no_ticks() -> None:
    yearly = schedule("0 0 29 2 *")
    assert next_tick(yearly, at("9997-01-01T00:00")) is None
    assert previous_tick(yearly, at("0003-01-01T00:00")) is None
    assert previous_tick(schedule("0 0 * * *"), at("0001-01-03T12:00")) is None
    daily = schedule("0 12 * * *")
    assert ticks_on(daily, date(1, 1, 3)) == ticks_on(daily, date(9999, 12, 29)) == []
    first, last = next_tick(daily, at("0001-01-04T00:00")), previous_tick(daily, at("9999-12-27T13:00"))
    assert [first] == ticks_on(daily, date(1, 1, 4))
    assert [last] == ticks_on(daily, date(9999, 12, 27))
    assert next_tick(daily, at("9999-12-28T00:00")) is None
    # The first minute there is has none before it to be the run of.
    assert previous_tick(schedule("* * * * *", period="previous"), at("0001-01-04T00:01")) is None


@pytest.mark.parametrize("cron", [None, "", "61 * * * *", "30 2 31 2 *"])
def test_a_schedule_without_a_readable_cron_is_refused_at_once(cron: str | None) -> None:
    broken = Schedule(cron=cron)
    now = at("2026-03-02T00:00")
    with pytest.raises(InvalidValueError):
        next_tick(broken, now)
    with pytest.raises(InvalidValueError):
        previous_tick(broken, now)
    with pytest.raises(InvalidValueError):
        ticks_between(broken, now, now)
    with pytest.raises(InvalidValueError):
        tick_of_period(broken, parse_period("2026-03-02"))


def test_an_empty_interval_has_no_ticks() -> None:
    now = at("2026-03-02T08:00")
    assert list(ticks_between(schedule("* * * * *"), now, now)) == []


DAILY, HOURLY = ("0 8 * * *", "30 2 * * 1-5", "0 0 1 * *"), ("0 * * * *", "45 * * * *", "30 2,14 * * *")
EXPRESSIONS = (*DAILY, *HOURLY, "*/20 * * * *", "0,45 1-3 * * *")
# The instants at which the clocks of a zone change, for most draws to lie near one.
CHANGES = {
    NEW_YORK: ["2026-03-08T07:00", "2026-11-01T06:00"],
    BERLIN: ["2026-03-29T01:00", "2026-10-25T01:00"],
    "Antarctica/Troll": ["2026-03-29T01:00", "2026-10-25T01:00"],
    "Australia/Lord_Howe": ["2026-04-04T15:00", "2026-10-03T15:30"],
    "Pacific/Chatham": ["2026-04-04T14:00", "2026-09-26T14:00"],
    "Pacific/Apia": ["2011-12-30T10:00"],
}
NEAR = st.sampled_from([(tz, at(text)) for tz, texts in CHANGES.items() for text in texts])
OFFSETS = st.integers(-3 * 3600, 3 * 3600).map(lambda seconds: timedelta(seconds=seconds))
MOMENTS = st.one_of(
    st.builds(lambda near, offset: (near[0], near[1] + offset), NEAR, OFFSETS),
    st.tuples(st.sampled_from(ZONES), st.integers(0, 3 * 10**9).map(lambda epoch: datetime.fromtimestamp(epoch, UTC))),
)
CASES = st.builds(
    lambda cron, period, moment: (schedule(cron, moment[0], period), moment[1]),
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(["current", "previous"]),
    MOMENTS,
)


@given(CASES)
def test_ticks_increase_and_name_a_period_once(case: tuple[Schedule, datetime]) -> None:
    cron, after = case
    ticks = list(ticks_between(cron, after, after + timedelta(days=3)))
    pairs = list(pairwise(ticks))
    assert all(earlier.local < later.local and earlier.at <= later.at for earlier, later in pairs)
    assert all(earlier.period < later.period for earlier, later in pairs)
    if cron.timezone != "Pacific/Chatham":  # its gap begins within an hour that exists
        assert all(earlier.at < later.at for earlier, later in pairs)
    assert all(after < tick.at <= after + timedelta(days=3) for tick in ticks)
    assert all(tick.period.exists(zone(cron.timezone)) for tick in ticks)


@given(CASES)
def test_next_and_previous_are_inverse(case: tuple[Schedule, datetime]) -> None:
    cron, now = case
    following = next_tick(cron, now)
    last = previous_tick(cron, now)
    assert following is not None
    assert last is not None
    assert last.at <= now < following.at
    assert list(ticks_between(cron, last.at, now)) == []
    assert next(ticks_between(cron, now, following.at)) == following
    assert previous_tick(cron, following.at - timedelta(microseconds=1)) == last
    assert next_tick(cron, last.at) == following
    back = previous_tick(cron, following.at)
    assert back is not None
    assert back.at == following.at


@given(CASES)
def test_the_ticks_of_a_day_are_those_that_a_search_finds(case: tuple[Schedule, datetime]) -> None:
    cron, now = case
    day = to_local(now, zone(cron.timezone)).date()
    around = ticks_between(cron, now - timedelta(days=3), now + timedelta(days=3))
    assert ticks_on(cron, day) == [tick for tick in around if tick.local.date() == day]


@given(CASES)
def test_a_run_has_one_tick(case: tuple[Schedule, datetime]) -> None:
    cron, now = case
    for tick in ticks_between(cron, now, now + timedelta(days=2)):
        assert tick_of_period(cron, tick.period) == tick


@given(CASES)
def test_a_tick_is_placed_like_any_local_time(case: tuple[Schedule, datetime]) -> None:
    cron, now = case
    tick = next_tick(cron, now)
    assert tick is not None
    tz = zone(cron.timezone)
    assert tick.at == to_utc(tick.local, tz)
    assert to_local(tick.at, tz) >= tick.local  # later only where the clocks skipped it


@given(MOMENTS, st.sampled_from(["current", "previous"]))
def test_an_hourly_schedule_runs_for_every_hour_that_exists(moment: tuple[str, datetime], period: str) -> None:
    tz, now = moment
    hourly = schedule("0 * * * *", tz, period)
    ticks = list(ticks_between(hourly, now - timedelta(days=1), now + timedelta(days=1)))
    assume(len(ticks) > 1)
    wanted, step = [], ticks[0].period
    while step <= ticks[-1].period:
        wanted += [step] if step.exists(zone(tz)) else []
        step = step.shifted(1)
    assert [tick.period for tick in ticks] == wanted


@pytest.mark.parametrize(
    ("expr", "gap"),
    [
        ("0 8 * * *", timedelta(days=1)),
        ("0 8,9 * * 1", timedelta(hours=1)),
        ("*/20 6-18 * * *", timedelta(minutes=20)),
        ("0 8 * * 1-5", timedelta(days=1)),
        ("0 8 29 2 *", timedelta(days=1461)),
    ],
)
def test_the_shortest_gap_between_ticks(expr: str, gap: timedelta) -> None:
    assert shortest_gap(expr) == gap


FIELDS = (
    ("0", "7", "*/20", "5,50", "*"),
    ("0", "23", "*/6", "1-3", "*"),
    ("*", "1", "29", "31", "L", "LW", "*/10", "15,L"),
    ("*", "2", "2,6", "JAN-MAR"),
    ("*", "1", "5L", "MON#5", "0,7", "SUN", "*/2"),
)
STARTS = st.datetimes(datetime(1950, 1, 1), datetime(2150, 1, 1))  # noqa: DTZ001 - local times


@given(st.tuples(*(st.sampled_from(field) for field in FIELDS)), STARTS, st.booleans())
def test_the_local_times_are_those_of_cronsim(fields: tuple[str, ...], start: datetime, reverse: bool) -> None:
    expr = " ".join(fields)
    try:
        check_cron(expr)
    except InvalidValueError:
        assume(False)
    wanted = list(islice(CronSim(expr, start, reverse=reverse), 5))
    assert list(islice(local_times(expr, start, reverse=reverse), 5)) == wanted

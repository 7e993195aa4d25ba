"""The watchdog's verdicts: what is found, from when on, and what is never found."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.decide.transitions import open_attempt
from interlock.decide.watchdog import (
    GRACE,
    LOOKBACK,
    Finding,
    deadlines_due,
    missed_inclusions,
    missed_ticks,
    post_run_due_at,
    post_run_missing,
    stale,
    stale_at,
    trigger_deadline,
)
from interlock.model.config import (
    Calendar,
    Check,
    Exclude,
    Include,
    PostRun,
    Rule,
    Schedule,
    Trigger,
    Weekday,
)
from interlock.model.durations import Duration
from interlock.model.events import CATALOGUE, EventType
from interlock.model.keys import RunKey
from interlock.model.periods import Period, parse_period
from interlock.model.run import FinalReason, Run, RunStatus, Source

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
CALENDARS = {"closed": Calendar(name="closed", days=[Weekday.MONDAY])}


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}:00+00:00")


def nothing(_: Period) -> bool:
    return False


def everything(_: Period) -> bool:
    return True


def dates(findings: list[Finding]) -> list[str]:
    return [str(finding.period) for finding in findings]


# --------------------------------------------------------------------------------------------------- 1 stale


def a_run(status: RunStatus, lease: datetime | None) -> Run:
    key = RunKey("gold", "cron", "2026-03-02")
    run = open_attempt(None, key, Source.FIRST, at("03-02T08:00"), config_version="v1", lease_until=at("03-02T12:30"))
    reason = FinalReason.STALE if status is RunStatus.FAILED_FINAL else None
    return replace(run, status=status, lease_until=lease, final_reason=reason)


@pytest.mark.parametrize("status", RunStatus)
def test_an_active_run_is_stale_from_the_end_of_its_lease_on(status: RunStatus) -> None:
    lease = at("03-02T12:30")
    run = a_run(status, lease)
    assert stale(run, lease - timedelta(microseconds=1)) is None
    found = stale(run, lease)
    if status.terminal:
        assert found is None
        assert stale_at(run) is None
    else:
        assert stale_at(run) == lease
        assert found == Finding(
            EventType.SFN_TIMEOUT,
            parse_period("2026-03-02"),
            lease,
            f"attempt 1 is {status} past its lease of 2026-03-02T12:30:00Z: nothing drives it any more",
            {"attempt": 1, "status": status.value, "leaseUntil": "2026-03-02T12:30:00Z"},
        )


def test_a_run_without_a_lease_is_not_stale() -> None:
    assert stale(a_run(RunStatus.RUNNING, None), at("12-31T00:00")) is None


# --------------------------------------------------------------------------------------------- 2 missed ticks

DAILY = Schedule(cron="0 8 * * *", timezone="America/New_York")  # 13:00 UTC in winter


@pytest.mark.parametrize(
    ("schedule", "since", "now", "missed"),
    [
        (DAILY, LONG_AGO, at("03-02T13:04"), ["2026-02-28", "2026-03-01"]),
        (DAILY, LONG_AGO, at("03-02T13:05"), ["2026-02-28", "2026-03-01", "2026-03-02"]),
        (DAILY, at("03-02T12:59"), at("03-02T13:05"), ["2026-03-02"]),
        (DAILY, at("03-02T13:00"), at("03-02T13:05"), ["2026-03-02"]),
        (DAILY, at("03-02T13:00") + timedelta(microseconds=1), at("03-02T13:05"), []),
        # `time` moves the expectation, never to before the tick.
        (replace(DAILY, time="09:30"), at("03-02T00:00"), at("03-02T14:34"), []),
        (replace(DAILY, time="09:30"), at("03-02T00:00"), at("03-02T14:35"), ["2026-03-02"]),
        (replace(DAILY, time="06:00"), at("03-02T00:00"), at("03-02T13:04"), []),
        (replace(DAILY, time="06:00"), at("03-02T00:00"), at("03-02T13:05"), ["2026-03-02"]),
        # A tick before anybody watched is not missed, whatever `time` says.
        (replace(DAILY, time="09:30"), at("03-02T13:30"), at("03-02T15:00"), []),
        # What a run is for is not the day of its tick.
        (replace(DAILY, period="previous"), at("03-02T00:00"), at("03-02T13:05"), ["2026-03-01"]),
        # The tick's own day is what the calendar speaks of: 28 February is a Saturday.
        (replace(DAILY, exclude=Exclude(weekends=True)), LONG_AGO, at("03-02T13:05"), ["2026-03-02"]),
        (
            replace(DAILY, period="previous", exclude=Exclude(calendar="closed")),
            LONG_AGO,
            at("03-02T13:05"),
            ["2026-02-27", "2026-02-28"],
        ),
        (
            Schedule(cron="0 * * * *"),
            at("03-02T00:30"),
            at("03-02T03:02"),
            ["2026-03-02T01", "2026-03-02T02"],
        ),
        (Schedule(), LONG_AGO, at("03-02T13:05"), []),
        (Schedule(include=Include(dates=["2026-03-02"])), LONG_AGO, at("03-02T13:05"), []),
    ],
)
def test_which_ticks_are_missed(schedule: Schedule, since: datetime, now: datetime, missed: list[str]) -> None:
    assert dates(missed_ticks(schedule, CALENDARS, since, now, nothing)) == missed
    assert missed_ticks(schedule, CALENDARS, since, now, everything) == []


def test_a_missed_tick_in_words() -> None:
    (found,) = missed_ticks(replace(DAILY, time="09:30"), {}, at("03-02T00:00"), at("03-02T15:00"), nothing)
    assert found == Finding(
        EventType.SCHEDULE_MISSED,
        parse_period("2026-03-02"),
        at("03-02T14:30"),
        "the cron tick of 2026-03-02 08:00 America/New_York opened no run for 2026-03-02, "
        "expected by 2026-03-02T14:30:00Z",
        {"tick": "2026-03-02T13:00:00Z"},
    )


def test_only_runs_that_are_not_there_are_missed() -> None:
    found = missed_ticks(DAILY, {}, LONG_AGO, at("03-02T14:00"), lambda period: str(period) != "2026-03-01")
    assert dates(found) == ["2026-03-01"]


def test_a_skipped_tick_is_expected_after_the_gap() -> None:
    schedule = Schedule(cron="30 2 * * *", timezone="America/New_York")
    since, after_the_gap = at("03-08T00:00"), at("03-08T07:00")
    assert missed_ticks(schedule, {}, since, after_the_gap + GRACE - MINUTE, nothing) == []
    assert dates(missed_ticks(schedule, {}, since, after_the_gap + GRACE, nothing)) == ["2026-03-08"]


@given(st.integers(0, 525_600), st.integers(0, 60), st.integers(0, 10_000))
def test_nothing_is_missed_before_anybody_watched_nor_beyond_the_look_back(
    minute: int, grace: int, watched_minutes: int
) -> None:
    now = at("01-01T00:00") + minute * MINUTE
    since = now - watched_minutes * MINUTE
    schedule = Schedule(cron="0 */6 * * *", timezone="Europe/Berlin")
    found = missed_ticks(schedule, {}, since, now, nothing, grace=grace * MINUTE)
    assert all(max(since, now - LOOKBACK) <= one.due_at <= now - grace * MINUTE for one in found)
    watched = min(LOOKBACK, watched_minutes * MINUTE) - grace * MINUTE
    # Four ticks a day; a change of the clocks moves one by an hour.
    assert abs(len(found) - max(watched, timedelta(0)) / (6 * HOUR)) < 2


# ----------------------------------------------------------------------------------------- 3 missed inclusions

MONTH_END = Schedule(include=Include(dates=["2026-03-31", "2026-03-30"]), timezone="America/New_York", time="08:00")


@pytest.mark.parametrize(
    ("schedule", "since", "now", "missed"),
    [
        (MONTH_END, LONG_AGO, at("03-31T12:04"), ["2026-03-30"]),
        (MONTH_END, LONG_AGO, at("03-31T12:05"), ["2026-03-30", "2026-03-31"]),
        (MONTH_END, at("03-31T12:00"), at("03-31T12:05"), ["2026-03-31"]),
        (MONTH_END, at("03-31T12:01"), at("03-31T12:05"), []),
        (MONTH_END, LONG_AGO, at("04-02T12:01"), ["2026-03-31"]),
        (MONTH_END, LONG_AGO, at("04-03T12:01"), []),
        (replace(MONTH_END, time=None), at("03-31T00:00"), at("03-31T04:04"), []),
        (replace(MONTH_END, time=None), at("03-31T00:00"), at("03-31T04:05"), ["2026-03-31"]),
        (replace(MONTH_END, exclude=Exclude(dates=["2026-03-30"])), LONG_AGO, at("03-31T13:00"), ["2026-03-31"]),
        (replace(MONTH_END, include=Include(calendar="closed")), LONG_AGO, at("03-31T13:00"), ["2026-03-30"]),
        (replace(MONTH_END, include=None), LONG_AGO, at("03-31T13:00"), []),
        (replace(MONTH_END, cron="0 8 * * *"), LONG_AGO, at("03-31T13:00"), []),
    ],
)
def test_which_inclusion_dates_are_missed(
    schedule: Schedule, since: datetime, now: datetime, missed: list[str]
) -> None:
    assert dates(missed_inclusions(schedule, CALENDARS, since, now, nothing)) == missed
    assert missed_inclusions(schedule, CALENDARS, since, now, everything) == []


def test_a_missed_inclusion_date_in_words() -> None:
    (found,) = missed_inclusions(MONTH_END, {}, at("03-31T00:00"), at("03-31T13:00"), nothing)
    assert found == Finding(
        EventType.IRREGULAR_SCHEDULE_MISSED,
        parse_period("2026-03-31"),
        at("03-31T12:00"),
        "the inclusion date 2026-03-31 has no run, expected by 2026-03-31T12:00:00Z",
        {"expectedAt": "2026-03-31T12:00:00Z"},
    )


# -------------------------------------------------------------------------------------------- 6 trigger deadline


def a_schedule(deadline: str | None, timezone: str = "UTC") -> Schedule:
    return Schedule(timezone=timezone, trigger=Trigger(key="ready", check=Check.EXISTS, deadline=deadline))


@pytest.mark.parametrize(
    ("deadline", "timezone", "period", "expected"),
    [
        (None, "UTC", "2026-03-02", None),
        ("09:30", "UTC", "2026-03-02", at("03-02T09:30")),
        ("09:30", "America/New_York", "2026-03-02", at("03-02T14:30")),
        ("09:30", "UTC", "2026-03-02T07", at("03-02T09:30")),
        ("02:30", "America/New_York", "2026-03-08", at("03-08T07:00")),
        (":15", "UTC", "2026-03-02T10", at("03-02T11:15")),
        (":15", "UTC", "2026-03-02T23", at("03-03T00:15")),
        (":15", "UTC", "2026-03-02T1040", at("03-02T11:15")),
        (":15", "America/New_York", "2026-03-08T01", at("03-08T07:00")),
        (":15", "UTC", "2026-03-02", None),
    ],
)
def test_the_deadline_of_a_period(deadline: str | None, timezone: str, period: str, expected: datetime | None) -> None:
    schedule = a_schedule(deadline, timezone)
    assert schedule.trigger is not None
    assert trigger_deadline(schedule.trigger, schedule, parse_period(period)) == expected


@pytest.mark.parametrize(
    ("schedule", "since", "now", "due"),
    [
        (a_schedule("09:30"), at("03-02T00:00"), at("03-02T09:29"), []),
        (a_schedule("09:30"), at("03-02T00:00"), at("03-02T09:30"), ["2026-03-02"]),
        (a_schedule("09:30"), at("03-02T09:30"), at("03-02T10:00"), ["2026-03-02"]),
        (a_schedule("09:30"), at("03-02T09:31"), at("03-02T10:00"), []),
        (a_schedule("09:30"), LONG_AGO, at("03-02T09:30"), ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]),
        (a_schedule(":15"), at("03-02T00:00"), at("03-02T01:15"), ["2026-03-01T23", "2026-03-02T00"]),
        (a_schedule(":15"), at("03-02T00:16"), at("03-02T02:14"), ["2026-03-02T00"]),
        (
            a_schedule(":15", "America/New_York"),  # 02:00 is skipped, 01:15 ends in the gap
            at("03-08T06:30"),
            at("03-08T08:15"),
            ["2026-03-08T01", "2026-03-08T03"],
        ),
        (
            replace(a_schedule("09:30"), exclude=Exclude(weekends=True)),
            at("02-28T00:00"),
            at("03-02T10:00"),
            ["2026-03-02"],
        ),
        (
            replace(a_schedule(":15"), exclude=Exclude(weekends=True)),  # Sunday 23 is due on Monday, and is Sunday's
            at("03-02T00:00"),
            at("03-02T01:15"),
            ["2026-03-02T00"],
        ),
        (
            replace(a_schedule("09:30"), include=Include(dates=["2026-03-01"])),
            at("02-28T00:00"),
            at("03-02T10:00"),
            ["2026-03-01"],
        ),
        # With a cron only the periods it has are awaited.
        (
            replace(a_schedule("09:30"), cron="0 8 * * 1"),
            at("02-28T00:00"),
            at("03-02T10:00"),
            ["2026-03-02"],
        ),
        (
            replace(a_schedule(":15"), cron="0 8,9 * * *"),
            at("03-02T00:00"),
            at("03-02T12:00"),
            ["2026-03-02T08", "2026-03-02T09"],
        ),
        (
            replace(a_schedule(":15"), cron="5 8,9 * * *", period="previous"),
            at("03-02T00:00"),
            at("03-02T12:00"),
            ["2026-03-02T07", "2026-03-02T08"],
        ),
        # The tick was before the controller started, its deadline is not.
        (replace(a_schedule("09:30"), cron="0 8 * * *"), at("03-02T09:00"), at("03-02T09:30"), ["2026-03-02"]),
        # A deadline at or before the tick: the cron opens the run all the same.
        (replace(a_schedule("09:30"), cron="30 9 * * *"), at("03-02T00:00"), at("03-02T12:00"), []),
        (replace(a_schedule("09:30"), cron="0 10 * * *"), at("03-02T00:00"), at("03-02T12:00"), []),
        (
            replace(a_schedule("09:30"), cron="0 8 * * *", period="previous"),
            at("02-28T00:00"),
            at("03-02T12:00"),
            [],
        ),
        (
            replace(a_schedule("09:30"), cron="0 8 * * *", exclude=Exclude(dates=["2026-03-02"])),
            at("03-02T00:00"),
            at("03-02T12:00"),
            [],
        ),
        (a_schedule(None), LONG_AGO, at("03-02T12:00"), []),
        (Schedule(cron="0 8 * * *"), LONG_AGO, at("03-02T12:00"), []),
    ],
)
def test_which_deadlines_have_passed(schedule: Schedule, since: datetime, now: datetime, due: list[str]) -> None:
    assert dates(deadlines_due(schedule, CALENDARS, since, now, nothing)) == due
    assert deadlines_due(schedule, CALENDARS, since, now, everything) == []


def test_a_passed_deadline_in_words() -> None:
    (found,) = deadlines_due(a_schedule("09:30"), {}, at("03-02T00:00"), at("03-02T10:00"), nothing)
    assert found == Finding(
        EventType.SENSOR_DEADLINE_EXPIRED,
        parse_period("2026-03-02"),
        at("03-02T09:30"),
        "ready did not open the run of 2026-03-02 by its deadline 09:30, 2026-03-02T09:30:00Z",
        {"deadline": "09:30", "deadlineAt": "2026-03-02T09:30:00Z"},
    )


@given(
    st.integers(0, 525_600),
    st.integers(0, 6000),
    st.sampled_from(["09:30", "00:00", "23:59", ":00", ":59"]),
    st.sampled_from([None, "0 8 * * *", "0 * * * *"]),
    st.sampled_from(["UTC", "America/New_York", "Pacific/Auckland"]),
)
def test_deadlines_lie_between_the_start_of_the_watch_and_now_and_each_period_is_found_once(
    minute: int, watched_minutes: int, deadline: str, cron: str | None, timezone: str
) -> None:
    now = at("01-01T00:00") + minute * MINUTE
    since = now - watched_minutes * MINUTE
    schedule = replace(a_schedule(deadline, timezone), cron=cron)
    found = deadlines_due(schedule, {}, since, now, nothing)
    assert all(max(since, now - LOOKBACK) <= one.due_at <= now for one in found)
    assert len({one.period for one in found}) == len(found)
    assert all(set(one.detail) == set(CATALOGUE[one.event].fields) for one in found)


# ------------------------------------------------------------------------------------------- 7 post-run sensors

POST_RUN = PostRun(rules=[Rule(key="rows", check=Check.EXISTS)], sensor_timeout=Duration(hours=2))
DONE = at("03-02T08:00")


@pytest.mark.parametrize(
    ("latest", "now", "missing"),
    [
        (None, DONE + 2 * HOUR - MINUTE, False),
        (None, DONE + 2 * HOUR, True),
        (DONE - MINUTE, DONE + 2 * HOUR, True),
        (DONE, DONE + 2 * HOUR, True),
        (DONE + MINUTE, DONE + 2 * HOUR, False),
        (DONE + MINUTE, DONE + DAY, False),
    ],
)
def test_post_run_data_is_missing(latest: datetime | None, now: datetime, missing: bool) -> None:
    assert post_run_missing(DONE, DONE + 2 * HOUR, latest, now) is missing


def test_when_post_run_data_is_due() -> None:
    assert post_run_due_at(POST_RUN, DONE) == at("03-02T10:00")
    assert post_run_due_at(PostRun(), DONE) is None
    assert post_run_due_at(None, DONE) is None

"""When the alerts of a run are due, which to give, and how its SLA ends."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.decide.sla import (
    CLOSED_KEPT,
    KEPT,
    Projection,
    SlaTimes,
    SlaVerdict,
    alert_event_type,
    carried_over,
    completion,
    due,
    forgotten_at,
    is_over,
    is_past,
    next_instants,
    project,
    scheduled_start,
    sla_times,
    state_of,
    watched_from,
    with_arrival,
)
from interlock.model.config import Check, Include, Schedule, Sla, Trigger
from interlock.model.durations import Duration
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.periods import Granularity, Period, parse_period, period_of
from interlock.model.run import SlaKind, SlaOutcome, SlaState
from interlock.model.times import format_instant, to_local, zone

NEW_YORK, BERLIN, KOLKATA = "America/New_York", "Europe/Berlin", "Asia/Kolkata"
LORD_HOWE, APIA, CHATHAM = "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham"
TRIGGER = Trigger(key="upstream", check=Check.EXISTS)
HALF_HOUR = Duration(minutes=30)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(expr: str, tz: str = "UTC") -> Schedule:
    return Schedule(cron=expr, timezone=tz)


def previous(expr: str, tz: str = "UTC") -> Schedule:
    return Schedule(cron=expr, timezone=tz, period="previous")


def sensor(tz: str = "UTC") -> Schedule:
    return Schedule(trigger=TRIGGER, timezone=tz)


def include(time: str | None = None, tz: str = "UTC", trigger: Trigger | None = None) -> Schedule:
    return Schedule(include=Include(dates=["2026-03-31"]), time=time, timezone=tz, trigger=trigger)


def breach_of(schedule: Schedule, sla: Sla, period: str, tick_at: datetime | None = None) -> str:
    breach = sla_times(sla, schedule, parse_period(period), None, tick_at=tick_at).breach_at
    assert breach is not None
    return format_instant(breach).removesuffix(":00Z")


@pytest.mark.parametrize(
    ("schedule", "period", "expected"),
    [
        (cron("0 8 * * *", NEW_YORK), "2026-03-08", "2026-03-08T12:00"),
        (cron("30 2 * * *", NEW_YORK), "2026-03-08", "2026-03-08T07:00"),
        (cron("30 1 * * *", NEW_YORK), "2026-11-01", "2026-11-01T05:30"),
        (previous("0 8 * * *"), "2026-03-02", "2026-03-03T08:00"),
        (cron("0 * * * *", KOLKATA), "2026-03-02T06", "2026-03-02T00:30"),
        # No such tick: the date was asked for by a person.
        (cron("0 8 * * 1-5"), "2026-03-07", "2026-03-07T00:00"),
        (previous("0 8 * * 1-5"), "2026-03-06", "2026-03-07T00:00"),
        (cron("0 8 * * *", BERLIN), "2026-03-02T10", "2026-03-02T09:00"),
        (include(), "2026-03-31", "2026-03-31T00:00"),
        (include("06:30", BERLIN), "2026-03-31", "2026-03-31T04:30"),
        (include("02:30", BERLIN), "2026-03-29", "2026-03-29T01:00"),
        (include("06:30", trigger=TRIGGER), "2026-03-31", "2026-03-31T00:00"),
        (include("06:30"), "2026-03-31T09", "2026-03-31T09:00"),
        (sensor(NEW_YORK), "2026-03-02", "2026-03-02T05:00"),
        (sensor(NEW_YORK), "2026-03-02T10", "2026-03-02T15:00"),
        (Schedule(), "2026-03-02T1015", "2026-03-02T10:15"),
    ],
)
def test_scheduled_start(schedule: Schedule, period: str, expected: str) -> None:
    assert scheduled_start(schedule, parse_period(period)) == at(expected)


@pytest.mark.parametrize(
    ("schedule", "sla", "period", "expected"),
    [
        # Cron: the first such time at or after the tick.
        (cron("0 8 * * *"), Sla(deadline="10:00"), "2026-03-02", "2026-03-02T10:00"),
        (cron("0 8 * * *"), Sla(deadline="08:00"), "2026-03-02", "2026-03-02T08:00"),
        (cron("0 8 * * *"), Sla(deadline="07:59"), "2026-03-02", "2026-03-03T07:59"),
        (cron("0 22 * * *"), Sla(deadline="2:00"), "2026-03-02", "2026-03-03T02:00"),
        (cron("0 8 * * *"), Sla(deadline="10:00", day_offset=2), "2026-03-02", "2026-03-04T10:00"),
        (cron("0 22 * * *"), Sla(deadline="02:00", day_offset=1), "2026-03-02", "2026-03-04T02:00"),
        (previous("0 8 * * *"), Sla(deadline="10:00"), "2026-03-02", "2026-03-03T10:00"),
        (cron("0 * * * *"), Sla(deadline="10:00"), "2026-03-02T10", "2026-03-02T10:00"),
        (cron("0 * * * *"), Sla(deadline="10:00"), "2026-03-02T11", "2026-03-03T10:00"),
        (cron("0 8 * * *", "UTC"), Sla(deadline="10:00", timezone=NEW_YORK), "2026-03-02", "2026-03-02T15:00"),
        (cron("0 8 * * *", KOLKATA), Sla(deadline="10:00"), "2026-03-02", "2026-03-02T04:30"),
        # The tick is evening in New York, so its first 20:00 there is on the day before the run's.
        (cron("0 0 * * *", "UTC"), Sla(deadline="20:00", timezone=NEW_YORK), "2026-03-02", "2026-03-02T01:00"),
        # Inclusion dates: on the date.
        (include(), Sla(deadline="10:00"), "2026-03-31", "2026-03-31T10:00"),
        (include(), Sla(deadline="10:00", day_offset=1), "2026-03-31", "2026-04-01T10:00"),
        (include("11:00"), Sla(deadline="10:00"), "2026-03-31", "2026-04-01T10:00"),
        (include(trigger=TRIGGER), Sla(deadline="10:00"), "2026-03-31", "2026-03-31T10:00"),
        # Sensor-driven and cascaded: the day after.
        (sensor(), Sla(deadline="10:00"), "2026-03-02", "2026-03-03T10:00"),
        (Schedule(), Sla(deadline="10:00"), "2026-03-02", "2026-03-03T10:00"),
        (sensor(), Sla(deadline="10:00", day_offset=0), "2026-03-02", "2026-03-02T10:00"),
        (sensor(), Sla(deadline="10:00", day_offset=3), "2026-03-02", "2026-03-05T10:00"),
        (sensor(), Sla(deadline="10:00"), "2026-03-02T15", "2026-03-03T10:00"),
        (sensor(), Sla(deadline="10:00", day_offset=0), "2026-03-02T09", "2026-03-02T10:00"),
        (sensor(), Sla(deadline="10:00", day_offset=0), "2026-03-02T15", "2026-03-03T10:00"),
        (sensor(), Sla(deadline="10:00", day_offset=0), "2026-03-02T1015", "2026-03-03T10:00"),
        (sensor("UTC"), Sla(deadline="10:00", day_offset=0, timezone=APIA), "2026-03-02", "2026-03-02T21:00"),
        (sensor(NEW_YORK), Sla(deadline="02:30"), "2026-03-07", "2026-03-08T07:00"),
        (sensor(NEW_YORK), Sla(deadline="01:30"), "2026-10-31", "2026-11-01T05:30"),
        (sensor(BERLIN), Sla(deadline="02:30"), "2026-03-28", "2026-03-29T01:00"),
        (sensor(BERLIN), Sla(deadline="02:30"), "2026-10-24", "2026-10-25T00:30"),
        (sensor(LORD_HOWE), Sla(deadline="02:15"), "2026-10-03", "2026-10-03T15:30"),
        (sensor(LORD_HOWE), Sla(deadline="01:45"), "2026-04-04", "2026-04-04T14:45"),
        (sensor(APIA), Sla(deadline="10:00"), "2011-12-29", "2011-12-30T10:00"),
        # A day on the wall clock, not 24 hours.
        (cron("0 8 * * *", NEW_YORK), Sla(deadline="07:00"), "2026-03-07", "2026-03-08T11:00"),
        (cron("0 8 * * *", NEW_YORK), Sla(deadline="07:00"), "2026-10-31", "2026-11-01T12:00"),
    ],
)
def test_breach_at_a_clock_time(schedule: Schedule, sla: Sla, period: str, expected: str) -> None:
    assert breach_of(schedule, sla, period) == expected


@pytest.mark.parametrize(
    ("schedule", "sla", "period", "expected"),
    [
        (sensor(), Sla(deadline=":30"), "2026-03-02T10", "2026-03-02T11:30"),
        (sensor(), Sla(deadline=":00"), "2026-03-02T10", "2026-03-02T11:00"),
        (sensor(), Sla(deadline=":30"), "2026-03-02T23", "2026-03-03T00:30"),
        (sensor(), Sla(deadline=":30"), "2026-03-02", "2026-03-03T00:30"),
        (sensor(), Sla(deadline=":30"), "2026-03-02T1059", "2026-03-02T11:30"),
        (sensor(), Sla(deadline=":30", day_offset=1), "2026-03-02T10", "2026-03-03T11:30"),
        (cron("0 * * * *"), Sla(deadline=":15"), "2026-03-02T10", "2026-03-02T11:15"),
        (previous("10 * * * *"), Sla(deadline=":15"), "2026-03-02T10", "2026-03-02T11:15"),
        # The run of hour 10 starts at 11:45: half past eleven would be before it.
        (previous("45 * * * *"), Sla(deadline=":30"), "2026-03-02T10", "2026-03-02T12:30"),
        # The run's hour is one of the schedule's zone; so are its minutes.
        (sensor(KOLKATA), Sla(deadline=":15"), "2026-03-02T10", "2026-03-02T05:45"),
        (sensor(), Sla(deadline=":15", timezone=KOLKATA), "2026-03-02T10", "2026-03-02T11:15"),
        (sensor(NEW_YORK), Sla(deadline=":30"), "2026-03-08T01", "2026-03-08T07:00"),
        (sensor(NEW_YORK), Sla(deadline=":30"), "2026-11-01T00", "2026-11-01T05:30"),
        (sensor(NEW_YORK), Sla(deadline=":30"), "2026-11-01T01", "2026-11-01T07:30"),
        (sensor(BERLIN), Sla(deadline=":30"), "2026-10-25T02", "2026-10-25T02:30"),
        (sensor(LORD_HOWE), Sla(deadline=":10"), "2026-10-04T01", "2026-10-03T15:30"),
    ],
)
def test_breach_in_the_hour_after(schedule: Schedule, sla: Sla, period: str, expected: str) -> None:
    assert breach_of(schedule, sla, period) == expected


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [(cron("0 8 * * *"), "2026-03-04T10:00"), (sensor(), "2026-03-03T10:00")],
)
def test_the_tick_that_opened_a_run_counts_for_cron_only(schedule: Schedule, expected: str) -> None:
    assert breach_of(schedule, Sla(deadline="10:00"), "2026-03-02", at("2026-03-03T12:00")) == expected


ARRIVED = at("2026-03-02T08:00")
FOUR_HOURS, TWENTY_MINUTES = Duration(hours=4), Duration(minutes=20)


def relative(longest: Duration, deadline: str | None = None) -> Sla:
    return Sla(deadline=deadline, max_duration=longest, expected_duration=HALF_HOUR)


@pytest.mark.parametrize(
    ("sla", "first_arrival", "deadline", "expected"),
    [
        (Sla(), ARRIVED, "", "- - - -"),
        (Sla(expected_duration=HALF_HOUR), ARRIVED, "", "- - - -"),
        (Sla(deadline="10:00"), None, "10:00", "- 03T10:00 - -"),
        (Sla(deadline="10:00", expected_duration=HALF_HOUR), None, "10:00", "03T09:30 03T10:00 - -"),
        (Sla(max_duration=FOUR_HOURS), None, "maxDuration 4h", "- - - -"),
        (Sla(max_duration=FOUR_HOURS), ARRIVED, "maxDuration 4h", "- - 02T11:00 02T12:00"),
        (relative(FOUR_HOURS), ARRIVED, "maxDuration 4h", "- - 02T11:30 02T12:00"),
        (relative(TWENTY_MINUTES), ARRIVED, "maxDuration 20m", "- - 02T08:00 02T08:20"),
        (relative(FOUR_HOURS, "10:00"), ARRIVED, "10:00", "03T09:30 03T10:00 02T11:30 02T12:00"),
    ],
)
def test_the_four_instants(sla: Sla, first_arrival: datetime | None, deadline: str, expected: str) -> None:
    moments = [None if text == "-" else at(f"2026-03-{text}") for text in expected.split()]
    assert sla_times(sla, sensor(), parse_period("2026-03-02"), first_arrival) == SlaTimes(deadline, *moments)


@pytest.mark.parametrize(
    ("schedule", "sla", "period", "expected"),
    [
        (cron("0 8 * * *"), Sla(ready_by="09:00"), "2026-03-02", "2026-03-02T09:00:00Z"),
        (cron("0 8 * * *"), Sla(ready_by="07:00", deadline="10:00"), "2026-03-02", "2026-03-03T07:00:00Z"),
        (sensor(), Sla(ready_by="09:00"), "2026-03-02", "2026-03-03T09:00:00Z"),
        (sensor(), Sla(ready_by="09:00", day_offset=0), "2026-03-02", "2026-03-02T09:00:00Z"),
        (sensor(), Sla(ready_by=":20"), "2026-03-02T10", "2026-03-02T11:20:00Z"),
        (include(), Sla(ready_by="09:00"), "2026-03-31", "2026-03-31T09:00:00Z"),
        (sensor(NEW_YORK), Sla(ready_by="02:30"), "2026-03-07", "2026-03-08T07:00:00Z"),
    ],
)
def test_ready_by_is_computed_as_a_deadline_is(schedule: Schedule, sla: Sla, period: str, expected: str) -> None:
    ready = sla_times(sla, schedule, parse_period(period), None).ready_by_at
    assert ready is not None
    assert format_instant(ready) == expected
    assert f"{breach_of(schedule, replace(sla, deadline=sla.ready_by), period)}:00Z" == expected


def test_an_sla_beyond_the_calendar_is_refused() -> None:
    eternal = Sla(deadline="10:00", expected_duration=Duration(days=3660))
    with pytest.raises(InvalidValueError, match="0005-01-01"):
        sla_times(eternal, sensor(), parse_period("0005-01-01"), None)


PERIODS = st.builds(
    period_of,
    st.one_of(
        st.datetimes(datetime.fromisoformat("2000-01-01"), datetime.fromisoformat("2037-12-31")),
        st.tuples(
            st.sampled_from(["2026-03-08", "2026-11-01", "2026-03-29", "2026-10-25", "2026-10-04", "2011-12-30"]),
            st.integers(-30, 30),
        ).map(lambda drawn: datetime.fromisoformat(drawn[0]) + timedelta(hours=drawn[1])),
    ),
    st.sampled_from(Granularity),
)
ZONES = st.sampled_from(["UTC", NEW_YORK, BERLIN, KOLKATA, LORD_HOWE, APIA, CHATHAM])
SCHEDULES = st.one_of(
    st.builds(cron, st.sampled_from(["0 8 * * *", "30 2 * * *", "15 * * * *", "*/20 * * * *", "45 23 * * 1-5"]), ZONES),
    st.builds(previous, st.sampled_from(["0 8 * * *", "30 2 * * *", "45 * * * *", "*/20 * * * *"]), ZONES),
    st.builds(include, st.sampled_from([None, "02:30", "23:59"]), ZONES),
    st.builds(sensor, ZONES),
)
SLAS = st.builds(
    Sla,
    deadline=st.one_of(st.times().map(lambda clock: f"{clock:%H:%M}"), st.integers(0, 59).map(lambda m: f":{m:02}")),
    expected_duration=st.none() | st.integers(0, 86400).map(lambda seconds: Duration(seconds=seconds)),
    max_duration=st.none() | st.integers(1, 86400).map(lambda seconds: Duration(seconds=seconds)),
    day_offset=st.none() | st.integers(0, 5),
    timezone=st.none() | ZONES,
)


@given(SLAS, SCHEDULES, PERIODS)
def test_a_breach_never_precedes_the_start(sla: Sla, schedule: Schedule, period: Period) -> None:
    start = scheduled_start(schedule, period)
    times = sla_times(sla, schedule, period, start)
    assert times.breach_at is not None
    assert times.breach_at >= start
    assert (times.warning_at is None) == (sla.expected_duration is None)
    assert times.warning_at is None or times.warning_at <= times.breach_at
    if sla.max_duration is not None:
        assert times.relative_warning_at is not None
        assert times.relative_breach_at is not None
        assert start <= times.relative_warning_at <= times.relative_breach_at


@given(SLAS, SCHEDULES, PERIODS)
def test_a_breach_shows_the_deadline_unless_the_clocks_skip_it(sla: Sla, schedule: Schedule, period: Period) -> None:
    breach = sla_times(sla, schedule, period, None).breach_at
    assert breach is not None
    assert sla.deadline is not None
    hourly = sla.deadline.startswith(":")
    tz = zone(schedule.timezone if hourly else sla.timezone or schedule.timezone)
    before, shown = (to_local(breach - timedelta(seconds=back), tz) for back in (1, 0))
    assert f"{shown:%H:%M}".endswith(sla.deadline) or shown - before > timedelta(seconds=1)


R, W, B = SlaKind.READINESS, SlaKind.WARNING, SlaKind.BREACH
RW, RB = SlaKind.RELATIVE_WARNING, SlaKind.RELATIVE_BREACH
# Ready at 8, warnings at 9 and 11, breaches at 10 and 12.
HOURS = {R: 8, W: 9, B: 10, RW: 11, RB: 12}


def hour(hours: float) -> datetime:
    return at("2026-03-02T00:00") + timedelta(hours=hours)


def state(*kinds: SlaKind, fired: tuple[SlaKind, ...] = (), outcome: SlaOutcome | None = None) -> SlaState:
    moments = {kind: hour(HOURS[kind]) for kind in kinds}
    return SlaState(
        pipeline="gold",
        schedule="cron",
        date="2026-03-02",
        version=1,
        config_version="c",
        deadline="10:00",
        ready_by="08:00",
        ready_by_at=moments.get(R),
        warning_at=moments.get(W),
        breach_at=moments.get(B),
        relative_warning_at=moments.get(RW),
        relative_breach_at=moments.get(RB),
        fired={kind: hour(HOURS[kind]) for kind in fired},
        outcome=outcome,
    )


@pytest.mark.parametrize(
    ("sla", "now", "expected"),
    [
        (state(), 24, ()),
        (state(W, B), 8.99, ()),
        (state(W, B), 9, (W,)),
        (state(W, B), 9.99, (W,)),
        (state(W, B), 10, (B,)),
        (state(W, B, fired=(W,)), 9.5, ()),
        (state(W, B, fired=(W,)), 10, (B,)),
        (state(W, B, fired=(B,)), 24, ()),
        (state(W, B, fired=(W, B)), 24, ()),
        (state(B), 9.5, ()),
        (state(B), 10, (B,)),
        (state(RW, RB), 11, (RW,)),
        (state(RW, RB), 12, (RB,)),
        (state(W, B, RW, RB), 11, (B, RW)),
        (state(W, B, RW, RB), 24, (B, RB)),
        (state(W, B, RW, RB, fired=(B,)), 24, (RB,)),
        (state(W, B, RW, RB, fired=(RB,)), 9, (W,)),
        (state(R), 7.99, ()),
        (state(R), 8, (R,)),
        (state(R, W, B), 9, (R, W)),
        (state(R, W, B, fired=(R,)), 9, (W,)),
        # The breach says what is awaited, too.
        (state(R, W, B), 10, (B,)),
        (state(R, W, B, fired=(B,)), 24, ()),
        (state(R, RW, RB), 24, (R, RB)),
        (replace(state(R, W, B), ready_at=hour(7)), 9, (W,)),
        (replace(state(R, W, B, RW, RB), back_fill=True), 24, ()),
        *((state(R, W, B, RW, RB, outcome=outcome), 24, ()) for outcome in SlaOutcome),
    ],
)
def test_due(sla: SlaState, now: float, expected: tuple[SlaKind, ...]) -> None:
    assert due(sla, hour(now)) == expected


@pytest.mark.parametrize(
    ("sla", "expected"),
    [
        (state(), []),
        (state(R, W, B, RW, RB), [R, W, B, RW, RB]),
        (replace(state(R, W, B), ready_at=hour(7)), [W, B]),
        (replace(state(R, W, B), back_fill=True), []),
        (state(W, B, fired=(W,)), [B]),
        (state(W, B, RW, RB, fired=(B,)), [RW, RB]),
        (state(W, B, RW, RB, fired=(B, RW)), [RB]),
        (state(W, B, outcome=SlaOutcome.MET), []),
        (state(W, B, outcome=SlaOutcome.CANCELLED), []),
    ],
)
def test_next_instants(sla: SlaState, expected: list[SlaKind]) -> None:
    assert next_instants(sla) == {kind: hour(HOURS[kind]) for kind in expected}


@given(st.sets(st.sampled_from(SlaKind)), st.lists(st.floats(0, 24), max_size=6))
def test_each_alert_is_given_once_and_no_breach_is_missed(kinds: set[SlaKind], looks: list[float]) -> None:
    given_alerts: list[SlaKind] = []
    for now in [*sorted(looks), 24.0]:
        given_alerts += due(state(*kinds, fired=tuple(given_alerts)), hour(now))
    assert len(given_alerts) == len(set(given_alerts))
    assert {B, RB} & kinds <= set(given_alerts) <= kinds
    for warning, breach in ((W, B), (RW, RB), (R, B)):
        order = [kind for kind in given_alerts if kind in (warning, breach)]
        assert order in ([], [warning], [breach], [warning, breach])


MET, RECOVERED = SlaOutcome.MET, SlaOutcome.RECOVERED


@pytest.mark.parametrize(
    ("sla", "completed", "expected"),
    [
        (state(), 8, None),
        (state(W, B, outcome=RECOVERED), 8, None),
        (state(W, B, outcome=SlaOutcome.CANCELLED), 8, None),
        (state(W, B), 8.5, (MET, 5400, 10)),
        (state(W, B), 9, (RECOVERED, 3600, 10)),
        (state(W, B), 10, (RECOVERED, 0, 10)),
        (state(W, B), 11, (RECOVERED, -3600, 10)),
        (state(B), 9.5, (MET, 1800, 10)),
        (state(B), 10, (RECOVERED, 0, 10)),
        (state(RW, RB), 10.5, (MET, 5400, 12)),
        (state(RW, RB), 11.5, (RECOVERED, 1800, 12)),
        (state(B, RW, RB), 9.5, (MET, 1800, 10)),
        (state(B, RW, RB), 10.5, (RECOVERED, -1800, 10)),
        (state(W, B, fired=(W,)), 8.5, (RECOVERED, 5400, 10)),
        # Ready late and done in time.
        (state(R, W, B, fired=(R,)), 8.5, (MET, 5400, 10)),
        (state(R, fired=(R,)), 8.5, None),
        (replace(state(W, B), back_fill=True), 11, (RECOVERED, -3600, 10)),
    ],
)
def test_completion(sla: SlaState, completed: float, expected: tuple[SlaOutcome, int, int] | None) -> None:
    verdict = completion(sla, hour(completed))
    if expected is None:
        assert verdict is None
    else:
        outcome, margin, breach = expected
        assert verdict == SlaVerdict(outcome, margin, "10:00", hour(breach))


@pytest.mark.parametrize(("late_by", "margin"), [(-0.5, 0), (0.5, -1), (1.0, -1), (1.5, -2), (-1.5, 1)])
def test_the_margin_is_rounded_down(late_by: float, margin: int) -> None:
    verdict = completion(state(B), hour(10) + timedelta(seconds=late_by))
    assert verdict is not None
    assert verdict.margin_seconds == margin


@pytest.mark.parametrize(
    ("sla", "after"),
    [
        (state(W, B), None),
        (state(W, B, fired=(W,)), None),
        (state(W, B, RW, RB, fired=(B,)), None),
        (state(), 24),
        (state(W, B, fired=(B,)), 24),
        (state(B, RB, fired=(B, RB)), 24),
        (replace(state(W, B), fired={B: hour(70)}), 70),
        (replace(state(B, RB), fired={B: hour(70), RB: hour(12)}), 70),
    ],
)
def test_a_record_goes_long_after_its_period_and_its_last_alert(sla: SlaState, after: float | None) -> None:
    assert forgotten_at(sla) == (None if after is None else (hour(after) + KEPT).timestamp())


@pytest.mark.parametrize("outcome", SlaOutcome)
def test_a_record_that_was_closed_goes_after_a_few_days(outcome: SlaOutcome) -> None:
    closed = replace(state(W, B, outcome=outcome), closed_at=hour(9))
    assert forgotten_at(closed) == (hour(9) + CLOSED_KEPT).timestamp()


def test_a_period_is_past_as_long_after_its_end() -> None:
    period = parse_period("2026-03-02")
    assert not is_past(period, hour(24) + KEPT - timedelta(seconds=1))
    assert is_past(period, hour(24) + KEPT)


def test_the_end_of_the_calendar_is_never_past() -> None:
    assert forgotten_at(replace(state(), date="9998-12-31")) is not None
    assert not is_past(parse_period("9998-12-31"), hour(0))


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - wall clock
    st.sampled_from(Granularity),
    st.sets(st.sampled_from(SlaKind)),
    st.lists(st.integers(-(10**8), 10**8), min_size=5, max_size=5),
)
def test_whoever_finds_no_record_of_an_open_sla_arms_none(
    local: datetime, granularity: Granularity, kinds: set[SlaKind], given_at: list[int]
) -> None:
    period = period_of(local, granularity)
    fired = {kind: hour(0) + timedelta(seconds=given_at[index]) for index, kind in enumerate(sorted(kinds))}
    until = forgotten_at(replace(state(*kinds), date=str(period), fired=fired))
    assert until is None or is_past(period, datetime.fromtimestamp(until, UTC))


# ------------------------------------------------------------------------------------- states that are computed anew

KEY = RunKey("gold", "stream", "2026-03-02")
TERMS = Sla(deadline="10:00", ready_by="08:00", expected_duration=HALF_HOUR, max_duration=Duration(hours=4))


def test_a_state_is_what_the_config_defines_before_anything_has_come_of_it() -> None:
    found = state_of(replace(TERMS, critical=True), sensor(), KEY, "v1", hour(1))
    assert found == SlaState(
        pipeline="gold",
        schedule="stream",
        date="2026-03-02",
        version=1,
        config_version="v1",
        deadline="10:00",
        ready_by="08:00",
        ready_by_at=at("2026-03-03T08:00"),
        warning_at=at("2026-03-03T09:30"),
        breach_at=at("2026-03-03T10:00"),
        relative_warning_at=hour(4.5),
        relative_breach_at=hour(5),
        first_arrival=hour(1),
        critical=True,
    )
    bare = state_of(Sla(max_duration=Duration(hours=4)), sensor(), KEY, "v1")
    assert (bare.ready_by, bare.ready_by_at, bare.relative_breach_at, bare.critical) == ("", None, None, False)


def test_a_state_that_has_ended_stays_ended_when_its_config_changes() -> None:
    ended = replace(state_of(TERMS, sensor(), KEY, "v1"), outcome=MET, closed_at=hour(9), back_fill=True)
    later = carried_over(state_of(replace(TERMS, deadline="11:00"), sensor(), KEY, "v2"), ended)
    assert (later.outcome, later.closed_at, later.back_fill) == (MET, hour(9), True)


def test_a_state_that_says_the_same_is_the_same_record() -> None:
    before = replace(state_of(TERMS, sensor(), KEY, "v1", hour(1)), version=4, fired={W: hour(9)}, ready_at=hour(8))
    assert carried_over(state_of(TERMS, sensor(), KEY, "v2", hour(1)), before) is before
    assert carried_over(state_of(TERMS, sensor(), KEY, "v2"), None).version == 1


def test_a_state_that_changed_keeps_what_came_of_it() -> None:
    before = replace(state_of(TERMS, sensor(), KEY, "v1"), version=4, fired={W: hour(9)}, ready_at=hour(8))
    later = carried_over(state_of(replace(TERMS, deadline="11:00"), sensor(), KEY, "v2"), before)
    assert (later.version, later.config_version, later.deadline) == (5, "v2", "11:00")
    assert later.breach_at == at("2026-03-03T11:00")
    assert (later.fired, later.ready_at) == ({W: hour(9)}, hour(8))


def test_an_arrival_starts_the_clock_of_max_duration_and_no_other() -> None:
    before = replace(state_of(TERMS, sensor(), KEY, "v1"), warning_at=None, version=2)
    arrived = with_arrival(before, TERMS, hour(6))
    assert (arrived.version, arrived.first_arrival, arrived.relative_breach_at) == (3, hour(6), hour(10))
    assert (arrived.warning_at, arrived.breach_at) == (None, before.breach_at)


@pytest.mark.parametrize(
    ("sla", "since", "pending"),
    [
        (state(R, W, B), 0, [R, W, B]),
        (state(R, W, B), 8, [R, W, B]),
        (state(R, W, B), 8.5, [W, B]),
        (state(R, W, B), 9.5, [B]),
        (state(R, W, B), 10, [B]),
        (state(R, W, B), 10.5, []),
        (state(R), 8, [R]),
        (state(R), 8.5, []),
        (state(B), 9.5, [B]),
        (state(B), 10.5, []),
        # The clock of maxDuration is that of a sensor which did come.
        (state(RW, RB), 24, [RW, RB]),
    ],
)
def test_nothing_is_promised_for_an_instant_that_nobody_watched(
    sla: SlaState, since: float, pending: list[SlaKind]
) -> None:
    assert list(next_instants(watched_from(sla, hour(since)))) == pending


@pytest.mark.parametrize(
    ("sla", "over_from"),
    [(state(R, W, B), 10), (state(B, RW, RB), 10), (state(RW, RB), 12), (state(R), 8), (state(), None)],
)
def test_is_over(sla: SlaState, over_from: float | None) -> None:
    for now in (7.99, 8, 9.99, 10, 11.99, 12, 24):
        assert is_over(sla, hour(now)) is (over_from is not None and now >= over_from)


def test_every_alert_has_its_event() -> None:
    named = [EventType.SLA_WARNING, EventType.SLA_BREACH, EventType.RELATIVE_SLA_WARNING, EventType.RELATIVE_SLA_BREACH]
    assert [alert_event_type(kind) for kind in (W, B, RW, RB)] == named
    assert alert_event_type(R) is EventType.READINESS_LATE


@pytest.mark.parametrize(
    ("times", "status", "margin"),
    [
        (SlaTimes(""), "n/a", None),
        (SlaTimes("10:00", None, hour(10)), "met", 3600),
        (SlaTimes("09:00", None, hour(9)), "met", 0),
        (SlaTimes("08:00", None, hour(8)), "breach", -3600),
        (SlaTimes("10:00", None, hour(10), hour(8), hour(8.5)), "breach", -1800),
        (SlaTimes("maxDuration 2h", None, None, hour(9.5), hour(10)), "met", 3600),
    ],
)
def test_projection(times: SlaTimes, status: str, margin: int | None) -> None:
    projection = project(Sla(), times, hour(9))
    assert (projection.status, projection.margin_seconds) == (status, margin)
    assert (projection.estimated_completion, projection.deadline) == (hour(9), times.deadline)
    assert projection.breach_at == (None if margin is None else hour(9) + timedelta(seconds=margin))


def test_a_pipeline_without_an_sla_has_nothing_to_project() -> None:
    assert project(None, None, hour(9)) == Projection("n/a", hour(9), "", None, None)

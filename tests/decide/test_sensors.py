"""The period of a write, and the sensor that counts for a run."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.sensors import (
    Concerned,
    Reading,
    candidate_keys,
    choose,
    concerned,
    key_matches,
    merged,
    period_of_write,
    run_period,
    run_scope,
    scope_of,
    select,
    trigger_match,
)
from interlock.model.config import Check, Schedule, Trigger
from interlock.model.periods import Granularity, Period, parse_period, period_of
from interlock.model.sensor import Sensor
from interlock.model.times import zone

UTC_ZONE = zone("UTC")
NEW_YORK = zone("America/New_York")
DAY = parse_period("2026-03-02")
SCOPE = run_scope(DAY, UTC_ZONE)
K = Reading("k")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NOW = datetime(2026, 3, 2, 13, tzinfo=UTC)


def sensor(key: str, data: dict[str, Any] | None = None, at: datetime = NOON, ttl: int | None = None) -> Sensor:
    return Sensor(key, data or {}, at, ttl)


def by_key(*sensors: Sensor) -> dict[str, Sensor]:
    return {one.key: one for one in sensors}


@pytest.mark.parametrize(
    ("key", "data", "expected"),
    [
        ("k", {}, None),
        ("k", {"date": None, "hour": None}, None),
        ("k", {"date": "2026-03-02"}, "2026-03-02"),
        ("k", {"date": "20260302"}, "2026-03-02"),
        ("k", {"date": "2026-03-02", "hour": 0}, "2026-03-02T00"),
        ("k", {"date": "2026-03-02", "hour": 23}, "2026-03-02T23"),
        ("k", {"date": "2026-03-02", "hour": "7"}, "2026-03-02T07"),
        ("k", {"date": "20260302", "hour": "07"}, "2026-03-02T07"),
        ("k", {"date": "2026-03-02", "hour": 10.0}, "2026-03-02T10"),
        ("k", {"date": "2026-03-02", "hour": Decimal(10)}, "2026-03-02T10"),
        ("k", {"date": "2026-03-02", "hour": None}, "2026-03-02"),
        ("k#2026-03-03T10", {}, "2026-03-03T10"),
        ("k#20260303T10", {}, "2026-03-03T10"),
        ("k#20260303T1015", {}, "2026-03-03T1015"),
        ("k", {"date": 20260302}, "2026-03-02"),
        ("k", {"date": 20260302.0}, "2026-03-02"),
        ("k", {"date": 20260302, "hour": 7}, "2026-03-02T07"),
        ("k#2026-03-03", {"date": "2026-03-02"}, "2026-03-02"),
        ("k#2026-03-03", {"date": 20260303}, "2026-03-03"),
        ("k#2026-03-03T10", {"hour": 10}, "2026-03-03T10"),
        ("k#20260303T10", {"hour": "10"}, "2026-03-03T10"),
        ("k#2026-03-03T1015", {"hour": 10}, "2026-03-03T1015"),
        ("k#2026-03-03T10", {"date": "2026-03-03"}, "2026-03-03T10"),
        ("k#2026-03-03T10", {"date": "2026-03-03", "hour": 10}, "2026-03-03T10"),
        ("k#2026-03-03T10", {"date": "2026-03-03", "hour": 11}, "2026-03-03T11"),
        ("k#2026-03-03", {"hour": 10}, "2026-03-03T10"),
        ("k#2026-03-03", {"date": None}, "2026-03-03"),
        ("k#part-1", {}, None),
        ("upstream:silver", {"date": "2026-03-02T10"}, "2026-03-02T10"),
        ("upstream:silver", {"date": "2026-03-02"}, "2026-03-02"),
    ],
)
def test_period_of_a_write(key: str, data: dict[str, Any], expected: str | None) -> None:
    found = period_of_write(key, data)
    assert found.problem == ""
    assert found.period == (parse_period(expected) if expected else None)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"date": ""}, 'date is ""'),
        ({"date": "yesterday"}, 'date is "yesterday"'),
        ({"date": "2026-02-30"}, "not a day"),
        ({"date": "2026-3-2"}, "not a day"),
        ({"date": "2026-03-02T10"}, "not a day"),
        ({"date": "2026-03-02T10:00:00Z"}, "not a day"),
        ({"date": " 2026-03-02"}, "not a day"),
        ({"date": 20260230}, "not a day"),
        ({"date": 260302}, "not a day"),
        ({"date": -20260302}, "not a day"),
        ({"date": 20260302.5}, "not a day"),
        ({"date": 2026030}, "not a day"),
        ({"date": 202603021}, "not a day"),
        ({"date": 10**5000}, "not a day"),
        ({"date": 1e300}, "not a day"),
        ({"date": float("nan")}, "not a day"),
        ({"date": True}, "not a day"),
        ({"date": ["2026-03-02"]}, "not a day"),
        ({"date": "2026-03-02", "hour": 24}, "hour is 24"),
        ({"date": "2026-03-02", "hour": -1}, "hour is -1"),
        ({"date": "2026-03-02", "hour": 10.5}, "hour is 10.5"),
        ({"date": "2026-03-02", "hour": float("nan")}, "not an hour"),
        ({"date": "2026-03-02", "hour": 1e300}, "not an hour"),
        ({"date": "2026-03-02", "hour": 23.5}, "not an hour"),
        ({"date": "2026-03-02", "hour": True}, "hour is true"),
        ({"date": "2026-03-02", "hour": "ten"}, 'hour is "ten"'),
        ({"date": "2026-03-02", "hour": "24"}, 'hour is "24"'),
        ({"date": "2026-03-02", "hour": "-1"}, "not an hour"),
        ({"date": "2026-03-02", "hour": "٣"}, "not an hour"),
        ({"date": "2026-03-02", "hour": []}, "not an hour"),
    ],
)
@pytest.mark.parametrize("key", ["k", "k#2026-03-02"])
def test_a_malformed_period_is_told_not_guessed(key: str, data: dict[str, Any], problem: str) -> None:
    found = period_of_write(key, data)
    assert found.period is None
    assert problem in found.problem


@pytest.mark.parametrize(
    ("key", "hour", "problem"),
    [
        ("k", 10, "hour is 10 but there is no date"),
        ("k#part-1", 10, "hour is 10 but there is no date"),
        ("k#2026-03-03T10", 11, "hour is 11, but the key says 2026-03-03T10"),
        ("k#2026-03-03T1015", 11, "hour is 11, but the key says 2026-03-03T1015"),
        ("k#2026-03-03T10", 24, "not an hour"),
    ],
)
def test_an_hour_alone_must_agree_with_the_key(key: str, hour: int, problem: str) -> None:
    found = period_of_write(key, {"hour": hour})
    assert found.period is None
    assert problem in found.problem


@given(
    st.dictionaries(
        st.sampled_from(["date", "hour"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just("2026-03-02"),
    )
)
def test_period_of_any_write_is_read_or_refused(data: dict[str, Any]) -> None:
    found = period_of_write("k", data)
    assert (found.period is None) or not found.problem
    named = any(value is not None for value in data.values())
    assert named == (found.period is not None or bool(found.problem))


@pytest.mark.parametrize(
    ("received", "tz", "expected"),
    [
        ("2026-03-02T03:00:00+00:00", UTC_ZONE, "2026-03-02"),
        ("2026-03-02T03:00:00+00:00", NEW_YORK, "2026-03-01"),
        ("2026-03-02T05:00:00+00:00", NEW_YORK, "2026-03-02"),
    ],
)
def test_without_a_period_a_write_is_of_the_day_it_was_received(received: str, tz: Any, expected: str) -> None:
    schedule = Schedule(timezone=str(tz))
    assert str(run_period(schedule, sensor("k", at=datetime.fromisoformat(received)))) == expected


def test_a_write_opens_the_run_of_its_own_period() -> None:
    assert run_period(Schedule(), sensor("k#20260301T10")) == parse_period("2026-03-01T10")


def test_a_cron_fixes_how_long_the_periods_are() -> None:
    daily, hourly = Schedule(cron="0 8 * * *"), Schedule(cron="0 * * * *")
    hour, day = sensor("k#20260301T10"), sensor("k", {"date": "2026-03-01"})
    assert run_period(daily, hour) == parse_period("2026-03-01")
    assert run_period(hourly, hour) == parse_period("2026-03-01T10")
    assert run_period(hourly, day) == "2026-03-01 is one day, but each run of this schedule is for one hour"


@pytest.mark.parametrize(
    ("granularity", "key", "data", "expected"),
    [
        ("hour", "k", {}, "2026-03-01T14"),
        ("hour", "k", {"date": "2026-03-01"}, "2026-03-01T14"),
        ("hour", "k#2026-03-01", {}, "2026-03-01T14"),
        ("hour", "k", {"date": "2026-02-27", "hour": 3}, "2026-02-27T03"),
        ("hour", "k#20260227T03", {}, "2026-02-27T03"),
        ("hour", "k#2026-02-27T0315", {}, "2026-02-27T03"),
        ("day", "k", {}, "2026-03-01"),
        ("day", "k", {"date": "2026-02-27"}, "2026-02-27"),
        ("day", "k#20260227", {}, "2026-02-27"),
    ],
)
def test_granularity_says_how_long_the_periods_are(
    granularity: Any, key: str, data: dict[str, Any], expected: str
) -> None:
    # 19:30 in UTC is 14:30 in New York.
    schedule = Schedule(granularity=granularity, timezone="America/New_York")
    found = run_period(schedule, sensor(key, data, at=datetime.fromisoformat("2026-03-01T19:30:00+00:00")))
    assert str(found) == expected


@pytest.mark.parametrize(
    ("granularity", "key", "data", "words"),
    [
        ("hour", "k", {"date": "2026-02-27"}, "2026-02-27 is one day, not that of 2026-03-01T14"),
        ("hour", "k#2026-03-02", {}, "names no hour: write its hour, too"),
        ("day", "k", {"date": "2026-03-01", "hour": 14}, "schedule.granularity is day: write the day without an hour"),
        ("day", "k#2026-03-01T14", {}, "2026-03-01T14 is one hour"),
        ("day", "k#2026-03-01T1415", {}, "2026-03-01T1415 is one minute"),
    ],
)
def test_a_write_that_does_not_fit_the_granularity_is_for_no_run(
    granularity: Any, key: str, data: dict[str, Any], words: str
) -> None:
    schedule = Schedule(granularity=granularity, timezone="America/New_York")
    found = run_period(schedule, sensor(key, data, at=datetime.fromisoformat("2026-03-01T19:30:00+00:00")))
    assert isinstance(found, str)
    assert words in found


def test_a_malformed_write_opens_nothing() -> None:
    why = run_period(Schedule(), sensor("k", {"date": "soon"}))
    assert isinstance(why, str)
    assert why.startswith('date is "soon"')


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("orders", "orders", True),
        ("orders", "orders#2026-03-03", True),
        ("orders", "orders#20260303T10", True),
        ("orders", "orders-count", False),
        ("orders", "orders#today", False),
        ("orders", "orders#", False),
        ("orders", "my-orders", False),
        ("orders", "orders#2026-03-03#2026-03-04", False),
        ("orders#eu", "orders#eu#2026-03-03", True),
        ("orders#eu", "orders#eu", True),
        ("orders#2026-03-03", "orders#2026-03-03", True),
    ],
)
def test_key_matches(name: str, key: str, expected: bool) -> None:
    assert key_matches(name, key) is expected


def test_candidate_keys_are_each_once_in_a_stable_order() -> None:
    found = candidate_keys(["b", "a", "b", "b#2026-03-02T10"], parse_period("2026-03-02T10"))
    assert found == [
        "b#2026-03-02T10",
        "b#20260302T10",
        "b",
        "a#2026-03-02T10",
        "a#20260302T10",
        "a",
        "b#2026-03-02T10#2026-03-02T10",
        "b#2026-03-02T10#20260302T10",
    ]


# ------------------------------------------------------------------------------------------------------ selection

EXPIRED = int(NOW.timestamp())
ALIVE = EXPIRED + 1
BEFORE = datetime(2026, 3, 1, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sensors", "expected"),
    [
        ([sensor("k")], "k"),
        ([sensor("k", at=datetime(2026, 3, 2, tzinfo=UTC))], "k"),
        ([sensor("k", {"date": "2026-03-02"}, BEFORE)], "k"),
        ([sensor("k", {"date": "2026-03-02", "hour": 4}, BEFORE)], "k"),
        ([sensor("k"), sensor("k#2026-03-02", at=BEFORE)], "k#2026-03-02"),
        ([sensor("k"), sensor("k#20260302", at=BEFORE)], "k#20260302"),
        ([sensor("k#20260302", at=BEFORE), sensor("k#2026-03-02")], "k#2026-03-02"),
        ([sensor("k#20260302"), sensor("k#2026-03-02", at=BEFORE)], "k#20260302"),
        ([sensor("k#20260302"), sensor("k#2026-03-02")], "k#2026-03-02"),
        ([sensor("k"), sensor("k#2026-03-02", ttl=EXPIRED)], "k"),
        ([sensor("k"), sensor("k#20260302", ttl=EXPIRED)], "k"),
        ([sensor("k#20260302", at=BEFORE), sensor("k#2026-03-02", ttl=EXPIRED)], "k#20260302"),
        ([sensor("k#20260302", ttl=EXPIRED), sensor("k#2026-03-02", at=BEFORE)], "k#2026-03-02"),
        ([sensor("k", ttl=ALIVE)], "k"),
    ],
)
def test_the_sensor_that_counts(sensors: list[Sensor], expected: str) -> None:
    found = select(K, by_key(*sensors), SCOPE, NOW)
    assert found.sensor is not None
    assert found.sensor.key == expected
    assert found.reason == ""


@pytest.mark.parametrize(
    ("sensors", "reason"),
    [
        ([], "no sensor k"),
        ([sensor("k-count"), sensor("k#2026-03-03")], "no sensor k"),
        ([sensor("k", {"date": "2026-03-01"})], "k is about 2026-03-01, not 2026-03-02"),
        ([sensor("k", {"date": "2026-03-03", "hour": 0})], "k is about 2026-03-03T00, not 2026-03-02"),
        ([sensor("k", at=BEFORE)], "k was received 2026-03-01T23:00:00Z, before 2026-03-02 began"),
        ([sensor("k", {"date": "soon"})], "k names no readable period: date is"),
        ([sensor("k", {"hour": 4})], "k names no readable period: hour is 4"),
        ([sensor("k", ttl=EXPIRED)], "k expired at 2026-03-02T13:00:00Z"),
        ([sensor("k#2026-03-02", ttl=EXPIRED)], "k#2026-03-02 expired at 2026-03-02T13:00:00Z"),
        ([sensor("k#20260302", ttl=EXPIRED - 60)], "k#20260302 expired at 2026-03-02T12:59:00Z"),
        ([sensor("k", ttl=-(10**18))], "k expired (ttl -1000000000000000000)"),
        # The one written for the run is read, even though it contradicts its own name and there is another.
        ([sensor("k"), sensor("k#2026-03-02", {"date": "2026-03-01"})], "k#2026-03-02 is about 2026-03-01"),
    ],
)
def test_why_no_sensor_counts(sensors: list[Sensor], reason: str) -> None:
    found = select(K, by_key(*sensors), SCOPE, NOW)
    assert found.sensor is None
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("hour", "counts"), [("2026-03-02T04:59:59+00:00", False), ("2026-03-02T05:00:00+00:00", True)]
)
def test_a_day_begins_in_the_zone_of_the_schedule(hour: str, counts: bool) -> None:
    found = select(K, by_key(sensor("k", at=datetime.fromisoformat(hour))), run_scope(DAY, NEW_YORK), NOW)
    assert (found.sensor is not None) is counts
    assert counts or found.reason.endswith("before 2026-03-02 began in America/New_York")


@pytest.mark.parametrize(
    ("period", "data", "counts"),
    [
        ("2026-03-02T10", {"date": "2026-03-02"}, True),
        ("2026-03-02T10", {"date": "2026-03-02", "hour": 10}, True),
        ("2026-03-02T10", {"date": "2026-03-02", "hour": 9}, False),
        ("2026-03-02T1015", {"date": "2026-03-02", "hour": 10}, True),
        ("2026-03-02T1015", {"date": "2026-03-02", "hour": 11}, False),
    ],
)
def test_overlap_is_enough(period: str, data: dict[str, Any], counts: bool) -> None:
    found = select(K, by_key(sensor("k", data)), run_scope(parse_period(period), UTC_ZONE), NOW)
    assert (found.sensor is not None) is counts


@pytest.mark.parametrize(
    ("given_sensor", "taken"),
    [
        (sensor("k", {"date": "2020-01-01"}), True),
        (sensor("k", {"date": "soon"}), True),
        (sensor("k", at=BEFORE), True),
        (sensor("k", ttl=EXPIRED), False),
    ],
)
def test_any_period_takes_whatever_is_there(given_sensor: Sensor, taken: bool) -> None:
    found = select(Reading("k", any_period=True), by_key(given_sensor), SCOPE, NOW)
    assert (found.sensor is given_sensor) is taken


@pytest.mark.parametrize(
    ("received", "counts"),
    [("2026-03-02T12:00:00+00:00", False), ("2026-03-03T04:59:59+00:00", False), ("2026-03-03T05:00:00+00:00", True)],
)
def test_for_the_previous_period_an_undated_write_counts_from_its_end_on(received: str, counts: bool) -> None:
    scope = scope_of(Schedule(cron="0 2 * * *", timezone="America/New_York", period="previous"), DAY)
    found = select(K, by_key(sensor("k", at=datetime.fromisoformat(received))), scope, NOW)
    assert (found.sensor is not None) is counts
    assert counts or found.reason.endswith("before 2026-03-02 ended in America/New_York")


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(cron="0 2 * * *"), Schedule(period="previous")])
def test_otherwise_it_counts_from_the_beginning_on(schedule: Schedule) -> None:
    assert scope_of(schedule, DAY) == SCOPE


def test_one_reading_stands_for_a_key_and_the_wider_for_both() -> None:
    anything = Reading("k", any_period=True)
    assert merged([K, Reading("j"), anything, K]) == (anything, Reading("j"))
    old = by_key(sensor("k", {"date": "2020-01-01"}), sensor("j", {"date": "2020-01-01"}))
    assert choose([K, Reading("j")], old, SCOPE, NOW) == {}
    assert choose([K, Reading("j"), anything], old, SCOPE, NOW) == {"k": old["k"]}


@pytest.mark.parametrize(
    ("written", "any_period", "expected"),
    [
        (sensor("k"), False, Concerned()),
        (sensor("k", {"date": "2026-03-01"}), False, Concerned(parse_period("2026-03-01"))),
        (sensor("k", {"date": "2026-03-01"}), True, Concerned()),
        (sensor("k", {"date": "soon"}), False, None),
        (sensor("k", {"date": "soon"}), True, Concerned()),
        (sensor("k#20260301T10"), False, Concerned(parse_period("2026-03-01T10"), exactly=True)),
        (sensor("k#20260301T10"), True, Concerned(parse_period("2026-03-01T10"), exactly=True)),
    ],
)
def test_the_runs_a_write_may_be_about(written: Sensor, any_period: bool, expected: Concerned | None) -> None:
    assert concerned(Reading("k", any_period), written) == expected


PERIODS = st.builds(
    period_of,
    st.datetimes(min_value=datetime(2026, 3, 1), max_value=datetime(2026, 3, 4)),  # noqa: DTZ001 - wall clock
    st.sampled_from(Granularity),
)
INSTANTS = st.datetimes(
    min_value=datetime(2026, 2, 28),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(2026, 3, 5),  # noqa: DTZ001
    timezones=st.just(UTC),
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "date": st.dates(date(2026, 3, 1), date(2026, 3, 4)).map(str) | st.sampled_from(["20260302", "soon"]),
        "hour": st.integers(-1, 25),
    },
)


@st.composite
def stores(draw: st.DrawFn) -> dict[str, Sensor]:
    suffixes = draw(st.lists(PERIODS.map(str) | PERIODS.map(lambda one: one.compact), max_size=3))
    names = ["k", *(f"k#{suffix}" for suffix in suffixes)]
    return {name: Sensor(name, draw(DATA), draw(INSTANTS)) for name in names if draw(st.booleans())}


@given(stores(), PERIODS, st.sampled_from([UTC_ZONE, NEW_YORK]))
def test_what_counts_is_about_the_run(sensors: dict[str, Sensor], period: Period, tz: Any) -> None:
    found = select(K, sensors, run_scope(period, tz), NOW)
    assert (found.sensor is None) == bool(found.reason)
    if found.sensor is None:
        return
    assert found.sensor.key in candidate_keys(["k"], period)
    own = period_of_write(found.sensor.key, found.sensor.data)
    assert not own.problem
    if own.period is None:
        assert found.sensor.received_at >= period.start(tz)
    else:
        assert own.period.overlaps(period)


# -------------------------------------------------------------------------------------------------------- trigger

TRIGGER = Trigger(key="done", check=Check.EQUALS, field="status", value="ready")


@pytest.mark.parametrize(
    ("written", "passed", "reason"),
    [
        (sensor("done", {"status": "ready"}), True, 'status is "ready"'),
        (sensor("done#2026-01-01", {"status": "ready"}), True, 'status is "ready"'),
        (sensor("done", {"status": "ready"}, NOW - timedelta(days=9)), True, 'status is "ready"'),
        (sensor("done", {"status": "late"}), False, 'status is "late", needs "ready"'),
        (sensor("done-twice", {"status": "ready"}), False, "done-twice is not the trigger's sensor done"),
        (sensor("done", {"status": "ready"}, ttl=EXPIRED), False, "done expired at 2026-03-02T13:00:00Z"),
    ],
)
def test_trigger_match(written: Sensor, passed: bool, reason: str) -> None:
    result = trigger_match(TRIGGER, written, NOW)
    assert (result.passed, result.reason, result.key) == (passed, reason, "done")

"""Instants and local times, where the clocks change."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.errors import InvalidValueError
from interlock.model.times import epoch_millis, format_instant, local_time_on, parse_instant, to_local, to_utc, zone

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"]
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_zones() -> None:
    assert str(zone("Europe/Berlin")) == "Europe/Berlin"


@pytest.mark.parametrize("name", ["Europe/Berln", "", "../etc/passwd", "/etc/passwd", "America", "a\0b"])
def test_no_such_zone(name: str) -> None:
    with pytest.raises(InvalidValueError, match="is not an IANA time zone"):
        zone(name)


@pytest.mark.parametrize(
    ("wall", "tz", "instant"),
    [
        ("2026-01-15T08:00", "America/New_York", "2026-01-15T13:00"),
        ("2026-07-15T08:00", "America/New_York", "2026-07-15T12:00"),
        # Clocks forward at 02:00 on 29 March: everything in the gap is its end.
        ("2026-03-29T02:00", "Europe/Berlin", "2026-03-29T01:00"),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00"),
        ("2026-03-29T02:59:59", "Europe/Berlin", "2026-03-29T01:00"),
        ("2026-03-29T03:00", "Europe/Berlin", "2026-03-29T01:00"),
        # Clocks back at 03:00 on 25 October: the earlier of the two.
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30"),
        ("2026-10-25T03:00", "Europe/Berlin", "2026-10-25T02:00"),
        # Half an hour only; and a whole day that Samoa left out.
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:30"),
        ("2011-12-30T12:00", "Pacific/Apia", "2011-12-30T10:00"),
    ],
)
def test_local_times_are_placed(wall: str, tz: str, instant: str) -> None:
    assert to_utc(local(wall), zone(tz)) == utc(instant)


@given(st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1)), ZONES)  # noqa: DTZ001 - wall-clock times
def test_a_local_time_never_lands_before_itself(wall: datetime, name: str) -> None:
    tz = zone(name)
    back = to_local(to_utc(wall, tz), tz)
    assert back == wall or back > wall


@given(st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)), ZONES)  # noqa: DTZ001
def test_an_instant_comes_back_unless_its_hour_is_repeated(instant: datetime, name: str) -> None:
    tz = zone(name)
    back = to_utc(to_local(instant, tz), tz)
    assert back == instant or back < instant


def test_a_time_on_a_day() -> None:
    assert local_time_on(date(2026, 7, 15), time(8), NEW_YORK) == utc("2026-07-15T12:00")


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2026-03-01T09:15:00Z", "2026-03-01T09:15"),
        ("2026-03-01t09:15:00z", "2026-03-01T09:15"),
        ("2026-03-01 09:15:00+02:00", "2026-03-01T07:15"),
        ("2026-03-01T09:15:00-0530", "2026-03-01T14:45"),
        ("2026-03-01T09:15:00.5Z", "2026-03-01T09:15:00.500"),
        ("2026-03-01T09:15:00.123456789Z", "2026-03-01T09:15:00.123456"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00"),
        (" 2026-03-01T09:15:00Z ", "2026-03-01T09:15"),
        (0, "1970-01-01T00:00"),
        (1_772_356_500, "2026-03-01T09:15"),
        (1_772_356_500_000, "2026-03-01T09:15"),
        (1_772_356_500.25, "2026-03-01T09:15:00.250"),
    ],
)
def test_instants_are_read(value: object, instant: str) -> None:
    assert parse_instant(value) == utc(instant)


@pytest.mark.parametrize(
    "value",
    [
        True, None, [], {}, "", "2026-03-01", "2026-03-01T09:15:00", "2026-02-30T00:00:00Z", "2026-03-01T24:00:00Z",
        "0001-01-01T00:00:00+23:59", float("nan"), float("inf"), 1e30, "yesterday",
    ],
)  # fmt: skip
def test_what_is_no_instant_is_none(value: object) -> None:
    assert parse_instant(value) is None


@pytest.mark.parametrize(
    ("instant", "text"),
    [("2026-03-01T09:15:00", "2026-03-01T09:15:00Z"), ("2026-03-01T09:15:00.250", "2026-03-01T09:15:00.250Z")],
)
def test_instants_are_written(instant: str, text: str) -> None:
    assert format_instant(utc(instant)) == text
    assert format_instant(utc(instant).astimezone(BERLIN)) == text


MICROS = st.one_of(st.integers(0, 1999), st.integers(0, 999_999))


@given(st.builds(lambda at, micros: at.replace(microsecond=micros), st.datetimes(timezones=st.just(UTC)), MICROS))
def test_an_instant_that_was_read_is_written_as_it_was(instant: datetime) -> None:
    written = format_instant(instant)
    read = parse_instant(written)
    assert read is not None
    assert format_instant(read) == written


@given(st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)))
def test_what_is_written_reads_back(instant: datetime) -> None:
    assert parse_instant(format_instant(instant)) == instant


def test_epoch_milliseconds_round_down() -> None:
    assert epoch_millis(utc("1970-01-01T00:00:01") + timedelta(microseconds=1999)) == 1001

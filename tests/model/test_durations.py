"""Durations: the forms people write, exactly."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.durations import Duration, format_duration, parse_duration
from interlock.model.errors import InvalidValueError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("45s", timedelta(seconds=45)),
        ("500ms", timedelta(milliseconds=500)),
        ("10us", timedelta(microseconds=10)),
        ("10µs", timedelta(microseconds=10)),
        ("2d", timedelta(days=2)),
        ("0s", timedelta(0)),
        ("0.1s", timedelta(milliseconds=100)),
        ("1.5h", timedelta(minutes=90)),
        (" 5m ", timedelta(minutes=5)),
        ("30m1h", timedelta(hours=1, minutes=30)),
        ("PT2H", timedelta(hours=2)),
        ("P1DT12H", timedelta(days=1, hours=12)),
        ("P2W", timedelta(weeks=2)),
        ("P1W1DT1H1M1S", timedelta(days=8, hours=1, minutes=1, seconds=1)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("3660d", timedelta(days=3660)),
    ],
)
def test_forms(text: str, expected: timedelta) -> None:
    parsed = parse_duration(text)
    assert parsed == expected
    assert isinstance(parsed, Duration)


@pytest.mark.parametrize(
    "text",
    ["", " ", "5", "h", "1x", "1h 30m", "-1h", "1h30", "P", "PT", "P1DT", "PT2", "1,5h", "²s", "1H", "1h\n2m", "inf"],
)
def test_what_is_no_duration_says_what_is(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not a duration: write 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["3661d", "999999999999999h", "P999999999W"])
def test_too_long(text: str) -> None:
    with pytest.raises(InvalidValueError, match="longer than ten years"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(days=1, hours=1), "1d1h"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(milliseconds=1500), "1s500ms"),
        (timedelta(microseconds=7), "7us"),
        (timedelta(hours=-1), "-1h"),
    ],
)
def test_shortest_form(length: timedelta, text: str) -> None:
    assert format_duration(length) == text


@given(st.timedeltas(timedelta(0), timedelta(days=3660)))
def test_what_is_written_reads_back(length: timedelta) -> None:
    assert parse_duration(format_duration(length)) == length


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_a_clear_error(text: str) -> None:
    try:
        length = parse_duration(text)
    except InvalidValueError:
        return
    assert timedelta(0) <= length <= timedelta(days=3660)

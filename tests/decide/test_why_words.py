"""Times, lengths and counts in words."""

from datetime import UTC, datetime, timedelta

import pytest

from interlock.decide.why_words import clock, distance, span, stamp, times
from interlock.model.times import zone

NOW = datetime(2026, 3, 2, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (45, "45s"),
        (59.9, "59s"),
        (60, "1m"),
        (61, "1m"),
        (3600 + 12 * 60 + 5, "1h12m"),
        (24 * 3600 - 1, "23h59m"),
        (24 * 3600 + 59 * 60, "1d"),
        (90_000, "1d1h"),
        (-45, "45s"),
    ],
)
def test_a_length_is_said_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (0.9, "now"),
        (-0.9, "now"),
        (1, "in 1s"),
        (-1, "1s ago"),
        (300, "in 5m"),
        (-7200, "2h ago"),
    ],
)
def test_a_distance_says_which_way_it_is(seconds: float, text: str) -> None:
    assert distance(NOW + timedelta(seconds=seconds), NOW) == text


def test_a_clock_names_the_day_where_it_is_not_today() -> None:
    assert clock(NOW, "UTC", NOW) == "13:30Z"
    assert clock(NOW, "UTC", NOW + timedelta(days=1)) == "2026-03-02 13:30Z"
    # Late in the evening in UTC it is still the same day in New York.
    assert clock(NOW, "America/New_York", datetime(2026, 3, 3, 2, tzinfo=UTC)) == "08:30 EST"


def test_a_stamp_is_an_instant_of_utc_wherever_it_came_from() -> None:
    assert stamp(NOW.astimezone(zone("America/New_York"))) == stamp(NOW) == "2026-03-02 13:30Z"


def test_counts() -> None:
    assert [times(count) for count in (1, 2, 10)] == ["once", "2 times", "10 times"]

"""What a pipeline's sensors may take, and when those of a period expire."""

from datetime import UTC, datetime, timedelta

import pytest

from interlock.decide.quotas import PERIOD_KEPT, SensorQuota, expiry_of, refusal, room
from interlock.model.sensor import SensorUse

QUOTA = SensorQuota(sensors=10, bytes=1_000_000)
NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("key", "end"),
    [
        ("rows", None),
        ("rows#total", None),
        ("rows#20260303", datetime(2026, 3, 4, tzinfo=UTC)),
        ("rows#20260303T13", datetime(2026, 3, 3, 14, tzinfo=UTC)),
        ("rows#2026-03-03T10", NOW),
        ("rows#2019-01-01", NOW),
    ],
)
def test_sensors_of_a_period_expire_90_days_after_it(key: str, end: datetime | None) -> None:
    """What comes late is kept for 90 days all the same."""
    assert expiry_of(key, NOW) == (None if end is None else int((end + timedelta(days=90)).timestamp()))


def test_ten_hourly_keys_never_reach_the_quota() -> None:
    hourly = 10 * 24 * (PERIOD_KEPT.days + 2)
    assert room(SensorUse(expiring=hourly, bytes=hourly * 1000), SensorQuota()) > 1000


@pytest.mark.parametrize(
    ("use", "fits"),
    [
        (SensorUse(), 10),
        (SensorUse(kept=9), 1),
        (SensorUse(kept=12), 0),
        (SensorUse(expiring=49), 1),
        (SensorUse(bytes=900_000), 1),
        (SensorUse(bytes=999_000), 0),
        # The largest sensor there may be, and what is kept beside it.
        (SensorUse(bytes=1_000_000 - 65 * 1024), 1),
        (SensorUse(bytes=1_000_000 - 65 * 1024 + 1), 0),
    ],
)
def test_how_many_writes_fit_whatever_they_are(use: SensorUse, fits: int) -> None:
    assert room(use, QUOTA) == fits


@pytest.mark.parametrize(
    ("use", "expiring", "fits"),
    [
        (SensorUse(kept=9_999), False, True),
        (SensorUse(kept=10_000), False, False),
        (SensorUse(expiring=49_999), True, True),
        (SensorUse(expiring=50_000), True, False),
        (SensorUse(bytes=268_435_356), False, True),
        (SensorUse(bytes=268_435_357), False, False),
    ],
)
def test_what_a_pipeline_may_have_where_nobody_says_otherwise(use: SensorUse, expiring: bool, fits: bool) -> None:
    assert (refusal(use, SensorQuota(), expiring=expiring, size=100, replaced=None) == "") is fits


@pytest.mark.parametrize(
    ("use", "expiring", "size", "replaced", "reported"),
    [
        (SensorUse(kept=9), False, 100, None, ""),
        (SensorUse(kept=10), False, 100, None, "it has 10 sensors, as many as"),
        (SensorUse(kept=10), False, 100, 50, ""),
        (SensorUse(expiring=50), True, 100, None, "it has 50 sensors that expire, as many as"),
        (SensorUse(bytes=999_950), False, 100, None, "bytes_per_pipeline"),
        (SensorUse(bytes=999_950), False, 100, 60, ""),
        # Just what there is room for, and one more.
        (SensorUse(kept=10), True, 100, None, ""),
        (SensorUse(expiring=49), True, 100, None, ""),
        (SensorUse(expiring=50), False, 100, None, ""),
        (SensorUse(bytes=999_900), False, 100, None, ""),
        (SensorUse(bytes=999_900), False, 101, None, "bytes_per_pipeline"),
        (SensorUse(bytes=999_900), False, 150, 50, ""),
        (SensorUse(bytes=999_900), False, 151, 50, "bytes_per_pipeline"),
        (SensorUse(expiring=50), True, 100, 50, ""),
        (SensorUse(bytes=2_000_000), False, 100, 100, ""),
        (SensorUse(bytes=2_000_000), False, 101, 100, "bytes_per_pipeline"),
    ],
)
def test_what_is_refused(use: SensorUse, expiring: bool, size: int, replaced: int | None, reported: str) -> None:
    found = refusal(use, QUOTA, expiring=expiring, size=size, replaced=replaced)
    assert (reported in found) if reported else found == ""

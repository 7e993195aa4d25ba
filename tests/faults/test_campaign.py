"""The short form of the campaign; `make faults` is the long one."""

import pytest

from tests.faults.campaign import Plan, play


@pytest.mark.slow
def test_short_campaign_violates_nothing() -> None:
    report = play(Plan(seed=20260302, seconds=20.0, slots_per_second=6.0), lambda line: None)
    assert report.violations == []
    assert report.restarts > 2
    assert report.acknowledged > 50
    assert report.alerts > 0

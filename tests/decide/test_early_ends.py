"""Executions that end early: the pauses grow, and after six in a row it is enough."""

from datetime import UTC, datetime, timedelta

import pytest

from interlock.decide.early_ends import AfterEarlyEnd, EarlyEnd, followed_from, judge
from interlock.model.run import Run, RunStatus, Source

AT = datetime(2026, 3, 2, 8, tzinfo=UTC)


def run(early_ends: int) -> Run:
    """A run whose current part began at AT, hours after it was opened where it is not the first."""
    opened = AT - timedelta(hours=9) if early_ends else AT
    return Run(
        pipeline="p", schedule="cron", date="2026-03-02", status=RunStatus.PENDING, version=1, attempt=1,
        source=Source.FIRST, config_version="v", opened_at=opened, first_opened_at=opened, updated_at=AT,
        part=early_ends + 1, part_at=AT if early_ends else None, early_ends=early_ends,
    )  # fmt: skip


@pytest.mark.parametrize(("before", "minutes"), [(0, 0), (1, 5), (2, 10), (3, 20), (4, 40)])
def test_each_waits_longer_than_the_one_before(before: int, minutes: int) -> None:
    due = AT + timedelta(minutes=minutes)
    assert judge(run(before), due) == EarlyEnd(AfterEarlyEnd.GO_ON, before + 1)
    if minutes:
        assert judge(run(before), due - timedelta(seconds=1)) == EarlyEnd(AfterEarlyEnd.LATER, before + 1)
    assert followed_from(run(before)) == due


def test_the_sixth_in_a_row_is_the_last() -> None:
    assert judge(run(5), AT) == EarlyEnd(AfterEarlyEnd.GIVE_UP, 6)


def test_what_lived_for_an_hour_is_a_first_again() -> None:
    assert judge(run(5), AT + timedelta(hours=1)) == EarlyEnd(AfterEarlyEnd.GO_ON, 1)
    assert judge(run(5), AT + timedelta(minutes=59)) == EarlyEnd(AfterEarlyEnd.GIVE_UP, 6)

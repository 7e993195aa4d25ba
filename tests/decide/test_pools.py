"""The line for a pool: whose deadline is nearest starts next, but nobody waits forever."""

from datetime import UTC, datetime, timedelta

import pytest

from interlock.decide.pools import Place, Waiter, in_turn
from interlock.model.keys import RunKey

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def waiter(name: str, waited: timedelta, breach_in: timedelta | None = None) -> Waiter:
    breach_at = None if breach_in is None else NOW + breach_in
    return Waiter(RunKey(name, "cron", "2026-03-02"), NOW - waited, breach_at)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


@pytest.mark.parametrize(
    ("waiters", "order"),
    [
        ([], []),
        # The nearest breach first, however long the others have waited.
        ([waiter("a", minutes(50), minutes(90)), waiter("b", minutes(5), minutes(30))], ["b", "a"]),
        # A breach that has passed is nearer still.
        ([waiter("a", minutes(5), minutes(10)), waiter("b", minutes(5), minutes(-10))], ["b", "a"]),
        # Whoever has no SLA comes behind those that have one, the oldest first.
        ([waiter("a", minutes(50)), waiter("b", minutes(55)), waiter("c", minutes(1), minutes(900))], ["c", "b", "a"]),
        # Of the same age and breach, always in the same order.
        ([waiter("b", minutes(5)), waiter("a", minutes(5))], ["a", "b"]),
        # Whoever has waited an hour goes before all others; of several the oldest, whatever their SLA.
        ([waiter("a", minutes(5), minutes(1)), waiter("b", minutes(60))], ["b", "a"]),
        ([waiter("a", minutes(5), minutes(1)), waiter("b", minutes(59))], ["a", "b"]),
        ([waiter("a", minutes(70), minutes(1)), waiter("b", minutes(80))], ["b", "a"]),
        ([waiter("b", minutes(70), minutes(1)), waiter("a", minutes(70))], ["a", "b"]),
    ],
)
def test_who_starts_next(waiters: list[Waiter], order: list[str]) -> None:
    assert [one.key.pipeline for one in in_turn(waiters, NOW)] == order


@pytest.mark.parametrize(
    ("position", "said"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"), (22, "22nd")],
)
def test_a_place_in_the_line_is_counted_as_people_do(position: int, said: str) -> None:
    assert str(Place("warehouse", position, 200)) == f"the pool warehouse, {said} of 200"

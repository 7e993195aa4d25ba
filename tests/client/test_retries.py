"""When a request is sent again, and after how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.client.retries import Fate, RetryPolicy, after_answer, after_no_answer

POLICY = RetryPolicy(retries=3, first_delay=1.0, longest_delay=5.0, longest_named=60.0)


@pytest.mark.parametrize(
    ("fate", "repeatable", "again"),
    [
        (Fate.NOT_SENT, True, True),
        (Fate.NOT_SENT, False, True),
        (Fate.UNKNOWN, True, True),
        (Fate.UNKNOWN, False, False),
    ],
)
def test_what_may_have_been_done_is_not_done_twice(fate: Fate, repeatable: bool, again: bool) -> None:
    assert (after_no_answer(POLICY, fate, 1, repeatable=repeatable, chance=1.0) is not None) == again


@pytest.mark.parametrize(
    ("status", "repeatable", "again"),
    [
        (429, False, True),
        (429, True, True),
        (502, True, True),
        (503, True, True),
        (504, True, True),
        (502, False, False),
        (503, False, False),
        (504, False, False),
        (500, True, False),
        (501, True, False),
        (400, True, False),
        (404, True, False),
        (409, True, False),
    ],
)
def test_which_answers_are_tried_again(status: int, repeatable: bool, again: bool) -> None:
    assert (after_answer(POLICY, status, {}, 1, repeatable=repeatable, chance=1.0) is not None) == again


def test_there_is_an_end_to_it() -> None:
    delays = [after_no_answer(POLICY, Fate.NOT_SENT, n, repeatable=True, chance=1.0) for n in range(1, 6)]
    assert delays == [1.0, 2.0, 4.0, None, None]
    assert after_answer(POLICY, 503, {"retry-after": "1"}, 4, repeatable=True, chance=1.0) is None


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_delay_is_never_less_than_half_nor_more_than_all(failures: int, chance: float) -> None:
    full = min(1.0 * 2 ** min(failures - 1, 20), 5.0)
    assert full / 2 <= POLICY.delay(failures, chance) <= full


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "7"}, 7.0, 8.0),
        ({"retry-after": "0"}, 0.0, 1.0),
        ({"retry-after": "Sun, 15 Nov 2026 10:00:09 GMT", "date": "Sun, 15 Nov 2026 10:00:00 GMT"}, 9.0, 10.0),
        ({"retry-after": "Sun, 15 Nov 2026 10:00:00 GMT", "date": "Sun, 15 Nov 2026 10:00:30 GMT"}, 0.0, 1.0),
        # Neither a number nor a date that can be measured: the usual delay.
        ({"retry-after": "soon"}, 0.5, 1.0),
        ({"retry-after": "-5"}, 0.5, 1.0),
        ({"retry-after": "Sun, 15 Nov 2026 10:00:09 GMT"}, 0.5, 1.0),
    ],
)
def test_a_server_that_names_a_time_is_obeyed(headers: dict[str, str], low: float, high: float) -> None:
    for chance in (0.0, 0.5, 1.0):
        wait = after_answer(POLICY, 429, headers, 1, repeatable=False, chance=chance)
        assert wait is not None
        assert low <= wait <= high


def test_a_server_that_asks_for_too_much_is_the_callers_to_decide() -> None:
    assert after_answer(POLICY, 429, {"retry-after": "61"}, 1, repeatable=True, chance=0.0) is None

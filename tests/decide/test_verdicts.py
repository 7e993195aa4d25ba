"""What a waiting attempt remembers of its rules: changes only, bounded, and read back whatever was stored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.decide.checks import RuleResult
from interlock.decide.verdicts import Verdicts, read_verdicts, remember, with_history, write_verdicts
from interlock.model.config import Check

START = datetime(2026, 3, 3, 10, tzinfo=UTC)


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def result(passed: bool, actual: Any = None, key: str = "rows") -> RuleResult:
    return RuleResult(key, Check.GTE, passed, actual, 1000, "because", "count")


def test_only_changes_of_verdict_are_kept() -> None:
    known = Verdicts()
    for minute, count in enumerate([None, 5, 10, 2000, 3000, 7]):
        passed = count is not None and count >= 1000
        known = remember(known, [result(passed, count)], f"count is {count}", at(minute))
    assert known.summary == "count is 7"
    assert [(one.at, one.passed, one.actual) for one in known.rules[0]] == [
        (at(0), False, None),
        (at(3), True, 2000),
        (at(5), False, 7),
    ]
    (reported,) = with_history([result(False, 7)], known)
    assert reported.since == at(5)
    assert [one.passed for one in reported.history] == [False, True, False]


def test_other_rules_than_before_begin_anew() -> None:
    known = remember(Verdicts(), [result(False)], "", at(0))
    assert len(remember(known, [result(False), result(True)], "", at(1)).rules) == 2
    assert with_history([result(False), result(True)], known) == [result(False), result(True)]


def test_a_rule_that_changed_often_keeps_its_latest_twenty_verdicts() -> None:
    known = Verdicts()
    for minute in range(30):
        known = remember(known, [result(minute % 2 == 0, minute)], "", at(minute))
    assert [one.actual for one in known.rules[0]] == list(range(10, 30))


def test_a_rule_without_a_verdict_yet_is_shown_as_it_stands() -> None:
    known = remember(Verdicts(rules=((),)), [result(True)], "", at(3))
    assert with_history([result(True)], Verdicts(rules=((),))) == [result(True)]
    assert with_history([result(True)], known)[0].since == at(3)


def changed_often(*, changes: int, size: int) -> Verdicts:
    """The verdicts of forty rules that have all changed so many times, as a text of this size."""
    known = Verdicts()
    for minute in range(changes):
        known = remember(known, [result(minute % 2 == 0)] * 40, "", at(minute))
    return replace(known, summary="s" * (size - len(msgspec.json.encode(known)) - len('"summary":"",')))


def test_a_text_that_grows_too_long_forgets_the_oldest_verdicts_first() -> None:
    for changes, fewer in ((6, 4), (4, 0)):
        fits, longer = (changed_often(changes=changes, size=size) for size in (16_000, 16_001))
        assert len(write_verdicts(fits)) == 16_000
        assert read_verdicts(write_verdicts(fits)) == fits
        kept = tuple(one[-fewer:] for one in longer.rules) if fewer else ()
        assert read_verdicts(write_verdicts(longer)) == Verdicts(longer.summary, kept)


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 40), st.text(max_size=300))
def test_it_is_bounded_and_survives_being_stored(flips: list[bool], rules: int, actual: str) -> None:
    known = Verdicts()
    for minute, passed in enumerate(flips):
        known = remember(known, [result(passed, actual)] * rules, "a summary", at(minute))
    assert all(len(one) <= 20 for one in known.rules)
    text = write_verdicts(known)
    assert len(text) <= 16_000
    read = read_verdicts(text)
    assert read.summary == known.summary
    assert all(one == kept[-len(one) :] for one, kept in zip(read.rules, known.rules, strict=False) if one)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"rules": [[{"at": "never"}]]}', "null"])
def test_what_cannot_be_read_is_nothing(text: str) -> None:
    assert read_verdicts(text) == Verdicts()

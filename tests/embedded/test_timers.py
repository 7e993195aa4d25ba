"""SqliteTimers: the conformance suite, and the side that fires: due, done, failed."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.dead_letters import DeadLetters, LetterKind
from interlock.embedded.timing.timers import MAX_TRIES, SqliteTimers
from interlock.model.errors import InvalidValueError
from interlock.ports.timers import Timer, TimerKind, Timers
from tests.conformance.manual_clock import START, ManualClock
from tests.conformance.timers_suite import TimersSuite, timer


class TestSqliteTimers(TimersSuite):
    @contextmanager
    def open_timers(self, clock: ManualClock) -> Iterator[Timers]:
        with Database.open(None, clock=clock, inline=True) as database:
            yield SqliteTimers(database, clock)


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.open(None, clock=ManualClock(), inline=True) as database:
        yield database


@pytest.fixture
def timers(database: Database) -> SqliteTimers:
    return SqliteTimers(database, database.clock)


def names(timers: SqliteTimers, minutes: float, limit: int = 100) -> list[str]:
    return [due.name for due in timers.due(START + timedelta(minutes=minutes), limit)]


def test_timers_are_due_from_their_instant_on_the_longest_due_first(timers: SqliteTimers) -> None:
    for name, minutes in (("later", 9), ("past", -3), ("now", 5), ("also-now", 5)):
        timers.arm(timer(name, minutes))
    assert names(timers, 0) == ["past"]
    assert names(timers, 5) == ["past", "now", "also-now"]
    assert names(timers, 5, limit=2) == ["past", "now"]
    assert names(timers, 99) == ["past", "now", "also-now", "later"]


def test_a_timer_never_fires_early_by_rounding(timers: SqliteTimers) -> None:
    at = START + timedelta(microseconds=1)
    timers.arm(Timer("t", at, TimerKind.SLA, {}))
    assert timers.due(START, 9) == []
    (due,) = timers.due(at, 9)
    assert due.at == at


def test_a_timer_stays_due_until_it_is_done(timers: SqliteTimers) -> None:
    timers.arm(timer())
    (due,) = timers.due(timer().at, 9)
    assert (due.name, due.at, due.kind, due.payload) == ("sla-gold", timer().at, TimerKind.SLA, {"n": 0})
    assert names(timers, 5) == ["sla-gold"]
    timers.done(due)
    assert names(timers, 5) == []
    assert timers.get("sla-gold") is None


@pytest.mark.parametrize("again", [timer(minutes=9), timer(minutes=5)])
def test_done_leaves_what_was_armed_meanwhile(timers: SqliteTimers, again: Timer) -> None:
    timers.arm(timer(minutes=5))
    (due,) = timers.due(timer().at, 9)
    timers.arm(again)
    timers.done(due)
    assert timers.get("sla-gold") == again


def test_done_of_a_name_that_was_cancelled_and_armed_anew_leaves_the_new_one(timers: SqliteTimers) -> None:
    timers.arm(timer())
    (due,) = timers.due(timer().at, 9)
    timers.cancel("sla-gold")
    timers.arm(timer())
    timers.done(due)
    assert timers.get("sla-gold") == timer()


def test_next_at_is_the_earliest(timers: SqliteTimers) -> None:
    assert timers.next_at() is None
    timers.arm(timer("b", 9))
    timers.arm(timer("a", 5))
    assert timers.next_at() == START + timedelta(minutes=5)
    timers.cancel("a")
    assert timers.next_at() == START + timedelta(minutes=9)


def test_a_failing_receiver_is_tried_again_later_and_later_then_it_is_a_dead_letter(
    database: Database, timers: SqliteTimers
) -> None:
    timers.arm(timer(n=7))
    now = timer().at
    pauses = []
    for _ in range(MAX_TRIES - 1):
        (due,) = timers.due(now, 9)
        again = timers.failed(due, RuntimeError("no receiver"), now)
        assert again is not None
        assert timers.next_at() == again
        assert timers.due(again - timedelta(microseconds=1), 9) == []
        assert timers.get("sla-gold") == timer(n=7), "what was armed does not move"
        pauses.append((again - now).total_seconds())
        now = again
    assert pauses == [2.0, 4.0]
    (due,) = timers.due(now, 9)
    assert timers.failed(due, RuntimeError("still none"), now) is None
    assert timers.next_at() is None
    (letter,) = DeadLetters(database).list()
    assert (letter.kind, letter.source, letter.tries) == (LetterKind.TIMER, "sla", 3)
    assert letter.error == "RuntimeError: still none"
    assert (letter.record["name"], letter.record["payload"]) == ("sla-gold", {"n": 7})
    assert (letter.first_at, letter.last_at) == (timer().at, now)


def test_failed_leaves_what_was_armed_meanwhile(database: Database, timers: SqliteTimers) -> None:
    timers.arm(timer())
    (due,) = timers.due(timer().at, 9)
    timers.arm(timer(minutes=9))
    assert timers.failed(due, RuntimeError(), timer().at) is None
    assert timers.next_at() == timer(minutes=9).at
    assert DeadLetters(database).count() == 0


def test_arming_again_forgets_the_failures(timers: SqliteTimers) -> None:
    timers.arm(timer())
    for _ in range(2):
        (due,) = timers.due(START + timedelta(days=1), 9)
        timers.failed(due, RuntimeError(), timer().at)
    timers.arm(timer())
    (due,) = timers.due(timer().at, 9)
    assert due.tries == 0


def test_who_waits_for_the_next_timer_hears_of_a_new_one(timers: SqliteTimers) -> None:
    heard: list[object] = []
    timers.on_armed(lambda: heard.append(timers.next_at()))
    timers.arm(timer(minutes=5))
    assert heard == [timer(minutes=5).at]


def test_a_payload_that_is_not_json_is_refused(timers: SqliteTimers) -> None:
    with pytest.raises(InvalidValueError, match="payload"):
        timers.arm(Timer("t", START, TimerKind.SLA, {"x": object()}))


def test_timers_survive_a_restart(tmp_path: Path) -> None:
    for expected in (None, timer()):
        with Database.open(tmp_path / "s.db", clock=ManualClock()) as database:
            timers = SqliteTimers(database, database.clock)
            assert timers.get("sla-gold") == expected
            timers.arm(timer())

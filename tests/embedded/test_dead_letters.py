"""Dead letters: kept whole, paged, done again, thrown away."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest

from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.dead_letters import DeadLetters, Failure, LetterKind, bury
from interlock.embedded.stream.stream import StreamConsumer, unregister
from interlock.embedded.timing.timers import SqliteTimers
from interlock.model.errors import InvalidValueError, StoreError
from interlock.model.keys import Table
from interlock.ports.store import Change, Delete, Key, Put
from tests.conformance.manual_clock import START, ManualClock
from tests.conformance.stream_suite import Recorder
from tests.conformance.timers_suite import timer


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.open(None, clock=ManualClock(), inline=True) as database:
        yield database


@pytest.fixture
def letters(database: Database) -> DeadLetters:
    return DeadLetters(database)


def fill(database: Database, count: int = 3) -> Recorder:
    """A consumer that fails on everything."""
    store = SqliteStore(database, database.clock)
    for n in range(count):
        store.commit([Put(Key(Table.CONTROL, "p", f"s{n}"), {"n": n, "big": 2**80, "null": {"x": None}})])
    recorder = Recorder(lambda _: True)
    StreamConsumer(database, "router", [Table.CONTROL], recorder).pump()
    return recorder


def dead_timer(database: Database) -> SqliteTimers:
    timers = SqliteTimers(database, database.clock)
    timers.arm(timer(n=4))
    for _ in range(3):
        (due,) = timers.due(START + timedelta(days=1), 1)
        timers.failed(due, RuntimeError("down"), START)
    return timers


def test_a_letter_keeps_the_whole_record_and_how_it_failed(database: Database, letters: DeadLetters) -> None:
    fill(database, 1)
    (letter,) = letters.list()
    item = {"n": 0, "big": 2**80, "null": {"x": None}}
    at = int(START.timestamp()) * 1000
    assert letter.record == {"seq": 1, "table": "control", "pk": "p", "sk": "s0", "at": at, "item": item}
    assert (letter.kind, letter.source, letter.tries) == (LetterKind.CHANGE, "router", 3)
    assert (letter.error, letter.first_at, letter.last_at) == ("RuntimeError: poison", START, START)
    assert letters.get(letter.id) == letter
    assert letters.get(99) is None
    assert msgspec.json.decode(msgspec.json.encode(letter))["firstAt"] == "2026-03-02T08:00:00Z"


def test_an_endless_error_text_is_cut(database: Database, letters: DeadLetters) -> None:
    failure = Failure(error=ValueError("x" * 100_000), tries=1, first_at=START, last_at=START)
    database.write(lambda c: bury(c, LetterKind.CHANGE, "router", "1", {}, failure))
    assert len(letters.list()[0].error) == 4000


def test_letters_are_paged_in_the_order_they_came(database: Database, letters: DeadLetters) -> None:
    fill(database, 5)
    assert letters.count() == 5
    first = letters.list(limit=2)
    rest = letters.list(limit=10, after=first[-1].id)
    assert [letter.record["sk"] for letter in first + rest] == ["s0", "s1", "s2", "s3", "s4"]
    assert letters.list(limit=0) == []


def test_redriven_changes_are_whole_and_new_to_their_consumer(database: Database, letters: DeadLetters) -> None:
    recorder = fill(database)
    recorder.poison = lambda _: False
    second = letters.list()[1]
    assert letters.redrive([second.id, second.id]) == 1
    assert letters.count() == 2
    StreamConsumer(database, "router", [Table.CONTROL], recorder).pump()
    change = Change(4, Table.CONTROL, "p", "s1", second.record["at"], second.record["item"])
    assert recorder.handled == [change]
    assert letters.redrive() == 2
    assert letters.redrive() == 0


def test_a_removal_can_be_redriven(database: Database, letters: DeadLetters) -> None:
    recorder = fill(database, 1)
    SqliteStore(database, database.clock).commit([Delete(Key(Table.CONTROL, "p", "s0"))])
    consumer = StreamConsumer(database, "router", [Table.CONTROL], recorder)
    consumer.pump()
    recorder.poison = lambda _: False
    letters.redrive([letters.list()[-1].id])
    consumer.pump()
    assert [change.item for change in recorder.handled] == [None]


def test_more_letters_than_one_step_takes(database: Database, letters: DeadLetters) -> None:
    failure = Failure(error=ValueError(), tries=1, first_at=START, last_at=START)
    record = {"table": "control", "pk": "p", "sk": "s", "at": 0, "item": None}
    StreamConsumer(database, "router", [Table.CONTROL], Recorder()).register()

    def many(connection: object) -> None:
        for n in range(1101):
            bury(connection, LetterKind.CHANGE, "router", str(n), record, failure)  # type: ignore[arg-type]

    database.write(many)
    assert letters.redrive() == 1101
    assert letters.count() == 0


def test_a_redriven_timer_is_armed_again(database: Database, letters: DeadLetters) -> None:
    timers = dead_timer(database)
    assert timers.get("sla-gold") is None
    assert letters.redrive() == 1
    assert timers.get("sla-gold") == timer(n=4)
    assert letters.count() == 0


def test_a_redriven_timer_does_not_move_one_that_was_armed_since(database: Database, letters: DeadLetters) -> None:
    timers = dead_timer(database)
    timers.arm(timer(minutes=60))
    letters.redrive()
    assert timers.get("sla-gold") == timer(minutes=60)


def test_unknown_ids_are_an_error_and_nothing_is_redriven(database: Database, letters: DeadLetters) -> None:
    fill(database)
    with pytest.raises(InvalidValueError, match="99"):
        letters.redrive([1, 99])
    assert letters.count() == 3


def test_letters_of_a_consumer_that_is_gone_stay(database: Database, letters: DeadLetters) -> None:
    fill(database)
    dead_timer(database)
    unregister(database, "router")
    with pytest.raises(StoreError, match="router"):
        letters.redrive([1])
    assert letters.redrive() == 1, "the timer"
    assert letters.count() == 3


def test_purging(database: Database, letters: DeadLetters) -> None:
    fill(database)
    assert letters.purge([2, 99]) == 1
    assert [letter.id for letter in letters.list()] == [1, 3]
    assert letters.purge() == 2
    assert letters.count() == 0

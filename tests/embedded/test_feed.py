"""EventFeed: it goes on, whatever one event or one listener is like."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.control import records
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.feed import EventFeed
from interlock.embedded.stream.listeners import FeedEvent, SensorsWanted, SensorWritten
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.ports.store import Key, Put

PATIENCE = 20.0
RUN = RunKey("gold", "stream", "2026-03-02")


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self._told = threading.Semaphore(0)

    def __call__(self, reported: FeedEvent) -> None:
        self.messages.append(reported.event.message)
        self._told.release()

    def wait(self) -> bool:
        return self._told.acquire(timeout=PATIENCE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    clock = SystemClock()
    with Database.open(tmp_path / "s.db", clock=clock) as database:
        yield SqliteStore(database, clock)


@pytest.fixture
def feed(store: SqliteStore) -> Iterator[EventFeed]:
    feed = EventFeed(store._database)
    feed.start()
    yield feed
    feed.stop()


def tell(store: SqliteStore, message: str) -> None:
    event = records.event(EventType.JOB_COMPLETED, RUN, SystemClock().now(), message)
    store.commit([records.put_event(event)])


def test_an_event_that_can_not_be_read_is_left_out(store: SqliteStore, feed: EventFeed) -> None:
    listener = Listener()
    _, position = feed.join(listener, lambda: None)
    store.commit([Put(Key(Table.EVENTS, "PIPELINE#gold", "1#written by hand"), {"type": "NO_SUCH_TYPE"})])
    tell(store, "after it")
    assert listener.wait()
    assert listener.messages == ["after it"]
    found = feed.between(position, store._database.head())
    assert found is not None
    assert [reported.event.message for reported in found[0]] == ["after it"]


def test_a_listener_that_fails_is_not_the_others_affair(store: SqliteStore, feed: EventFeed) -> None:
    def fail(_: FeedEvent) -> None:
        raise RuntimeError("Event loop is closed")

    listener = Listener()
    feed.join(fail, lambda: None)
    feed.join(listener, lambda: None)
    for message in ("one", "two"):
        tell(store, message)
        assert listener.wait()
    assert listener.messages == ["one", "two"]


class SensorListener:
    """Keeps the sensors it is told of."""

    def __init__(self) -> None:
        self.batches: list[tuple[SensorWritten, ...]] = []
        self._told = threading.Condition()

    def __call__(self, written: tuple[SensorWritten, ...]) -> None:
        with self._told:
            self.batches.append(written)
            self._told.notify_all()

    def keys(self) -> set[str]:
        return {one.key for batch in self.batches for one in batch}

    def wait_for(self, *keys: str) -> bool:
        with self._told:
            return self._told.wait_for(lambda: set(keys) <= self.keys(), PATIENCE)


def write_sensor(store: SqliteStore, pipeline: str, key: str, count: int = 1) -> None:
    item = {"count": count, records.RECEIVED: "2026-03-02T10:00:00Z"}
    store.commit([Put(Key(Table.CONTROL, f"PIPELINE#{pipeline}", f"SENSOR#{key}"), item)])


def test_sensors_are_told_of_to_who_wants_them(store: SqliteStore, feed: EventFeed) -> None:
    everything, gold = SensorListener(), SensorListener()
    feed.join(lambda _: None, lambda: None, SensorsWanted(everything))
    feed.join(lambda _: None, lambda: None, SensorsWanted(gold, frozenset({"gold"})))
    write_sensor(store, "silver", "rows")
    assert everything.wait_for("rows")
    write_sensor(store, "gold", "up")
    assert everything.wait_for("up")
    assert gold.wait_for("up")
    assert gold.keys() == {"up"}
    assert gold.batches[0][0] == SensorWritten("gold", "up", "2026-03-02T10:00:00Z")


def test_many_writes_are_told_of_in_few_batches(store: SqliteStore, feed: EventFeed) -> None:
    listener = SensorListener()
    feed.join(lambda _: None, lambda: None, SensorsWanted(listener))
    for count in range(200):
        write_sensor(store, "gold", f"rows-{count % 4}", count)
    write_sensor(store, "gold", "last")
    assert listener.wait_for("last", "rows-0", "rows-1", "rows-2", "rows-3")
    told = sum(len(batch) for batch in listener.batches)
    assert told <= 5 * len(listener.batches)
    assert told < 200


def test_the_last_write_before_a_silence_is_told_of(store: SqliteStore, feed: EventFeed) -> None:
    """It may come within the pause after a batch: nothing else wakes the feed then."""
    listener = SensorListener()
    feed.join(lambda _: None, lambda: None, SensorsWanted(listener))
    write_sensor(store, "gold", "first")
    assert listener.wait_for("first")
    write_sensor(store, "gold", "second")
    assert listener.wait_for("second")

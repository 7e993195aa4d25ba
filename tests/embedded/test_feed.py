"""EventFeed: it goes on, whatever one event or one listener is like."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.control import records
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.feed import EventFeed, FeedEvent
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

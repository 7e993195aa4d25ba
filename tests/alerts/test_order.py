"""Alerts reach a channel in the order of the events table, which is the order of the commits.

Two threads may each make an event and commit it: the one that is made first may be committed last.
"""

import threading
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.control import records
from interlock.control.alerts.alert_channels import Alerting
from interlock.control.alerts.alert_dispatcher import Routing
from interlock.control.views import event_views
from interlock.control.views.event_views import Wanted
from interlock.embedded.alerts.alerting import AlertDispatcher
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.events import EventType
from interlock.ports.store import Put
from tests.alerts.alerts import ScriptedChannel, event
from tests.conformance.manual_clock import ManualClock

WAIT = 10.0
FIRST = EventType.SLA_BREACH
SECOND = EventType.RETRY_EXHAUSTED


def put(clock: ManualClock, type_: EventType, text: str, pipeline: str = "gold") -> Put:
    return records.put_event(event(type_, pipeline, at=clock.now(), text=text))


def reported(store: SqliteStore, clock: ManualClock) -> list[str]:
    """The texts of the events as they are in the table."""
    page = event_views.page(store, Wanted(newest_first=False), clock.now())
    return [str(one.detail["text"]) for one in page.items]


class Dispatched:
    """A store and the alert-dispatcher on it, with a channel that remembers."""

    def __init__(self, path: Path, clock: ManualClock) -> None:
        self.channel = ScriptedChannel("a")
        self.database = Database.open(path, clock=clock)
        self.store = SqliteStore(self.database, clock)
        alerting = Alerting(Routing([], ["a"]), {"a": self.channel})
        self._dispatcher = AlertDispatcher(self.database, self.store, alerting, clock)
        self._clock = clock
        self._dispatcher.register()

    def sent(self) -> list[str]:
        """The texts of what was sent, in order."""
        self._dispatcher.pump()
        self._dispatcher.run_due(self._clock.now())
        texts = {f"gold/{row[0]}": row[1] for row in self.database.read(_TEXTS)}
        return [texts[one] for one in self.channel.sent]


_TEXTS = "SELECT sk, json_extract(item, '$.detail.text') FROM events"


@pytest.mark.parametrize("apart", [timedelta(0), timedelta(milliseconds=7)], ids=["one millisecond", "seven"])
def test_event_that_is_made_first_and_committed_last_is_the_last(tmp_path: Path, apart: timedelta) -> None:
    clock = ManualClock()
    dispatched = Dispatched(tmp_path / "s.db", clock)
    made, go = threading.Event(), threading.Event()

    def slow() -> None:
        """The thread of the timers makes its alert, and loses the processor before it commits."""
        write = put(clock, FIRST, "made first")
        made.set()
        go.wait(WAIT)
        assert dispatched.store.commit([write]) is None

    thread = threading.Thread(target=slow)
    thread.start()
    assert made.wait(WAIT)
    clock.advance(seconds=apart.total_seconds())
    assert dispatched.store.commit([put(clock, SECOND, "made second")]) is None
    go.set()
    thread.join()
    assert dispatched.store.commit([put(clock, FIRST, "made third")]) is None
    expected = ["made second", "made first", "made third"]
    assert dispatched.sent() == expected
    assert reported(dispatched.store, clock) == expected
    dispatched.database.close()


def test_order_is_that_of_the_commits_over_all_pipelines(tmp_path: Path) -> None:
    clock = ManualClock()
    with Database.open(tmp_path / "s.db", clock=clock) as database:
        store = SqliteStore(database, clock)
        writes = [put(clock, SECOND if number % 2 else FIRST, str(number), f"p{number % 3}") for number in range(12)]
        committed = [7, 3, 11, 0, 1, 2, 10, 4, 5, 9, 8, 6]
        for number in committed:
            assert store.commit([writes[number]]) is None
            clock.advance(seconds=0.001)
        assert reported(store, clock) == [str(number) for number in committed]


def test_several_events_of_one_commit_stay_in_their_order(tmp_path: Path) -> None:
    clock = ManualClock()
    with Database.open(tmp_path / "s.db", clock=clock) as database:
        store = SqliteStore(database, clock)
        late = [put(clock, FIRST, "a"), put(clock, SECOND, "b"), put(clock, EventType.JOB_FAILED, "c")]
        clock.advance(seconds=0.5)
        assert store.commit([put(clock, SECOND, "before")]) is None
        assert store.commit(late) is None
        assert reported(store, clock) == ["before", "a", "b", "c"]


def test_clock_that_was_set_back_is_believed(tmp_path: Path) -> None:
    """An hour of events must not all be told of the instant before the clock was set."""
    clock = ManualClock()
    with Database.open(tmp_path / "s.db", clock=clock) as database:
        store = SqliteStore(database, clock)
        earlier = put(clock, FIRST, "earlier")
        clock.advance(seconds=3600)
        assert store.commit([put(clock, FIRST, "later")]) is None
        assert store.commit([earlier]) is None
        assert reported(store, clock) == ["earlier", "later"]


def test_event_that_is_in_order_keeps_its_key(tmp_path: Path) -> None:
    clock = ManualClock()
    with Database.open(tmp_path / "s.db", clock=clock) as database:
        store = SqliteStore(database, clock)
        writes = [put(clock, FIRST, str(number)) for number in range(3)]
        for write in writes:
            assert store.commit([write]) is None
        assert [row[0] for row in database.read("SELECT sk FROM events ORDER BY sk")] == [one.key.sk for one in writes]

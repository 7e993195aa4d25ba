"""How deliveries stand, as records: an alert is sent by one worker at a time, and never again once it is sent."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import pytest

from interlock.control.alerts.delivering import GivenUp, Postponed, Sent, Standing
from interlock.control.alerts.delivery_records import CHANNELS, LANE, SENT, DeliveryState, StoredLedger
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.errors import StoreError, UnavailableError
from interlock.model.events import EVENT_TTL_DAYS
from interlock.model.keys import Table, pipeline_pk
from interlock.ports.channel import DeliveryError
from interlock.ports.store import Key, Write
from tests.conformance.manual_clock import START, ManualClock

DOWN: Final = DeliveryError("connection refused")
LATER: Final = START + timedelta(minutes=5)


@pytest.fixture(name="store")
def fixture_store() -> Iterator[SqliteStore]:
    clock = ManualClock()
    database = Database.open(None, clock=clock, inline=True)
    yield SqliteStore(database, clock)
    database.close()


def ledger(store: SqliteStore, event: str = "0001", channel: str = "a", queued: datetime = START) -> StoredLedger:
    return StoredLedger(store, channel, f"gold/{event}", queued)


def test_a_delivery_is_sent_once_and_a_redelivered_message_sends_nothing(store: SqliteStore) -> None:
    first = ledger(store)
    assert first.state() is None
    assert first.begin(START) == Standing()
    assert first.state() is DeliveryState.WAITING
    first.record(Sent(Standing(tries=1), ()), START)
    assert first.state() is DeliveryState.SENT
    assert ledger(store).begin(LATER) is None
    assert ledger(store, "0002").begin(LATER) == Standing(), "another event is another delivery"
    assert ledger(store, channel="b").begin(LATER) == Standing(), "and another channel too"


def test_the_second_try_knows_when_the_first_began_and_how_it_went(store: SqliteStore) -> None:
    first = ledger(store)
    first.begin(START)
    failing = Standing(tries=1, begun_at=START, failing_since=START)
    first.record(Postponed(failing, LATER, DOWN, None), START)
    assert ledger(store).begin(LATER) == failing


def test_of_two_workers_with_one_message_one_sends(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = store.commit

    def overtaken(writes: Sequence[Write]) -> object:
        monkeypatch.setattr(store, "commit", commit)
        assert ledger(store).begin(START) == Standing(), "the other worker, just before"
        return commit(writes)

    monkeypatch.setattr(store, "commit", overtaken)
    with pytest.raises(UnavailableError, match="is being sent by another worker"):
        ledger(store).begin(START)


def test_a_try_that_was_not_begun_or_was_overtaken_cannot_be_recorded(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="a try is recorded that was not begun"):
        ledger(store).record(Sent(Standing(), ()), START)
    slow, quick = ledger(store), ledger(store)
    slow.begin(START)
    quick.begin(START)
    quick.record(Sent(Standing(tries=1), ()), START)
    with pytest.raises(StoreError, match="it may be sent again"):
        slow.record(Sent(Standing(tries=1), ()), START)


def test_a_receiver_that_wants_rest_gets_it_from_every_delivery_to_it(store: SqliteStore) -> None:
    first = ledger(store)
    first.begin(START)
    assert first.resting_until(START) is None
    first.record(Postponed(Standing(tries=1), LATER, DOWN, LATER), START)
    assert ledger(store, "0002").resting_until(START) == LATER
    assert ledger(store, "0002").resting_until(LATER) is None
    assert ledger(store, channel="b").resting_until(START) is None
    rest = store.get(Key(Table.EVENTS, CHANNELS, "a")) or {}
    assert rest["ttl"] == int((START + timedelta(days=EVENT_TTL_DAYS)).timestamp())


def test_what_waits_behind_an_alert_that_was_given_up_has_no_day_of_its_own_until_something_gets_through(
    store: SqliteStore,
) -> None:
    first = ledger(store)
    first.begin(START)
    first.record(GivenUp(Standing(tries=9), START, DOWN, START), LATER)
    assert first.state() is DeliveryState.DEAD
    assert ledger(store).begin(LATER) is None, "a dead letter is not sent by itself"
    early = ledger(store, "0002", queued=START - timedelta(hours=1)).begin(LATER)
    assert early == Standing(failing_since=START), "since nothing gets through"
    late = ledger(store, "0003", queued=LATER)
    assert late.begin(LATER) == Standing(failing_since=LATER), "since it was queued"
    late.record(Sent(Standing(tries=1), ()), LATER)
    assert store.get(Key(Table.EVENTS, pipeline_pk("gold"), f"{LANE}a")) is None
    assert ledger(store, "0004", queued=LATER).begin(LATER) == Standing()


def test_a_refusal_says_nothing_of_the_next(store: SqliteStore) -> None:
    first = ledger(store)
    first.begin(START)
    first.record(GivenUp(Standing(tries=4, refusals=4), START, DOWN, None), START)
    assert ledger(store, "0002").begin(LATER) == Standing()


def test_a_dead_letter_is_revived_with_a_day_of_its_own_unless_it_was_sent(store: SqliteStore) -> None:
    first = ledger(store)
    assert first.revive(START), "it was never tried"
    first.begin(START)
    first.record(GivenUp(Standing(tries=9, begun_at=START, failing_since=START), START, DOWN, None), START)
    assert ledger(store).revive(LATER)
    again = ledger(store)
    assert again.begin(LATER) == Standing(begun_at=START), "it may have been sent then"
    again.record(Sent(Standing(tries=1), ()), LATER)
    assert not ledger(store).revive(LATER)
    assert again.state() is DeliveryState.SENT
    record = store.get(Key(Table.EVENTS, pipeline_pk("gold"), f"{SENT}a#0001")) or {}
    assert record["ttl"] == int((LATER + timedelta(days=EVENT_TTL_DAYS)).timestamp())


def test_a_second_try_keeps_its_own_time_although_another_alert_was_given_up_meanwhile(store: SqliteStore) -> None:
    first = ledger(store)
    first.begin(START)
    failing = Standing(tries=1, begun_at=START, failing_since=START)
    first.record(Postponed(failing, LATER, DOWN, None), START)
    other = ledger(store, "0002")
    other.begin(START)
    other.record(GivenUp(Standing(tries=9), START, DOWN, LATER), LATER)
    assert ledger(store).begin(LATER) == failing


def test_only_a_lane_that_failed_is_cleared_by_what_gets_through(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = ledger(store)
    sent.begin(START)
    committed: list[int] = []
    commit = store.commit

    def counted(writes: Sequence[Write]) -> object:
        committed.append(len(writes))
        return commit(writes)

    monkeypatch.setattr(store, "commit", counted)
    sent.record(Sent(Standing(tries=1), ()), START)
    assert committed == [1]

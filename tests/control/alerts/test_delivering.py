"""How a delivery fares, for every queue; and on records in the store, under a queue that knows nothing but messages."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
import pytest

from interlock.control.alerts.alert_dispatcher import GIVE_UP_AFTER, MAX_REFUSALS
from interlock.control.alerts.delivering import GivenUp, Postponed, Sent, Standing, Tried, after_failure, deliver
from interlock.control.alerts.delivery_records import StoredLedger
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.errors import StoreError, UnavailableError
from interlock.ports.channel import Alert, DeliveryError
from interlock.ports.store import Item, Key
from tests.alerts.alerts import Outcome, ScriptedChannel, alert
from tests.conformance.manual_clock import START, ManualClock

DOWN: Final = DeliveryError("connection refused")
LOST: Final = DeliveryError("no answer", uncertain=True)
REFUSED: Final = DeliveryError("channel_not_found", permanent=True)
BUSY: Final = DeliveryError("429", retry_after=timedelta(minutes=10))


class Queue:
    """A queue of messages, as SQS is one: who receives one gets nothing but its text, when it was sent, and a turn."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.database = Database.open(None, clock=self.clock, inline=True)
        self.store = SqliteStore(self.database, self.clock)
        self.channel = ScriptedChannel("a")

    def ledger(self, n: int, queued: datetime = START, pipeline: str = "gold") -> StoredLedger:
        return StoredLedger(self.store, "a", alert(n, pipeline).id, queued)

    def receive(self, n: int, *, queued: datetime = START, pipeline: str = "gold") -> Tried | None:
        """A worker that has just started is given the message."""
        return deliver(
            self.ledger(n, queued, pipeline),
            self.store,
            {"a": self.channel},
            "a",
            lambda: alert(n, pipeline),
            clock=self.clock,
            jitter=0.0,
        )

    def say(self, *outcomes: Outcome) -> None:
        self.channel.script.extend(outcomes)

    def wait(self, **delta: float) -> None:
        self.clock.advance(**delta)


@pytest.fixture
def queue() -> Iterator[Queue]:
    queue = Queue()
    yield queue
    queue.database.close()


@pytest.mark.parametrize(
    ("before", "error", "after"),
    [
        (Standing(), DOWN, Standing(1, 0, None, START)),
        (Standing(), LOST, Standing(1, 0, START, START)),
        (Standing(), REFUSED, Standing(1, 1, None, START)),
        (Standing(3, 1, START - timedelta(hours=1), START - timedelta(hours=2)), DOWN,
         Standing(4, 1, START - timedelta(hours=1), START - timedelta(hours=2))),
    ],
)  # fmt: skip
def test_what_a_failure_leaves(before: Standing, error: DeliveryError, after: Standing) -> None:
    tried = after_failure(before, error, START, 0.0)
    assert isinstance(tried, Postponed)
    assert tried.standing == after
    assert tried.until > START
    assert tried.rest_until is None


def test_a_receiver_that_asks_for_rest_gets_it() -> None:
    tried = after_failure(Standing(), BUSY, START, 0.0)
    assert isinstance(tried, Postponed)
    assert tried.until == tried.rest_until == START + timedelta(minutes=10)


def test_it_is_given_up_after_a_day_or_after_four_refusals() -> None:
    day = after_failure(Standing(9, 0, None, START - GIVE_UP_AFTER), DOWN, START, 0.0)
    assert isinstance(day, GivenUp)
    assert day.lane_since == START - GIVE_UP_AFTER
    no = after_failure(Standing(3, MAX_REFUSALS - 1, None, START), REFUSED, START, 0.0)
    assert isinstance(no, GivenUp)
    assert no.lane_since is None


def test_a_message_that_comes_again_is_not_sent_again(queue: Queue) -> None:
    queue.say("thread-1")
    assert isinstance(queue.receive(1), Sent)
    assert queue.receive(1) is None
    assert isinstance(queue.receive(2), Sent)
    assert queue.channel.sent == ["gold/0001", "gold/0002"]
    assert queue.channel.threads == [None, "thread-1"]


def test_tries_refusals_and_the_day_are_remembered_from_one_worker_to_the_next(queue: Queue) -> None:
    queue.say(*[REFUSED] * MAX_REFUSALS)
    tried = [queue.receive(1) for _ in range(MAX_REFUSALS)]
    assert [type(one) for one in tried] == [Postponed] * (MAX_REFUSALS - 1) + [GivenUp]
    assert queue.receive(1) is None, "a dead letter is not sent by a message that comes again"
    assert len(queue.channel.tried) == MAX_REFUSALS


def test_a_worker_that_dies_leaves_a_try_that_may_have_succeeded(queue: Queue) -> None:
    assert queue.ledger(1).begin(START) == Standing()
    queue.wait(minutes=6)
    assert isinstance(queue.receive(1), Sent)
    assert queue.channel.maybe == [START]


def test_a_channel_that_wants_its_thread_to_end_has_failed(queue: Queue) -> None:
    """`sys.exit` in a library: the delivery is tried again later, and nothing behind it waits for a new worker."""
    queue.say(SystemExit(3))
    assert isinstance(queue.receive(1), Postponed)
    queue.wait(hours=1)
    assert isinstance(queue.receive(1), Sent)
    assert queue.channel.maybe[1] is not None, "the first try may have arrived"


def test_of_two_workers_with_the_same_message_one_sends(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    read, began = queue.store.get_many, list[Standing | None]()

    def overtaken(wanted: Sequence[Key]) -> list[Item | None]:
        items = read(wanted)
        if not began:
            began.append(None)
            began[0] = queue.ledger(1).begin(START)
        return items

    monkeypatch.setattr(queue.store, "get_many", overtaken)
    with pytest.raises(UnavailableError, match="another worker"):
        queue.ledger(1).begin(START)
    assert began == [Standing()]


def test_what_was_taken_over_meanwhile_is_not_overwritten(queue: Queue) -> None:
    slow = queue.ledger(1)
    assert slow.begin(START) is not None
    assert isinstance(queue.receive(1), Sent)
    with pytest.raises(StoreError, match="was changed"):
        slow.record(Sent(Standing(1), ()), START)


def test_rest_is_asked_from_every_pipeline(queue: Queue) -> None:
    queue.say(BUSY)
    assert isinstance(queue.receive(1), Postponed)
    other = queue.ledger(2, pipeline="silver")
    assert other.resting_until(queue.clock.now()) == START + timedelta(minutes=10)
    queue.wait(minutes=10)
    assert other.resting_until(queue.clock.now()) is None


def test_what_waited_behind_a_day_of_silence_gets_no_day_of_its_own(queue: Queue) -> None:
    queue.channel.always = lambda _: DOWN
    queue.receive(1)
    queue.wait(hours=24)
    assert isinstance(queue.receive(1), GivenUp)
    assert isinstance(queue.receive(2), GivenUp), "it was waiting all that time"
    assert isinstance(queue.receive(3, queued=queue.clock.now()), Postponed), "this one came just now"
    queue.channel.always = None
    assert isinstance(queue.receive(4), Sent)
    queue.channel.always = lambda _: DOWN
    assert isinstance(queue.receive(5), Postponed), "something got through since"


def test_a_dead_letter_that_is_redriven_has_a_day_of_its_own(queue: Queue) -> None:
    queue.say(*[REFUSED] * MAX_REFUSALS)
    for _ in range(MAX_REFUSALS):
        queue.receive(1)
    assert queue.ledger(1).revive(START)
    assert isinstance(queue.receive(1), Sent)
    assert not queue.ledger(1).revive(START)
    assert queue.ledger(9).revive(START), "one that was never tried has nothing to forget"


def test_a_message_that_holds_no_event_is_refused_and_a_lost_channel_named(queue: Queue) -> None:
    def unreadable() -> Alert:
        raise msgspec.DecodeError("truncated")

    ledger = queue.ledger(1)
    tried = deliver(ledger, queue.store, {"a": queue.channel}, "a", unreadable, clock=queue.clock, jitter=0.0)
    assert isinstance(tried, Postponed)
    assert "holds no event" in str(tried.error)
    tried = deliver(queue.ledger(2), queue.store, {}, "a", lambda: alert(2), clock=queue.clock, jitter=0.0)
    assert isinstance(tried, Postponed)
    assert "no channel 'a' is configured" in str(tried.error)


def test_what_a_channel_did_not_foresee_may_have_been_sent(queue: Queue) -> None:
    queue.channel.always = lambda _: ValueError("no such field")
    tried = queue.receive(1)
    assert isinstance(tried, Postponed)
    assert (tried.error.uncertain, tried.error.permanent) == (True, False)
    assert "ValueError('no such field')" in str(tried.error)
    assert tried.standing.begun_at == START


def test_a_success_is_counted_among_the_tries(queue: Queue) -> None:
    queue.say(DOWN)
    assert isinstance(queue.receive(1), Postponed)
    tried = queue.receive(1)
    assert isinstance(tried, Sent)
    assert (tried.standing.tries, tried.standing.refusals) == (2, 0)


def test_a_lost_channel_and_a_message_without_an_event_are_refusals(queue: Queue) -> None:
    for _ in range(MAX_REFUSALS - 1):
        deliver(queue.ledger(1), queue.store, {}, "a", lambda: alert(1), clock=queue.clock, jitter=0.0)
    tried = deliver(queue.ledger(1), queue.store, {}, "a", lambda: alert(1), clock=queue.clock, jitter=0.0)
    assert isinstance(tried, GivenUp)
    assert tried.error.permanent

"""The delivery queue: order, back-off, giving up, dead letters, and what a crash leaves behind."""

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.control.alerts.alert_dispatcher import GIVE_UP_AFTER, LONGEST_PAUSE, MAX_REFUSALS, pause_after
from interlock.embedded.alerts.delivery_rows import DeliveryState
from interlock.embedded.sqlite.connection import _STEPS
from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.dead_letters import LetterKind
from interlock.model.events import EventType
from interlock.model.keys import Table
from interlock.ports.channel import Alert, DeliveryError
from interlock.ports.store import Key
from tests.alerts.alerts import Outcome, ScriptedChannel, alert, delivery
from tests.alerts.queue_bench import Bench, Crash, down
from tests.conformance.manual_clock import START, ManualClock

THREAD = Key(Table.EVENTS, "PIPELINE#gold", "THREAD#cron#2026-03-02")


@pytest.fixture
def a() -> ScriptedChannel:
    return ScriptedChannel("a")


@pytest.fixture
def bench(a: ScriptedChannel) -> Iterator[Bench]:
    bench = Bench(a, ScriptedChannel("b"))
    yield bench
    bench.database.close()


def test_an_alert_is_sent_once(bench: Bench, a: ScriptedChannel) -> None:
    assert bench.queue.enqueue([delivery(1), delivery(2)]) == 2
    assert bench.queue.next_at() == START
    assert bench.run() == 2
    assert a.sent == ["gold/0001", "gold/0002"]
    assert bench.queue.next_at() is None
    assert bench.queue.enqueue([delivery(2), delivery(1)]) == 0, "read again from the stream"
    bench.wire()
    assert bench.run(days=30) == 0


def test_one_event_goes_to_each_channel(bench: Bench, a: ScriptedChannel) -> None:
    bench.queue.enqueue([delivery(1), delivery(1, channel="b")])
    bench.run()
    assert (a.sent, bench.channels["b"].sent) == (["gold/0001"], ["gold/0001"])


def test_a_failing_alert_holds_up_its_pipeline_on_its_channel_only(bench: Bench, a: ScriptedChannel) -> None:
    a.always = lambda alert: down() if alert.id == "gold/0001" else None
    bench.queue.enqueue(
        [delivery(1), delivery(2), delivery(3, "silver"), delivery(1, channel="b"), delivery(2, channel="b")]
    )
    bench.run_until(timedelta(hours=1))
    assert a.sent == ["silver/0003"]
    assert "gold/0002" not in a.tried
    assert bench.channels["b"].sent == ["gold/0001", "gold/0002"]
    a.always = None
    bench.run_until(timedelta(hours=2))
    assert a.sent == ["silver/0003", "gold/0001", "gold/0002"]


def test_pauses_double_up_to_a_quarter_of_an_hour(bench: Bench, a: ScriptedChannel) -> None:
    a.script.extend([down()] * 14)
    bench.queue.enqueue([delivery(1)])
    pauses = []
    for _ in range(14):
        before = bench.clock.now()
        bench.queue.run_due(before)
        at = bench.queue.next_at()
        assert at is not None
        pauses.append(at - before)
        bench.clock.advance(seconds=(at - before).total_seconds())
    assert [pause.total_seconds() for pause in pauses] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900, 900]


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_every_pause_is_within_its_bounds(tries: int, jitter: float) -> None:
    pause = pause_after(down(), tries, jitter)
    assert timedelta(seconds=1) <= pause <= LONGEST_PAUSE
    assert pause_after(down(), tries + 1, jitter) >= pause


def test_a_receiver_that_asks_for_rest_gets_it_from_all_pipelines(bench: Bench, a: ScriptedChannel) -> None:
    a.script.append(DeliveryError("slow down", retry_after=timedelta(seconds=90)))
    bench.queue.enqueue([delivery(1), delivery(2, "silver"), delivery(3, channel="b")])
    bench.run()
    assert (a.tried, bench.channels["b"].sent) == (["gold/0001"], ["gold/0003"])
    bench.queue.enqueue([delivery(4, "bronze")])
    assert bench.queue.next_at() == START + timedelta(seconds=90)
    assert bench.run(seconds=89) == 0
    assert bench.run(seconds=1) == 3
    assert sorted(a.sent) == ["bronze/0004", "gold/0001", "silver/0002"]


def test_rest_without_end_is_cut_and_rest_of_nothing_is_a_second(bench: Bench, a: ScriptedChannel) -> None:
    a.script.extend(DeliveryError("slow", retry_after=rest) for rest in (timedelta(days=400), timedelta(0)))
    bench.queue.enqueue([delivery(1)])
    bench.run()
    assert bench.queue.next_at() == START + timedelta(hours=1)
    bench.run(hours=1)
    assert bench.queue.next_at() == START + timedelta(hours=1, seconds=1)


# ------------------------------------------------------------------------------------------------ giving up


def test_an_outage_of_almost_a_day_loses_nothing(bench: Bench, a: ScriptedChannel) -> None:
    a.always = lambda _: down()
    bench.queue.enqueue([delivery(n) for n in range(3)])
    bench.run_until(GIVE_UP_AFTER - timedelta(minutes=1))
    assert (a.sent, bench.letters.count()) == ([], 0)
    a.always = None
    bench.run_until(GIVE_UP_AFTER + LONGEST_PAUSE)
    assert a.sent == ["gold/0000", "gold/0001", "gold/0002"]


def test_after_a_day_it_is_a_dead_letter_and_those_behind_get_a_day_from_when_they_came(
    bench: Bench, a: ScriptedChannel
) -> None:
    a.always = lambda _: down()
    bench.queue.enqueue([delivery(1), delivery(2)])
    bench.run_until(timedelta(hours=20))
    bench.queue.enqueue([delivery(3)])
    bench.run_until(timedelta(hours=25))
    assert [letter.record["event"] for letter in bench.letters.list()] == ["gold/0001", "gold/0002"]
    bench.run_until(timedelta(hours=43))
    assert bench.letters.count() == 2
    bench.run_until(timedelta(hours=45))
    assert [letter.record["event"] for letter in bench.letters.list()][-1] == "gold/0003"
    assert bench.queue.next_at() is None


def test_what_is_refused_for_good_is_a_dead_letter_after_a_few_tries(bench: Bench, a: ScriptedChannel) -> None:
    a.always = lambda alert: DeliveryError("no such channel", permanent=True) if alert.id == "gold/0001" else None
    bench.queue.enqueue([delivery(1), delivery(2)])
    bench.run_until(timedelta(minutes=1))
    assert a.tried.count("gold/0001") == MAX_REFUSALS
    assert a.sent == ["gold/0002"]
    (letter,) = bench.letters.list()
    assert (letter.kind, letter.source, letter.tries) == (LetterKind.DELIVERY, "a", MAX_REFUSALS)
    assert letter.error == "DeliveryError: no such channel"
    assert letter.record["item"]["type"] == "SLA_BREACH"
    assert letter.first_at == START
    assert bench.queue.enqueue([delivery(1)]) == 0, "given up is not forgotten"
    assert bench.queue.count(DeliveryState.DEAD) == 1


@pytest.mark.parametrize("chosen", [True, False])
def test_a_redriven_letter_is_sent_behind_what_waits(bench: Bench, a: ScriptedChannel, chosen: bool) -> None:
    a.always = lambda alert: DeliveryError("no", permanent=True) if alert.id == "gold/0001" else None
    bench.queue.enqueue([delivery(1)])
    bench.run_until(timedelta(minutes=1))
    a.always = None
    bench.queue.enqueue([delivery(2)])
    assert bench.letters.redrive([bench.letters.list()[0].id] if chosen else None) == 1
    bench.run()
    assert a.sent == ["gold/0002", "gold/0001"]
    assert bench.letters.count() == 0
    assert bench.queue.count(DeliveryState.DEAD) == 0
    assert bench.queue.count(DeliveryState.SENT) == 2


def test_a_letter_that_was_sent_meanwhile_is_not_sent_again(bench: Bench, a: ScriptedChannel) -> None:
    a.always = lambda _: DeliveryError("no", permanent=True)
    bench.queue.enqueue([delivery(1)])
    bench.run_until(timedelta(minutes=1))
    a.always = None
    (letter,) = bench.letters.list()
    bench.letters.redrive()
    bench.run()
    insert = (
        "INSERT INTO dead_letters (kind, source, ref, record, error, tries, first_ms, last_ms)"
        " VALUES ('delivery', 'a', 'x', ?, '', 1, 0, 0)"
    )
    record = bench.database.read("SELECT json_object('channel', channel, 'event', event, 'pipeline', pipeline,"
                                 " 'item', json(item), 'begun', NULL) FROM deliveries")[0][0]  # fmt: skip
    bench.database.write(lambda connection: connection.execute(insert, (record,)).rowcount)
    assert letter.record["event"] in record
    bench.letters.redrive()
    assert bench.run() == 0
    assert a.sent == ["gold/0001"]


def test_a_channel_that_is_gone_leaves_dead_letters_and_holds_up_nothing(bench: Bench, a: ScriptedChannel) -> None:
    bench.queue.enqueue([delivery(1, channel="removed"), delivery(1)])
    bench.run_until(timedelta(minutes=1))
    (letter,) = bench.letters.list()
    assert "no channel 'removed' is configured any more" in letter.error
    assert a.sent == ["gold/0001"]


def test_an_error_nobody_foresaw_is_tried_again(bench: Bench, a: ScriptedChannel) -> None:
    a.script.append(ZeroDivisionError("a bug"))
    bench.queue.enqueue([delivery(1)])
    bench.run_until(timedelta(minutes=1))
    assert a.sent == ["gold/0001"]
    assert a.maybe == [None, START], "it may have happened after the alert was sent"


def test_a_damaged_row_does_not_hold_up_its_pipeline(bench: Bench, a: ScriptedChannel) -> None:
    bench.queue.enqueue([delivery(1), delivery(2)])
    bench.database.write(lambda c: c.execute("UPDATE deliveries SET item = '{}' WHERE event = 'gold/0001'").rowcount)
    bench.run_until(timedelta(minutes=1))
    assert a.sent == ["gold/0002"]
    assert "holds no event" in bench.letters.list()[0].error


# -------------------------------------------------------------------------------------------------- threads


def test_the_thread_is_recorded_with_the_delivery_and_given_to_the_next(bench: Bench, a: ScriptedChannel) -> None:
    a.script.extend(["C1/1.0", "C1/1.0", "C1/9.0"])
    bench.queue.enqueue([delivery(1), delivery(2), delivery(3, date="2026-03-03"), delivery(4, channel="b")])
    bench.run()
    assert a.threads == [None, "C1/1.0", None]
    assert bench.channels["b"].threads == [None], "another channel has threads of its own"
    item = bench.store.get(THREAD)
    assert item is not None
    assert item["thread:a"] == "C1/1.0"


def test_a_replaced_thread_is_the_one_that_counts(bench: Bench, a: ScriptedChannel) -> None:
    a.script.extend(["C1/1.0", "C1/2.0", "C1/2.0"])
    bench.queue.enqueue([delivery(n) for n in range(3)])
    bench.run()
    assert a.threads == [None, "C1/1.0", "C1/2.0"]


def test_events_that_are_not_about_a_run_have_no_thread(bench: Bench, a: ScriptedChannel) -> None:
    a.script.extend(["C1/1.0", "C1/2.0"])
    bench.queue.enqueue([delivery(n, type_=EventType.CONFIG_INVALID, schedule="", date="") for n in range(2)])
    bench.run()
    assert a.threads == [None, None]


def test_threads_are_no_events(bench: Bench, a: ScriptedChannel) -> None:
    a.script.append("C1/1.0")
    bench.queue.enqueue([delivery(1)])
    bench.run()
    assert bench.database.read("SELECT type, at FROM events") == [(None, None)]


# --------------------------------------------------------------------------------------------------- crashes


def test_a_crash_while_sending_is_told_to_the_channel_afterwards(bench: Bench, a: ScriptedChannel) -> None:
    a.script.append(Crash())
    bench.queue.enqueue([delivery(1)])
    with pytest.raises(Crash):
        bench.run()
    bench.wire()
    bench.run(hours=1)
    assert a.maybe == [None, START]
    assert a.sent == ["gold/0001"]


def test_a_try_that_is_known_to_have_failed_leaves_no_doubt(bench: Bench, a: ScriptedChannel) -> None:
    a.script.extend([down(), DeliveryError("?", uncertain=True), down(), None])
    bench.queue.enqueue([delivery(1)])
    bench.run_until(timedelta(minutes=5))
    assert a.maybe[:2] == [None, None]
    assert a.maybe[2] == a.maybe[3] == START + timedelta(seconds=2)


def test_doubt_outlives_a_dead_letter(bench: Bench, a: ScriptedChannel) -> None:
    a.script.extend([DeliveryError("?", uncertain=True), *[DeliveryError("no", permanent=True)] * MAX_REFUSALS])
    bench.queue.enqueue([delivery(1)])
    bench.run_until(timedelta(hours=1))
    bench.letters.redrive()
    bench.run()
    assert a.maybe[-1] == START


@pytest.mark.parametrize("crash_at", range(1, 13))
def test_a_crash_at_any_commit_loses_nothing_and_keeps_the_order(crash_at: int) -> None:
    """At most the one alert whose recording was cut short is tried again, and the channel is told."""
    a = ScriptedChannel("a", "C1/1.0", down())
    bench = Bench(a)
    bench.queue.enqueue([delivery(n) for n in range(4)])
    commits = 0

    def fault(_: str) -> None:
        nonlocal commits
        commits += 1
        if commits == crash_at:
            raise Crash

    bench.database.fault = fault
    for _ in range(200):
        try:
            if bench.queue.next_at() is None:
                break
            bench.run(seconds=1)
        except Crash:
            bench.wire()
    else:
        pytest.fail("it never came to rest")
    repeated = [n for n, id_ in enumerate(a.sent) if id_ in a.sent[:n]]
    assert list(dict.fromkeys(a.sent)) == [f"gold/{n:04d}" for n in range(4)]
    assert a.sent == sorted(a.sent)
    assert len(repeated) <= 1
    doubts = [id_ for id_, maybe in zip(a.tried, a.maybe, strict=True) if maybe is not None]
    assert all(a.sent[n] in doubts for n in repeated), "what is sent twice is never sent blindly"
    bench.database.close()


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_whatever_fails_each_pipeline_is_heard_in_order_and_once(seed: int, count: int) -> None:
    chance = random.Random(seed)
    a, b = ScriptedChannel("a"), ScriptedChannel("b")
    outcomes: list[Outcome] = [None, None, down(), DeliveryError("rest", retry_after=timedelta(seconds=30))]
    a.always = b.always = lambda _: chance.choice(outcomes)
    bench = Bench(a, b, jitter=0.5)
    for n in range(count):
        wanted = delivery(n, chance.choice(["gold", "silver"]), chance.choice(["a", "b"]))
        bench.queue.enqueue([wanted, wanted])
        if chance.random() < 0.3:
            bench.run(seconds=chance.choice([0, 1, 100]))
        if chance.random() < 0.1:
            bench.wire()
    bench.run_until(bench.clock.now() - START + timedelta(hours=12))
    assert bench.queue.count() == 0
    assert len(a.sent) + len(b.sent) == count
    for channel in (a, b):
        for pipeline in ("gold", "silver"):
            heard = [id_ for id_ in channel.sent if id_.startswith(pipeline)]
            assert heard == sorted(set(heard))
    bench.database.close()


# ------------------------------------------------------------------------------------------------ and the rest


def test_settled_deliveries_are_forgotten_after_the_events_themselves(bench: Bench, a: ScriptedChannel) -> None:
    bench.queue.enqueue([delivery(1)])
    bench.run()
    a.always = lambda _: down()
    bench.queue.enqueue([delivery(2)])
    bench.clock.advance(days=90)
    bench.queue.enqueue([delivery(3)])
    assert (bench.queue.count(DeliveryState.SENT), bench.queue.count()) == (1, 2)
    bench.clock.advance(seconds=1)
    bench.queue.enqueue([delivery(4)])
    assert (bench.queue.count(DeliveryState.SENT), bench.queue.count()) == (0, 3), "what waits is never forgotten"


def test_an_older_store_gets_the_queue(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interlock.embedded.sqlite.connection._STEPS", _STEPS[: _STEPS.index("deliveries.sql")])
        Database.open(path, clock=ManualClock(), inline=True).close()
    with Database.open(path, clock=ManualClock(), inline=True) as database:
        assert database.read("SELECT count(*) FROM deliveries") == [(0,)]


def test_the_alert_that_is_sent_is_the_one_that_was_queued(bench: Bench, a: ScriptedChannel) -> None:
    seen: list[Alert] = []
    a.always = seen.append
    wanted = delivery(7, status="waiting", waitingFor=["rows"], nested={"a": [1, 2.5, None]})
    bench.queue.enqueue([wanted])
    bench.run()
    assert seen == [wanted.alert]
    assert seen[0] == alert(7, status="waiting", waitingFor=["rows"], nested={"a": [1, 2.5, None]})

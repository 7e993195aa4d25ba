"""StreamConsumer: the conformance suite pumped and with threads, checkpoints, crashes, other processes."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from greenlet import GreenletExit

from interlock.embedded.sqlite.database import BEFORE_COMMIT, Database, Row
from interlock.embedded.sqlite.fibers import TargetThreads
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream import lanes
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.embedded.stream.stream import StreamConsumer, unregister
from interlock.model.errors import StoreError
from interlock.model.keys import Table
from interlock.ports.store import Change, Key, Put, Store
from tests.conformance.manual_clock import ManualClock
from tests.conformance.stream_suite import TABLES, Handler, Recorder, Stream, StreamSuite, number

WAIT = 20.0


class Crash(BaseException):
    """The process dies here."""


class _SqliteStream:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._letters = DeadLetters(database)
        self._store = SqliteStore(database, database.clock)

    @property
    def store(self) -> Store:
        return self._store

    def deliver(self, handler: Handler, tables: Sequence[Table] = TABLES) -> None:
        consumer = StreamConsumer(self._database, "suite", tables, handler)
        while consumer.pump():
            pass

    def dead_letters(self) -> list[Change]:
        records = [letter.record for letter in self._letters.list(1000)]
        return [Change(r["seq"], Table(r["table"]), r["pk"], r["sk"], r["at"], r["item"]) for r in records]

    def redrive(self) -> None:
        self._letters.redrive()


class _ThreadedStream(_SqliteStream):
    def deliver(self, handler: Handler, tables: Sequence[Table] = TABLES) -> None:
        with running(self._database, handler, tables) as consumer:
            settle(self._database, consumer)


@contextmanager
def running(
    database: Database, handler: Handler, tables: Sequence[Table] = TABLES, name: str = "suite"
) -> Iterator[StreamConsumer]:
    consumer = StreamConsumer(database, name, tables, handler)
    consumer.start()
    try:
        yield consumer
    finally:
        consumer.stop()


def until(condition: Callable[[], bool]) -> None:
    """Look again and again, for what has no event to wait on."""
    tick = threading.Event()
    for _ in range(int(WAIT / 0.005)):
        if condition():
            return
        tick.wait(0.005)
    raise AssertionError("it did not happen in time")


def settle(database: Database, consumer: StreamConsumer) -> None:
    until(lambda: consumer.lag() == 0)


class TestPumped(StreamSuite):
    @contextmanager
    def open_stream(self) -> Iterator[Stream]:
        with Database.open(None, clock=ManualClock(), inline=True) as database:
            yield _SqliteStream(database)


class TestThreaded(StreamSuite):
    @pytest.fixture(autouse=True)
    def _short_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lanes, "FIRST_PAUSE", 0.002)

    @contextmanager
    def open_stream(self) -> Iterator[Stream]:
        with TemporaryDirectory() as folder, Database.open(Path(folder, "s.db"), clock=ManualClock()) as database:
            yield _ThreadedStream(database)


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.open(None, clock=ManualClock(), inline=True) as database:
        yield database


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "s.db", clock=ManualClock()) as database:
        yield database


def put(database: Database, *numbers: int, pk: str = "a", filler: str = "") -> None:
    store = SqliteStore(database, database.clock)
    for n in numbers:
        store.commit([Put(Key(Table.CONTROL, pk, f"s{n}"), {"n": n, "filler": filler})])


def checkpoint(database: Database, name: str = "suite") -> int:
    return int(database.read("SELECT checkpoint FROM consumers WHERE name = ?", (name,))[0][0])


def test_pumping_keeps_the_order_of_the_commits_across_partitions(database: Database) -> None:
    for n, pk in enumerate("aabacc"):
        put(database, n, pk=pk)
    recorder = Recorder()
    consumer = StreamConsumer(database, "suite", TABLES, recorder)
    assert consumer.pump() == 6
    assert [[number(change) for change in call] for call in recorder.calls] == [[0, 1], [2], [3], [4, 5]]
    assert consumer.pump() == 0


def test_a_pump_takes_what_is_there_and_leaves_what_its_handler_adds(database: Database) -> None:
    put(database, 0)
    seen: list[int] = []

    def handler(changes: Sequence[Change]) -> None:
        seen.append(number(changes[0]))
        put(database, seen[-1] + 1)

    consumer = StreamConsumer(database, "suite", TABLES, handler)
    assert [consumer.pump() for _ in range(3)] == [1, 1, 1]
    assert seen == [0, 1, 2]


def test_a_long_backlog_is_read_in_chunks(database: Database) -> None:
    store = SqliteStore(database, database.clock)
    for start in range(0, 500, 100):
        table = Table.EVENTS if start == 200 else Table.CONTROL
        store.commit([Put(Key(table, "a", f"s{n}"), {"n": n}) for n in range(start, start + 100)])
    recorder = Recorder()
    consumer = StreamConsumer(database, "suite", [Table.CONTROL], recorder)
    assert consumer.pump() == 400
    assert recorder.numbers("a") == [n for n in range(500) if n // 100 != 2]
    assert consumer.lag() == 0


def test_a_checkpoint_rides_on_the_next_write(database: Database) -> None:
    put(database, 1, 2)
    consumer = StreamConsumer(database, "suite", TABLES, Recorder())
    consumer.pump()
    assert checkpoint(database) == 0
    put(database, 3)
    assert checkpoint(database) == 2


def test_after_a_crash_only_what_was_not_checkpointed_comes_again(database: Database) -> None:
    put(database, 1, 2, pk="a")
    put(database, 3, pk="b")
    put(database, 4, pk="c")
    seen: list[int] = []

    def handler(changes: Sequence[Change]) -> None:
        seen.extend(map(number, changes))
        if changes[0].pk == "b":
            SqliteStore(database, database.clock).commit([Put(Key(Table.RERUN, "b", "done"), {})])
        if changes[0].pk == "c" and seen.count(4) == 1:
            raise Crash

    with pytest.raises(Crash):
        StreamConsumer(database, "suite", TABLES, handler).pump()
    database.drop_deferred()
    # The handler of 3 wrote, and took the checkpoint of 1 and 2 with it; that of 3 itself found no write to ride on.
    StreamConsumer(database, "suite", TABLES, handler).pump()
    assert seen == [1, 2, 3, 4, 3, 4]
    assert DeadLetters(database).count() == 0


def test_a_crash_in_a_commit_passes_through_untouched(database: Database) -> None:
    put(database, 1)
    crash = Crash()

    def strike(point: str) -> None:
        if point == BEFORE_COMMIT:
            raise crash

    consumer = StreamConsumer(database, "suite", TABLES, lambda _: put(database, 2))
    consumer.register()
    database.fault = strike
    with pytest.raises(Crash) as caught:
        consumer.pump()
    assert caught.value is crash
    database.fault = None
    assert database.head() == 1


def test_a_dead_letter_that_can_not_be_written_keeps_its_record(database: Database) -> None:
    put(database, 1)
    consumer = StreamConsumer(database, "suite", TABLES, Recorder(lambda _: True))
    consumer.register()
    database.write(lambda c: c.execute("ALTER TABLE dead_letters RENAME TO elsewhere"))
    with pytest.raises(StoreError, match="dead_letters"):
        consumer.pump()
    database.write(lambda c: c.execute("ALTER TABLE elsewhere RENAME TO dead_letters"))
    consumer.pump()
    assert [letter.tries for letter in DeadLetters(database).list()] == [3]


def test_the_same_record_failing_again_after_a_crash_is_one_dead_letter(database: Database) -> None:
    put(database, 1)
    for _ in range(2):
        StreamConsumer(database, "suite", TABLES, Recorder(lambda _: True)).pump()
        database.drop_deferred()
    (letter,) = DeadLetters(database).list()
    assert letter.tries == 6


def test_consumers_are_independent_and_a_redriven_record_goes_to_its_own(database: Database) -> None:
    put(database, 1, 2)
    good, bad = Recorder(), Recorder(lambda change: number(change) == 1)
    first, second = (StreamConsumer(database, name, TABLES, h) for name, h in (("good", good), ("bad", bad)))
    first.pump()
    second.pump()
    bad.poison = lambda _: False
    assert DeadLetters(database).redrive() == 1
    assert (first.pump(), second.pump()) == (0, 1)
    assert good.numbers("a") == [1, 2]
    assert bad.numbers("a") == [2, 1]
    assert first.lag() == 0


def test_a_new_consumer_starts_at_the_beginning_and_an_unregistered_one_is_forgotten(database: Database) -> None:
    put(database, 1)
    StreamConsumer(database, "old", TABLES, Recorder()).pump()
    late = Recorder()
    StreamConsumer(database, "new", TABLES, late).pump()
    assert late.numbers("a") == [1]
    assert [unregister(database, "old") for _ in range(2)] == [True, False]


def test_running_consumers_hear_at_once_and_leave_their_checkpoint(on_disk: Database) -> None:
    heard = threading.Event()

    def handler(changes: Sequence[Change]) -> None:
        if number(changes[-1]) == 2:
            heard.set()

    with running(on_disk, handler) as consumer:
        put(on_disk, 1)
        settle(on_disk, consumer)
        put(on_disk, 2)
        assert heard.wait(WAIT)
    on_disk.flush()
    until(lambda: checkpoint(on_disk) == 2)


def test_an_idle_consumer_flushes_its_checkpoint(on_disk: Database) -> None:
    put(on_disk, 1)
    with running(on_disk, Recorder()):
        until(lambda: bool(on_disk.read("SELECT 1 FROM consumers WHERE checkpoint = 1")))


def test_a_hanging_partition_does_not_hold_up_the_others(on_disk: Database) -> None:
    threads, release, others = TargetThreads(), threading.Event(), threading.Event()
    done: list[str] = []

    def handler(changes: Sequence[Change]) -> None:
        if changes[0].pk == "slow":
            assert threads.call(lambda: release.wait(WAIT))
        done.extend(change.pk for change in changes)
        if done.count("quick") == 300:
            others.set()

    put(on_disk, 1, pk="slow")
    with running(on_disk, handler) as consumer:
        put(on_disk, *range(300), pk="quick")
        assert others.wait(WAIT)
        assert "slow" not in done
        assert consumer.lag() == 301, "the checkpoint stays before what is not done"
        release.set()
        settle(on_disk, consumer)
    assert done.count("slow") == 1


def test_partitions_that_pause_occupy_no_lane(on_disk: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "FIRST_PAUSE", 3600.0)
    recorder = Recorder(lambda change: change.pk.startswith("poison"))
    for n in range(8):
        put(on_disk, n, pk=f"poison{n}")
    with running(on_disk, recorder):
        put(on_disk, 99, pk="good")
        until(lambda: recorder.numbers("good") == [99])
    assert DeadLetters(on_disk).count() == 0


def test_partitions_that_pause_need_no_threads(on_disk: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "FIRST_PAUSE", 0.2)
    threads: list[int] = []

    def handler(changes: Sequence[Change]) -> None:
        threads.append(threading.active_count())
        raise RuntimeError("none of them can be handled now")

    store = SqliteStore(on_disk, on_disk.clock)
    store.commit([Put(Key(Table.CONTROL, f"poison{n}", "s"), {"n": n}) for n in range(50)])
    with running(on_disk, handler) as consumer:
        before = threading.active_count()
        until(lambda: DeadLetters(on_disk).count() == 50)
        settle(on_disk, consumer)
    assert len(threads) == 150
    assert max(threads) <= before


def test_a_full_window_waits_for_room(on_disk: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.embedded.stream.stream._WINDOW", 5)
    gate = threading.Semaphore(0)
    recorder = Recorder()

    def handler(changes: Sequence[Change]) -> None:
        assert gate.acquire(timeout=WAIT)
        recorder(changes)

    put(on_disk, *range(40))
    with running(on_disk, handler) as consumer:
        gate.release(40)
        settle(on_disk, consumer)
    assert recorder.numbers("a") == list(range(40))
    assert max(map(len, recorder.calls)) <= 5


class Waits(threading.Event):
    """Remembers how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.asked.append(timeout)
        return super().wait(None if timeout is None else min(timeout, 0.01))


@pytest.mark.parametrize("error", [StoreError("the disk is broken"), ValueError("no such table")])
def test_changes_that_can_not_be_read_are_tried_again_without_haste(
    on_disk: Database, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("interlock.embedded.stream.stream._BROKEN_STORE_SECONDS", 77.0)
    recorder, waits, broken = Recorder(), Waits(), threading.Event()
    consumer = StreamConsumer(on_disk, "suite", TABLES, recorder)
    read = consumer._read

    def sometimes(position: int, end: int, limit: int) -> tuple[list[Change], int]:
        if broken.is_set():
            raise error
        return read(position, end, limit)

    monkeypatch.setattr(consumer, "_read", sometimes)
    monkeypatch.setattr(consumer, "_stopping", waits)
    broken.set()
    put(on_disk, 1)
    consumer.start()
    until(lambda: 77.0 in waits.asked)
    broken.clear()
    settle(on_disk, consumer)
    until(lambda: waits.asked[-1] != 77.0)
    consumer.stop()
    assert recorder.numbers("a") == [1]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Crash()], ids=repr)
def test_what_a_handler_raises_that_is_no_exception_blocks_nobody(
    on_disk: Database, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """A library that calls `sys.exit` for a record: it is a dead letter like any other that cannot be handled."""
    monkeypatch.setattr(lanes, "FIRST_PAUSE", 0.001)
    recorder = Recorder()

    def handler(changes: Sequence[Change]) -> None:
        if any(number(change) == 2 for change in changes):
            raise error
        recorder(changes)

    put(on_disk, 1, 2, 3, pk="a")
    put(on_disk, 4, pk="b")
    with running(on_disk, handler) as consumer:
        settle(on_disk, consumer)
    assert (recorder.numbers("a"), recorder.numbers("b")) == ([1, 3], [4])
    (letter,) = DeadLetters(on_disk).list()
    assert (letter.tries, letter.record["item"]["n"]) == (3, 2)
    assert repr(error) in letter.error
    assert [loop.failures for loop in on_disk.loops] == [0] * len(list(on_disk.loops))


def test_a_lane_whose_fiber_is_ended_ends_the_run_and_is_raised_there(on_disk: Database) -> None:
    end = GreenletExit()

    def handler(_: Sequence[Change]) -> None:
        raise end

    put(on_disk, 1)
    with pytest.raises(GreenletExit) as caught:
        StreamConsumer(on_disk, "suite", TABLES, handler).run()
    assert caught.value is end
    assert DeadLetters(on_disk).count() == 0
    assert StreamConsumer(on_disk, "suite", TABLES, Recorder()).pump() == 1


def test_a_lane_keeps_a_record_whose_dead_letter_fails(on_disk: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(lanes, "_BROKEN_STORE_PAUSE", 0.001)
    put(on_disk, 1)
    recorder = Recorder(lambda _: True)
    consumer = StreamConsumer(on_disk, "suite", TABLES, recorder)
    consumer.register()
    on_disk.write(lambda c: c.execute("ALTER TABLE dead_letters RENAME TO elsewhere").rowcount)
    consumer.start()
    until(lambda: len(recorder.calls) > 5)
    on_disk.write(lambda c: c.execute("ALTER TABLE elsewhere RENAME TO dead_letters").rowcount)
    until(lambda: DeadLetters(on_disk).count() == 1)
    settle(on_disk, consumer)
    consumer.stop()


def test_changes_that_meet_a_full_disk_are_no_dead_letters(on_disk: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(lanes, "_BROKEN_STORE_PAUSE", 0.001)
    tried, stored = list[int](), list[int]()

    def handler(changes: Sequence[Change]) -> None:
        for change in changes:
            tried.append(number(change))
            put(on_disk, 100 + number(change), pk="copies", filler="x" * 50_000)
            stored.append(number(change))

    put(on_disk, *range(4))
    consumer = StreamConsumer(on_disk, "suite", [Table.CONTROL], lambda changes: handler(of_a(changes)))
    consumer.register()
    on_disk.write(lambda c: c.execute("PRAGMA max_page_count = 1").fetchone())
    consumer.start()
    until(lambda: len(tried) > 10)
    on_disk.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())
    settle(on_disk, consumer)
    consumer.stop()
    assert sorted(set(stored)) == [0, 1, 2, 3]
    assert DeadLetters(on_disk).count() == 0


def of_a(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change.pk == "a"]


def test_a_consumer_outlives_a_store_that_can_not_be_read_for_a_while(
    on_disk: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([StoreError("the disk is full")] * 3)
    read = on_disk.read

    def flaky(sql: str, params: Sequence[object] = ()) -> list[Row]:
        if "FROM changes" in sql and (error := next(answers, None)) is not None:
            raise error
        return read(sql, params)

    monkeypatch.setattr(on_disk, "read", flaky)
    put(on_disk, 1)
    recorder = Recorder()
    with running(on_disk, recorder):
        until(lambda: recorder.numbers("a") == [1])
    assert next(answers, None) is None


OTHER_PROCESS = """
import sys
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.keys import Table
from interlock.ports.store import Key, Put
clock = SystemClock()
with Database.open(sys.argv[1], clock=clock) as database:
    for n in range(50):
        SqliteStore(database, clock).commit([Put(Key(Table.CONTROL, "a", f"s{n}"), {"n": n})])
"""


def test_changes_of_another_process_are_delivered(on_disk: Database) -> None:
    recorder = Recorder()
    with running(on_disk, recorder):
        subprocess.run([sys.executable, "-c", OTHER_PROCESS, str(on_disk.path)], check=True, timeout=60)
        until(lambda: len(recorder.handled) == 50)
    assert recorder.numbers("a") == list(range(50))

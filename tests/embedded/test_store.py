"""SqliteStore: the conformance suite on disk and in memory, and what is SQLite's own: `apply` and `sweep`."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.stream import StreamConsumer
from interlock.model.errors import CommitRefusedError, StoreError
from interlock.model.keys import Table
from interlock.model.times import epoch_millis
from interlock.ports.store import Change, Conflict, Delete, Key, Missing, Present, Put, Store, Update, Write
from tests.conformance.manual_clock import START, ManualClock
from tests.conformance.store_backend import key
from tests.conformance.store_suite import StoreSuite

SECONDS = int(START.timestamp())


def all_changes(database: Database) -> list[Change]:
    rows = database.read("SELECT seq, tbl, pk, sk, at, item FROM changes ORDER BY seq")
    return [
        Change(s, Table(t), pk, sk, at, None if i is None else msgspec.json.decode(i)) for s, t, pk, sk, at, i in rows
    ]


class _SqliteSuite(StoreSuite):
    def changes(self, store: Store) -> list[Change]:
        assert isinstance(store, SqliteStore)
        return all_changes(store._database)

    def test_changes_are_in_commit_order_per_partition(self, store: Store) -> None:
        """More than the port promises: dead letters and lanes are kept per partition here."""
        for n in range(12):
            store.commit([Put(key(f"S{n % 4}"), {"n": n}), Put(key(f"T{n % 3}"), {"n": n})])
        reported = [int((change.item or {})["n"]) for change in self.changes(store)]
        assert reported == sorted(reported)


class TestInMemory(_SqliteSuite):
    @contextmanager
    def open_store(self, clock: ManualClock) -> Iterator[Store]:
        with Database.open(None, clock=clock, inline=True) as database:
            yield SqliteStore(database, clock)


class TestOnDisk(_SqliteSuite):
    @contextmanager
    def open_store(self, clock: ManualClock) -> Iterator[Store]:
        with TemporaryDirectory() as folder, Database.open(Path(folder, "s.db"), clock=clock) as database:
            yield SqliteStore(database, clock)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(clock: ManualClock) -> Iterator[Database]:
    with Database.open(None, clock=clock, inline=True) as database:
        yield database


def control(sk: str, pk: str = "PIPELINE#p") -> Key:
    return Key(Table.CONTROL, pk, sk)


def test_apply_joins_a_commit_and_other_rows_in_one_transaction(database: Database, clock: ManualClock) -> None:
    store = SqliteStore(database, clock)

    def both(connection: sqlite3.Connection, writes: list[Write]) -> Conflict | None:
        connection.execute("INSERT INTO executions (name, status) VALUES ('e', 'open')")
        conflict = store.apply(connection, writes, epoch_millis(clock.now()))
        if any(write.key.sk == "crash" for write in writes):
            raise RuntimeError("after the commit")
        return conflict

    with pytest.raises(RuntimeError):
        database.write(lambda connection: both(connection, [Put(control("crash"), {})]))
    assert store.get(control("crash")) is None
    assert database.read("SELECT name FROM executions") == []
    assert database.write(lambda connection: both(connection, [Put(control("a"), {}, when=Missing())])) is None
    assert store.get(control("a")) == {}
    assert database.read("SELECT name FROM executions") == [("e",)]


def test_apply_writes_nothing_on_a_conflict_and_refuses_as_commit_does(database: Database, clock: ManualClock) -> None:
    store = SqliteStore(database, clock)
    writes: list[Write] = [Put(control("a"), {}), Delete(control("b"), when=Present())]
    assert database.write(lambda connection: store.apply(connection, writes, 0)) == Conflict((1,))
    with pytest.raises(CommitRefusedError):
        database.write(lambda connection: store.apply(connection, [writes[0], writes[0]], 0))
    assert store.query(Table.CONTROL, "PIPELINE#p") == []
    assert all_changes(database) == []


def test_a_sweep_removes_expired_items_in_small_steps_and_tells_of_it(database: Database, clock: ManualClock) -> None:
    store = SqliteStore(database, clock)
    for table in Table:
        store.commit([Put(Key(table, "p", f"s{n}"), {"ttl": SECONDS + 1 + n}) for n in range(3)])
    assert store.sweep() == 0
    clock.advance(seconds=2)
    assert [store.sweep(limit=3) for _ in range(4)] == [3, 3, 2, 0]
    assert [len(store.query(table, "p")) for table in Table] == [1, 1, 1, 1]
    assert sum(database.read(f"SELECT count(*) FROM {table}")[0][0] for table in Table) == 4
    removals = [(change.table, change.sk, change.at) for change in all_changes(database) if change.item is None]
    reported = [Table.CONTROL, Table.JOBLOG, Table.EVENTS]
    assert sorted(removals) == sorted(
        (table, f"s{n}", epoch_millis(clock.now())) for table in reported for n in range(2)
    )


def test_changes_are_kept_until_every_consumer_passed_them(database: Database, clock: ManualClock) -> None:
    store = SqliteStore(database, clock)
    for n in range(10):
        store.commit([Put(control(f"s{n}"), {})])
    assert store.sweep() == 0, "nobody has registered: whoever comes first is to see everything"
    fast, slow = (StreamConsumer(database, name, [Table.CONTROL], lambda _: None) for name in ("fast", "slow"))
    fast.register()
    slow.register()
    fast.pump()
    database.flush()
    assert store.sweep() == 0
    slow.pump()
    database.flush()
    assert [store.sweep(limit=4) for _ in range(4)] == [4, 4, 2, 0]
    store.commit([Put(control("next"), {})])
    assert [change.seq for change in all_changes(database)] == [11], "a number is never used again"


def test_an_event_that_is_replaced_moves_in_the_index(database: Database, clock: ManualClock) -> None:
    store = SqliteStore(database, clock)
    key = Key(Table.EVENTS, "p", "0000000001000#A#1")
    for item, a, b in (({"type": "A"}, 1, 0), ({"type": "B"}, 0, 1), ({"type": 5}, 0, 0)):
        store.commit([Put(key, item)])
        assert len(store.events_by_type("A", since=0, until=5000, limit=9)) == a
        assert len(store.events_by_type("B", since=0, until=5000, limit=9)) == b


@pytest.mark.parametrize("sk", ["no-time", "12x#A", "#A", "²#A", "9" * 30 + "#A"])
def test_an_event_whose_key_has_no_time_is_stored_but_not_indexed(
    database: Database, clock: ManualClock, sk: str
) -> None:
    store = SqliteStore(database, clock)
    store.commit([Put(Key(Table.EVENTS, "p", sk), {"type": "A"})])
    assert store.get(Key(Table.EVENTS, "p", sk)) == {"type": "A"}
    assert store.events_by_type("A", since=0, until=2**60, limit=9) == []


def test_indexes_serve_the_questions_that_are_asked_often(database: Database) -> None:
    plans = {
        "SELECT pk FROM control WHERE sk = 'CONFIG' AND pk >= ? AND pk < ?": "control_configs",
        "SELECT pk FROM events WHERE at IS NOT NULL AND type = ? AND at >= ? ORDER BY at, sk, pk": "events_by_type",
        "SELECT pk FROM control WHERE ttl <= ? ORDER BY ttl": "control_ttl",
        "SELECT name FROM timers WHERE due_us <= ? ORDER BY due_us, id": "timers_due",
        "SELECT name FROM executions WHERE due_ms <= ? ORDER BY due_ms": "executions_due",
        "SELECT name FROM executions WHERE token = ?": "executions_token",
    }
    for sql, index in plans.items():
        plan = str(database.read(f"EXPLAIN QUERY PLAN {sql}", ("0",) * sql.count("?")))
        assert index in plan, sql
        assert "TEMP B-TREE" not in plan, sql


def test_the_store_says_so_when_it_is_closed_or_read_only(tmp_path: Path, clock: ManualClock) -> None:
    with Database.open(tmp_path / "s.db", clock=clock) as database:
        SqliteStore(database, clock).commit([Put(control("a"), {"n": 1})])
    with pytest.raises(StoreError, match="closed"):
        SqliteStore(database, clock).commit([Update(control("a"))])
    with pytest.raises(StoreError, match="closed"):
        SqliteStore(database, clock).get(control("a"))
    with Database.open(tmp_path / "s.db", clock=clock, read_only=True) as reader:
        assert SqliteStore(reader, clock).get(control("a")) == {"n": 1}
        with pytest.raises(StoreError, match="reading only"):
            SqliteStore(reader, clock).commit([Update(control("a"))])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("after", [None, Key(Table.EVENTS, "p", "0000000001000#A#1")])
def test_a_page_of_a_type_seeks_to_its_own_first_row(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, after: Key | None, reverse: bool
) -> None:
    plans = _plans(database, monkeypatch)
    store = SqliteStore(database, clock)
    store.events_by_type("A", since=0, until=5_000, limit=10, after=after, reverse=reverse)
    # What is found is packed into one row, and read and sorted by nothing but the index.
    (plan,) = [one for one in plans if one not in ("CO-ROUTINE (subquery-1)", "SCAN (subquery-1)")]
    assert plan.startswith("SEARCH events USING INDEX events_by_type (type=? AND ")


def _plans(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How SQLite goes about each statement that is read from now on."""
    found: list[str] = []
    read = database.read

    def explained(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        found.extend(row[3] for row in read(f"EXPLAIN QUERY PLAN {sql}", params))
        return read(sql, params)

    monkeypatch.setattr(database, "read", explained)
    return found


def test_partitions_that_were_written_since_a_position(tmp_path: Path, clock: ManualClock) -> None:
    with Database.open(tmp_path / "s.db", clock=clock) as database:
        store = SqliteStore(database, clock)
        store.commit([Put(key(), {"ttl": SECONDS + 60})])
        first = store.changed_since(None)
        assert (first.position > 0, first.partitions) == (True, None)
        assert store.changed_since(first.position).partitions == frozenset()
        store.commit([Put(key(table=table, pk=f"PIPELINE#{table}"), {}) for table in Table])
        second = store.changed_since(first.position)
        streamed = frozenset({"PIPELINE#control", "PIPELINE#joblog", "PIPELINE#events"})
        assert (second.position > first.position, second.partitions) == (True, streamed)
        consumer = StreamConsumer(database, "all", tuple(Table), lambda _: None)
        consumer.register()
        consumer.pump()
        clock.advance(minutes=2)
        while store.sweep():
            pass
        removed = store.changed_since(second.position)
        assert (removed.position > second.position, removed.partitions) == (True, frozenset({key().pk}))
        # Changes that are gone may have been of any partition, and a position that was never reached says nothing.
        assert store.changed_since(first.position).partitions is None
        assert store.changed_since(removed.position + 1).partitions is None

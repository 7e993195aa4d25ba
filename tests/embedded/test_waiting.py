"""What a wait costs as it is armed: rows are written once, and nobody is told of what nobody follows."""

import itertools
import sqlite3
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from bench.controller import NoJob, apply, document, trigger
from bench.waiting import _waiting
from interlock.control import router
from interlock.control.context import Control
from interlock.embedded.asl.execution import WaitKind
from interlock.embedded.asl.execution_rows import insert
from interlock.embedded.engine import Engine
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.item_cache import StoreConnection
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream import stream
from interlock.embedded.stream.stream import StreamConsumer
from interlock.model import keys
from interlock.model.config import JobType
from interlock.model.keys import Table
from interlock.ports.store import Change, Delete, Key, Put
from tests.conformance.manual_clock import ManualClock

NOW: Final = datetime(2026, 3, 30, 12, tzinfo=UTC)
MISSING: Final = {"key": "rows", "check": "gte", "field": "count", "value": 10}
DAYS: Final = [f"2026-03-{day:02}" for day in range(1, 11)]


def test_armed_wait_is_three_rows_of_one_commit_and_nothing_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ids = ManualClock(NOW), itertools.count(1)
    database = Database.open(None, clock=clock, inline=True)
    engine = Engine(database, clock, {JobType.COMMAND: NoJob()}, new_id=lambda: f"id-{next(ids)}")
    engine.prepare()
    apply(engine, document("p", MISSING))
    for day in DAYS:
        trigger(engine, "p", day)
    while engine.router.pump():
        pass
    assert engine.executions.list_open()[0].waiting is None

    delivered: list[Change] = []
    real = router.handle

    def handle(control: Control, changes: Sequence[Change]) -> None:
        delivered.extend(changes)
        real(control, changes)

    counted: Counter[str] = Counter()

    def execute(self: StoreConnection, sql: str, *values: Any) -> sqlite3.Cursor:
        counted[" ".join(sql.split()[:3])] += 1
        return sqlite3.Connection.execute(self, sql, *values)

    monkeypatch.setattr(router, "handle", handle)
    monkeypatch.setattr(StoreConnection, "execute", execute, raising=False)
    assert engine.executions.run_due(clock.now()) == len(DAYS)
    assert {one.waiting for one in engine.executions.list_open()} == {WaitKind.TOKEN}
    written = {sql: count / len(DAYS) for sql, count in counted.items() if not sql.startswith(("SELECT", "BEGIN"))}
    # One commit: the record with the token, its change, the row of the execution. Checkpoints ride along.
    del written["UPDATE consumers SET"]
    assert written == {"INSERT OR REPLACE": 2.0, "UPDATE executions SET": 1.0, "COMMIT": 1.0}
    engine.router.pump()
    assert not [change for change in delivered if change.sk.startswith(keys.ACTIVE)]
    assert engine.router.lag() == 0


def test_execution_that_waits_already_is_inserted_as_it_is() -> None:
    database = Database.open(None, clock=ManualClock(NOW), inline=True)
    (execution,) = _waiting(range(1), NOW)
    database.write(lambda connection: insert(connection, execution))
    rows = database.read("SELECT state, token, version, due_ms FROM executions")
    assert execution.waiting is not None
    due = execution.waiting.until
    assert due is not None
    assert rows == [("WaitInterval", execution.waiting.token, 1, int(due.timestamp() * 1000))]


@pytest.mark.parametrize("prefix", [*router.UNROUTED, *keys.UNSTREAMED])
def test_nothing_follows_from_what_is_not_delivered(prefix: str) -> None:
    followed = [act for route, act in router._ROUTES if prefix.startswith(route) or route.startswith(prefix)]
    # `CONFIGV#` begins as CONFIG does: a route of its own keeps it from that one.
    assert [act.__name__ for act in followed[:1]] == (["<lambda>"] if prefix == keys.CONFIG_VERSION else [])


def test_an_applied_config_is_one_change() -> None:
    database = Database.open(None, clock=ManualClock(NOW), inline=True)
    store = SqliteStore(database, database.clock)
    pk = keys.pipeline_pk("orders")
    written = [keys.CONFIG, keys.APPLIED, f"{keys.CONFIG_VERSION}0123", f"{keys.DOWNSTREAM}gold"]
    store.commit([Put(Key(Table.CONTROL, pk, sk), {}) for sk in written])
    store.commit([Delete(Key(Table.CONTROL, pk, sk)) for sk in written])
    assert database.read("SELECT sk FROM changes ORDER BY seq") == [(keys.CONFIG,), (keys.CONFIG,)]


def test_consumer_passes_over_what_it_does_not_hear_of_little_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_FARTHEST", 3)
    database = Database.open(None, clock=ManualClock(NOW), inline=True)
    store, heard = SqliteStore(database, database.clock), list[str]()
    consumer = StreamConsumer(
        database,
        "suite",
        [Table.CONTROL],
        lambda changes: heard.extend(change.sk for change in changes),
        unheard=[keys.ACTIVE],
    )
    consumer.register()
    names = [*(f"ACTIVE#{n}" for n in range(10)), "SENSOR#a", "ACTIVE", *(f"ACTIVE#{n}" for n in range(5)), "ACTIVE$"]
    for name in names:
        store.commit([Put(Key(Table.CONTROL, "P#a", name), {})])
    assert consumer.pump() == 3
    assert heard == ["SENSOR#a", "ACTIVE", "ACTIVE$"]
    assert consumer.lag() == 0

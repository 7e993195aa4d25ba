"""Writes of coroutines: the loop is woken once for all that were committed together, and always."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.errors import CommitRefusedError, StoreError
from interlock.model.keys import Table
from interlock.ports.store import Conflict, Key, Missing, Put


@contextmanager
def opened(path: Path | None, *, inline: bool = False) -> Iterator[tuple[Database, SqliteStore]]:
    clock = SystemClock()
    with Database.open(path, clock=clock, inline=inline) as database:
        yield database, SqliteStore(database, clock)


def put(name: str, *, new: bool = False) -> Put:
    return Put(Key(Table.CONTROL, "PIPELINE#p", f"SENSOR#{name}"), {"data": {"n": 1}}, Missing() if new else None)


def test_a_group_wakes_its_loop_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[Any] = []

    async def play(database: Database, store: SqliteStore) -> list[Conflict | None]:
        loop = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def counted(*given: Any) -> Any:
            woken.append(given)
            return wake(*given)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        begun, go_on = threading.Event(), threading.Event()

        def block(_: object) -> None:
            begun.set()
            go_on.wait(30)

        busy = database.submit(block)
        begun.wait(10)
        waiting = [store.submit_on(loop, [put(f"k{index}")]) for index in range(20)]
        go_on.set()
        found = await asyncio.gather(*waiting)
        busy.result(10)
        return found

    with opened(tmp_path / "store.db") as (database, store):
        assert asyncio.run(play(database, store)) == [None] * 20
        assert len(woken) == 1
        assert len(store.query(Table.CONTROL, "PIPELINE#p")) == 20


@pytest.mark.parametrize("inline", [False, True], ids=["thread", "inline"])
def test_a_submitted_commit_is_a_commit(tmp_path: Path, inline: bool) -> None:
    async def play(store: SqliteStore) -> None:
        loop = asyncio.get_running_loop()
        assert await store.submit_on(loop, [put("a", new=True)]) is None
        assert await store.submit_on(loop, [put("a", new=True), put("b")]) == Conflict((0,))
        assert await asyncio.wrap_future(store.submit([put("c")])) is None
        with pytest.raises(CommitRefusedError, match="written twice"):
            store.submit_on(loop, [put("a"), put("a")])

    with opened(tmp_path / "store.db", inline=inline) as (_, store):
        asyncio.run(play(store))
        assert [record.key.sk for record in store.query(Table.CONTROL, "PIPELINE#p")] == ["SENSOR#a", "SENSOR#c"]


def test_what_a_work_raises_reaches_who_waits(tmp_path: Path) -> None:
    async def play(database: Database) -> None:
        loop = asyncio.get_running_loop()

        def fail(_: object) -> None:
            raise StoreError("no")

        good = database.submit_on(loop, lambda _: 5)
        bad = database.submit_on(loop, fail)
        assert await good == 5
        with pytest.raises(StoreError, match="no"):
            await bad

    with opened(tmp_path / "store.db") as (database, _):
        asyncio.run(play(database))


def test_who_does_not_wait_any_more_is_not_told(tmp_path: Path) -> None:
    async def play(database: Database) -> None:
        loop = asyncio.get_running_loop()
        gone = database.submit_on(loop, lambda _: 1)
        gone.cancel()
        assert await database.submit_on(loop, lambda _: 2) == 2
        assert gone.cancelled()

    with opened(tmp_path / "store.db") as (database, _):
        asyncio.run(play(database))


def test_a_loop_that_is_closed_stops_nobody(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def block(_: object) -> None:
        begun.set()
        go_on.wait(30)

    async def play(database: Database) -> None:
        database.submit_on(asyncio.get_running_loop(), block)
        begun.wait(10)

    with opened(tmp_path / "store.db") as (database, _):
        asyncio.run(play(database))
        go_on.set()
        assert database.write(lambda _: 7) == 7

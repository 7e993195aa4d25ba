"""Who is next on the writer thread: callers from outside go first, and the fibers are never kept from going on."""

import asyncio
import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite import writer
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.writer import AnyRequest, Request, WriterThread
from interlock.loops import Loops

COMMITS = 20


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where ten milliseconds pass without this thread being given the processor at all."""
    monkeypatch.setattr(writer, "_PATIENCE", 0.0)
    monkeypatch.setattr(writer, "_PATIENCE_OF_CALLERS", 0.0)


def test_who_calls_from_outside_does_not_queue_behind_what_fibers_have_to_do(
    tmp_path: Path,
) -> None:
    """A burst has hundreds of fibers ready."""
    ran: list[int] = []
    before: dict[str, int] = {}

    def written(name: str) -> Any:
        return lambda _: before.setdefault(name, len(ran))

    async def play(database: Database) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def block(_: object) -> None:
            begun.set()
            go_on.wait(30)

        busy = database.submit(block)
        begun.wait(10)
        for number in range(100):
            database.spawn(lambda number=number: ran.append(number))  # type: ignore[misc]
        thread = database.submit(written("thread"))
        loop = database.submit_on(asyncio.get_running_loop(), written("loop"))
        go_on.set()
        await loop
        busy.result(10)
        thread.result(10)

    with Database.open(tmp_path / "store.db", clock=SystemClock()) as database:
        asyncio.run(play(database))
    assert sorted(before) == ["loop", "thread"]
    assert max(before.values()) <= writer._LEAST_STEPS, before
    assert ran == list(range(100)), "in their order, and all of them"


@pytest.mark.parametrize("callers", [1, 600], ids=["few", "more than a group"])
def test_the_fibers_go_on_under_callers_that_never_pause(callers: int) -> None:
    """Every caller calls again as soon as it is answered, so there is always one in line when a group begins."""
    steps: list[int] = []
    at_commit: list[int] = []
    over = threading.Event()

    def commit(group: Sequence[AnyRequest]) -> None:
        at_commit.append(len(steps))
        for request in group:
            request.settle(None, None)
            if len(at_commit) < COMMITS:
                thread._put(Request(lambda _: None))
        if len(at_commit) == COMMITS:
            over.set()

    held = threading.Event()

    def hold() -> None:
        held.wait(30)

    thread = WriterThread(commit, lambda: None, lambda _: None, Loops())
    thread.spawn(hold)
    for number in range(1_000):
        thread.spawn(lambda number=number: steps.append(number))  # type: ignore[misc]
    for _ in range(callers):
        thread.submit(lambda _: None)
    held.set()
    assert over.wait(30)
    thread.close()
    least = writer._LEAST_STEPS
    between = [later - before for before, later in itertools.pairwise(at_commit[:COMMITS])]
    assert between == [least] * (COMMITS - 1), between
    assert steps == list(range(1_000)), "in their order, and all of them"


def test_whoever_called_before_the_end_is_answered_also_beyond_a_full_group() -> None:
    def commit(group: Sequence[AnyRequest]) -> None:
        for request in group:
            request.settle(None, None)

    held = threading.Event()

    def hold() -> None:
        held.wait(30)

    thread = WriterThread(commit, lambda: None, lambda _: None, Loops())
    thread.spawn(hold)
    waiting = [thread.submit(lambda _: None) for _ in range(1_200)]
    closing = threading.Thread(target=thread.close)
    closing.start()
    while not thread._closed:
        threading.Event().wait(0.001)
    held.set()
    closing.join(30)
    assert [future.done() for future in waiting] == [True] * 1_200

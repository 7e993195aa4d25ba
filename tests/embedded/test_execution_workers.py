"""Executions on threads, a real file and the real clock."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock.embedded.asl.execution_workers import ExecutionWorkers
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.fibers import TargetThreads
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.errors import InvalidValueError, StoreError
from interlock.ports.store import Put
from tests.conformance.executions_suite import ACTIVE, INPUT, flow

PATIENCE = 20.0
ONE_TASK = {
    "StartAt": "T",
    "States": {"T": {"Type": "Task", "Resource": "work", "Next": "Done"}, "Done": {"Type": "Succeed"}},
}


class Ends:
    """Waits on a condition for executions to end."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        with self._condition:
            self.names.append(name)
            self._condition.notify_all()

    def wait(self, count: int) -> bool:
        with self._condition:
            return self._condition.wait_for(lambda: len(self.names) >= count, PATIENCE)


@contextmanager
def running(
    path: Path, document: dict[str, Any], work: Callable[[dict[str, Any]], object], ends: Ends, workers: int = 3
) -> Iterator[tuple[SqliteExecutions, SqliteStore, Database]]:
    clock = SystemClock()
    with Database.open(path, clock=clock) as database:
        store = SqliteStore(database, clock)
        executions = SqliteExecutions(
            database,
            Machine.load(document),
            tasks={"work": work},
            store=store,
            clock=clock,
            on_end=lambda execution: ends(execution.name),
        )
        executions.start_workers(workers)
        try:
            yield executions, store, database
        finally:
            executions.stop()


def test_a_task_that_wants_its_thread_to_end_has_failed_and_nothing_hangs(tmp_path: Path) -> None:
    """What a library raises that is no Exception goes where the flow's errors go, and the next execution is run."""
    ends, called = Ends(), list[str]()

    def work(payload: dict[str, Any]) -> None:
        called.append(payload["name"])
        if payload["name"] == "one":
            raise SystemExit(3)

    with running(tmp_path / "store.db", ONE_TASK, work, ends, workers=1) as (executions, _, _database):
        executions.start("one", {"name": "one"})
        assert ends.wait(1)
        executions.start("two", {"name": "two"})
        assert ends.wait(2)
    assert (called, ends.names) == (["one", "two"], ["one", "two"])


def test_executions_run_at_once_and_none_is_run_twice_at_a_time(tmp_path: Path) -> None:
    ends, lock, both, threads = Ends(), threading.Lock(), threading.Barrier(2), TargetThreads()
    running_now: list[str] = []

    def work(payload: dict[str, Any]) -> None:
        name = payload["name"]
        with lock:
            assert name not in running_now
            running_now.append(name)
        if name in ("e0", "e1"):
            # Neither goes on before the other is there: they run at the same time.
            threads.call(lambda: both.wait(PATIENCE))
        with lock:
            running_now.remove(name)

    with running(tmp_path / "x.db", ONE_TASK, work, ends) as (executions, _, _):
        for number in range(100):
            executions.start(f"e{number}", {"name": f"e{number}"})
        assert ends.wait(100)
        assert all(info is not None and info.error is None for info in map(executions.describe, ends.names))
    assert sorted(ends.names) == sorted(f"e{number}" for number in range(100))


def test_an_answer_wakes_at_once(tmp_path: Path) -> None:
    ends, said = Ends(), Ends()
    document = flow("control", "work")
    with running(tmp_path / "x.db", document, lambda payload: said(payload["said"]), ends) as (
        executions,
        store,
        database,
    ):
        store.commit([Put(ACTIVE, {"wakeSeq": 3})])
        seen = database.head()
        executions.start("one", INPUT)
        assert database.wait_for_change(seen, PATIENCE) > seen
        item = store.get(ACTIVE)
        assert item is not None
        assert executions.answer(item["token"])
        assert ends.wait(1)
    assert (said.names, ends.names) == (["answered"], ["one"])


def test_a_wait_ends_by_itself(tmp_path: Path) -> None:
    ends, said = Ends(), Ends()
    with running(tmp_path / "x.db", flow("control", "work"), lambda payload: said(payload["said"]), ends) as (
        executions,
        store,
        _,
    ):
        store.commit([Put(ACTIVE, {"wakeSeq": 3})])
        executions.start("one", {**INPUT, "bound": 1})
        assert ends.wait(1)
    assert said.names == ["late"]


def test_what_was_open_when_the_process_ended_goes_on_in_the_next(tmp_path: Path) -> None:
    ends, called, threads = Ends(), threading.Event(), TargetThreads()

    def until_stopped(_: dict[str, Any]) -> None:
        called.set()
        # The dispatcher is the first to go when the workers are stopped.
        (dispatcher,) = (thread for thread in threading.enumerate() if thread.name == "interlock-executions")
        threads.call(lambda: dispatcher.join(PATIENCE))

    with running(tmp_path / "x.db", ONE_TASK, until_stopped, ends, workers=1) as (executions, _, _):
        executions.start("first", {})
        executions.start("second", {})
        assert called.wait(PATIENCE)
    # Stopped while the first ran: it was let finish, the second was not begun.
    assert ends.names == ["first"]
    with running(tmp_path / "x.db", ONE_TASK, lambda _: None, ends) as (executions, _, _):
        assert ends.wait(2)
        assert not executions.is_open("second")
    assert ends.names == ["first", "second"]


def test_workers_are_started_once_and_stopped_any_number_of_times(tmp_path: Path) -> None:
    with running(tmp_path / "x.db", ONE_TASK, lambda _: None, Ends()) as (executions, _, _):
        with pytest.raises(InvalidValueError, match="running already"):
            executions.start_workers(1)
        executions.stop()
        executions.stop()
        executions.start_workers(1)


class FlakyExecutions:
    """A store that fails the first times it is asked."""

    def __init__(self) -> None:
        self.looked = 0
        self.ran: list[str] = []
        self.done = threading.Event()

    def due(self, now: datetime, limit: int) -> list[str]:
        self.looked += 1
        if self.looked == 1:
            raise StoreError("the disk is full")
        return [] if self.done.is_set() else ["one"]

    def next_due(self, after: datetime | None = None) -> datetime | None:
        return None if after is None else after + timedelta(hours=1)

    def run(self, name: str) -> bool:
        self.ran.append(name)
        if len(self.ran) == 1:
            raise StoreError("the disk is full")
        self.done.set()
        return True


def on_a_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def test_an_error_of_the_store_is_outlived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.embedded.asl.execution_workers._COOL_DOWN_SECONDS", 0.01)
    flaky = FlakyExecutions()
    workers = ExecutionWorkers(flaky, SystemClock(), 2, on_a_thread)
    workers.start()
    assert flaky.done.wait(PATIENCE)
    workers.stop()
    assert flaky.ran == ["one", "one"]


class LateExecutions(FlakyExecutions):
    """Something becomes due just after the dispatcher looked and found nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = False
        self.ring: Callable[[], None] = lambda: None

    def due(self, now: datetime, limit: int) -> list[str]:
        return ["one"] if self.ready and not self.done.is_set() else []

    def next_due(self, after: datetime | None = None) -> datetime | None:
        if not self.ready:
            self.ready = True
            self.ring()
        return None

    def run(self, name: str) -> bool:
        self.done.set()
        return True


def test_a_ring_between_the_look_and_the_sleep_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.embedded.asl.execution_workers._MAX_SLEEP_SECONDS", 1000.0)
    late = LateExecutions()
    workers = ExecutionWorkers(late, SystemClock(), 1, on_a_thread)
    late.ring = workers.ring
    workers.start()
    assert late.done.wait(PATIENCE)
    workers.stop()


class SlowExecutions(FlakyExecutions):
    """One that is due as long as it runs, and counts how often it runs at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def due(self, now: datetime, limit: int) -> list[str]:
        return [] if self.done.is_set() else ["one"]

    def run(self, name: str) -> bool:
        self.ran.append(name)
        self.go_on.wait(PATIENCE)
        self.done.set()
        return True


def test_what_the_dispatcher_has_found_is_not_begun_a_second_time() -> None:
    slow = SlowExecutions()
    workers = ExecutionWorkers(slow, SystemClock(), 4, on_a_thread)
    workers.start()
    for _ in range(100):
        workers.begin("one")
    slow.go_on.set()
    assert slow.done.wait(PATIENCE)
    workers.stop()
    assert slow.ran == ["one"]


class Overtaken(threading.Condition):
    """A lock whose holder, once it has let go of it for the second time, is overtaken by all the work there is."""

    def __init__(self) -> None:
        super().__init__()
        self.todo: list[Callable[[], None]] = []
        self.seen = 0

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        waiting, self.seen = self.seen, len(self.todo)
        if waiting and waiting == len(self.todo):
            todo, self.todo[:] = list(self.todo), []
            for work in todo:
                work()


class ManyExecutions(FlakyExecutions):
    """Each is due until it has run."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.left = [f"e{number}" for number in range(count)]

    def due(self, now: datetime, limit: int) -> list[str]:
        return self.left[:limit]

    def next_due(self, after: datetime | None = None) -> datetime | None:
        return None

    def run(self, name: str) -> bool:
        self.left.remove(name)
        if not self.left:
            self.done.set()
        return True


def test_workers_that_finish_as_the_dispatcher_finds_none_free_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interlock.embedded.asl.execution_workers._MAX_SLEEP_SECONDS", 1000.0)
    many, bell = ManyExecutions(20), Overtaken()
    workers = ExecutionWorkers(many, SystemClock(), 1, bell.todo.append)
    monkeypatch.setattr(workers, "_bell", bell)
    workers.start()
    assert many.done.wait(PATIENCE)
    workers.stop()

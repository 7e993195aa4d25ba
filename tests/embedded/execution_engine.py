"""Executions on a store in memory, inline, on virtual time: what the tests of the engine stand on."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from interlock.embedded.asl.execution import ExecutionState, Status
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from tests.conformance.executions_suite import ExecutionsWorld, flow
from tests.conformance.manual_clock import ManualClock

TASK = {"Type": "Task", "Resource": "work"}
DONE = {"Type": "Succeed"}
Json = Any


class Engine(ExecutionsWorld):
    """Executions on an in-memory store, inline, on virtual time."""

    def __init__(self, document: Mapping[str, Json], work: Callable[[dict[str, Any]], Json] | None = None) -> None:
        self.clock = ManualClock()
        self.database = Database.open(None, clock=self.clock, inline=True)
        self.store: SqliteStore = SqliteStore(self.database, self.clock)
        self.said = []
        self.entered: list[tuple[str, str]] = []
        self.ended: list[ExecutionState] = []
        self.machine = Machine.load(document)
        self.work = work or self.say
        self.executions: SqliteExecutions = self.restart()

    def say(self, payload: dict[str, Any]) -> None:
        self.said.append(payload["said"])

    def restart(self) -> SqliteExecutions:
        """As a new process finds it: nothing but the rows."""
        self.database.fault = None
        self.executions = SqliteExecutions(
            self.database,
            self.machine,
            tasks={"work": lambda payload: self.work(payload)},  # noqa: PLW0108  a test may replace it
            store=self.store,
            clock=self.clock,
            on_enter=lambda name, state, at: self.entered.append((name, state)),
            on_end=self.ended.append,
        )
        return self.executions

    def settle(self) -> None:
        while self.executions.run_due(self.clock.now()):
            pass

    def advance(self, seconds: float) -> None:
        end = self.clock.now() + timedelta(seconds=seconds)
        while (due := self.executions.next_due()) is not None and due <= end:
            self.clock.advance(seconds=max(0.0, (due - self.clock.now()).total_seconds()))
            self.settle()
        self.clock.advance(seconds=(end - self.clock.now()).total_seconds())

    def status(self, name: str = "one") -> tuple[Status, str | None]:
        info = self.executions.describe(name)
        assert info is not None
        return info.status, info.error


@contextmanager
def engine(
    document: Mapping[str, Json] | None = None, work: Callable[[dict[str, Any]], Json] | None = None
) -> Iterator[Engine]:
    opened = Engine(flow("control", "work") if document is None else document, work)
    with opened.database:
        yield opened


def one(**state: Json) -> dict[str, Json]:
    return {"StartAt": "T", "States": {"T": {**TASK, "Next": "Done", **state}, "Done": DONE, "Caught": DONE}}

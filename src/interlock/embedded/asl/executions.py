"""Durable executions of a state machine on the `executions` table: the embedded stand-in for Step Functions.

When the row is written
-----------------------
When an execution waits (a Wait, a retry's back-off, a token) and when it ends; not after each state, and not
before a task is called. Writing down "about to call" would buy nothing: after a crash nobody could tell
whether the call had happened, so the task would have to be called again anyway. Tasks are therefore at least
once and idempotent by contract, an execution resumes at its last wait, and a pass from one wait to the next
costs one commit however many states it has.

Why no wake-up is lost
----------------------
A wait for a token puts the token into the store (the run's `ACTIVE#` record) and the waiting row into the
table in ONE transaction. Nobody can therefore see a token whose row does not wait for it yet. An answer takes
the token off the row and makes it due, and raises its version; whoever was running that row at the moment
(its time-out had come) fails to save it, forgets what it did, and the row is run again, with the answer.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, assert_never

import msgspec

from interlock.embedded.asl import execution_rows as rows
from interlock.embedded.asl.execution import (
    CallTask,
    Effect,
    Ended,
    ExecutionState,
    Status,
    Suspend,
    WaitKind,
    ended,
)
from interlock.embedded.asl.execution_rows import ExecutionRow, StaleRowError
from interlock.embedded.asl.execution_workers import ExecutionWorkers
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.asl.paths import RUNTIME, TIMEOUT, DefinitionError, Json
from interlock.embedded.asl.update_item import CONDITION_FAILED, UPDATE_ITEM, UpdateRefusedError, to_update
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.fibers import contained
from interlock.logs import get_logger
from interlock.model.errors import CommitRefusedError, InvalidValueError
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock
from interlock.ports.executions import StartResult
from interlock.ports.store import Conflict, Write

TIMEOUT_KEY: Final = "timeoutSeconds"
_MAX_NAME: Final = 80
_PAGE: Final = 256

TaskHandler = Callable[[dict[str, Any]], Any]
_log = get_logger(__name__)


class StoreWriter(Protocol):
    """The store, as part of somebody else's transaction."""

    def apply(self, connection: sqlite3.Connection, writes: Sequence[Write], now_ms: int, /) -> Conflict | None:
        """All of the writes, or none and the reason."""
        ...


class ExecutionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as others see it. `waiting` is None while it runs, has not begun, or is over."""

    name: str
    status: Status
    state: str
    started_at: datetime
    entered_at: datetime
    ended_at: datetime | None = None
    waiting: WaitKind | None = None
    waiting_until: datetime | None = None
    times_out_at: datetime | None = None
    error: str | None = None
    cause: str | None = None


_ENDED: Final = "SELECT name FROM executions WHERE ended_ms IS NOT NULL AND ended_ms < ? ORDER BY ended_ms LIMIT ?"
_FORGET: Final = "DELETE FROM executions WHERE name = ? AND ended_ms IS NOT NULL"


class SqliteExecutions:
    """The Executions port, and the engine that runs them: inline by `run_due`, or on fibers by `start_workers`."""

    def __init__(
        self,
        database: Database,
        machine: Machine,
        *,
        tasks: Mapping[str, TaskHandler],
        store: StoreWriter,
        clock: Clock,
        on_enter: Callable[[str, str, datetime], None] | None = None,
        on_end: Callable[[ExecutionState], None] | None = None,
    ) -> None:
        """`tasks` are the handlers by resource. `on_enter` and `on_end` are called at once, and again after a crash."""
        missing = machine.resources - tasks.keys() - {UPDATE_ITEM}
        if missing:
            raise DefinitionError(f"no handler for the task resource {', '.join(sorted(missing))}: add it to `tasks`")
        self._database = database
        self._machine = machine
        self._tasks = tasks
        self._store = store
        self._clock = clock
        self._on_enter = on_enter
        self._on_end = on_end
        self._workers: ExecutionWorkers | None = None

    # ---------------------------------------------------------------------------------------------- the port

    def start(self, name: str, input_: Mapping[str, Any]) -> StartResult:
        """Start an execution under a name that was never used before; its input may bound it by `timeoutSeconds`."""
        if not 1 <= len(name) <= _MAX_NAME:
            raise InvalidValueError(f"{name!r} is not an execution name: it has 1 to {_MAX_NAME} characters")
        execution = self._machine.begin(name, _copied(input_), self._clock.now(), _own_bound(input_))
        result = self._database.write(lambda connection: rows.insert(connection, execution))
        workers = self._workers
        if result is StartResult.STARTED and workers is not None:
            workers.begin(name)
        return result

    def is_open(self, name: str) -> bool:
        """Was it started, and has it not ended?"""
        found = self._database.read("SELECT status FROM executions WHERE name = ?", (name,))
        return bool(found) and found[0][0] == Status.RUNNING

    def answer(self, token: str) -> bool:
        """Answer a task token: the wait that holds it ends now. False when nobody waits for it (any more)."""
        now = self._clock.now()
        answered = self._database.write(lambda connection: rows.answer(connection, token, now))
        if answered:
            self._ring()
        return answered

    # ----------------------------------------------------------------------------------------------- reading

    def describe(self, name: str) -> ExecutionInfo | None:
        """What is known of an execution; None when the name was never used."""
        found = self._database.read(f"{rows.SELECT} WHERE name = ?", (name,))
        return _info(rows.read_row(found[0])) if found else None

    def list_open(self, limit: int = 100) -> list[ExecutionInfo]:
        """Open executions, those due first first."""
        sql = f"{rows.SELECT} WHERE due_ms IS NOT NULL ORDER BY due_ms, name LIMIT ?"
        return [_info(rows.read_row(row)) for row in self._database.read(sql, (limit,))]

    def prune(self, before: datetime, limit: int = 500) -> int:
        """Forget executions that ended before that instant, at most so many; how many. Their names are free again."""
        names = self._database.read(_ENDED, (epoch_millis(before), limit))
        if not names:
            return 0
        return self._database.write(lambda connection: connection.executemany(_FORGET, names).rowcount)

    # ----------------------------------------------------------------------------------------------- driving

    def due(self, now: datetime, limit: int) -> list[str]:
        """The names of executions that are due, the longest due first."""
        return [name for _, name in self._due_after(now, (-1, ""), limit)]

    def next_due(self, after: datetime | None = None) -> datetime | None:
        """When the next one is due (of those due after an instant); None when nothing is, ever."""
        least = -1 if after is None else epoch_millis(after)
        sql = "SELECT min(due_ms) FROM executions WHERE due_ms IS NOT NULL AND due_ms > ?"
        ((millis,),) = self._database.read(sql, (least,))
        return None if millis is None or millis == rows.NEVER_MS else rows.from_millis(millis)

    def run_due(self, now: datetime) -> int:
        """Run everything that is due, on this thread, in the order of (due, name), each until it waits or ends."""
        count = 0
        last = (-1, "")
        while page := self._due_after(now, last, _PAGE):
            for last in page:
                count += self.run(last[1], now)
        return count

    def run(self, name: str, now: datetime | None = None) -> bool:
        """Run one until it waits or ends; false when it is not due."""
        at = self._now(now)
        found = self._database.read(f"{rows.SELECT} WHERE name = ? AND due_ms <= ?", (name, epoch_millis(at)))
        if not found:
            return False
        try:
            row = rows.read_row(found[0])
        except (msgspec.MsgspecError, ValueError) as error:
            self._give_up(name, error, at)
            return True
        try:
            self._advance(row, at)
        except StaleRowError:
            _log.debug("answered while its time-out was being handled; it is run again", execution=name)
        return True

    def start_workers(self, count: int) -> None:
        """Run what is due from now on, so many at a time, on fibers of the writer thread."""
        if self._workers is not None:
            raise InvalidValueError("the workers are running already: stop them first")
        self._tasks = {name: contained(task) for name, task in self._tasks.items()}
        self._workers = ExecutionWorkers(self, self._clock, count, self._database.spawn, self._database.loops)
        self._workers.start()

    def stop(self) -> None:
        """Let what runs now come to its next wait, then end the dispatcher. Without workers: nothing."""
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.stop()

    # ---------------------------------------------------------------------------------------- one execution

    def _advance(self, row: ExecutionRow, at: datetime) -> None:
        execution = row.execution
        effect = self._safely(execution, lambda: self._machine.wake(execution, at, answered=row.answered))
        while True:
            self._tell(effect, at)
            match effect:
                case CallTask(token=None):
                    effect = self._call(effect, at)
                case CallTask():
                    refused = self._wait_for_token(effect, row.version, at)
                    if refused is None:
                        return
                    effect = refused
                case Suspend() | Ended():
                    self._save(effect.execution, row.version, at)
                    return
                case _:
                    assert_never(effect)
            at = self._now(at)

    def _call(self, call: CallTask, at: datetime) -> Effect:
        execution = call.execution
        try:
            # Copies, both ways: as over a wire, nothing a handler does to its payload later reaches the execution.
            output = _copied(self._tasks[call.resource](_copied(call.payload)))
        except Exception as error:  # noqa: BLE001  whatever a task raises is the flow's to retry or catch
            name, cause = _error_name(error), str(error)
            return self._safely(execution, lambda: self._machine.fail(execution, name, cause, self._now(at)))
        done = self._now(at)
        if call.timeout_at is not None and done > call.timeout_at:
            cause = "the task returned after its time was up"
            return self._safely(execution, lambda: self._machine.fail(execution, TIMEOUT, cause, done))
        return self._safely(execution, lambda: self._machine.complete(execution, output, done))

    def _wait_for_token(self, call: CallTask, version: int, at: datetime) -> Effect | None:
        """Store the token and the waiting row in one transaction; what follows when the store would not take it."""
        execution = call.execution

        def work(connection: sqlite3.Connection) -> bool:
            if self._store.apply(connection, [update], epoch_millis(at)) is not None:
                return False
            rows.save(connection, execution, version, at)
            return True

        try:
            update = to_update(call.payload)
            if self._database.write(work):
                self._ring()
                return None
            error, cause = CONDITION_FAILED, "The conditional request failed"
        except (UpdateRefusedError, CommitRefusedError) as refusal:
            error, cause = _error_name(refusal), str(refusal)
        return self._safely(execution, lambda: self._machine.fail(execution, error, cause, self._now(at)))

    def _safely(self, execution: ExecutionState, step: Callable[[], Effect]) -> Effect:
        try:
            return step()
        except Exception as error:  # noqa: BLE001  a bug of ours ends the execution, loudly, instead of leaving it stuck
            _log.exception("the interpreter failed", execution=execution.name, state=execution.state)
            cause = f"{type(error).__name__}: {error}"
            return Ended(execution=ended(execution, Status.FAILED, RUNTIME, cause), entered=())

    def _save(self, execution: ExecutionState, version: int, at: datetime) -> None:
        self._database.write(lambda connection: rows.save(connection, execution, version, at))
        if execution.status is Status.RUNNING:
            self._ring()
        if self._on_end is not None and execution.status is not Status.RUNNING:
            self._on_end(execution)

    def _give_up(self, name: str, error: Exception, at: datetime) -> None:
        """A row that cannot be read cannot be run; it must not be due forever either."""
        _log.error("an execution's row cannot be read; it is closed", execution=name, error=str(error))
        execution = ended(self._machine.begin(name, None, at), Status.FAILED, RUNTIME, f"unreadable row: {error}")
        ((version,),) = self._database.read("SELECT version FROM executions WHERE name = ?", (name,))
        self._save(execution, version, at)

    def _tell(self, effect: Effect, at: datetime) -> None:
        if self._on_enter is not None:
            for state in effect.entered:
                self._on_enter(effect.execution.name, state, at)

    def _due_after(self, now: datetime, last: tuple[int, str], limit: int) -> list[tuple[int, str]]:
        sql = """
            SELECT due_ms, name FROM executions
            WHERE due_ms <= ? AND (due_ms, name) > (?, ?) ORDER BY due_ms, name LIMIT ?
        """
        return [(due, name) for due, name in self._database.read(sql, (epoch_millis(now), *last, limit))]

    def _now(self, least: datetime | None) -> datetime:
        # The caller of run_due says what time it is; the clock may only be later.
        now = self._clock.now()
        return now if least is None else max(now, least)

    def _ring(self) -> None:
        workers = self._workers  # once: whoever stops them takes them away
        if workers is not None:
            workers.ring()


def _own_bound(input_: Mapping[str, Any]) -> float | None:
    seconds = input_.get(TIMEOUT_KEY)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < rows.NEVER_MS / 1e6:
        raise InvalidValueError(f"{TIMEOUT_KEY} is {seconds!r}: it must be a positive number of seconds")
    return seconds


def _copied(value: Json) -> Json:
    return msgspec.json.decode(msgspec.json.encode(value))


def _error_name(error: Exception) -> str:
    """What Lambda calls `errorType`: the name of the class, unless it has one of its own."""
    name = getattr(error, "error_name", None)
    return name if isinstance(name, str) else type(error).__name__


def _info(row: ExecutionRow) -> ExecutionInfo:
    execution, waiting = row.execution, row.execution.waiting
    return ExecutionInfo(
        name=execution.name,
        status=execution.status,
        state=execution.state,
        started_at=execution.started_at,
        entered_at=execution.entered_at,
        ended_at=None if row.ended_ms is None else rows.from_millis(row.ended_ms),
        waiting=waiting.kind if waiting else None,
        waiting_until=waiting.until if waiting else None,
        times_out_at=execution.times_out_at,
        error=execution.error,
        cause=execution.cause,
    )

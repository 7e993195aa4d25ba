"""Executions as rows: how an ExecutionState is written to the `executions` table and read back.

Open rows, and no others, have a `due_ms`, so that the partial index on it holds exactly the open executions:
finding what is due, and listing what is open, never costs more for the history behind it. The `token` column
holds the token that is waited for; a row that waits for a token and has none any more was answered.
"""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.embedded.asl.execution import ExecutionState, Status, Waiting, WaitKind
from interlock.embedded.asl.paths import Json
from interlock.embedded.sqlite.item_cache import writes_no_items
from interlock.model.times import epoch_millis
from interlock.ports.executions import StartResult

NEVER_MS: Final = 253_402_300_799_000  # the end of the year 9999: only an answer makes it due
_MAX_CAUSE: Final = 4_000
_MILLISECOND: Final = timedelta(milliseconds=1)

SELECT: Final = "SELECT name, status, state, data, token, due_ms, version, ended_ms, extra FROM executions"
_INSERT: Final = """
    INSERT INTO executions (name, status, state, data, token, due_ms, version, started_ms, ended_ms, extra)
    VALUES (?, ?, ?, ?, ?, ?, 1, ?, NULL, ?) ON CONFLICT (name) DO NOTHING
"""
_SAVE: Final = """
    UPDATE executions SET status = ?, state = ?, data = ?, token = ?, due_ms = ?, ended_ms = ?, extra = ?,
        version = version + 1
    WHERE name = ? AND version = ?
"""
_ANSWER: Final = """
    UPDATE executions SET token = NULL, due_ms = ?, version = version + 1 WHERE token = ? AND status = 'RUNNING'
"""


class StaleRowError(Exception):
    """The row changed since it was read: what was computed from it must be forgotten."""


class _Extra(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    started_at: datetime
    entered_at: datetime
    steps: int = 0
    retries: tuple[int, ...] = ()
    waiting: Waiting | None = None
    times_out_at: datetime | None = None
    error: str | None = None
    cause: str | None = None


class ExecutionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row as it was read; `version` is what a write of it must still find."""

    execution: ExecutionState
    version: int
    due_ms: int | None
    ended_ms: int | None
    answered: bool


def read_row(row: Sequence[Any]) -> ExecutionRow:
    """Read a row of SELECT; a msgspec error when it was not written by us."""
    name, status, state, data, token, due_ms, version, ended_ms, extra = row
    rest = msgspec.json.decode(extra, type=_Extra)
    execution = ExecutionState(
        name=name,
        state=state,
        data=msgspec.json.decode(data),
        status=Status(status),
        started_at=rest.started_at,
        entered_at=rest.entered_at,
        steps=rest.steps,
        retries=rest.retries,
        waiting=rest.waiting,
        times_out_at=rest.times_out_at,
        error=rest.error,
        cause=rest.cause,
    )
    waits_for_token = rest.waiting is not None and rest.waiting.kind is WaitKind.TOKEN
    return ExecutionRow(
        execution=execution,
        version=version,
        due_ms=due_ms,
        ended_ms=ended_ms,
        answered=waits_for_token and token is None,
    )


def insert(connection: sqlite3.Connection, execution: ExecutionState) -> StartResult:
    """Write a new execution, as it stands, unless its name was ever used."""
    writes_no_items(connection)
    started = epoch_millis(execution.started_at)
    token = execution.waiting.token if execution.waiting is not None else None
    values = (execution.name, execution.status, execution.state, _text(execution.data), token)
    cursor = connection.execute(_INSERT, (*values, due_millis(execution), started, _extra(execution)))
    if cursor.rowcount == 1:
        return StartResult.STARTED
    (status,) = connection.execute("SELECT status FROM executions WHERE name = ?", (execution.name,)).fetchone()
    return StartResult.ALREADY_OPEN if status == Status.RUNNING else StartResult.ALREADY_CLOSED


def save(connection: sqlite3.Connection, execution: ExecutionState, version: int, now: datetime) -> None:
    """Write an execution that waits or has ended; StaleRowError when somebody was faster.

    Of one that has ended only the name, how it ended and when are kept: a name is used once forever, the data is not.
    """
    writes_no_items(connection)
    open_ = execution.status is Status.RUNNING
    waiting = execution.waiting
    values = (
        execution.status,
        execution.state,
        _text(execution.data) if open_ else "null",
        waiting.token if waiting is not None else None,
        due_millis(execution) if open_ else None,
        None if open_ else epoch_millis(now),
        _extra(execution),
    )
    if connection.execute(_SAVE, (*values, execution.name, version)).rowcount != 1:
        raise StaleRowError(execution.name)


def answer(connection: sqlite3.Connection, token: str, now: datetime) -> bool:
    """Make the row that waits for the token due; false when there is none."""
    writes_no_items(connection)
    return connection.execute(_ANSWER, (epoch_millis(now), token)).rowcount == 1


def due_millis(execution: ExecutionState) -> int:
    """When it is due. A wait is never cut short: its end is rounded up."""
    due = execution.due
    if due is None:
        return NEVER_MS
    return epoch_millis(due if execution.waiting is None else due + _MILLISECOND - timedelta(microseconds=1))


def from_millis(millis: int) -> datetime:
    """The instant of so many milliseconds since 1970."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=millis)


def _extra(execution: ExecutionState) -> str:
    rest = _Extra(
        started_at=execution.started_at,
        entered_at=execution.entered_at,
        steps=execution.steps,
        retries=execution.retries,
        waiting=execution.waiting,
        times_out_at=execution.times_out_at,
        error=execution.error,
        cause=execution.cause[:_MAX_CAUSE] if execution.cause else execution.cause,
    )
    return _text(rest)


def _text(value: Json) -> str:
    return msgspec.json.encode(value).decode()

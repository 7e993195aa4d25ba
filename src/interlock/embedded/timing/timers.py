"""One-time timers as rows. Who drives them asks `due`, calls the receiver, and says `done` or `failed`.

A timer is deleted after its receiver succeeded, never before: a crash in between fires it again. It is deleted only if
it is still the one that fired; one that was armed meanwhile, even to the same instant, fires in its turn.
"""

import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import msgspec

from interlock.embedded.sqlite.database import Database, Row
from interlock.embedded.sqlite.item_cache import writes_no_items
from interlock.embedded.stream.dead_letters import Failure, LetterKind, bury
from interlock.model.errors import InvalidValueError
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock
from interlock.ports.timers import Timer, TimerKind

MAX_TRIES: Final = 3
# The pause after the first failure; doubled after each further one.
FIRST_PAUSE: Final = timedelta(seconds=2)
_NAME: Final = re.compile(r"[0-9a-zA-Z_.-]{1,64}")
_KINDS: Final = frozenset(TimerKind)
_COLUMNS: Final = "name, at_us, kind, payload"
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ARM: Final = "INSERT OR REPLACE INTO timers (name, at_us, kind, payload, due_us) VALUES (?, ?, ?, ?, ?)"


class DueTimer(Timer, frozen=True):
    """A timer that is to fire: which arming of its name it is, and how often its receiver has failed."""

    arming: int
    tries: int


class SqliteTimers:
    """`ports.timers.Timers`, and the side that fires them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._listeners: list[Callable[[], None]] = []

    def on_armed(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever this process armed a timer: who waits for `next_at` looks again."""
        self._listeners.append(listener)

    def arm(self, timer: Timer) -> None:
        """Arm it, or move the one of the same name."""
        if not _NAME.fullmatch(timer.name):
            raise InvalidValueError(f"{timer.name!r} is not a timer name: 1 to 64 of letters, digits, '-', '_', '.'")
        at = _micros(timer.at)
        row = (timer.name, at, timer.kind.value, _text(timer), at)
        self._database.write(lambda connection: _arm(connection, row))
        for listener in self._listeners:
            listener()

    def cancel(self, name: str) -> None:
        """Forget it; an unknown name is no error."""
        # Looking first spares the disk a flush: most cancelled timers have long fired.
        if self.get(name) is not None:
            self._database.write(lambda connection: _delete(connection, "name", name))

    def get(self, name: str) -> Timer | None:
        """The armed timer of that name."""
        rows = self._database.read(f"SELECT {_COLUMNS} FROM timers WHERE name = ?", (name,))
        return Timer(*_fields(rows[0])) if rows else None

    def due(self, now: datetime, limit: int = 100) -> list[DueTimer]:
        """Those that are to fire, the longest due first."""
        sql = f"SELECT {_COLUMNS}, id, tries FROM timers WHERE due_us <= ? ORDER BY due_us, id LIMIT ?"
        rows = self._database.read(sql, (_micros(now), max(limit, 0)))
        return [DueTimer(*_fields(row[:4]), arming=row[4], tries=row[5]) for row in rows]

    def next_at(self) -> datetime | None:
        """When the next one is due; None when none is armed."""
        (due,) = self._database.read("SELECT min(due_us) FROM timers")[0]
        return None if due is None else _EPOCH + due * _MICROSECOND

    def done(self, timer: DueTimer) -> None:
        """Its receiver succeeded."""
        self._database.write(lambda connection: _delete(connection, "id", timer.arming))

    def failed(self, timer: DueTimer, error: Exception, now: datetime) -> datetime | None:
        """Its receiver failed: when it is tried again, or None when it became a dead letter (or was re-armed)."""
        return self._database.write(lambda connection: _failed(connection, timer, error, now))


def _arm(connection: sqlite3.Connection, row: Row) -> int:
    writes_no_items(connection)
    return connection.execute(_ARM, row).rowcount


def _failed(connection: sqlite3.Connection, timer: DueTimer, error: Exception, now: datetime) -> datetime | None:
    row = connection.execute("SELECT tries, failed_ms FROM timers WHERE id = ?", (timer.arming,)).fetchone()
    if row is None:
        return None
    tries = int(row[0]) + 1
    first = now if row[1] is None else _EPOCH + timedelta(milliseconds=row[1])
    if tries >= MAX_TRIES:
        failure = Failure(error=error, tries=tries, first_at=first, last_at=now)
        ref = f"{timer.name}@{_micros(timer.at)}"
        bury(connection, LetterKind.TIMER, str(timer.kind), ref, _record(timer), failure)
        _delete(connection, "id", timer.arming)
        return None
    again = now + FIRST_PAUSE * (1 << (tries - 1))
    connection.execute(
        "UPDATE timers SET tries = ?, failed_ms = ?, due_us = ? WHERE id = ?",
        (tries, epoch_millis(first), _micros(again), timer.arming),
    )
    return again


def _record(timer: Timer) -> dict[str, Any]:
    return {"name": timer.name, "at_us": _micros(timer.at), "kind": str(timer.kind), "payload": timer.payload}


def _delete(connection: sqlite3.Connection, column: str, value: str | int) -> int:
    writes_no_items(connection)
    return connection.execute(f"DELETE FROM timers WHERE {column} = ?", (value,)).rowcount


def _fields(row: Row) -> tuple[str, datetime, TimerKind, dict[str, Any]]:
    name, at, kind, payload = row
    return name, _EPOCH + at * _MICROSECOND, _kind(kind), msgspec.json.decode(payload, type=dict[str, Any])


def _kind(text: str) -> TimerKind:
    # A kind that only a newer version knows must not stop the others: its receiver names it, and it is a dead letter.
    return TimerKind(text) if text in _KINDS else cast(TimerKind, text)


def _text(timer: Timer) -> str:
    try:
        return msgspec.json.encode(timer.payload).decode()
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"timer {timer.name}: the payload is not JSON: {error}") from error


def _micros(at: datetime) -> int:
    # Exact: rounded down it would fire early, and its receiver would find that nothing is due yet.
    if at.tzinfo is None:
        raise InvalidValueError(f"{at} has no time zone: a timer needs an instant")
    return (at - _EPOCH) // _MICROSECOND

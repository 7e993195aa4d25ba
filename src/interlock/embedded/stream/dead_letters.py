"""What failed for good: kept whole until a person looked at it, mended the cause and had it done again."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final

import msgspec

from interlock.embedded.alerts.delivery_rows import add_again
from interlock.embedded.audit.actors import this_user
from interlock.embedded.audit.chain import append
from interlock.embedded.sqlite.database import Database, Row
from interlock.model.audit import Actor, AuditAction, AuditNote
from interlock.model.errors import InvalidValueError, StoreError
from interlock.model.times import epoch_millis

_COLUMNS: Final = "id, kind, source, record, error, tries, first_ms, last_ms"
_BURY: Final = """
    INSERT INTO dead_letters (kind, source, ref, record, error, tries, first_ms, last_ms)
    VALUES (:kind, :source, :ref, :record, :error, :tries, :first, :last)
    ON CONFLICT (kind, source, ref) DO UPDATE SET
        record = excluded.record, error = excluded.error, tries = tries + excluded.tries, last_ms = excluded.last_ms
"""
_RESEND: Final = """
    INSERT INTO changes (tbl, pk, sk, at, item, consumer)
    VALUES (:table, :pk, :sk, :at, :item, :consumer)
"""
_REARM: Final = """
    INSERT OR IGNORE INTO timers (name, at_us, kind, payload, due_us) VALUES (:name, :at_us, :kind, :payload, :at_us)
"""
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MAX_ERROR: Final = 4000
_CHUNK: Final = 500
_SHOWN_IDS: Final = 100


class LetterKind(StrEnum):
    """What it was that failed."""

    CHANGE = "change"
    TIMER = "timer"
    DELIVERY = "delivery"


class DeadLetter(msgspec.Struct, frozen=True, rename="camel"):
    """A record that was given up on. `source` is the consumer, the receiver of the timer, or the channel."""

    id: int
    kind: LetterKind
    source: str
    record: dict[str, Any]
    error: str
    tries: int
    first_at: datetime
    last_at: datetime


DeadLetterPage = list[DeadLetter]


class Failure(msgspec.Struct, frozen=True):
    """How it failed: the last error, how often, since when, until when."""

    error: Exception
    tries: int
    first_at: datetime
    last_at: datetime


def bury(
    connection: sqlite3.Connection,
    kind: LetterKind,
    source: str,
    ref: str,
    record: Mapping[str, Any],
    failure: Failure,
) -> None:
    """Keep what failed, within the caller's transaction. The same thing failing again is the same letter."""
    text = f"{type(failure.error).__name__}: {failure.error}"
    values = {
        "kind": kind.value,
        "source": source,
        "ref": ref,
        "record": msgspec.json.encode(record).decode(),
        "error": text[:_MAX_ERROR],
        "tries": failure.tries,
        "first": epoch_millis(failure.first_at),
        "last": epoch_millis(failure.last_at),
    }
    connection.execute(_BURY, values)


class DeadLetters:
    """Looks at dead letters, and has them done again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, limit: int = 100, after: int = 0) -> DeadLetterPage:
        """Dead letters in the order they came, `after` (exclusive) an id to page on."""
        sql = f"SELECT {_COLUMNS} FROM dead_letters WHERE id > ? ORDER BY id LIMIT ?"
        return [_letter(row) for row in self._database.read(sql, (after, max(limit, 0)))]

    def get(self, id_: int) -> DeadLetter | None:
        """The dead letter of that id."""
        rows = self._database.read(f"SELECT {_COLUMNS} FROM dead_letters WHERE id = ?", (id_,))
        return _letter(rows[0]) if rows else None

    def count(self) -> int:
        """How many there are."""
        return int(self._database.read("SELECT count(*) FROM dead_letters")[0][0])

    def redrive(self, ids: Sequence[int] | None = None, *, by: Actor | None = None) -> int:
        """Have these (None: all) done again: a change goes to the end of the stream of the consumer that failed on it,
        a timer is armed again, an alert is queued again behind those that wait. The letter goes in the same
        transaction; what fails again is a new letter.

        How many there were. With None, letters of consumers that are no longer there stay. `by` (default: the user of
        this process) is recorded as the one who had it done.
        """
        now_ms, actor = epoch_millis(self._database.clock.now()), by or this_user()
        if ids is not None:
            return self._database.write(lambda connection: _redrive(connection, _find(connection, ids), now_ms, actor))
        done, after = 0, 0
        while page := self.list(_CHUNK, after):
            after = page[-1].id
            done += self._database.write(partial(_redrive_known, page, now_ms, actor))
        return done

    def purge(self, ids: Sequence[int] | None = None) -> int:
        """Throw these (None: all) away for good; how many there were."""
        if ids is None:
            return self._database.write(lambda connection: connection.execute("DELETE FROM dead_letters").rowcount)
        return self._database.write(lambda connection: sum(_delete(connection, id_) for id_ in ids))


def _letter(row: Row) -> DeadLetter:
    id_, kind, source, record, error, tries, first, last = row
    return DeadLetter(
        id=id_,
        kind=LetterKind(kind),
        source=source,
        record=msgspec.json.decode(record, type=dict[str, Any]),
        error=error,
        tries=tries,
        first_at=_EPOCH + timedelta(milliseconds=first),
        last_at=_EPOCH + timedelta(milliseconds=last),
    )


def _find(connection: sqlite3.Connection, ids: Sequence[int]) -> DeadLetterPage:
    letters = []
    for id_ in dict.fromkeys(ids):
        row = connection.execute(f"SELECT {_COLUMNS} FROM dead_letters WHERE id = ?", (id_,)).fetchone()
        if row is None:
            raise InvalidValueError(f"there is no dead letter {id_}: `interlock dlq list` shows those there are")
        letters.append(_letter(row))
    return letters


def _redrive_known(page: DeadLetterPage, now_ms: int, by: Actor, connection: sqlite3.Connection) -> int:
    consumers = _consumers(connection)
    known = [letter for letter in page if letter.kind is not LetterKind.CHANGE or letter.source in consumers]
    return _redrive(connection, known, now_ms, by)


def _redrive(connection: sqlite3.Connection, letters: DeadLetterPage, now_ms: int, by: Actor) -> int:
    consumers = _consumers(connection)
    done: list[int] = []
    for letter in letters:
        # Another process may just have redriven it.
        if not _delete(connection, letter.id):
            continue
        match letter.kind:
            case LetterKind.CHANGE:
                _resend(connection, letter, consumers)
            case LetterKind.TIMER:
                connection.execute(_REARM, _with_text(letter.record, "payload"))
            case LetterKind.DELIVERY:
                add_again(connection, letter.record, now_ms)
        done.append(letter.id)
    if done:
        count = {"count": len(done), "ids": done[:_SHOWN_IDS]}
        append(connection, [AuditNote(action=AuditAction.DEAD_LETTERS_REDRIVEN, actor=by, after=count)], now_ms)
    return len(done)


def _resend(connection: sqlite3.Connection, letter: DeadLetter, consumers: set[str]) -> None:
    # Without a consumer nobody would read it again, and the next sweep would remove it.
    if letter.source not in consumers:
        raise StoreError(
            f"dead letter {letter.id}: its consumer {letter.source!r} is no longer there; purge it instead"
        )
    connection.execute(_RESEND, {**_with_text(letter.record, "item"), "consumer": letter.source})


def _with_text(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    inner = record[name]
    return {**record, name: None if inner is None else msgspec.json.encode(inner).decode()}


def _consumers(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM consumers")}


def _delete(connection: sqlite3.Connection, id_: int) -> int:
    return connection.execute("DELETE FROM dead_letters WHERE id = ?", (id_,)).rowcount

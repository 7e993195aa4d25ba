"""The audit trail as people ask for it: records by pipeline, actor and time, and its head; and dropping old days."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.embedded.audit.chain import append, day_of
from interlock.embedded.sqlite.database import Database
from interlock.model.audit import CONTROLLER, AuditAction, AuditNote, AuditRecord
from interlock.model.errors import StoreError
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock

NEWEST: Final = 2**62
_DROPPED_AT_ONCE: Final = 500
_HEAD: Final = "SELECT day, last_seq, head FROM audit_days ORDER BY day DESC LIMIT 1"
# Records before the first day's are only waiting to be removed.
_KEPT_FROM: Final = "SELECT coalesce(min(first_seq), 0) FROM audit_days"

_decode: Final = msgspec.json.Decoder(AuditRecord).decode


class AuditEntry(AuditRecord, frozen=True, kw_only=True, omit_defaults=False, rename="camel"):
    """A record, with its hash."""

    hash: str


class AuditHead(msgspec.Struct, frozen=True, kw_only=True):
    """Where the trail stands: the latest record and its hash. Kept elsewhere, it shows later that nothing changed."""

    day: str
    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


class AuditWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which records; None and () mean all."""

    pipeline: str | None = None
    actor: str | None = None
    actions: tuple[AuditAction, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


class AuditTrail:
    """The trail of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, *notes: AuditNote) -> None:
        """Record what is no change of the store itself, in a commit of its own. What changes it is recorded with it."""
        now_ms = epoch_millis(self._database.clock.now())
        self._database.write(lambda connection: append(connection, notes, now_ms))

    def submit(self, *notes: AuditNote) -> None:
        """As `record`, for who does not wait; what becomes of it shows in the trail alone."""
        now_ms = epoch_millis(self._database.clock.now())
        self._database.submit(lambda connection: append(connection, notes, now_ms))

    def read(self, wanted: AuditWanted, *, before: int = NEWEST, limit: int = 100) -> list[AuditEntry]:
        """Records with a number below `before`, the latest first."""
        where, values = ["seq < ?", f"seq >= ({_KEPT_FROM})"], list[Any]([before])
        for name, value in (("pipeline", wanted.pipeline), ("actor", wanted.actor)):
            if value is not None:
                where.append(f"{name} = ?")
                values.append(value)
        if wanted.actions:
            where.append(f"action IN ({', '.join('?' * len(wanted.actions))})")
            values += [one.value for one in wanted.actions]
        if wanted.since is not None:
            first = epoch_millis(wanted.since)
            # The day bounds what is read, the time what is shown.
            where += ["seq >= (SELECT coalesce(min(first_seq), 0) FROM audit_days WHERE day >= ?)", "at >= ?"]
            values += [day_of(first), first]
        if wanted.until is not None:
            where.append("at < ?")
            values.append(epoch_millis(wanted.until))
        sql = f"SELECT record, hash FROM audit WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ?"
        return [_entry(text, hash_) for text, hash_ in self._database.read(sql, [*values, max(limit, 0)])]

    def head(self) -> AuditHead | None:
        """The latest record; None when nothing was ever recorded."""
        rows = self._database.read(_HEAD)
        return head_of(rows[0]) if rows else None

    def last_closed(self) -> AuditHead | None:
        """The head of the latest day that is over: it does not change any more."""
        today = f"{self._database.clock.now():%Y-%m-%d}"
        sql = "SELECT day, last_seq, head FROM audit_days WHERE day < ? ORDER BY day DESC LIMIT 1"
        rows = self._database.read(sql, (today,))
        return head_of(rows[0]) if rows else None

    def prune(self, kept: timedelta) -> int:
        """Drop the days that are older than this, whole; how many records went, some at a time: call until it is 0.

        The days go in one commit, with a record that says so: `verify` asks for it. Their records follow.
        """
        now = self._database.clock.now()
        oldest = f"{now - kept:%Y-%m-%d}"
        due = self._database.read("SELECT 1 FROM audit_days WHERE day < ? LIMIT 1", (oldest,))
        waiting = self._database.read(f"SELECT 1 FROM audit WHERE seq < ({_KEPT_FROM}) LIMIT 1")
        if not due and not waiting:
            return 0
        return self._database.write(lambda connection: _drop(connection, oldest, epoch_millis(now)))


def record_in(path: Path, note: AuditNote, clock: Clock) -> None:
    """Record something in the store of a file that nobody has open here."""
    with Database.open(path, clock=clock, create=False, inline=True) as database:
        AuditTrail(database).record(note)


def head_of(row: Sequence[Any]) -> AuditHead:
    """The head that a day's row (day, last number, hash) gives."""
    return AuditHead(day=row[0], seq=row[1], hash=row[2].hex())


def latest_head(connection: sqlite3.Connection) -> AuditHead | None:
    """The head of a trail that somebody has open already."""
    row = connection.execute(_HEAD).fetchone()
    return None if row is None else head_of(row)


def _entry(text: str, hash_: bytes) -> AuditEntry:
    try:
        found = _decode(text)
    except msgspec.DecodeError as error:
        raise StoreError(f"a record of the audit trail cannot be read ({error}): `interlock audit verify`") from error
    given = {name: getattr(found, name) for name in AuditRecord.__struct_fields__}
    return AuditEntry(**given, hash=hash_.hex())


def _drop(connection: sqlite3.Connection, oldest: str, now_ms: int) -> int:
    last = connection.execute(
        "SELECT day, last_seq, head FROM audit_days WHERE day < ? ORDER BY day DESC LIMIT 1", (oldest,)
    ).fetchone()
    if last is not None:
        dropped = head_of(last)
        # First: the record may open today, which then follows on the last day that goes.
        append(connection, [_pruned(dropped)], now_ms)
        connection.execute("DELETE FROM audit_days WHERE day < ?", (oldest,))
    return connection.execute(
        f"DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE seq < ({_KEPT_FROM}) ORDER BY seq LIMIT ?)",
        (_DROPPED_AT_ONCE,),
    ).rowcount


def _pruned(last: AuditHead) -> AuditNote:
    return AuditNote(
        action=AuditAction.AUDIT_PRUNED,
        actor=CONTROLLER,
        subject=last.day,
        reason="older than the trail is kept",
        before={"day": last.day, "seq": last.seq, "hash": last.hash},
    )

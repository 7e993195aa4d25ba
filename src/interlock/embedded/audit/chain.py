"""Appending to the chain, within the transaction of the change that is recorded.

Invariant: the hash of a record is SHA-256 over the hash of the record before it and the text of the record itself, as
it is stored; the first of a day follows on the day's start, which is made from the day's name and the head of the day
before. So every record fixes all that came before it, and the head of the latest day fixes the whole trail.

There is one writer at a time (BEGIN IMMEDIATE), of whatever process: the head is read and replaced in the transaction,
so nobody has to compare and try again, and commits that record nothing never touch it.
"""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from interlock.model.audit import AuditNote, AuditRecord

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_LATEST: Final = "SELECT day, last_seq, head FROM audit_days ORDER BY day DESC LIMIT 1"
# Not the day's `last_seq`: what was removed from the end must leave a gap, however much comes after it.
_LAST_NUMBER: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'"
_RECORD: Final = (
    "INSERT INTO audit (seq, day, at, action, pipeline, actor, record, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_OPEN_DAY: Final = "INSERT INTO audit_days (day, first_seq, last_seq, previous, head) VALUES (?, ?, ?, ?, ?)"
_EXTEND_DAY: Final = "UPDATE audit_days SET last_seq = ?, head = ? WHERE day = ?"

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def append(connection: sqlite3.Connection, notes: Sequence[AuditNote], now_ms: int) -> None:
    """Record these changes, in this order. Within the transaction that makes them."""
    if not notes:
        return
    latest = connection.execute(_LATEST).fetchone()
    counted = connection.execute(_LAST_NUMBER).fetchone()
    number = counted[0] if counted is not None else 0
    # A clock that is set back across midnight goes on with the day that is open: days never lie behind each other.
    today = day_of(now_ms) if latest is None else max(day_of(now_ms), latest[0])
    opens = latest is None or latest[0] != today
    previous = latest[2] if latest is not None else b""
    head = start_of_day(today, previous) if opens else previous
    rows: list[tuple[Any, ...]] = []
    for seq, note in enumerate(notes, number + 1):
        text = _encode(_record(seq, now_ms, note))
        head = next_hash(head, text)
        rows.append((seq, today, now_ms, note.action.value, note.pipeline, note.actor.name, text.decode(), head))
    connection.executemany(_RECORD, rows)
    last = number + len(notes)
    if opens:
        connection.execute(_OPEN_DAY, (today, number + 1, last, previous, head))
    else:
        connection.execute(_EXTEND_DAY, (last, head, today))


def _record(seq: int, now_ms: int, note: AuditNote) -> AuditRecord:
    return AuditRecord(
        seq=seq,
        at=instant_of(now_ms),
        action=note.action,
        actor=note.actor,
        pipeline=note.pipeline,
        schedule=note.schedule,
        date=note.date,
        subject=note.subject,
        reason=note.reason,
        before=dict(note.before),
        after=dict(note.after),
    )


def start_of_day(day: str, previous: bytes) -> bytes:
    """What the first record of a day follows on; `previous` is the head of the day before."""
    return sha256(b"interlock audit " + day.encode() + b"\n" + previous).digest()


def next_hash(before: bytes, text: bytes) -> bytes:
    """The hash of a record, from the hash before it."""
    return sha256(before + text).digest()


def instant_of(at_ms: int) -> datetime:
    """Epoch milliseconds as an instant."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def day_of(at_ms: int) -> str:
    """The UTC day of an instant."""
    return f"{instant_of(at_ms):%Y-%m-%d}"

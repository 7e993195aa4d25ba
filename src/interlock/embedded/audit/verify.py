"""Finding what was altered in an audit trail, or removed from it.

Every record is hashed again, from the first day that is kept to the last. Found are: a record that was altered, moved,
inserted or removed, a day that was removed, and records removed from the end, whose numbers are never used again.
Whoever can write to the store can also make the whole chain anew, with every number in its place. That is found only by
a head that was kept where they cannot write.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from interlock.embedded.audit.chain import next_hash, start_of_day
from interlock.embedded.audit.trail import AuditHead, head_of
from interlock.embedded.sqlite.connection import explain, open_store
from interlock.model.audit import AuditAction, AuditRecord
from interlock.model.errors import InvalidValueError
from interlock.model.times import epoch_millis

_DAYS: Final = "SELECT day, first_seq, last_seq, previous, head FROM audit_days ORDER BY day"
_RECORDS: Final = (
    "SELECT seq, day, at, action, pipeline, actor, record, hash FROM audit WHERE seq BETWEEN ? AND ? ORDER BY seq"
)
_BEHIND: Final = "SELECT min(seq), max(day) FROM audit WHERE seq > ?"
_LAST_NUMBER: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'"
_PRUNED: Final = "SELECT record FROM audit WHERE action = ? ORDER BY seq DESC LIMIT 1"
_ANCHOR: Final = re.compile(r"(?:(\d{1,18}):)?([0-9a-f]{64})")

_decode: Final = msgspec.json.Decoder(AuditRecord).decode


class AuditProblem(msgspec.Struct, frozen=True):
    """What is wrong, in which day, and from which record on. The first of a day: what follows it proves nothing."""

    day: str
    seq: int
    what: str

    def __str__(self) -> str:
        return f"{self.day}, record {self.seq}: {self.what}"


class AuditVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a verification: how much was looked at, where the trail stands, and what is wrong."""

    days: int
    records: int
    head: AuditHead | None
    problems: list[AuditProblem]


class _Day(NamedTuple):
    day: str
    first: int
    last: int
    previous: bytes
    head: bytes


@contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """The store of a file as it is now, for reading; a controller may go on writing to it meanwhile."""
    connection = open_store(path, create=False, read_only=True)
    try:
        connection.execute("BEGIN")
        yield connection
    except sqlite3.Error as error:
        raise explain(error, path, "reading its audit trail") from error
    finally:
        connection.close()


def verify(connection: sqlite3.Connection, *, anchor: str = "", latest_only: bool = False) -> AuditVerdict:
    """Check the trail of a store, all of it or the latest day alone; with `anchor`, also that it has this head."""
    days = [_Day(*row) for row in connection.execute(_DAYS)]
    problems: list[AuditProblem] = []
    records = 0
    for index, day in enumerate(days):
        if latest_only and index < len(days) - 1:
            continue
        before = days[index - 1] if index else None
        found = _link(connection, before, day) or _chain(connection, day)
        records += day.last - day.first + 1
        problems += [found] if found is not None else []
    problems += _end(connection, days)
    head = head_of((days[-1].day, days[-1].last, days[-1].head)) if days else None
    if anchor:
        problems += _compare(connection, days, anchor)
    return AuditVerdict(days=1 if latest_only and days else len(days), records=records, head=head, problems=problems)


def _link(connection: sqlite3.Connection, before: _Day | None, day: _Day) -> AuditProblem | None:
    """Does the day follow on the one before it, or begin where the trail begins?"""
    if before is not None:
        if day.first != before.last + 1:
            lost = f"records {before.last + 1} to {day.first - 1} are missing, between {before.day} and this day"
            return AuditProblem(day.day, before.last + 1, lost)
        if day.previous != before.head:
            return AuditProblem(day.day, day.first, f"the day does not follow on {before.day}: one of them was altered")
        return None
    if (day.first, day.previous) in ((1, b""), _pruned_to(connection)):
        return None
    what = f"records 1 to {day.first - 1} are missing, and no record says that they were dropped"
    return AuditProblem(day.day, 1, what)


def _pruned_to(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
    """Where the trail begins since days were dropped for the last time: the first number, and what it follows on."""
    row = connection.execute(_PRUNED, (AuditAction.AUDIT_PRUNED.value,)).fetchone()
    try:
        said = _decode(row[0]).before if row is not None else {}
        return int(said["seq"]) + 1, bytes.fromhex(said["hash"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None


def _chain(connection: sqlite3.Connection, day: _Day) -> AuditProblem | None:
    head, expected = start_of_day(day.day, day.previous), day.first
    for seq, own_day, at, action, pipeline, actor, text, hash_ in connection.execute(_RECORDS, (day.first, day.last)):
        if seq != expected:
            return AuditProblem(day.day, expected, "it is missing")
        head = next_hash(head, text.encode())
        if head != hash_:
            return AuditProblem(day.day, seq, "it was altered or moved: its hash does not follow from it and the last")
        if own_day != day.day or _copies(text) != (seq, at, action, pipeline, actor):
            return AuditProblem(day.day, seq, "it was altered: its row says something else than the record in it")
        expected += 1
    if expected != day.last + 1:
        return AuditProblem(day.day, expected, "it is missing")
    if head != day.head:
        return AuditProblem(day.day, day.last, "it is not the record that the day ended with")
    return None


def _copies(text: str) -> tuple[Any, ...] | None:
    """What the columns of a record's row must say."""
    try:
        found = _decode(text)
    except msgspec.DecodeError:
        return None
    return found.seq, epoch_millis(found.at), found.action, found.pipeline, found.actor.name


def _end(connection: sqlite3.Connection, days: Sequence[_Day]) -> list[AuditProblem]:
    """Is the last record of the last day the last that was ever written?"""
    day, last = (days[-1].day, days[-1].last) if days else ("", 0)
    beyond, of_day = connection.execute(_BEHIND, (last,)).fetchone()
    if beyond is not None:
        return [AuditProblem(of_day, beyond, "it belongs to no day")]
    counted = connection.execute(_LAST_NUMBER).fetchone()
    written = int(counted[0]) if counted is not None else 0
    if written > last:
        after = f"the end of {day}" if day else "the very beginning"
        return [
            AuditProblem(day or "no day", last + 1, f"records {last + 1} to {written} are missing, from {after} on")
        ]
    if written < last:
        return [AuditProblem(day, written + 1, f"the store counts {written} records only: its counter was altered")]
    return []


def _compare(connection: sqlite3.Connection, days: Sequence[_Day], anchor: str) -> list[AuditProblem]:
    """Is the head that was kept elsewhere one that this trail had?"""
    number, hash_ = read_anchor(anchor)
    if number is None:
        found = connection.execute("SELECT seq FROM audit WHERE hash = ?", (hash_,)).fetchone()
        lost = "no record has the hash of the head that was kept: the trail was made anew, is that of an older backup,"
        return [] if found is not None else [AuditProblem("any day", 1, f"{lost} or dropped that day since")]
    if days and number < days[0].first:
        return [AuditProblem(days[0].day, number, "it was dropped with its day since: keep a head of a later day")]
    found = connection.execute("SELECT day, hash FROM audit WHERE seq = ?", (number,)).fetchone()
    if found is None:
        return [AuditProblem("any day", number, "it is missing, although its head was kept")]
    if found[1] != hash_:
        what = "its hash is not that of the head that was kept: it, or one before it, was altered since"
        return [AuditProblem(found[0], number, what)]
    return []


def read_anchor(text: str) -> tuple[int | None, bytes]:
    """A head as `audit verify` prints it (`SEQ:HASH`), or the hash alone."""
    found = _ANCHOR.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidValueError(f"{text!r} is not a head: write it as `interlock audit verify` prints it, 345:9f2c...")
    return (int(found[1]) if found[1] else None), bytes.fromhex(found[2])

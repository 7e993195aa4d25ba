"""The store port on SQLite: items as JSON text, conditional commits, and a change row for every write.

All of a commit happens in one transaction on the one write connection, so a condition is judged on exactly the state
that the writes then change.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from math import ceil, isfinite
from typing import Any, Final, assert_never

import msgspec

from interlock.embedded.database import Database
from interlock.model.errors import StoreError
from interlock.model.keys import CONFIG, PIPELINE, Table
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock
from interlock.ports.limits import check_commit, encode_item, updated
from interlock.ports.store import (
    Condition,
    Conflict,
    Delete,
    Item,
    Key,
    Matches,
    Missing,
    Present,
    Put,
    Record,
    Require,
    Update,
    Write,
)

STREAMED: Final = frozenset({Table.CONTROL, Table.JOBLOG, Table.EVENTS})
_LIVE: Final = "(ttl IS NULL OR ttl > ?)"
_GET: Final = {table: f"SELECT item FROM {table} WHERE pk = ? AND sk = ? AND {_LIVE}" for table in Table}
_PUT: Final = {
    table: f"INSERT OR REPLACE INTO {table} (pk, sk, ttl, item) VALUES (?, ?, ?, ?)"
    for table in Table
    if table is not Table.EVENTS
}
_PUT_EVENT: Final = "INSERT OR REPLACE INTO events (pk, sk, ttl, item, type, at) VALUES (?, ?, ?, ?, ?, ?)"
_DELETE: Final = {table: f"DELETE FROM {table} WHERE pk = ? AND sk = ?" for table in Table}
_CHANGED: Final = "INSERT INTO changes (tbl, pk, sk, at, item) VALUES (?, ?, ?, ?, ?)"
_CONFIGS: Final = f"SELECT pk FROM control WHERE sk = '{CONFIG}' AND pk >= ? AND pk < ? AND {_LIVE} ORDER BY pk"
_BY_TYPE: Final = (
    "SELECT pk, sk, item FROM events WHERE at IS NOT NULL AND type = ? AND at >= ? AND at < ?"
    f" AND {_LIVE} ORDER BY at, sk, pk LIMIT ?"
)
_PRUNE: Final = (
    "DELETE FROM changes WHERE seq IN (SELECT seq FROM changes"
    " WHERE seq <= (SELECT min(checkpoint) FROM consumers) ORDER BY seq LIMIT ?)"
)
_MAX_TTL: Final = 2**62

_decode: Final = msgspec.json.Decoder(Item).decode


class SqliteStore:
    """`ports.store.Store`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    # ------------------------------------------------------------------------------------------------ reading

    def get(self, key: Key) -> Item | None:
        """The item, or None."""
        rows = self._database.read(_GET[key.table], (key.pk, key.sk, self._seconds()))
        return _decode(rows[0][0]) if rows else None

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """The items of these keys, in their order."""
        return [self.get(key) for key in keys]

    def query(
        self,
        table: Table,
        pk: str,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[Record]:
        """The items of a partition whose sort key starts with `prefix`, byte-wise in order, `after` exclusive."""
        where, values = ["pk = ?", "sk >= ?", _LIVE], [pk, prefix, self._seconds()]
        if (end := _behind(prefix)) is not None:
            where.append("sk < ?")
            values.append(end)
        if after is not None:
            where.append("sk < ?" if reverse else "sk > ?")
            values.append(after)
        values.append(-1 if limit is None else max(limit, 0))
        order = "DESC" if reverse else "ASC"
        sql = f"SELECT sk, item FROM {table} WHERE {' AND '.join(where)} ORDER BY sk {order} LIMIT ?"
        return [Record(Key(table, pk, sk), _decode(item)) for sk, item in self._database.read(sql, values)]

    def pipelines(self) -> list[str]:
        """The ids of all pipelines that have a CONFIG item, sorted."""
        end = _behind(PIPELINE)
        rows = self._database.read(_CONFIGS, (PIPELINE, end, self._seconds()))
        return [pk[len(PIPELINE) :] for (pk,) in rows]

    def events_by_type(self, type_: str, *, since: int, until: int, limit: int) -> list[Record]:
        """Events of a type with since <= tsMillis < until, oldest first."""
        rows = self._database.read(_BY_TYPE, (type_, since, until, self._seconds(), max(limit, 0)))
        return [Record(Key(Table.EVENTS, pk, sk), _decode(item)) for pk, sk, item in rows]

    def _seconds(self) -> int:
        return epoch_millis(self._clock.now()) // 1000

    # ------------------------------------------------------------------------------------------------ writing

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """All of the writes, or none and the reason. Nothing to write is no error."""
        if not writes:
            return None
        # Checked and encoded here, on the caller's thread: the writer's time is everybody's.
        encoded = check_commit(writes)
        try:
            # The time is taken inside, so that the times of the changes are in commit order.
            return self._database.write(
                lambda connection: _apply(connection, writes, encoded, epoch_millis(self._clock.now()))
            )
        except sqlite3.IntegrityError as error:
            raise StoreError(f"the store's tables contradict themselves: {error}") from error

    def apply(self, connection: sqlite3.Connection, writes: Sequence[Write], now_ms: int) -> Conflict | None:
        """A commit as part of somebody's own `Database.write`. On a Conflict nothing of it was written."""
        return _apply(connection, writes, check_commit(writes), now_ms)

    def sweep(self, limit: int = 500) -> int:
        """Remove up to `limit` expired items and up to `limit` changes that every consumer has passed.

        How many went in all; call again until it is 0. An expiry is a change, like any other removal.
        """
        return self._database.write(lambda connection: self._sweep(connection, limit))

    def _sweep(self, connection: sqlite3.Connection, limit: int) -> int:
        now_ms = epoch_millis(self._clock.now())
        expired = 0
        for table in Table:
            rows = connection.execute(
                f"SELECT pk, sk FROM {table} WHERE ttl <= ? ORDER BY ttl LIMIT ?",
                (now_ms // 1000, limit - expired),
            ).fetchall()
            for pk, sk in rows:
                _remove(connection, Key(table, pk, sk), now_ms)
            expired += len(rows)
        return expired + connection.execute(_PRUNE, (limit,)).rowcount


def _apply(
    connection: sqlite3.Connection, writes: Sequence[Write], encoded: Sequence[str | None], now_ms: int
) -> Conflict | None:
    current: list[Item | None] = []
    failed: list[int] = []
    for index, write in enumerate(writes):
        # An unconditional put or delete does not care what was there.
        needed = write.when is not None or isinstance(write, Update)
        item = _current(connection, write.key, now_ms) if needed else None
        current.append(item)
        if not _holds(write.when, item):
            failed.append(index)
    if failed:
        return Conflict(tuple(failed))
    for write, text, item in zip(writes, encoded, current, strict=True):
        _perform(connection, write, text, item, now_ms)
    return None


def _current(connection: sqlite3.Connection, key: Key, now_ms: int) -> Item | None:
    row = connection.execute(_GET[key.table], (key.pk, key.sk, now_ms // 1000)).fetchone()
    return None if row is None else _decode(row[0])


def _perform(connection: sqlite3.Connection, write: Write, text: str | None, current: Item | None, now_ms: int) -> None:
    match write:
        case Put():
            _store(connection, write.key, write.item, text or encode_item(write.key, write.item), now_ms)
        case Update():
            item = updated(write, current)
            _store(connection, write.key, item, encode_item(write.key, item), now_ms)
        case Delete():
            _remove(connection, write.key, now_ms)
        case Require():
            pass
        case _:
            assert_never(write)


def _store(connection: sqlite3.Connection, key: Key, item: Mapping[str, Any], text: str, now_ms: int) -> None:
    ttl = _whole_seconds(item.get("ttl"))
    if key.table is Table.EVENTS:
        type_ = item.get("type")
        row = (key.pk, key.sk, ttl, text, type_ if isinstance(type_, str) else None, _millis_of(key.sk))
        connection.execute(_PUT_EVENT, row)
    else:
        connection.execute(_PUT[key.table], (key.pk, key.sk, ttl, text))
    _tell(connection, key, text, now_ms)


def _remove(connection: sqlite3.Connection, key: Key, now_ms: int) -> None:
    # As on DynamoDB, removing what is not there is no change.
    if connection.execute(_DELETE[key.table], (key.pk, key.sk)).rowcount:
        _tell(connection, key, None, now_ms)


def _tell(connection: sqlite3.Connection, key: Key, text: str | None, now_ms: int) -> None:
    if key.table in STREAMED:
        connection.execute(_CHANGED, (key.table.value, key.pk, key.sk, now_ms, text))


def _whole_seconds(ttl: object) -> int | None:
    """The ttl column. What is not a number is no ttl, as on DynamoDB."""
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not isfinite(ttl):
        return None
    return max(-_MAX_TTL, min(ceil(ttl), _MAX_TTL))


def _millis_of(sk: str) -> int | None:
    """The time an event's sort key starts with: `{tsMillis}#{type}...`."""
    digits, mark, _ = sk.partition("#")
    return int(digits) if mark and digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def _holds(condition: Condition, item: Item | None) -> bool:
    match condition:
        case None:
            return True
        case Missing():
            return item is None
        case Present():
            return item is not None
        case Matches():
            found = item or {}
            return all(_same(found.get(name), value) for name, value in condition.attributes.items())
        case _:
            assert_never(condition)


def _same(left: object, right: object) -> bool:
    """Equality of JSON values. Python's holds true and 1 for equal; no store does."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right


def _behind(prefix: str) -> str | None:
    """The first key behind all keys of that prefix; None when there is none behind them.

    UTF-8 sorts byte-wise as its code points do, so the last code point is counted up: past the surrogates, which are
    no text, and dropping one that is the very last.
    """
    for end in range(len(prefix), 0, -1):
        point = ord(prefix[end - 1])
        if point < 0x10FFFF:
            return prefix[: end - 1] + chr(0xE000 if point == 0xD7FF else point + 1)
    return None

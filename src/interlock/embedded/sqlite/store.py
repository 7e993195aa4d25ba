"""The store port on SQLite: items as JSON text, conditional commits, and a change row for every write.

All of a commit happens in one transaction on the one write connection, so a condition is judged on exactly the state
that the writes then change.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from math import ceil, isfinite
from typing import Any, Final, TypeVar, assert_never

import msgspec

from interlock.embedded.audit.chain import append
from interlock.embedded.sqlite.database import Database, Row
from interlock.embedded.sqlite.event_order import EventOrder
from interlock.embedded.sqlite.item_cache import ItemCache, Kept, ListedRow, items_of
from interlock.embedded.sqlite.spans import read_spans
from interlock.model.audit import AuditNote
from interlock.model.config import PipelineConfig
from interlock.model.errors import StoreError
from interlock.model.keys import CONFIG, PIPELINE, UNSTREAMED, Table
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock
from interlock.ports.limits import check_commit, encode_item, updated
from interlock.ports.store import (
    MAX_WRITES,
    Changed,
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
    Span,
    Update,
    Write,
)

# New items of these have keys that nobody else makes: see `_is_appended`.
_APPENDED: Final = frozenset({Table.JOBLOG, Table.EVENTS})
STREAMED: Final = frozenset({Table.CONTROL, Table.JOBLOG, Table.EVENTS})
_LIVE: Final = "(ttl IS NULL OR ttl > ?)"
# Reads by key check the ttl themselves: hardly an item has one, and asking the clock costs more than the comparison.
_GET: Final = {table: f"SELECT item, ttl FROM {table} WHERE pk = ? AND sk = ?" for table in Table}
_ITEM_COLUMNS: Final = ("pk", "sk", "ttl", "item")
_COLUMNS: Final = dict.fromkeys(Table, _ITEM_COLUMNS) | {Table.EVENTS: (*_ITEM_COLUMNS, "type", "at")}
_CHANGE_COLUMNS: Final = ("tbl", "pk", "sk", "at", "item")
_DELETE: Final = {table: f"DELETE FROM {table} WHERE pk = ? AND sk = ?" for table in Table}
# These two are packed into one row, as spans are: see `spans`.
_CONFIGS: Final = f"SELECT json_group_array(pk) FROM control WHERE sk = '{CONFIG}' AND pk >= ? AND pk < ? AND {_LIVE}"
_OF_TYPE: Final = (
    "SELECT '[' || coalesce(group_concat('[' || json_quote(pk) || ',' || json_quote(sk) || ',' || item || ']'), '')"
    " || ']' FROM (SELECT pk, sk, item FROM events WHERE at IS NOT NULL AND type = ?"
)
# By whether it goes backwards, and whether it goes on behind an event. One bound on each side: see `query`.
_BY_TYPE: Final = {
    (False, False): f"{_OF_TYPE} AND at >= ? AND at < ? AND {_LIVE} ORDER BY at, sk, pk LIMIT ?)",
    (False, True): f"{_OF_TYPE} AND (at, sk, pk) > (?, ?, ?) AND at < ? AND {_LIVE} ORDER BY at, sk, pk LIMIT ?)",
    (True, False): f"{_OF_TYPE} AND at >= ? AND at < ? AND {_LIVE} ORDER BY at DESC, sk DESC, pk DESC LIMIT ?)",
    (True, True): f"{_OF_TYPE} AND at >= ? AND (at, sk, pk) < (?, ?, ?) AND {_LIVE}"
    " ORDER BY at DESC, sk DESC, pk DESC LIMIT ?)",
}
# For lists that are kept: whether an item has expired is asked again whenever the list is read.
_ALL_FROM: Final = {table: f"SELECT sk, item, ttl FROM {table} WHERE pk = ? AND sk >= ? ORDER BY sk" for table in Table}
_ALL_OF: Final = {
    table: f"SELECT sk, item, ttl FROM {table} WHERE pk = ? AND sk >= ? AND sk < ? ORDER BY sk" for table in Table
}
_PRUNE: Final = (
    "DELETE FROM changes WHERE seq IN (SELECT seq FROM changes"
    " WHERE seq <= (SELECT min(checkpoint) FROM consumers) ORDER BY seq LIMIT ?)"
)
_POSITION: Final = (
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0), (SELECT min(seq) FROM changes)"
)
_WRITTEN: Final = "SELECT json_group_array(DISTINCT pk) FROM changes WHERE seq > ?"
# More of them are not looked through to find out which partitions they are of.
_MOST_CHANGES: Final = 20_000
_MAX_TTL: Final = 2**62

_decode: Final = msgspec.json.Decoder(Item).decode
_decode_names: Final = msgspec.json.Decoder(list[str]).decode
_decode_events: Final = msgspec.json.Decoder(list[tuple[str, str, Item]]).decode

T = TypeVar("T")


class SqliteStore:
    """`ports.store.Store`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._order = EventOrder()

    def refused(self, config: PipelineConfig) -> Sequence[str]:
        """Nothing: the embedded runtime runs every config."""
        return ()

    # ------------------------------------------------------------------------------------------------ reading

    def get(self, key: Key) -> Item | None:
        """The item, or None."""
        items = self._database.known_items()
        return self._item(self._read_one(key) if items is None else items.get(key, self._read_one))

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """The items of these keys, in their order."""
        items = self._database.known_items()
        found = self._read_many(keys) if items is None else items.get_many(keys, self._read_many)
        return [self._item(found[key]) for key in keys]

    def _read_one(self, key: Key) -> Kept:
        rows = self._database.read(_GET[key.table], (key.pk, key.sk))
        return rows[0] if rows else None

    def _read_many(self, keys: Sequence[Key]) -> dict[Key, Kept]:
        found: dict[Key, Kept] = dict.fromkeys(keys)
        for (table, pk), sks in _by_partition(keys).items():
            rows = self._database.read(_get_some(table, len(sks)), (pk, *sks))
            found.update((Key(table, pk, sk), (item, ttl)) for sk, item, ttl in rows)
        return found

    def _item(self, kept: Kept) -> Item | None:
        return None if kept is None or not self._is_live(kept[1]) else _decode(kept[0])

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
        items = self._database.known_items()
        if items is not None and after is None and limit is None and not reverse:
            return self._listed(items, table, pk, prefix)
        # The tighter of two bounds only: given both, SQLite may seek to the weaker and read all that lies between.
        first, end = ("sk >= ?", prefix), _behind(prefix)
        if after is not None and reverse:
            end = after if end is None else min(end, after)
        elif after is not None and after >= prefix:
            first = ("sk > ?", after)
        where, values = ["pk = ?", first[0], _LIVE], [pk, first[1], self._seconds()]
        if end is not None:
            where.append("sk < ?")
            values.append(end)
        values.append(-1 if limit is None else max(limit, 0))
        order = "DESC" if reverse else "ASC"
        sql = f"SELECT sk, item FROM {table} WHERE {' AND '.join(where)} ORDER BY sk {order} LIMIT ?"
        return [Record(Key(table, pk, sk), _decode(item)) for sk, item in self._database.read(sql, values)]

    def _listed(self, items: ItemCache, table: Table, pk: str, prefix: str) -> list[Record]:
        def read() -> list[ListedRow]:
            end = _behind(prefix)
            sql, bounds = (_ALL_FROM[table], (pk, prefix)) if end is None else (_ALL_OF[table], (pk, prefix, end))
            return self._database.read(sql, bounds)

        found = items.listed(table, pk, prefix, read)
        return [Record(Key(table, pk, sk), _decode(item)) for sk, item, ttl in found if self._is_live(ttl)]

    def read_spans(self, table: Table, spans: Sequence[Span], into: type[T]) -> list[list[tuple[str, T]]]:
        """The items of several spans, as far as `into` names their attributes."""
        with self._database.snapshot() as read:
            return read_spans(read, table, spans, into, self._seconds())

    def changed_since(self, position: int | None) -> Changed:
        """The partitions that were written since a position, unless some changes may be gone, or there are many."""
        with self._database.snapshot() as read:
            ((head, first),) = read(_POSITION, ())
            # Without any change left, the next to come is the first that could be read.
            if (
                position is None
                or not position <= head <= position + _MOST_CHANGES
                or position + 1 < (first or head + 1)
            ):
                return Changed(head, None)
            ((partitions,),) = read(_WRITTEN, (position,))
            return Changed(head, frozenset(_decode_names(partitions)))

    def pipelines(self) -> list[str]:
        """The ids of all pipelines that have a CONFIG item, sorted."""
        end = _behind(PIPELINE)
        ((names,),) = self._database.read(_CONFIGS, (PIPELINE, end, self._seconds()))
        return sorted(pk[len(PIPELINE) :] for pk in _decode_names(names))

    def events_by_type(
        self, type_: str, *, since: int, until: int, limit: int, after: Key | None = None, reverse: bool = False
    ) -> list[Record]:
        """Events of a type with since <= tsMillis < until, oldest first, `after` exclusive."""
        first: Row = (since,)
        end: Row = (until,)
        begins_behind = False
        if after is not None:
            place = (_millis_of(after.sk) or 0, after.sk, after.pk)
            begins_behind = place[0] < until if reverse else place[0] >= since
            if begins_behind and reverse:
                end = place
            elif begins_behind:
                first = place
        sql = _BY_TYPE[reverse, begins_behind]
        rows = self._database.read(sql, (type_, *first, *end, self._seconds(), max(limit, 0)))
        return [Record(Key(Table.EVENTS, pk, sk), item) for pk, sk, item in _decode_events(rows[0][0])]

    def _is_live(self, ttl: int | None) -> bool:
        return ttl is None or ttl > self._seconds()

    def _seconds(self) -> int:
        return epoch_millis(self._clock.now()) // 1000

    # ------------------------------------------------------------------------------------------------ writing

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """All of the writes, or none and the reason. Nothing to write is no error."""
        if not writes:
            return None
        try:
            return self._database.write(self._work(writes))
        except sqlite3.IntegrityError as error:
            raise StoreError(f"the store's tables contradict themselves: {error}") from error

    def submit(self, writes: Sequence[Write]) -> "Future[Conflict | None]":
        """As `commit`, for a caller that does not wait."""
        return self._database.submit(self._work(writes))

    def submit_on(self, loop: asyncio.AbstractEventLoop, writes: Sequence[Write]) -> "asyncio.Future[Conflict | None]":
        """As `commit`, for a coroutine of that loop, which must not wait on its thread."""
        return self._database.submit_on(loop, self._work(writes))

    def commit_all(self, commits: Sequence[Sequence[Write]]) -> None:
        """Several commits in this order, which need not wait for each other's flush. Their writes are unconditional."""
        # All are checked before the first is queued.
        works = [self._work(writes) for writes in commits]
        waiting = [self._database.submit(work) for work in works]
        for one in waiting:
            one.result()

    def _work(self, writes: Sequence[Write]) -> Callable[[sqlite3.Connection], Conflict | None]:
        """A commit as work for the writer: checked and encoded here, since the writer's time is everybody's."""
        encoded = check_commit(writes)
        # The time is taken inside, so that the times of the changes are in commit order.
        return lambda connection: _apply(connection, self._placed(writes), encoded, epoch_millis(self._clock.now()))

    def apply(self, connection: sqlite3.Connection, writes: Sequence[Write], now_ms: int) -> Conflict | None:
        """A commit as part of somebody's own `Database.write`. On a Conflict nothing of it was written."""
        return _apply(connection, self._placed(writes), check_commit(writes), now_ms)

    def _placed(self, writes: Sequence[Write]) -> Sequence[Write]:
        """The writes, with the events among them behind all that were committed before. Within the transaction."""
        if not any(write.key.table is Table.EVENTS for write in writes):
            return writes
        return [
            msgspec.structs.replace(write, key=self._order.placed(write.key)) if _is_new(write) else write
            for write in writes
        ]

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
            _remove(connection, table, rows, now_ms)
            expired += len(rows)
        return expired + connection.execute(_PRUNE, (limit,)).rowcount


# Every statement is a hand-over of the interpreter to another thread and back, and the writer's time is everybody's:
# a commit therefore reads, puts and tells in as few statements as it can, whatever number of writes it has.


def _apply(
    connection: sqlite3.Connection, writes: Sequence[Write], encoded: Sequence[str | None], now_ms: int
) -> Conflict | None:
    if (items := items_of(connection)) is not None:
        items.wrote_nothing_else()
    # An unconditional write does not care what was there, unless it is to be recorded; what is appended need not look.
    asked = [
        write.key
        for write in writes
        if (write.when is not None and not _is_appended(write)) or isinstance(write, Update) or _compares(write)
    ]
    current = _current(connection, asked, now_ms)
    if not all(_is_appended(write) or _holds(write.when, current.get(write.key)) for write in writes):
        return Conflict(_failing(connection, writes, now_ms))
    appended: dict[Table, list[Row]] = {}
    texts = [
        _put(appended, write.key, write.item, text) if isinstance(write, Put) and _is_appended(write) else text
        for write, text in zip(writes, encoded, strict=True)
    ]
    if not _append(connection, appended):
        if failing := _failing(connection, writes, now_ms):
            return Conflict(failing)
        # Only what has expired lay there.
        for table, rows in appended.items():
            _insert(connection, table, _COLUMNS[table], rows)
    _write(connection, writes, texts, current, now_ms)
    return None


def _write(
    connection: sqlite3.Connection,
    writes: Sequence[Write],
    texts: Sequence[str | None],
    current: Mapping[Key, Item],
    now_ms: int,
) -> None:
    """Everything but what was appended, and the changes of all."""
    items = items_of(connection)
    puts: dict[Table, list[Row]] = {}
    changes: list[Row] = []
    notes: list[AuditNote] = []
    for write, text in zip(writes, texts, strict=True):
        ttl: object = None
        match write:
            case Put():
                ttl = write.item.get("ttl")
                if not _is_appended(write):
                    text = _put(puts, write.key, write.item, text)
                if write.note is not None:
                    notes.append(_compared(write.note, current.get(write.key), write.item))
            case Update():
                item = updated(write, current.get(write.key))
                ttl, text = item.get("ttl"), _put(puts, write.key, item, None)
            case Delete():
                # As on DynamoDB, removing what is not there is no change.
                if not connection.execute(_DELETE[write.key.table], (write.key.pk, write.key.sk)).rowcount:
                    continue
                text = None
                if write.note is not None:
                    notes.append(_compared(write.note, current.get(write.key), None))
            case Require():
                continue
            case _:
                assert_never(write)
        if items is not None:
            items.wrote(write.key, None if text is None else (text, _whole_seconds(ttl)))
        _tell(changes, write.key, text, now_ms)
    for table, rows in puts.items():
        _insert(connection, table, _COLUMNS[table], rows)
    _insert(connection, "changes", _CHANGE_COLUMNS, changes)
    append(connection, notes, now_ms)


def _is_appended(write: Write) -> bool:
    """Is it a new item whose key is hardly ever taken? It is inserted first, and looked at only if that fails."""
    return write.key.table in _APPENDED and _is_new(write)


def _append(connection: sqlite3.Connection, appended: Mapping[Table, Sequence[Row]]) -> bool:
    """Insert new items; false, and nothing is written, when something lies where one of them was to go."""
    done: list[tuple[Table, Row]] = []
    for table, rows in appended.items():
        try:
            _insert(connection, table, _COLUMNS[table], rows, how="INSERT")
        except sqlite3.IntegrityError:
            for other, (pk, sk, *_) in done:
                connection.execute(_DELETE[other], (pk, sk))
            return False
        done += [(table, row) for row in rows]
    return True


def _failing(connection: sqlite3.Connection, writes: Sequence[Write], now_ms: int) -> tuple[int, ...]:
    """Which conditions do not hold."""
    current = _current(connection, [write.key for write in writes if write.when is not None], now_ms)
    return tuple(index for index, write in enumerate(writes) if not _holds(write.when, current.get(write.key)))


def _compares(write: Write) -> bool:
    """Is what was there part of the record of this write?"""
    return isinstance(write, Put | Delete) and write.note is not None and bool(write.note.compared)


def _compared(note: AuditNote, before: Item | None, after: Item | None) -> AuditNote:
    """The note with the attributes it names, as they are before and after the commit."""
    if not note.compared:
        return note
    taken = [
        {name: item[attribute] for name, attribute in note.compared.items() if attribute in item}
        for item in (before or {}, after or {})
    ]
    return msgspec.structs.replace(note, before={**note.before, **taken[0]}, after={**note.after, **taken[1]})


def _is_new(write: Write) -> bool:
    """Is it an item that is not there yet? Only its key may still be chosen."""
    return isinstance(write, Put) and isinstance(write.when, Missing)


def _current(connection: sqlite3.Connection, keys: Sequence[Key], now_ms: int) -> dict[Key, Item]:
    """What is stored under these keys."""
    found: dict[Key, Item] = {}
    for (table, pk), sks in _by_partition(keys).items():
        for sk, item, ttl in connection.execute(_get_some(table, len(sks)), (pk, *sks)).fetchall():
            if ttl is None or ttl > now_ms // 1000:
                found[Key(table, pk, sk)] = _decode(item)
    return found


def _by_partition(keys: Sequence[Key]) -> dict[tuple[Table, str], list[str]]:
    found: dict[tuple[Table, str], list[str]] = {}
    for key in keys:
        found.setdefault((key.table, key.pk), []).append(key.sk)
    return found


@lru_cache(maxsize=256)
def _get_some(table: Table, count: int) -> str:
    return f"SELECT sk, item, ttl FROM {table} WHERE pk = ? AND sk IN ({', '.join('?' * count)})"


def _put(puts: dict[Table, list[Row]], key: Key, item: Mapping[str, Any], text: str | None) -> str:
    """Add the row of an item to those that are to be written; its JSON."""
    text = text or encode_item(key, dict(item))
    ttl = _whole_seconds(item.get("ttl"))
    row: Row = (key.pk, key.sk, ttl, text)
    if key.table is Table.EVENTS:
        type_ = item.get("type")
        row = (*row, type_ if isinstance(type_, str) else None, _millis_of(key.sk))
    puts.setdefault(key.table, []).append(row)
    return text


def _tell(changes: list[Row], key: Key, text: str | None, now_ms: int) -> None:
    """Add the change of a write to the stream's changes, in the order of the writes."""
    if key.table in STREAMED and not key.sk.startswith(UNSTREAMED):
        changes.append((key.table.value, key.pk, key.sk, now_ms, text))


def _insert(
    connection: sqlite3.Connection,
    table: str,
    columns: tuple[str, ...],
    rows: Sequence[Row],
    *,
    how: str = "INSERT OR REPLACE",
) -> None:
    if rows:
        connection.execute(_insert_some(how, table, columns, len(rows)), [value for row in rows for value in row])


@lru_cache(maxsize=1024)
def _insert_some(how: str, table: str, columns: tuple[str, ...], count: int) -> str:
    places = f"({', '.join('?' * len(columns))})"
    return f"{how} INTO {table} ({', '.join(columns)}) VALUES {', '.join([places] * count)}"


def _remove(connection: sqlite3.Connection, table: Table, rows: Sequence[Row], now_ms: int) -> None:
    """Remove items whose time has come, and tell of it."""
    changes: list[Row] = []
    items = items_of(connection)
    if items is not None:
        items.wrote_nothing_else()
    for pk, sk in rows:
        connection.execute(_DELETE[table], (pk, sk))
        if items is not None:
            items.wrote(Key(table, pk, sk), None)
        _tell(changes, Key(table, pk, sk), None, now_ms)
    for start in range(0, len(changes), MAX_WRITES):
        _insert(connection, "changes", _CHANGE_COLUMNS, changes[start : start + MAX_WRITES])


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
            if item is None and condition.present:
                return False
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

"""What is asked for again and again, read once: a store whose answers are kept while one pipeline is looked at.

The checks of the watchdog, and what follows a new config, ask for the same few records, each for its own reason. Kept
answers are milliseconds old, as a read is by the time it is acted on; every act is a conditional commit, and a commit
forgets all that was kept.

Besides what was read it knows what a query has proved absent: a key under a prefix that was read to its end, or beyond
the last of the newest few, is not there.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import Table
from interlock.ports.store import Conflict, Item, Key, Record, Span, Store, Write

T = TypeVar("T")

# The same for every pipeline: kept for the whole pass.
_SHARED: Final = frozenset({keys.CALENDARS, keys.CONTROLLER})


class _Query(msgspec.Struct, frozen=True):
    table: Table
    pk: str
    prefix: str
    after: str | None
    limit: int | None
    reverse: bool


class _Known(msgspec.Struct, frozen=True):
    """Every item of the partition under the prefix whose sort key is at least `first` has been read."""

    table: Table
    pk: str
    prefix: str
    first: str

    def covers(self, key: Key) -> bool:
        """Would it have been read, if it were there?"""
        same = key.pk == self.pk and key.table is self.table
        return same and key.sk.startswith(self.prefix) and key.sk >= self.first


class PassStore:
    """`ports.store.Store`, for one pass of the watchdog, or for one change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._items: dict[Key, Item | None] = {}
        self._queries: dict[_Query, list[Record]] = {}
        self._known: list[_Known] = []

    def next_pipeline(self) -> None:
        """Forget what was read of the pipeline before."""
        self._items = {key: item for key, item in self._items.items() if key.pk in _SHARED}
        self._queries = {query: found for query, found in self._queries.items() if query.pk in _SHARED}
        self._known = []

    def _forget(self) -> None:
        self._items, self._queries, self._known = {}, {}, []

    def get(self, key: Key) -> Item | None:
        """See `Store`."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `Store`."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._items and not self._absent(key)]
        if len(unknown) == 1:
            self._items[unknown[0]] = self._store.get(unknown[0])
        elif unknown:
            self._items.update(zip(unknown, self._store.get_many(unknown), strict=True))
        return [self._items.get(key) for key in keys]

    def _absent(self, key: Key) -> bool:
        return any(known.covers(key) for known in self._known)

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
        """See `Store`."""
        asked = _Query(table, pk, prefix, after, limit, reverse)
        if asked not in self._queries:
            found = self._store.query(table, pk, prefix, after=after, limit=limit, reverse=reverse)
            self._queries[asked] = found
            self._learn(asked, found)
        return self._queries[asked]

    def _learn(self, asked: _Query, found: Sequence[Record]) -> None:
        self._items.update((record.key, record.item) for record in found)
        if asked.after is not None:
            return
        if asked.limit is None or len(found) < asked.limit:
            self._known.append(_Known(asked.table, asked.pk, asked.prefix, ""))
        elif asked.reverse and found:
            self._known.append(_Known(asked.table, asked.pk, asked.prefix, found[-1].key.sk))

    def read_spans(self, table: Table, spans: Sequence[Span], into: type[T]) -> list[list[tuple[str, T]]]:
        """See `Store`; nothing of it is kept."""
        return self._store.read_spans(table, spans, into)

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """See `Store`. Whatever comes of it, what was read before is forgotten."""
        self._forget()
        return self._store.commit(writes)

    def refused(self, config: PipelineConfig) -> Sequence[str]:
        """See `Store`."""
        return self._store.refused(config)

    def pipelines(self) -> list[str]:
        """See `Store`."""
        return self._store.pipelines()

    def events_by_type(
        self, type_: str, *, since: int, until: int, limit: int, after: Key | None = None, reverse: bool = False
    ) -> list[Record]:
        """See `Store`."""
        return self._store.events_by_type(type_, since=since, until=until, limit=limit, after=after, reverse=reverse)

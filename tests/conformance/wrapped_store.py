"""The Store port over another store: a test overrides what it counts, delays or lets somebody interrupt."""

from collections.abc import Sequence
from typing import TypeVar

from interlock.model.config import PipelineConfig
from interlock.model.keys import Table
from interlock.ports.store import Conflict, Item, Key, Record, Span, Store, Write

T = TypeVar("T")


class WrappedStore:
    """Every call goes to the inner store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: Key) -> Item | None:
        """As the inner store."""
        return self._store.get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """As the inner store."""
        return self._store.get_many(keys)

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
        """As the inner store."""
        return self._store.query(table, pk, prefix, after=after, limit=limit, reverse=reverse)

    def read_spans(self, table: Table, spans: Sequence[Span], into: type[T]) -> list[list[tuple[str, T]]]:
        """As the inner store."""
        return self._store.read_spans(table, spans, into)

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """As the inner store."""
        return self._store.commit(writes)

    def refused(self, config: PipelineConfig) -> Sequence[str]:
        """As the inner store."""
        return self._store.refused(config)

    def pipelines(self) -> list[str]:
        """As the inner store."""
        return self._store.pipelines()

    def events_by_type(
        self, type_: str, *, since: int, until: int, limit: int, after: Key | None = None, reverse: bool = False
    ) -> list[Record]:
        """As the inner store."""
        return self._store.events_by_type(type_, since=since, until=until, limit=limit, after=after, reverse=reverse)

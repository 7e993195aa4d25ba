"""Two actors and one store, in an order that is chosen: the second acts just before a certain commit of the first.

A race between two functions of the controller is always the same story: one reads and decides, the other commits
something in between, and the first commits what is no longer true. `InterleavingStore` plays exactly that, so every
suspicion of a race is a test that always comes out the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from interlock.control.context import Control
from interlock.model.config import PipelineConfig
from interlock.model.keys import Table
from interlock.ports.store import Conflict, Item, Key, Record, Span, Store, Write

T = TypeVar("T")

BeforeCommit = Callable[[Sequence[Write]], None]


class InterleavingStore:
    """The Store port; `before_commit` is told of every commit just before it is made, and may act meanwhile."""

    def __init__(self, store: Store, before_commit: BeforeCommit) -> None:
        self._store = store
        self._before_commit = before_commit

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
        """Let the other actor go first, then commit."""
        self._before_commit(writes)
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


def interrupted(control: Control, other: Callable[[], object], when: Callable[[Sequence[Write]], bool]) -> Control:
    """The same controller, whose first commit that fits `when` is preceded by what the other actor does, once."""
    done: list[bool] = []

    def before(writes: Sequence[Write]) -> None:
        if not done and when(writes):
            done.append(True)
            other()

    return replace(control, store=InterleavingStore(control.store, before))


def touches(kind: str) -> Callable[[Sequence[Write]], bool]:
    """Does a commit write a record of this kind (`keys.RUN`, `keys.AWAITED` ...)?"""
    return lambda writes: any(write.key.sk.startswith(kind) for write in writes)

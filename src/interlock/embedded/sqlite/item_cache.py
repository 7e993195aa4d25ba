"""What is known of the items without asking SQLite: those that were read or written lately.

A run reads its own record nine times, and its pipeline's config at every step; each read is a statement, and in each
statement the interpreter is handed to another thread and back. So fibers keep what they read.

The invariant: what is known is what the snapshot of the fibers holds. Three things can break it, and end it:

- A commit of this process. Whoever writes items says which (`wrote`), and after the COMMIT these are known as they are
  now. A piece of work that does not say what it wrote, or fails, has everything forgotten.
- A commit of another process. SQLite counts those (`PRAGMA data_version` of the connection that writes, asked at the
  beginning of every snapshot); when the count has moved, everything is forgotten.
- A roll-back. What was written is not known, and everything is forgotten.

Conditions of a commit are never judged by what is known here: they are read within the transaction.
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Final

from interlock.model.keys import Table
from interlock.ports.store import Key

# An item as it is stored: its JSON and its ttl; None: there is none.
Kept = tuple[str, int | None] | None
# Of a list: the sort key, the JSON, the ttl.
ListedRow = tuple[str, str, int | None]
Partition = tuple[Table, str]

_MOST_ITEMS: Final = 4096
_MOST_PARTITIONS: Final = 512
_MOST_LISTS: Final = 64
# What is larger is not worth its memory: together at most 64 MiB, and a thousandth of that with items as they are.
_LARGEST: Final = 16 * 1024
_LONGEST_LIST: Final = 16


class ItemCache:
    """The items that are known. Every method is called with the lock, or by the only thread that could."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._items: dict[Key, Kept] = {}
        self._lists: dict[Partition, dict[str, list[ListedRow]]] = {}
        self._version: int | None = None
        # Of the transaction under way: what was written, whether all of it was said, and whether its work said so.
        self._written: dict[Key, Kept] = {}
        self._doubtful = False
        self._declared = False
        self._writing = False

    # ------------------------------------------------------------------------------------------------------ reading

    def get(self, key: Key, read: Callable[[Key], Kept]) -> Kept:
        """An item; `read` asks the store."""
        with self.lock:
            if self._writing:
                return read(key)
            try:
                return self._items[key]
            except KeyError:
                found = read(key)
                self._keep(key, found)
                return found

    def get_many(self, keys: Sequence[Key], read: Callable[[Sequence[Key]], dict[Key, Kept]]) -> dict[Key, Kept]:
        """Several items; `read` asks the store for those that are not known."""
        with self.lock:
            if self._writing:
                return read(keys)
            unknown = [key for key in keys if key not in self._items]
            found = {key: self._items[key] for key in keys if key in self._items}
            for key, kept in (read(unknown) if unknown else {}).items():
                found[key] = kept
                self._keep(key, kept)
            return found

    def listed(self, table: Table, pk: str, prefix: str, read: Callable[[], list[ListedRow]]) -> list[ListedRow]:
        """All items of a partition whose sort key has a prefix, in order; `read` asks the store."""
        with self.lock:
            if self._writing:
                return read()
            lists = self._lists.get((table, pk))
            if lists is not None and (known := lists.get(prefix)) is not None:
                return known
            found = read()
            if len(found) <= _LONGEST_LIST and sum(len(text) for _, text, _ in found) <= _LARGEST:
                self._keep_list((table, pk), prefix, found)
            return found

    def _keep(self, key: Key, kept: Kept) -> None:
        if kept is not None and len(kept[0]) > _LARGEST:
            self._items.pop(key, None)
            return
        if len(self._items) >= _MOST_ITEMS:
            del self._items[next(iter(self._items))]
        self._items[key] = kept

    def _keep_list(self, partition: Partition, prefix: str, found: list[ListedRow]) -> None:
        lists = self._lists.get(partition)
        if lists is None:
            if len(self._lists) >= _MOST_PARTITIONS:
                del self._lists[next(iter(self._lists))]
            lists = self._lists[partition] = {}
        if len(lists) >= _MOST_LISTS:
            del lists[next(iter(lists))]
        lists[prefix] = found

    # ------------------------------------------------------------------------------------------------------ writing

    def begin(self) -> None:
        """A transaction that writes begins. Until its end, what is read is not kept."""
        self._writing = True
        self._written, self._doubtful = {}, False

    def begin_work(self) -> None:
        """A piece of work begins within it."""
        self._declared = False

    def wrote(self, key: Key, kept: Kept) -> None:
        """The work has written an item, or removed it."""
        self._written[key] = kept
        self._declared = True

    def wrote_nothing_else(self) -> None:
        """The work has written no item but those that it has said."""
        self._declared = True

    def end_work(self) -> None:
        """It is done. What it did not say might be anything."""
        self._doubtful = self._doubtful or not self._declared

    def doubt(self) -> None:
        """Some of what was written in this transaction was undone."""
        self._doubtful = True

    def committed(self) -> None:
        """The transaction is on the disk."""
        if self._doubtful:
            self.forget()
            return
        for key, kept in self._written.items():
            # A key is known anew: as the youngest, it is the last to go.
            self._items.pop(key, None)
            self._keep(key, kept)
            self._forget_lists(key)
        self._written = {}
        self._writing = False

    def forget(self) -> None:
        """Nothing is known any more, and no transaction writes."""
        self._items.clear()
        self._lists.clear()
        self._written = {}
        self._writing = False

    def snapshot(self, version: int) -> None:
        """A snapshot begins, and this is SQLite's count of other processes' commits."""
        if version != self._version:
            self._version = version
            self.forget()

    def _forget_lists(self, key: Key) -> None:
        lists = self._lists.get((key.table, key.pk))
        if lists:
            for prefix in [prefix for prefix in lists if key.sk.startswith(prefix)]:
                del lists[prefix]


class StoreConnection(sqlite3.Connection):
    """A connection to a store, with what is known of its items."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.items = ItemCache()


def items_of(connection: sqlite3.Connection) -> ItemCache | None:
    """What is known of the items of a connection; None when it is not one of ours."""
    return connection.items if isinstance(connection, StoreConnection) else None


def writes_no_items(connection: sqlite3.Connection) -> None:
    """Said by a piece of work that writes other tables only, so that what is known stays known."""
    if isinstance(connection, StoreConnection):
        connection.items.wrote_nothing_else()

"""The store: items in four tables, read one by one or by prefix, written by conditional all-or-nothing commits.

The port offers what DynamoDB's TransactWriteItems offers and no more, so that a commit that works on one backend works
on the other. Items are JSON objects; their key is kept apart from them.

Obligations of every backend
----------------------------
- Reads are strongly consistent: a read that starts after a commit was acknowledged sees it. Two may lag behind by
  seconds, `pipelines` and `events_by_type`: whoever decides by them looks again later, or reads the item itself.
- An item whose `ttl` (epoch seconds) has passed is absent: on every read, and to every condition.
- A commit is atomic and durable when it returns None; when it returns a Conflict nothing of it was written. A commit
  whose answer was lost is asked again under the same token: its own success is never reported as a Conflict. Where
  nobody can tell what became of it, it raises; the caller reads again and decides again.
- Each key appears once in a commit; at most MAX_WRITES writes; an item is at most MAX_ITEM_BYTES by DynamoDB's count.
  Otherwise CommitRefusedError, on every backend. A whole number reads back as an integer (`1.0` as `1`).
- Every write to a table with a stream puts one change into that stream, in the same transaction. Changes are in
  commit order per item; between items, also of one partition and of one commit, there is no order. A put that changes
  nothing may be a change, or none.
- A store with an audit trail keeps the note that a write carries in the same transaction; to other stores nobody gives
  one (`Control.auditing`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from interlock.model.audit import AuditNote
from interlock.model.keys import Table

if TYPE_CHECKING:
    from interlock.model.config import PipelineConfig

MAX_WRITES: Final = 100
MAX_ITEM_BYTES: Final = 390_000

Item = dict[str, Any]

UNREADABLE: Final = "_unreadable"
"""An item that somebody else wrote holds what JSON cannot (binary): that is left out, and named under this."""


class Key(msgspec.Struct, frozen=True):
    """Where an item is."""

    table: Table
    pk: str
    sk: str


class Record(msgspec.Struct, frozen=True):
    """An item with its key."""

    key: Key
    item: Item


class Missing(msgspec.Struct, frozen=True, tag=True):
    """Condition: there is no such item."""


class Present(msgspec.Struct, frozen=True, tag=True):
    """Condition: there is such an item."""


class Matches(msgspec.Struct, frozen=True, tag=True):
    """Condition: every named top-level attribute has this value; None means the attribute is absent (or null).

    On an absent item every attribute is absent; with `present`, there must be such an item besides.
    """

    attributes: Mapping[str, Any]
    present: bool = False


Condition = Missing | Present | Matches | None


class Put(msgspec.Struct, frozen=True):
    """Replace the whole item."""

    key: Key
    item: Item
    when: Condition = None
    note: AuditNote | None = None


class Update(msgspec.Struct, frozen=True):
    """Change named top-level attributes; creates the item when it is absent. `add` adds to a number (absent is 0)."""

    key: Key
    set: Mapping[str, Any] = {}
    add: Mapping[str, int] = {}
    remove: tuple[str, ...] = ()
    when: Condition = None


class Delete(msgspec.Struct, frozen=True):
    """Remove the item; removing an absent one is no error."""

    key: Key
    when: Condition = None
    note: AuditNote | None = None


class Require(msgspec.Struct, frozen=True):
    """Write nothing; the commit fails unless the condition holds."""

    key: Key
    when: Condition


Write = Put | Update | Delete | Require


class Conflict(msgspec.Struct, frozen=True):
    """Which writes' conditions did not hold; nothing was written."""

    failed: tuple[int, ...]


class Change(msgspec.Struct, frozen=True, rename="camel"):
    """A write as the stream tells of it: a hint, not a fact. Read the current item and decide from that.

    `item` is the item after the write, None for a removal. `at` is epoch milliseconds of the commit.
    """

    seq: int
    table: Table
    pk: str
    sk: str
    at: int
    item: Item | None

    @property
    def key(self) -> Key:
        """The key of the written item."""
        return Key(self.table, self.pk, self.sk)


class Changed(msgspec.Struct, frozen=True):
    """What was written since a position of the changes: the position now, and the partitions; None: it may be any."""

    position: int
    partitions: frozenset[str] | None


class Span(msgspec.Struct, frozen=True, gc=False):
    """A stretch of one partition: first <= sort key < end. With `last`, only that many from its end, latest first."""

    pk: str
    first: str
    end: str
    last: int | None = None


T = TypeVar("T")


class Store(Protocol):
    """See the module's obligations."""

    def get(self, key: Key) -> Item | None:
        """The item, or None."""
        ...

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """The items of these keys, in their order. Not a snapshot: each is read consistently by itself."""
        ...

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
        """The items of a partition whose sort key starts with `prefix`, in sort-key order (byte-wise).

        `after` (exclusive) pages on; with `reverse` it pages backwards.
        """
        ...

    def read_spans(self, table: Table, spans: Sequence[Span], into: type[T]) -> list[list[tuple[str, T]]]:
        """The items of several spans, each by its sort key, in the order of the spans and of the sort keys.

        For readers of many pipelines at once. Of an item only what `into` (a Struct) names is read; an item that is
        not one is left out. The spans may be read at slightly different instants.
        """
        ...

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """All of the writes, or none and the reason."""
        ...

    def refused(self, config: "PipelineConfig") -> Sequence[str]:
        """Why the runtime whose store this is cannot run a config, each reason in a line; empty where it can."""
        ...

    def pipelines(self) -> list[str]:
        """The ids of all pipelines that have a CONFIG item, sorted. May lag: see the module's obligations."""
        ...

    def events_by_type(
        self, type_: str, *, since: int, until: int, limit: int, after: Key | None = None, reverse: bool = False
    ) -> list[Record]:
        """Events of a type with since <= tsMillis < until, in the order of (tsMillis, sort key, partition). May lag.

        `after`, the key of an event, pages on (exclusive); with `reverse` the order is turned round.
        """
        ...

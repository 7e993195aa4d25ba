"""Reading the four tables: consistently, page by page, and never what has expired."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from interlock.aws.dynamodb import attributes
from interlock.aws.dynamodb.attributes import INDEX_PK, INDEX_SK, PK, SK, Attributes
from interlock.aws.dynamodb.calls import TRIES, Pause, back_off, retried
from interlock.aws.dynamodb.items import INDEX, INDEX_PARTITIONS, REGISTRY, expired, index_pk, index_sk, key_of
from interlock.model.errors import ThrottledError
from interlock.model.keys import PIPELINE, Table
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock
from interlock.ports.store import Item, Key, Record, Span

if TYPE_CHECKING:
    from concurrent.futures import Executor

_BATCH: Final = 100
_PAGE: Final = 200


T = TypeVar("T")


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


class DynamoReader:
    """The reads of `ports.store.Store`. `tables` are the names of the four tables in this account."""

    def __init__(self, client: Any, tables: Mapping[Table, str], clock: Clock, pause: Pause | None = None) -> None:
        self._client = client
        self._tables = dict(tables)
        self._clock = clock
        self._pause = pause or _sleep
        self._readers: Executor | None = None

    def read_index_with(self, readers: "Executor") -> None:
        """Ask the partitions of the index side by side from now on: for who reads the events of all pipelines."""
        self._readers = readers

    def get(self, key: Key) -> Item | None:
        """The item, or None."""
        answer = self._retried(
            f"reading {key.pk} {key.sk}",
            lambda: self._client.get_item(TableName=self._tables[key.table], Key=key_of(key), ConsistentRead=True),
        )
        return self._live(answer.get("Item"))

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        """The items of these keys, in their order. Each is read consistently by itself."""
        found: dict[Key, Item] = {}
        unique = list(dict.fromkeys(keys))
        for start in range(0, len(unique), _BATCH):
            for key, item in self._batch(unique[start : start + _BATCH]):
                live = self._live(item)
                if live is not None:
                    found[key] = live
        return [found.get(key) for key in keys]

    def _batch(self, keys: Sequence[Key]) -> Iterator[tuple[Key, Attributes]]:
        names = {name: table for table, name in self._tables.items()}
        wanted: dict[str, Any] = {}
        for key in keys:
            asked = wanted.setdefault(self._tables[key.table], {"Keys": [], "ConsistentRead": True})
            asked["Keys"].append(key_of(key))
        for turn in range(TRIES):
            request = wanted
            answer = self._retried("reading a batch", lambda: self._client.batch_get_item(RequestItems=request))  # noqa: B023 - called at once
            for name, items in answer.get("Responses", {}).items():
                yield from ((Key(names[name], item[PK]["S"], item[SK]["S"]), item) for item in items)
            wanted = answer.get("UnprocessedKeys") or {}
            if not wanted:
                return
            self._pause(back_off(turn))
        raise ThrottledError(f"DynamoDB left keys of a batch unread {TRIES} times: the tables are throttled")

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
        wanted = max(limit, 0) if limit is not None else None
        if wanted == 0:
            return []
        start = None
        if after is not None and after.startswith(prefix):
            start = {PK: {"S": pk}, SK: {"S": after}}
        elif after is not None and (after.encode() > prefix.encode()) is not reverse:
            return []  # the page begins behind all that have the prefix
        arguments: dict[str, Any] = {
            "KeyConditionExpression": "#pk = :pk AND begins_with(#sk, :prefix)" if prefix else "#pk = :pk",
            "ExpressionAttributeNames": {"#pk": PK} | ({"#sk": SK} if prefix else {}),
            "ExpressionAttributeValues": {":pk": {"S": pk}} | ({":prefix": {"S": prefix}} if prefix else {}),
            "ScanIndexForward": not reverse,
            "ConsistentRead": True,
        }
        found: list[Record] = []
        for raw in self._pages(table, arguments, start, wanted):
            item = self._live(raw)
            if item is not None:
                found.append(Record(Key(table, pk, raw[SK]["S"]), item))
                if len(found) == wanted:
                    break
        return found

    def read_spans(self, table: Table, spans: Sequence[Span], into: type[T]) -> list[list[tuple[str, T]]]:
        """The items of several spans, as far as `into` names their attributes; a query each."""
        return [self._span(table, span, into) for span in spans]

    def _span(self, table: Table, span: Span, into: type[T]) -> list[tuple[str, T]]:
        # BETWEEN counts both ends; sort keys are never empty, and one that equals `end` is dropped below.
        first = span.first or "\x01"
        if first.encode() > span.end.encode() or span.last == 0:
            return []
        arguments: dict[str, Any] = {
            "KeyConditionExpression": "#pk = :pk AND #sk BETWEEN :first AND :end",
            "ExpressionAttributeNames": {"#pk": PK, "#sk": SK},
            "ExpressionAttributeValues": {":pk": {"S": span.pk}, ":first": {"S": first}, ":end": {"S": span.end}},
            "ScanIndexForward": span.last is None,
            "ConsistentRead": True,
        }
        found: list[tuple[str, T]] = []
        for raw in self._pages(table, arguments, None, None if span.last is None else span.last + 1):
            item, sk = self._live(raw), raw[SK]["S"]
            if item is None or sk == span.end:
                continue
            with suppress(msgspec.ValidationError):
                found.append((sk, msgspec.convert(item, into)))
            if len(found) == span.last:
                break
        return found

    def _pages(
        self, table: Table, arguments: Mapping[str, Any], start: Attributes | None, limit: int | None
    ) -> Iterator[Attributes]:
        """Every item of a query, page by page; expired ones among them."""
        given = {**arguments, "TableName": self._tables[table]}
        if limit is not None:
            given["Limit"] = min(limit + 1, _PAGE)
        while True:
            page = {**given, "ExclusiveStartKey": start} if start else given
            answer = self._retried(f"querying {table}", lambda: self._client.query(**page))  # noqa: B023 - called at once
            yield from answer.get("Items", [])
            start = answer.get("LastEvaluatedKey")
            if not start:
                return

    def pipelines(self) -> list[str]:
        """The ids of all pipelines that have a CONFIG item, sorted. May lag behind a foreign write of a CONFIG."""
        return [record.key.sk[len(PIPELINE) :] for record in self.query(Table.CONTROL, REGISTRY, PIPELINE)]

    def events_by_type(
        self, type_: str, *, since: int, until: int, limit: int, after: Key | None = None, reverse: bool = False
    ) -> list[Record]:
        """Events of a type with since <= tsMillis < until, oldest first. The index may lag by a second or so."""
        first, end = f"{max(since, 0):016d}", f"{max(until, 0):016d}"
        behind = index_sk(after) if after is not None else None
        if behind is not None and reverse:
            end = min(end, behind)
        elif behind is not None:
            first = max(first, behind)
        if limit <= 0 or first > end:
            return []
        arguments = {
            "IndexName": INDEX,
            "KeyConditionExpression": "#pk = :pk AND #sk BETWEEN :first AND :end",
            "ExpressionAttributeNames": {"#pk": INDEX_PK, "#sk": INDEX_SK},
            "ScanIndexForward": not reverse,
        }

        def read(shard: int) -> list[tuple[str, Record]]:
            values = {":pk": {"S": index_pk(type_, shard)}, ":first": {"S": first}, ":end": {"S": end}}
            return self._index_page({**arguments, "ExpressionAttributeValues": values}, behind, limit)

        shards = range(INDEX_PARTITIONS)
        pages = self._readers.map(read, shards) if self._readers is not None else map(read, shards)
        found = [pair for page in pages for pair in page]
        found.sort(key=lambda pair: pair[0].encode(), reverse=reverse)
        return [record for _, record in found[:limit]]

    def _index_page(self, arguments: Mapping[str, Any], behind: str | None, limit: int) -> list[tuple[str, Record]]:
        """So many events of one partition of the index, each with its place, behind the one that is given."""
        found: list[tuple[str, Record]] = []
        for raw in self._pages(Table.EVENTS, arguments, None, limit):
            item, place = self._live(raw), raw[INDEX_SK]["S"]
            if item is not None and place != behind:
                found.append((place, Record(Key(Table.EVENTS, raw[PK]["S"], raw[SK]["S"]), item)))
            if len(found) == limit:
                break
        return found

    def _live(self, raw: Attributes | None) -> Item | None:
        if not raw or expired(raw, self._seconds()):
            return None
        return attributes.decode_item(raw)

    def _seconds(self) -> int:
        return epoch_millis(self._clock.now()) // 1000

    def _retried(self, doing: str, act: Callable[[], Any]) -> Any:
        return retried(doing, act, self._pause)

"""The store port on DynamoDB: four tables, consistent reads, and commits that are transactions.

A lost answer. A commit whose answer got lost is asked again under the same request token, and DynamoDB then answers for
the first one. Only a write that may harmlessly happen twice (unconditional, or on a condition that its own success does
not break) goes by the plain call, which is half the price and does not collide with a transaction on the same item: a
wake-up must not fight with the state machine that stores its token.

Expiry. DynamoDB removes an item up to two days after its `ttl`. Reads and conditions treat it as absent; an update in
place would resurrect its remains, so it is refused by a condition, and done again as a put on the condition that they
are still there.
"""

import random
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from interlock.aws import failures
from interlock.aws.dynamodb import attributes
from interlock.aws.dynamodb.attributes import INDEX_PK, INDEX_SK, OWN, PK, SK, Attributes
from interlock.aws.dynamodb.expressions import Expression, applied, condition_text, update_condition, update_text
from interlock.model.config import PipelineConfig
from interlock.model.errors import CommitRefusedError, ThrottledError, UnavailableError
from interlock.model.keys import CONFIG, PIPELINE, Table
from interlock.model.times import epoch_millis
from interlock.ports.clock import Clock
from interlock.ports.limits import check_commit
from interlock.ports.store import (
    MAX_WRITES,
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

if TYPE_CHECKING:
    from concurrent.futures import Executor

REGISTRY: Final = "REGISTRY"
"""The partition that lists the pipelines with a CONFIG item."""
INDEX: Final = "GSI1"
INDEX_PARTITIONS: Final = 8
"""A type's events are spread: a hot index partition would throttle the commits themselves."""
_BATCH: Final = 100
_TRIES: Final = 6
_FIRST_PAUSE: Final = 0.05
_PAGE: Final = 200


T = TypeVar("T")


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


class DynamoStore:
    """`ports.store.Store`. `tables` are the names of the four tables in this account."""

    def __init__(
        self,
        client: Any,
        tables: Mapping[Table, str],
        clock: Clock,
        *,
        pause: Callable[[float], object] = _sleep,
        refused: Callable[[PipelineConfig], Sequence[str]] = lambda _: (),
        event_ttl: timedelta | None = None,
    ) -> None:
        """`refused`: see the method of that name.

        `event_ttl`: how long this environment keeps events, where that is another time than the controller's own.
        """
        self._client = client
        self._tables = dict(tables)
        self._clock = clock
        self._pause = pause
        self._refused = refused
        self._event_ttl = event_ttl
        self._readers: Executor | None = None

    def read_index_with(self, readers: "Executor") -> None:
        """Ask the partitions of the index side by side from now on: for who reads the events of all pipelines."""
        self._readers = readers

    def refused(self, config: PipelineConfig) -> Sequence[str]:
        """Why the functions of this environment cannot run a config."""
        return self._refused(config)

    # ------------------------------------------------------------------------------------------------ reading

    def get(self, key: Key) -> Item | None:
        """The item, or None."""
        answer = self._retried(
            f"reading {key.pk} {key.sk}",
            lambda: self._client.get_item(TableName=self._tables[key.table], Key=_key(key), ConsistentRead=True),
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
            asked["Keys"].append(_key(key))
        for turn in range(_TRIES):
            request = wanted
            answer = self._retried("reading a batch", lambda: self._client.batch_get_item(RequestItems=request))  # noqa: B023 - called at once
            for name, items in answer.get("Responses", {}).items():
                yield from ((Key(names[name], item[PK]["S"], item[SK]["S"]), item) for item in items)
            wanted = answer.get("UnprocessedKeys") or {}
            if not wanted:
                return
            self._pause(_back_off(turn))
        raise ThrottledError(f"DynamoDB left keys of a batch unread {_TRIES} times: the tables are throttled")

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

    def register(self, pipeline: str) -> None:
        """Have the registry agree with the CONFIG item, which somebody else may have written without it."""
        config, entry = (
            Key(Table.CONTROL, PIPELINE + pipeline, CONFIG),
            Key(Table.CONTROL, REGISTRY, PIPELINE + pipeline),
        )
        item, listed = self.get_many([config, entry])
        if item is None and listed is not None:
            self.commit([Delete(entry), Require(config, Missing())])
        elif item is not None and listed is None:
            entered = {name: item[name] for name in ("ttl",) if name in item}
            self.commit([Put(entry, entered), Require(config, Present())])

    def events_by_type(
        self, type_: str, *, since: int, until: int, limit: int, after: Key | None = None, reverse: bool = False
    ) -> list[Record]:
        """Events of a type with since <= tsMillis < until, oldest first. The index may lag by a second or so."""
        first, end = f"{max(since, 0):016d}", f"{max(until, 0):016d}"
        behind = _index_sk(after) if after is not None else None
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
            values = {":pk": {"S": _index_pk(type_, shard)}, ":first": {"S": first}, ":end": {"S": end}}
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
        if not raw or _expired(raw, self._seconds()):
            return None
        return attributes.decode_item(raw)

    def _seconds(self) -> int:
        return epoch_millis(self._clock.now()) // 1000

    # ------------------------------------------------------------------------------------------------ writing

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        """All of the writes, or none and the reason. Nothing to write is no error."""
        if not writes:
            return None
        check_commit(writes)
        _check_names(writes)
        pending = [*(self._kept_for(write) for write in writes), *_registered(writes)]
        if len(pending) > MAX_WRITES:
            raise CommitRefusedError(f"{len(writes)} writes with a CONFIG: at most {MAX_WRITES - 1}, split it")
        remains: dict[int, Attributes] = {}
        for _ in range(_TRIES):
            failed = self._attempt(pending, remains)
            expired = {index: old for index, old in failed.items() if self._only_remains(pending[index], old)}
            if len(expired) < len(failed) or not failed:
                broken = tuple(sorted(failed.keys() - expired.keys()))
                return Conflict(broken) if broken else None
            remains |= expired
        raise UnavailableError(f"expired items under {writes[0].key.pk} kept changing during a commit")

    def _kept_for(self, write: Write) -> Write:
        """An event with the time that this environment keeps events for."""
        ours = isinstance(write, Put) and write.key.table is Table.EVENTS and {"type", "ttl"} <= write.item.keys()
        millis = write.key.sk.partition("#")[0]
        if self._event_ttl is None or not ours or not isinstance(write, Put) or not millis.isdigit():
            return write
        until = int(millis) // 1000 + int(self._event_ttl.total_seconds())
        return msgspec.structs.replace(write, item={**write.item, "ttl": until})

    def _only_remains(self, write: Write, old: Attributes) -> bool:
        """Did an update fail only because the remains of an expired item are in its way?"""
        return isinstance(write, Update) and _expired(old, self._seconds()) and _holds_of_nothing(write.when)

    def _attempt(self, writes: Sequence[Write], remains: Mapping[int, Attributes]) -> dict[int, Attributes]:
        """Write; which writes' conditions failed, each with the item that was there."""
        requests = [
            self._replacement(write, remains[index]) if index in remains else self._request(write)
            for index, write in enumerate(writes)
        ]
        try:
            if _repeatable(writes) and not remains:
                ((kind, arguments),) = requests
                act = getattr(self._client, {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}[kind])
                self._retried(f"writing {writes[0].key.pk} {writes[0].key.sk}", lambda: act(**arguments))
            else:
                items, token = [{kind: arguments} for kind, arguments in requests], str(uuid.uuid4())
                self._retried(
                    f"committing {len(writes)} writes to {writes[0].key.pk}",
                    lambda: self._client.transact_write_items(TransactItems=items, ClientRequestToken=token),
                )
        except _ConditionFailedError as error:
            return error.items
        return {}

    def _replacement(self, write: Write, remains: Attributes) -> tuple[str, dict[str, Any]]:
        """What an update makes of nothing, put in the place of exactly these remains of an expired item."""
        assert isinstance(write, Update)
        expression = Expression(self._seconds())
        same = f"{expression.name('ttl')} = {expression.value(attributes.decode(remains['ttl']))}"
        place = {"TableName": self._tables[write.key.table], "Item": _full(write.key, applied(write))}
        return "Put", {**place, **expression.parameters(ConditionExpression=same), **_SHOW_OLD}

    def _request(self, write: Write) -> tuple[str, dict[str, Any]]:
        """A write as DynamoDB wants it, with the name of its kind."""
        place = {"TableName": self._tables[write.key.table]}
        expression = Expression(self._seconds())
        match write:
            case Put():
                given = expression.parameters(ConditionExpression=condition_text(expression, write.when))
                return "Put", {**place, "Item": _full(write.key, write.item), **given, **_SHOW_OLD}
            case Update():
                given = expression.parameters(
                    UpdateExpression=update_text(expression, write),
                    ConditionExpression=update_condition(expression, write.when),
                )
                return "Update", {**place, "Key": _key(write.key), **given, **_SHOW_OLD}
            case Delete():
                given = expression.parameters(ConditionExpression=condition_text(expression, write.when))
                return "Delete", {**place, "Key": _key(write.key), **given, **_SHOW_OLD}
            case Require():
                # Matches({}) holds of everything; DynamoDB wants a condition all the same.
                text = condition_text(expression, write.when) or _anything(expression)
                given = expression.parameters(ConditionExpression=text)
                return "ConditionCheck", {**place, "Key": _key(write.key), **given, **_SHOW_OLD}
        assert_never(write)

    def _retried(self, doing: str, act: Callable[[], Any]) -> Any:
        """A call that is made again, word for word, while the service is in trouble."""
        for turn in range(_TRIES):
            try:
                return act()
            except (ClientError, BotoCoreError) as error:
                _raise_condition(error)
                if not _retriable(error):
                    raise failures.translated(error, doing) from error
                if turn == _TRIES - 1:
                    raise failures.passing(error, f"{doing}: tried {_TRIES} times") from error
            self._pause(_back_off(turn))
        raise AssertionError("the loop returns or raises")


_SHOW_OLD: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


class _ConditionFailedError(Exception):
    """Conditions that did not hold: which writes', and the items that were there."""

    def __init__(self, items: dict[int, Attributes]) -> None:
        super().__init__("condition failed")
        self.items = items


def _raise_condition(error: Exception) -> None:
    """Tell a failed condition from a failure."""
    if not isinstance(error, ClientError):
        return
    code = failures.code_of(error)
    if code == "ConditionalCheckFailedException":
        raise _ConditionFailedError({0: error.response.get("Item") or {}}) from error
    if code != "TransactionCanceledException":
        return
    why = failures.reasons(error)
    failed = {i: one.get("Item") or {} for i, one in enumerate(why) if one.get("Code") == "ConditionalCheckFailed"}
    if failed:
        raise _ConditionFailedError(failed) from error
    refused = [str(one.get("Message", "")) for one in why if one.get("Code") == "ValidationError"]
    if refused:
        raise CommitRefusedError(f"DynamoDB refuses a commit: {'; '.join(refused)}") from error


def _retriable(error: Exception) -> bool:
    if isinstance(error, ClientError) and failures.code_of(error) == "TransactionCanceledException":
        return failures.throttled(error)
    return failures.may_pass(error)


def _back_off(turn: int) -> float:
    return _FIRST_PAUSE * 2.0**turn * random.uniform(0.5, 1.5)


# -------------------------------------------------------------------------------------------------- what is written


def _key(key: Key) -> Attributes:
    return {PK: {"S": key.pk}, SK: {"S": key.sk}}


def _full(key: Key, item: Mapping[str, Any]) -> Attributes:
    """An item with its key and, for an event, its place in the index."""
    full = {**_key(key), **attributes.encode_item(item)}
    type_ = item.get("type")
    place = _index_sk(key) if key.table is Table.EVENTS else None
    if place is not None and isinstance(type_, str):
        shard = sum(key.sk.encode()) % INDEX_PARTITIONS
        full[INDEX_PK] = {"S": _index_pk(type_, shard)}
        full[INDEX_SK] = {"S": place}
    return full


def _index_sk(key: Key) -> str | None:
    """An event's place in the index; None where its sort key does not begin with a time."""
    millis, _, rest = key.sk.partition("#")
    return f"{int(millis):016d}#{rest}#{key.pk}" if millis.isdigit() else None


def _index_pk(type_: str, shard: int) -> str:
    return f"{type_}#{shard}"


def _check_names(writes: Sequence[Write]) -> None:
    for write in writes:
        named: Mapping[str, Any] = write.item if isinstance(write, Put) else {}
        if isinstance(write, Update):
            named = {**write.set, **write.add, **dict.fromkeys(write.remove)}
        if taken := OWN & named.keys():
            raise CommitRefusedError(
                f"{write.key.pk}/{write.key.sk}: {', '.join(sorted(taken))} is the store's own name"
            )


def _registered(writes: Sequence[Write]) -> Iterator[Write]:
    """The registry follows the CONFIG items, in their commit."""
    for write in writes:
        key = write.key
        if key.table is not Table.CONTROL or key.sk != CONFIG or not key.pk.startswith(PIPELINE):
            continue
        entry = Key(Table.CONTROL, REGISTRY, key.pk)
        if isinstance(write, Put):
            yield Put(entry, {name: write.item[name] for name in ("ttl",) if name in write.item})
        elif isinstance(write, Delete):
            yield Delete(entry)


def _repeatable(writes: Sequence[Write]) -> bool:
    """May this be written twice without harm, if the answer to the first got lost?"""
    if len(writes) != 1 or isinstance(writes[0], Require):
        return False
    write = writes[0]
    return not _broken_by_itself(write, write.when)


def _broken_by_itself(write: Write, condition: Condition) -> bool:
    match condition:
        case None:
            return False
        case Missing():
            return True
        case Present():
            return isinstance(write, Delete)
        case Matches():
            touched = {*write.set, *write.add, *write.remove} if isinstance(write, Update) else None
            return touched is None or bool(touched & condition.attributes.keys())
    assert_never(condition)


def _holds_of_nothing(condition: Condition) -> bool:
    """Would a condition hold if there were no item?"""
    if isinstance(condition, Matches):
        return not condition.present and all(value is None for value in condition.attributes.values())
    return not isinstance(condition, Present)


def _anything(expression: Expression) -> str:
    mark = expression.name(PK)
    return f"attribute_exists({mark}) OR attribute_not_exists({mark})"


def _expired(raw: Attributes, seconds: int) -> bool:
    ttl = raw.get("ttl", {}).get("N")
    return ttl is not None and float(ttl) <= seconds

"""DynamoDB of the world: moto's, with the planned tables, faster transactions, and the rules that AWS has besides."""

import copy
import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from unittest import mock

import msgspec
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.dynamodb.comparisons import OpEqual, get_filter_expression
from moto.dynamodb.exceptions import MultipleTransactionsException, TransactionCanceledException
from moto.dynamodb.models import DynamoDBBackend, dynamodb_backends
from moto.dynamodb.models import table as moto_table
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.responses import DynamoHandler

from interlock.model.keys import Table
from interlock.ports.clock import Clock
from tests.aws.dynamo import check_item, session, strictly_equal
from tests.aws.world.calls import Call
from tests.aws.world.plan import ACCOUNT, REGION, Plan, PlannedTable

# API Reference, BatchGetItem: at most 100 items, and no key twice.
_BATCH: Final = 100
# API Reference, TransactWriteItems: at most 100 actions and 4 MB; a request token counts for ten minutes.
_ACTIONS: Final = 100
_TRANSACTION_BYTES: Final = 4 * 1024 * 1024
_TOKEN_SECONDS: Final = 600


class Tables:
    """Answers the calls to DynamoDB, as strictly as AWS does, and hands out what the streams tell."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._planned: Mapping[str, PlannedTable] = {one.name: one for one in plan.tables.values()}
        self._names = {table: one.name for table, one in plan.tables.items()}
        self._clock = clock
        self._tokens: dict[str, tuple[datetime, Any]] = {}
        self.index_behind = timedelta(0)
        self.writes = 0
        """How many writes succeeded: whoever saw this number saw everything before it."""

    # ------------------------------------------------------------------------------------------------ set-up

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Patch moto; to be used within `mock_aws`."""

        def now() -> datetime:
            return self._clock.now().replace(tzinfo=None)  # moto's times are naive

        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(OpEqual, "expr", strictly_equal))
            stack.enter_context(mock.patch.object(moto_table, "utcnow", now))
            stack.enter_context(mock.patch.object(DynamoDBBackend, "transact_write_items", _transact))
            stack.enter_context(mock.patch.object(moto_table.Table, "query", narrowed_query))
            client = session().client("dynamodb")
            for planned in self._planned.values():
                _create(client, planned)
            yield

    def records(self, table: Table, after: int) -> list[dict[str, Any]]:
        """What a table's stream has handed on since its `after`-th record, in its order."""
        shard = self._moto(self._names[table]).stream_shard
        assert shard is not None, f"{table} has no stream"
        return [one.record for one in shard.items[after:]]

    def stored(self, name: str, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """An item by its key, as attributes, without a call."""
        found = _stored(self._moto(name), key)
        return None if found is None else found.to_json()["Attributes"]

    def items(self, table: Table) -> Iterator[dict[str, Any]]:
        """Every item of a table, as attributes."""
        for item in self._moto(self._names[table]).all_items():
            yield item.to_json()["Attributes"]

    def _moto(self, name: str) -> moto_table.Table:
        return dynamodb_backends[ACCOUNT][REGION].tables[name]

    # ------------------------------------------------------------------------------------------------- calls

    def __call__(self, call: Call) -> Any:
        """One call."""
        match call.operation:
            case "PutItem":
                check_item(call.arguments["Item"], call.operation)
                return self._written(_answered(call))
            case "UpdateItem":
                return self._written(self._update(call))
            case "DeleteItem":
                return self._written(_answered(call))
            case "TransactWriteItems":
                return self._written(self._transaction(call))
            case "BatchGetItem":
                self._check_batch(call)
                return _answered(call)
            case "GetItem":
                return _answered(call)
            case "Query":
                return self._query(call)
        return call.forward()

    def _query(self, call: Call) -> Any:
        """An index tells of a write a while later (Developer Guide, "Global secondary indexes": eventual)."""
        answer = _answered(call)
        if "IndexName" in call.arguments:
            if call.arguments.get("ConsistentRead"):
                raise call.error("ValidationException", "Consistent reads are not supported on indexes")
            heard = (self._clock.now() - self.index_behind).timestamp() * 1000
            answer["Items"] = [one for one in answer["Items"] if _millis(one) <= heard]
        return answer

    def _written(self, answer: Any) -> Any:
        self.writes += 1
        return answer

    def _update(self, call: Call) -> Any:
        arguments = call.arguments
        table = self._moto(arguments["TableName"])
        before, count = _snapshot(table, arguments["Key"])
        answer = _answered(call)
        _forget_bare_insert(table, count)
        after = _stored(table, arguments["Key"])
        try:
            check_item(after.to_json()["Attributes"] if after is not None else {}, call.operation)
        except Exception:
            _restore(table, arguments["Key"], before, count)
            raise
        return answer

    def _transaction(self, call: Call) -> Any:
        arguments = {**call.arguments}
        token = arguments.pop("ClientRequestToken", None)
        now = self._clock.now()
        if token in self._tokens and (now - self._tokens[token][0]).total_seconds() < _TOKEN_SECONDS:
            if self._tokens[token][1] != arguments:
                raise call.error("IdempotentParameterMismatchException", "the token is another request's")
            return {}
        items = arguments["TransactItems"]
        size = sum(check_item(one["Put"]["Item"], call.operation) for one in items if "Put" in one)
        if len(items) > _ACTIONS or size > _TRANSACTION_BYTES:
            raise call.error("ValidationException", "the transaction is too large")
        if any("Update" in one and not one["Update"].get("UpdateExpression") for one in items):
            raise call.error("ValidationException", "an Update needs an UpdateExpression")
        answer = _answered(call)
        if token:
            self._tokens[token] = (now, copy.deepcopy(arguments))
        return answer

    def _check_batch(self, call: Call) -> None:
        keys = [(name, str(key)) for name, part in call.arguments["RequestItems"].items() for key in part["Keys"]]
        if not 1 <= len(keys) <= _BATCH:
            raise call.error("ValidationException", f"{len(keys)} keys in one BatchGetItem")
        if len(set(keys)) < len(keys):
            raise call.error("ValidationException", "Provided list of item keys contains duplicates")


whole_query: Final = moto_table.Table.query


def narrowed_query(
    table: moto_table.Table,
    hash_key: DynamoType,
    comparison: str | None,
    values: list[DynamoType],
    *rest: Any,
    **more: Any,
) -> Any:
    """In place of moto's, which sorts the whole table for each query: its own, on what can match.

    The neighbours of what matches are left in, so that the pages end where they would.
    """
    asked = (hash_key, comparison, values, *rest)
    of_an_index = rest[4] is not None
    if of_an_index:
        return whole_query(table, *asked, **more)
    found = sorted(table.items.get(hash_key, {}).values(), key=_range_key)
    if comparison == "BEGINS_WITH":
        prefix = str(values[0].value)
        first = last = bisect_left(found, prefix, key=_range_key)
        while last < len(found) and _range_key(found[last]).startswith(prefix):
            last += 1
        found = found[max(0, first - 1) : last + 1]
    table.all_items = lambda: found  # type: ignore[method-assign]  # until the query is answered
    try:
        return whole_query(table, *asked, **more)
    finally:
        del table.all_items


def _range_key(item: Item) -> str:
    assert item.range_key is not None
    return str(item.range_key.value)


def _millis(event: Mapping[str, Any]) -> int:
    """When an event of the index was committed."""
    return int(event["SK"]["S"].partition("#")[0])


def wire(record: Mapping[str, Any], table: PlannedTable) -> dict[str, Any]:
    """A stream record as Lambda gets it: its time in whole seconds."""
    change = dict(record["dynamodb"])
    at: datetime = change["ApproximateCreationDateTime"]
    change["ApproximateCreationDateTime"] = float(int(at.replace(tzinfo=UTC).timestamp()))
    named = {name: record[name] for name in ("eventID", "eventName", "eventVersion", "eventSource", "awsRegion")}
    return {**named, "dynamodb": change, "eventSourceARN": f"{table.arn}/stream/2026-01-01T00:00:00.000"}


def _create(client: Any, table: PlannedTable) -> None:
    texts = {table.hash_key, table.range_key, *(name for pair in table.indexes.values() for name in pair)}
    arguments: dict[str, Any] = {
        "TableName": table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys(table.hash_key, table.range_key),
        "AttributeDefinitions": [{"AttributeName": text, "AttributeType": "S"} for text in sorted(texts)],
    }
    if table.stream is not None:
        arguments["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": table.stream}
    if table.indexes:
        arguments["GlobalSecondaryIndexes"] = [
            {"IndexName": name, "KeySchema": _keys(*pair), "Projection": {"ProjectionType": "ALL"}}
            for name, pair in table.indexes.items()
        ]
    client.create_table(**arguments)


def _keys(hash_key: str, range_key: str) -> list[dict[str, str]]:
    return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]


class _Handler(DynamoHandler):
    """Moto's answers to one call, without the way there and back by HTTP, which is most of the time it takes."""

    current_account = ACCOUNT

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.region = REGION
        self.body = self.params = msgspec.json.decode(msgspec.json.encode(call.arguments))


def _answered(call: Call) -> Any:
    try:
        answer: ActionResult = getattr(_Handler(call), _SPELLED[call.operation])()
    except JsonRESTError as error:
        refusal = json.loads(str(error.description))
        code = str(refusal.pop("__type")).rpartition("#")[2]
        message = refusal.pop("message", None) or refusal.pop("Message", "")
        raise call.error(code, message, **refusal) from error
    return answer.result


_SPELLED: Final = {
    "BatchGetItem": "batch_get_item",
    "DeleteItem": "delete_item",
    "GetItem": "get_item",
    "PutItem": "put_item",
    "Query": "query",
    "TransactWriteItems": "transact_write_items",
    "UpdateItem": "update_item",
}


# ------------------------------------------------------------------------------------------------- transactions


def _transact(backend: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
    """In place of moto's, which copies every touched table for each write: conditions first, then the writes."""
    actions = [next(iter(one.items())) for one in transact_items]
    places = [(action["TableName"], _key_of(backend, kind, action)) for kind, action in actions]
    if len({(name, str(sorted(key.items()))) for name, key in places}) < len(places):
        raise MultipleTransactionsException()
    errors = [_refusal(backend, action, key) for (_, action), (_, key) in zip(actions, places, strict=True)]
    if any(code is not None for code, _, _ in errors):
        raise TransactionCanceledException(errors)
    undo = [(backend.get_table(name), key, *_snapshot(backend.get_table(name), key)) for name, key in places]
    try:
        for (kind, action), (_, key) in zip(actions, places, strict=True):
            _apply(backend, kind, action, key)
    except Exception:
        for table, key, before, count in reversed(undo):
            _restore(table, key, before, count)
        raise


def _key_of(backend: DynamoDBBackend, kind: str, action: Mapping[str, Any]) -> dict[str, Any]:
    if kind != "Put":
        return dict(action["Key"])
    table = backend.get_table(action["TableName"])
    return {str(name): action["Item"][name] for name in (table.hash_key_attr, table.range_key_attr)}


def _refusal(backend: DynamoDBBackend, action: Mapping[str, Any], key: Mapping[str, Any]) -> Sequence[Any]:
    text = action.get("ConditionExpression")
    if text is None:
        return (None, None, None)
    current = backend.get_item(action["TableName"], dict(key))
    names, values = action.get("ExpressionAttributeNames"), action.get("ExpressionAttributeValues")
    if get_filter_expression(text, names, values).expr(current):
        return (None, None, None)
    shown = action.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and current is not None
    item = current.to_json()["Attributes"] if shown and current is not None else None
    return ("ConditionalCheckFailed", "The conditional request failed", item)


def _apply(backend: DynamoDBBackend, kind: str, action: Mapping[str, Any], key: dict[str, Any]) -> None:
    name = action["TableName"]
    match kind:
        case "Put":
            backend.put_item(name, action["Item"])
        case "Delete":
            backend.delete_item(name, key)
        case "Update":
            table = backend.get_table(name)
            count = _count_of_records(table)
            names, values = action.get("ExpressionAttributeNames"), action.get("ExpressionAttributeValues")
            backend.update_item(name, key, action["UpdateExpression"], names or {}, values or {})
            _forget_bare_insert(table, count)
            after = _stored(table, key)
            check_item(after.to_json()["Attributes"] if after is not None else {}, "TransactWriteItems")


def _stored(table: moto_table.Table, key: Mapping[str, Any]) -> Item | None:
    hash_value = DynamoType(key[table.hash_key_attr])
    range_value = DynamoType(key[str(table.range_key_attr)])
    return table.get_item(hash_value, range_value)


def _count_of_records(table: moto_table.Table) -> int:
    return len(table.stream_shard.items) if table.stream_shard is not None else 0


def _snapshot(table: moto_table.Table, key: Mapping[str, Any]) -> tuple[Item | None, int]:
    return copy.deepcopy(_stored(table, key)), _count_of_records(table)


def _restore(table: moto_table.Table, key: Mapping[str, Any], before: Item | None, count: int) -> None:
    hash_value = DynamoType(key[table.hash_key_attr])
    range_value = DynamoType(key[str(table.range_key_attr)])
    if before is not None:
        table.items[hash_value][range_value] = before
    elif _stored(table, key) is not None:
        table.delete_item(hash_value, range_value)
    if table.stream_shard is not None:
        del table.stream_shard.items[count:]


def _forget_bare_insert(table: moto_table.Table, count: int) -> None:
    """Moto tells twice of an update that creates an item: first of the bare key. AWS tells once."""
    shard = table.stream_shard
    if shard is not None and len(shard.items) == count + 2:
        last = shard.items.pop()
        last.record["dynamodb"]["SequenceNumber"] = shard.items[count].record["dynamodb"]["SequenceNumber"]
        shard.items[count] = last

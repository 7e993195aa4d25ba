"""DynamoDB on moto, with the four tables, and a client that refuses what AWS refuses and moto does not.

Each rule names its source. Without them a commit would pass here and fail in an account.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final
from unittest import mock

import boto3
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.dynamodb.comparisons import OpEqual
from moto.dynamodb.models import table as moto_table

from interlock.aws.dynamodb.attributes import INDEX_PK, INDEX_SK, OWN, decode_item
from interlock.aws.dynamodb.items import INDEX
from interlock.model.keys import Table
from interlock.ports.clock import Clock
from interlock.ports.limits import item_size

REGION: Final = "us-east-1"
TABLES: Final = {table: f"test-interlock-{table}" for table in Table}
STREAMED: Final = (Table.CONTROL, Table.JOBLOG, Table.EVENTS)
# Developer Guide, "Quotas": an item is at most 400 KB, names and values included; documents nest 32 levels deep.
MAX_ITEM: Final = 400 * 1024
MAX_DEPTH: Final = 32
# Developer Guide, "TransactWriteItems": the same request token within ten minutes has the effect of one call.


class StrictDynamo:
    """A boto3 client of moto's DynamoDB that is as strict as AWS, one call at a time (moto is not atomic)."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.RLock()
        self._tokens: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._client, name)

        def locked(**arguments: Any) -> Any:
            with self._lock:
                return act(**arguments)

        return locked

    def put_item(self, **arguments: Any) -> Any:
        with self._lock:
            check_item(arguments["Item"], "PutItem")
            return self._client.put_item(**arguments)

    def update_item(self, **arguments: Any) -> Any:
        with self._lock:
            before = self._stored(arguments)
            answer = self._client.update_item(**arguments)
            self._check_updated(arguments, before, "UpdateItem")
            return answer

    def transact_write_items(self, **arguments: Any) -> Any:
        token = arguments.pop("ClientRequestToken", None)
        with self._lock:
            if token in self._tokens:
                if self._tokens[token] != arguments:
                    raise _error("IdempotentParameterMismatchException", "another request", "TransactWriteItems")
                return {}
            self._check_transaction(arguments["TransactItems"])
            before = [self._stored(next(iter(one.values()))) for one in arguments["TransactItems"] if "Update" in one]
            answer = self._client.transact_write_items(**arguments)
            updates = [one["Update"] for one in arguments["TransactItems"] if "Update" in one]
            for update, old in zip(updates, before, strict=True):
                self._check_updated(update, old, "TransactWriteItems")
            if token:
                self._tokens[token] = arguments
            return answer

    def _check_transaction(self, items: list[dict[str, Any]]) -> None:
        # API Reference, TransactWriteItems: at most 100 actions and 4 MB in all; an Update changes something.
        size = 0
        for one in items:
            ((kind, arguments),) = one.items()
            if kind == "Put":
                size += check_item(arguments["Item"], "TransactWriteItems")
            if kind == "Update" and not arguments.get("UpdateExpression"):
                raise _error("ValidationException", "an Update needs an UpdateExpression", "TransactWriteItems")
        if len(items) > 100 or size > 4 * 1024 * 1024:
            raise _error("ValidationException", "the transaction is too large", "TransactWriteItems")

    def _stored(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        if "Key" not in arguments:
            return None
        found: dict[str, Any] | None = self._client.get_item(
            TableName=arguments["TableName"], Key=arguments["Key"], ConsistentRead=True
        ).get("Item")
        return found

    def _check_updated(self, arguments: Mapping[str, Any], before: dict[str, Any] | None, operation: str) -> None:
        """Put back what was there if the update made an item that AWS would not take."""
        try:
            check_item(self._stored(arguments) or {}, operation)
        except ClientError:
            if before is None:
                self._client.delete_item(TableName=arguments["TableName"], Key=arguments["Key"])
            else:
                self._client.put_item(TableName=arguments["TableName"], Item=before)
            raise


def check_item(item: Mapping[str, Any], operation: str) -> int:
    """Refuse an item that DynamoDB would not take; its size."""
    size = item_size(decode_item(item)) + sum(len(name) + len(item[name]["S"].encode()) for name in OWN & item.keys())
    if size > MAX_ITEM:
        raise _error("ValidationException", "Item size has exceeded the maximum allowed size", operation)
    if _depth(item) > MAX_DEPTH:
        raise _error("ValidationException", "Nesting Levels have exceeded supported limits", operation)
    for attribute in item.values():
        for text in _numbers(attribute):
            # Developer Guide, "Number": up to 38 digits of precision; more is an error, not a rounding.
            digits = text.lstrip("-").replace(".", "").split("e")[0].split("E")[0].strip("0")
            if len(digits) > 38:
                raise _error("ValidationException", "Attempting to store more than 38 significant digits", operation)
    return size


def _depth(item: Mapping[str, Any]) -> int:
    def of(attribute: Mapping[str, Any]) -> int:
        ((kind, value),) = attribute.items()
        inner = value.values() if kind == "M" else value if kind == "L" else None
        return 0 if inner is None else 1 + max(map(of, inner), default=0)

    return 1 + max(map(of, item.values()), default=0)


def _numbers(attribute: Mapping[str, Any]) -> Iterator[str]:
    ((kind, value),) = attribute.items()
    if kind == "N":
        yield value
    elif kind in ("M", "L"):
        for inner in value.values() if kind == "M" else value:
            yield from _numbers(inner)


def _error(code: str, message: str, operation: str) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}},
        operation,
    )


def _typed(value: Any) -> Any:
    """A value in a form in which true is not 1: to Python they are equal, to DynamoDB they are not."""
    if isinstance(value, dict):
        return {name: _typed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    return ("bool", value) if isinstance(value, bool) else value


def strictly_equal(self: OpEqual, item: Any) -> bool:
    """In place of `OpEqual.expr`."""
    return bool(_typed(self.lhs.expr(item)) == _typed(self.rhs.expr(item)))


@contextmanager
def dynamo(clock: Clock) -> Iterator[StrictDynamo]:
    """Moto's DynamoDB with the four tables, empty, whose streams tell that clock's time."""

    def now() -> datetime:
        return clock.now().replace(tzinfo=None)  # moto's times are naive

    with (
        mock_aws(),
        mock.patch.object(OpEqual, "expr", strictly_equal),
        mock.patch.object(moto_table, "utcnow", now),
    ):
        client = session().client("dynamodb")
        for table, name in TABLES.items():
            create_table(client, table, name)
        yield StrictDynamo(client)


@cache
def session() -> Any:
    """A session whose credentials are nobody's. One for all tests: it reads the models of its services once."""
    return boto3.session.Session(aws_access_key_id="nobody", aws_secret_access_key="nothing", region_name=REGION)


def create_table(client: Any, table: Table, name: str) -> None:
    """A table as the Terraform module makes it."""
    texts = ["PK", "SK", *([INDEX_PK, INDEX_SK] if table is Table.EVENTS else [])]
    arguments: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        "AttributeDefinitions": [{"AttributeName": text, "AttributeType": "S"} for text in texts],
    }
    if table in STREAMED:
        arguments["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    if table is Table.EVENTS:
        keys = [{"AttributeName": INDEX_PK, "KeyType": "HASH"}, {"AttributeName": INDEX_SK, "KeyType": "RANGE"}]
        projection = {"ProjectionType": "ALL"}
        arguments["GlobalSecondaryIndexes"] = [{"IndexName": INDEX, "KeySchema": keys, "Projection": projection}]
    client.create_table(**arguments)

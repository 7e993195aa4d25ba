"""How items lie in the four tables: their keys, the registry of pipelines, and the index of events."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.dynamodb import attributes
from interlock.aws.dynamodb.attributes import INDEX_PK, INDEX_SK, PK, SK, Attributes
from interlock.model.keys import Table
from interlock.ports.store import Key

REGISTRY: Final = "REGISTRY"
"""The partition that lists the pipelines with a CONFIG item."""
INDEX: Final = "GSI1"
INDEX_PARTITIONS: Final = 8
"""A type's events are spread: a hot index partition would throttle the commits themselves."""


def key_of(key: Key) -> Attributes:
    """A key as its attributes."""
    return {PK: {"S": key.pk}, SK: {"S": key.sk}}


def item_of(key: Key, item: Mapping[str, Any]) -> Attributes:
    """An item with its key and, for an event, its place in the index."""
    full = {**key_of(key), **attributes.encode_item(item)}
    type_ = item.get("type")
    place = index_sk(key) if key.table is Table.EVENTS else None
    if place is not None and isinstance(type_, str):
        shard = sum(key.sk.encode()) % INDEX_PARTITIONS
        full[INDEX_PK] = {"S": index_pk(type_, shard)}
        full[INDEX_SK] = {"S": place}
    return full


def index_sk(key: Key) -> str | None:
    """An event's place in the index; None where its sort key does not begin with a time."""
    millis, _, rest = key.sk.partition("#")
    return f"{int(millis):016d}#{rest}#{key.pk}" if millis.isdigit() else None


def index_pk(type_: str, shard: int) -> str:
    """The partition of the index for a type and a shard."""
    return f"{type_}#{shard}"


def expired(raw: Attributes, seconds: int) -> bool:
    """Has its time to live passed? DynamoDB removes it up to two days later."""
    ttl = raw.get("ttl", {}).get("N")
    return ttl is not None and float(ttl) <= seconds

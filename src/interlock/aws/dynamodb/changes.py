"""Records of a DynamoDB stream as changes of the store port."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from interlock.aws.dynamodb.attributes import PK, SK, decode_item
from interlock.model.errors import StoreError
from interlock.model.keys import Table
from interlock.ports.store import Change


def change_of(record: Mapping[str, Any], table: Table) -> Change:
    """A stream record, as Lambda or the streams API gives it; one that is no record of ours names its key."""
    try:
        change = record["dynamodb"]
        key = change["Keys"]
        image = change.get("NewImage")
        return Change(
            seq=int(change["SequenceNumber"]),
            table=table,
            pk=key[PK]["S"],
            sk=key[SK]["S"],
            at=_millis(change["ApproximateCreationDateTime"]),
            item=None if record["eventName"] == "REMOVE" or image is None else decode_item(image),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        keys = record.get("dynamodb", {}).get("Keys") if isinstance(record.get("dynamodb"), Mapping) else None
        raise StoreError(f"a record of the {table} stream is not ours: {keys}: {error!r}") from error


def _millis(stamp: Any) -> int:
    """Lambda gives whole seconds as a number, the streams API a datetime."""
    return int((stamp.timestamp() if isinstance(stamp, datetime) else float(stamp)) * 1000)

"""What both feeds share: records of an hour are kept once in bronze, and whoever waits for the hour is told.

An hour is one object of JSON lines, `bronze/FEED/date=2026-03-02/hour=10/records.jsonl`. Landing is repeatable: records
are merged by their id, so that a feed that is read again, or late, adds what is new and nothing else. When an hour is
over, its `hourly-status` says how many rows it has. A later reading that finds more says so again: that is drift.
"""

import json
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

Record = dict[str, Any]

KEPT = timedelta(days=14)
LARGEST = 20_000_000


def fetch(url: str, timeout: float = 20) -> Any:
    """The JSON of a feed."""
    request = urllib.request.Request(url, headers={"User-Agent": "interlock-medallion-example"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        body = answer.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise ValueError(f"{url} answers with more than {LARGEST} bytes")
    return json.loads(body)


def land(
    s3: Any, dynamodb: Any, *, bucket: str, table: str, feed: str, records: Iterable[Record], now: datetime
) -> dict[str, int]:
    """Keep records under their hours, and tell of every hour that is over. What was landed, by hour."""
    hours: dict[datetime, list[Record]] = {}
    for record in records:
        hours.setdefault(hour_of(record["time"]), []).append(record)
    # The hour before is over since the last reading, though nothing of it may have come now.
    hours.setdefault(now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1), [])
    landed: dict[str, int] = {}
    for hour, found in sorted(hours.items()):
        rows = _merge(s3, bucket, f"bronze/{feed}/{partition(hour)}/records.jsonl", found)
        landed[f"{hour:%Y-%m-%dT%H}"] = rows
        if hour + timedelta(hours=1) <= now and rows:
            _tell(dynamodb, table, f"{feed}-silver", hour, rows, now)
    return landed


def hour_of(time: str) -> datetime:
    """The hour of an instant such as 2026-03-02T10:20:30Z."""
    at = datetime.fromisoformat(time.replace("Z", "+00:00")).astimezone(UTC)
    return at.replace(minute=0, second=0, microsecond=0)


def partition(hour: datetime) -> str:
    """Where an hour lies: `date=2026-03-02/hour=10`."""
    return f"date={hour:%Y-%m-%d}/hour={hour:%H}"


def _merge(s3: Any, bucket: str, key: str, records: list[Record]) -> int:
    """Add records to an object by their id; how many it has then. Only one reader of a feed runs at a time."""
    known: dict[str, Record] = {}
    with suppress(s3.exceptions.NoSuchKey):
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        known = {record["id"]: record for record in map(json.loads, body.splitlines())}
    merged = known | {record["id"]: record for record in records}
    if merged != known:
        lines = "".join(json.dumps(record, sort_keys=True) + "\n" for _, record in sorted(merged.items()))
        s3.put_object(Bucket=bucket, Key=key, Body=lines.encode(), ContentType="application/x-ndjson")
    return len(merged)


def _tell(dynamodb: Any, table: str, pipeline: str, hour: datetime, rows: int, now: datetime) -> None:
    """Write the sensor of an hour, straight into the control table."""
    dynamodb.put_item(
        TableName=table,
        Item={
            "PK": {"S": f"PIPELINE#{pipeline}"},
            "SK": {"S": f"SENSOR#hourly-status#{hour:%Y%m%dT%H}"},
            "status": {"S": "landed"},
            "rows": {"N": str(rows)},
            "ttl": {"N": str(int((now + KEPT).timestamp()))},
        },
    )

"""Event source mappings: what a stream or a queue has, in batches to a function, again until it was taken.

Sources: Lambda Developer Guide, "Process DynamoDB records with Lambda" (order per item with a parallelization factor,
bisecting, partial failures by the lowest sequence number, age and retries, on-failure destination), and "Using Lambda
with Amazon SQS" (partial failures, the visibility time-out of what was not taken). Step by step, on virtual time; how
long Lambda waits before it tries a failed batch again is not documented, here it doubles from a second to a minute.
"""

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from interlock.model.keys import Table
from interlock.ports.clock import Clock
from tests.aws.patterns import check_stream_filter, matches
from tests.aws.world.functions import Answer, Functions
from tests.aws.world.plan import PlannedMapping, PlannedTable
from tests.aws.world.queues import Queues
from tests.aws.world.tables import Tables, wire

_LONGEST_PAUSE: Final = timedelta(minutes=1)
Record = dict[str, Any]
Arrange = Callable[[list[Record]], list[Record]]
"""What a test makes of the records that a stream just gave: more than once, or others first."""
GiveUp = Callable[[str, str], None]
"""Put a message into a queue."""


@dataclass(slots=True)
class _Batch:
    """Records that are delivered together. `size`: how many it may have; halved when a batch fails as a whole."""

    records: list[Record]
    tries: int = 0
    not_before: datetime | None = None


@dataclass(slots=True)
class _Lane:
    """The records of some items, in their order; the batch at its head blocks the rest."""

    waiting: deque[Record] = field(default_factory=deque)
    current: list[_Batch] = field(default_factory=list)


class StreamPump:
    """The mapping of one table's stream."""

    def __init__(
        self,
        mapping: PlannedMapping,
        table: Table,
        planned: PlannedTable,
        *,
        tables: Tables,
        functions: Functions,
        clock: Clock,
        give_up: GiveUp,
    ) -> None:
        for pattern in mapping.filters:
            check_stream_filter(pattern)
        self.mapping = mapping
        self._table = table
        self._planned = planned
        self._tables = tables
        self._functions = functions
        self._clock = clock
        self._give_up = give_up
        self._position = 0
        self._lanes = [_Lane() for _ in range(mapping.parallel)]
        self.arrange: Arrange = lambda records: records
        self.held = False
        """While true the stream is behind: nothing is delivered."""
        self.dropped = 0
        """How many records the filters dropped."""

    def pump(self) -> int:
        """Deliver what is there, lane by lane; how many records were taken from the stream or delivered."""
        if self.held:
            return 0
        moved = self._take()
        for lane in self._lanes:
            moved += self._deliver(lane)
        return moved

    def lag(self) -> int:
        """How many records were not delivered yet."""
        left = len(self._tables.records(self._table, self._position))
        return left + sum(len(lane.waiting) + sum(len(one.records) for one in lane.current) for lane in self._lanes)

    def next_at(self) -> datetime | None:
        """When a failed batch is tried again."""
        heads = (lane.current[0].not_before for lane in self._lanes if lane.current)
        return min((at for at in heads if at is not None), default=None)

    def _take(self) -> int:
        found = self._tables.records(self._table, self._position)
        self._position += len(found)
        for record in self.arrange([wire(one, self._planned) for one in found]):
            if self.mapping.filters and not any(matches(pattern, record) for pattern in self.mapping.filters):
                self.dropped += 1
                continue
            item = json.dumps(record["dynamodb"]["Keys"], sort_keys=True)
            self._lanes[zlib.crc32(item.encode()) % len(self._lanes)].waiting.append(record)
        return len(found)

    def _deliver(self, lane: _Lane) -> int:
        moved = 0
        while lane.current or lane.waiting:
            if not lane.current:
                size = min(self.mapping.batch_size, len(lane.waiting))
                lane.current.append(_Batch([lane.waiting.popleft() for _ in range(size)]))
            batch = lane.current[0]
            if batch.not_before is not None and batch.not_before > self._clock.now():
                break
            lane.current.pop(0)
            moved += len(batch.records)
            lane.current[:0] = self._delivered(batch)
        return moved

    def _delivered(self, batch: _Batch) -> list[_Batch]:
        """Invoke with a batch; what is left to deliver of it."""
        answer = self._functions.invoke(self.mapping.function, json.dumps({"Records": batch.records}))
        left = _not_taken(batch.records, answer, reports=self.mapping.reports_failures)
        if not left:
            return []
        tries = batch.tries + 1
        kept = [record for record in left if not self._too_old(record)]
        self._given_up([record for record in left if record not in kept], "RecordAgeExceeded")
        retries = self.mapping.max_retries
        if retries is not None and tries > retries:
            self._given_up(kept, "RetryAttemptsExhausted")
            return []
        if not kept:
            return []
        pause = min(timedelta(seconds=2 ** min(tries - 1, 10)), _LONGEST_PAUSE)
        at = self._clock.now() + pause
        if answer.error is not None and self.mapping.bisect and len(kept) > 1:
            half = len(kept) // 2
            return [_Batch(kept[:half], tries, at), _Batch(kept[half:], tries, at)]
        return [_Batch(kept, tries, at)]

    def _too_old(self, record: Record) -> bool:
        age = self._clock.now().timestamp() - record["dynamodb"]["ApproximateCreationDateTime"]
        return self.mapping.max_age is not None and age > self.mapping.max_age.total_seconds()

    def _given_up(self, records: list[Record], condition: str) -> None:
        """The mapping's own message: which records they were, and not one of them."""
        if records and self.mapping.on_failure is not None:
            numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
            info = {"startSequenceNumber": numbers[0], "endSequenceNumber": numbers[-1], "batchSize": len(records)}
            body = {"requestContext": {"condition": condition}, "version": "1.0", "DDBStreamBatchInfo": info}
            self._give_up(self.mapping.on_failure, json.dumps(body))


def _not_taken(records: list[Record], answer: Answer, *, reports: bool) -> list[Record]:
    """Everything after a failure, and from the lowest failed sequence number on."""
    if answer.error is not None:
        return records
    if not reports:
        return []
    failed = _failures(answer)
    known = {record["dynamodb"]["SequenceNumber"] for record in records}
    if failed - known:
        # "Reporting batch item failures": an identifier that is not of the batch makes the whole batch a failure.
        return records
    first = next((i for i, record in enumerate(records) if record["dynamodb"]["SequenceNumber"] in failed), None)
    return [] if first is None else records[first:]


def _failures(answer: Answer) -> set[str]:
    failures: Iterable[Any] = (answer.payload or {}).get("batchItemFailures") or []
    return {one["itemIdentifier"] for one in failures}


class QueuePump:
    """The mapping of one queue."""

    def __init__(
        self,
        mapping: PlannedMapping,
        url: str,
        arn: str,
        *,
        client: Any,
        queues: Queues,
        functions: Functions,
        region: str,
    ) -> None:
        self.mapping = mapping
        self._url = url
        self._arn = arn
        self._client = client
        self._queues = queues
        self._functions = functions
        self._region = region
        self.twice = False
        """While true each batch is delivered twice, as a standard queue may do."""

    def pump(self) -> int:
        """Deliver what is visible; how many messages."""
        moved = 0
        while self._queues.has_visible(self.mapping.source) and (messages := self._receive()):
            moved += len(messages)
            self._deliver(messages)
        return moved

    def _receive(self) -> list[dict[str, Any]]:
        answer = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=min(self.mapping.batch_size, 10),
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
        )
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

    def _deliver(self, messages: list[dict[str, Any]]) -> None:
        records = [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message.get("Attributes", {}),
                "messageAttributes": message.get("MessageAttributes", {}),
                "eventSource": "aws:sqs",
                "eventSourceARN": self._arn,
                "awsRegion": self._region,
            }
            for message in messages
        ]
        if self.twice:
            self._functions.invoke(self.mapping.function, json.dumps({"Records": records}))
        answer = self._functions.invoke(self.mapping.function, json.dumps({"Records": records}))
        ids = {message["MessageId"] for message in messages}
        failed = ids if answer.error is not None else _failures(answer) if self.mapping.reports_failures else set()
        if failed - ids:
            failed = ids
        for message in messages:
            if message["MessageId"] not in failed:
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])

"""The world's own mappings and filters: order, partial failures, bisecting, dead letters, visibility."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from interlock.model.keys import Table
from tests.aws.patterns import PatternError, check_stream_filter, matches
from tests.aws.world.cloud import Cloud, client
from tests.aws.world.plan import queue_url
from tests.aws.world.terraform import shipped
from tests.conformance.manual_clock import ManualClock

ROUTER = "test-interlock-stream-router"
Event = dict[str, Any]


class Stage:
    """A cloud whose stream-router does as a test says."""

    def __init__(self, cloud: Cloud, clock: ManualClock) -> None:
        self.cloud = cloud
        self.clock = clock
        self.batches: list[list[str]] = []
        self.failing: set[str] = set()
        self.raising: set[str] = set()
        cloud.functions.replace(ROUTER, self.handler)

    def handler(self, event: Event, context: Any) -> Any:
        keys = [_name(record) for record in event["Records"]]
        self.batches.append(keys)
        if self.raising & set(keys):
            raise RuntimeError("no")
        bad = [_id(record) for record in event["Records"] if _name(record) in self.failing]
        return {"batchItemFailures": [{"itemIdentifier": one} for one in bad]}

    def write(self, *names: str) -> None:
        table = self.cloud.plan.tables[Table.CONTROL].name
        for name in names:
            item = {"PK": {"S": "PIPELINE#orders"}, "SK": {"S": f"SENSOR#{name}"}}
            client("dynamodb").put_item(TableName=table, Item=item)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)
        self.cloud.pump_streams()
        self.cloud.pump_timers()

    def seen(self) -> list[str]:
        return [name for batch in self.batches for name in batch]


def _name(record: Event) -> str:
    if "body" in record:
        return str(record["body"])
    return str(record["dynamodb"]["Keys"]["SK"]["S"]).removeprefix("SENSOR#")


def _id(record: Event) -> str:
    return str(record.get("messageId") or record["dynamodb"]["SequenceNumber"])


@pytest.fixture
def stage() -> Iterator[Stage]:
    clock = ManualClock()
    cloud = Cloud(shipped(), clock, lambda modules, function: None)
    with cloud.running():
        yield Stage(cloud, clock)


def test_records_come_in_batches_of_ten_each_once(stage: Stage) -> None:
    stage.write(*(f"s{number}" for number in range(60)))
    stage.cloud.pump_streams()

    assert sorted(stage.seen()) == sorted(f"s{number}" for number in range(60))
    assert max(len(batch) for batch in stage.batches) == 10


def test_writes_to_one_item_keep_their_order(stage: Stage) -> None:
    seen: list[str] = []
    stage.cloud.functions.replace(
        ROUTER, lambda event, context: seen.extend(one["dynamodb"]["SequenceNumber"] for one in event["Records"])
    )
    stage.write("a", "a", "a")
    stage.cloud.pump_streams()

    assert seen == sorted(seen, key=int)
    assert len(seen) == 3


def test_filters_drop_what_nobody_routes(stage: Stage) -> None:
    table = stage.cloud.plan.tables[Table.CONTROL].name
    client("dynamodb").put_item(TableName=table, Item={"PK": {"S": "PIPELINE#x"}, "SK": {"S": "ACTIVE#x"}})
    stage.cloud.pump_streams()

    assert stage.batches == []
    assert stage.cloud.stream_of(Table.CONTROL).dropped == 1


def test_a_record_that_is_reported_comes_again_with_all_behind_it(stage: Stage) -> None:
    stage.failing = {"a"}
    stage.write("a", "a")
    stage.cloud.pump_streams()
    assert stage.seen() == ["a", "a"]
    assert stage.cloud.streams[0].lag() + stage.cloud.streams[1].lag() + stage.cloud.streams[2].lag() == 2

    stage.failing = set()
    stage.later(1)
    assert stage.seen() == ["a", "a", "a", "a"]


def test_a_batch_that_fails_is_halved_and_old_records_are_given_up(stage: Stage) -> None:
    stage.raising = {"a"}
    stage.write("a", "a", "a", "a")
    stage.cloud.pump_streams()
    stage.later(1)
    assert [len(batch) for batch in stage.batches] == [4, 2]

    stage.later(timedelta(hours=24).total_seconds())
    for _ in range(8):
        stage.later(timedelta(minutes=2).total_seconds())
    letters = [json.loads(body) for body in stage.cloud.queues.bodies("test-interlock-control-dlq")]
    assert sum(one["DDBStreamBatchInfo"]["batchSize"] for one in letters) == 4
    assert {one["requestContext"]["condition"] for one in letters} == {"RecordAgeExceeded"}


def test_a_message_comes_again_after_its_visibility_and_is_a_dead_letter_in_the_end(stage: Stage) -> None:
    often = next(one.max_receives for one in stage.cloud.plan.queues if one.name == "test-interlock-timers")
    stage.failing = {"x"}
    client("sqs").send_message(QueueUrl=queue_url("test-interlock-timers"), MessageBody="x", DelaySeconds=60)
    stage.cloud.pump_timers()
    assert stage.batches == []

    for _ in range(often + 1):
        stage.later(361)
    assert stage.batches == [["x"]] * often
    assert stage.cloud.queues.bodies("test-interlock-timers-dlq") == ["x"]


@pytest.mark.parametrize(
    ("pattern", "event", "expected"),
    [
        ({"a": ["x"]}, {"a": "x"}, True),
        ({"a": ["x"]}, {"a": "y"}, False),
        ({"a": [{"prefix": "x"}]}, {"a": "xy"}, True),
        ({"a": [{"suffix": "x"}]}, {"a": "xy"}, False),
        ({"a": [{"anything-but": ["x", "y"]}]}, {"a": "z"}, True),
        ({"a": [{"anything-but": {"prefix": "x"}}]}, {"a": "xy"}, False),
        ({"a": [{"anything-but": ["x"]}]}, {}, False),
        ({"a": [{"exists": False}]}, {}, True),
        ({"a": [{"exists": False}]}, {"a": {"b": 1}}, True),  # leaves only
        ({"a": [{"exists": True}]}, {"a": {"b": 1}}, False),
        ({"a": {"b": [{"numeric": [">", 1, "<=", 5]}]}}, {"a": {"b": 5}}, True),
        ({"a": [1]}, {"a": True}, False),
        ({"a": [{"wildcard": "x*z"}]}, {"a": "xyz"}, True),
        ({"$or": [{"a": ["x"]}, {"b": ["y"]}]}, {"b": "y"}, True),
        ({"a": ["x"]}, {"a": ["w", "x"]}, True),
    ],
)
def test_patterns(pattern: Event, event: Event, expected: bool) -> None:
    assert matches(pattern, event) is expected


def test_what_a_pattern_cannot_mean_is_refused() -> None:
    with pytest.raises(PatternError, match="cidr"):
        matches({"a": [{"cidr": "10.0.0.0/8"}]}, {"a": "10.0.0.1"})
    with pytest.raises(PatternError, match="strings"):
        check_stream_filter({"dynamodb": {"NewImage": {"n": {"N": [{"numeric": [">", 1]}]}}}})

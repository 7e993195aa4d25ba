"""DynamoStore: the conformance suite on moto, and what is DynamoDB's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings

from interlock.aws.dynamodb.changes import change_of
from interlock.aws.dynamodb.store import DynamoStore
from interlock.ports.store import Change, Store, Write
from tests.aws.dynamo import STREAMED, TABLES, dynamo, session
from tests.conformance.manual_clock import ManualClock
from tests.conformance.store_model import COMMITS
from tests.conformance.store_suite import StoreSuite


class TestOnMoto(StoreSuite):
    @contextmanager
    def open_store(self, clock: ManualClock) -> Iterator[Store]:
        with dynamo(clock) as client:
            yield DynamoStore(client, TABLES, clock, pause=lambda _: None)

    @settings(suppress_health_check=list(HealthCheck), max_examples=6, deadline=None)
    @given(commits=COMMITS)
    def test_random_commits_do_what_a_dict_does(self, commits: list[list[Write]]) -> None:
        """Fewer than elsewhere: moto is slow."""
        self.play(commits)

    def changes(self, store: Store) -> list[Change]:
        return [change_of(record, table) for table in STREAMED for record in stream_records(TABLES[table])]


def stream_records(table: str) -> list[dict[str, Any]]:
    """Everything a table's stream has handed on so far."""
    streams, tables = session().client("dynamodbstreams"), session().client("dynamodb")
    arn = tables.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    found: list[dict[str, Any]] = []
    for shard in shards:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found += streams.get_records(ShardIterator=iterator)["Records"]
    return [record for record, following in pairwise([*found, {}]) if not _inserted_again(record, following)]


def _inserted_again(record: dict[str, Any], following: dict[str, Any]) -> bool:
    """Moto inserts twice when an update within a transaction creates an item; AWS does not."""
    both = record["eventName"] == following.get("eventName") == "INSERT"
    return both and bool(record["dynamodb"]["Keys"] == following["dynamodb"]["Keys"])

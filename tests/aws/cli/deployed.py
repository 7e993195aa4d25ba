"""An environment as the Terraform module would leave it, on moto, with its functions in this process.

The functions are the shipped handlers. They are called where AWS would call them: by name (`lambda:InvokeFunction`),
and for what the streams bring whenever `pump` is called, which the commands' own pauses do.
"""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import boto3
import botocore.client
from moto import mock_aws
from moto.dynamodb.comparisons import OpEqual

from interlock.aws.clients import Clients
from interlock.aws.controller import Controller
from interlock.aws.lambdas import event_sink, orchestrator, sla_monitor, stream_router, watchdog
from interlock.aws.names import Function, Names, Queue
from interlock.aws.operations.lifecycle import shipped_definition
from interlock.aws.settings import read_settings
from interlock.embedded.clock import SystemClock
from interlock.model.keys import Table
from tests.aws.dynamo import REGION, STREAMED, create_table, strictly_equal

ACCOUNT: Final = "123456789012"
NAMES: Final = Names("test", REGION, ACCOUNT)
ADDRESS: Final = f"aws://test?region={REGION}"
_HANDLES: Final = {
    Function.STREAM_ROUTER: stream_router.handle,
    Function.ORCHESTRATOR: orchestrator.handle,
    Function.SLA_MONITOR: sla_monitor.handle,
    Function.WATCHDOG: watchdog.handle,
    Function.EVENT_SINK: event_sink.handle,
}
_original = botocore.client.BaseClient._make_api_call


class Deployed:
    """What a test does to the environment, and sees of it."""

    def __init__(self) -> None:
        self.names = NAMES
        self.clients: dict[str, Any] = {}
        self.denied: set[str] = set()
        """Actions that the caller has no right to: `dynamodb:Query`."""
        self.answers: dict[str, Any] = {}
        """What a service says where moto says nothing."""
        self.failing: dict[Function, Exception] = {}
        self.called: list[str] = []
        self.pumping = True
        self._positions: dict[Table, str | None] = {}

    def client(self, service: str) -> Any:
        """A client of a service, of the functions' own."""
        if service not in self.clients:
            self.clients[service] = boto3.client(service, region_name=REGION)
        return self.clients[service]

    @property
    def controller(self) -> Controller:
        """What the functions are wired to."""
        settings = read_settings({**self.names.variables, "LOG_LEVEL": "ERROR"})
        return Controller(settings, Clients(self.client), SystemClock())

    def url(self, queue: Queue) -> str:
        """The address of a queue."""
        return self.names.queue_url(queue)

    def bodies(self, queue: Queue) -> list[Any]:
        """What is in a queue; takes it out."""
        found = []
        while (
            got := self.client("sqs").receive_message(QueueUrl=self.url(queue), MaxNumberOfMessages=10).get("Messages")
        ):
            for one in got:
                found.append(json.loads(one["Body"]))
                self.client("sqs").delete_message(QueueUrl=self.url(queue), ReceiptHandle=one["ReceiptHandle"])
        return found

    def bury(self, queue: Queue, body: Any, **more: Any) -> None:
        """Put something into a queue."""
        self.client("sqs").send_message(QueueUrl=self.url(queue), MessageBody=json.dumps(body), **more)

    def depth(self, queue: Queue) -> int:
        """How many messages are in a queue."""
        found = self.client("sqs").get_queue_attributes(QueueUrl=self.url(queue), AttributeNames=["All"])["Attributes"]
        return sum(int(found[name]) for name in found if name.startswith("ApproximateNumberOfMessages"))

    # -------------------------------------------------------------------------------------------- the functions

    def invoke(self, function: Function, event: Any) -> dict[str, Any]:
        """Call a function as Lambda would, and answer as Lambda would."""
        self.called.append(function.value)
        try:
            if function in self.failing:
                raise self.failing[function]
            said = _HANDLES[function](self.controller, event)
        except Exception as error:  # noqa: BLE001 - that is what Lambda makes of it
            failure = {"errorType": type(error).__name__, "errorMessage": str(error)}
            return {
                "StatusCode": 200,
                "FunctionError": "Unhandled",
                "Payload": io.BytesIO(json.dumps(failure).encode()),
            }
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(said).encode())}

    def pump(self) -> int:
        """Bring what was written since the last time to the functions that read the streams; how many records."""
        if not self.pumping:
            return 0
        count = 0
        while found := sum(self._pump(table) for table in STREAMED):
            count += found
        return count

    def end_executions(self) -> None:
        """Stop every execution, as nothing runs the state machine here: what it would decide is decided without it."""
        client = self.client("stepfunctions")
        found = client.list_executions(stateMachineArn=self.names.state_machine_arn, statusFilter="RUNNING")
        for one in found["executions"]:
            client.stop_execution(executionArn=one["executionArn"])

    def forget(self) -> None:
        """A day and more have passed: what the streams held was never read."""
        for table in STREAMED:
            self._read(table)

    def _pump(self, table: Table) -> int:
        records = self._read(table)
        if not records:
            return 0
        function = Function.EVENT_SINK if table is Table.EVENTS else Function.STREAM_ROUTER
        answer = self.invoke(function, {"Records": records})
        assert "FunctionError" not in answer, answer["Payload"].read()
        return len(records)

    def _read(self, table: Table) -> list[dict[str, Any]]:
        """What came into a stream since the last time."""
        client = self.client("dynamodbstreams")
        arn = self.client("dynamodb").describe_table(TableName=self.names.tables[table])["Table"]["LatestStreamArn"]
        shard = client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        position = self._positions.get(table)
        begin = {"SequenceNumber": position} if position else {}
        kind = "AFTER_SEQUENCE_NUMBER" if position else "TRIM_HORIZON"
        iterator = client.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType=kind, **begin)
        records = client.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
        if records:
            self._positions[table] = records[-1]["dynamodb"]["SequenceNumber"]
        return [{**one, "eventSourceARN": arn, "eventSource": "aws:dynamodb"} for one in records]


def _create(deployed: Deployed) -> None:
    for table in Table:
        create_table(deployed.client("dynamodb"), table, deployed.names.tables[table])
    for queue in Queue:
        fifo = {"FifoQueue": "true"} if queue.endswith(".fifo") else {}
        deployed.client("sqs").create_queue(QueueName=deployed.names.queue(queue), Attributes=fifo)
    deployed.client("events").create_event_bus(Name=deployed.names.bus)
    deployed.client("scheduler").create_schedule_group(Name=deployed.names.timer_group)
    definition = json.dumps(shipped_definition(deployed.names)).replace(
        '"TimeoutSeconds": -1', '"TimeoutSeconds": 14400'
    )
    deployed.client("stepfunctions").create_state_machine(
        name=deployed.names.state_machine,
        definition=definition.replace('"MaxAttempts": -1', '"MaxAttempts": 3'),
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/test-interlock-machine",
    )


@contextmanager
def deployed() -> Iterator[Deployed]:
    """The environment `test`, empty."""
    found = Deployed()
    with (
        mock_aws(),
        mock.patch.object(OpEqual, "expr", strictly_equal),
        _calls(found),
    ):
        _create(found)
        yield found


@contextmanager
def _calls(found: Deployed) -> Iterator[None]:
    """Refuses what the caller has no right to, and has Invoke reach the functions."""

    def call(self: Any, operation: str, arguments: dict[str, Any]) -> Any:
        service = self.meta.service_model.service_name
        own = found.clients.get(service) is self
        if not own and f"{service}:{operation}" in found.denied:
            said = f"User: arn:aws:iam::{ACCOUNT}:user/me is not authorized to perform: {service}:{operation}"
            response = {"Error": {"Code": "AccessDeniedException", "Message": said}}
            raise botocore.exceptions.ClientError(response, operation)
        if f"{service}:{operation}" in found.answers:
            return found.answers[f"{service}:{operation}"]
        if (service, operation) == ("lambda", "Invoke"):
            name = arguments["FunctionName"].removeprefix(f"{found.names.prefix}-")
            return found.invoke(Function(name), json.loads(arguments["Payload"]))
        return _original(self, operation, arguments)

    with mock.patch.object(botocore.client.BaseClient, "_make_api_call", call):
        yield


def pausing(found: Deployed) -> Callable[[float], None]:
    """In place of the commands' pauses: the functions work meanwhile, and no time is lost."""

    def pause(seconds: float) -> None:
        found.pump()

    return pause

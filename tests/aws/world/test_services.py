"""The world's own services: what they do, and that they refuse what AWS refuses."""

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError, ParamValidationError
from moto.dynamodb.models import table as moto_table

from interlock.model.keys import Table
from tests.aws.world.bus import transformed
from tests.aws.world.cloud import Cloud, client
from tests.aws.world.functions import FunctionKilled
from tests.aws.world.machine import MAX_HISTORY
from tests.aws.world.plan import PlannedTarget, queue_url
from tests.aws.world.rights import Need, allowed, unused
from tests.aws.world.tables import whole_query
from tests.aws.world.terraform import shipped
from tests.conformance.manual_clock import ManualClock

ORCHESTRATOR = "test-interlock-orchestrator"
INPUT = {"pipeline": "p", "schedule": "s", "date": "d", "attempt": 1, "attemptText": "1", "sla": False}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cloud(clock: ManualClock) -> Iterator[Cloud]:
    found = Cloud(shipped(), clock, lambda modules, function: None)
    with found.running():
        yield found


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


# ----------------------------------------------------------------------------------------------------- DynamoDB


def _put(cloud: Cloud, **item: Any) -> None:
    name = cloud.plan.tables[Table.CONTROL].name
    client("dynamodb").put_item(TableName=name, Item={"PK": {"S": "p"}, "SK": {"S": "s"}, **item})


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"M": {"a": value}}
    return value


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 50])
@pytest.mark.parametrize("condition", ["", " AND begins_with(SK, :b)", " AND SK BETWEEN :b AND :d", " AND SK > :b"])
def test_a_narrowed_query_gives_the_pages_of_the_whole_one(
    cloud: Cloud, condition: str, limit: int, forward: bool
) -> None:
    for name in ("a", "b", "b#1", "b#2", "c", "d"):
        _put(cloud, SK={"S": name})
        _put(cloud, PK={"S": "another"}, SK={"S": name})
    values = {":pk": {"S": "p"}, ":b": {"S": "b"}, ":d": {"S": "d"}}
    asked: dict[str, Any] = {
        "TableName": cloud.plan.tables[Table.CONTROL].name,
        "KeyConditionExpression": f"PK = :pk{condition}",
        "ExpressionAttributeValues": {name: value for name, value in values.items() if name in f":pk{condition}"},
        "Limit": limit,
        "ScanIndexForward": forward,
    }
    narrowed = _pages(asked)
    with mock.patch.object(moto_table.Table, "query", whole_query):
        assert _pages(asked) == narrowed
    assert any(narrowed)


def _pages(asked: dict[str, Any]) -> list[list[str]]:
    """The sort keys of each page."""
    found, start = list[list[str]](), None
    while True:
        answer = client("dynamodb").query(**asked, **({"ExclusiveStartKey": start} if start else {}))
        found.append([item["SK"]["S"] for item in answer["Items"]])
        start = answer.get("LastEvaluatedKey")
        if not start:
            return found


@pytest.mark.parametrize(
    "item", [{"v": {"S": "x" * 410_000}}, {"v": _nested(32)}, {"v": {"N": "1" * 39}}], ids=["large", "deep", "long"]
)
def test_items_that_dynamodb_refuses(cloud: Cloud, item: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as error:
        _put(cloud, **item)
    assert code_of(error) == "ValidationException"


def test_an_update_that_makes_an_item_too_large_leaves_it_as_it_was(cloud: Cloud) -> None:
    _put(cloud, a={"S": "x" * 300_000})
    name = cloud.plan.tables[Table.CONTROL].name
    before = len(cloud.tables.records(Table.CONTROL, 0))
    place = {"TableName": name, "Key": {"PK": {"S": "p"}, "SK": {"S": "s"}}}

    change = {"UpdateExpression": "SET b = :b", "ExpressionAttributeValues": {":b": {"S": "x" * 200_000}}}
    with pytest.raises(ClientError):
        client("dynamodb").update_item(**place, **change)
    with pytest.raises(ClientError):
        client("dynamodb").transact_write_items(TransactItems=[{"Update": {**place, **change}}])

    assert "b" not in client("dynamodb").get_item(**place)["Item"]
    assert len(cloud.tables.records(Table.CONTROL, 0)) == before


def test_a_request_token_counts_once_and_for_one_request(cloud: Cloud, clock: ManualClock) -> None:
    name = cloud.plan.tables[Table.CONTROL].name

    def write(value: str) -> None:
        item = {"PK": {"S": "p"}, "SK": {"S": "s"}, "v": {"S": value}}
        put = {"TableName": name, "Item": item, "ConditionExpression": "attribute_not_exists(PK)"}
        client("dynamodb").transact_write_items(TransactItems=[{"Put": put}], ClientRequestToken="once")

    write("a")
    write("a")
    with pytest.raises(ClientError) as error:
        write("b")
    assert code_of(error) == "IdempotentParameterMismatchException"
    clock.advance(minutes=11)
    with pytest.raises(ClientError) as error:
        write("a")
    assert code_of(error) == "TransactionCanceledException"


# --------------------------------------------------------------------------------------------- SQS, Scheduler, bus


def test_delays_and_fifo_groups_are_checked(cloud: Cloud) -> None:
    sqs = client("sqs")
    for arguments in (
        {"QueueUrl": queue_url("test-interlock-timers"), "MessageBody": "x", "DelaySeconds": 901},
        {"QueueUrl": queue_url("test-interlock-alerts.fifo"), "MessageBody": "x"},
        {
            "QueueUrl": queue_url("test-interlock-alerts.fifo"),
            "MessageBody": "x",
            "MessageGroupId": "g",
            "DelaySeconds": 1,
        },
    ):
        with pytest.raises(ClientError):
            sqs.send_message(**arguments)


def test_a_schedule_fires_on_the_minute_into_its_queue(cloud: Cloud, clock: ManualClock) -> None:
    seen: list[str] = []
    cloud.functions.replace(
        "test-interlock-stream-router", lambda event, context: seen.extend(one["body"] for one in event["Records"])
    )
    at = clock.now() + timedelta(minutes=20, seconds=7)
    entry = {
        "Name": "t",
        "GroupName": "test-interlock-timers",
        "ScheduleExpression": f"at({at:%Y-%m-%dT%H:%M:%S})",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {
            "Arn": "arn:aws:sqs:us-east-1:123456789012:test-interlock-timers",
            "RoleArn": "arn:aws:iam::123456789012:role/x",
            "Input": "hello",
        },
    }
    client("scheduler").create_schedule(**entry)
    assert cloud.next_at() == clock.now() + timedelta(minutes=21)

    clock.advance(minutes=20, seconds=59)
    cloud.pump_timers()
    assert seen == []
    clock.advance(seconds=1)
    cloud.pump_timers()
    assert seen == ["hello"]
    assert cloud.next_at() is None
    with pytest.raises(ClientError):
        client("scheduler").create_schedule(**{**entry, "ScheduleExpression": "at(2020-01-01T00:00:00)"})
    with pytest.raises(ClientError):
        client("scheduler").create_schedule(**{**entry, "ScheduleExpression": "at(tomorrow)"})


def test_an_alarm_reaches_the_event_sink_as_the_input_transformer_says(cloud: Cloud) -> None:
    seen: list[Any] = []
    cloud.functions.replace("test-interlock-event-sink", lambda event, context: seen.append(event))
    state = {"value": "ALARM", "reason": 'over "5"', "timestamp": "x"}
    detail = {"alarmName": "test-interlock-x", "state": state, "previousState": {"value": "OK"}}
    cloud.bus.publish("aws.cloudwatch", "CloudWatch Alarm State Change", detail)
    cloud.pump_streams()

    assert [one["detail-type"] for one in seen] == ["INFRA_ALARM"]
    assert seen[0]["detail"]["reason"] == 'over "5"'


def test_an_input_transformer_quotes_within_texts() -> None:
    target = PlannedTarget("arn:x", paths={"a": "$.a", "b": "$.b"}, template='{"text": "a is <a>", "b": <b>}')
    assert json.loads(transformed(target, {"a": 'x"y', "b": {"c": 1}})) == {"text": 'a is x"y', "b": {"c": 1}}


# ----------------------------------------------------------------------------------------------- Step Functions


def _start(cloud: Cloud, name: str = "x", **more: Any) -> Any:
    given = json.dumps({**INPUT, **more})
    return client("stepfunctions").start_execution(stateMachineArn=cloud.plan.machine.arn, name=name, input=given)


def test_a_name_is_used_once_and_the_same_start_again_is_no_error(cloud: Cloud) -> None:
    _start(cloud)
    _start(cloud)
    with pytest.raises(client("stepfunctions").exceptions.ExecutionAlreadyExists):
        _start(cloud, date="e")
    with pytest.raises(ClientError) as error:
        _start(cloud, "a b")
    assert code_of(error) == "InvalidName"
    with pytest.raises(ParamValidationError):
        client("stepfunctions").start_execution(name="y")


def test_a_history_that_is_full_ends_the_execution_and_its_event_says_so(cloud: Cloud, clock: ManualClock) -> None:
    again = {"status": "again", "wakeSeq": "0", "rules": "", "waitSeconds": 1}
    cloud.functions.replace(ORCHESTRATOR, lambda event, context: again)
    _start(cloud, pk="PIPELINE#p", activeSk="ACTIVE#s#d")
    cloud.machine.run_due(clock.now())

    (execution,) = cloud.machine.executions.values()
    assert execution.history > MAX_HISTORY
    assert cloud.bus.published[-1]["detail"]["status"] == "FAILED"


def test_a_token_that_nobody_holds_is_told_as_timed_out(cloud: Cloud) -> None:
    with pytest.raises(client("stepfunctions").exceptions.TaskTimedOut):
        client("stepfunctions").send_task_success(taskToken="t", output="{}")


# --------------------------------------------------------------------------------------------- Lambda and rights


def test_a_function_sees_its_own_variables_and_nothing_else(cloud: Cloud) -> None:
    os.environ["INTERLOCK_OF_THIS_MACHINE"] = "x"
    try:
        cloud.functions.replace(ORCHESTRATOR, lambda event, context: dict(os.environ))
        answer = cloud.functions.invoke(ORCHESTRATOR, "{}")
    finally:
        del os.environ["INTERLOCK_OF_THIS_MACHINE"]

    assert answer.payload["CONTROL_TABLE"] == "test-interlock-control"
    assert "INTERLOCK_OF_THIS_MACHINE" not in answer.payload


def test_a_killed_function_answers_as_lambda_does_and_an_error_has_its_class(cloud: Cloud) -> None:
    def killed(event: Any, context: Any) -> None:
        raise FunctionKilled

    def wrong(event: Any, context: Any) -> None:
        raise LookupError("no")

    cloud.functions.replace(ORCHESTRATOR, killed)
    assert cloud.functions.invoke(ORCHESTRATOR, "{}").error == "Lambda.Unknown"
    cloud.functions.replace(ORCHESTRATOR, wrong)
    assert cloud.functions.invoke(ORCHESTRATOR, "{}").error == "LookupError"


def test_asynchronous_invocations_are_tried_three_times(cloud: Cloud, clock: ManualClock) -> None:
    tries: list[Any] = []

    def failing(event: Any, context: Any) -> None:
        tries.append(clock.now())
        raise LookupError("no")

    cloud.functions.replace("test-interlock-watchdog", failing)
    client("lambda").invoke(FunctionName="test-interlock-watchdog", InvocationType="Event", Payload=b"{}")
    for _ in range(5):
        cloud.pump_streams()
        clock.advance(minutes=1)

    assert [(one - tries[0]).total_seconds() for one in tries] == [0, 60, 180]
    assert len(cloud.invocations.given_up) == 1


def test_what_the_role_of_a_function_does_not_allow_is_refused(cloud: Cloud) -> None:
    def grasping(event: Any, context: Any) -> None:
        client("dynamodb").get_item(
            TableName="test-interlock-control", Key={"PK": {"S": "p"}, "SK": {"S": "s"}}, ConsistentRead=True
        )

    cloud.functions.replace("test-interlock-alert-dispatcher", grasping)
    answer = cloud.functions.invoke("test-interlock-alert-dispatcher", "{}")
    assert "not authorized to perform: dynamodb:GetItem" in answer.cause


def test_policies_are_evaluated_and_what_nobody_needs_is_found() -> None:
    statements = (
        {"Effect": "Allow", "Action": ["sqs:SendMessage", "sqs:PurgeQueue"], "Resource": ["arn:a", "arn:b*"]},
        {"Effect": "Deny", "Action": "sqs:*", "Resource": "arn:bad"},
    )
    assert allowed(statements, Need("sqs:SendMessage", "arn:bee"))
    assert not allowed(statements, Need("sqs:SendMessage", "arn:bad"))
    assert not allowed(statements, Need("sqs:SendMessage", "arn:c"))
    assert unused(statements[:1], {Need("sqs:SendMessage", "arn:a")}) == [": sqs:PurgeQueue", ": arn:b*"]

"""The names of an environment."""

import pytest

from interlock.aws.names import Function, Names, Queue, check_environment
from interlock.model.errors import InvalidValueError
from interlock.model.keys import Table
from tests.aws.planned import resources

PROD = Names("prod", "eu-west-1", "123456789012")


def test_everything_follows_from_environment_region_and_account() -> None:
    assert PROD.tables[Table.CONTROL] == "prod-interlock-control"
    assert PROD.function_arn(Function.STREAM_ROUTER) == (
        "arn:aws:lambda:eu-west-1:123456789012:function:prod-interlock-stream-router"
    )
    assert PROD.state_machine_arn == "arn:aws:states:eu-west-1:123456789012:stateMachine:prod-interlock-pipeline"
    assert PROD.bus == "prod-interlock-events"
    assert PROD.timer_group == "prod-interlock-timers"
    assert PROD.queue_url(Queue.ALERTS_DLQ) == (
        "https://sqs.eu-west-1.amazonaws.com/123456789012/prod-interlock-alerts-dlq.fifo"
    )
    assert PROD.queue_arn(Queue.SLA_TIMERS) == "arn:aws:sqs:eu-west-1:123456789012:prod-interlock-sla-timers"


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_the_partition_follows_the_region(region: str, partition: str) -> None:
    assert Names("prod", region, "1").partition == partition
    assert Names("prod", region, "1").state_machine_arn.startswith(f"arn:{partition}:states:{region}:")


@pytest.mark.parametrize("text", ["", "p", "Prod", "1prod", "prod-", "a" * 32, "prod/x", "prod_x"])
def test_what_is_no_environment(text: str) -> None:
    with pytest.raises(InvalidValueError, match="not the name of an environment"):
        check_environment(text)


def test_what_is() -> None:
    assert [check_environment(text) for text in ("prod", "team-a", "e2", "a" * 31)]


def test_the_module_gives_the_same_names() -> None:
    """Whatever the CLI derives from environment, region and account is there, under that name."""
    names = Names("test", "us-east-1", "123456789012")
    planned = {
        kind: {str(one.get("name") or one.get("function_name")) for address, one in found if address.startswith(kind)}
        for kind in ("aws_dynamodb_table.", "aws_lambda_function.", "aws_sqs_queue.", "aws_sfn_state_machine.")
        if (found := list(resources().items()))
    }
    assert planned["aws_dynamodb_table."] == set(names.tables.values())
    assert planned["aws_lambda_function."] == {names.function(one) for one in Function}
    assert planned["aws_sqs_queue."] == {names.queue(one) for one in Queue}
    assert planned["aws_sfn_state_machine."] == {names.state_machine}


def test_the_functions_are_given_the_same_names() -> None:
    names = Names("test", "us-east-1", "123456789012")
    given: dict[str, set[str]] = {}
    for address, one in resources().items():
        if address.startswith("aws_lambda_function."):
            for name, value in one["environment"][0]["variables"].items():
                given.setdefault(name, set()).add(value)
    for name, value in names.variables.items():
        assert given[name] == {value}, name

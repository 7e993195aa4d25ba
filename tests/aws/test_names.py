"""The names of an environment."""

import pytest

from interlock.aws.names import Function, Names, Queue, check_environment
from interlock.model.errors import InvalidValueError
from interlock.model.keys import Table

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

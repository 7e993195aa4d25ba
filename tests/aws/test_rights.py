"""The planned policies against the rights that were used: nothing is denied, and nothing is given that nobody needs."""

import json
from typing import Final

import pytest

from tests.aws.rights import FILE
from tests.aws.world.rights import Need, allowed, unused
from tests.aws.world.terraform import shipped

_TIMERS: Final = (
    "ArmTimersNearby: sqs:SendMessage",
    "ArmTimersNearby: arn:aws:sqs:us-east-1:123456789012:test-interlock-timers",
    "ArmTimersNearby: arn:aws:sqs:us-east-1:123456789012:test-interlock-sla-timers",
    "ArmTimersFarAhead: scheduler:CreateSchedule",
    "ArmTimersFarAhead: scheduler:UpdateSchedule",
    "LetSchedulerSend: iam:PassRole",
    "LetSchedulerSend: arn:aws:iam::123456789012:role/test-interlock-scheduler",
)
# Given, and not seen in the recording; each with the reason.
UNSEEN: Final[dict[str, dict[str, str]]] = {
    "alert-dispatcher": {
        "ThreadsAndDeliveries: dynamodb:UpdateItem": "the thread of a run: the channel of the recording has no threads",
        "ThreadsAndDeliveries: dynamodb:DeleteItem": "a channel that works again after its alerts had to wait",
    },
    "orchestrator": {
        "State: dynamodb:UpdateItem": "the next in the line for a pool is woken by whoever gives a slot back",
        "LookAtExecutions: states:DescribeExecution": "a part of an execution whose start was repeated",
        "LookAtExecutions: arn:aws:states:us-east-1:123456789012:execution:test-interlock-pipeline:*": "the same",
        "WakeExecutions: states:SendTaskSuccess": "the next in the line for a pool",
        "WakeExecutions: *": "the same",
    },
    "sla-monitor": {
        **dict.fromkeys(_TIMERS, "the stream-router arms first, unless its stream is behind"),
        "State: dynamodb:UpdateItem": "one set of rights for all functions that run control/",
        "State: arn:aws:dynamodb:us-east-1:123456789012:table/test-interlock-joblog": "the same",
        "State: arn:aws:dynamodb:us-east-1:123456789012:table/test-interlock-rerun": "the same",
    },
    "watchdog": {
        **dict.fromkeys(_TIMERS, "a timer that was lost is armed again when it is overdue"),
        "ArmTimersFarAhead: scheduler:DeleteSchedule": "a timer that moved nearer",
        "ArmTimersFarAhead: arn:aws:scheduler:us-east-1:123456789012:schedule/test-interlock-timers/*": "the same",
        "TakeSlices: lambda:InvokeFunction": "more than 500 pipelines: tests/aws/test_watchdog.py",
        "TakeSlices: arn:aws:lambda:us-east-1:123456789012:function:test-interlock-watchdog": "the same",
    },
}


def _used(role: str) -> set[Need]:
    found: dict[str, list[list[str]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return {Need(*need) for need in found[role]}


@pytest.mark.parametrize("role", sorted(shipped().policies))
def test_everything_that_was_used_is_allowed(role: str) -> None:
    policy = shipped().policies[role]
    assert [need for need in _used(role) if not allowed(policy, need)] == []


@pytest.mark.parametrize("role", sorted(shipped().policies))
def test_nothing_is_given_that_nobody_needs(role: str) -> None:
    """If a right is new, and used: `python -m tests.aws.rights`."""
    found = unused(shipped().policies[role], _used(role))
    assert sorted(found) == sorted(UNSEEN.get(role.removeprefix("test-interlock-"), {}))


def test_the_dispatcher_may_keep_the_thread_of_a_run() -> None:
    """Slack's threads are an Update in the commit that records an alert as sent: denied, it would be sent again."""
    table = "arn:aws:dynamodb:us-east-1:123456789012:table/test-interlock-events"
    assert allowed(shipped().policies["test-interlock-alert-dispatcher"], Need("dynamodb:UpdateItem", table))

"""Secrets of jobs on AWS, `${secretsmanager:ARN}` and `${ssm:NAME}`: the orchestrator looks them up by its rights."""

import json
from dataclasses import replace
from typing import Any

import pytest

from interlock.model.events import EventType
from interlock.model.keys import Table
from interlock.model.run import FinalReason, RunStatus
from tests.aws.test_target_rights import PARAMETER, SECRET, Warehouse, account, loopback, pipeline, run_of, scenario
from tests.aws.test_target_rights import warehouse as warehouse  # noqa: PLC0414 - a fixture
from tests.aws.world.calls import Call
from tests.aws.world.plan import ACCOUNT, REGION, Plan
from tests.aws.world.targets import TargetWorld, with_targets

SECRETS = ("s3cr3t-token", "p4ssw0rd")
UNKNOWN = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:nobody-AbCdEf"


def everything_written(world: TargetWorld) -> str:
    """Every item of every table, and every event that was published."""
    items = [item for table in Table for item in world.cloud.tables.items(table)]
    return json.dumps([items, world.cloud.bus.published], default=str)


def with_header(warehouse: Warehouse, value: str) -> dict[str, Any]:
    job = warehouse.job
    return {**job, "config": {**job["config"], "headers": {"Authorization": value}}}


def test_a_job_is_given_its_secrets_and_nobody_else_sees_them(
    warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    with with_targets(scenario(pipeline("warehouse", warehouse.job)), loopback()) as world:
        account(world)
        world.play()

        (seen,) = warehouse.seen
        assert (seen["authorization"], seen["x-password"]) == ("Bearer s3cr3t-token", "p4ssw0rd")
        assert run_of(world, "warehouse").status is RunStatus.COMPLETED
        written = everything_written(world) + "".join(capsys.readouterr())
        assert "${secretsmanager:" in written, "the config names it"
        assert not [secret for secret in SECRETS if secret in written]


def test_what_the_service_repeats_is_masked_in_the_events(warehouse: Warehouse) -> None:
    warehouse.status = 422
    with with_targets(scenario(pipeline("warehouse", warehouse.job)), loopback()) as world:
        account(world)
        world.play()

        (failed,) = (one for one in world.events if one.type is EventType.RETRY_EXHAUSTED)
        assert "422" in failed.message
        assert "***" in everything_written(world)
        assert not [secret for secret in SECRETS if secret in everything_written(world)]


def _allowing(plan: Plan, *arns: str) -> Plan:
    statement = {"Effect": "Allow", "Action": ["secretsmanager:GetSecretValue"], "Resource": list(arns)}
    policies = {role: (*policy, statement) for role, policy in plan.policies.items()}
    return replace(plan, policies=policies)


@pytest.mark.parametrize(
    ("value", "allowed", "said"),
    [
        (f"${{secretsmanager:{UNKNOWN}}}", False, "AccessDeniedException: whoever runs the controller needs secretsm"),
        (f"${{secretsmanager:{UNKNOWN}}}", True, "ResourceNotFoundException: there is no such secret"),
        (
            "${ssm:/interlock/nobody}",
            False,
            "AccessDeniedException: whoever runs the controller needs ssm:Get",
        ),
    ],
)
def test_a_secret_that_cannot_be_read_refuses_the_start_for_good_and_says_why(
    warehouse: Warehouse, value: str, allowed: bool, said: str
) -> None:
    plan = _allowing(loopback(), UNKNOWN) if allowed else loopback()
    with with_targets(scenario(pipeline("warehouse", with_header(warehouse, value))), plan) as world:
        account(world)
        world.play()

        run = run_of(world, "warehouse")
        assert (run.status, run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.TRIGGER_EXHAUSTED)
        (refused,) = (one for one in world.events if one.type is EventType.RETRY_EXHAUSTED)
        assert value in refused.message
        assert said in refused.message
        assert warehouse.seen == []
        assert run.ended_at == run.opened_at, "asking again cannot help"


def test_a_parameter_that_is_gone_is_named(warehouse: Warehouse) -> None:
    with with_targets(scenario(pipeline("warehouse", warehouse.job)), loopback()) as world:
        account(world)
        world.aws.client("ssm").delete_parameter(Name=PARAMETER)
        world.play()

        (refused,) = (one for one in world.events if one.type is EventType.RETRY_EXHAUSTED)
        assert f"${{ssm:{PARAMETER}}}: AWS answered ParameterNotFound" in refused.message


def test_a_secret_that_cannot_be_read_just_now_is_asked_for_again(warehouse: Warehouse) -> None:
    tries: list[str] = []

    def throttled(call: Call) -> None:
        if call.operation == "GetSecretValue":
            tries.append(call.arguments["SecretId"])
            if len(tries) == 1:
                raise call.error("ThrottlingException", "Rate exceeded")

    with with_targets(scenario(pipeline("warehouse", warehouse.job)), loopback()) as world:
        account(world)
        world.cloud.calls.before.append(throttled)
        world.play()

        run = run_of(world, "warehouse")
        assert (run.status, run.attempt) == (RunStatus.COMPLETED, 1)
        assert tries == [SECRET, SECRET]
        assert len(warehouse.seen) == 1

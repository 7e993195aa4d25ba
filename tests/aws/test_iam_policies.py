"""The planned policies: one role each, no action for all, no resource for all but where IAM has none."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aws import planned

PLANS = ["plan", "plan-everything"]

# Actions for which the Service Authorization Reference names no resource.
_WITHOUT_RESOURCE = {
    "dynamodb:ListStreams",
    "states:SendTaskSuccess",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
}
_JOBS = (
    "glue:",
    "elasticmapreduce:",
    "emr-serverless:",
    "s3:",
    "secretsmanager:",
    "ssm:",
    "sts:",
    "kms:",
    "ec2:",
    "xray:",
)


def statements(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for address, values in planned.resources(name).items():
        if address.startswith("aws_iam_role_policy."):
            for statement in json.loads(values["policy"])["Statement"]:
                yield values["role"].removeprefix("test-interlock-"), statement


@pytest.mark.parametrize("name", PLANS)
def test_no_action_is_for_all_and_no_resource_without_need(name: str) -> None:
    for role, statement in statements(name):
        assert statement["Effect"] == "Allow"
        assert not [action for action in statement["Action"] if "*" in action], role
        if "*" in statement["Resource"]:
            assert set(statement["Action"]) <= _WITHOUT_RESOURCE, (role, statement)
        else:
            assert all(arn.startswith("arn:aws:") for arn in statement["Resource"])
            assert not set(statement["Action"]) & _WITHOUT_RESOURCE, f"{role}: this would never be allowed"


def test_there_is_a_role_for_each() -> None:
    functions = [address for address in planned.resources() if address.startswith("aws_lambda_function.")]
    roles = {values["role"] for address, values in planned.resources().items() if address in functions}
    assert len(roles) == len(functions) == 6
    everyone = {
        values["name"] for address, values in planned.resources().items() if address.startswith("aws_iam_role.")
    }
    assert len(everyone) == 8, "the state machine and Scheduler have their own"


def test_rights_on_jobs_secrets_and_keys_are_opt_in() -> None:
    given = {action for _, statement in statements("plan") for action in statement["Action"]}
    assert not [action for action in given if action.startswith(_JOBS)]
    asked = {(role, action) for role, statement in statements("plan-everything") for action in statement["Action"]}
    assert {action.split(":")[0] + ":" for _, action in asked} >= set(_JOBS)
    starts = {role for role, action in asked if action in ("glue:StartJobRun", "elasticmapreduce:AddJobFlowSteps")}
    assert starts == {"orchestrator"}
    assert {role for role, action in asked if action == "glue:GetJobRun"} == {"orchestrator", "stream-router"}


@pytest.mark.parametrize("name", PLANS)
def test_no_name_appears_twice_in_a_policy(name: str) -> None:
    for role in {role for role, _ in statements(name)}:
        names = [statement["Sid"] for one, statement in statements(name) if one == role]
        assert len(names) == len(set(names)), role


@pytest.mark.parametrize("name", PLANS)
def test_policies_fit_into_a_role(name: str) -> None:
    """Inline policies of a role have 10,240 characters together (IAM quotas), white space apart."""
    for address, values in planned.resources(name).items():
        if address.startswith("aws_iam_role_policy."):
            assert len(values["policy"].replace(" ", "")) <= 10_240, address


def test_only_the_services_themselves_may_take_the_roles() -> None:
    for address, values in planned.resources().items():
        if address.startswith("aws_iam_role."):
            (statement,) = json.loads(values["assume_role_policy"])["Statement"]
            service = statement["Principal"]["Service"]
            assert service in ("lambda.amazonaws.com", "states.amazonaws.com", "scheduler.amazonaws.com")
            assert "Condition" in statement or service == "lambda.amazonaws.com"

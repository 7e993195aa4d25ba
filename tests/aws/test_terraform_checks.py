"""`make terraform`: the tools look where the stub provider cannot, and find nothing (all under `make test-all`)."""

import copy

import pytest

from tests.aws import planned
from tools.terraform import checks, cloudformation, offline


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["test", "cfn-lint", "parliament", "checkov"])
def test_a_check_finds_nothing(name: str) -> None:
    try:
        checks.CHECKS[name]()
    except offline.MissingToolError as error:
        pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("address", "argument", "value"),
    [
        ('aws_lambda_function.this["watchdog"]', "memory_size", 64),
        ('aws_lambda_function.this["watchdog"]', "runtime", "python2.7"),
        ('aws_sqs_queue.this["timers"]', "visibility_timeout_seconds", 43_201),
        ('aws_lambda_event_source_mapping.stream["control"]', "starting_position", "NOW"),
        ('aws_cloudwatch_metric_alarm.this["watchdog-silent"]', "comparison_operator", "Below"),
    ],
)
def test_a_value_that_aws_would_refuse_is_found(address: str, argument: str, value: object) -> None:
    resources = copy.deepcopy(planned.resources())
    resources[address][argument] = value
    try:
        with pytest.raises(checks.CheckError):
            checks.lint_templates([cloudformation.template(resources)])
    except offline.MissingToolError as error:
        pytest.skip(str(error))


def test_every_planned_resource_is_looked_at() -> None:
    for name in ("plan", "plan-everything"):
        resources = planned.resources(name)
        kinds = {address.split(".")[0] for address in resources}
        beside = cloudformation.UNTRANSLATED | {"aws_cloudwatch_event_target"}
        wanted = [address for address in resources if address.split(".")[0] not in beside]
        assert len(cloudformation.template(resources)["Resources"]) == len(wanted)
        assert kinds >= {"aws_dynamodb_table", "aws_lambda_function", "aws_iam_role_policy"}


def test_the_planned_lifecycle_is_sound() -> None:
    checks.lifecycle_is_sound()

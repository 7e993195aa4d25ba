"""The guide's pages: each config is run as printed, and each policy allows exactly the calls that are made."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from interlock.config.loader import load_paths
from interlock.embedded.targets import abilities
from interlock.model.errors import InterlockError
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from interlock.ports.jobs import JobRequest
from tests.jobs.aws import targets as aws_targets
from tests.jobs.aws.moto_services import Aws, respond
from tests.jobs.aws.targets import AwsTarget
from tests.jobs.stage import DAY, TargetWorld, succeeds

PAGES = Path(__file__).parents[3] / "docs" / "guide" / "jobs"
KEY = RunKey("gold-revenue", "cron", DAY)
ACTIONS = {"emr": "elasticmapreduce", "stepfunctions": "states", "lambda:Invoke": "lambda:InvokeFunction"}


def printed(page: str, language: str) -> str:
    """The first block of a language on a page."""
    found = re.search(rf"```{language}\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def glue(aws: Aws) -> AwsTarget:
    aws.glue_job("gold-revenue-etl")
    target = aws_targets.Glue(aws)
    target.job = "gold-revenue-etl"
    return target


def emr(aws: Aws) -> AwsTarget:
    target = aws_targets.Emr(aws)
    target.renamed("j-2AXXXXXXGAPLF")
    return target


def emr_serverless(aws: Aws) -> AwsTarget:
    target = aws_targets.EmrServerless(aws)
    target.renamed("00fabcdefghijk01")
    return target


def step_function(aws: Aws) -> AwsTarget:
    target = aws_targets.StepFunction(aws)
    target.machine = aws.state_machine("gold-revenue")
    return target


def function(aws: Aws) -> AwsTarget:
    target = aws_targets.LambdaSync(aws)
    aws.function("gold-revenue", lambda _event: {"rows": 5})
    return target


TARGETS = {
    "glue.md": glue,
    "emr.md": emr,
    "emr-serverless.md": emr_serverless,
    "step-function.md": step_function,
    "lambda.md": function,
}


@pytest.fixture(params=TARGETS)
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_config_is_valid_as_printed(page: str, tmp_path: Path) -> None:
    file = tmp_path / "pipelines" / "gold-revenue.yaml"
    file.parent.mkdir()
    file.write_text(printed(page, "yaml"))
    loaded = load_paths([file], abilities=abilities())
    assert [str(problem) for problem in loaded.problems] == []
    assert [found.config.id for found in loaded.configs] == ["gold-revenue"]


def test_a_config_runs_as_printed(page: str, aws: Aws) -> None:
    target = TARGETS[page](aws)
    acts = {} if target.tells else {"+10m": succeeds}
    world = TargetWorld(target, acts, config=yaml.safe_load(printed(page, "yaml")), sensor="upstream-complete", key=KEY)
    world.play()
    assert (world.run.status, world.run.attempt) == (RunStatus.COMPLETED, 1)
    assert target.started() == 1


def test_a_policy_allows_the_calls_that_are_made(page: str, aws: Aws) -> None:
    """Every call of the target, in every way; what it is allowed beyond them is PassRole."""
    target = TARGETS[page](aws)
    document = yaml.safe_load(printed(page, "yaml"))
    config = {name: value for name, value in document["job"]["config"].items() if name != "payload"}
    runner = target.runner(TargetWorld(target, {}).clock)
    asked = JobRequest(key=KEY, attempt=1, run_id="run-1", config=config)
    if page == "emr-serverless.md":
        respond(target.clients.reading("emr-serverless", aws_config()), "GetDashboardForJobRun", {"url": "https://x"})
    started = runner.start(asked)
    runner.recover(asked)
    with suppress(InterlockError):
        runner.stop(asked, started.job_id)
    written(aws, page, started.job_id)
    runner.output(asked, started.job_id)
    if not target.tells:
        succeeds(TargetWorld(target, {}))
        runner.check(asked, started.job_id)
    allowed = set(_actions(msgspec.json.decode(printed(page, "json"))))
    assert {_action(call) for call in target.clients.made} == allowed - {"iam:PassRole"}


def aws_config() -> Any:
    from interlock.model.job_configs import EmrServerlessConfig

    return EmrServerlessConfig(application_id="a", execution_role_arn="r", job_driver={"hive": {}})


def written(aws: Aws, page: str, job_id: str) -> None:
    """Something to read, so that everything is asked for."""
    if page == "glue.md":
        aws.log("test/log/output", job_id, 1, "rows")
    if page == "lambda.md":
        aws.log("/aws/lambda/gold-revenue", "s", 1, f"START RequestId: {job_id}")


def _actions(policy: Any) -> Iterator[str]:
    assert policy["Version"] == "2012-10-17"
    for statement in policy["Statement"]:
        assert statement["Effect"] == "Allow"
        yield from statement["Action"]


def _action(call: str) -> str:
    service, _, operation = call.partition(":")
    return ACTIONS.get(call) or f"{ACTIONS.get(service, service)}:{operation}"

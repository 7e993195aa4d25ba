"""The Terraform module on the provider's schema: it is well formed, refuses nonsense, and plans what is committed.

Skipped, with a notice, where there is no terraform, or where the stub provider cannot be installed.
"""

import json
import subprocess
from pathlib import Path

import pytest

from interlock.aws.names import Function
from interlock.aws.settings import REQUIRED, read_settings
from interlock.cli.main import main
from tests.aws import planned
from tools.terraform import offline
from tools.terraform.planned import PLANS, plan, text_of

_COMMAND = "python -m tools.terraform.planned"


@pytest.fixture(scope="session")
def terraform() -> str:
    """The program; its tests are skipped without it."""
    try:
        offline.environment_of("terraform")
        return offline.terraform_program()
    except offline.MissingToolError as error:
        pytest.skip(str(error))


def test_it_is_formatted(terraform: str) -> None:
    done = subprocess.run(
        [terraform, "fmt", "-check", "-diff", "-recursive", str(offline.ROOT / "deploy")],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "TF_CLI_CONFIG_FILE": "/dev/null"},
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("folder", ["terraform", "terraform/example"])
def test_it_is_valid(terraform: str, folder: str, tmp_path: Path) -> None:
    where = offline.ROOT / "deploy" / folder
    for arguments in (["init", "-input=false", "-backend=false"], ["validate"]):
        done = offline.run_terraform(*arguments, "-no-color", folder=where, data=tmp_path / "data")
        assert done.returncode == 0, done.stdout + done.stderr


def test_its_own_tests_pass(terraform: str, tmp_path: Path) -> None:
    data, packages = tmp_path / "data", offline.write_packages(tmp_path / "packages")
    assert offline.run_terraform("init", "-input=false", data=data).returncode == 0
    done = offline.run_terraform(
        "test", "-no-color", "-filter=tests/module.tftest.hcl", data=data, variables={"dist_path": str(packages)}
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", list(PLANS))
def test_the_committed_plan_is_what_is_planned(terraform: str, name: str) -> None:
    """Also that a second plan changes nothing: `plan` looks."""
    assert text_of(plan(name)) == PLANS[name].read_text(encoding="utf-8"), f"run: {_COMMAND}"


# ------------------------------------------------------------------------------------ the plan, without terraform


@pytest.mark.parametrize("function", list(Function))
@pytest.mark.parametrize("name", ["plan", "plan-everything"])
def test_functions_get_the_variables_they_need(function: Function, name: str) -> None:
    values = planned.resources(name)[f'aws_lambda_function.this["{function}"]']
    variables = values["environment"][0]["variables"]
    assert set(REQUIRED[function]) <= set(variables)
    assert read_settings(variables, function).environment == "test"
    assert sum(len(key) + len(value) for key, value in variables.items()) < 4096, "Lambda's limit for all of them"
    assert values["handler"] == f"interlock.aws.lambdas.{function.replace('-', '_')}.handler"


@pytest.mark.parametrize(
    ("folder", "validated", "output"),
    [("tests/pipelines", ".", "validated.json"), ("example", "pipelines", "pipelines.json")],
)
def test_the_validated_pipelines_are_those_of_this_version(
    folder: str, validated: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(offline.MODULE / folder)
    with pytest.raises(SystemExit):
        main(("validate", "--json", validated))
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(Path(output).read_text(encoding="utf-8")), (
        f"in {folder}: interlock validate --json {validated} > {output}"
    )


def test_every_alarm_of_the_seeds_is_there() -> None:
    alarms = {
        values["alarm_name"].removeprefix("test-interlock-"): values
        for address, values in planned.resources().items()
        if address.startswith("aws_cloudwatch_metric_alarm.")
    }
    errors = [f"{function}-errors" for function in Function]
    twelve = [*errors, "executions-failed", "control-dead-letters", "joblog-dead-letters", "alert-dead-letters"]
    assert {*twelve, "control-stream-age", "joblog-stream-age"} <= alarms.keys()
    more = {"events-stream-age", "events-dead-letters", "timers-queue-age", "sla-timers-queue-age", "alerts-queue-age"}
    assert more <= alarms.keys()
    assert alarms["control-stream-age"]["threshold"] == 300_000
    assert all("alarm_actions" not in values for values in alarms.values())
    topics = [
        values["alarm_actions"]
        for address, values in planned.resources("plan-everything").items()
        if address.startswith("aws_cloudwatch_metric_alarm.")
    ]
    assert topics == [["arn:aws:sns:us-east-1:123456789012:on-call"]] * len(alarms)

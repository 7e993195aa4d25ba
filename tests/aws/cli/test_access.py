"""What is wrong with the address, the credentials, the region or the rights is said in one line, with exit code 2."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import botocore.client
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tests.aws.cli.deployed import ADDRESS, Deployed
from tests.cli.stage import Stage
from tests.cli.test_main import run

Capsys = pytest.CaptureFixture[str]


def said(capsys: Capsys, store: str, *command: str, code: int = 2) -> str:
    """The one line of a command that cannot reach its environment."""
    outcome = run(capsys, *(command or ("status",)), "--store", store)
    assert outcome.code == code, outcome.err + outcome.out
    assert outcome.out == ""
    return outcome.err


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    return text


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("aws://", "is not an environment on AWS"),
        ("aws://Prod", "is not the name of an environment"),
        ("aws://prod/x", "is not an environment on AWS"),
        ("aws://prod?zone=x", "'zone' is neither region nor profile"),
        ("aws://prod?region=", "given once, with a value"),
        ("aws:prod", "is not an environment on AWS"),
    ],
)
def test_an_address_that_is_none(capsys: Capsys, address: str, complaint: str) -> None:
    # The usage is printed around it, so words may be on two lines.
    shown = " ".join(said(capsys, address).replace("│", " ").split())
    assert complaint in shown


def test_no_region(capsys: Capsys, environment: Deployed) -> None:
    assert "no region is set: add ?region=" in one_line(said(capsys, "aws://test"))


def test_the_region_of_the_environment_is_enough(
    capsys: Capsys, environment: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert run(capsys, "status", "--store", "aws://test").code == 0


def test_no_such_profile(capsys: Capsys, environment: Deployed) -> None:
    shown = one_line(said(capsys, f"{ADDRESS}&profile=nobody"))
    assert "nobody" in shown
    assert "aws configure list-profiles" in shown


def test_no_credentials(capsys: Capsys, environment: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"):
            without.delenv(name, raising=False)
        shown = one_line(said(capsys, ADDRESS))
    assert "no AWS credentials" in shown
    assert "AWS_PROFILE" in shown


def test_no_such_environment_and_none_is_made(capsys: Capsys, environment: Deployed) -> None:
    before = environment.client("dynamodb").list_tables()["TableNames"]
    shown = one_line(said(capsys, "aws://prod?region=us-east-1"))
    assert "there is no environment 'prod' in account 123456789012, region us-east-1" in shown
    assert "Terraform" in shown
    shown = one_line(said(capsys, "aws://test?region=eu-west-1", "sensor", "list", "gold"))
    assert "there is no environment 'test' in account 123456789012, region eu-west-1" in shown
    assert environment.client("dynamodb").list_tables()["TableNames"] == before


@pytest.mark.parametrize(
    ("denied", "command"),
    [
        ("dynamodb:DescribeTable", ["status"]),
        ("dynamodb:Query", ["status"]),
        ("sts:GetCallerIdentity", ["events"]),
        ("sqs:ReceiveMessage", ["dlq", "list"]),
        ("sqs:GetQueueAttributes", ["dlq", "list"]),
        ("lambda:Invoke", ["watchdog"]),
        ("dynamodb:GetItem", ["why", "gold"]),
    ],
)
def test_a_missing_right_is_named(capsys: Capsys, environment: Deployed, denied: str, command: Sequence[str]) -> None:
    environment.denied.add(denied)
    shown = one_line(said(capsys, ADDRESS, *command))
    assert "not allowed" in shown
    assert denied in shown


def test_who_may_read_the_tables_alone_sees_them(stage: Stage, environment: Deployed) -> None:
    environment.denied.add("sqs:GetQueueAttributes")
    assert "whether alerts were given up cannot be seen" in stage.json("status")["degraded"][0]


def test_credentials_that_have_expired(capsys: Capsys, environment: Deployed) -> None:
    def expired(self: Any, operation: str, arguments: Mapping[str, Any]) -> Any:
        raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "The token is expired"}}, operation)

    # Not by monkeypatch: it would be undone after the environment's own, and bring that back for the tests that follow.
    with mock.patch.object(botocore.client.BaseClient, "_make_api_call", expired):
        shown = said(capsys, ADDRESS)
    assert "credentials have expired" in one_line(shown)


def test_a_region_that_is_none(capsys: Capsys, environment: Deployed) -> None:
    def nowhere(self: Any, operation: str, arguments: Mapping[str, Any]) -> Any:
        raise EndpointConnectionError(endpoint_url="https://sts.eu-wset-1.amazonaws.com/")

    # Not by monkeypatch: it would be undone after the environment's own, and bring that back for the tests that follow.
    with mock.patch.object(botocore.client.BaseClient, "_make_api_call", nowhere):
        shown = said(capsys, "aws://test?region=eu-wset-1")
    assert "is eu-wset-1 the name of a region" in one_line(shown)


def test_a_region_that_cannot_be_one(capsys: Capsys, environment: Deployed) -> None:
    assert "is eu_west 1 the name of a region" in one_line(said(capsys, "aws://test?region=eu_west%201"))


def test_without_boto3(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def importing(name: str, *given: Any, **more: Any) -> Any:
        if name == "boto3" or name.startswith(("boto3.", "botocore")):
            raise ImportError(f"No module named {name!r}", name=name)
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", importing)
    assert "pip install 'interlock[aws]'" in one_line(said(capsys, ADDRESS))


def test_ready_says_that_nothing_is_set_up(stage: Stage, environment: Deployed) -> None:
    environment.denied.add("dynamodb:DescribeTable")
    assert "not allowed" in stage.refused("ready", "gold", code=2)

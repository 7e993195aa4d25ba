"""Secrets reach the target and nothing else: not a request, an error, an output, a link."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from interlock.decide.templates import fill
from interlock.jobs import secrets
from interlock.jobs.command.target import CommandRunner
from interlock.jobs.secrets import SecretRunner, SecretStore, missing_secrets
from interlock.model.errors import InterlockError, JobStartError, JobStopError, SecretError
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobOutput, JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.command.trials import Notices

PASSWORD = "hunter2-and-more"


def asked(config: Mapping[str, Any]) -> JobRequest:
    key = RunKey("gold", "cron", "2026-03-02")
    filled = fill(config, key, run_id="run-1", attempt=1, environment={})
    return JobRequest(key=key, attempt=1, run_id="run-1", config=filled)


# ------------------------------------------------------------------------------------------------------ the store


def test_a_secret_of_the_environment() -> None:
    store = SecretStore({"INTERLOCK_SECRET_X": PASSWORD, "INTERLOCK_SECRET_EMPTY": ""})
    assert store.get("INTERLOCK_SECRET_X") == PASSWORD
    for name, words in (("INTERLOCK_SECRET_Y", "is not set"), ("INTERLOCK_SECRET_EMPTY", "is empty")):
        with pytest.raises(SecretError, match=words) as caught:
            store.get(name)
        assert caught.value.permanent


def test_a_secret_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    (folder / "db").mkdir(parents=True)
    (folder / "db" / "password").write_text(f"{PASSWORD}\n")
    # As Kubernetes mounts them: the name is a link to a folder beside it.
    (folder / "token").symlink_to(folder / "db" / "password")
    store = SecretStore({}, folder)
    assert store.get("file:db/password") == store.get("file:token") == PASSWORD
    (folder / "db" / "password").write_text("another one")
    assert store.get("file:token") == "another one"  # not kept


def test_a_file_that_is_no_secret_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (tmp_path / "outside").write_text(PASSWORD)
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "binary").write_bytes(b"\xff\xfe")
    (folder / "large").write_bytes(b"x" * 65537)
    (folder / "empty").touch()
    for name, words in {
        "none": "No such file",
        "link": "not below the folder",
        "binary": "not text",
        "large": "larger than",
        "empty": "is empty",
    }.items():
        with pytest.raises(SecretError, match=words) as caught:
            SecretStore({}, folder).get(f"file:{name}")
        assert caught.value.permanent
        assert PASSWORD not in str(caught.value)
    with pytest.raises(SecretError, match="no folder of secrets is set"):
        SecretStore({}).get("file:x")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.mark.usefixtures("aws")
def test_a_secret_of_aws() -> None:
    with mock_aws():
        made = boto3.client("secretsmanager", "us-east-1").create_secret(Name="etl", SecretString=PASSWORD)
        boto3.client("ssm").put_parameter(Name="/etl/token", Value="from ssm", Type="SecureString")
        store = SecretStore({})
        assert store.get(f"secretsmanager:{made['ARN']}") == PASSWORD  # in the region of the ARN
        assert store.get("ssm:/etl/token") == "from ssm"
        with pytest.raises(SecretError, match="ParameterNotFound") as caught:
            store.get("ssm:/no/such")
        assert caught.value.permanent
        with pytest.raises(SecretError, match="ResourceNotFoundException"):
            store.get("secretsmanager:no-such")


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "find_spec", lambda _name: None)
    assert "pip install 'interlock[aws]'" in missing_secrets()["ssm"]


# ----------------------------------------------------------------------------------------------------- the runner


class Chatty:
    """A target that repeats all it was told, wherever it can."""

    def __init__(self) -> None:
        self.requests: list[JobRequest] = []
        self.text = ""

    def _said(self, request: JobRequest) -> str:
        self.requests.append(request)
        return f"sent {request.config}"

    def start(self, request: JobRequest) -> JobStarted:
        failed = JobStatus(state=JobState.FAILED, error=self._said(request))
        return JobStarted(job_id="job", status=failed)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        return self.start(request)

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        raise RuntimeError(self._said(request))

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        raise JobStopError(self._said(request))

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        data = self.text.encode()[offset : offset + 20]
        link = f"http://x/{PASSWORD}"
        end = offset + len(data)
        return JobOutput(text=data.decode(), next_offset=end, complete=end == len(self.text), link=link)

    def link(self, request: JobRequest, job_id: str) -> str:
        return f"http://x/?token={request.config['token']}"


CONFIG = {"token": "${INTERLOCK_SECRET_X}", "nested": [{"a": "Bearer ${file:t}"}, "plain"]}


@pytest.fixture
def chatty() -> Chatty:
    return Chatty()


@pytest.fixture
def runner(chatty: Chatty, tmp_path: Path) -> JobRunner:
    (tmp_path / "t").write_text("of-the-file")
    return SecretRunner(chatty, SecretStore({"INTERLOCK_SECRET_X": PASSWORD}, tmp_path))


def test_the_target_gets_the_secret_and_says_it_to_nobody(runner: JobRunner, chatty: Chatty) -> None:
    request = asked(CONFIG)
    assert PASSWORD not in repr(request)
    texts: list[str] = []
    for started in (runner.start(request), runner.recover(request)):
        assert isinstance(started, JobStarted)
        assert started.status is not None
        texts.append(started.status.error)
    with pytest.raises(InterlockError) as caught:
        runner.check(request, "job")
    texts += [str(caught.value), repr(caught.value.__cause__)]
    with pytest.raises(JobStopError) as refused:
        runner.stop(request, "job")
    texts += [str(refused.value), runner.link(request, "job")]
    assert all(
        one.config == {"token": PASSWORD, "nested": [{"a": "Bearer of-the-file"}, "plain"]} for one in chatty.requests
    )
    assert not any(secret in text for text in texts for secret in (PASSWORD, "of-the-file")), texts
    assert texts[0] == "sent {'token': '***', 'nested': [{'a': 'Bearer ***'}, 'plain']}"
    assert runner.link(request, "job") == ""


def test_output_is_read_in_pieces_and_never_shows_it(runner: JobRunner, chatty: Chatty) -> None:
    chatty.text = f"login with {PASSWORD} went wrong, hunte"
    request, shown, offset, complete = asked(CONFIG), "", 0, False
    while not complete:
        piece = runner.output(request, "job", offset=offset)
        shown, offset, complete = shown + piece.text, piece.next_offset, piece.complete
        assert piece.text
        assert piece.link == ""
    assert shown == "login with *** went wrong, hunte"


def test_a_secret_that_is_not_there_refuses_the_start_and_calls_nobody(chatty: Chatty) -> None:
    runner = SecretRunner(chatty, SecretStore({}))
    with pytest.raises(JobStartError, match=r"\$\{INTERLOCK_SECRET_X\} is not set") as caught:
        runner.start(asked(CONFIG))
    assert caught.value.permanent
    assert chatty.requests == []


def test_a_command_gets_its_secret_and_its_output_is_masked(root: Path, notices: Notices) -> None:
    guarded = SecretRunner(
        CommandRunner(root, notices, ManualClock()),
        SecretStore({"INTERLOCK_SECRET_X": PASSWORD}),
    )
    request = asked(
        {
            "command": ["sh", "-c", f'test "$P" = {PASSWORD} && echo "it is $P" && exit 3'],
            "env": {"P": "${INTERLOCK_SECRET_X}"},
        }
    )
    guarded.start(request)
    notices.of("run-1")
    assert guarded.check(request, "run-1").error == "exit code 3; its last output:\nit is ***"
    assert guarded.output(request, "run-1").text == "it is ***\n"
    guarded.close()
    kept = [path.read_bytes() for path in (root / "run-1").iterdir() if path.name != "output.log"]
    assert not any(PASSWORD.encode() in data for data in kept)

"""Who calls AWS, from where and at which address; and that a start is never repeated behind our back."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.glue import GlueRunner
from interlock.model.errors import InterlockError, JobStartError, UnavailableError
from interlock.model.job_configs import GlueConfig
from tests.conformance.manual_clock import ManualClock
from tests.jobs.aws.moto_services import ROLE, Aws, refuse
from tests.jobs.command.trials import request

CONFIG = GlueConfig(job_name="etl")


class Service:
    """A stand-in at a loopback address: what was asked, and what is answered."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.url = ""


@contextmanager
def service() -> Iterator[Service]:
    found = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            found.asked.append((self.headers["x-amz-target"], self.headers["authorization"]))
            status, answer = found.answers.pop(0) if found.answers else (200, {"JobRunId": "jr_1"})
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_clients_are_kept_per_config(clients: AwsClients) -> None:
    elsewhere = GlueConfig(job_name="etl", region="eu-west-1")
    assert clients.starting("glue", CONFIG) is clients.starting("glue", GlueConfig(job_name="other"))
    made = {
        id(client)
        for client in (
            clients.starting("glue", CONFIG),
            clients.reading("glue", CONFIG),
            clients.reading("glue", elsewhere),
            clients.beside("logs", CONFIG),
        )
    }
    assert len(made) == 4
    assert clients.reading("glue", elsewhere).meta.region_name == "eu-west-1"


def test_not_every_config_of_history_is_kept(clients: AwsClients) -> None:
    first = clients.reading("sts", CONFIG)
    for number in range(64):
        clients.reading("sts", GlueConfig(job_name="etl", endpoint_url=f"https://sts.example.org/{number}"))
    assert clients.reading("sts", CONFIG) is not first


def test_the_region_is_the_configs_else_the_controllers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AwsClients().region(GlueConfig(job_name="etl", region="eu-west-1")) == "eu-west-1"
    assert AwsClients().region(CONFIG) == "us-east-1"
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert AwsClients().region(CONFIG) == ""
    runner = GlueRunner(AwsClients(), ManualClock())
    assert runner.link(request(jobName="etl"), "jr_1") == ""
    with pytest.raises(JobStartError, match=r"write `region` into job\.config, or set AWS_REGION") as caught:
        runner.start(request(jobName="etl"))
    assert caught.value.permanent


def test_a_profile_brings_region_and_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("[profile etl]\nregion = eu-central-1\n")
    (tmp_path / "credentials").write_text("[etl]\naws_access_key_id = AKIDETL\naws_secret_access_key = secret\n")
    monkeypatch.delenv("AWS_DEFAULT_REGION")  # boto3 prefers it to a profile's
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with service() as there:
        runner = GlueRunner(AwsClients(allow_private=True), ManualClock())
        runner.start(request(jobName="etl", profile="etl", endpointUrl=there.url))
    ((target, authorization),) = there.asked
    assert target == "AWSGlue.StartJobRun"
    assert "Credential=AKIDETL/" in authorization
    assert "/eu-central-1/glue/" in authorization
    with pytest.raises(JobStartError, match="nobodys") as caught:
        runner.start(request(jobName="etl", profile="nobodys"))
    assert caught.value.permanent


def test_a_role_is_assumed_and_renewed_before_it_expires(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = AwsClients()
    session = clients.starting("glue", GlueConfig(job_name="etl", role_arn=ROLE))._request_signer._credentials
    first = session.get_frozen_credentials()
    assert first.access_key.startswith("ASIA")
    assert first.token
    assert session.get_frozen_credentials() == first
    monkeypatch.setattr(session, "_time_fetcher", lambda: datetime.now(UTC) + timedelta(minutes=58))  # noqa: TID251
    assert session.get_frozen_credentials().access_key != first.access_key


@pytest.mark.usefixtures("aws")
def test_a_role_without_credentials_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    runner = GlueRunner(AwsClients(), ManualClock())
    for more in ({}, {"roleArn": ROLE}):
        with pytest.raises(JobStartError, match="give the controller a role, a profile") as caught:
            runner.start(request(jobName="etl", **more))
        assert not caught.value.permanent


def test_a_start_is_made_once_and_a_question_is_repeated() -> None:
    runner = GlueRunner(AwsClients(allow_private=True), ManualClock())
    broken = (500, {"__type": "InternalServiceException", "Message": "broke"})
    with service() as there:
        asked = request(jobName="etl", endpointUrl=there.url)
        there.answers = [broken, broken]
        with pytest.raises(UnavailableError, match="InternalServiceException"):
            runner.start(asked)
        assert [target for target, _ in there.asked] == ["AWSGlue.StartJobRun"]
        there.answers = [(400, {"__type": "ThrottlingException", "Message": "Rate exceeded"}), (200, {"JobRuns": []})]
        runner.recover(asked)
        assert [target for target, _ in there.asked][1:] == ["AWSGlue.GetJobRuns"] * 2


def test_another_address_must_be_allowed() -> None:
    with service() as there:
        asked = request(jobName="etl", endpointUrl=there.url)
        guarded = GlueRunner(AwsClients(), ManualClock())
        with pytest.raises(
            JobStartError, match=r"loopback address 127\.0\.0\.1, which jobs and probes may not call"
        ) as caught:
            guarded.start(asked)
        assert caught.value.permanent
        with pytest.raises(InterlockError, match="may not call"):
            guarded.check(asked, "jr_1")
        assert there.asked == []
        GlueRunner(AwsClients(allow_private=("127.0.0.0/8",)), ManualClock()).start(asked)
        assert len(there.asked) == 1


@pytest.mark.parametrize("host", ["metadata.example.org", "169.254.169.254"])
def test_the_metadata_service_is_no_endpoint(host: str) -> None:
    clients = AwsClients(allow_private=True, resolve=lambda _host, _port: ["169.254.169.254"])
    with pytest.raises(JobStartError, match="metadata"):
        GlueRunner(clients, ManualClock()).start(request(jobName="etl", endpointUrl=f"http://{host}/"))


def test_a_vpc_endpoint_has_a_private_address_and_a_name_of_aws(clients: AwsClients) -> None:
    name = "https://vpce-1.glue.us-east-1.vpce.amazonaws.com"
    made = AwsClients(resolve=lambda _host, _port: pytest.fail("not to be asked"))
    config = GlueConfig(job_name="etl", endpoint_url=name)
    refuse(made.starting("glue", config), "StartJobRun", "EntityNotFoundException")
    with pytest.raises(JobStartError, match="EntityNotFoundException"):
        GlueRunner(made, ManualClock()).start(request(jobName="etl", endpointUrl=name))


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    runner = GlueRunner(AwsClients(), ManualClock())
    with pytest.raises(JobStartError, match=r"pip install 'interlock\[aws\]'") as caught:
        runner.start(request(jobName="etl"))
    assert caught.value.permanent
    assert runner.link(request(jobName="etl"), "jr_1") == ""


def test_one_client_for_many_threads(clients: AwsClients) -> None:
    made: list[Any] = []
    together = threading.Barrier(8)

    def make() -> None:
        together.wait()
        made.append(clients.reading("glue", CONFIG))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len({id(client) for client in made}) == 1

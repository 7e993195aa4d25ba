"""Lambda functions: what is sent, what an answer means, and what an invocation wrote."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ReadTimeoutError

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.lambda_function import LONGEST, LambdaRunner
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.job_configs import LambdaConfig
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.jobs.aws.moto_services import ACCOUNT, Aws, FunctionFailedError, refuse
from tests.jobs.command.trials import request

SYNC, ASYNC = request(functionName="etl"), request(functionName="etl", mode="async")
CONFIG = LambdaConfig(function_name="etl")
WAITS = LONGEST + timedelta(seconds=30)
T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
GROUP = "/aws/lambda/etl"


@pytest.fixture
def runner(aws: Aws, clients: AwsClients) -> LambdaRunner:
    aws.function("etl", lambda _event: {"rows": 5})
    return LambdaRunner(clients)


def fails(error_type: str, message: str, log: str = "") -> Any:
    def function(_event: Any) -> None:
        raise FunctionFailedError(error_type, message, log)

    return function


def test_a_response_is_success(aws: Aws, runner: LambdaRunner) -> None:
    port: JobRunner = runner
    started = port.start(SYNC)
    assert started.job_id
    assert started.status == JobStatus(state=JobState.SUCCEEDED)
    expected = {"pipeline": "gold", "schedule": "cron", "date": "2026-03-02", "attempt": 2, "runId": "run-1"}
    assert aws.invocations == [("etl", "RequestResponse", expected)]


def test_an_event_is_accepted_and_runs_until_it_is_reported(aws: Aws, runner: LambdaRunner) -> None:
    started = runner.start(ASYNC)
    assert started == JobStarted(job_id=started.job_id)
    assert [kind for _, kind, _ in aws.invocations] == ["Event"]
    assert runner.check(ASYNC, started.job_id) == JobStatus(state=JobState.RUNNING)


@pytest.mark.parametrize(
    ("given", "sent"), [({"a": [1]}, {"a": [1]}), ([], []), ('{"a": 1}', {"a": 1}), ("words", "words")]
)
def test_the_payload_is_the_configs(aws: Aws, runner: LambdaRunner, given: Any, sent: Any) -> None:
    runner.start(request(functionName="etl", payload=given))
    assert aws.invocations[0][2] == sent


def test_a_version_is_called_by_its_qualifier(
    clients: AwsClients, runner: LambdaRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = clients.starting("lambda", CONFIG)
    sent: list[dict[str, Any]] = []

    def invoke(**parameters: Any) -> dict[str, Any]:
        sent.append(parameters)
        return {}

    monkeypatch.setattr(client, "invoke", invoke)
    runner.start(request(functionName="etl", qualifier="live", mode="async"))
    runner.start(ASYNC)
    assert [one.get("Qualifier") for one in sent] == ["live", None]


@pytest.mark.parametrize(
    ("function", "state", "category", "error"),
    [
        (fails("ValueError", "bad row"), JobState.FAILED, FailureCategory.PERMANENT, "ValueError: bad row"),
        (
            fails("Sandbox.Timedout", "RequestId: 1 Error: Task timed out after 3.00 seconds"),
            JobState.TIMED_OUT,
            FailureCategory.TIMEOUT,
            "Task timed out after 3.00 seconds",
        ),
        (fails("", "2026-03-02 Task timed out after 3 s"), JobState.TIMED_OUT, FailureCategory.TIMEOUT, "timed out"),
        (fails("ThrottlingException", "Rate exceeded"), JobState.FAILED, FailureCategory.TRANSIENT, "Rate exceeded"),
        (fails("E", "x" * 5000), JobState.FAILED, FailureCategory.PERMANENT, "E: xxx"),
        (
            fails("E", "x", "\n".join(f"line {number}" for number in range(50))),
            JobState.FAILED,
            FailureCategory.PERMANENT,
            "E: x; its last output:\nline 40\n",
        ),
    ],
)
def test_an_error_of_the_function_is_a_failure(
    aws: Aws, runner: LambdaRunner, function: Any, state: JobState, category: FailureCategory, error: str
) -> None:
    aws.functions["etl"] = function
    status = runner.start(SYNC).status
    assert status is not None
    assert (status.state, status.category) == (state, category)
    assert error in status.error
    assert len(status.error) < 1200


def test_a_failure_that_is_not_like_the_others_is_quoted(
    clients: AwsClients, runner: LambdaRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Body:
        def read(self) -> bytes:
            return b'["odd"]'

    client = clients.starting("lambda", CONFIG, read_timeout=WAITS)
    answer = {"FunctionError": "Handled", "Payload": Body(), "LogResult": "not base64!"}
    monkeypatch.setattr(client, "invoke", lambda **_: answer)
    started = runner.start(SYNC)
    assert started.job_id == "run-1"
    assert started.status is not None
    assert started.status.error == '["odd"]'


@pytest.mark.parametrize(
    ("code", "status", "permanent"),
    [
        ("TooManyRequestsException", 429, False),
        ("EC2ThrottledException", 502, False),
        ("ResourceConflictException", 409, False),
        ("ResourceNotFoundException", 404, True),
        ("InvalidRequestContentException", 400, True),
        ("RequestTooLargeException", 413, True),
        ("AccessDeniedException", 403, True),
        ("InvalidRuntimeException", 502, True),
    ],
)
def test_a_call_that_is_refused(
    clients: AwsClients, runner: LambdaRunner, code: str, status: int, permanent: bool
) -> None:
    refuse(clients.starting("lambda", CONFIG, read_timeout=WAITS), "Invoke", code, status=status)
    with pytest.raises(JobStartError, match=code) as caught:
        runner.start(SYNC)
    assert caught.value.permanent is permanent


def test_an_answer_that_got_lost_is_not_asked_for_again(
    clients: AwsClients, runner: LambdaRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://lambda")

    client = clients.starting("lambda", CONFIG, read_timeout=WAITS)
    assert client.meta.config.read_timeout == WAITS.total_seconds()
    monkeypatch.setattr(client, "invoke", lost)
    with pytest.raises(UnavailableError):
        runner.start(SYNC)
    assert runner.recover(SYNC) is Recovery.UNDECIDABLE


def test_an_event_may_be_sent_again(runner: LambdaRunner) -> None:
    assert runner.recover(ASYNC) is Recovery.START_AGAIN


def test_an_event_says_where_to_report(aws: Aws, clients: AwsClients, runner: LambdaRunner) -> None:
    address = "https://interlock.example.org/api/v1/callbacks/a.b"
    known = LambdaRunner(clients, callback_url=lambda _: address)
    known.start(ASYNC)
    known.start(request(functionName="etl", mode="async", payload={"to": ["${CALLBACK_URL}"]}))
    known.start(SYNC)
    runner.start(ASYNC)
    sent = [payload for _, _, payload in aws.invocations]
    assert sent[0]["callbackUrl"] == address
    assert sent[1] == {"to": [address]}
    assert "callbackUrl" not in sent[2]
    assert "callbackUrl" not in sent[3]


@pytest.mark.parametrize(
    ("mode", "word"), [("async", "set public_url in interlock.toml"), ("sync", "needs mode: async")]
)
def test_an_address_that_is_wanted_and_not_known_is_an_error(runner: LambdaRunner, mode: str, word: str) -> None:
    with pytest.raises(JobStartError, match=word) as caught:
        runner.start(request(functionName="etl", mode=mode, payload={"to": "${CALLBACK_URL}"}))
    assert caught.value.permanent


def test_an_invocation_cannot_be_stopped(runner: LambdaRunner) -> None:
    assert runner.stop(SYNC, "request-1") is JobStop.ENDED
    with pytest.raises(JobStopError, match="ends by itself within its timeout; or report its end") as caught:
        runner.stop(ASYNC, "request-1")
    assert "interlock job report gold --date 2026-03-02 fail" in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ output


def test_the_output_is_the_part_of_the_stream_that_is_its_own(aws: Aws, runner: LambdaRunner) -> None:
    asked = msgspec.structs.replace(ASYNC, started_at=T0)
    early = runner.output(asked, "req-2")
    assert (early.text, early.complete) == ("", False)
    stream = "2026/03/02/[$LATEST]abc"
    for second, lines in enumerate(
        [
            ["START RequestId: req-1 Version: $LATEST", "other", "REPORT RequestId: req-1 Duration: 5 ms"],
            ["START RequestId: req-2 Version: $LATEST"],
            ["hello"],
        ]
    ):
        aws.log(GROUP, stream, T0 + timedelta(seconds=second), *lines)
    first = runner.output(asked, "req-2")
    assert (first.text, first.complete) == ("START RequestId: req-2 Version: $LATEST\nhello\n", False)
    aws.log(GROUP, stream, T0 + timedelta(seconds=3), "bye", "REPORT RequestId: req-2 Duration: 9 ms")
    aws.log(GROUP, stream, T0 + timedelta(seconds=4), "START RequestId: req-3 Version: $LATEST", "more")
    rest = runner.output(asked, "req-2", offset=first.next_offset)
    assert (rest.text, rest.complete) == ("bye\nREPORT RequestId: req-2 Duration: 9 ms\n", True)
    assert rest.link == runner.link(asked, "req-2")


def test_only_what_is_young_enough_is_searched(aws: Aws, runner: LambdaRunner) -> None:
    aws.log(GROUP, "old", T0 - timedelta(days=1), "START RequestId: req-2")
    assert runner.output(msgspec.structs.replace(ASYNC, started_at=T0), "req-2").text == ""
    assert runner.output(ASYNC, "req-2").text


def test_of_a_synchronous_call_nothing_more_will_come(aws: Aws, runner: LambdaRunner) -> None:
    aws.log_group(GROUP)
    assert runner.output(SYNC, "req-1").complete


def test_the_log_group_is_the_functions_own(aws: Aws, clients: AwsClients, runner: LambdaRunner) -> None:
    client = clients.reading("lambda", CONFIG)
    aws.log("/etl/all", "s", T0, "START RequestId: req-1", "REPORT RequestId: req-1")
    assert runner.output(SYNC, "req-1").text == ""
    undo = refuse(client, "GetFunctionConfiguration", "AccessDeniedException", status=403)
    assert runner.output(SYNC, "req-1").text == ""
    undo()
    refuse(client, "GetFunctionConfiguration", "ServiceException", status=500)
    with pytest.raises(UnavailableError):
        runner.output(SYNC, "req-1")


def test_a_log_group_that_was_set_is_read(
    aws: Aws, clients: AwsClients, runner: LambdaRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.log("/etl/all", "s", T0, "START RequestId: req-1", "REPORT RequestId: req-1")
    answer = {"LoggingConfig": {"LogGroup": "/etl/all"}}
    monkeypatch.setattr(clients.reading("lambda", CONFIG), "get_function_configuration", lambda **_: answer)
    output = runner.output(SYNC, "req-1")
    assert output.text.splitlines() == ["START RequestId: req-1", "REPORT RequestId: req-1"]
    assert output.complete


@pytest.mark.parametrize(
    "name", ["etl", "etl:live", f"{ACCOUNT}:function:etl", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:etl:live"]
)
def test_where_a_person_looks(runner: LambdaRunner, name: str) -> None:
    region = "eu-west-1" if name.startswith("arn") else "us-east-1"
    address = f"https://{region}.console.aws.amazon.com/lambda/home?region={region}#/functions/etl?tab=monitoring"
    assert runner.link(request(functionName=name), "req-1") == address

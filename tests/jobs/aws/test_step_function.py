"""Executions of Step Functions: what is sent, what each status means, why Express is refused."""

from typing import Any

import msgspec
import pytest

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.step_function import StepFunctionRunner
from interlock.model.errors import JobStartError, UnavailableError
from interlock.model.job_configs import StepFunctionConfig
from interlock.model.run import FailureCategory
from interlock.ports.jobs import OUTPUT_LIMIT, JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.jobs.aws.moto_services import ACCOUNT, REGION, Aws, refuse
from tests.jobs.command.trials import request

EXECUTION = f"arn:aws:states:{REGION}:{ACCOUNT}:execution:etl:run-1"
CONFIG = StepFunctionConfig(state_machine_arn="x", region=REGION)


@pytest.fixture
def runner(clients: AwsClients) -> StepFunctionRunner:
    return StepFunctionRunner(clients)


@pytest.fixture
def machine(aws: Aws) -> str:
    return aws.state_machine("etl")


@pytest.fixture
def asked(machine: str) -> JobRequest:
    return request(stateMachineArn=machine)


def test_an_execution_is_named_after_its_run(
    aws: Aws, runner: StepFunctionRunner, machine: str, asked: JobRequest
) -> None:
    port: JobRunner = runner
    assert port.start(asked) == JobStarted(job_id=EXECUTION)
    (execution,) = aws.executions(machine)
    assert msgspec.json.decode(execution.execution_input) == {
        "pipeline": "gold",
        "schedule": "cron",
        "date": "2026-03-02",
        "attempt": 2,
        "runId": "run-1",
    }


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"day": "2026-03-02", "deep": [1, None]}, b'{"day":"2026-03-02","deep":[1,null]}'),
        ([], b"[]"),
        ('{"day": 1}', b'{"day": 1}'),
        ("plain words", b'"plain words"'),
    ],
)
def test_the_input_is_the_configs(aws: Aws, runner: StepFunctionRunner, machine: str, given: Any, sent: bytes) -> None:
    runner.start(request(stateMachineArn=machine, input=given))
    assert aws.executions(machine)[0].execution_input.encode() == sent


def test_a_start_again_is_the_same_start(aws: Aws, runner: StepFunctionRunner, machine: str, asked: JobRequest) -> None:
    assert runner.start(asked) == JobStarted(job_id=EXECUTION)
    assert runner.recover(asked) is Recovery.START_AGAIN
    assert runner.start(asked) == JobStarted(job_id=EXECUTION)
    aws.executions(machine)[0].status = "SUCCEEDED"
    assert runner.start(asked) == JobStarted(job_id=EXECUTION)
    other = request(stateMachineArn=machine, input={"changed": True})
    assert runner.start(other) == JobStarted(job_id=EXECUTION)
    assert len(aws.executions(machine)) == 1


def test_a_long_run_id_still_names_one_run(aws: Aws, runner: StepFunctionRunner, machine: str) -> None:
    for end in "ab":
        runner.start(request("x" * 100 + end, stateMachineArn=machine))
    names = [execution.name for execution in aws.executions(machine)]
    assert len(set(names)) == 2
    assert {len(name) for name in names} == {80}


def test_an_express_state_machine_is_refused_with_the_reason(aws: Aws, runner: StepFunctionRunner) -> None:
    arn = aws.state_machine("quick", "EXPRESS")
    with pytest.raises(JobStartError, match="Express state machine, whose executions cannot be described") as caught:
        runner.start(request(stateMachineArn=arn))
    assert caught.value.permanent
    assert aws.executions(arn) == []


def test_the_type_is_asked_for_once(
    clients: AwsClients, runner: StepFunctionRunner, machine: str, asked: JobRequest
) -> None:
    runner.start(asked)
    refuse(clients.reading("stepfunctions", CONFIG), "DescribeStateMachine", "AccessDeniedException")
    assert runner.start(request("run-2", stateMachineArn=machine)).job_id


def test_of_a_version_or_alias_the_state_machine_is_asked(
    clients: AwsClients, runner: StepFunctionRunner, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def start(*, stateMachineArn: str, name: str, **_: Any) -> dict[str, str]:  # noqa: N803 - boto3's names
        started.append(stateMachineArn)
        return {"executionArn": EXECUTION}

    monkeypatch.setattr(clients.starting("stepfunctions", CONFIG), "start_execution", start)
    assert runner.start(request(stateMachineArn=f"{machine}:live")) == JobStarted(job_id=EXECUTION)
    assert started == [f"{machine}:live"]


@pytest.mark.parametrize(
    ("operation", "code", "permanent"),
    [
        ("StartExecution", "ExecutionLimitExceeded", False),
        ("StartExecution", "InvalidExecutionInput", True),
        ("StartExecution", "StateMachineDeleting", True),
        ("StartExecution", "ThrottlingException", False),
        ("DescribeStateMachine", "AccessDeniedException", True),
        ("DescribeStateMachine", "StateMachineDoesNotExist", True),
    ],
)
def test_a_start_that_is_refused(
    clients: AwsClients, runner: StepFunctionRunner, asked: JobRequest, operation: str, code: str, permanent: bool
) -> None:
    for client in (clients.starting("stepfunctions", CONFIG), clients.reading("stepfunctions", CONFIG)):
        refuse(client, operation, code)
    with pytest.raises(JobStartError, match=code) as caught:
        runner.start(asked)
    assert caught.value.permanent is permanent


def test_what_is_not_an_arn_is_refused(runner: StepFunctionRunner) -> None:
    with pytest.raises(JobStartError, match="write arn:aws:states:REGION") as caught:
        runner.start(request(stateMachineArn="etl"))
    assert caught.value.permanent


def test_the_region_is_the_state_machines(clients: AwsClients, runner: StepFunctionRunner) -> None:
    there = StepFunctionConfig(state_machine_arn="x", region="eu-west-1")
    refuse(clients.reading("stepfunctions", there), "DescribeStateMachine", "StateMachineDoesNotExist")
    with pytest.raises(JobStartError, match="StateMachineDoesNotExist"):
        runner.start(request(stateMachineArn=f"arn:aws:states:eu-west-1:{ACCOUNT}:stateMachine:etl"))


@pytest.mark.parametrize(
    ("said", "seen", "category"),
    [
        (("RUNNING", None, None), JobState.RUNNING, None),
        (("PENDING_REDRIVE", None, None), JobState.RUNNING, None),
        (("SOMETHING_NEW", None, None), JobState.RUNNING, None),
        (("SUCCEEDED", None, None), JobState.SUCCEEDED, None),
        (("FAILED", "States.TaskFailed", "no such column"), JobState.FAILED, FailureCategory.PERMANENT),
        (("FAILED", "Lambda.TooManyRequestsException", "Rate exceeded"), JobState.FAILED, FailureCategory.TRANSIENT),
        (("FAILED", "States.Timeout", None), JobState.TIMED_OUT, FailureCategory.TIMEOUT),
        (("TIMED_OUT", None, None), JobState.TIMED_OUT, FailureCategory.TIMEOUT),
        (("ABORTED", None, None), JobState.FAILED, FailureCategory.TRANSIENT),
    ],
)
def test_what_a_status_means(
    aws: Aws,
    runner: StepFunctionRunner,
    machine: str,
    asked: JobRequest,
    said: tuple[str, str | None, str | None],
    seen: JobState,
    category: FailureCategory | None,
) -> None:
    started = runner.start(asked)
    (execution,) = aws.executions(machine)
    execution.status, execution.error, execution.cause = status, error, cause = said
    found = runner.check(asked, started.job_id)
    assert (found.state, found.category) == (seen, category)
    if category is None:
        assert found == JobStatus(state=seen)
    else:
        words = [f"Step Functions says {status}", *filter(None, (error, cause))]
        assert found.error == ": ".join(words)


def test_a_long_cause_is_cut(aws: Aws, runner: StepFunctionRunner, machine: str, asked: JobRequest) -> None:
    started = runner.start(asked)
    (execution,) = aws.executions(machine)
    execution.status, execution.error, execution.cause = "FAILED", "E", "x" * 30_000
    assert len(runner.check(asked, started.job_id).error) < 1600
    execution.cause = "x" * 100_000
    first = runner.output(asked, started.job_id)
    assert (len(first.text), first.complete) == (OUTPUT_LIMIT, False)
    rest = runner.output(asked, started.job_id, offset=first.next_offset)
    assert (len(first.text) + len(rest.text), rest.complete) == (len("FAILED: E: \n") + 100_000, True)


def test_an_execution_is_stopped(aws: Aws, runner: StepFunctionRunner, asked: JobRequest) -> None:
    started = runner.start(asked)
    assert runner.stop(asked, started.job_id) is JobStop.REQUESTED
    assert runner.check(asked, started.job_id).error == "Step Functions says ABORTED"
    assert runner.stop(asked, started.job_id) is JobStop.ENDED


def test_the_output_is_how_it_ended(aws: Aws, runner: StepFunctionRunner, machine: str, asked: JobRequest) -> None:
    started = runner.start(asked)
    (execution,) = aws.executions(machine)
    early = runner.output(asked, started.job_id)
    assert (early.text, early.complete) == ("", False)
    assert early.link == (
        f"https://{REGION}.console.aws.amazon.com/states/home?region={REGION}#/v2/executions/details/{EXECUTION}"
    )
    execution.status, execution.error, execution.cause = "FAILED", "States.TaskFailed", "no such column"
    late = runner.output(asked, started.job_id)
    assert (late.text, late.complete) == ("FAILED: States.TaskFailed: no such column\n", True)
    assert runner.output(asked, started.job_id, offset=late.next_offset).text == ""
    execution.status, execution.output = "SUCCEEDED", '{"rows": 5}'
    assert runner.output(asked, started.job_id).text == '{"rows": 5}\n'


def test_an_execution_that_is_not_found_decides_nothing(runner: StepFunctionRunner, asked: JobRequest) -> None:
    with pytest.raises(UnavailableError, match="ExecutionDoesNotExist"):
        runner.check(asked, EXECUTION)

"""Job runs of EMR Serverless: what is sent, what each state means."""

from typing import Any

import pytest

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.emr_serverless import EmrServerlessRunner
from interlock.model.errors import JobStartError, UnavailableError
from interlock.model.job_configs import EmrServerlessConfig
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.jobs.aws.moto_services import ROLE, Aws, refuse, respond
from tests.jobs.command.trials import request

SPARK = {"sparkSubmit": {"entryPoint": "s3://etl/gold.py", "entryPointArguments": ["2026-03-02"]}}
HIVE = {"hive": {"query": "s3://etl/gold.sql"}}
CONFIG = EmrServerlessConfig(application_id="a", execution_role_arn=ROLE, job_driver=SPARK)


@pytest.fixture
def runner(clients: AwsClients) -> EmrServerlessRunner:
    return EmrServerlessRunner(clients)


@pytest.fixture
def application(aws: Aws) -> str:
    return aws.emr_application()


@pytest.fixture
def asked(application: str) -> JobRequest:
    return request(applicationId=application, executionRoleArn=ROLE, jobDriver=SPARK)


@pytest.mark.parametrize("driver", [SPARK, HIVE])
def test_a_start_carries_the_run_id_as_its_token(
    aws: Aws, runner: EmrServerlessRunner, application: str, driver: dict[str, Any]
) -> None:
    port: JobRunner = runner
    started = port.start(request(applicationId=application, executionRoleArn=ROLE, jobDriver=driver))
    (run,) = aws.emr_job_runs(application)
    assert started == JobStarted(job_id=run.id)
    assert (run.client_token, run.name, run.execution_role_arn) == ("run-1", "gold 2026-03-02", ROLE)
    assert run.job_driver == driver


def test_name_overrides_and_timeout_are_the_configs(aws: Aws, runner: EmrServerlessRunner, application: str) -> None:
    overrides = {"monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": "s3://logs/"}}}
    more = {"jobName": "gold etl", "configurationOverrides": overrides, "timeoutMinutes": 30}
    runner.start(request(applicationId=application, executionRoleArn=ROLE, jobDriver=SPARK, **more))
    (run,) = aws.emr_job_runs(application)
    assert (run.name, run.configuration_overrides, run.execution_timeout_minutes) == ("gold etl", overrides, 30)


def test_a_long_run_id_still_names_one_run(aws: Aws, runner: EmrServerlessRunner, application: str) -> None:
    for end in "ab":
        config = {"applicationId": application, "executionRoleArn": ROLE, "jobDriver": SPARK}
        runner.start(request("x" * 100 + end, **config))
    tokens = {run.client_token for run in aws.emr_job_runs(application)}
    assert len(tokens) == 2
    assert {len(token) for token in tokens} == {64}


@pytest.mark.parametrize(
    ("code", "status", "permanent"),
    [
        ("ResourceNotFoundException", 404, True),
        ("ValidationException", 400, True),
        ("AccessDeniedException", 403, True),
        ("ConflictException", 409, False),
        ("ServiceQuotaExceededException", 402, False),
        ("ThrottlingException", 429, False),
    ],
)
def test_a_start_that_is_refused(
    clients: AwsClients, runner: EmrServerlessRunner, asked: JobRequest, code: str, status: int, permanent: bool
) -> None:
    refuse(clients.starting("emr-serverless", CONFIG), "StartJobRun", code, status=status)
    with pytest.raises(JobStartError, match=code) as caught:
        runner.start(asked)
    assert caught.value.permanent is permanent


def test_a_lost_start_is_made_again_with_the_same_token(
    aws: Aws, runner: EmrServerlessRunner, application: str, asked: JobRequest
) -> None:
    first = runner.start(asked)
    assert runner.recover(asked) is Recovery.START_AGAIN
    assert runner.start(asked) == first
    assert len(aws.emr_job_runs(application)) == 1


@pytest.mark.parametrize(
    ("said", "seen", "category"),
    [
        *[((state, None, 0), JobState.RUNNING, None) for state in ("SUBMITTED", "PENDING", "SCHEDULED", "QUEUED")],
        *[((state, None, 0), JobState.RUNNING, None) for state in ("RUNNING", "CANCELLING", "SOMETHING_NEW")],
        (("SUCCESS", None, 0), JobState.SUCCEEDED, None),
        (("FAILED", "AnalysisException: no such column", 0), JobState.FAILED, FailureCategory.PERMANENT),
        (("FAILED", "Insufficient capacity in the zone", 0), JobState.FAILED, FailureCategory.TRANSIENT),
        (("CANCELLED", None, 0), JobState.FAILED, FailureCategory.TRANSIENT),
        (("CANCELLED", "too long", 720 * 60), JobState.TIMED_OUT, FailureCategory.TIMEOUT),
        (("FAILED", "too long", 720 * 60), JobState.TIMED_OUT, FailureCategory.TIMEOUT),
    ],
)
def test_what_a_state_means(
    aws: Aws,
    runner: EmrServerlessRunner,
    application: str,
    asked: JobRequest,
    said: tuple[str, str | None, int],
    seen: JobState,
    category: FailureCategory | None,
) -> None:
    started = runner.start(asked)
    (run,) = aws.emr_job_runs(application)
    state, details, run.total_execution_duration_seconds = said
    run.state, run.state_details = state, details
    status = runner.check(asked, started.job_id)
    assert (status.state, status.category) == (seen, category)
    if category is None:
        assert status == JobStatus(state=seen)
    else:
        assert status.error.startswith(f"EMR Serverless says {state}" + (f": {details}" if details else ""))


def test_a_job_run_is_cancelled(aws: Aws, runner: EmrServerlessRunner, application: str, asked: JobRequest) -> None:
    started = runner.start(asked)
    aws.emr_job_runs(application)[0].state = "RUNNING"
    assert runner.stop(asked, started.job_id) is JobStop.REQUESTED
    assert runner.check(asked, started.job_id).error == "EMR Serverless says CANCELLED"
    assert runner.stop(asked, started.job_id) is JobStop.ENDED


def test_the_output_is_a_link_to_the_dashboard(
    aws: Aws, clients: AwsClients, runner: EmrServerlessRunner, application: str, asked: JobRequest
) -> None:
    started = runner.start(asked)
    emr = clients.reading("emr-serverless", CONFIG)
    undo = refuse(emr, "GetDashboardForJobRun", "ValidationException")
    (run,) = aws.emr_job_runs(application)
    run.state = "RUNNING"
    early = runner.output(asked, started.job_id)
    assert (early.text, early.complete, early.link) == ("", False, runner.link(asked, started.job_id))
    undo()
    respond(emr, "GetDashboardForJobRun", {"url": "https://p-1.emrappui-prod.us-east-1.amazonaws.com/?token=x"})
    run.state, run.state_details = "FAILED", "exit 1"
    late = runner.output(asked, started.job_id)
    assert (late.text, late.complete) == ("FAILED: exit 1\n", True)
    assert late.link.startswith("https://p-1.emrappui-prod")
    assert runner.output(asked, started.job_id, offset=late.next_offset).text == ""


def test_a_service_that_does_not_answer_ends_no_job(
    clients: AwsClients, runner: EmrServerlessRunner, asked: JobRequest
) -> None:
    refuse(clients.reading("emr-serverless", CONFIG), "GetJobRun", "InternalServerException", status=500)
    with pytest.raises(UnavailableError):
        runner.check(asked, "job-1")

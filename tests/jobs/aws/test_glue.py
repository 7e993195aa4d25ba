"""Glue jobs: what is sent, what each state means, and when a success is believed."""

from datetime import timedelta
from typing import Any

import pytest

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.glue import GRACE, GlueRunner
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.job_configs import GlueConfig
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.aws.moto_services import Aws, refuse
from tests.jobs.command.trials import request

ETL = request(jobName="etl")
CONFIG = GlueConfig(job_name="etl")
LOGS = "test/log"  # what moto says in place of /aws-glue/jobs


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def runner(aws: Aws, clients: AwsClients, clock: ManualClock) -> GlueRunner:
    aws.glue_job("etl")
    return GlueRunner(clients, clock)


def ended(aws: Aws, clock: ManualClock, state: str, error: str = "") -> Any:
    """The latest job run has just ended."""
    run = aws.glue_runs("etl")[-1]
    run.status = state
    run.completed_on = clock.now()
    if error:
        described = run.as_dict
        run.as_dict = lambda: {**described(), "ErrorMessage": error}
    return run


def test_a_start_says_what_it_is_for(aws: Aws, runner: GlueRunner) -> None:
    port: JobRunner = runner
    arguments = {"--bucket": "silver", "--rows": 5, "--full": True, "--par_day": "mine", "--interlock_run_id": "mine"}
    key = RunKey("gold", "stream", "2026-03-02T07")
    config = {
        "jobName": "etl",
        "arguments": arguments,
        "workerType": "G.2X",
        "numberOfWorkers": "7",
        "timeoutMinutes": 90,
    }
    started = port.start(JobRequest(key=key, attempt=1, run_id="run-7", config=config))
    (run,) = aws.glue_runs("etl")
    assert started == JobStarted(job_id=run.job_run_id)
    assert run.arguments == {
        "--bucket": "silver",
        "--rows": "5",
        "--full": "true",
        "--par_day": "20260302",
        "--par_hour": "07",
        "--interlock_run_id": "run-7",
    }
    assert (run.worker_type, run.number_of_workers, run.timeout) == ("G.2X", 7, 90)


def test_a_daily_run_has_no_hour_and_the_jobs_own_workers(aws: Aws, runner: GlueRunner) -> None:
    runner.start(ETL)
    (run,) = aws.glue_runs("etl")
    assert run.arguments == {"--par_day": "20260302", "--interlock_run_id": "run-1"}
    assert run.timeout is None


def test_a_job_that_is_not_there_and_one_that_is_busy(aws: Aws, runner: GlueRunner) -> None:
    with pytest.raises(JobStartError, match="Glue job nothing: EntityNotFoundException") as caught:
        runner.start(request(jobName="nothing"))
    assert caught.value.permanent
    aws.glue_job("single", concurrent=1)
    runner.start(request(jobName="single"))
    with pytest.raises(JobStartError, match="ConcurrentRunsExceededException") as caught:
        runner.start(request("run-2", jobName="single"))
    assert not caught.value.permanent


@pytest.mark.parametrize(
    ("config", "word"),
    [({}, "jobName"), ({"jobName": "etl", "workers": 3}, "workers"), ({"jobName": "etl", "numberOfWorkers": 0}, "1")],
)
def test_a_config_that_cannot_work_is_refused(runner: GlueRunner, config: dict[str, Any], word: str) -> None:
    with pytest.raises(JobStartError, match=word) as caught:
        runner.start(request(**config))
    assert caught.value.permanent


def test_a_lost_start_is_found_by_its_run_id(aws: Aws, runner: GlueRunner) -> None:
    for number in range(3):
        runner.start(request(f"run-{number}", jobName="etl"))
    ids = [run.job_run_id for run in aws.glue_runs("etl")]
    assert runner.recover(request("run-1", jobName="etl")) == JobStarted(job_id=ids[1])
    assert runner.recover(request("run-9", jobName="etl")) is Recovery.START_AGAIN
    assert runner.recover(request("run-1", jobName="nothing")) is Recovery.START_AGAIN


def test_a_lost_start_is_not_searched_for_forever(
    aws: Aws, runner: GlueRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.jobs.aws.recovery.SEARCHED", 4)
    monkeypatch.setattr("interlock.jobs.aws.glue._PAGE", 2)
    for number in range(5):
        runner.start(request(f"run-{number}", jobName="etl"))
        if number < 4:
            aws.glue_runs("etl")[-1].status = "FAILED"
    assert isinstance(runner.recover(request("run-4", jobName="etl")), JobStarted)
    assert runner.recover(request("run-9", jobName="etl")) is Recovery.UNDECIDABLE


def test_a_search_that_is_refused_decides_nothing(clients: AwsClients, runner: GlueRunner) -> None:
    refuse(clients.reading("glue", CONFIG), "GetJobRuns", "AccessDeniedException")
    with pytest.raises(UnavailableError, match="AccessDenied"):
        runner.recover(ETL)


@pytest.mark.parametrize("state", ["STARTING", "RUNNING", "STOPPING", "WAITING", "SOMETHING_NEW"])
def test_a_job_goes_on(aws: Aws, runner: GlueRunner, clock: ManualClock, state: str) -> None:
    started = runner.start(ETL)
    ended(aws, clock, state)
    assert runner.check(ETL, started.job_id) == JobStatus(state=JobState.RUNNING)


@pytest.mark.parametrize(
    ("state", "error", "seen", "category"),
    [
        ("FAILED", "AnalysisException: no such column", JobState.FAILED, FailureCategory.PERMANENT),
        ("FAILED", "", JobState.FAILED, FailureCategory.PERMANENT),
        ("FAILED", "ExecutorLostFailure (executor 2)", JobState.FAILED, FailureCategory.TRANSIENT),
        ("ERROR", "internal", JobState.FAILED, FailureCategory.TRANSIENT),
        ("STOPPED", "", JobState.FAILED, FailureCategory.TRANSIENT),
        ("EXPIRED", "", JobState.FAILED, FailureCategory.TRANSIENT),
        ("TIMEOUT", "", JobState.TIMED_OUT, FailureCategory.TIMEOUT),
    ],
)
def test_a_job_ends(
    aws: Aws,
    runner: GlueRunner,
    clock: ManualClock,
    state: str,
    error: str,
    seen: JobState,
    category: FailureCategory,
) -> None:
    started = runner.start(ETL)
    ended(aws, clock, state, error)
    status = runner.check(ETL, started.job_id)
    assert (status.state, status.category) == (seen, category)
    assert status.error == f"Glue says {state}" + (f": {error}" if error else "")


# ------------------------------------------------------------------------------------------------ false successes


def test_a_success_is_believed_when_its_logs_had_the_time_to_appear(
    aws: Aws, runner: GlueRunner, clock: ManualClock
) -> None:
    started = runner.start(ETL)
    run = ended(aws, clock, "SUCCEEDED")
    aws.log(f"{LOGS}/output", run.job_run_id, clock.now(), "done")
    waits = runner.check(ETL, started.job_id)
    assert waits.state is JobState.RUNNING
    assert waits.ask_again is not None
    assert waits.ask_again < GRACE
    clock.advance(seconds=GRACE.total_seconds())
    assert runner.check(ETL, started.job_id) == JobStatus(state=JobState.SUCCEEDED)


def test_a_failure_in_the_logs_counts_as_soon_as_it_is_seen(aws: Aws, runner: GlueRunner, clock: ManualClock) -> None:
    started = runner.start(ETL)
    run = ended(aws, clock, "SUCCEEDED")
    assert runner.check(ETL, started.job_id).state is JobState.RUNNING
    clock.advance(seconds=5)
    stream = f"{run.job_run_id}-job-insights-rca-driver"
    aws.log(
        f"{LOGS}/logs-v2", stream, clock.now(), '{"Event": "GlueExceptionAnalysisJobFailed", "Failure Reason": "x"}'
    )
    status = runner.check(ETL, started.job_id)
    assert (status.state, status.category) == (JobState.FAILED, FailureCategory.PERMANENT)
    assert status.error == "Glue says SUCCEEDED, its exception analysis says: x"


def test_whose_fault_a_false_success_is(aws: Aws, runner: GlueRunner, clock: ManualClock) -> None:
    started = runner.start(ETL)
    run = ended(aws, clock, "SUCCEEDED")
    line = "26/03/02 08:00:01 ERROR App: org.apache.spark.SparkException: lost executor 3"
    aws.log(f"{LOGS}/output", run.job_run_id, clock.now(), line)
    status = runner.check(ETL, started.job_id)
    assert (status.state, status.category) == (JobState.FAILED, FailureCategory.TRANSIENT)
    assert "its driver log says" in status.error


def test_a_success_that_cannot_be_checked_is_one_with_a_warning(
    aws: Aws, runner: GlueRunner, clock: ManualClock
) -> None:
    started = runner.start(ETL)
    ended(aws, clock, "SUCCEEDED")
    clock.advance(minutes=1)
    status = runner.check(ETL, started.job_id)
    assert (status.state, status.error) == (JobState.SUCCEEDED, "")
    assert "could not be checked" in status.warning


def test_the_check_can_be_switched_off(aws: Aws, clients: AwsClients, runner: GlueRunner, clock: ManualClock) -> None:
    asked = request(jobName="etl", falseSuccessCheck=False)
    started = runner.start(asked)
    ended(aws, clock, "SUCCEEDED")
    refuse(clients.beside("logs", CONFIG), "FilterLogEvents", "AccessDeniedException")
    assert runner.check(asked, started.job_id) == JobStatus(state=JobState.SUCCEEDED)


# --------------------------------------------------------------------------------------------- stop, output, link


def test_a_job_is_stopped(aws: Aws, runner: GlueRunner, clock: ManualClock) -> None:
    started = runner.start(ETL)
    assert runner.stop(ETL, started.job_id) is JobStop.REQUESTED
    assert runner.check(ETL, started.job_id).error == "Glue says STOPPED"
    assert runner.stop(ETL, started.job_id) is JobStop.ENDED


def test_what_glue_does_not_stop_is_said(
    aws: Aws, clients: AwsClients, runner: GlueRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = runner.start(ETL)
    detail = {"ErrorCode": "InternalServiceException", "ErrorMessage": "not now"}
    glue = clients.reading("glue", CONFIG)
    monkeypatch.setattr(glue, "batch_stop_job_run", lambda **_: {"Errors": [{"ErrorDetail": detail}]})
    with pytest.raises(JobStopError, match="not now; stop it in the console"):
        runner.stop(ETL, started.job_id)


def test_the_output_is_the_drivers(aws: Aws, runner: GlueRunner, clock: ManualClock) -> None:
    started = runner.start(ETL)
    first = runner.output(ETL, started.job_id)
    assert (first.text, first.complete) == ("", False)
    assert first.link == runner.link(ETL, started.job_id)
    aws.log(f"{LOGS}/error", started.job_id, clock.now(), "-XX:OnOutOfMemoryError")
    assert runner.output(ETL, started.job_id).text == "-XX:OnOutOfMemoryError\n"
    aws.log(f"{LOGS}/output", started.job_id, clock.now(), "hello")
    seen = runner.output(ETL, started.job_id)
    assert (seen.text, seen.complete) == ("hello\n", False)
    ended(aws, clock, "FAILED")
    clock.advance(seconds=1)
    aws.log(f"{LOGS}/output", started.job_id, clock.now(), "bye")
    rest = runner.output(ETL, started.job_id, offset=seen.next_offset)
    assert (rest.text, rest.complete) == ("bye\n", False)
    clock.advance(minutes=1)
    end = runner.output(ETL, started.job_id, offset=rest.next_offset)
    assert (end.text, end.complete) == ("", True)


@pytest.mark.parametrize(
    ("region", "address"),
    [
        ("eu-west-1", "https://eu-west-1.console.aws.amazon.com/gluestudio/home?region=eu-west-1#/job/a%2Fb/run/jr_1"),
        ("cn-north-1", "https://cn-north-1.console.amazonaws.cn/gluestudio/home?region=cn-north-1#/job/a%2Fb/run/jr_1"),
        (
            "us-gov-west-1",
            "https://us-gov-west-1.console.amazonaws-us-gov.com/gluestudio/home?region=us-gov-west-1#/job/a%2Fb/run/jr_1",
        ),
    ],
)
def test_where_a_person_looks(runner: GlueRunner, region: str, address: str) -> None:
    assert runner.link(request(jobName="a/b", region=region), "jr_1") == address


def test_a_service_that_does_not_answer_ends_no_job(clients: AwsClients, runner: GlueRunner) -> None:
    started = runner.start(ETL)
    refuse(clients.reading("glue", CONFIG), "GetJobRun", "InternalServiceException", status=500)
    with pytest.raises(UnavailableError, match="InternalServiceException"):
        runner.check(ETL, started.job_id)


def test_the_grace_is_short() -> None:
    assert timedelta(seconds=10) <= GRACE <= timedelta(minutes=1)

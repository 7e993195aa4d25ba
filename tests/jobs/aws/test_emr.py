"""Steps of an EMR cluster: what is sent, what each state means, what they wrote."""

import gzip
from typing import Any

import pytest

from interlock.jobs.aws.clients import AwsClients
from interlock.jobs.aws.emr import EmrRunner
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.job_configs import EmrConfig
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.aws.moto_services import Aws, refuse
from tests.jobs.command.trials import request

ARGUMENTS = ["spark-submit", "s3://etl/gold.py", "2026-03-02"]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def runner(clients: AwsClients, clock: ManualClock) -> EmrRunner:
    return EmrRunner(clients, clock)


@pytest.fixture
def cluster(aws: Aws) -> str:
    return aws.emr_cluster()


@pytest.fixture
def asked(cluster: str) -> JobRequest:
    return request(clusterId=cluster, arguments=ARGUMENTS)


def test_a_step_is_named_after_its_run(aws: Aws, runner: EmrRunner, cluster: str, asked: JobRequest) -> None:
    port: JobRunner = runner
    started = port.start(asked)
    (step,) = aws.emr_steps(cluster)
    assert started == JobStarted(job_id=step.id)
    assert (step.name, step.jar, step.args) == ("gold run-1", "command-runner.jar", ARGUMENTS)
    assert step.action_on_failure == "CONTINUE"


def test_name_jar_and_action_are_the_configs(aws: Aws, runner: EmrRunner, cluster: str) -> None:
    more = {"stepName": "n" * 300, "jar": "s3://etl/a.jar", "actionOnFailure": "CANCEL_AND_WAIT"}
    runner.start(request(clusterId=cluster, arguments=["a"], **more))
    (step,) = aws.emr_steps(cluster)
    assert len(step.name) == 256
    assert step.name.endswith("n run-1")
    assert (step.jar, step.action_on_failure) == ("s3://etl/a.jar", "CANCEL_AND_WAIT")


@pytest.mark.parametrize(
    ("code", "message", "permanent"),
    [
        ("ValidationException", "A job flow that is shutting down, terminated, or finished may not be modified.", True),
        ("InvalidRequestException", "Cluster id 'j-1' is not valid.", True),
        ("ValidationException", "Maximum number of active steps(State = 'Running', 'Pending') exceeded.", False),
        ("ThrottlingException", "Rate exceeded", False),
    ],
)
def test_a_cluster_that_takes_no_steps(
    clients: AwsClients, runner: EmrRunner, asked: JobRequest, code: str, message: str, permanent: bool
) -> None:
    config = EmrConfig(cluster_id="j", arguments=["a"])
    refuse(clients.starting("emr", config), "AddJobFlowSteps", code, message)
    with pytest.raises(JobStartError, match=code) as caught:
        runner.start(asked)
    assert caught.value.permanent is permanent


def test_a_lost_start_is_found_by_its_name(aws: Aws, runner: EmrRunner, cluster: str, asked: JobRequest) -> None:
    assert runner.recover(asked) is Recovery.START_AGAIN
    for number in range(3):
        runner.start(request(f"run-{number}", clusterId=cluster, arguments=ARGUMENTS))
    assert runner.recover(asked) == JobStarted(job_id=aws.emr_steps(cluster)[1].id)
    assert runner.recover(request("run-9", clusterId=cluster, arguments=ARGUMENTS)) is Recovery.START_AGAIN


def test_a_lost_start_is_not_searched_for_forever(
    runner: EmrRunner, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.jobs.aws.recovery.SEARCHED", 2)
    for number in range(4):
        runner.start(request(f"run-{number}", clusterId=cluster, arguments=ARGUMENTS))
    assert runner.recover(request("run-9", clusterId=cluster, arguments=ARGUMENTS)) is Recovery.UNDECIDABLE


def test_in_a_cluster_that_is_not_there_nothing_was_started(
    clients: AwsClients, runner: EmrRunner, asked: JobRequest
) -> None:
    emr = clients.reading("emr", EmrConfig(cluster_id="j", arguments=["a"]))
    undo = refuse(emr, "ListSteps", "InvalidRequestException", "Cluster id 'j-1' is not valid.")
    assert runner.recover(asked) is Recovery.START_AGAIN
    undo()
    refuse(emr, "ListSteps", "AccessDeniedException")
    with pytest.raises(UnavailableError):
        runner.recover(asked)


@pytest.mark.parametrize(
    ("state", "reason", "seen", "category"),
    [
        ("PENDING", None, JobState.RUNNING, None),
        ("RUNNING", None, JobState.RUNNING, None),
        ("CANCEL_PENDING", None, JobState.RUNNING, None),
        ("SOMETHING_NEW", None, JobState.RUNNING, None),
        ("COMPLETED", None, JobState.SUCCEEDED, None),
        ("FAILED", "Exit code 1", JobState.FAILED, FailureCategory.PERMANENT),
        ("FAILED", "lost executor 3", JobState.FAILED, FailureCategory.TRANSIENT),
        ("CANCELLED", None, JobState.FAILED, FailureCategory.TRANSIENT),
        ("INTERRUPTED", "the cluster was terminated", JobState.FAILED, FailureCategory.TRANSIENT),
    ],
)
def test_what_a_state_means(
    aws: Aws,
    runner: EmrRunner,
    cluster: str,
    asked: JobRequest,
    state: str,
    reason: str | None,
    seen: JobState,
    category: FailureCategory | None,
) -> None:
    started = runner.start(asked)
    (step,) = aws.emr_steps(cluster)
    step.state, step.last_state_change_reason = state, reason
    status = runner.check(asked, started.job_id)
    assert (status.state, status.category) == (seen, category)
    if seen is JobState.FAILED:
        assert status.error == f"EMR says {state}" + (f": {reason}" if reason else "")
    else:
        assert status == JobStatus(state=seen)


def test_a_failure_names_its_log_file(
    clients: AwsClients, runner: EmrRunner, asked: JobRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = {"Reason": "Unknown Error.", "Message": "exit 1", "LogFile": "s3://emr-logs/j/steps/s/stderr.gz"}
    step = {"Id": "s-1", "Name": "gold run-1", "Status": {"State": "FAILED", "FailureDetails": details}}
    emr = clients.reading("emr", EmrConfig(cluster_id="j", arguments=["a"]))
    monkeypatch.setattr(emr, "describe_step", lambda **_: {"Step": step})
    error = runner.check(asked, "s-1").error
    assert error == "EMR says FAILED: Unknown Error. exit 1 (log: s3://emr-logs/j/steps/s/stderr.gz)"


def test_a_step_is_cancelled(aws: Aws, runner: EmrRunner, asked: JobRequest) -> None:
    started = runner.start(asked)
    assert runner.stop(asked, started.job_id) is JobStop.REQUESTED
    assert runner.check(asked, started.job_id).error == "EMR says CANCELLED"
    assert runner.stop(asked, started.job_id) is JobStop.ENDED


def test_what_emr_does_not_cancel_is_said(
    clients: AwsClients, runner: EmrRunner, asked: JobRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = runner.start(asked)
    emr = clients.reading("emr", EmrConfig(cluster_id="j", arguments=["a"]))
    answer = {"CancelStepsInfoList": [{"StepId": "s", "Status": "FAILED", "Reason": "too old a release"}]}
    monkeypatch.setattr(emr, "cancel_steps", lambda **_: answer)
    with pytest.raises(JobStopError, match="too old a release; end it on the cluster"):
        runner.stop(asked, started.job_id)


# ------------------------------------------------------------------------------------------------------------ output


class Folder:
    """The log folder of a cluster."""

    def __init__(self, aws: Aws, cluster: str, step: str) -> None:
        self._s3 = aws.client("s3")
        self._s3.create_bucket(Bucket="emr-logs")
        self._prefix = f"clusters/{cluster}/steps/{step}"

    def put(self, name: str, text: str) -> None:
        self._s3.put_object(Bucket="emr-logs", Key=f"{self._prefix}/{name}.gz", Body=gzip.compress(text.encode()))


def test_the_output_comes_from_the_log_folder(
    aws: Aws, runner: EmrRunner, clock: ManualClock, cluster: str, asked: JobRequest
) -> None:
    job = runner.start(asked).job_id
    folder = Folder(aws, cluster, job)
    empty = runner.output(asked, job)
    assert (empty.text, empty.next_offset, empty.complete) == ("", 0, False)
    folder.put("controller", "INFO started\n")
    assert runner.output(asked, job).text == "INFO started\n"
    folder.put("stderr", "26/03/02 WARN\n")
    first = runner.output(asked, job)
    assert first.text == "26/03/02 WARN\n"
    folder.put("stdout", "rows: 5\n")
    assert runner.output(asked, job).text == "rows: 5\n"
    folder.put("stderr", "26/03/02 WARN\nmore\n")
    assert runner.output(asked, job, offset=first.next_offset).text == "more\n"
    assert first.link == runner.link(asked, job)


def test_the_output_of_a_failure_is_what_it_wrote_as_errors(
    aws: Aws, runner: EmrRunner, clock: ManualClock, cluster: str, asked: JobRequest
) -> None:
    job = runner.start(asked).job_id
    folder = Folder(aws, cluster, job)
    folder.put("stdout", "rows: 5\n")
    folder.put("stderr", "Traceback\n")
    (step,) = aws.emr_steps(cluster)
    step.state, step.end_date_time = "FAILED", clock.now()
    early = runner.output(asked, job)
    assert (early.text, early.complete) == ("Traceback\n", False)
    clock.advance(minutes=10)
    late = runner.output(asked, job, offset=early.next_offset)
    assert (late.text, late.complete) == ("", True)


def test_a_cluster_without_a_log_folder_says_so(aws: Aws, clients: AwsClients, clock: ManualClock) -> None:
    asked = request(clusterId=aws.emr_cluster(logs=""), arguments=ARGUMENTS)
    runner = EmrRunner(clients, clock)
    output = runner.output(asked, runner.start(asked).job_id)
    assert "has no log folder" in output.text
    assert output.complete


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"arguments": ["a"]}, "clusterId"),
        ({"clusterId": "j-1"}, "arguments"),
        ({"clusterId": "j-1", "arguments": []}, "arguments"),
        ({"clusterId": "j-1", "arguments": ["a"], "actionOnFailure": "EXPLODE"}, "actionOnFailure"),
    ],
)
def test_a_config_that_cannot_work_is_refused(runner: EmrRunner, config: dict[str, Any], word: str) -> None:
    with pytest.raises(JobStartError, match=word) as caught:
        runner.start(request(**config))
    assert caught.value.permanent

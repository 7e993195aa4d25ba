"""Runs of Databricks jobs: what is sent, what each state and answer means, and that a run is never started twice."""

from collections.abc import Iterator
from typing import Any

import pytest

from interlock.jobs.databricks.target import CODES, LIFE_CYCLE, RESULTS, TYPES, DatabricksRunner, idempotency_token
from interlock.jobs.rest import RestClient
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.jobs.api_server import Reply
from tests.jobs.databricks.server import CLIENT, SECRET, TOKEN, FakeDatabricks
from tests.jobs.loopback import unused_port

PERMANENT, TRANSIENT, TIMEOUT = FailureCategory.PERMANENT, FailureCategory.TRANSIENT, FailureCategory.TIMEOUT
PRINCIPAL = {"clientId": CLIENT, "clientSecret": SECRET}
STARTED = JobStarted(job_id="500")


@pytest.fixture
def databricks() -> Iterator[FakeDatabricks]:
    with FakeDatabricks() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def runner(pauses: list[float]) -> Iterator[DatabricksRunner]:
    made = DatabricksRunner(RestClient(True, pause=pauses.append))
    yield made
    made.close()


def asked(databricks: FakeDatabricks, run_id: str = "run-1", **changes: Any) -> JobRequest:
    config = {"host": databricks.url, "auth": {"token": TOKEN}, **({"jobId": 11} | changes)}
    config = {name: value for name, value in config.items() if value is not None}
    return JobRequest(key=RunKey("gold", "cron", "2026-03-02"), attempt=1, run_id=run_id, config=config)


# --------------------------------------------------------------------------------------------------------- starting


def test_a_job_is_run_by_its_id(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    port: JobRunner = runner
    request = asked(databricks, jobId="11", parameters={"day": "2026-03-02", "n": 5, "list": [1]})
    assert port.start(request) == STARTED
    assert databricks.runs[500]["asked"] == {
        "job_id": 11,
        "idempotency_token": "run-1",
        "job_parameters": {"day": "2026-03-02", "n": "5", "list": "[1]"},
    }
    assert port.check(request, "500") == JobStatus(state=JobState.RUNNING)


def test_a_job_is_run_by_its_name(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    databricks.page_size = 1
    databricks.jobs.insert(0, {"job_id": 10, "settings": {"name": "Orders"}})  # the filter pays no attention to case
    runner.start(asked(databricks, jobId=None, jobName="orders"))
    assert databricks.runs[500]["job_id"] == 11


@pytest.mark.parametrize(
    ("jobs", "words"),
    [([], "has no job named 'orders': check jobName"), ([11, 12], "has 2 jobs named 'orders': give jobId")],
)
def test_a_name_must_be_that_of_one_job(
    runner: DatabricksRunner, databricks: FakeDatabricks, jobs: list[int], words: str
) -> None:
    databricks.jobs = [{"job_id": number, "settings": {"name": "orders"}} for number in jobs]
    with pytest.raises(JobStartError, match=words) as caught:
        runner.start(asked(databricks, jobId=None, jobName="orders"))
    assert caught.value.permanent


def test_a_run_is_submitted_whole(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    submit = {"tasks": [{"task_key": "a", "notebook_task": {"notebook_path": "/x"}}], "idempotency_token": "theirs"}
    runner.start(asked(databricks, jobId=None, submit=submit))
    assert databricks.runs[500]["asked"] == {
        "run_name": "gold 2026-03-02",
        "tasks": submit["tasks"],
        "idempotency_token": "run-1",
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"jobName": "orders"}, "one of jobId, jobName and submit"),
        ({"jobId": None}, "one of jobId, jobName and submit"),
        ({"jobId": "orders"}, "for a name, give jobName"),
    ],
)
def test_a_config_that_cannot_work_is_refused(
    runner: DatabricksRunner, databricks: FakeDatabricks, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(JobStartError, match=words) as caught:
        runner.start(asked(databricks, **changes))
    assert caught.value.permanent


def test_a_second_start_is_the_same_run(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    databricks.lose_next_post = True
    with pytest.raises(UnavailableError):
        runner.start(asked(databricks))
    assert runner.recover(asked(databricks)) is Recovery.START_AGAIN
    assert runner.start(asked(databricks)) == runner.start(asked(databricks)) == STARTED
    assert len(databricks.runs) == 1


def test_a_long_run_id_has_a_short_token() -> None:
    assert idempotency_token("x" * 64) == "x" * 64
    assert len(idempotency_token("x" * 65)) == 64


@pytest.mark.parametrize(
    ("code", "error", "permanent"),
    [
        (400, JobStartError, True),
        (403, JobStartError, True),
        (404, JobStartError, True),
        (429, JobStartError, False),
        (503, JobStartError, False),
        (500, UnavailableError, None),
        (504, UnavailableError, None),
    ],
)
def test_what_an_answer_to_a_start_means(
    runner: DatabricksRunner, databricks: FakeDatabricks, code: int, error: type[Exception], permanent: bool | None
) -> None:
    databricks.next_replies = [Reply(code, {"error_code": "X", "message": f"no: {TOKEN}"})]
    with pytest.raises(error, match=rf"{code}.*no: \*\*\*") as caught:
        runner.start(asked(databricks))
    assert getattr(caught.value, "permanent", None) is permanent


def test_a_job_that_does_not_exist_is_refused(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    with pytest.raises(JobStartError, match="Job 99 does not exist") as caught:
        runner.start(asked(databricks, jobId=99))
    assert caught.value.permanent


def test_a_short_retry_after_is_awaited_in_the_call(
    runner: DatabricksRunner, databricks: FakeDatabricks, pauses: list[float]
) -> None:
    limited = {"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "Too many requests"}
    databricks.next_replies = [Reply(429, limited, {"Retry-After": "2"}), Reply(503, limited, {"Retry-After": "0.5"})]
    assert runner.start(asked(databricks)) == STARTED
    assert pauses == [2.0, 0.5]
    databricks.next_replies = [Reply(429, limited, {"Retry-After": "600"})]
    with pytest.raises(JobStartError, match="429 Too Many Requests: Too many requests") as caught:
        runner.start(asked(databricks))
    assert not caught.value.permanent
    databricks.next_replies = [Reply(429, limited, {"Retry-After": "1"})] * 3
    with pytest.raises(JobStartError):
        runner.start(asked(databricks))
    assert pauses == [2.0, 0.5, 1.0, 1.0]


def test_no_connection_and_a_private_address(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    with pytest.raises(JobStartError, match="no connection") as caught:
        runner.start(asked(databricks, host=f"http://127.0.0.1:{unused_port()}"))
    assert not caught.value.permanent
    guarded = DatabricksRunner(RestClient())
    with pytest.raises(JobStartError, match="loopback address"):
        guarded.start(asked(databricks))
    guarded.close()
    assert databricks.calls == []


# ------------------------------------------------------------------------------------------------------------- auth


def test_a_service_principal_has_a_token_that_is_renewed(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    request = asked(databricks, auth=PRINCIPAL)
    runner.start(request)
    runner.check(request, "500")
    assert databricks.logins == 1
    databricks.next_replies = [Reply(401, {"error_code": "UNAUTHENTICATED", "message": "expired"})]
    assert runner.check(request, "500").state is JobState.RUNNING
    assert databricks.logins == 2


def test_a_wrong_secret_is_refused_and_not_repeated(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    with pytest.raises(JobStartError, match="gives no token to the service principal: 401") as caught:
        runner.start(asked(databricks, auth={**PRINCIPAL, "clientSecret": "wrong-secret"}))
    assert caught.value.permanent
    assert "wrong-secret" not in str(caught.value)
    databricks.next_replies = [Reply(500)]
    with pytest.raises(JobStartError) as passing:
        runner.start(asked(databricks, auth=PRINCIPAL))
    assert not passing.value.permanent  # nothing was asked for yet


def test_a_personal_token_is_not_renewed(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    with pytest.raises(JobStartError, match="401"):
        runner.start(asked(databricks, auth={"token": "dapi-wrong"}))
    assert len(databricks.calls) == 1


# --------------------------------------------------------------------------------------------------------- checking


@pytest.mark.parametrize(
    ("life", "result", "state", "category"),
    [
        ("QUEUED", None, JobState.RUNNING, None),
        ("PENDING", None, JobState.RUNNING, None),
        ("RUNNING", None, JobState.RUNNING, None),
        ("TERMINATING", None, JobState.RUNNING, None),
        ("TERMINATING", "SUCCESS", JobState.RUNNING, None),
        ("BLOCKED", None, JobState.RUNNING, None),
        ("WAITING_FOR_RETRY", None, JobState.RUNNING, None),
        ("SKIPPED", None, JobState.FAILED, TRANSIENT),
        ("INTERNAL_ERROR", None, JobState.FAILED, TRANSIENT),
        ("INTERNAL_ERROR", "FAILED", JobState.FAILED, PERMANENT),
        ("TERMINATED", "SUCCESS", JobState.SUCCEEDED, None),
        ("TERMINATED", "SUCCESS_WITH_FAILURES", JobState.SUCCEEDED, None),
        ("TERMINATED", "FAILED", JobState.FAILED, PERMANENT),
        ("TERMINATED", "TIMEDOUT", JobState.TIMED_OUT, TIMEOUT),
        ("TERMINATED", "CANCELED", JobState.FAILED, TRANSIENT),
        ("TERMINATED", "MAXIMUM_CONCURRENT_RUNS_REACHED", JobState.FAILED, TRANSIENT),
        ("TERMINATED", "UPSTREAM_CANCELED", JobState.FAILED, TRANSIENT),
        ("TERMINATED", "UPSTREAM_FAILED", JobState.FAILED, PERMANENT),
        ("TERMINATED", "EXCLUDED", JobState.FAILED, PERMANENT),
        ("TERMINATED", "DISABLED", JobState.FAILED, PERMANENT),
    ],
)
def test_states_and_classification(
    runner: DatabricksRunner,
    databricks: FakeDatabricks,
    life: str,
    result: str | None,
    state: JobState,
    category: FailureCategory | None,
) -> None:
    runner.start(asked(databricks))
    databricks.end(life, result)
    status = runner.check(asked(databricks), "500")
    assert (status.state, status.category) == (state, category)
    assert bool(status.error) is (state in (JobState.FAILED, JobState.TIMED_OUT))


def test_the_tables_are_tested_whole() -> None:
    assert {*LIFE_CYCLE, "TERMINATED"} == {
        *("QUEUED", "PENDING", "RUNNING", "TERMINATING", "TERMINATED", "SKIPPED", "INTERNAL_ERROR", "BLOCKED"),
        "WAITING_FOR_RETRY",
    }
    assert len(RESULTS) == 10


@pytest.mark.parametrize(
    ("code", "type_", "category"),
    [
        ("RUN_EXECUTION_ERROR", "CLIENT_ERROR", PERMANENT),
        ("LIBRARY_INSTALLATION_ERROR", "CLIENT_ERROR", PERMANENT),
        ("INVALID_RUN_CONFIGURATION", "CLIENT_ERROR", PERMANENT),
        ("SOMETHING_NEW", "INTERNAL_ERROR", TRANSIENT),
        ("SOMETHING_NEW", "CLOUD_FAILURE", TRANSIENT),
        ("SOMETHING_NEW", "SOMETHING_NEW", PERMANENT),
        *((code, "CLIENT_ERROR", TRANSIENT) for code in CODES),
    ],
)
def test_a_failure_is_told_apart_by_its_termination(
    runner: DatabricksRunner, databricks: FakeDatabricks, code: str, type_: str, category: FailureCategory
) -> None:
    runner.start(asked(databricks))
    databricks.end("TERMINATED", "FAILED", status={"termination_details": {"code": code, "type": type_}})
    status = runner.check(asked(databricks), "500")
    assert status.category is category
    assert code in status.error
    assert set(TYPES) == {"INTERNAL_ERROR", "CLOUD_FAILURE", "CLIENT_ERROR"}


def test_a_failure_says_which_task_and_why(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    runner.start(asked(databricks))
    tasks = [
        {"task_key": "load", "run_id": 7, "end_time": 2, "state": {"result_state": "FAILED"}},
        {"task_key": "read", "run_id": 6, "end_time": 1, "state": {"result_state": "SUCCESS"}},
        {"task_key": "send", "run_id": 8, "state": {"life_cycle_state": "BLOCKED"}},
    ]
    databricks.end("TERMINATED", "FAILED", tasks=tasks)
    databricks.runs[500]["state"]["state_message"] = f"Task load failed\nwith {TOKEN}"
    status = runner.check(asked(databricks), "500")
    assert status.error == "the run failed; Task load failed with ***; failed tasks: load"


def test_a_run_that_is_gone_has_failed(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    status = runner.check(asked(databricks), "999")
    assert (status.state, status.category) == (JobState.FAILED, PERMANENT)


@pytest.mark.parametrize(
    "reply", [Reply(500), Reply(429), Reply(401), Reply(200, {"state": {"life_cycle_state": "NEW"}}), Reply(200, b"<")]
)
def test_a_workspace_that_cannot_be_asked_is_not_the_end_of_the_job(
    runner: DatabricksRunner, databricks: FakeDatabricks, reply: Reply
) -> None:
    runner.start(asked(databricks))
    databricks.next_replies = [reply]
    with pytest.raises(UnavailableError):
        runner.check(asked(databricks), "500")


# ------------------------------------------------------------------------------------------------------ stop and look


def test_a_run_is_cancelled(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    runner.start(asked(databricks))
    assert runner.stop(asked(databricks), "500") is JobStop.REQUESTED
    assert runner.check(asked(databricks), "500").category is TRANSIENT
    assert runner.stop(asked(databricks), "500") is JobStop.ENDED


@pytest.mark.parametrize(("code", "error"), [(403, JobStopError), (429, UnavailableError), (500, UnavailableError)])
def test_a_run_that_cannot_be_stopped_says_where_to_do_it(
    runner: DatabricksRunner, databricks: FakeDatabricks, code: int, error: type[Exception]
) -> None:
    runner.start(asked(databricks))
    databricks.next_replies = [Reply(200, databricks.runs[500]), Reply(code, {"message": "PERMISSION_DENIED"})]
    with pytest.raises(error, match="does not cancel the run 500"):
        runner.stop(asked(databricks), "500")


def test_output_is_what_the_tasks_left(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    request = asked(databricks)
    runner.start(request)
    read = {"task_key": "read", "run_id": 6, "end_time": 1, "state": {"result_state": "SUCCESS"}}
    load = {"task_key": "load", "run_id": 7, "end_time": 2, "state": {"result_state": "FAILED"}}
    databricks.outputs = {
        6: {"logs": "12 rows\n", "notebook_output": {"result": "ok"}},
        7: {"error": "ValueError: no rows", "error_trace": "line 1\nline 2"},
    }
    databricks.end("RUNNING", tasks=[{"task_key": "load", "run_id": 7}, read])
    first = runner.output(request, "500")
    assert first.text == "==> read (SUCCESS) <==\n12 rows\nok\n"
    assert not first.complete
    assert first.link == f"{databricks.url}/?o=1#job/11/run/500"
    databricks.end("TERMINATED", "FAILED", tasks=[load, read])
    rest = runner.output(request, "500", offset=first.next_offset)
    assert rest.text == "==> load (FAILED) <==\nValueError: no rows\nline 1\nline 2\n"
    assert rest.complete


def test_the_link_is_the_page_of_the_run(runner: DatabricksRunner, databricks: FakeDatabricks) -> None:
    request = asked(databricks, host="adb-1.azuredatabricks.net/")
    assert runner.link(request, "500") == "https://adb-1.azuredatabricks.net/jobs/11/runs/500"
    assert runner.link(asked(databricks, jobId=None, jobName="x"), "5") == f"{databricks.url}/jobs/runs/5"

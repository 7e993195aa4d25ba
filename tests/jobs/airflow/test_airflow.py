"""DAG runs: what is sent, what each state and answer means, and that a run is never created twice."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import pytest

from interlock.jobs.airflow.target import STATES, AirflowRunner, logical_dates
from interlock.jobs.rest import RestClient
from interlock.model.errors import InvalidValueError, JobStartError, JobStopError, UnavailableError
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.conformance.manual_clock import ManualClock
from tests.jobs.airflow.server import PASSWORD, USER, FakeAirflow
from tests.jobs.api_server import Reply
from tests.jobs.loopback import unused_port

JWT = {"type": "jwt", "username": USER, "password": PASSWORD}
BASIC = {"type": "basic", "username": USER, "password": PASSWORD}
STARTED = JobStarted(job_id="run-1")
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
Versions = Literal["v1", "v2"]


@pytest.fixture(params=["v1", "v2"])
def airflow(request: pytest.FixtureRequest) -> Iterator[FakeAirflow]:
    with FakeAirflow(request.param) as server:
        yield server


@pytest.fixture
def airflow3() -> Iterator[FakeAirflow]:
    with FakeAirflow("v2") as server:
        yield server


@pytest.fixture
def runner() -> Iterator[AirflowRunner]:
    made = AirflowRunner(RestClient(True), ManualClock(NOW))
    yield made
    made.close()


def asked(airflow: FakeAirflow, run_id: str = "run-1", attempt: int = 1, **changes: Any) -> JobRequest:
    auth = BASIC if airflow.version == "v1" else JWT
    config = {"url": f"{airflow.url}/", "dagId": "orders", "auth": auth, "conf": {"day": "2026-03-02"}, **changes}
    return JobRequest(key=RunKey("gold", "cron", "2026-03-02T10"), attempt=attempt, run_id=run_id, config=config)


# --------------------------------------------------------------------------------------------------------- starting


def test_a_dag_run_is_created_under_our_id(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    port: JobRunner = runner
    assert port.start(asked(airflow)) == STARTED
    run = airflow.runs["orders", "run-1"]
    assert (run["conf"], run["logical_date"]) == ({"day": "2026-03-02"}, "2026-03-02T10:00:00Z")
    assert run.get("note") == (
        "started by Interlock for gold/cron/2026-03-02T10, attempt 1" if airflow.version == "v2" else None
    )
    assert port.check(asked(airflow), "run-1") == JobStatus(state=JobState.RUNNING)


def test_a_second_start_is_the_same_start(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    assert runner.start(asked(airflow)) == runner.start(asked(airflow)) == STARTED
    assert len(airflow.runs) == 1


def test_a_lost_answer_is_found(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    airflow.lose_next_post = True
    with pytest.raises(UnavailableError):
        runner.start(asked(airflow))
    assert runner.recover(asked(airflow)) == STARTED
    assert len(airflow.runs) == 1


def test_a_start_that_never_arrived_is_made_again(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    assert runner.recover(asked(airflow)) is Recovery.START_AGAIN


@pytest.mark.parametrize(
    ("begins", "now", "date"),
    [
        (None, NOW, "2026-03-02T10:00:00Z"),
        (datetime(2026, 3, 2, 1, tzinfo=UTC), NOW, "2026-03-02T01:00:00Z"),
        # Airflow would not run its tasks before that instant.
        (datetime(2026, 3, 3, 5, tzinfo=UTC), NOW, "2026-03-02T11:59:59Z"),
    ],
)
def test_the_logical_date_is_where_the_period_begins_and_never_to_come(
    airflow3: FakeAirflow, begins: datetime | None, now: datetime, date: str
) -> None:
    own, moved = logical_dates(msgspec.structs.replace(asked(airflow3), begins_at=begins), now)
    assert own == date
    assert moved.startswith(date[:-1])
    assert len(moved) == len("2026-03-02T10:00:00.123456Z")


def test_attempts_and_other_peoples_runs_do_not_collide(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    airflow.runs["orders", "scheduled"] = {"logical_date": "2026-03-02T10:00:00Z", "state": "success"}
    runner.start(asked(airflow))
    runner.start(asked(airflow))  # found again, although its date was moved
    runner.start(asked(airflow, "run-2", attempt=2))
    dates = {key[1]: run["logical_date"] for key, run in airflow.runs.items()}
    assert dates["run-2"] == "2026-03-02T10:00:00.000001Z"
    assert dates["run-1"].startswith("2026-03-02T10:00:00.")
    assert len(set(dates.values())) == 3
    other = logical_dates(asked(airflow, "run-3"), NOW)[1]
    airflow.runs["orders", "by-chance"] = {"logical_date": other, "state": "success"}
    with pytest.raises(JobStartError, match="has other runs of the logical date") as caught:
        runner.start(asked(airflow, "run-3"))
    assert caught.value.permanent


@pytest.mark.parametrize(
    ("dag", "words"),
    [
        ({"is_paused": True}, "is paused, so a run of it would wait forever: unpause it"),
        ({"is_stale": True}, "no longer in Airflow's DAG files"),
        ({"is_active": False}, "no longer in Airflow's DAG files"),
    ],
)
def test_a_dag_that_would_not_run_is_refused(
    runner: AirflowRunner, airflow: FakeAirflow, dag: dict[str, bool], words: str
) -> None:
    airflow.add_dag("orders", **dag)
    with pytest.raises(JobStartError, match=words) as caught:
        runner.start(asked(airflow))
    assert caught.value.permanent
    assert airflow.runs == {}


def test_a_dag_that_is_missing_is_refused(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    with pytest.raises(JobStartError, match=r"DAG nobody of .* does not exist there: check dagId and url") as caught:
        runner.start(asked(airflow, dagId="nobody"))
    assert caught.value.permanent


@pytest.mark.parametrize(
    ("code", "error", "permanent"),
    [
        (400, JobStartError, True),
        (403, JobStartError, True),
        (302, JobStartError, True),
        (408, JobStartError, False),
        (429, JobStartError, False),
        (503, JobStartError, False),
        (500, UnavailableError, None),
        (502, UnavailableError, None),
    ],
)
def test_what_an_answer_to_a_start_means(
    runner: AirflowRunner, airflow3: FakeAirflow, code: int, error: type[Exception], permanent: bool | None
) -> None:
    request = asked(airflow3, auth={"type": "bearer", "token": "token-1"})
    runner.start(request)  # what comes before the POST is known
    airflow3.next_replies = [
        Reply(200, {"version": "3"}),
        Reply(200, airflow3.dags["orders"]),
        Reply(code, {"detail": f"no: {PASSWORD} token-1"}),
    ]
    with pytest.raises(error, match=str(code)) as caught:
        runner.start(request)
    assert getattr(caught.value, "permanent", None) is permanent
    assert "token-1" not in str(caught.value)


def test_before_anything_was_asked_for_a_failure_is_passing(runner: AirflowRunner, airflow3: FakeAirflow) -> None:
    airflow3.next_replies = [Reply(500)]
    with pytest.raises(JobStartError, match="500") as caught:
        runner.start(asked(airflow3))
    assert not caught.value.permanent
    request = asked(airflow3, url=f"http://127.0.0.1:{unused_port()}")
    with pytest.raises(JobStartError, match="no connection") as lost:
        runner.start(request)
    assert not lost.value.permanent


def test_a_private_address_is_refused(airflow3: FakeAirflow) -> None:
    guarded = AirflowRunner(RestClient(), ManualClock(NOW))
    with pytest.raises(JobStartError, match="loopback address") as caught:
        guarded.start(asked(airflow3))
    assert caught.value.permanent
    assert airflow3.calls == []
    guarded.close()


@pytest.mark.parametrize("url", ["ftp://airflow", "airflow.example.org", "http://[", "https://"])
def test_an_address_that_is_none_is_refused(runner: AirflowRunner, airflow3: FakeAirflow, url: str) -> None:
    with pytest.raises((InvalidValueError, JobStartError)):
        runner.start(asked(airflow3, url=url))


# ------------------------------------------------------------------------------------------------- versions and auth


def test_the_version_is_found_out_or_configured(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    runner.start(asked(airflow, apiVersion="auto"))
    runner.check(asked(airflow), "run-1")
    assert sum(call.path[-1] == "version" for call in airflow.calls) == 1  # asked for once per start, not per check
    airflow.calls.clear()
    runner.start(asked(airflow, apiVersion=airflow.version))
    assert not any(call.path[-1] == "version" for call in airflow.calls)


def test_an_address_that_is_no_airflow_says_so(runner: AirflowRunner, airflow3: FakeAirflow) -> None:
    airflow3.next_replies = [Reply(401, b"who are you?")]
    with pytest.raises(JobStartError, match="is it Airflow's address"):
        runner.start(asked(airflow3))


def test_a_token_is_had_once_and_renewed_when_it_is_refused(runner: AirflowRunner, airflow3: FakeAirflow) -> None:
    request = asked(airflow3)
    runner.start(request)
    runner.check(request, "run-1")
    assert airflow3.logins == 1
    airflow3.renew_key()  # 403 Invalid JWT token
    assert runner.check(request, "run-1").state is JobState.RUNNING
    assert airflow3.logins == 2
    airflow3.next_replies = [Reply(401, {"detail": "Token Expired"})]
    assert runner.check(request, "run-1").state is JobState.RUNNING
    assert airflow3.logins == 3


def test_a_wrong_password_is_refused_and_not_repeated(runner: AirflowRunner, airflow3: FakeAirflow) -> None:
    wrong = {**JWT, "password": "of-somebody-else"}
    runner.start(asked(airflow3))  # the token of this one must not serve the other
    airflow3.next_replies = [Reply(200, {"version": "3"}), Reply(401, {"detail": "of-somebody-else is wrong"})]
    with pytest.raises(JobStartError, match=rf"gives no token to {USER}: 401 Unauthorized: \*\*\* is wrong") as caught:
        runner.start(asked(airflow3, auth=wrong))
    assert caught.value.permanent


@pytest.mark.parametrize(
    ("version", "auth", "words"),
    [
        ("v1", JWT, "Airflow 2 has no /auth/token: its auth is basic"),
        ("v2", BASIC, "Airflow 3 takes auth of type jwt or bearer"),
        ("v2", None, "give auth: {type: jwt"),
        ("v1", None, "give auth: {type: basic"),
        ("v1", {**BASIC, "password": "wrong-one"}, "401 Unauthorized"),
    ],
)
def test_the_wrong_kind_of_auth_says_which_is_right(
    runner: AirflowRunner, version: Versions, auth: dict[str, str] | None, words: str
) -> None:
    with FakeAirflow(version) as server, pytest.raises(JobStartError) as caught:
        runner.start(asked(server, auth=auth))
    assert words in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert version == "v2" or "Airflow 3" not in str(caught.value)


# --------------------------------------------------------------------------------------------------------- checking

FAILED = {"task_id": "load", "state": "failed", "try_number": 2}
UPSTREAM = {"task_id": "publish", "state": "upstream_failed", "start_date": None}
SKIPPED = {"task_id": "publish", "state": "skipped"}
PERMANENT, TIMEOUT = FailureCategory.PERMANENT, FailureCategory.TIMEOUT


@pytest.mark.parametrize(
    ("state", "tasks", "expected", "category", "words"),
    [
        ("queued", [], JobState.RUNNING, None, ""),
        ("running", [], JobState.RUNNING, None, ""),
        ("success", [], JobState.SUCCEEDED, None, ""),
        ("failed", [FAILED, UPSTREAM], JobState.FAILED, PERMANENT, "failed in load (try 2)"),
        ("failed", [{**FAILED, "map_index": 3}], JobState.FAILED, PERMANENT, "failed in load[3] (try 2)"),
        ("failed", [SKIPPED], JobState.TIMED_OUT, TIMEOUT, "its dagrun_timeout was over"),
        ("failed", [], JobState.FAILED, PERMANENT, "somebody marked it as failed"),
    ],
)
def test_states_and_classification(
    runner: AirflowRunner,
    airflow: FakeAirflow,
    state: str,
    tasks: list[dict[str, Any]],
    expected: JobState,
    category: FailureCategory | None,
    words: str,
) -> None:
    runner.start(asked(airflow))
    airflow.end(state, *tasks)
    status = runner.check(asked(airflow), "run-1")
    assert (status.state, status.category) == (expected, category)
    assert words in status.error
    assert {*STATES} == {"queued", "running", "success", "failed"}


def test_the_failed_task_of_many_is_found(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    runner.start(asked(airflow))
    many = [{"task_id": f"t{n}", "state": "success"} for n in range(150)]
    airflow.end("failed", *many, {"task_id": "last", "state": "failed"}, SKIPPED)
    status = runner.check(asked(airflow), "run-1")
    assert (status.category, "last (try 1)" in status.error) == (PERMANENT, True)


def test_a_failure_says_how_its_task_ended(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    runner.start(asked(airflow))
    airflow.end("failed", FAILED)
    airflow.logs["load", 2] = [f"info: logged in with {PASSWORD}", "error: Task failed with exception"]
    error = runner.check(asked(airflow), "run-1").error
    assert "Task failed with exception" in error
    assert ("ValueError: no rows" in error) is (airflow.version == "v2")
    assert PASSWORD not in error


def test_a_run_that_was_deleted_has_failed(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    runner.start(asked(airflow))
    airflow.runs.clear()
    status = runner.check(asked(airflow), "run-1")
    assert (status.state, status.category) == (JobState.FAILED, PERMANENT)
    assert "somebody deleted it" in status.error


@pytest.mark.parametrize("reply", [Reply(500), Reply(401), Reply(200, {"state": "paused"}), Reply(200, b"<html>")])
def test_an_airflow_that_cannot_be_asked_is_not_the_end_of_the_job(
    runner: AirflowRunner, airflow3: FakeAirflow, reply: Reply
) -> None:
    request = asked(airflow3, auth={"type": "bearer", "token": "token-1"})
    runner.start(request)
    airflow3.next_replies = [reply]
    with pytest.raises(UnavailableError):
        runner.check(request, "run-1")


# ------------------------------------------------------------------------------------------------------ stop and look


def test_a_run_is_stopped_by_marking_it_as_failed(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    runner.start(asked(airflow))
    assert runner.stop(asked(airflow), "run-1") is JobStop.REQUESTED
    assert airflow.runs["orders", "run-1"]["state"] == "failed"
    assert runner.stop(asked(airflow), "run-1") is JobStop.ENDED


def test_an_ended_run_keeps_its_end(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    runner.start(asked(airflow))
    airflow.end("success")
    assert runner.stop(asked(airflow), "run-1") is JobStop.ENDED
    assert airflow.runs["orders", "run-1"]["state"] == "success"


@pytest.mark.parametrize(("code", "error"), [(403, JobStopError), (429, UnavailableError), (500, UnavailableError)])
def test_a_run_that_cannot_be_stopped_says_where_to_do_it(
    runner: AirflowRunner, airflow3: FakeAirflow, code: int, error: type[Exception]
) -> None:
    request = asked(airflow3, auth={"type": "bearer", "token": "token-1"})
    runner.start(request)
    airflow3.next_replies = [Reply(200, {"state": "running"}), Reply(code, {"detail": "Forbidden"})]
    with pytest.raises(error, match="does not end run-1"):
        runner.stop(request, "run-1")


def test_the_link_is_the_page_of_the_run(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    request = asked(airflow, dagId="or ders", apiVersion=airflow.version)
    ends = {"v1": "/dags/or%20ders/grid?dag_run_id=run-1", "v2": "/dags/or%20ders/runs/run-1"}
    assert runner.link(request, "run-1") == f"{airflow.url}{ends[airflow.version]}"
    assert airflow.calls == []


def test_output_is_the_log_of_task_after_task(runner: AirflowRunner, airflow: FakeAirflow) -> None:
    request = asked(airflow)
    runner.start(request)
    ended, running = {"task_id": "load", "state": "success"}, {"task_id": "publish", "state": "running"}
    later = {"task_id": "mail", "state": "success"}
    airflow.logs |= {("load", 1): ["info: 12 rows"], ("publish", 1): ["info: half"], ("mail", 1): ["info: sent"]}
    airflow.end("running", ended, running, later)
    first = runner.output(request, "run-1")
    assert "==> load, try 1 <==" in first.text
    assert "/opt/airflow/logs" not in first.text
    assert "::group::" not in first.text
    assert "12 rows" in first.text
    assert "half" in first.text
    assert "sent" not in first.text  # what comes behind a running task would move
    assert not first.complete
    assert first.link == runner.link(request, "run-1")
    airflow.logs["publish", 1] = ["info: half", "info: whole"]
    airflow.end("success", ended, {**running, "state": "success"}, later)
    rest = runner.output(request, "run-1", offset=first.next_offset)
    assert "half" not in rest.text
    assert "whole" in rest.text
    assert "sent" in rest.text
    assert rest.complete

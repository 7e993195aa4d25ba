"""HTTP jobs that go on after their answer: asked for at a status address, or reported at a signed one."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from interlock.jobs.addresses import AddressRefusedError
from interlock.jobs.http.target import HttpRunner
from interlock.model.errors import JobStartError, JobStopError, UnavailableError
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobOutput, JobRequest, JobRunner, JobStarted, JobState, JobStatus, JobStop, Recovery
from tests.jobs.command.trials import request
from tests.jobs.loopback import Answer, Server

CALLBACK = "https://interlock.example.org/api/v1/callbacks/a.b"
POLL = {"path": "job.state", "done": ["SUCCEEDED", 0], "failed": "FAILED"}


@pytest.fixture
def runner() -> Iterator[HttpRunner]:
    made = HttpRunner(allow_private=True, callback_url=lambda _: CALLBACK)
    yield made
    made.close()


def polled(server: Server, /, **changes: Any) -> JobRequest:
    poll = {"url": f"{server.url}/jobs/${{JOB_ID}}", **POLL, **changes.pop("poll", {})}
    config = {"url": f"{server.url}/jobs", "jobIdPath": "job.id", "poll": poll, **changes}
    return request("run-1", **config)


def answer(state: object, **more: object) -> Answer:
    return Answer(body=msgspec.json.encode({"job": {"id": 7, "state": state}, **more}))


# ------------------------------------------------------------------------------------------------------------ polling


def test_a_job_is_asked_for_at_its_status_address(runner: HttpRunner) -> None:
    port: JobRunner = runner
    answers = [answer("NEW"), answer("RUNNING"), answer("SUCCEEDED")]
    with Server(*answers) as server:
        asked = polled(server, auth={"type": "bearer", "token": "abcdef"}, headers={"X-Team": "data"})
        assert port.start(asked) == JobStarted(job_id="7", answer='{"job":{"id":7,"state":"NEW"}}')
        assert port.check(asked, "7") == JobStatus(state=JobState.RUNNING)
        done = port.check(asked, "7")
        assert (done.state, done.answer) == (JobState.SUCCEEDED, '{"job":{"id":7,"state":"SUCCEEDED"}}')
    started, first, _ = server.seen
    assert (started.method, started.path) == ("POST", "/jobs")
    assert (first.method, first.path) == ("GET", "/jobs/7")
    headers = {name.lower(): value for name, value in first.headers.items()}
    assert (headers["authorization"], headers["x-team"]) == ("Bearer abcdef", "data")
    assert "idempotency-key" not in headers


@pytest.mark.parametrize(
    ("state", "expected", "category"),
    [
        ("SUCCEEDED", JobState.SUCCEEDED, None),
        (0, JobState.SUCCEEDED, None),
        ("0", JobState.SUCCEEDED, None),
        ("FAILED", JobState.FAILED, FailureCategory.PERMANENT),
        ("RUNNING", JobState.RUNNING, None),
        (None, JobState.RUNNING, None),
        ({"a": 1}, JobState.RUNNING, None),
        (False, JobState.RUNNING, None),
    ],
)
def test_what_a_state_means(
    runner: HttpRunner, state: object, expected: JobState, category: FailureCategory | None
) -> None:
    with Server(answer(state, reason="no rows")) as server:
        status = runner.check(polled(server), "7")
    assert (status.state, status.category) == (expected, category)
    assert ("no rows" in status.error) is (expected is JobState.FAILED)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Answer(status=404), "answered 404 Not Found"),
        (Answer(status=500), "answered 500"),
        (Answer(status=401), "answered 401"),
        (Answer(status=302, headers={"Location": "http://elsewhere.example"}), "answered 302"),
    ],
)
def test_an_address_that_does_not_answer_is_not_the_end_of_the_job(
    runner: HttpRunner, given: Answer, words: str
) -> None:
    with Server(given) as server, pytest.raises(UnavailableError, match=words):
        runner.check(polled(server), "7")


def test_a_job_that_is_gone_has_failed(runner: HttpRunner) -> None:
    with Server(Answer(status=410, body=b"expired")) as server:
        status = runner.check(polled(server), "7")
    assert (status.state, status.category) == (JobState.FAILED, FailureCategory.PERMANENT)


def test_an_answer_that_is_no_json_says_nothing(runner: HttpRunner) -> None:
    with Server(Answer(body=b"<html>")) as server:
        assert runner.check(polled(server), "7").state is JobState.RUNNING


def test_a_job_without_an_id_cannot_be_followed_and_nobody_starts_it_again(runner: HttpRunner) -> None:
    for body in (b"{}", b'{"job": {"id": null}}', b'{"job": {"id": ["a"]}}', b"no json", b'{"job": {"id": ""}}'):
        with Server(Answer(status=202, body=body)) as server:
            with pytest.raises(UnavailableError, match=r"there is no id at 'job\.id' \(jobIdPath\)"):
                runner.start(polled(server))
            assert runner.recover(polled(server)) is Recovery.UNDECIDABLE
            assert runner.recover(polled(server, idempotent=True)) is Recovery.START_AGAIN


def test_an_id_is_one_word_of_the_path(runner: HttpRunner) -> None:
    with Server(answer("RUNNING")) as server:
        runner.check(polled(server), "../admin?x=1#a b")
        assert server.seen[0].path == "/jobs/..%2Fadmin%3Fx%3D1%23a%20b"


def test_an_id_may_be_the_address_at_the_same_place_alone(runner: HttpRunner) -> None:
    with Server(answer("RUNNING")) as server, Server() as other:
        asked = polled(server, poll={"url": "${JOB_ID}"}, auth={"type": "bearer", "token": "abcdef"})
        runner.check(asked, f"{server.url}/status/7")
        runner.check(asked, "/status/8")
        assert [seen.path for seen in server.seen] == ["/status/7", "/status/8"]
        for address in (f"{other.url}/status/7", "http://elsewhere.example/", "//elsewhere.example/x"):
            with pytest.raises(JobStartError, match=r"poll\.url: the job's address is at"):
                runner.check(asked, address)
        assert other.seen == []
        in_host = polled(server, poll={"url": "http://${JOB_ID}.example/x"})
        with pytest.raises(JobStartError, match="cannot be part of a host"):
            runner.check(in_host, "evil")


def test_the_guard_holds_for_the_status_address() -> None:
    guarded = HttpRunner()
    with Server() as server, pytest.raises(AddressRefusedError):
        guarded.check(polled(server), "7")
    assert server.seen == []
    guarded.close()


def test_it_is_asked_no_more_often_than_it_should_be(runner: HttpRunner) -> None:
    with Server(answer("RUNNING"), answer("SUCCEEDED")) as server:
        asked = polled(server, poll={"interval": "1h"})
        first = runner.check(asked, "7")
        assert first.state is JobState.RUNNING
        assert first.ask_again is not None
        assert first.ask_again.total_seconds() == 3600
        assert runner.check(asked, "7").state is JobState.RUNNING
        assert len(server.seen) == 1
        often = polled(server, poll={"interval": "1ms"})
        assert runner.check(often, "7").state is JobState.SUCCEEDED


def test_it_cannot_be_stopped_and_shows_what_the_address_says(runner: HttpRunner) -> None:
    with Server(answer("RUNNING", token="abcdef")) as server:
        asked = polled(server, auth={"type": "bearer", "token": "abcdef"})
        with pytest.raises(JobStopError, match="cannot be stopped over HTTP"):
            runner.stop(asked, "7")
        assert runner.link(asked, "7") == f"{server.url}/jobs/7"
        shown = runner.output(asked, "7")
        assert shown.text == '{"job":{"id":7,"state":"RUNNING"},"token":"***"}'
        assert shown.complete
        assert runner.output(asked, "7", offset=shown.next_offset).text == ""
        assert runner.link(polled(server, headers={"X-Key": "jobs/7"}), "7") == ""
        plain = request(url=server.url)
        assert runner.stop(plain, "run-1") is JobStop.ENDED
        assert runner.output(plain, "run-1") == JobOutput(complete=True)
        assert runner.link(plain, "run-1") == ""


# ---------------------------------------------------------------------------------------------------- expected answers


@pytest.mark.parametrize(
    ("expect", "code", "outcome"),
    [
        ([201], 201, "done"),
        ([200, 409], 409, "done"),
        ([201], 200, "`expect` says 201"),
        ([200], 404, "answered 404"),
    ],
)
def test_which_codes_mean_success(runner: HttpRunner, expect: list[int], code: int, outcome: str) -> None:
    with Server(Answer(status=code)) as server:
        asked = request(url=server.url, expect=expect)
        if outcome == "done":
            started = runner.start(asked)
            assert started.status is not None
            assert started.status.state is JobState.SUCCEEDED
            return
        with pytest.raises(JobStartError, match=outcome) as caught:
            runner.start(asked)
        assert caught.value.permanent


def test_a_little_of_the_answer_is_kept(runner: HttpRunner) -> None:
    body = b"ok\x00\x1b[31m abcdef \xff" + "ä".encode() * 600
    with Server(Answer(body=body)) as server:
        started = runner.start(request(url=server.url, auth={"type": "bearer", "token": "abcdef"}))
    assert started.status is not None
    kept = started.status.answer
    assert kept.startswith("ok[31m *** \ufffd")
    assert 500 < len(kept.encode()) <= 512


# ---------------------------------------------------------------------------------------------------------- callbacks


def test_the_address_to_report_to_is_sent_along(runner: HttpRunner) -> None:
    with Server(Answer(status=202, body=f"will report to {CALLBACK}".encode())) as server:
        started = runner.start(request(url=server.url, callback=True))
        assert started == JobStarted(job_id="run-1", answer="will report to ***")
        asked = request(
            url=f"{server.url}/?back=${{CALLBACK_URL}}",
            callback=True,
            headers={"X-Back": "${CALLBACK_URL}"},
            body={"a": ["to ${CALLBACK_URL}"]},
        )
        runner.start(asked)
        runner.start(request(url=server.url))
    first, second, third = server.seen
    assert msgspec.json.decode(first.body)["callbackUrl"] == CALLBACK
    assert first.headers["x-interlock-callback-url"] == CALLBACK
    assert msgspec.json.decode(second.body) == {"a": [f"to {CALLBACK}"]}
    assert second.headers["x-back"] == CALLBACK
    assert "a.b" in second.path
    assert "callbackUrl" not in msgspec.json.decode(third.body)
    assert "x-interlock-callback-url" not in third.headers


def test_without_an_address_only_who_needs_it_is_refused() -> None:
    lost = HttpRunner(allow_private=True)
    with Server() as server:
        assert lost.start(request(url=server.url, callback=True)).job_id == "run-1"
        with pytest.raises(JobStartError, match=r"\$\{CALLBACK_URL\}: the controller's address is not known"):
            lost.start(request(url=server.url, callback=True, body="${CALLBACK_URL}"))
        with pytest.raises(JobStartError, match="needs callback: true"):
            lost.start(request(url=server.url, body="${CALLBACK_URL}"))
    lost.close()

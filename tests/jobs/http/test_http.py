"""HTTP jobs against real servers: what is sent, what each answer means, and what no message may tell."""

import base64
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec
import pytest

from interlock.jobs.addresses import AddressRefusedError
from interlock.jobs.http.target import HttpRunner
from interlock.model.errors import InterlockError, JobStartError, UnavailableError
from interlock.model.run import FailureCategory
from interlock.ports.jobs import JobRunner, JobStarted, JobState, JobStatus, Recovery
from tests.jobs.command.trials import request
from tests.jobs.loopback import Answer, Server, listener, unused_port

SUCCEEDED = JobStarted(job_id="run-1", status=JobStatus(state=JobState.SUCCEEDED, answer="ok"))
ACCEPTED = JobStarted(job_id="run-1", answer="ok")


@pytest.fixture
def runner() -> Iterator[HttpRunner]:
    made = HttpRunner(allow_private=True)
    yield made
    made.close()


def refusal(runner: HttpRunner, **config: Any) -> JobStartError:
    with pytest.raises(JobStartError) as caught:
        runner.start(request(**config))
    return caught.value


def failure(runner: HttpRunner, **config: Any) -> JobStatus:
    started = runner.start(request(**config))
    assert started.job_id == "run-1"
    assert started.status is not None
    return started.status


# ---------------------------------------------------------------------------------------------------- what is sent


def test_the_request_says_which_run_it_is(runner: HttpRunner) -> None:
    port: JobRunner = runner
    with Server() as server:
        assert port.start(request(url=f"{server.url}/jobs?x=1")) == SUCCEEDED
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("POST", "/jobs?x=1")
    headers = {name.lower(): value for name, value in seen.headers.items()}
    assert headers["idempotency-key"] == headers["x-interlock-run-id"] == "run-1"
    assert headers["content-type"] == "application/json"
    assert msgspec.json.decode(seen.body) == {
        "pipeline": "gold",
        "schedule": "cron",
        "date": "2026-03-02",
        "attempt": 2,
        "runId": "run-1",
    }


@pytest.mark.parametrize(
    ("config", "method", "body"),
    [
        ({"body": {"a": [1, None]}}, "POST", b'{"a":[1,null]}'),
        ({"body": "a=1&b=2", "method": "put"}, "PUT", b"a=1&b=2"),
        ({"body": [1]}, "POST", b"[1]"),
        ({"body": ""}, "POST", b""),
        ({"method": "GET"}, "GET", b""),
        ({"method": "DELETE"}, "DELETE", b""),
        ({"method": "PATCH", "body": {}}, "PATCH", b"{}"),
    ],
)
def test_method_and_body_are_the_configs(runner: HttpRunner, config: dict[str, Any], method: str, body: bytes) -> None:
    with Server() as server:
        runner.start(request(url=server.url, **config))
    assert (server.seen[0].method, server.seen[0].body) == (method, body)


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        ({"headers": {"X-Team": "etl", "X-Level": 3}}, "x-level", "3"),
        ({"headers": {"Authorization": "Token abc"}}, "authorization", "Token abc"),
        ({"auth": {"type": "bearer", "token": "abc"}}, "authorization", "Bearer abc"),
        (
            {"auth": {"type": "basic", "username": "me", "password": "pw"}},
            "authorization",
            f"Basic {base64.b64encode(b'me:pw').decode()}",
        ),
        (
            {"auth": {"type": "bearer", "token": "abc"}, "headers": {"authorization": "x"}},
            "authorization",
            "Bearer abc",
        ),
        ({"headers": {"idempotency-key": "mine"}}, "idempotency-key", "run-1"),
    ],
)
def test_headers_and_credentials_are_sent_once(
    runner: HttpRunner, config: dict[str, Any], name: str, value: str
) -> None:
    with Server() as server:
        runner.start(request(url=server.url, **config))
    assert [text for key, text in server.seen[0].headers.items() if key.lower() == name] == [value]


def test_credentials_in_the_url_are_sent_as_a_header(runner: HttpRunner) -> None:
    with Server() as server:
        runner.start(request(url=server.url.replace("//", "//me:p%40w@")))
    headers = {name.lower(): value for name, value in server.seen[0].headers.items()}
    assert headers["authorization"] == f"Basic {base64.b64encode(b'me:p@w').decode()}"
    assert headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({}, "url"),
        ({"url": "ftp://example.com/"}, "http://"),
        ({"url": "/jobs"}, "http://"),
        ({"url": "http://"}, "http://"),
        ({"url": "http://exa mple:bad-port-hunter2/"}, "not a URL"),
        ({"url": "http://a", "method": "BREW"}, "BREW"),
        ({"url": "http://a", "methd": "GET"}, "methd"),
        ({"url": "http://a", "timeout": "0s"}, "timeout"),
        ({"url": "http://a", "timeout": "never"}, "timeout"),
        ({"url": "http://a", "auth": {"type": "digest"}}, "auth"),
        ({"url": "http://a", "auth": {"type": "bearer"}}, "token"),
        ({"url": "http://a", "headers": {"X-Key": "hunter2 ü"}}, "headers"),
        ({"url": "http://127.0.0.1:1", "body": {"a": float("nan")}}, "body"),
    ],
)
def test_a_config_that_can_not_work_is_refused_for_good(runner: HttpRunner, config: dict[str, Any], word: str) -> None:
    error = refusal(runner, **config)
    assert error.permanent
    assert word in str(error)
    assert "hunter2" not in str(error)


def test_a_header_that_would_smuggle_in_another_is_refused(runner: HttpRunner) -> None:
    with Server() as server:
        error = refusal(runner, url=server.url, headers={"X-Key": "hunter2\r\nX-Other: 1"})
    assert error.permanent
    assert "hunter2" not in str(error)
    assert server.seen == []


# ------------------------------------------------------------------------------------------------- what it means

NOT_NOW, NEVER, LOST = "not now", "never", "lost"


@pytest.mark.parametrize(
    ("code", "plain", "callback"),
    [
        (200, JobState.SUCCEEDED, "accepted"),
        (202, JobState.SUCCEEDED, "accepted"),
        (204, JobState.SUCCEEDED, "accepted"),
        (304, NEVER, NEVER),
        (400, NEVER, NEVER),
        (401, NEVER, NEVER),
        (403, NEVER, NEVER),
        (404, NEVER, NEVER),
        (405, NEVER, NEVER),
        (408, NOT_NOW, NOT_NOW),
        (409, NEVER, NEVER),
        (422, NEVER, NEVER),
        (425, NOT_NOW, NOT_NOW),
        (429, NOT_NOW, NOT_NOW),
        (499, NEVER, NEVER),
        (500, JobState.FAILED, LOST),
        (502, JobState.FAILED, LOST),
        (503, NOT_NOW, NOT_NOW),
        (504, JobState.FAILED, LOST),
        (599, JobState.FAILED, LOST),
    ],
)
@pytest.mark.parametrize("with_callback", [False, True])
def test_what_a_status_means(runner: HttpRunner, code: int, plain: str, callback: str, with_callback: bool) -> None:
    expected = callback if with_callback else plain
    body = b"" if code in (204, 304) else b'{"reason": "because"}'
    with Server(Answer(status=code, body=body)) as server:
        asked = request(url=server.url, callback=with_callback)
        if expected in (NEVER, NOT_NOW):
            error = refusal(runner, **asked.config)
            assert error.permanent == (expected == NEVER)
            assert f"answered {code}" in str(error)
            assert not body or "because" in str(error)
            return
        if expected == LOST:
            with pytest.raises(UnavailableError, match=f"answered {code}"):
                runner.start(asked)
            return
        started = runner.start(asked)
    if expected == "accepted":
        assert started == JobStarted(job_id="run-1", answer=body.decode())
    elif expected is JobState.SUCCEEDED:
        assert started.status == JobStatus(state=JobState.SUCCEEDED, answer=body.decode())
    else:
        assert started.status is not None
        assert (started.status.state, started.status.category) == (expected, FailureCategory.TRANSIENT)
        assert "because" in started.status.error


def test_no_connection_is_not_a_start(runner: HttpRunner) -> None:
    error = refusal(runner, url=f"http://127.0.0.1:{unused_port()}/", callback=True)
    assert not error.permanent
    assert "no connection" in str(error)


def test_an_unknown_host_is_not_a_start() -> None:
    def unknown(host: str, _port: int) -> list[str]:
        raise OSError(f"no such host: {host}")

    error = refusal(HttpRunner(resolve=unknown), url="http://api.example/")
    assert not error.permanent
    assert "api.example" in str(error)


@pytest.fixture
def silent() -> Iterator[Server]:
    """A server that takes a request and answers nothing until the test is over."""
    over = threading.Event()
    with Server(Answer(before=lambda _handler: over.wait(30))) as server:
        yield server
        over.set()


def test_no_answer_in_time_is_a_job_that_timed_out(runner: HttpRunner, silent: Server) -> None:
    status = failure(runner, url=silent.url, timeout="100ms")
    assert (status.state, status.category) == (JobState.TIMED_OUT, FailureCategory.TIMEOUT)
    assert "no answer within 0.1 s" in status.error


def test_no_answer_in_time_to_a_start_is_unknown(runner: HttpRunner, silent: Server) -> None:
    """Neither started nor refused: the lifecycle asks `recover`, and the key makes a second request harmless."""
    with pytest.raises(UnavailableError) as unknown:
        runner.start(request(url=silent.url, timeout="100ms", callback=True))
    assert not isinstance(unknown.value, JobStartError)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def test_a_broken_connection_is_a_failed_job_or_an_unknown_start(runner: HttpRunner) -> None:
    with Server(Answer(before=hang_up)) as server:
        status = failure(runner, url=server.url)
        assert (status.state, status.category) == (JobState.FAILED, FailureCategory.TRANSIENT)
        assert "the connection broke" in status.error
        with pytest.raises(UnavailableError):
            runner.start(request(url=server.url, callback=True))


@pytest.mark.parametrize(("status_line", "ends_well"), [(b"200 OK", False), (b"404 Not Found", True)])
def test_a_good_answer_counts_when_it_is_complete(runner: HttpRunner, status_line: bytes, ends_well: bool) -> None:
    """The target may begin to answer before the work is done; of a bad answer the status is enough."""
    with listener() as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 " + status_line + b"\r\nContent-Length: 100\r\n\r\nonly a part")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        if ends_well:
            assert "404 Not Found: only a part" in str(refusal(runner, url=url))
        else:
            assert failure(runner, url=url).state is JobState.FAILED
        thread.join()


def test_no_more_of_an_answer_is_read_than_is_of_use(runner: HttpRunner) -> None:
    with Server(Answer(status=400, body=b"x" * 5_000_000)) as server:
        error = str(refusal(runner, url=server.url))
    assert len(error) < 700
    assert "x" * 500 + "..." in error


@pytest.mark.parametrize(
    ("config", "recovered"),
    [
        ({}, Recovery.UNDECIDABLE),
        ({"callback": True}, Recovery.UNDECIDABLE),
        ({"idempotent": True}, Recovery.START_AGAIN),
        ({"callback": True, "idempotent": True}, Recovery.START_AGAIN),
    ],
)
def test_a_lost_request_is_repeated_only_where_that_is_harmless(
    runner: HttpRunner, config: dict[str, Any], recovered: Recovery
) -> None:
    assert runner.recover(request(url="http://a", **config)) is recovered


def test_with_a_callback_it_runs_until_it_is_reported(runner: HttpRunner) -> None:
    with Server(Answer(status=202)) as server:
        asked = request(url=server.url, callback=True)
        assert runner.start(asked) == ACCEPTED
        assert runner.check(asked, "run-1") == JobStatus(state=JobState.RUNNING)


def test_many_threads_share_a_runner(runner: HttpRunner) -> None:
    with Server() as server, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: runner.start(request(f"run-{n}", url=server.url)), range(40)))
    assert [result.job_id for result in results] == [f"run-{number}" for number in range(40)]
    sent = {name.lower(): value for seen in server.seen for name, value in seen.headers.items()}
    assert "idempotency-key" in sent
    assert len({msgspec.json.decode(seen.body)["runId"] for seen in server.seen}) == 40


# ------------------------------------------------------------------------------------------- addresses, redirects


def test_loopback_is_refused_unless_it_is_allowed() -> None:
    with Server() as server:
        with pytest.raises(AddressRefusedError, match="allow_private"):
            HttpRunner().start(request(url=server.url))
        assert server.seen == []
        named = HttpRunner(allow_private=["127.0.0.0/8"])
        assert named.start(request(url=server.url)) == SUCCEEDED
        named.close()


@pytest.mark.parametrize("code", [307, 308])
def test_a_redirect_to_the_same_place_is_followed_as_the_same_request(runner: HttpRunner, code: int) -> None:
    with Server(Answer(status=code, headers={"Location": "/jobs/"}), Answer()) as server:
        assert runner.start(request(url=f"{server.url}/jobs", auth={"type": "bearer", "token": "abc"})) == SUCCEEDED
    first, second = server.seen
    assert (second.method, second.path, second.body) == ("POST", "/jobs/", first.body)
    assert {name.lower(): value for name, value in second.headers.items()}["authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("code", "location"),
    [
        (301, "/elsewhere"),
        (302, "/elsewhere"),
        (303, "/elsewhere"),
        (307, "http://127.0.0.2/"),
        (307, "http://localhost/"),
        (308, "//169.254.169.254/latest/meta-data"),
        (307, "http://127.0.0.1/"),  # another port is another server
    ],
)
def test_other_redirects_are_not(runner: HttpRunner, code: int, location: str) -> None:
    with Server(Answer(status=code, headers={"Location": location}), Answer()) as server:
        error = refusal(runner, url=server.url)
    assert error.permanent
    assert "redirect" in str(error)
    assert len(server.seen) == 1


def test_redirects_in_a_circle_end(runner: HttpRunner) -> None:
    with Server(Answer(status=307, headers={"Location": "/again"})) as server:
        assert refusal(runner, url=server.url).permanent
    assert len(server.seen) == 6


# -------------------------------------------------------------------------------------------------------- secrets


def echo(handler: BaseHTTPRequestHandler) -> None:
    """Answer with everything that was sent, as a debugging target does."""
    body = f"{handler.path} {dict(handler.headers)}".encode()
    handler.send_response(int(handler.path.partition("code=")[2][:3]))
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
    hang_up(handler)


@pytest.mark.parametrize("code", [400, 429, 500])
@pytest.mark.parametrize(
    "config",
    [
        {"auth": {"type": "bearer", "token": "hunter2"}},
        {"auth": {"type": "basic", "username": "me", "password": "hunter2"}},
        {"headers": {"X-Api-Key": "hunter2"}},
        {"headers": {"Authorization": "Token hunter2"}},
        {"query": "&api_key=hunter2"},
        {"userinfo": "me:hunter2@"},
    ],
    ids=["bearer", "basic", "header", "authorization", "query", "userinfo"],
)
def test_no_secret_is_told_even_if_the_target_echoes_it(runner: HttpRunner, config: dict[str, Any], code: int) -> None:
    rest = {name: value for name, value in config.items() if name not in ("query", "userinfo")}
    encoded = base64.b64encode(b"me:hunter2").decode()
    with Server(Answer(before=echo)) as server:
        where = server.url.replace("//", f"//{config.get('userinfo', '')}")
        asked = request(url=f"{where}/?code={code}{config.get('query', '')}", **rest)
        try:
            status = runner.start(asked).status
            reported = status.error if status is not None else ""
        except InterlockError as error:
            reported = str(error)
    assert f"answered {code}" in reported
    assert "***" in reported
    assert "hunter2" not in reported
    assert encoded not in reported


def test_a_url_is_told_without_what_may_be_secret_in_it(runner: HttpRunner) -> None:
    port = unused_port()
    error = refusal(runner, url=f"http://me:pw@127.0.0.1:{port}/hooks/T0K3N?sig=abc")
    assert f"POST http://127.0.0.1:{port}:" in str(error)
    for secret in ("me", "pw@", "T0K3N", "sig"):
        assert secret not in str(error)

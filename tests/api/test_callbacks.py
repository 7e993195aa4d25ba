"""A job reports its own end at the address it was given: once, for its own attempt, without a token."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.embedded.access.callbacks import PATH, Callback, Callbacks, signing_key
from interlock.embedded.access.tokens import Scope
from interlock.embedded.audit.trail import AuditWanted
from interlock.embedded.service import Service
from interlock.model.audit import Actor, ActorKind, AuditAction
from interlock.model.errors import StoreError
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobRequest
from tests.api.running import problem, running, until
from tests.jobs.loopback import Answer, Server

V1 = "/api/v1"
DAY = "2026-03-03"


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, httpx.Client]]:
    folder = tmp_path_factory.mktemp("controller")
    with running(folder, allow_private_addresses=True) as (service, api):
        service.callbacks.base_url = str(api.base_url)
        # From here on tokens are needed; a callback needs none.
        text, _ = service.tokens.create("test", list(Scope))
        api.headers["authorization"] = f"Bearer {text}"
        yield service, api


@pytest.fixture
def target() -> Iterator[Server]:
    with Server(Answer(status=202, body=b'{"id": "job-7"}')) as server:
        yield server


Started = Callable[..., str]


@pytest.fixture
def started(api: httpx.Client, apply: Callable[..., str], target: Server) -> Started:
    """Run a pipeline until its job was accepted; the address that the job was given."""

    def start(name: str, **job: Any) -> str:
        config = {"url": target.url, "callback": True, "jobIdPath": "id"}
        apply(name, job={"type": "http", "config": config, **job})
        for key in ("up", "rows"):
            data = {"status": "ready", "count": 10, "date": DAY}
            assert api.put(f"{V1}/pipelines/{name}/sensors/{key}", json=data).status_code == 200
        before = len(target.seen)
        seen = until(lambda: target.seen[before:] or None, "the start")[0]
        return seen.headers["x-interlock-callback-url"]

    return start


def run(api: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"{V1}/pipelines/{name}/runs/stream/{DAY}").json()
    return found


def status(api: httpx.Client, name: str, wanted: str) -> dict[str, Any]:
    return until(lambda: found if (found := run(api, name))["status"] == wanted else None, f"{name} {wanted}")


def test_a_success_is_reported_once(api: httpx.Client, started: Started, service: Service) -> None:
    url = started("reported")
    status(api, "reported", "RUNNING")
    answer = httpx.post(url, json={"result": "success"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["event"] == "success"
    found = status(api, "reported", "COMPLETED")
    assert found["jobId"] == "job-7"
    recorded = service.audit.read(AuditWanted(pipeline="reported", actions=(AuditAction.JOB_REPORTED,)))
    assert [one.actor for one in recorded] == [Actor(ActorKind.JOB, found["runId"], "127.0.0.1")]
    for _ in range(2):
        again = problem(httpx.post(url, json={"result": "fail"}), 409, "conflict")
        assert "was reported already: success" in again["detail"]
    assert run(api, "reported")["status"] == "COMPLETED"


def test_a_failure_is_classified_and_retried(api: httpx.Client, started: Started, target: Server) -> None:
    url = started("failing", maxRetries=1)
    failure = {"result": "fail", "category": "TRANSIENT", "error": "lost executor"}
    assert httpx.post(url, json=failure).status_code == 201
    second = until(lambda: target.seen[1:] or None, "the retry")[0].headers["x-interlock-callback-url"]
    assert second != url
    # The address of the first attempt says nothing of the second.
    late = problem(httpx.post(url, json={"result": "success"}), 409, "conflict")
    assert "attempt 1 is over" in late["detail"]
    assert httpx.post(second, json={"result": "timeout"}).status_code == 201
    status(api, "failing", "FAILED_FINAL")


def test_only_what_was_signed_is_an_address(api: httpx.Client, started: Started, service: Service) -> None:
    url = started("signed")
    token = url.rpartition("/")[2]
    payload, _, signature = token.partition(".")
    forged = Callbacks(None).token(Callback("signed", "stream", DAY, 1, "run"))
    others = ("x", ".", "a.b", payload, f"{payload}.", f"{payload}x.{signature}")
    for bad in (*others, f"{payload}.{signature[:-4]}AAAA", forged):
        address = str(api.base_url.copy_with(path=f"{PATH}{bad}"))
        problem(httpx.post(address, json={"result": "success"}), 404, "not-found")
    assert service.callbacks.read(token) is not None
    assert run(api, "signed")["status"] == "RUNNING"
    problem(httpx.post(url, json={"result": "perhaps"}), 422, "invalid-request")
    problem(httpx.post(url, json={}), 422, "invalid-request")
    assert httpx.get(url).status_code == 405
    assert httpx.post(url, json={"result": "success"}).status_code == 201


def test_the_address_is_in_no_event_and_no_answer(
    api: httpx.Client, started: Started, capsys: pytest.CaptureFixture[str]
) -> None:
    url = started("quiet")
    status(api, "quiet", "RUNNING")
    httpx.post(url, json={"result": "success"})
    status(api, "quiet", "COMPLETED")
    token = url.rpartition("/")[2]
    events = api.get(f"{V1}/events", params={"pipeline": "quiet", "limit": "200"}).text
    assert "JOB_TRIGGERED" in events
    assert token not in events + api.get(f"{V1}/pipelines/quiet/runs/stream/{DAY}").text
    logged = capsys.readouterr()
    assert token not in logged.out + logged.err


# ------------------------------------------------------------------------------------------------------------ the key


def asked() -> JobRequest:
    return JobRequest(key=RunKey("gold", "cron", DAY), attempt=2, run_id="run-1", config={})


def test_an_address_outlives_the_controller(tmp_path: Path) -> None:
    store = tmp_path / "interlock.db"
    before = Callbacks(store)
    assert before.url(asked()) == ""  # nobody knows where the controller is
    before.base_url = "https://interlock.example.org/"
    url = before.url(asked())
    assert url.startswith(f"https://interlock.example.org{PATH}")
    claim = Callbacks(store).read(url.rpartition("/")[2])
    assert claim == Callback("gold", "cron", DAY, 2, "run-1")
    key = tmp_path / "interlock.db.callback-key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == [key.name]
    key.write_bytes(b"short")
    with pytest.raises(StoreError, match="is damaged: remove it"):
        signing_key(store)

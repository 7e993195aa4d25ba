"""`interlock console`: the API over an environment on AWS, by a real server in this process."""

import json
import os
import signal
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from interlock.api.connections import ConnectionLimits
from interlock.api.console import Console, ConsoleSettings
from interlock.api.console_server import ConsoleServer, serve_console
from interlock.api.server import BindError, bind, server_config
from interlock.api.transport import Transport
from interlock.aws.names import Queue
from interlock.aws.operations.address import parse_address
from interlock.aws.operations.environment import open_environment
from interlock.embedded.access.tokens import Scope
from tests.api.running import pipeline, problem, until
from tests.aws.cli.deployed import ADDRESS, Deployed
from tests.cli.stage import DAY, Stage
from tests.cli.test_main import run
from tests.security.certificates import Authority


class Served:
    """A console, its server, and a client of it."""

    def __init__(self, console: Console, url: str) -> None:
        self.console = console
        self.client = httpx.Client(base_url=f"{url}/api/v1/", timeout=30, trust_env=False)
        self.root = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def get(self, path: str, **parameters: Any) -> Any:
        response = self.client.get(path, params=parameters)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture
def served(environment: Deployed, tmp_path: Path) -> Iterator[Served]:
    console = Console(open_environment(parse_address(ADDRESS)), ConsoleSettings(tmp_path / "console.db"))
    console.feed._every = 0.2
    listener = bind("127.0.0.1", 0)
    server = uvicorn.Server(server_config(console, ConnectionLimits.of_this_process()))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    console.start()
    thread.start()
    found = Served(console, f"http://127.0.0.1:{listener.getsockname()[1]}")
    try:
        until(lambda: server.started or None, "the start of the console")
        yield found
    finally:
        console.feed.stop()
        server.should_exit = True
        thread.join()
        found.client.close()
        found.root.close()
        console.stop()
        listener.close()


def test_reads_and_writes_by_the_same_routes(served: Served, environment: Deployed) -> None:
    assert served.client.put("pipelines/gold", json=pipeline("gold")).status_code == 201
    environment.pump()
    for key, data in (("up", {"status": "ready"}), ("rows", {"count": 50})):
        answer = served.client.put(f"pipelines/gold/sensors/{key}", json={**data, "date": DAY})
        assert answer.status_code == 200, answer.text
    environment.pump()
    assert [one["id"] for one in served.get("pipelines")["items"]] == ["gold"]
    assert served.get("pipelines/gold/runs")["items"][0]["word"] == "waiting"
    assert {one["key"] for one in served.get("pipelines/gold/sensors")["items"]} == {"up", "rows"}
    assert served.get("overview")["items"][0]["id"] == "gold"
    assert served.get("pipelines/gold/why", date=DAY)["pipeline"] == "gold"
    assert "TRIGGER_STARTED" in {one["type"] for one in served.get("events")["items"]}
    assert served.root.get("/").status_code == 200
    assert served.root.get("/metrics").status_code == 200
    assert served.root.get("/readyz").json()["ready"] is True


def test_what_does_not_run_on_aws_is_refused(served: Served) -> None:
    document = pipeline("gold", job={"type": "command", "config": {"command": ["true"]}})
    answer = served.client.put("pipelines/gold", json=document)
    assert "command jobs do not run on AWS" in problem(answer, 422, "invalid-config")["detail"]


def test_what_the_functions_do_is_theirs(served: Served, environment: Deployed) -> None:
    environment.called.clear()
    assert served.client.post("watchdog/run").json() == {"failedChecks": []}
    assert environment.called == ["watchdog"]
    answer = problem(served.root.post("/api/v1/alerts:test", json={}), 422, "invalid-value")
    assert "/aws/lambda/test-interlock-alert-dispatcher" in answer["detail"]
    timer = {"environment": "test", "arming": "a", "name": "t", "at": "2026-03-03T08:00:00Z", "kind": "retry"}
    environment.bury(Queue.TIMERS_DLQ, timer)
    [letter] = served.get("dlq")["items"]
    assert letter["record"]["name"] == "t"
    assert served.get("dlq", cursor=letter["id"])["items"] == []
    seen = served.get("controller")
    assert seen["deadLetters"] == 1
    assert [one["name"] for one in seen["functions"]][:2] == ["stream-router", "orchestrator"]
    assert seen["watchdog"]["lastAt"] is not None
    assert served.client.post("dlq/redrive", json={"ids": [letter["id"]]}).json() == {"redriven": 1}
    assert served.get("alerts")["items"] == []
    assert "CloudTrail" in problem(served.root.get("/api/v1/audit"), 404, "not-found")["detail"]


def test_events_come_live_and_once(served: Served, environment: Deployed) -> None:
    served.client.put("pipelines/gold", json=pipeline("gold"))
    environment.pump()
    position = served.get("overview")["position"]
    served.client.put("pipelines/gold/sensors/up", json={"status": "ready", "date": DAY})
    environment.pump()  # before anybody listens: it comes from the table
    found: list[dict[str, Any]] = []
    with served.client.stream("GET", "events/stream", headers={"Last-Event-ID": position}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line[len("data: ") :]))
                if len(found) == 1:
                    served.client.put("pipelines/gold/sensors/up", json={"status": "ready", "date": "2026-03-03"})
                    environment.pump()
            if len(found) == 2:
                break
    assert [(one["type"], one["date"]) for one in found] == [
        ("TRIGGER_STARTED", DAY),
        ("TRIGGER_STARTED", "2026-03-03"),
    ]


def test_sensors_of_a_named_pipeline_come_live(served: Served, environment: Deployed) -> None:
    served.client.put("pipelines/gold", json=pipeline("gold"))
    served.client.put("pipelines/silver", json=pipeline("silver"))
    environment.pump()
    found: list[str] = []
    with served.client.stream("GET", "events/stream", params={"sensors": "true", "sensorsOf": "gold"}) as stream:
        served.client.put("pipelines/silver/sensors/rows", json={"count": 1})
        served.client.put("pipelines/gold/sensors/rows", json={"count": 1})
        for line in stream.iter_lines():
            if '"receivedAt"' in line:
                found.append(json.loads(line[len("data: ") :])["key"])
                if len(found) == 1:
                    served.client.put("pipelines/gold/sensors/late", json={"count": 2})
            if found[1:]:
                break
    assert found == ["rows", "late"]


def test_tokens_and_sessions_are_in_the_local_file(served: Served) -> None:
    text, _ = served.console.tokens.create("me", [Scope.READ])
    assert served.client.get("pipelines").status_code == 401
    served.client.headers["Authorization"] = f"Bearer {text}"
    assert served.get("pipelines") == {"items": [], "next": None}
    problem(served.client.post("watchdog/run"), 403, "forbidden")


def ended_after(console: Console, transport: Transport, ask: Callable[[int], None]) -> int:
    """Serve a console, ask it on another thread, end it by a signal; the port it was served on."""
    with bind("127.0.0.1", 0) as taken:
        port: int = taken.getsockname()[1]

    def ask_and_end() -> None:
        try:
            ask(port)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    asking = threading.Thread(target=ask_and_end)
    asking.start()
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        serve_console(ConsoleServer(port=port, transport=transport), console)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)  # afterwards a signal would end this process at once
    asking.join()
    return port


def test_it_serves_until_a_signal(environment: Deployed, tmp_path: Path) -> None:
    console = Console(open_environment(parse_address(ADDRESS)), ConsoleSettings(tmp_path / "console.db"))
    answers: list[int] = []

    def ask(port: int) -> None:
        answers.append(until(lambda: _answered(f"http://127.0.0.1:{port}/readyz"), "an answer"))

    port = ended_after(console, Transport(), ask)
    assert answers == [200]
    assert console.refusing
    refused = Console(open_environment(parse_address(ADDRESS)), ConsoleSettings(tmp_path / "console.db"))
    with pytest.raises(BindError, match="without a token"):
        serve_console(ConsoleServer(host="0.0.0.0", port=port), refused)


def test_it_serves_over_tls_and_nothing_in_the_clear(environment: Deployed, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.make("console.test", file="console")
    console = Console(open_environment(parse_address(ADDRESS)), ConsoleSettings(tmp_path / "console.db"))
    answers: list[int | None] = []

    def ask(port: int) -> None:
        trusting = ssl.create_default_context(cafile=authority.file)
        answers.append(until(lambda: _answered(f"https://127.0.0.1:{port}/readyz", trusting), "an answer"))
        answers.append(_answered(f"https://127.0.0.1:{port}/", trusting))
        answers.append(_answered(f"https://127.0.0.1:{port}/readyz"))
        answers.append(_answered(f"http://127.0.0.1:{port}/readyz"))

    ended_after(console, Transport().with_files(cert, key, None), ask)
    assert answers == [200, 200, None, None], "the page too; not to who does not know the authority, nor bare"


def _answered(url: str, trusting: ssl.SSLContext | None = None) -> int | None:
    try:
        return httpx.get(url, trust_env=False, verify=trusting or True).status_code
    except httpx.TransportError:
        return None


def test_it_is_for_aws_alone(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "is not on AWS" in " ".join(run(capsys, "console", "--store", "sqlite:///x.db").err.split())
    assert "there is no environment" in run(capsys, "console", "--store", "aws://prod?region=us-east-1").err
    assert stage.json("token", "create", "--scope", "admin", "--name", "me")["name"] == "me"
    assert (tmp_path / "state" / "interlock" / "console-test.db").exists()

"""`interlock apply`: all or nothing, directly to the store or through the server that has it open."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.store_access import find_target, reading
from interlock.control import catalog
from interlock.embedded.clock import SystemClock
from interlock.embedded.process import discovery
from interlock.extras import Extra
from interlock.jobs import registry
from interlock.jobs.registry import Registered
from tests.cli.test_main import Outcome, run
from tests.cli.test_plan import project
from tests.cli.test_simulate import PIPELINE

__all__ = ["project"]


def stored() -> list[str]:
    with reading(find_target()) as reader:
        return reader.store.pipelines()


def test_it_creates_the_store_and_says_what_it_wrote(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    outcome = run(capsys, "apply", ".")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "+ calendar closed  new",
        "+ gold  new",
        f"1 new, 0 changed, 0 unchanged: applied to sqlite:///{project}/interlock.db",
    ]
    with reading(find_target()) as reader:
        assert catalog.calendars(reader.store)["closed"].dates == ["2026-12-25"]
        found = catalog.stored(reader.store, "gold")
        assert found is not None
        assert catalog.first_applied(reader.store, found) is not None
    assert found.config is not None


def test_applying_again_changes_nothing(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    run(capsys, "apply", ".")
    outcome = run(capsys, "apply", ".")
    assert outcome.out.splitlines() == [f"0 new, 0 changed, 1 unchanged: applied to sqlite:///{project}/interlock.db"]


def test_one_error_and_nothing_is_written(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/bad.yaml").write_text(PIPELINE.replace("gold", "bad").replace("gte", "gtee"))
    outcome = run(capsys, "apply", ".")
    assert (outcome.code, outcome.out) == (1, "")
    assert list(project.glob("interlock.db*")) == []


def test_a_dry_run_writes_nothing(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    outcome = run(capsys, "apply", ".", "--dry-run")
    assert outcome.code == 0
    assert "+ gold  new" in outcome.out
    assert "would be written to" in outcome.out
    assert list(project.glob("interlock.db*")) == []


def test_pruning_is_asked_for(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/old.yaml").write_text(PIPELINE.replace("gold", "old"))
    run(capsys, "apply", ".")
    (project / "pipelines/old.yaml").unlink()
    kept = run(capsys, "apply", ".")
    assert kept.out.splitlines()[-1] == "1 stored pipeline not in these files: old (remove with --prune)"
    assert stored() == ["gold", "old"]
    pruned = run(capsys, "apply", ".", "--prune")
    assert "- old  removed" in pruned.out.splitlines()
    assert stored() == ["gold"]


def test_a_reason_is_kept_in_the_trail(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pipelines/old.yaml").write_text(PIPELINE.replace("gold", "old"))
    run(capsys, "apply", ".", "--reason", "the first ones")
    (project / "pipelines/old.yaml").unlink()
    run(capsys, "apply", ".", "--prune", "--reason", "old is gone")
    found = json.loads(run(capsys, "audit", "--json").out)["records"]
    assert sorted((one["action"], one.get("pipeline") or one["subject"], one["reason"]) for one in found) == [
        ("calendar-applied", "closed", "the first ones"),
        ("pipeline-applied", "gold", "the first ones"),
        ("pipeline-applied", "old", "the first ones"),
        ("pipeline-deleted", "old", "old is gone"),
    ]


def test_pruning_needs_the_whole_folder(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    run(capsys, "apply", ".")
    outcome = run(capsys, "apply", "pipelines/gold.yaml", "--prune")
    assert outcome.code == 2
    assert "must be the folder of all pipelines" in " ".join(outcome.err.split())


def test_json(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    report = json.loads(run(capsys, "apply", ".", "--json").out)
    assert report == {
        "target": f"sqlite:///{project}/interlock.db",
        "written": True,
        "new": ["gold"],
        "changed": [],
        "unchanged": [],
        "removed": [],
        "calendars": ["closed"],
        "warnings": [],
    }


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_job_whose_package_is_missing_is_an_error(
    capsys: pytest.CaptureFixture[str], project: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = Registered("interlock.jobs.aws.glue:TARGET", Extra("aws", "no_such_package", "no_such_package"))
    monkeypatch.setattr(registry, "BUILT_IN", {**registry.BUILT_IN, "glue": missing})
    job = "{type: glue, config: {jobName: etl}}"
    (project / "pipelines/gold.yaml").write_text(PIPELINE.replace("{type: external}", job))
    outcome = run(capsys, command, ".")
    assert outcome.code == 1
    assert "job.type: jobs of type glue need the package no_such_package" in outcome.err + outcome.out
    assert "pip install 'interlock[aws]'" in outcome.err + outcome.out


# -------------------------------------------------------------------------------------------------- with a server


class Api(ThreadingHTTPServer):
    """What a server of ours answers, as far as `apply` asks; everything it was sent is kept."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sent: list[tuple[str, str, Any]] = []
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, dict[str, Any]]] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else None
        if self.command == "GET":
            self.server.asked.append(self.path)
        else:
            self.server.sent.append((self.command, self.path, body))
        path = self.path.partition("?")[0]
        status, document = self.server.answers.get(path, (200, {"items": [], "next": None}))
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_DELETE = _answer  # noqa: N815 - the names http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_with_a_url_it_goes_through_the_server(capsys: pytest.CaptureFixture[str], project: Path, api: Api) -> None:
    outcome = run(capsys, "apply", ".", "--url", api.url)
    assert outcome.code == 0, outcome.err
    assert [(method, path) for method, path, _ in api.sent] == [
        ("PUT", "/api/v1/calendars/closed"),
        ("PUT", "/api/v1/pipelines/gold"),
    ]
    assert api.sent[1][2]["pipeline"] == {"id": "gold"}
    assert api.sent[1][2]["sla"]["expectedDuration"] == "30m"
    assert f"applied to {api.url}" in outcome.out
    assert list(project.glob("interlock.db*")) == []


def test_a_reason_goes_to_the_server_with_everything_that_is_written(
    capsys: pytest.CaptureFixture[str], project: Path, api: Api
) -> None:
    known = {"id": "old", "version": "1", "errors": []}
    api.answers["/api/v1/pipelines"] = (200, {"items": [known], "next": None})
    outcome = run(capsys, "apply", ".", "--prune", "--reason", "closes early", "--url", api.url)
    assert outcome.code == 0, outcome.err
    assert [(method, path) for method, path, _ in api.sent] == [
        ("PUT", "/api/v1/calendars/closed?reason=closes+early"),
        ("PUT", "/api/v1/pipelines/gold?reason=closes+early"),
        ("DELETE", "/api/v1/pipelines/old?reason=closes+early"),
    ]


def with_server(capsys: pytest.CaptureFixture[str], project: Path, api: Api, *arguments: str) -> Outcome:
    """As if a server that has the store open had left its discovery file."""
    store = project / "interlock.db"
    discovery.announce(store, api.url, SystemClock().now())
    try:
        return run(capsys, *arguments)
    finally:
        discovery.withdraw(store)


def test_a_store_that_a_server_has_open_is_written_through_it(
    capsys: pytest.CaptureFixture[str], project: Path, api: Api
) -> None:
    run(capsys, "apply", ".")
    (project / "pipelines/gold.yaml").write_text(PIPELINE.replace("1000", "2000"))
    outcome = with_server(capsys, project, api, "apply", ".")
    assert outcome.code == 0, outcome.err
    # The calendar is known to be unchanged, from the store itself.
    assert [(method, path) for method, path, _ in api.sent] == [("PUT", "/api/v1/pipelines/gold")]


def test_calendars_of_a_local_server_without_a_route_go_to_its_store(
    capsys: pytest.CaptureFixture[str], project: Path, api: Api
) -> None:
    run(capsys, "apply", ".")
    (project / "calendars/closed.yaml").write_text('{name: closed, dates: ["2027-12-25"]}')
    api.answers["/api/v1/calendars/closed"] = (404, {})
    outcome = with_server(capsys, project, api, "apply", ".")
    assert outcome.code == 0, outcome.err
    with reading(find_target()) as reader:
        assert catalog.calendars(reader.store)["closed"].dates == ["2027-12-25"]


def test_what_the_server_refuses_is_told(capsys: pytest.CaptureFixture[str], project: Path, api: Api) -> None:
    problem = {"title": "Forbidden", "detail": "this token may not apply: it lacks admin"}
    api.answers["/api/v1/pipelines/gold"] = (403, problem)
    outcome = run(capsys, "apply", ".", "--url", api.url)
    assert outcome.code == 1
    assert "403 to PUT /api/v1/pipelines/gold: this token may not apply: it lacks admin" in outcome.err
    api.answers["/api/v1/calendars/closed"] = (404, {})
    outcome = run(capsys, "apply", ".", "--url", api.url)
    assert "takes no calendars" in outcome.err


def test_a_plan_against_a_server_fetches_only_what_differs(
    capsys: pytest.CaptureFixture[str], project: Path, api: Api
) -> None:
    document = {"pipeline": {"id": "gold"}, "job": {"type": "external"}}
    rows = {"items": [{"id": "gold", "version": "old"}, {"id": "other", "version": "v"}], "next": None}
    api.answers["/api/v1/pipelines"] = (200, rows)
    api.answers["/api/v1/pipelines/gold"] = (200, {"document": document})
    outcome = run(capsys, "plan", ".", "--url", api.url)
    assert outcome.code == 0, outcome.err
    assert "- other  would be removed with --prune" in outcome.out
    assert "    sla: added " in outcome.out
    assert "/api/v1/pipelines/other" not in api.asked


def test_why_can_be_asked_of_a_server(capsys: pytest.CaptureFixture[str], project: Path, api: Api) -> None:
    reported = {
        "pipeline": "gold",
        "schedule": "cron",
        "date": "2026-03-02",
        "at": "2026-03-02T13:00:00Z",
        "timezone": "UTC",
        "state": "done",
        "verdict": "gold for 2026-03-02 ran",
        "sections": [{"title": "Opened", "lines": [{"text": "by a tick", "mark": "none"}]}],
        "advice": "Nothing: it is done.",
    }
    api.answers["/api/v1/pipelines/gold/why"] = (200, reported)
    outcome = run(capsys, "why", "gold", "--date", "2026-03-02", "--url", api.url)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[0] == "gold for 2026-03-02 ran"
    assert api.asked[-1] == "/api/v1/pipelines/gold/why?date=2026-03-02"


def test_a_server_that_is_not_there(capsys: pytest.CaptureFixture[str], project: Path) -> None:
    outcome = run(capsys, "apply", ".", "--url", "http://127.0.0.1:9")
    assert outcome.code == 1
    assert "does not answer" in outcome.err

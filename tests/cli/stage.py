"""What the tests of the commands stand on: pipelines on the shared server, and stores that no server runs on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.store_access import Target, writing
from interlock.config.stored import read_stored
from interlock.control import catalog
from interlock.embedded.access.tokens import Scope, Tokens
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.model.config import PipelineConfig
from tests.api.running import Process, pipeline, until
from tests.cli.test_main import Outcome, run

DAY = "2026-03-02"


class Stage:
    """Runs commands, and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *where: str) -> None:
        self._capsys = capsys
        self._where = where

    def run(self, *arguments: str) -> Outcome:
        """A command on this store or server."""
        return run(self._capsys, *arguments, *self._where)

    def good(self, *arguments: str) -> str:
        """What a command that succeeds prints."""
        outcome = self.run(*arguments)
        assert outcome.code == 0, outcome.err + outcome.out
        return outcome.out

    def json(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        return json.loads(self.run(*arguments, "--json").out)

    def refused(self, *arguments: str, code: int = 1) -> str:
        """What a command that fails says on its standard error."""
        outcome = self.run(*arguments)
        assert outcome.code == code, outcome.out
        assert outcome.err
        return outcome.err


def make_token(store: Path, scope: str) -> str:
    """A token of that scope, made beside the server as `interlock token create` does."""
    with Database.open(store, clock=SystemClock(), create=False) as database:
        return Tokens(database).create("test", [Scope(scope)])[0]


def served(capsys: pytest.CaptureFixture[str], server: Process, name: str, **changes: Any) -> Stage:
    """Commands on the real server, which has a pipeline of that name."""
    response = server.client.put(f"/api/v1/pipelines/{name}", json=pipeline(name, **changes))
    assert response.status_code in (200, 201), response.text
    return Stage(capsys, "--url", server.url)


def store_of(server: Process) -> str:
    """The address of the file that the server has open."""
    return f"sqlite:///{server.store}"


def plain(
    capsys: pytest.CaptureFixture[str], folder: Path, *documents: dict[str, Any], name: str = "plain.db"
) -> Stage:
    """Commands on a store that no server runs on."""
    path = folder / name
    with writing(Target("a test", path=path)) as control:
        for document in documents or (pipeline("gold"),):
            config = read_stored(document, {})
            assert isinstance(config, PipelineConfig), config
            catalog.apply_config(control, config, document)
    return Stage(capsys, "--store", f"sqlite:///{path}")


def completed(server: Process, stage: Stage, name: str, day: str = DAY) -> None:
    """A run that is done."""
    started(server, stage, name, day)
    stage.good("job", "report", name, "success", "--date", day)
    server.await_status(name, day, "COMPLETED")


def started(server: Process, stage: Stage, name: str, day: str = DAY) -> None:
    """A run whose job is running."""
    client = server.client
    for key, data in (("up", {"status": "ready"}), ("rows", {"count": 50})):
        answer = client.put(f"/api/v1/pipelines/{name}/sensors/{key}", json={**data, "date": day})
        assert answer.status_code == 200, answer.text
    server.await_status(name, day, "RUNNING")


def waited(look: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    until(lambda: look() or None, what)

"""What a command loads: not seconds, which depend on the machine, but modules, which cost the same everywhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import __version__

_SCRIPT = """
import contextlib, io, json, runpy, sys
arguments = json.loads(sys.argv[1])
sys.argv = ["interlock", *arguments]
shown = io.StringIO()
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(shown):
    runpy.run_module("interlock", run_name="__main__")
print(json.dumps({"shown": shown.getvalue(), "modules": sorted(sys.modules)}))
"""
# What only a server, or one kind of pipeline, needs.
_OF_A_SERVER = {"uvicorn", "uvloop", "httptools", "prometheus_client", "interlock.api.app", "slack_sdk"}
_RARE = {"holidays", "boto3", "botocore", "sqlalchemy", "dateutil", "litestar", "faker", "polyfactory"}
_OF_A_CLIENT = {"httpx", "httpcore", "click", "anyio"}
_OF_A_CONTROLLER = {"sqlite3", "greenlet", "structlog", "asyncio", "interlock.embedded.sqlite.store"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imports") / "project"
    load(folder.parent, "init", str(folder))
    load(folder, "token", "create", "--name", "me", "--scope", "admin")
    load(folder, "apply", ".")
    load(folder, "sensor", "set", "orders", "rows", "count=1")
    return folder


def load(folder: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(arguments)], cwd=folder, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_version_loads_nothing(tmp_path: Path) -> None:
    found = load(tmp_path, "--version")
    assert found["shown"] == f"interlock {__version__}\n"
    assert [name for name in found["modules"] if name.startswith("interlock")] == ["interlock"]
    assert not {"typer", "msgspec", "rich", "importlib.metadata"} & set(found["modules"])


@pytest.mark.parametrize(
    ("arguments", "absent", "most"),
    [
        (("--help",), {"rich", "yaml", *_OF_A_SERVER, *_RARE, *_OF_A_CLIENT, *_OF_A_CONTROLLER}, 340),
        (("status",), {"yaml", *_OF_A_SERVER, *_RARE, *_OF_A_CLIENT}, 660),
        (("sensor", "get", "orders", "rows"), {"yaml", *_OF_A_SERVER, *_RARE, *_OF_A_CLIENT}, 660),
        (("why", "orders"), {"yaml", *_OF_A_SERVER, *_RARE, *_OF_A_CLIENT}, 660),
        (("sensor", "list", "orders"), {"yaml", *_OF_A_SERVER, *_RARE, *_OF_A_CLIENT}, 660),
        (("token", "list"), {"yaml", *_OF_A_SERVER, *_RARE, *_OF_A_CLIENT, "interlock.embedded.service"}, 560),
        (("validate", "pipelines"), {*_OF_A_SERVER, *_RARE, *_OF_A_CLIENT, *_OF_A_CONTROLLER}, 500),
        (("stpa", "pipelines"), {*_OF_A_SERVER, *_RARE, *_OF_A_CLIENT, *_OF_A_CONTROLLER}, 500),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_loads_what_it_needs(project: Path, arguments: tuple[str, ...], absent: set[str], most: int) -> None:
    found = load(project, *arguments)
    assert found["shown"]
    assert absent & set(found["modules"]) == set()
    assert len(found["modules"]) <= most


def test_asking_a_server_loads_no_controller(project: Path) -> None:
    found = load(project, "status", "--url", "http://127.0.0.1:1")
    modules = set(found["modules"])
    assert "httpx" in modules
    assert (
        {"yaml", "sqlite3", "greenlet", "interlock.embedded.sqlite.store", *_OF_A_SERVER, *_RARE}
    ) & modules == set()

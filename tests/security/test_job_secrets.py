"""A job learns nothing of the controller's secrets from the processes around it, nor by naming its variables."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api.running import Process, pipeline, problem, serving

_DAY = "2026-03-02"
_SECRETS = {"INTERLOCK_TOKEN": "ilk_controller", "DATABASE_PASSWORD": "hunter2"}


def _run(server: Process, command: list[str]) -> str:
    """What a command job writes."""
    job = {"type": "command", "config": {"command": command}}
    assert server.client.put("/api/v1/pipelines/gold", json=pipeline("gold", job=job)).status_code == 201
    for key, data in (("up", {"status": "ready"}), ("rows", {"count": 50})):
        server.client.put(f"/api/v1/pipelines/gold/sensors/{key}", json={**data, "date": _DAY})
    server.await_status("gold", _DAY, "COMPLETED")
    (output,) = (server.folder / "interlock.db.jobs").glob("*/output*")
    return output.read_text()


def test_the_parent_of_a_job_has_no_environment(tmp_path: Path) -> None:
    with serving(tmp_path, environment=_SECRETS) as server:
        reported = _run(server, ["sh", "-c", "echo parent: $(tr '\\0' ' ' </proc/$PPID/environ); env"])
    assert reported.startswith("parent:")
    for secret in _SECRETS.values():
        assert secret not in reported


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="there is no setpriv")
def test_the_controller_cannot_be_looked_into(tmp_path: Path) -> None:
    """By a process of the same user; of root's, one without root's capabilities."""
    plain = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    with serving(tmp_path, environment=_SECRETS) as server:
        for file in ("environ", "mem"):
            command = [*plain, "head", "-c1", f"/proc/{server.process.pid}/{file}"]
            done = subprocess.run(command, capture_output=True, check=False)
            assert done.returncode == 1, done
            assert b"ermission denied" in done.stderr


def test_the_controllers_own_variables_do_not_expand(tmp_path: Path) -> None:
    job = {"type": "command", "config": {"command": ["echo", "${INTERLOCK_TOKEN}"]}}
    with serving(tmp_path, environment=_SECRETS) as server:
        answer = server.client.put("/api/v1/pipelines/gold", json=pipeline("gold", job=job))
        found = problem(answer, 422, "invalid-config")
        assert "a setting of the controller itself" in found["detail"]
        assert _SECRETS["INTERLOCK_TOKEN"] not in answer.text

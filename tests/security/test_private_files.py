"""What a controller keeps is its user's alone, from the first moment, whatever the umask and whatever was there."""

import json
import os
import stat
from pathlib import Path

from tests.api.running import Process, pipeline, serving
from tests.security.commands import interlock, refused


def _modes(folder: Path) -> dict[str, int]:
    """The modes of the store's files and of everything that commands left."""
    found = [*folder.glob("interlock.db*"), *folder.glob("interlock.db.jobs/*")]
    return {str(one.relative_to(folder)): stat.S_IMODE(one.lstat().st_mode) for one in found}


def _run_a_command(server: Process) -> None:
    job = {"type": "command", "config": {"command": ["sh", "-c", "echo secret"]}}
    assert server.client.put("/api/v1/pipelines/gold", json=pipeline("gold", job=job)).status_code == 201
    for key, data in (("up", {"status": "ready"}), ("rows", {"count": 50})):
        server.client.put(f"/api/v1/pipelines/gold/sensors/{key}", json={**data, "date": "2026-03-02"})
    server.await_status("gold", "2026-03-02", "COMPLETED")


def test_files_are_private_from_their_creation(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with serving(tmp_path) as server:
            _run_a_command(server)
            modes = _modes(tmp_path)
    finally:
        os.umask(before)
    assert {"interlock.db", "interlock.db-wal", "interlock.db-shm", "interlock.db.lock", "interlock.db.jobs"} <= {
        *modes
    }
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_files_that_were_readable_are_made_private(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        _run_a_command(server)
    for one in [*tmp_path.glob("interlock.db*")]:
        one.chmod(0o755 if one.is_dir() else 0o644)
    reported = json.loads(interlock(tmp_path, "doctor", "--json").stdout)
    (found,) = [one for one in reported["checks"] if one["name"] == "permissions"]
    assert not found["ok"]
    for name in ("interlock.db (644)", "interlock.db-wal (644)", "interlock.db.jobs (755)"):
        assert name in found["detail"]
    with serving(tmp_path):
        assert {name: oct(mode) for name, mode in _modes(tmp_path).items() if mode & 0o077} == {}
        reported = json.loads(interlock(tmp_path, "doctor", "--json").stdout)
        assert next(one for one in reported["checks"] if one["name"] == "permissions")["ok"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "interlock.db.lock").symlink_to(precious)
    refused(interlock(tmp_path, "serve", "--port", "0"), "interlock.db.lock")
    assert precious.read_text() == "mine"
    (tmp_path / "interlock.db.lock").unlink()
    (tmp_path / "interlock.db").symlink_to(tmp_path / "elsewhere")
    refused(interlock(tmp_path, "serve", "--port", "0"), "a link that leads nowhere")
    assert not (tmp_path / "elsewhere").exists()

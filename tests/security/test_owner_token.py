"""The owner's token: made at the first start on loopback, found by its user wherever commands are started."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from interlock import Client, owner_record
from interlock.client.settings import token_for
from interlock.owner_record import OwnerRecord
from tests.api.running import ROOT, Process, pipeline, problem, serving, until
from tests.security.commands import STRANGER, as_root, interlock, refused


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder of its own, also for this process."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        patch.delenv("INTERLOCK_TOKEN", raising=False)
        yield folder


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with serving(tmp_path_factory.mktemp("owner")) as process:
        assert process.client.put("/api/v1/pipelines/gold", json=pipeline("gold")).status_code == 201
        yield process


def record_of(home: Path, server: Process) -> Path:
    return home / "interlock/servers" / f"{httpx.URL(server.url).port}.json"


def test_it_is_kept_for_its_user_alone(home: Path, server: Process) -> None:
    record = record_of(home, server)
    token = Path(json.loads(record.read_text())["tokenFile"])
    for file in (record, token):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    listed = json.loads(interlock(server.folder, "token", "list", "--json").stdout)["tokens"]
    assert [(one["name"], one["local"], one["expiresAt"]) for one in listed] == [("local", True, None)]
    assert token.read_text() not in server.log.read_text()


def test_it_is_sent_to_that_address_only(home: Path, server: Process) -> None:
    found = token_for(server.url)
    assert found.startswith("ilk_")
    assert httpx.get(f"{server.url}/api/v1/session", headers={"Authorization": f"Bearer {found}"}).is_success
    port = httpx.URL(server.url).port or 0
    for other in (
        f"http://localhost:{port}",
        f"http://[::1]:{port}",
        f"http://127.0.0.2:{port}",
        f"http://127.0.0.1:{port + 1}",
        f"https://127.0.0.1:{port}",
        f"http://192.0.2.1:{port}",
    ):
        assert token_for(other) == ""


def test_a_record_that_somebody_else_could_have_made_is_ignored(
    home: Path, server: Process, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = "http://127.0.0.1:7999"
    secret = tmp_path / "secret"
    owner_record.write_private(secret, b"ilk_x")
    path = owner_record.leave_record(url, secret)
    assert path is not None
    assert token_for(url) == "ilk_x"
    good = path.read_bytes()
    for file in (path, secret):
        file.chmod(0o640)
        assert token_for(url) == ""
        file.chmod(0o600)
    record = msgspec.json.decode(good, type=OwnerRecord)
    wrong = (
        msgspec.structs.replace(record, pid=1),
        msgspec.structs.replace(record, pid=2**22 + 1),
        msgspec.structs.replace(record, process_start="1"),
        msgspec.structs.replace(record, url="http://127.0.0.1:7998"),
    )
    for one in wrong:
        owner_record.write_private(path, msgspec.json.encode(one))
        assert token_for(url) == ""
    owner_record.write_private(path, good)
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.symlink_to(moved)
    assert token_for(url) == ""
    path.unlink()
    moved.rename(path)
    if os.geteuid() == 0:
        os.chown(path, STRANGER, STRANGER)
        assert token_for(url) == ""


def test_commands_and_the_sdk_find_it_from_the_first_token_on(home: Path, tmp_path: Path) -> None:
    """From then on `curl` needs a token; what finds the owner's does not."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "project"
    folder.mkdir()
    with serving(folder) as server:
        assert server.client.put("/api/v1/pipelines/gold", json=pipeline("gold")).status_code == 201
        assert interlock(folder, "token", "create", "--name", "etl", "--scope", "sensor:write").returncode == 0
        assert httpx.get(f"{server.url}/api/v1/pipelines").status_code == 401
        done = interlock(elsewhere, "status", "--url", server.url)
        assert done.returncode == 0, done.stderr
        done = interlock(elsewhere, "sensor", "set", "gold", "rows", "count=1", "--url", server.url)
        assert done.returncode == 0, done.stderr
        assert interlock(folder, "plan", ".", "--url", server.url).returncode in (0, 1)
        with Client(server.url) as client:
            client.sensor("gold", "rows").set(count=2)
        record = record_of(home, server)
        assert record.exists()
        # A session of `open` is bound to it, and ends with it.
        address = interlock(elsewhere, "open", "--print", "--url", server.url).stdout.strip()
        code = address.partition("#code=")[2]
        headers = {"Origin": server.url, "X-Interlock": "1"}
        begun = httpx.post(f"{server.url}/api/v1/session", json={"code": code}, headers=headers)
        assert begun.json()["name"] == "local"
        cookies = dict(begun.cookies)
        assert httpx.get(f"{server.url}/api/v1/pipelines", cookies=cookies).status_code == 200
        assert interlock(folder, "token", "revoke", "local").returncode == 0

        def refused_now() -> bool:
            return httpx.get(f"{server.url}/api/v1/pipelines", cookies=cookies).status_code == 401

        until(lambda: refused_now() or None, "the end of the session")
        refused(interlock(elsewhere, "status", "--url", server.url), "token create")
        assert server.stop() == 0
        assert not record.exists()


def test_to_revoke_it_is_to_end_what_its_user_may_do_without_a_token(home: Path, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.client.get("/api/v1/pipelines").status_code == 200
        assert interlock(tmp_path, "token", "revoke", "local").returncode == 0

        def refused_now() -> bool:
            return server.client.get("/api/v1/pipelines").status_code == 401

        until(lambda: refused_now() or None, "the refusal")
        answer = server.client.get("/api/v1/pipelines")
        assert "interlock token create" in problem(answer, 401, "unauthorized")["detail"]


def test_a_lost_token_is_made_again(home: Path, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        first = token_for(server.url)
        server.stop()
    (tmp_path / "interlock.db.owner-token").unlink()
    with serving(tmp_path) as server:
        second = token_for(server.url)
        assert second
        assert second != first


_AS_ANOTHER = f"""
import encodings.idna, os, sys
sys.path[:0] = {[str(ROOT / "src")]!r}
import interlock.client.settings as settings
from interlock.owner_record import find_token
os.setgid({STRANGER})
os.setuid({STRANGER})
print(repr(find_token(sys.argv[1])))
"""


@as_root
def test_another_user_finds_nothing(home: Path, server: Process) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AS_ANOTHER, server.url], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "''\n", done.stderr
    if shutil.which("curl"):
        asked = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"{server.url}/api/v1/pipelines"]
        assert subprocess.run(asked, user=STRANGER, capture_output=True, check=True, cwd="/").stdout == b"401"


def test_off_loopback_none_is_made(home: Path, tmp_path: Path) -> None:
    refused(interlock(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0"), "token create")
    assert not (tmp_path / "interlock.db.owner-token").exists()
    assert json.loads(interlock(tmp_path, "token", "list", "--json").stdout)["tokens"] == []

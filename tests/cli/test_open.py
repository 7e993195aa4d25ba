"""`interlock open`: the page without typing a token, by a code that works once."""

import os
import pty
import subprocess
import sys
import webbrowser
from pathlib import Path

import httpx
import pytest

from interlock.embedded.access.tokens import Scope
from interlock.embedded.process.discovery import announce, withdraw
from tests.api.running import running, until
from tests.cli.stage import Stage

V1 = "/api/v1"


def begun(client: httpx.Client, address: str) -> httpx.Response:
    """What the page does with the code of its address."""
    _, _, code = address.strip().partition("/#code=")
    origin = str(client.base_url).rstrip("/")
    response = client.post(f"{V1}/session", json={"code": code}, headers={"Origin": origin, "X-Interlock": "1"})
    client.cookies.clear()
    return response


def test_an_open_controller_needs_no_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with running(tmp_path) as (service, client):
        store = tmp_path / "interlock.db"
        url = str(client.base_url).rstrip("/")
        announce(store, url, service.clock.now())
        stage = Stage(capsys, "--store", f"sqlite:///{store}")
        assert stage.good("open", "--print").splitlines()[-1] == f"{url}/"
        withdraw(store)


def test_a_code_of_the_store_begins_one_session(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with running(tmp_path) as (service, client):
        service.tokens.create("somebody", [Scope.READ])
        store = tmp_path / "interlock.db"
        announce(store, str(client.base_url).rstrip("/"), service.clock.now())
        address = Stage(capsys, "--store", f"sqlite:///{store}").good("open", "--print")
        withdraw(store)
        session = begun(client, address)
        assert (session.status_code, session.json()["name"]) == (200, "local")
        assert begun(client, address).status_code == 401


def test_a_code_of_a_server_has_the_rights_of_the_token(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as (service, client):
        text, _ = service.tokens.create("reader", [Scope.READ])
        stage = Stage(capsys, "--url", str(client.base_url).rstrip("/"))
        assert "401" in stage.refused("open", "--print")
        monkeypatch.setenv("INTERLOCK_TOKEN", text)
        session = begun(client, stage.good("open", "--print"))
        assert (session.json()["name"], session.json()["scopes"]) == ("reader", ["read"])


def test_the_browser_is_opened_and_the_code_is_not_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    with running(tmp_path) as (service, client):
        service.tokens.create("somebody", [Scope.READ])
        url = str(client.base_url).rstrip("/")
        store = tmp_path / "interlock.db"
        announce(store, url, service.clock.now())
        shown = Stage(capsys, "--store", f"sqlite:///{store}").good("open")
        withdraw(store)
        assert shown == f"Opened {url} in your browser.\n"
        assert opened[0].startswith(f"{url}/#code=")


def test_without_a_controller_it_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    stage = Stage(capsys, "--store", f"sqlite:///{tmp_path / 'interlock.db'}")
    assert "no controller runs" in stage.refused("open", "--print")
    assert not (tmp_path / "interlock.db").exists()


def test_serve_prints_the_address_at_a_terminal_only(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "interlock", "serve", "--port", "0", "--log-level", "error"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    process = subprocess.Popen(command, cwd=tmp_path, stderr=theirs, stdout=subprocess.DEVNULL, env=clean)
    os.close(theirs)
    seen = b""

    def look() -> bool | None:
        nonlocal seen
        seen += os.read(ours, 4096)
        return b"The page: http://127.0.0.1:" in seen or None

    try:
        until(look, "the address of the page")
    finally:
        process.terminate()
        process.wait(30)
        os.close(ours)

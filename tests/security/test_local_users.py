"""Without a token the controller obeys its own user, and no other user of the machine."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from interlock import Client
from interlock.api import peers
from tests.api.running import Process, pipeline, serving
from tests.security.commands import STRANGER, as_root, interlock, refused

curl = pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")


def _curl(server: Process, *arguments: str, user: int | None = None) -> tuple[int, str]:
    """The status and body of a request by the real `curl`, as another user where one is named."""
    done = subprocess.run(
        ["curl", "-s", "-w", "\n%{http_code}", *arguments],
        user=user,
        env={"PATH": os.environ["PATH"]},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


@curl
@as_root
def test_another_user_gets_nowhere(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert server.client.put("/api/v1/pipelines/gold", json=pipeline("gold")).status_code == 201
        sensor = f"{server.url}/api/v1/pipelines/gold/sensors/rows"
        asked: tuple[tuple[str, ...], ...] = (
            (f"{server.url}/api/v1/pipelines",),
            (f"{server.url}/api/v1/session",),
            ("-H", "Content-Type: application/json", "-d", '{"token": "x"}', f"{server.url}/api/v1/session"),
            (f"{server.url}/api/v1/events/stream",),
            ("-X", "PUT", "-d", '{"count": 1}', sensor),
            ("-X", "PUT", "-d", '{"count": 1}', f"{sensor}?ttl=5"),
            ("-X", "DELETE", f"{server.url}/api/v1/pipelines/gold"),
        )
        for one in asked:
            status, body = _curl(server, *one, user=STRANGER)
            assert status == 401, one
            assert "interlock token create" in body
        assert _curl(server, f"{server.url}/healthz", user=STRANGER)[0] == 200
        assert _curl(server, "-X", "PUT", "-d", '{"count": 1}', sensor)[0] == 200


@curl
@as_root
def test_everybody_is_let_in_only_when_that_is_asked_for_loudly(tmp_path: Path) -> None:
    with serving(tmp_path, "--insecure-no-auth") as server:
        assert _curl(server, f"{server.url}/api/v1/pipelines", user=STRANGER)[0] == 200
        assert "EVERY USER OF THIS MACHINE" in server.log.read_text()
        doctor = interlock(tmp_path, "doctor")
        assert doctor.returncode == 1
        assert "--insecure-no-auth" in doctor.stdout


def test_nobody_is_let_in_from_elsewhere(tmp_path: Path) -> None:
    refused(interlock(tmp_path, "serve", "--host", "0.0.0.0", "--insecure-no-auth"), "for loopback only")
    assert interlock(tmp_path, "token", "create", "--name", "a", "--scope", "read").returncode == 0
    refused(interlock(tmp_path, "serve", "--insecure-no-auth"), "leave it out")


@curl
def test_the_owner_needs_no_token(tmp_path: Path) -> None:
    """The tour of the README: commands, curl and the SDK."""
    with serving(tmp_path) as server:
        assert server.client.put("/api/v1/pipelines/gold", json=pipeline("gold")).status_code == 201
        assert interlock(tmp_path, "sensor", "set", "gold", "rows", "count=1").returncode == 0
        port = httpx.URL(server.url).port
        address = f"localhost:{port}/api/v1/pipelines/gold/sensors/rows"
        assert _curl(server, "-X", "PUT", address, "-d", '{"count": 250}')[0] == 200
        with Client(server.url) as client:
            client.sensor("gold", "rows").set(count=251)


@pytest.mark.parametrize("ask", [peers._ask_kernel, peers._look_up])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_whose_connection_it_is(ask: Callable[..., int | None], host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener, socket.socket(family) as caller:
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip(f"there is no {host}")
        listener.listen()
        caller.connect(listener.getsockname())
        accepted, client = listener.accept()
        with accepted:
            server = accepted.getsockname()
            assert ask(family, client[:2], server[:2]) == os.geteuid()
            caller.close()
            # Closed, it is nobody's: root's controller must not take it for root's.
            with suppress(OSError):  # the kernel may have forgotten it
                assert ask(family, client[:2], server[:2]) is None


def test_a_connection_from_elsewhere_is_nobodys() -> None:
    assert peers.local_user(("192.0.2.1", 1), ("127.0.0.1", 2)) is None
    assert peers.local_user(None, None) is None
    assert peers.local_user(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert not peers.is_own_user(None)

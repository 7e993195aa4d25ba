"""Where the server is, and what importing the SDK costs."""

import subprocess
import sys
from typing import assert_type

import pytest

import interlock
from interlock import AsyncClient, Client
from interlock.client.answers import Readiness, Run, Sensor, Written
from interlock.client.errors import ClientError
from interlock.client.settings import on_this_machine, settings_from


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_URL", "http://one:8765/")
    monkeypatch.setenv("INTERLOCK_TOKEN", " secret\n")
    found = settings_from(None, None, 5.0, None)
    assert (found.url, found.token) == ("http://one:8765", "secret")
    found = settings_from("https://two/prefix", "", 5.0, None)
    assert (found.url, found.token) == ("https://two/prefix", "")


@pytest.mark.parametrize(
    "url", ["localhost:8765", "ftp://x", "http://", "http://[::1", "http://x?y=1", "sqlite:///i.db"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ClientError, match="http://host:port"):
        Client(url)


@pytest.mark.parametrize(
    ("url", "token"), [("http://me:hunter2@host", ""), ("http://host", "hunter2\nX: y"), ("http://host", "hunter2é")]
)
def test_what_would_give_a_secret_away(url: str, token: str) -> None:
    with pytest.raises(ClientError, match="INTERLOCK_TOKEN") as caught:
        Client(url, token)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8765", True),
        ("http://localhost", True),
        ("http://[::1]:8765", True),
        ("http://127.0.0.1.example.com", False),
        ("https://interlock.example.com", False),
        ("http://10.0.0.1", False),
    ],
)
def test_a_server_of_this_machine_needs_no_proxy(url: str, here: bool) -> None:
    assert on_this_machine(url) == here


def test_no_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERLOCK_URL", raising=False)
    with pytest.raises(ClientError, match="INTERLOCK_URL"):
        AsyncClient()


def test_a_token_is_never_shown() -> None:
    with Client("http://one", "very-secret") as client:
        shown = f"{client!r} {client.core.settings!r}"
    assert "http://one" in shown
    assert "very-secret" not in shown


def test_a_closed_client_says_so() -> None:
    client = Client("http://127.0.0.1:9")
    client.close()
    with pytest.raises(ClientError, match="closed"):
        client.pipelines()


def test_methods_are_documented_once_for_both() -> None:
    for name in ("readiness", "wait_until_ready", "rerun", "report_job"):
        sync, async_ = getattr(Client, name), getattr(AsyncClient, name)
        assert sync.__doc__
        assert sync.__doc__ == async_.__doc__
        assert sync.__name__ == name


async def _typed(client: Client, other: AsyncClient) -> None:
    """Never called: mypy reads it. The shells' methods are made from the flows, and must not lose their types."""
    assert_type(client.readiness("gold", date="2026-03-02"), Readiness)
    assert_type(client.sensor("gold", "rows").set(count=1), Written)
    assert_type(client.runs("gold", limit=None), list[Run])
    assert_type(client.redrive([1]), int)
    assert_type(await other.readiness("gold"), Readiness)
    assert_type(await other.sensor("gold", "rows").get(), Sensor)
    client.readiness()  # type: ignore[call-arg]
    client.runs("gold", limt=5)  # type: ignore[call-arg]


def _loaded_after(statement: str) -> set[str]:
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing() -> None:
    assert _loaded_after("import interlock") == {"interlock"}


def test_importing_the_sdk_loads_nothing_of_the_controller() -> None:
    loaded = _loaded_after("from interlock import Client, AsyncClient")
    ours = {name for name in loaded if name.startswith("interlock.")}
    assert {name.split(".")[1] for name in ours} == {"believed", "client", "model", "owner_record"}
    assert not loaded & {"httpx", "asyncio", "sqlite3", "yaml", "zoneinfo", "typer", "rich", "structlog"}


def test_the_clients_are_seen_before_they_are_loaded() -> None:
    seen = "import sys, interlock; print('Client' in dir(interlock), 'interlock.client' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False"]
    assert {"AsyncClient", "Client", "__version__"} <= set(dir(interlock))

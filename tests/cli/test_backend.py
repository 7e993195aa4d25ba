"""Which backend a command gets, and that both are one to it; completion in the shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli.backend import Backend, connected
from interlock.client import Client
from tests.api.running import Process, pipeline
from tests.cli.stage import plain, served, store_of

Capsys = pytest.CaptureFixture[str]


def test_both_are_a_backend(capsys: Capsys, tmp_path: Path) -> None:
    """mypy checks the methods; here it is that nobody wrapped one away."""
    plain(capsys, tmp_path)
    methods = [name for name in vars(Backend) if not name.startswith("_")]
    with connected(f"sqlite:///{tmp_path / 'plain.db'}", None) as there:
        assert all(callable(getattr(there.backend, name)) for name in methods)
    assert all(callable(getattr(Client, name)) for name in methods)


def test_a_served_store_is_read_directly_and_written_through_the_server(server: Process) -> None:
    address = store_of(server)
    with connected(address, None) as reading:
        assert (reading.served, isinstance(reading.backend, Client)) == (True, False)
    with connected(address, None, writing=True) as writing:
        assert (writing.served, isinstance(writing.backend, Client)) == (True, True)


def test_the_environment_names_the_server(
    capsys: Capsys, server: Process, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served(capsys, server, "by-environment")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLOCK_URL", server.url)
    with connected(None, None) as there:
        assert "by-environment" in [one.id for one in there.backend.pipelines()]


def test_without_a_word_it_is_the_store_of_this_folder(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain(capsys, tmp_path, pipeline("silver"), name="interlock.db")
    monkeypatch.chdir(tmp_path)
    with connected(None, None) as there:
        assert [one.id for one in there.backend.pipelines()] == ["silver"]


def _completed(line: str, folder: Path) -> list[str]:
    """What bash is offered for a line that was typed so far."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    asked = {"_INTERLOCK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    code = "from interlock.cli.main import app; app(prog_name='interlock')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**clean, **asked}, cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def test_a_tab_offers_pipelines(capsys: Capsys, tmp_path: Path) -> None:
    plain(capsys, tmp_path, pipeline("gold"), pipeline("golden"), pipeline("silver"), name="interlock.db")
    assert _completed("interlock runs go", tmp_path) == ["gold", "golden"]
    assert _completed("interlock sensor set si", tmp_path) == ["silver"]


def test_a_tab_where_there_is_nothing_offers_nothing(tmp_path: Path) -> None:
    assert _completed("interlock runs go", tmp_path) == []
    assert list(tmp_path.iterdir()) == []

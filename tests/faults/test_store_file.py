"""The store's file vanishes, is replaced, or cannot be written: nothing is acknowledged that would be lost."""

import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.model.errors import StoreError, StoreReplacedError
from tests.api.running import Process, pipeline, serving, until, write_pipeline

V1 = "/api/v1"


def put(server: Process, count: int) -> int:
    """The status of a sensor write."""
    return server.client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": count}).status_code


def count_of(server: Process) -> int:
    return int(server.client.get(f"{V1}/pipelines/gold/sensors/rows").json()["data"]["count"])


def move_away(store: Path) -> None:
    for file in _files(store):
        file.rename(file.with_name(f"away-{file.name}"))


def _files(store: Path) -> list[Path]:
    return [one for one in (store, Path(f"{store}-wal"), Path(f"{store}-shm")) if one.exists()]


def move_back(store: Path) -> None:
    for file in store.parent.glob(f"away-{store.name}*"):
        file.rename(file.with_name(file.name.removeprefix("away-")))


def replace_with_a_copy(store: Path) -> None:
    copy = store.with_name("copy.db")
    shutil.copy(store, copy)
    copy.replace(store)


def delete_the_log(store: Path) -> None:
    Path(f"{store}-wal").unlink()


@pytest.mark.parametrize("spoil", [move_away, replace_with_a_copy, delete_the_log], ids=lambda one: one.__name__)
def test_nothing_is_acknowledged_that_a_restart_would_not_find(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    with serving(tmp_path) as server:
        assert put(server, 1) == 200
        assert server.client.get("/readyz").status_code == 200
        spoil(server.store)
        assert [put(server, 2) for _ in range(5)] == [503] * 5
        health = server.client.get("/readyz")
        assert health.status_code == 503
        assert health.json()["problems"] == ["the store's file was deleted or replaced"]
        until(lambda: "the store's file is lost" in server.log.read_text() or None, "a word in the log")
        assert "is not the file that was opened" in server.log.read_text()
        assert server.client.get("/healthz").status_code == 200


def test_file_that_comes_back_is_written_again(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    with serving(tmp_path) as server:
        assert put(server, 1) == 200
        move_away(server.store)
        assert put(server, 2) == 503
        move_back(server.store)
        assert put(server, 3) == 200
        until(lambda: server.client.get("/readyz").status_code == 200 or None, "its being ready again")
        assert server.stop() == 0
    with serving(tmp_path) as server:
        assert count_of(server) == 3


def test_other_file_in_its_place_is_left_alone_at_the_end(tmp_path: Path) -> None:
    """SQLite removes the log at its end: not that of a store that is not its own."""
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    with serving(tmp_path) as server:
        assert put(server, 1) == 200
        move_away(server.store)
        with Database.open(server.store, clock=SystemClock()) as other:
            other.write(lambda connection: connection.execute("INSERT INTO consumers VALUES ('x', 1)").rowcount)
            assert server.stop() == 0
            assert Path(f"{server.store}-wal").exists()
        with Database.open(server.store, clock=SystemClock()) as other:
            assert other.read("SELECT name FROM consumers") == [("x",)]


@pytest.mark.parametrize("inline", [False, True])
def test_writes_from_a_command_are_checked_as_well(tmp_path: Path, inline: bool) -> None:
    store = tmp_path / "s.db"
    with Database.open(store, clock=SystemClock(), inline=inline) as database:
        move_away(store)
        with pytest.raises(StoreReplacedError, match="it is gone"):
            database.write(lambda connection: connection.execute("INSERT INTO consumers VALUES ('x', 1)").rowcount)
        move_back(store)
        database.write(lambda connection: connection.execute("INSERT INTO consumers VALUES ('y', 1)").rowcount)
        assert ("y",) in database.read("SELECT name FROM consumers")


# ------------------------------------------------------------------------------------------------ not to be written


def limit_files(server: Process, size: int) -> None:
    """Have the process write no file beyond that size: as root or not, on any disk."""
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process are Linux's")
def test_store_that_cannot_be_written_is_not_ready_though_nobody_writes(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    with serving(tmp_path) as server:
        limit_files(server, 0)
        until(lambda: server.client.get("/readyz").status_code == 503 or None, "its not being ready")
        assert [server.client.get("/readyz").status_code for _ in range(20)] == [503] * 20
        assert server.client.get("/readyz").json()["problems"] == ["the store cannot be written"]
        assert put(server, 1) == 503
        limit_files(server, resource.RLIM_INFINITY)
        until(lambda: server.client.get("/readyz").status_code == 200 or None, "its being ready again")
        assert put(server, 2) == 200


def test_read_only_file_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "s.db"
    Database.open(store, clock=SystemClock()).close()
    store.chmod(0o444)
    if os.geteuid() == 0:  # root may write everywhere: have it asked as if by somebody else
        monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK and Path(path) == store))
    with pytest.raises(StoreError, match="it may not be written: check the permissions"):
        Database.open(store, clock=SystemClock())
    Database.open(store, clock=SystemClock(), read_only=True).close()

"""Backups: made under load, checked, restored, and gone on with."""

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.process.discovery import StoreInUseError, StoreLock
from interlock.embedded.sqlite import backup
from interlock.embedded.sqlite.backup import MANIFEST, BackupError, back_up, restore
from interlock.embedded.sqlite.connection import STORE_VERSION
from interlock.embedded.sqlite.database import Database
from tests.api.running import Process, pipeline, serving, until, write_pipeline
from tests.faults.disk import small_disk
from tests.faults.test_damage import flip

V1 = "/api/v1"
NOW = SystemClock().now()


def interlock(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    command = [sys.executable, "-m", "interlock", *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=60, check=False)


class Writers:
    """Threads that write numbered sensors, one key each, and remember the last that was acknowledged."""

    def __init__(self, server: Process, count: int) -> None:
        self._server = server
        self._stop = threading.Event()
        self.acknowledged = [0] * count
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        while not self._stop.is_set():
            value = self.acknowledged[number] + 1
            path = f"{V1}/pipelines/gold/sensors/key-{number}"
            if self._server.client.put(path, json={"value": value}).status_code == 200:
                self.acknowledged[number] = value

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)


@contextmanager
def written_to(server: Process, count: int = 4) -> Iterator[Writers]:
    writers = Writers(server, count)
    try:
        yield writers
    finally:
        writers.stop()


def values(server: Process, count: int = 4) -> list[int]:
    found = {one["key"]: one["data"] for one in server.client.get(f"{V1}/pipelines/gold/sensors").json()["items"]}
    return [found.get(f"key-{number}", {"value": 0})["value"] for number in range(count)]


def test_backup_under_load_is_restored_and_gone_on_with(tmp_path: Path) -> None:
    work, other, copies = tmp_path / "work", tmp_path / "other", tmp_path / "copies"
    for folder in (work, other, copies):
        folder.mkdir()
    config = pipeline("gold", job={"type": "command", "config": {"command": ["true"]}})
    for folder in (work, other):
        write_pipeline(folder, "gold", config)
    with serving(work) as server, written_to(server) as writers:
        server.client.put(f"{V1}/pipelines/gold/sensors/up%232026-03-03", json={"status": "ready"})
        until(lambda: server.run("gold", "2026-03-03") or None, "a run that waits")
        for key, data in (("rows", {"count": 50}), ("up", {"status": "ready"})):
            server.client.put(f"{V1}/pipelines/gold/sensors/{key}%232026-03-02", json=data)
        server.await_status("gold", "2026-03-02", "COMPLETED")
        until(lambda: min(writers.acknowledged) > 20 or None, "some writes")
        made: list[tuple[list[int], str]] = []
        for _ in range(3):
            before = list(writers.acknowledged)
            done = interlock(work, "backup", str(copies / f"{len(made)}.db"), "--json")
            assert done.returncode == 0, done.stderr
            made.append((before, json.loads(done.stdout)["file"]))
        assert server.client.get("/readyz").status_code == 200
    for before, file in made:
        assert sorted(one.name for one in copies.glob(f"{Path(file).name}*")) == [
            Path(file).name,
            f"{Path(file).name}{MANIFEST}",
        ]
        done = interlock(other, "restore", file)
        assert done.returncode == 0, done.stderr
        with serving(other) as server:
            assert all(found >= known for found, known in zip(values(server), before, strict=True))
            # What waited waits on, and what is ready runs.
            assert server.run("gold", "2026-03-03")["status"] == "PENDING"
            server.client.put(f"{V1}/pipelines/gold/sensors/rows%232026-03-03", json={"count": 50})
            assert server.await_status("gold", "2026-03-03", "COMPLETED")["attempt"] == 1
            assert server.stop() == 0


def test_restore_refuses_a_live_store_and_keeps_what_was_there(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    with serving(tmp_path) as server:
        server.client.put(f"{V1}/pipelines/gold/sensors/key-0", json={"value": 1})
        assert interlock(tmp_path, "backup", "one.db").returncode == 0
        server.client.put(f"{V1}/pipelines/gold/sensors/key-0", json={"value": 2})
        refused = interlock(tmp_path, "restore", "one.db")
        assert refused.returncode == 1
        assert "another controller runs on it" in refused.stderr
        assert values(server, 1) == [2]
        server.kill()
    done = interlock(tmp_path, "restore", "one.db", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    with serving(tmp_path) as server:
        assert values(server, 1) == [1]
        assert server.stop() == 0
    # The store of before was killed: its log came along, and nothing of it is lost.
    with Database.open(said["replaced"], clock=SystemClock()) as replaced:
        ((item,),) = replaced.read("SELECT item FROM control WHERE sk = 'SENSOR#key-0'")
        assert json.loads(item)["data"] == {"value": 2}


@contextmanager
def _store(folder: Path) -> Iterator[Path]:
    store = folder / "s.db"
    with Database.open(store, clock=SystemClock()) as database:
        change = "INSERT INTO changes (tbl, pk, sk, at) VALUES ('control', 'p', 's', 0)"
        item = """INSERT INTO control (pk, sk, item) VALUES ('PIPELINE#p', 'SENSOR#s', '{"count":3}')"""
        for sql in (change, item):
            database.write(lambda connection, sql=sql: connection.execute(sql).rowcount)  # type: ignore[misc]
        yield store


def test_manifest_says_what_it_is(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        made = back_up(store, tmp_path / "b.db", NOW)
    written = json.loads((tmp_path / f"b.db{MANIFEST}").read_text())
    assert (written["change"], written["storeVersion"]) == (1, STORE_VERSION)
    assert written["rows"]["control"] == 1
    assert written["sha256"] == made.sha256
    assert {"interlockVersion", "sqliteVersion", "pythonVersion", "createdAt", "bytes"} <= written.keys()
    for file in ("b.db", f"b.db{MANIFEST}"):
        assert stat.S_IMODE((tmp_path / file).stat().st_mode) == 0o600
    # It needs no other file, and is a store.
    with Database.open(tmp_path / "b.db", clock=SystemClock(), read_only=True) as copy:
        assert copy.read("SELECT count(*) FROM control") == [(1,)]
    assert sorted(one.name for one in tmp_path.iterdir() if "b.db" in one.name) == ["b.db", f"b.db{MANIFEST}"]


def test_backup_in_a_folder_is_named_by_the_time(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    with _store(tmp_path):
        done = interlock(tmp_path, "backup", "copies", "--store", "sqlite:///s.db")
    assert done.returncode == 0, done.stderr
    (made,) = [one.name for one in (tmp_path / "copies").glob("*.db")]
    assert re.fullmatch(r"s-\d{8}T\d{6}Z\.db", made)
    assert "checked" in done.stdout


def test_what_is_no_good_backup_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    good = tmp_path / "good.db"
    with _store(tmp_path) as store:
        back_up(store, good, NOW)
    before = store.read_bytes()

    def spoilt(name: str, *, manifest: bool) -> Path:
        copy = tmp_path / name
        shutil.copy(good, copy)
        if manifest:
            shutil.copy(f"{good}{MANIFEST}", f"{copy}{MANIFEST}")
        return copy

    changed = spoilt("changed.db", manifest=True)
    flip(changed, b'"count"')
    record = spoilt("record.db", manifest=False)
    flip(record, b'"count"')
    short = spoilt("short.db", manifest=True)
    short.write_bytes(short.read_bytes()[:-4096])
    newer = spoilt("newer.db", manifest=False)
    connection = sqlite3.connect(newer)
    connection.execute(f"PRAGMA user_version = {STORE_VERSION + 1}")
    connection.close()
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    text = tmp_path / "text.db"
    text.write_text("no database\n" * 500)
    unreadable = spoilt("unreadable.db", manifest=False)
    Path(f"{unreadable}{MANIFEST}").write_text("{")
    expected: dict[Path, str] = {
        changed: "not the file that its manifest describes",
        short: "not the file that its manifest describes",
        record: "it is damaged: control PIPELINE#p SENSOR#s: cannot be read",
        newer: "newer Interlock",
        foreign: "this is no backup of a store",
        text: "not a SQLite database",
        unreadable: "the manifest cannot be read",
        tmp_path / "missing.db": "there is no backup",
    }
    for file, message in expected.items():
        with pytest.raises(Exception, match=message):
            restore(file, store, NOW)
    assert store.read_bytes() == before
    assert not list(tmp_path.glob("*replaced*"))


def test_backup_without_a_manifest_is_checked_all_the_same(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        back_up(store, tmp_path / "b.db", NOW)
    Path(f"{tmp_path / 'b.db'}{MANIFEST}").unlink()
    done = interlock(tmp_path, "restore", "b.db", "--store", "sqlite:///new.db")
    assert done.returncode == 0, done.stderr
    assert "there was no manifest" in done.stdout


def test_what_cannot_be_backed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _store(tmp_path) as store:
        (tmp_path / "there.db").touch()
        with pytest.raises(BackupError, match="exists: name another file"):
            back_up(store, tmp_path / "there.db", NOW)
        with pytest.raises(BackupError, match="there is no folder"):
            back_up(store, tmp_path / "nowhere" / "b.db", NOW)
        monkeypatch.setattr(backup, "inspect", lambda connection: ["page 3 is odd"])
        with pytest.raises(BackupError, match="it is damaged, so its copy is of no use: page 3 is odd"):
            back_up(store, tmp_path / "b.db", NOW)
    assert not (tmp_path / "b.db").exists()
    refused = interlock(tmp_path, "backup", "b.db", "--store", "sqlite:///none.db")
    assert (refused.returncode, "no store at" in refused.stderr) == (1, True)
    assert not (tmp_path / "none.db").exists()


def test_full_disk_leaves_no_half_backup(tmp_path: Path) -> None:
    with _store(tmp_path) as store, small_disk(tmp_path / "disk") as disk:
        disk.fill(leave=20_000)
        with pytest.raises(Exception, match=r"disk is full|cannot be written|No space"):
            back_up(store, disk.folder / "b.db", NOW)
        assert [one.name for one in disk.folder.iterdir()] == ["ballast"]


def test_live_store_is_refused_in_process_as_well(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        back_up(store, tmp_path / "b.db", NOW)
    lock = StoreLock(store)
    lock.take()
    with pytest.raises(StoreInUseError):
        restore(tmp_path / "b.db", store, NOW)
    lock.release()


def test_server_is_not_a_store(tmp_path: Path) -> None:
    clean: dict[str, Any] = {"INTERLOCK_URL": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "backup", "b.db"],
        cwd=tmp_path,
        env={**os.environ, **clean},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "run this where its store is" in " ".join(done.stderr.split())

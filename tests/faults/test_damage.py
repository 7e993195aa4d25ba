"""Files that were damaged or lost while nobody looked: said at the start, in words that tell what to do."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.connection import connect
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.inspection import inspect
from interlock.embedded.sqlite.store_mark import mark_file
from interlock.embedded.sqlite.store_watch import StoreWatch, quick_check
from interlock.model.errors import StoreBehindError
from tests.api.running import Process, pipeline, serving, until, write_pipeline
from tests.faults.disk import small_disk

V1 = "/api/v1"


def interlock(folder: Path, *arguments: str, limit: tuple[int, int] | None = None) -> subprocess.CompletedProcess[str]:
    """Another `interlock` command; `limit`: a resource and how much of it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}

    def confine() -> None:
        if limit is not None:
            resource.setrlimit(limit[0], (limit[1], limit[1]))

    return subprocess.run(
        [sys.executable, "-m", "interlock", *arguments],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=confine,
    )


def put(server: Process, count: int) -> int:
    return server.client.put(f"{V1}/pipelines/gold/sensors/rows", json={"count": count}).status_code


def rows(server: Process) -> int:
    return int(server.client.get(f"{V1}/pipelines/gold/sensors/rows").json()["data"]["count"])


def killed_store(folder: Path, writes: int = 3) -> Path:
    """The store of a controller that was killed, with its log beside it."""
    write_pipeline(folder, "gold", pipeline("gold"))
    with serving(folder) as server:
        for number in range(1, writes + 1):
            assert put(server, number) == 200
        server.kill()
    return server.store


# -------------------------------------------------------------------------------------------------------- lost writes


def test_store_whose_log_vanished_is_refused_with_the_way_out(tmp_path: Path) -> None:
    store = killed_store(tmp_path)
    log, kept = Path(f"{store}-wal"), tmp_path / "kept-wal"
    log.rename(kept)
    refused = interlock(tmp_path, "serve", "--port", "0")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "what was written last is missing" in refused.stderr
    assert "--accept-lost-wal" in refused.stderr
    written = interlock(tmp_path, "sensor", "set", "gold", "rows", "count=5")
    assert written.returncode == 1
    assert "what was written last is missing" in written.stderr
    # Put back, everything is there.
    kept.rename(log)
    with serving(tmp_path) as server:
        assert rows(server) == 3
        server.kill()
    # Accepted, it goes on with what there is, and does not ask again.
    log.unlink()
    with serving(tmp_path, "--accept-lost-wal") as server:
        assert server.client.get(f"{V1}/pipelines/gold").status_code == 200
        assert put(server, 9) == 200
        accepted = server.client.get(f"{V1}/audit?action=loss-accepted").json()["items"]
        assert [one["actor"]["kind"] for one in accepted] == ["os-user"]
        server.kill()
    with serving(tmp_path) as server:
        assert rows(server) == 9
        assert server.stop() == 0
    assert not mark_file(store).exists()


def test_older_copy_in_its_place_is_refused(tmp_path: Path) -> None:
    store = killed_store(tmp_path)
    with serving(tmp_path) as server:
        assert server.stop() == 0
    copy = tmp_path / "copy.db"
    shutil.copy(store, copy)
    with serving(tmp_path) as server:
        assert put(server, 50) == 200
        server.kill()
    shutil.copy(copy, store)
    for beside in ("-wal", "-shm"):
        Path(f"{store}{beside}").unlink()
    refused = interlock(tmp_path, "serve", "--port", "0")
    assert refused.returncode == 1
    assert "or an older copy of the store was put in its place" in refused.stderr
    checked = interlock(tmp_path, "doctor", "--json")
    (found,) = [one for one in json.loads(checked.stdout)["checks"] if one["name"] == "latest writes"]
    assert not found["ok"]


def test_log_that_was_moved_into_the_file_by_others_is_not_missed(tmp_path: Path) -> None:
    """Whoever opens the file with another tool after a crash has SQLite do that, and remove the log."""
    store = killed_store(tmp_path)
    connection = connect(store, mode="rw")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert not Path(f"{store}-wal").exists()
    with serving(tmp_path) as server:
        assert rows(server) == 3


def test_store_that_was_deleted_altogether_is_begun_anew(tmp_path: Path) -> None:
    store = killed_store(tmp_path)
    for beside in ("", "-wal", "-shm"):
        Path(f"{store}{beside}").unlink()
    with serving(tmp_path) as server:
        assert put(server, 1) == 200


def test_mark_is_exact_for_each_acknowledged_write(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    change = "INSERT INTO changes (tbl, pk, sk, at) VALUES ('control', 'p', 's', 0)"
    with Database.open(store, clock=SystemClock()) as database:
        for number in range(1, 6):
            database.write(lambda connection: connection.execute(change).rowcount)
            assert int(mark_file(store).read_text()) == number
        # A second process that writes to the same store agrees.
        with Database.open(store, clock=SystemClock(), inline=True) as other:
            other.write(lambda connection: connection.execute(change).rowcount)
        assert int(mark_file(store).read_text()) == 6
        mark_file(store).write_text("0000000000000000099\n")
        with pytest.raises(StoreBehindError, match="it has come to change 6, and had come to 99"):
            Database.open(store, clock=SystemClock())
        Database.open(store, clock=SystemClock(), accept_lost=True).close()


# ------------------------------------------------------------------------------------------------------------- damage


def flip(store: Path, pattern: bytes = b"") -> None:
    """Change bytes in the middle of data: of pages, or of one record."""
    content = bytearray(store.read_bytes())
    if pattern:
        at = content.index(pattern)
        content[at : at + 2] = b"\x00\x00"
    else:
        for page in range(4 * 4096, len(content), 4096):
            content[page : page + 64] = bytes(255 - byte for byte in content[page : page + 64])
    store.write_bytes(content)


def test_damaged_pages_are_found_in_the_background(tmp_path: Path) -> None:
    store = killed_store(tmp_path, 50)
    with serving(tmp_path) as server:
        assert server.stop() == 0
    # Below the pages that a start reads: those of a table that nobody asks.
    connection = connect(store, mode="rw")
    letter = "INSERT INTO dead_letters (source, kind, ref, record, error, tries, first_ms, last_ms)"
    for number in range(50):
        values = ("x", "change", str(number), json.dumps({"text": "y" * 3000}), "failed", 3, 0, 0)
        connection.execute(f"{letter} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'dead_letters'").fetchone()[0]
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = bytearray(store.read_bytes())
    content[(root - 1) * 4096 + 8 : (root - 1) * 4096 + 40] = b"\xff" * 32
    store.write_bytes(content)
    with serving(tmp_path) as server:
        until(lambda: "the store is damaged" in server.log.read_text() or None, "a word in the log")
        health = server.client.get("/readyz")
        assert health.status_code == 200
        assert "the store is damaged" in health.json()["degraded"][0]
    for arguments in (["doctor"], ["doctor", "--deep"]):
        said = interlock(tmp_path, *arguments, "--json")
        found = [one for one in json.loads(said.stdout)["checks"] if one["name"] == "store"]
        assert not found[0]["ok"]
        assert "is damaged" in found[0]["detail"]


def test_record_that_was_changed_in_place_is_found_by_looking_at_all_of_them(tmp_path: Path) -> None:
    store = killed_store(tmp_path)
    with serving(tmp_path) as server:
        assert server.stop() == 0
    connection = connect(store, mode="ro")
    assert inspect(connection) == []
    connection.close()
    flip(store, b'"count":3')
    said = interlock(tmp_path, "doctor", "--json")
    assert [one["ok"] for one in json.loads(said.stdout)["checks"] if one["name"] == "store"] == [True]
    said = interlock(tmp_path, "doctor", "--deep", "--json")
    (found,) = [one for one in json.loads(said.stdout)["checks"] if one["name"] == "store"]
    assert not found["ok"]
    assert re.search(r"control PIPELINE#gold SENSOR#rows: cannot be read", found["detail"])


def test_check_at_the_start_is_bounded(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with Database.open(store, clock=SystemClock()) as database:
        insert = "INSERT INTO dead_letters (source, kind, ref, record, error, tries, first_ms, last_ms)"
        count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) "
        select = "SELECT 'x', 'change', i, '{}', 'failed', 3, 0, 0 FROM n"
        database.write(lambda connection: connection.execute(f"{insert} {count} {select}").rowcount)
        assert quick_check(store, lambda: True) is None
        assert quick_check(store, lambda: False) == []
        watch = StoreWatch(database, check_seconds=0.0)
        watch.start()
        watch.stop()
        assert not [one for one in watch.degradations() if "damaged" in one]


# --------------------------------------------------------------------------------------------------- words at the start


@pytest.mark.parametrize("kind", ["new", "existing"])
def test_full_disk_at_the_start(tmp_path: Path, kind: str) -> None:
    with small_disk(tmp_path / "disk") as disk:
        if kind == "new":
            disk.fill()
            refused = interlock(disk.folder, "serve", "--port", "0")
            assert refused.returncode == 1
            assert "Traceback" not in refused.stderr
            assert "the disk is full: make room" in refused.stderr
            disk.clear()
            with serving(disk.folder) as server:
                assert server.client.get("/readyz").status_code == 200
            return
        killed_store(disk.folder)
        disk.fill()
        # It starts, says what is wrong, and works as soon as it can.
        log = tmp_path / "log.txt"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "interlock", "serve", "--port", "0"], cwd=disk.folder, stdout=out, stderr=out
            )
        try:
            until(lambda: '"event": "serving"' in log.read_text() or None, "the start")
            assert "the discovery file cannot be written" in log.read_text()
            assert "Traceback" not in log.read_text()
            disk.clear()
            found = until(lambda: interlock(disk.folder, "status").returncode == 0 or None, "its being found")
            assert found
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_discovery_file_that_cannot_be_written(tmp_path: Path) -> None:
    write_pipeline(tmp_path, "gold", pipeline("gold"))
    (tmp_path / "interlock.db.server.json").mkdir()
    log = tmp_path / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "interlock", "serve", "--port", "0"], cwd=tmp_path, stdout=out, stderr=out
        )
    try:
        until(lambda: '"event": "serving"' in log.read_text() or None, "the start")
        assert "other commands need --url until it can" in log.read_text()
        (tmp_path / "interlock.db.server.json").rmdir()
        until(lambda: (tmp_path / "interlock.db.server.json").is_file() or None, "the file")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()


def test_lock_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "interlock.db.lock").mkdir()
    refused = interlock(tmp_path, "serve", "--port", "0")
    assert refused.returncode == 1
    assert "its lock" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("kilobytes", [60_000, 150_000, 400_000])
def test_memory_limit_is_told_in_words(tmp_path: Path, kilobytes: int) -> None:
    refused = interlock(tmp_path, "serve", "--port", "0", limit=(resource.RLIMIT_AS, kilobytes * 1024))
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr, refused.stderr
    assert re.search(r"Error: (there is not enough memory|no thread could be started): ", refused.stderr)

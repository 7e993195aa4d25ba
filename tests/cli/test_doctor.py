"""`interlock doctor`: what is well, what is not, and what to do about it."""

import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.cli import diagnosis
from tests.api.running import Process, pipeline, write_pipeline
from tests.cli.stage import Stage, plain, served, store_of
from tests.cli.test_dlq import bury_one

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def checks(stage: Stage) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in stage.json("doctor")["checks"]}


def test_all_is_well(capsys: Capsys, server: Process, tmp_path: Path) -> None:
    served(capsys, server, "healthy")
    write_pipeline(tmp_path / "project", "gold", pipeline("gold"))
    stage = Stage(capsys, "--store", store_of(server))
    out = stage.good("doctor")
    assert out.splitlines()[-1] == "all is well"
    assert "✓ configs: 1 pipeline" in out
    found = checks(stage)
    assert all(one["ok"] for one in found.values())
    asked = {
        "time zones",
        "packages",
        "configs",
        "store",
        "writable",
        "permissions",
        "disk",
        "streams",
        "dead letters",
        "server",
    }
    assert asked | {"stored configs", "alerts", "clock", "watchdog", "latest writes", "audit trail"} == set(found)


def test_over_the_network(capsys: Capsys, server: Process) -> None:
    stage = served(capsys, server, "remote")
    found = checks(stage)
    assert all(one["ok"] for one in found.values())
    assert set(found) == {"time zones", "packages", "server", "clock", "stored configs", "dead letters"}


def test_nothing_is_there(capsys: Capsys, tmp_path: Path) -> None:
    stage = Stage(capsys)
    outcome = stage.run("doctor")
    assert outcome.code == 1
    assert "✗ store: no store at" in outcome.out
    assert "-> start it with `interlock serve`" in outcome.out
    assert list((tmp_path / "project").iterdir()) == []


def test_a_sick_store(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    bury_one(tmp_path / "plain.db", "lost")
    (tmp_path / "plain.db").chmod(0o666)
    found = checks(stage)
    assert not found["dead letters"]["ok"]
    assert "dlq list" in found["dead letters"]["advice"]
    assert not found["permissions"]["ok"]
    assert "chmod go=" in found["permissions"]["advice"]
    assert not found["server"]["ok"]
    assert found["store"]["ok"]


def test_a_file_that_is_no_store(capsys: Capsys, tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("dear diary, " * 100)
    found = checks(Stage(capsys, "--store", f"sqlite:///{tmp_path / 'notes.db'}"))
    assert "not a SQLite database" in found["store"]["detail"]


def test_a_damaged_store(capsys: Capsys, tmp_path: Path) -> None:
    plain(capsys, tmp_path, *[pipeline(f"p{n}") for n in range(200)])
    path = tmp_path / "plain.db"
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(content))
    stage = Stage(capsys, "--store", f"sqlite:///{path}")
    outcome = stage.run("doctor")
    assert outcome.code == 1
    assert "damaged" in outcome.out


def test_a_full_disk(capsys: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    stage = plain(capsys, tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 10**12, 10**6))
    assert "make room" in checks(stage)["disk"]["advice"]


def test_invalid_configs(capsys: Capsys, tmp_path: Path) -> None:
    stage = plain(capsys, tmp_path)
    project = tmp_path / "project"
    write_pipeline(project, "gold", {**pipeline("gold"), "schedle": {}})
    found = checks(stage)["configs"]
    assert not found["ok"]
    assert "schedle" in found["detail"]
    assert "interlock validate" in found["advice"]
    (project / "interlock.toml").write_text("prot = 1\n")
    assert "did you mean port" in checks(stage)["settings"]["detail"]
    (project / "interlock.toml").write_text('pipelines = "elsewhere"\n')
    assert "there is no folder" in checks(stage)["configs"]["detail"]


def test_something_else_listens(server: Process) -> None:
    [found] = [one for one in diagnosis.server(f"{server.url}/api", None) if one.name == "server"]
    assert not found.ok
    assert "not as an Interlock server" in found.detail
    [found] = list(diagnosis.server("http://127.0.0.1:9", None))
    assert "does not answer" in found.detail


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"ready": True, "problems": [], "degraded": []}, [("server", True)]),
        (503, {"ready": False, "problems": ["watchdog has ended"], "degraded": []}, [("server", False)]),
        (200, {"ready": True, "problems": [], "degraded": ["slack is down"]}, [("server", True), ("degraded", False)]),
    ],
)
def test_a_server_that_is_not_ready(status: int, body: dict[str, Any], expected: list[tuple[str, bool]]) -> None:
    found = list(diagnosis._ready("http://x", httpx.Response(status, json=body)))
    assert [(one.name, one.ok) for one in found] == expected
    reported = " ".join(one.detail for one in found)
    assert all(one in reported for one in [*body["problems"], *body["degraded"]])


def test_a_clock_that_is_wrong() -> None:
    late = httpx.Response(200, headers={"Date": "Mon, 02 Mar 2020 08:00:00 GMT"})
    assert not diagnosis._skew(late).ok
    assert diagnosis._skew(httpx.Response(200)).ok

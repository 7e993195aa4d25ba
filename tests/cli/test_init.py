"""`interlock init`: a project that validates, simulates and runs; and never half of one."""

import os
import shutil
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.cli.init import PROJECT
from interlock.control import writing
from interlock.embedded.service import Service, ServiceSettings
from interlock.model.events import Event, EventType
from tests.cli.test_main import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def test_it_writes_the_project_and_says_what_is_next(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    outcome = run(capsys, "init", "my/project")
    assert outcome.code == 0
    assert files(folder / "my/project") == set(PROJECT)
    assert outcome.out.splitlines()[-1].startswith("next: cd my/project && interlock simulate scenarios/")


def test_the_project_validates_and_simulates(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    run(capsys, "init")
    assert run(capsys, "validate", ".").out == "2 pipelines, 0 errors, 0 warnings\n"
    outcome = run(capsys, "simulate", "scenarios")
    assert outcome.code == 0, outcome.out
    assert run(capsys, "plan", ".").code == 0
    assert run(capsys, "apply", ".").code == 0
    assert run(capsys, "why", "orders").code == 0


@pytest.mark.parametrize("hour", [0, 6, 12, 22])
def test_the_project_works_at_any_hour(capsys: pytest.CaptureFixture[str], folder: Path, hour: int) -> None:
    run(capsys, "init")
    scenario = Path("scenarios/first.yaml")
    text = scenario.read_text().replace("T09:00:00Z", f"T{hour:02d}:40:00Z").replace("T12:00:00Z", "T23:58:00Z")
    scenario.write_text(text)
    outcome = run(capsys, "simulate", "-q", "scenarios")
    assert outcome.code == 0, outcome.out


def test_it_refuses_to_overwrite_and_names_the_files(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "README.md").write_text("mine")
    (folder / "pipelines").mkdir()
    (folder / "pipelines/orders.yaml").write_text("mine")
    outcome = run(capsys, "init")
    assert (outcome.code, outcome.out) == (1, "")
    assert "these are there already: pipelines/orders.yaml, README.md" in outcome.err
    assert files(folder) == {"README.md", "pipelines/orders.yaml"}
    assert run(capsys, "init", "--force").code == 0
    assert (folder / "README.md").read_text() == PROJECT["README.md"]
    assert files(folder) == set(PROJECT)


def test_when_it_can_not_write_all_it_writes_nothing(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "p").mkdir()
    (folder / "p/jobs").write_text("a file where a folder has to be")
    outcome = run(capsys, "init", "p")
    assert outcome.code == 1
    assert "nothing was written" in outcome.err
    assert files(folder) == {"p/jobs"}
    assert sorted(one.name for one in (folder / "p").iterdir()) == ["jobs"]


def test_a_file_is_no_folder(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "taken").write_text("x")
    assert run(capsys, "init", "taken").code == 2


def test_the_project_runs(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    """On the real controller: a sensor opens it, the second lets it start, the report follows."""
    run(capsys, "init")
    settings = ServiceSettings(
        store=folder / "interlock.db",
        pipelines=folder / "pipelines",
        working_folder=folder,
        watchdog_every=timedelta(hours=1),
    )
    service = Service(settings)
    done = threading.Event()

    def hear(event: Event) -> None:
        if event.type is EventType.JOB_COMPLETED and event.pipeline_id == "report":
            done.set()

    service.engine.bus.subscribe(hear)
    service.start()
    try:
        writing.write_sensor(service.control, "orders", "orders-file", {"status": "ready"})
        writing.write_sensor(service.control, "orders", "orders-count", {"count": 250})
        assert done.wait(60), "the report did not complete"
    finally:
        service.stop()
    assert "orders of" in (folder / "out/orders.log").read_text()
    assert (folder / "out/report.log").read_text().rstrip().endswith("attempt 1")


def test_as_a_person_would(folder: Path) -> None:
    """Through the installed command, in a process of its own."""
    command = shutil.which("interlock", path=str(Path(sys.executable).parent))
    assert command is not None
    for arguments in (["init", "p"], ["simulate", "p/scenarios"], ["apply", "p", "--store", "sqlite:///p/il.db"]):
        answer = subprocess.run(
            [command, *arguments], capture_output=True, text=True, check=False, env=dict(os.environ)
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert answer.stderr == ""
    asked = [command, "why", "report", "--store", "sqlite:///p/il.db"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert "has not run: it waits for orders" in answer.stdout

"""The guide's pages: each printed config is valid, raises no warning, and is run as printed."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.config.loader import load_paths
from interlock.control import records, writing
from interlock.embedded.clock import ScaledClock
from interlock.embedded.service import Service, ServiceSettings
from interlock.embedded.targets import abilities
from interlock.model.keys import RunKey
from interlock.model.run import JobEvent, RunStatus
from tests.api.running import until
from tests.jobs.airflow.server import PASSWORD, USER, FakeAirflow
from tests.jobs.api_server import ApiServer, Call, Reply
from tests.jobs.databricks.server import CLIENT, SECRET, FakeDatabricks
from tests.jobs.foreign import installed

PAGES = Path(__file__).parents[2] / "docs" / "guide" / "jobs"
KEY = RunKey("gold-revenue", "cron", "2026-03-02")


def printed(page: str, language: str = "yaml") -> str:
    """The first block of a language on a page."""
    found = re.search(rf"```{language}\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


class Scene:
    """What a page's config needs around it."""

    environment: Mapping[str, str] = {}
    server: AbstractContextManager[Any] = nullcontext()

    def prepare(self, folder: Path) -> None:
        """Before the controller is started."""

    def end(self, service: Service) -> None:
        """The job was started: it ends well."""


class Command(Scene):
    def prepare(self, folder: Path) -> None:
        script = folder / "jobs" / "gold-revenue" / "gold.py"
        script.parent.mkdir(parents=True)
        script.write_text(
            "import os, sys, pathlib\n"
            "assert sys.argv[1:] == ['2026-03-02'] and os.environ['DB_PASSWORD'] == 'hunter2-hunter2'\n"
            "pathlib.Path(os.environ['OUTPUT']).write_text('1,2')\n"
        )
        self.environment = {"INTERLOCK_SECRET_DB": "hunter2-hunter2", "PATH": str(Path(sys.executable).parent)}
        self.written = script.parent / "gold-2026-03-02.csv"

    def end(self, service: Service) -> None:
        until(self.written.exists, "the command's file")


class _Etl(ApiServer):
    """The API that the page's config is for."""

    def __init__(self) -> None:
        super().__init__()
        self.state = "RUNNING"
        self.asked: list[dict[str, Any]] = []

    def answer(self, call: Call) -> Reply:
        if call.headers.get("authorization") != "Bearer t0ken-t0ken":
            return Reply(401)
        if call.method == "POST":
            assert call.headers["idempotency-key"]
            self.asked.append(call.json())
        return Reply(200, {"job": {"id": "j-7", "state": self.state}})


class Http(Scene):
    def __init__(self) -> None:
        self.etl = _Etl()
        self.server = self.etl
        self.environment = {"INTERLOCK_ETL_URL": self.etl.url, "INTERLOCK_SECRET_ETL_TOKEN": "t0ken-t0ken"}

    def end(self, service: Service) -> None:
        until(lambda: self.etl.calls[-1].path == ("jobs", "j-7"), "the first question")
        self.etl.state = "SUCCEEDED"
        assert self.etl.asked[0]["day"] == "2026-03-02"


class Airflow(Scene):
    def __init__(self) -> None:
        self.airflow = FakeAirflow()
        self.airflow.add_dag("gold_revenue")
        self.server = self.airflow
        self.environment = {"INTERLOCK_AIRFLOW_URL": self.airflow.url, "INTERLOCK_SECRET_AIRFLOW": PASSWORD}
        assert USER == "interlock"

    def end(self, service: Service) -> None:
        until(lambda: self.airflow.runs, "the DAG run")
        assert next(iter(self.airflow.runs.values()))["conf"] == {"day": "2026-03-02"}
        self.airflow.end("success")


class Databricks(Scene):
    def __init__(self) -> None:
        self.databricks = FakeDatabricks()
        self.databricks.jobs = [{"job_id": 11, "settings": {"name": "gold-revenue"}}]
        self.server = self.databricks
        self.environment = {
            "INTERLOCK_DATABRICKS_HOST": self.databricks.url,
            "INTERLOCK_DATABRICKS_CLIENT": CLIENT,
            "INTERLOCK_SECRET_DATABRICKS": SECRET,
        }

    def end(self, service: Service) -> None:
        until(lambda: self.databricks.runs, "the run")
        self.databricks.end("TERMINATED", "SUCCESS")


class External(Scene):
    def end(self, service: Service) -> None:
        writing.report_job(service.control, KEY, JobEvent.SUCCESS)


SCENES = {
    "command.md": Command,
    "http.md": Http,
    "airflow.md": Airflow,
    "databricks.md": Databricks,
    "external.md": External,
}


@pytest.fixture(params=SCENES)
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_config_is_valid_as_printed(page: str, tmp_path: Path) -> None:
    file = tmp_path / "gold-revenue.yaml"
    file.write_text(printed(page))
    loaded = load_paths([file], abilities=abilities())
    assert loaded.problems == ()
    assert len(loaded.configs) == 1


def test_every_key_is_in_the_table_of_its_page(page: str) -> None:
    config = yaml.safe_load(printed(page))["job"].get("config", {})
    text = (PAGES / page).read_text()
    assert not [key for key in config if f"`{key}`" not in text]


def completed(scene: Scene, config: str, folder: Path) -> None:
    """Run a config to its end: a controller that is up some seconds before the tick, on time that then goes faster."""
    pipelines = folder / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "gold-revenue.yaml").write_text(config)
    scene.prepare(folder)
    clock = ScaledClock(datetime(2026, 3, 2, 7, 59, 50, tzinfo=UTC), 0.01)
    settings = ServiceSettings(
        store=folder / "interlock.db",
        pipelines=pipelines,
        allow_private_addresses=True,
        working_folder=folder,
        environment=dict(scene.environment),
        watchdog_every=timedelta(hours=1),
    )
    with scene.server:
        service = Service(settings, clock=clock)
        try:
            assert service.start().problems == ()
            data = {"status": "ready", "date": "2026-03-02"}
            writing.write_sensor(service.control, "gold-revenue", "upstream-complete", data)
            clock.set_speed(60)

            def reached(*wanted: RunStatus) -> bool:
                run = records.get_run(service.control.store, KEY)
                return run is not None and run.status in wanted

            until(lambda: reached(RunStatus.RUNNING, RunStatus.COMPLETED), "the start")
            scene.end(service)
            until(lambda: reached(RunStatus.COMPLETED), "the end")
        finally:
            service.stop()


def test_a_config_is_run_as_printed(page: str, tmp_path: Path) -> None:
    completed(SCENES[page](), printed(page), tmp_path / "project")


# --------------------------------------------------------------------------------------------------- your own target


class _Queue(ApiServer):
    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, dict[str, str]] = {}

    def answer(self, call: Call) -> Reply:
        match call.method, call.path:
            case "POST", ("jobs",):
                body = call.json()
                self.jobs.setdefault(body["key"], {**body, "state": "busy"})
                return Reply(200, {})
            case "GET", ("jobs", key):
                return Reply(200, self.jobs[key])
            case _:
                return Reply(404)


class Queue(Scene):
    def __init__(self) -> None:
        self.queue = _Queue()
        self.server = self.queue

    def end(self, service: Service) -> None:
        until(lambda: self.queue.jobs, "the job")
        (job,) = self.queue.jobs.values()
        assert (job["task"], job["day"]) == ("gold", "2026-03-02")
        job["state"] = "done"


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    """The page's package, installed."""
    line = printed("your-own.md", "toml").splitlines()[1].replace('"', "")
    with installed(tmp_path / "site", line, module=printed("your-own.md", "python")):
        yield


@pytest.mark.usefixtures("package")
def test_the_target_of_the_page_runs_as_printed(tmp_path: Path) -> None:
    scene = Queue()
    config = yaml.safe_load(printed("external.md"))
    config["job"] = {"type": "queue", "config": {"url": scene.queue.url, "task": "gold"}}
    completed(scene, yaml.safe_dump(config), tmp_path / "project")


@pytest.mark.usefixtures("package")
def test_its_config_is_checked_with_lines(tmp_path: Path) -> None:
    file = tmp_path / "gold-revenue.yaml"
    file.write_text(printed("external.md").replace("{type: external}", "{type: queue, config: {uri: x, task: gold}}"))
    found = [str(problem).partition("gold-revenue.yaml:")[2] for problem in load_paths([file]).errors]
    assert found == [
        "6 job.config.uri: unknown key; did you mean url?",
        "6 job.config.url: is missing: jobs of type queue need url",
    ]


def test_the_page_is_short() -> None:
    lines = [line for line in printed("your-own.md", "python").splitlines() if line.strip()]
    assert len(lines) <= 40

"""A command through a real controller: stopped, read while it writes, and stopped by the controller after next."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, records, writing
from interlock.control.attempts import starting
from interlock.embedded.service import Service, ServiceSettings
from interlock.model.config import PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.run import FailureCategory, Run, RunStatus
from interlock.ports.jobs import JobRequest, JobRunner, JobStop
from tests.api.running import until
from tests.jobs.stage import DAY, KEY

# Says what it was given, says that it is up, and goes on until it is stopped.
SCRIPT = 'echo "$DAY in $(basename "$PWD") with $PASSWORD"; echo up > up; sleep 600'
SECRET = "hunter2-hunter2"


@contextmanager
def controller(folder: Path) -> Iterator[Service]:
    settings = ServiceSettings(
        store=folder / "interlock.db",
        working_folder=folder,
        watchdog_every=timedelta(hours=1),
        environment={"PATH": os.environ["PATH"], "INTERLOCK_SECRET_PASSWORD": SECRET},
    )
    service = Service(settings)
    service.start()
    try:
        yield service
    finally:
        service.stop()


def document(**job: Any) -> dict[str, Any]:
    config = {
        "command": ["sh", "-c", SCRIPT],
        "cwd": "${PIPELINE}",
        "env": {"DAY": "${DATE}", "PASSWORD": "${INTERLOCK_SECRET_PASSWORD}"},
    }
    return {
        "pipeline": {"id": "gold"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": "command", "config": config, **job},
    }


def begin(service: Service, folder: Path) -> None:
    """Run it until the command is up."""
    (folder / "gold").mkdir()
    os.mkfifo(folder / "gold" / "up")
    config = read_stored(document(), {})
    assert isinstance(config, PipelineConfig), config
    catalog.apply_config(service.control, config, document())
    writing.write_sensor(service.control, "gold", "ready", {"date": DAY})
    assert (folder / "gold" / "up").read_text() == "up\n"


def run_of(service: Service, key: RunKey = KEY) -> Run:
    run = records.get_run(service.control.store, key)
    assert run is not None
    return run


def job_of(service: Service) -> tuple[JobRunner, JobRequest]:
    run = run_of(service)
    config = catalog.opened_with(service.control.store, run.pipeline, run.config_version)
    return starting.runner_of(service.control, config), starting.request_of(service.control, config, run)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_command_is_read_and_stopped(tmp_path: Path, restarted: bool) -> None:
    with controller(tmp_path) as first:
        begin(first, tmp_path)
        until(lambda: run_of(first).status is RunStatus.RUNNING, "the start")
        if not restarted:
            _read_and_stop(first)
            return
    with controller(tmp_path) as second:
        _read_and_stop(second)


def _read_and_stop(service: Service) -> None:
    runner, request = job_of(service)
    output = runner.output(request, request.run_id)
    assert (output.text, output.complete) == ("2026-03-02 in gold with ***\n", False)
    assert runner.stop(request, request.run_id) is JobStop.REQUESTED
    ended = until(lambda: run if (run := run_of(service)).status is RunStatus.FAILED_FINAL else None, "the end")
    assert ended.attempt == 1
    (logged,) = records.job_log(service.control.store, KEY)
    assert logged.category is FailureCategory.TRANSIENT
    assert logged.error.startswith(
        "stopped on request: signal 15 (SIGTERM); its last output:\n2026-03-02 in gold with ***"
    )
    assert runner.stop(request, request.run_id) is JobStop.ENDED
    assert runner.output(request, request.run_id, offset=output.next_offset).complete

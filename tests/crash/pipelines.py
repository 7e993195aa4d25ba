"""The pipelines of the crash tests, and what both sides of a crash know about them."""

import uuid
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from interlock.config.stored import read_stored
from interlock.control import catalog
from interlock.control.context import Control
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.sqlite.database import Database
from interlock.model.config import JobType, PipelineConfig
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobRunner

FIRST_DAY = date(2026, 1, 1)


def engine_on(path: Path, runner: JobRunner) -> Engine:
    """A controller on that file, wired and not yet driven."""
    clock = SystemClock()
    database = Database.open(path, clock=clock)
    return Engine(database, clock, {JobType.COMMAND: runner}, new_id=lambda: uuid.uuid4().hex[:12])


def name_of(number: int) -> str:
    return f"pipeline-{number:03d}"


def slots(pipelines: int, days: int) -> list[RunKey]:
    """Every run, day by day."""
    dates = [str(FIRST_DAY + timedelta(days=day)) for day in range(days)]
    return [RunKey(name_of(number), "stream", day) for day in dates for number in range(pipelines)]


def apply(control: Control, name: str) -> None:
    """A pipeline that a write of `ready` opens."""
    content = document(name, {"config": {"command": ["true"]}, "pollInterval": "1s"})
    config = read_stored(content, {})
    assert isinstance(config, PipelineConfig), config
    catalog.apply_config(control, config, content)


def document(name: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a pipeline that a write of `ready` opens, with a command as its job."""
    ready = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
    return {
        "pipeline": {"id": name},
        "schedule": {"trigger": ready, "evaluation": {"window": "12h", "interval": "1h"}},
        "validation": {"rules": [ready]},
        "job": {"type": "command", **job},
    }

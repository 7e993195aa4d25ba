"""Probes on AWS: the orchestrator looks before it evaluates, and what it cannot look at is refused by name."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from interlock.aws.looking import look_first
from interlock.aws.refusals import impossible, refusals
from interlock.config.problems import format_path
from interlock.config.stored import read_stored
from interlock.control import records
from interlock.control.attempts import orchestrator
from interlock.model.config import PipelineConfig
from interlock.model.errors import ProbeError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from interlock.ports.probes import ProbeRequest
from interlock.simulation.scenario import inline_scenario
from tests.aws.world.play import on_aws
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, pipeline, staged

PROBE = {"key": "rows", "type": "http", "interval": "10m", "timeout": "100ms", "config": {"url": "https://example.com"}}
RULES = {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 10}]}


class Scripted:
    """Answers as it is told, and counts how often it was asked."""

    def __init__(self) -> None:
        self.found: dict[str, Any] | Exception | None = {"count": 12}
        self.asked: list[str] = []
        self.released = threading.Event()

    def answers(self, pipeline_: str, key: str) -> bool:
        return True

    def look(self, request: ProbeRequest) -> dict[str, Any]:
        self.asked.append(request.date or request.key)
        if self.found is None:
            self.released.wait(10)
            raise ProbeError("too late")
        if isinstance(self.found, Exception):
            raise self.found
        return dict(self.found)


def waiting(**probe: Any) -> FaultyWorld:
    """A run that waits for what its probe sees; nobody has looked."""
    return staged(pipeline(validation=RULES, probes=[PROBE | probe]), until="2026-03-05T00:15:00Z")


def evaluate(world: FaultyWorld, prober: Scripted) -> dict[str, Any]:
    control = replace(control_of(world), probes=prober, look_first=look_first)
    task = {"mode": "evaluate", "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1}
    return orchestrator.handle(control, task)


def test_an_evaluation_looks_first_and_counts_on_what_it_saw() -> None:
    world, prober = waiting(), Scripted()
    assert evaluate(world, prober)["status"] == "passed"
    assert prober.asked == ["rows"]
    assert evaluate(world, prober)["status"] == "passed"
    assert prober.asked == ["rows"], "a run that has passed is not looked for"


def test_it_looks_once_per_interval() -> None:
    world, prober = waiting(), Scripted()
    prober.found = {"count": 1}
    for _ in range(3):
        assert evaluate(world, prober)["status"] == "waiting"
    assert prober.asked == ["rows"]


def test_a_dated_probe_looks_for_the_period_of_the_run() -> None:
    world, prober = waiting(type="s3", config={"bucket": "lake", "prefix": "orders/${DATE}/"}), Scripted()
    assert evaluate(world, prober)["status"] == "passed"
    assert prober.asked == [KEY.date]
    assert f"rows#{KEY.date}" in records.get_sensors(control_of(world).store, "orders", [f"rows#{KEY.date}"])


@pytest.mark.parametrize("error", [ProbeError("refused"), RuntimeError("odd")])
def test_a_probe_that_fails_writes_nothing_and_says_so(error: Exception) -> None:
    world, prober = waiting(), Scripted()
    prober.found = error
    assert evaluate(world, prober)["status"] == "waiting"
    assert count_events(world, EventType.PROBE_FAILED) == 1
    assert records.get_sensors(control_of(world).store, "orders", ["rows"]) == {}


def test_one_that_hangs_has_failed_when_its_time_is_over() -> None:
    world, prober = waiting(), Scripted()
    prober.found = None
    try:
        assert evaluate(world, prober)["status"] == "waiting"
    finally:
        prober.released.set()
    assert count_events(world, EventType.PROBE_FAILED) == 1


def test_a_run_opened_by_cron_is_gated_by_a_probe_on_aws() -> None:
    scenario = inline_scenario(
        start="2026-03-02T07:00:00Z",
        until="2026-03-02T10:00:00Z",
        pipelines=[
            {
                "pipeline": {"id": "gold"},
                "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "1h", "interval": "5m"}},
                "validation": RULES,
                "probes": [PROBE | {"interval": "5m", "timeout": "5s"}],
                "job": {"type": "glue", "config": {"jobName": "etl"}},
            }
        ],
        probes={"gold": {"rows": [{"data": {"count": 0}}, {"at": "2026-03-02T08:12:00Z", "data": {"count": 12}}]}},
    )
    with on_aws(scenario) as world:
        world.play()
        run = world.run_of(RunKey("gold", "cron", "2026-03-02"))
        assert run is not None
        assert run.status is RunStatus.COMPLETED
        passed = [event.timestamp for event in world.events if event.type is EventType.VALIDATION_PASSED]
        assert [f"{at:%H:%M}" for at in passed] == ["08:15"]
        assert world.dead_letters() == 0


# ---------------------------------------------------------------------------------------------------- refused


def config(**parts: Any) -> PipelineConfig:
    read = read_stored(pipeline(**parts), {})
    assert isinstance(read, PipelineConfig), read
    return read


@pytest.mark.parametrize(
    ("parts", "path", "said"),
    [
        ({"job": {"type": "command", "config": {"command": ["etl"]}}}, "job.type", "command jobs"),
        (
            {"job": {"type": "http", "config": {"url": "https://x.example", "callback": True}}},
            "job.config.callback",
            "callback",
        ),
        ({"probes": [{"key": "rows", "type": "command", "config": {"command": ["x"]}}]}, "probes[0].type", "command"),
        ({"probes": [{"key": "rows", "type": "file", "config": {"path": "/x"}}]}, "probes[0].type", "file probes"),
        (
            {"probes": [{"key": "rows", "type": "sql", "config": {"url": "sqlite:///x", "query": "SELECT 1"}}]},
            "probes[0].type",
            "sql probes",
        ),
        ({"probes": [PROBE | {"key": "ready"}]}, "probes[0].key", "open the run"),
    ],
)
def test_what_the_functions_cannot_do_is_refused_by_name(parts: dict[str, Any], path: str, said: str) -> None:
    (finding,) = impossible(config(**parts))
    assert format_path(finding.path) == path
    assert said in finding.message
    assert finding in list(refusals(config(**parts), timedelta(hours=4)))


def test_what_runs_is_not_refused() -> None:
    assert list(impossible(config(validation=RULES, probes=[PROBE]))) == []

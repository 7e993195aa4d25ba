"""What a job wrote: whose output is read, with which config, and how an attempt is found by its run id."""

from dataclasses import replace
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog
from interlock.control.context import Control
from interlock.control.views import job_output
from interlock.model.config import JobType, PipelineConfig
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey
from interlock.ports.jobs import JobOutput, JobRequest, JobStarted, JobState, JobStatus, Recovery
from tests.mute_target import MuteTarget
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, run_of, settle, staged

FAILS_ONCE: Final = [
    {"after": "5m", "result": "fail", "category": "TRANSIENT"},
    {"after": "5m", "result": "success"},
]


class Writer(MuteTarget):
    """A target whose jobs have written something; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[JobRequest, str, int]] = []

    def start(self, request: JobRequest) -> JobStarted:
        raise AssertionError(f"{request.run_id}: nothing is started by reading")

    def recover(self, request: JobRequest) -> Recovery:
        return Recovery.UNDECIDABLE

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        return JobStatus(state=JobState.RUNNING)

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        self.asked.append((request, job_id, offset))
        return JobOutput(text=f"of {request.run_id}", next_offset=offset + 7, complete=True, link="https://x/")


def job(name: str) -> dict[str, Any]:
    return {"type": "glue", "config": {"jobName": name}, "pollInterval": "1m", "maxRetries": 1}


def reading(world: FaultyWorld) -> tuple[Control, Writer]:
    target = Writer()
    return replace(control_of(world), jobs={JobType.GLUE: target}), target


def twice() -> FaultyWorld:
    """`orders`, whose first attempt failed and whose second succeeded, under another config than the first."""
    world = staged(pipeline(job=job("old")), until="+12m", jobs=FAILS_ONCE)
    document = pipeline(job=job("new"))
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(control_of(world), config, document)
    settle(world)
    later(world, minutes=30)
    assert run_of(world).attempt == 2
    return world


def test_the_output_is_that_of_the_latest_attempt_from_the_offset_on() -> None:
    world = twice()
    control, target = reading(world)
    found = job_output.read(control, KEY, offset=5)
    run = run_of(world)
    assert (found.pipeline, found.schedule, found.date, found.attempt) == ("orders", "stream", "2026-03-05", 2)
    assert (found.run_id, found.job_id, found.text) == (run.run_id, run.job_id, f"of {run.run_id}")
    assert (found.next_offset, found.complete, found.link) == (12, True, "https://x/")
    assert [(job_id, offset) for _, job_id, offset in target.asked] == [(run.job_id, 5)]


def test_the_output_of_an_earlier_attempt_is_asked_for_with_its_ids_and_its_config() -> None:
    world = twice()
    control, target = reading(world)
    found = job_output.read(control, KEY, 1)
    ((request, job_id, _),) = target.asked
    assert (found.attempt, found.run_id, found.job_id) == (1, request.run_id, job_id)
    assert found.run_id != run_of(world).run_id
    assert request.config["jobName"] == "old"
    job_output.read(control, KEY, 2)
    assert target.asked[-1][0].config["jobName"] == "new"


def test_a_run_that_never_ran_or_never_started_a_job_has_no_output() -> None:
    waiting = staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="+15m")
    control, _ = reading(waiting)
    with pytest.raises(InvalidValueError, match="no attempt has started a job"):
        job_output.read(control, KEY)
    with pytest.raises(InvalidValueError, match="has never run"):
        job_output.read(control, RunKey("orders", "stream", "2026-03-01"))
    control, _ = reading(twice())
    with pytest.raises(InvalidValueError, match="attempt 3 has started a job: there is no output"):
        job_output.read(control, KEY, 3)


def test_an_attempt_is_found_by_its_run_id() -> None:
    world = twice()
    control, _ = reading(world)
    first = job_output.read(control, KEY, 1).run_id
    assert job_output.find(control, "orders", first) == (KEY, 1)
    assert job_output.find(control, "orders", run_of(world).run_id) == (KEY, 2)


@pytest.mark.parametrize("run_id", ["orders-2026-03-05-9-none", "other-2026-03-05-1-x", "orders", "orders-2026", ""])
def test_a_run_id_of_nobody_is_refused(run_id: str) -> None:
    control, _ = reading(twice())
    with pytest.raises(InvalidValueError, match="orders has no job of the run id"):
        job_output.find(control, "orders", run_id)
    with pytest.raises(InvalidValueError, match="gone has no job"):
        job_output.find(control, "gone", "gone-2026-03-05-1-x")


@pytest.mark.parametrize(("cron", "date"), [("0 * * * *", "2026-03-05T00"), ("*/15 * * * *", "2026-03-05T0015")])
def test_the_attempt_of_an_hour_or_a_minute_is_found_too(cron: str, date: str) -> None:
    config = pipeline(schedule={"cron": cron}, validation={"rules": [{"key": "ready", "check": "exists"}]})
    steps = [{"at": "+16m", "sensor": "orders/ready", "data": {}}]
    world = staged(config, until="+40m", steps=steps)
    key = RunKey("orders", "cron", date)
    control, _ = reading(world)
    run = run_of(world, key)
    assert run.run_id.startswith(f"orders-{date}-")
    assert job_output.find(control, "orders", run.run_id) == (key, 1)

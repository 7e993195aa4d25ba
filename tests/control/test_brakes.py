"""The brakes: a pipeline that becomes a dry run, or is deleted, starts nothing from that commit on."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control import brakes, catalog, records, reruns, router, writing
from interlock.control.attempts import completion, orchestrator
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.config import JobType
from interlock.model.events import EventType
from interlock.model.run import FailureCategory, FinalReason, JobEvent, RunStatus, Source
from interlock.ports.jobs import JobRequest, JobStarted, JobState, JobStatus, Recovery
from interlock.ports.store import Change, Delete, Put
from tests.mute_target import MuteTarget
from tests.safety.faults import FaultyWorld
from tests.safety.interleaving import interrupted, touches
from tests.safety.stage import KEY, control_of, count_events, has, later, pipeline, run_of, settle, staged, write

CONFIG: Final = records.control_key(KEY.pk, keys.CONFIG)
WAITING_FOR_ROWS: Final = {"rules": [{"key": "rows", "check": "exists"}]}
SLA: Final = {"deadline": "02:00", "dayOffset": 0, "expectedDuration": "30m"}
RETRIES: Final = {"type": "glue", "config": {"jobName": "orders"}, "pollInterval": "1m", "maxRetries": 3}


def waiting(**parts: Any) -> FaultyWorld:
    """`orders`, opened at ten past midnight, waiting for its rows since."""
    document = pipeline(validation=WAITING_FOR_ROWS, **parts)
    return staged(document, until="2026-03-05T00:15:00Z")


def delete(world: FaultyWorld) -> None:
    catalog.delete_config(control_of(world), "orders")


def make_dry(world: FaultyWorld) -> None:
    document = pipeline(validation=WAITING_FOR_ROWS) | {"dryRun": True}
    control_of(world).store.commit([Put(CONFIG, {"document": document, "version": "dry"})])


def remove_item(world: FaultyWorld) -> None:
    control_of(world).store.commit([Delete(CONFIG)])


def write_flat_dry_run(world: FaultyWorld) -> None:
    """As a deployment tool writes it: the document is the item, and there is no version."""
    control_of(world).store.commit([Put(CONFIG, pipeline(validation=WAITING_FOR_ROWS) | {"dryRun": True})])


def write_invalid_dry_run(world: FaultyWorld) -> None:
    """A dry run needs a trigger; that it is meant to be one is clear all the same."""
    document = pipeline(schedule={"cron": "0 8 * * *"}) | {"dryRun": True}
    control_of(world).store.commit([Put(CONFIG, {"document": document})])


Brake = Callable[[FaultyWorld], None]
BRAKES: Final[list[Brake]] = [delete, make_dry, remove_item, write_flat_dry_run, write_invalid_dry_run]


def assert_withdrawn(world: FaultyWorld, attempt: int = 1) -> None:
    run = run_of(world)
    assert (run.status, run.final_reason, run.attempt) == (RunStatus.FAILED_FINAL, FinalReason.WITHDRAWN, attempt)
    assert count_events(world, EventType.RUN_WITHDRAWN) == 1
    assert not has(world, keys.ACTIVE)


@pytest.mark.parametrize("brake", BRAKES, ids=lambda brake: brake.__name__)
def test_a_waiting_attempt_is_withdrawn_when_the_change_of_its_config_is_routed(brake: Brake) -> None:
    world = waiting(sla=SLA)
    assert run_of(world).status is RunStatus.PENDING
    assert world.engine.timers.next_at() is not None

    brake(world)
    settle(world)

    assert_withdrawn(world)
    assert not world.engine.executions.is_open(keys.execution_name(KEY, 1))
    assert world.engine.timers.next_at() is None
    later(world, hours=4)
    assert count_events(world, EventType.SLA_WARNING) == count_events(world, EventType.SLA_BREACH) == 0
    world._redeliver(1000)
    settle(world)
    assert count_events(world, EventType.RUN_WITHDRAWN) == 1


@pytest.mark.parametrize("brake", BRAKES, ids=lambda brake: brake.__name__)
def test_a_brake_between_the_last_question_and_the_commit_of_the_start_stops_the_start(brake: Brake) -> None:
    world = waiting()
    write_through_to_passed(world)
    control = interrupted(control_of(world), lambda: brake(world), touches(keys.RUN))

    answer = orchestrator.handle(control, task("trigger"))

    assert answer == {"status": "superseded"}
    assert world.targets.starts == []
    assert_withdrawn(world)


def write_through_to_passed(world: FaultyWorld) -> None:
    """The rules have passed; nothing has been started."""
    writing.write_sensor(control_of(world), "orders", "rows", {"count": 1})
    assert orchestrator.handle(control_of(world), task("evaluate"))["status"] == "passed"


def task(mode: str, attempt: int = 1) -> dict[str, Any]:
    return {
        "mode": mode,
        "pipeline": KEY.pipeline,
        "schedule": KEY.schedule,
        "date": KEY.date,
        "attempt": attempt,
    }


def test_a_config_that_changes_without_a_brake_stops_nothing() -> None:
    world = waiting()
    write_through_to_passed(world)
    other = pipeline(validation=WAITING_FOR_ROWS, pipeline={"id": "orders", "owner": "somebody"})

    def apply() -> None:
        control_of(world).store.commit([Put(CONFIG, {"document": other, "version": "other"})])

    answer = orchestrator.handle(interrupted(control_of(world), apply, touches(keys.RUN)), task("trigger"))

    assert answer == {"status": "started"}


def test_a_run_that_opens_while_its_pipeline_is_deleted_is_withdrawn_by_its_own_change() -> None:
    world = staged(pipeline(validation=WAITING_FOR_ROWS), until="2026-03-05T00:05:00Z", steps=[])
    write(world, "ready", status="ready")

    def deleted() -> None:
        delete(world)
        router.handle(control_of(world), [config_change(world)])

    control = interrupted(control_of(world), deleted, touches(keys.RUN))
    router.sensor_changed(control, sensor_change(world, "ready"))
    assert run_of(world).status is RunStatus.PENDING

    settle(world)

    assert_withdrawn(world)
    assert not world.engine.executions.is_open(keys.execution_name(KEY, 1))


def config_change(world: FaultyWorld) -> Change:
    return Change(1, CONFIG.table, CONFIG.pk, CONFIG.sk, 1, control_of(world).store.get(CONFIG))


def sensor_change(world: FaultyWorld, key: str) -> Change:
    where = records.control_key(KEY.pk, keys.sensor_sk(key))
    return Change(1, where.table, where.pk, where.sk, 1, control_of(world).store.get(where))


def running(**job: Any) -> FaultyWorld:
    """`orders` with its job under way."""
    world = staged(pipeline(job=RETRIES | job), until="2026-03-05T00:15:00Z")
    assert run_of(world).status is RunStatus.RUNNING
    return world


def test_a_failing_job_of_a_deleted_pipeline_is_not_retried() -> None:
    world = running()
    delete(world)
    settle(world)
    assert run_of(world).status is RunStatus.RUNNING, "it is followed to its end"

    writing.report_job(control_of(world), KEY, JobEvent.FAIL, category=FailureCategory.TRANSIENT)
    settle(world)

    assert_withdrawn(world)
    assert count_events(world, EventType.JOB_FAILED) == 1
    assert count_events(world, EventType.RETRY_EXHAUSTED) == 0


def test_a_retry_that_opens_while_its_pipeline_is_deleted_is_withdrawn() -> None:
    world = running()
    writing.report_job(control_of(world), KEY, JobEvent.FAIL, category=FailureCategory.TRANSIENT)

    def deleted() -> None:
        delete(world)
        router.handle(control_of(world), [config_change(world)])

    completion.settle(interrupted(control_of(world), deleted, touches(keys.RUN)), KEY, 1)
    assert (run_of(world).attempt, run_of(world).status) == (2, RunStatus.PENDING)

    settle(world)

    assert_withdrawn(world, attempt=2)
    assert len(world.targets.starts) == 1


def test_a_retry_that_begins_to_wait_while_its_pipeline_is_deleted_is_withdrawn_at_once() -> None:
    world = running(retryDelay="30m")
    writing.report_job(control_of(world), KEY, JobEvent.FAIL, category=FailureCategory.TRANSIENT)

    def deleted() -> None:
        delete(world)
        router.handle(control_of(world), [config_change(world)])

    completion.settle(interrupted(control_of(world), deleted, touches(keys.RUN)), KEY, 1)
    assert run_of(world).status is RunStatus.FAILED

    settle(world)

    assert_withdrawn(world)


def test_a_retry_whose_pause_ends_before_the_change_is_routed_is_withdrawn() -> None:
    world = running(retryDelay="30m")
    writing.report_job(control_of(world), KEY, JobEvent.FAIL, category=FailureCategory.TRANSIENT)
    settle(world)
    assert run_of(world).status is RunStatus.FAILED
    delete(world)

    router.retry_due(control_of(world), KEY, 1)

    assert_withdrawn(world)


def test_a_job_that_the_budget_would_not_retry_either_failed_for_good() -> None:
    world = running(maxRetries=0)
    delete(world)
    writing.report_job(control_of(world), KEY, JobEvent.FAIL, category=FailureCategory.TRANSIENT)
    settle(world)
    assert run_of(world).final_reason is FinalReason.RETRIES_USED_UP


def test_the_watchdog_withdraws_what_the_change_of_the_config_did_not() -> None:
    world = waiting()
    delete(world)
    catalog.config_changed(control_of(world), "orders")  # what follows from a deletion, but for the brake
    world.engine.watch()
    assert_withdrawn(world)
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 0


# ------------------------------------------------------------------------------------------- a call that got lost


class LosesTheAnswer(MuteTarget):
    """A target whose answer to the start got lost; it can be called again with the same id."""

    def __init__(self) -> None:
        self.calls = 0

    def start(self, request: JobRequest) -> JobStarted:
        self.calls += 1
        raise ConnectionError("the connection broke after the request was sent")

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        return Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        return JobStatus(state=JobState.RUNNING)


def test_a_lost_start_is_not_repeated_under_the_brake_and_nobody_claims_to_know_what_became_of_it() -> None:
    world = waiting()
    write_through_to_passed(world)
    target = LosesTheAnswer()
    control = with_target(control_of(world), target)
    with pytest.raises(Exception, match="connection broke"):
        orchestrator.handle(control, task("trigger"))
    delete(world)
    brakes.pull(control, "orders")
    assert run_of(world).status is RunStatus.TRIGGERING, "its job may run: it is not withdrawn"

    orchestrator.handle(control, task("trigger"))

    assert target.calls == 1
    assert run_of(world).final_reason is FinalReason.UNCERTAIN
    assert count_events(world, EventType.TRIGGER_UNCERTAIN) == 1


def with_target(control: Control, target: LosesTheAnswer) -> Control:
    return replace(control, jobs={JobType.GLUE: target})


# ------------------------------------------------------------------------------------------------ after a withdrawal


def test_a_withdrawn_run_is_opened_again_by_a_request_and_by_nothing_else() -> None:
    world = waiting()
    delete(world)
    settle(world)
    catalog.apply_config(control_of(world), *read(pipeline(validation=WAITING_FOR_ROWS)))
    write(world, "rows", count=1)
    write(world, "ready", status="ready", again=True)
    settle(world)
    later(world, minutes=10)
    assert_withdrawn(world)

    reruns.request(control_of(world), KEY)
    settle(world)

    assert (run_of(world).attempt, run_of(world).source) == (2, Source.MANUAL)
    assert len(world.targets.starts) == 1


def read(document: dict[str, Any]) -> Any:
    return read_stored(document, {}), document


# ------------------------------------------------------------------------------------ woken whatever the config says


def deleted_rule() -> dict[str, Any]:
    return pipeline(validation={"rules": [{"key": "other", "check": "exists"}]})


def other_schedule() -> dict[str, Any]:
    return pipeline(schedule={"cron": "0 8 * * *"}, validation=WAITING_FOR_ROWS)


def invalid() -> dict[str, Any]:
    return pipeline(validation={"rules": []})


@pytest.mark.parametrize("change", [deleted_rule, other_schedule, invalid], ids=lambda one: one.__name__)
def test_a_waiting_attempt_is_woken_by_its_sensor_whatever_the_current_config_says(
    change: Callable[[], dict[str, Any]],
) -> None:
    world = waiting()
    control_of(world).store.commit([Put(CONFIG, {"document": change()})])
    settle(world)

    write(world, "rows", count=1)
    settle(world)

    assert run_of(world).passed_at == world.clock.now()

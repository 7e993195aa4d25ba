"""What EventBridge tells the stream-router: which run it is about, and what follows."""

import json
from typing import Any

import pytest

from interlock.aws import job_runs
from interlock.aws.job_runs import JobMemory, find_run
from interlock.aws.notices import ExecutionEnd, JobEnd, Nothing, Notice, act, read_notice
from interlock.control.attempts import parts
from interlock.model.errors import InvalidValueError, UnavailableError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, Recovery
from tests.aws.installation import ACCOUNT, MACHINE
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, pipeline, run_of, settle, staged

OTHER = MACHINE.replace("test-", "prod-")
INPUT = {"pipeline": "gold", "schedule": "cron", "date": "2026-03-02", "attempt": 2, "sla": True}
GOLD = RunKey("gold", "cron", "2026-03-02")
ARN = f"arn:aws:states:us-east-1:{ACCOUNT}:execution:etl:run-1"


def event(kind: str, **detail: Any) -> dict[str, Any]:
    return {"source": "aws.x", "detail-type": kind, "detail": detail}


def machine(status: str, arn: str = MACHINE, **more: Any) -> dict[str, Any]:
    given = {"executionArn": ARN, "stateMachineArn": arn, "name": "one", "status": status, "input": json.dumps(INPUT)}
    return event("Step Functions Execution Status Change", **(given | more))


@pytest.mark.parametrize(
    ("told_", "notice"),
    [
        (machine("TIMED_OUT"), ExecutionEnd(GOLD, 2, "one", "TIMED_OUT")),
        (machine("ABORTED"), ExecutionEnd(GOLD, 2, "one", "ABORTED")),
        (machine("FAILED"), ExecutionEnd(GOLD, 2, "one", "FAILED")),
        (machine("SUCCEEDED"), Nothing()),
        (machine("RUNNING"), Nothing()),
        (machine("FAILED", OTHER), JobEnd(ARN, "FAILED")),
        (machine("RUNNING", OTHER), Nothing()),
        (event("Glue Job State Change", jobRunId="jr_1", state="SUCCEEDED"), JobEnd("jr_1", "SUCCEEDED")),
        (event("Glue Job State Change", jobRunId="jr_1", state="RUNNING"), Nothing()),
        (event("EMR Step Status Change", stepId="s-1", clusterId="j-1", state="FAILED"), JobEnd("s-1", "FAILED")),
        (event("EMR Serverless Job Run State Change", jobRunId="00f", state="SUCCESS"), JobEnd("00f", "SUCCESS")),
    ],
)
def test_an_event_is_read_into_a_notice(told_: dict[str, Any], notice: Notice) -> None:
    assert read_notice(told_, MACHINE) == notice


@pytest.mark.parametrize(
    ("told_", "said"),
    [
        (event("Something Else"), "Something Else"),
        (event("Glue Job State Change", state="SUCCEEDED"), "jobRunId"),
        (event("Glue Job State Change", jobRunId="jr_1"), "state"),
        (event("Glue Job State Change", jobRunId={"a": 1}, state="FAILED"), "jobRunId"),
        (machine("FAILED", input="{"), "not started by Interlock"),
        (machine("FAILED", input=None), "not started by Interlock"),
    ],
)
def test_an_event_of_an_unknown_shape_names_itself(told_: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        read_notice(told_, MACHINE)


# ------------------------------------------------------------------------------------------------------ what follows


def running() -> FaultyWorld:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z")
    assert run_of(world).status is RunStatus.RUNNING
    return world


class Runner:
    """A target that has started a job."""

    def __init__(self, found: JobStarted | Recovery) -> None:
        self.found = found

    def start(self, request: JobRequest) -> JobStarted:
        assert isinstance(self.found, JobStarted)
        return self.found

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        return self.found

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def remembered(world: FaultyWorld, job_id: str) -> JobMemory:
    runner: Any = Runner(JobStarted(job_id=job_id))
    return JobMemory(runner, control_of(world).store, world.clock)


def request() -> JobRequest:
    return JobRequest(key=KEY, attempt=1, run_id="r", config={})


def test_the_end_of_a_job_ends_its_run_without_waiting_for_the_next_poll() -> None:
    world = running()
    remembered(world, "jr_1").start(request())
    assert act(control_of(world), JobEnd("jr_1", "STOPPED"))["result"] == "woken", (
        "its target says that it runs: asked again"
    )
    world.targets.stop(run_of(world).run_id, pushed=False)
    assert act(control_of(world), JobEnd("jr_1", "SUCCEEDED"))["result"] == "logged"
    settle(world)
    assert run_of(world).status is RunStatus.FAILED_FINAL
    assert run_of(world).ended_at == world.clock.now()
    assert act(control_of(world), JobEnd("jr_1", "SUCCEEDED"))["result"] == "nothing"


def test_a_job_that_is_not_ours_is_left_alone() -> None:
    assert act(control_of(running()), JobEnd("jr_2", "SUCCEEDED")) == {"result": "not-ours"}


def test_where_the_target_may_not_be_asked_the_orchestrator_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> bool:
        raise UnavailableError("no right to ask Glue")

    monkeypatch.setattr("interlock.control.writing.job_ended", denied)
    world = running()
    remembered(world, "jr_1").start(request())
    world.targets.stop(run_of(world).run_id, pushed=False)
    assert act(control_of(world), JobEnd("jr_1", "SUCCEEDED")) == {"result": "woken"}
    settle(world)
    assert run_of(world).status is RunStatus.FAILED_FINAL


def test_the_end_of_an_execution_continues_its_attempt() -> None:
    world = running()
    notice = ExecutionEnd(KEY, 1, parts.execution_of(run_of(world)), "TIMED_OUT")
    assert act(control_of(world), notice) == {"result": "followed"}
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1
    assert act(control_of(world), notice) == {"result": "nothing"}


# ------------------------------------------------------------------------------------------------------- job records


def test_a_job_is_remembered_also_when_it_was_found_again() -> None:
    world = running()
    memory = remembered(world, "jr_1")
    assert find_run(control_of(world).store, "jr_1") is None
    assert memory.recover(request()) == JobStarted(job_id="jr_1")
    assert find_run(control_of(world).store, "jr_1") == (KEY, 1)


def test_a_record_that_cannot_be_written_does_not_undo_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    world = running()
    memory = remembered(world, "jr_1")

    def down(_: object) -> None:
        raise UnavailableError("DynamoDB")

    monkeypatch.setattr(control_of(world).store, "commit", down)
    assert memory.start(request()) == JobStarted(job_id="jr_1")


def test_only_the_types_that_events_tell_of_are_remembered() -> None:
    world = running()
    runner: Any = Runner(Recovery.START_AGAIN)
    jobs: dict[str, JobRunner] = {"glue": runner, "http": runner}
    wrapped = job_runs.remembering(jobs, control_of(world).store, world.clock)
    assert wrapped["http"] is runner
    assert isinstance(wrapped["glue"], JobMemory)
    assert wrapped["glue"].recover(request()) is Recovery.START_AGAIN

"""What the end of a job commits: the verdict of the SLA and the end of its timers, the baseline, the retry."""

from functools import partial
from typing import Any, Final

import pytest

from interlock.control import records, sla_monitor
from interlock.control.attempts import completion, orchestrator
from interlock.embedded import engine as engine_module
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RunStatus, SlaKind
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, staged

SLA: Final = {"deadline": "02:00", "dayOffset": 0, "expectedDuration": "30m"}
RUNNING: Final = "2026-03-05T00:15:00Z"


def timers(world: FaultyWorld) -> set[SlaKind]:
    """The SLA timers that are armed."""
    found = {kind: world.engine.timers.get(sla_monitor.timer_name(KEY, kind)) for kind in SlaKind}
    return {kind for kind, timer in found.items() if timer is not None}


def test_the_timers_of_an_sla_are_armed_while_it_is_open_and_gone_after_the_completion() -> None:
    world = staged(pipeline(sla=SLA), until=RUNNING)
    assert timers(world) == {SlaKind.WARNING, SlaKind.BREACH}
    later(world, minutes=10)
    assert run_of(world).status is RunStatus.COMPLETED
    assert timers(world) == set()
    later(world, hours=3)
    assert count_events(world, EventType.SLA_MET) == 1
    assert count_events(world, EventType.SLA_WARNING) + count_events(world, EventType.SLA_BREACH) == 0


def test_the_lifecycle_itself_cancels_the_timers_of_a_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the stream is slow, the lifecycle is what cancels them: it goes by `cancelSla` of the answer."""
    visited: list[str] = []
    watched = partial(SqliteExecutions, on_enter=lambda _name, state, _at: visited.append(state))
    monkeypatch.setattr(engine_module, "SqliteExecutions", watched)
    staged(pipeline(sla=SLA), until="2026-03-05T00:30:00Z")
    assert visited[-3:] == ["CheckCancelSLA", "CancelSLASchedules", "Done"]
    visited.clear()
    staged(pipeline(), until="2026-03-05T00:30:00Z")
    assert visited[-2:] == ["CheckCancelSLA", "Done"], "without an SLA there is nothing to cancel"


def test_the_lifecycle_cancels_the_timers_although_the_stream_stands_still() -> None:
    world = staged(pipeline(sla=SLA), until=RUNNING)
    world.clock.move_to(world.clock.now().replace(minute=25))
    world.engine.executions.run_due(world.clock.now())
    assert run_of(world).status is RunStatus.COMPLETED
    assert timers(world) == set()


def finish(world: FaultyWorld) -> dict[str, Any]:
    """The lifecycle's step of the end of the job, without the lifecycle around it."""
    world.clock.move_to(world.clock.now().replace(minute=30))
    orchestrator.handle(
        control_of(world),
        {"mode": "check-job", "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1},
    )
    return completion.settle(control_of(world), KEY, 1)


@pytest.mark.parametrize(
    ("sla", "result", "expected"),
    [
        (SLA, "success", {"result": "completed", "cancelSla": True}),
        (None, "success", {"result": "completed", "cancelSla": False}),
    ],
)
def test_the_answer_to_the_lifecycle_says_whether_there_are_timers_to_cancel(
    sla: dict[str, Any] | None, result: str, expected: dict[str, Any]
) -> None:
    parts = {} if sla is None else {"sla": sla}
    world = staged(pipeline(**parts), until=RUNNING, jobs=[{"after": "10m", "result": result}])
    assert finish(world) == expected
    # Asked again after a crash, it says so again; that timers were cancelled twice does no harm.
    assert completion.settle(control_of(world), KEY, 1) == {"result": "completed", "cancelSla": True}
    assert completion.settle(control_of(world), KEY, 2) == {"result": "superseded"}


def test_a_failure_that_is_retried_keeps_the_timers() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 1, "retryDelay": "1h"}
    jobs = [{"after": "5m", "result": "fail", "category": "TRANSIENT"}, {"result": "hang"}]
    world = staged(pipeline(job=job, sla=SLA), until="2026-03-05T00:30:00Z", jobs=jobs)
    assert run_of(world).status is RunStatus.FAILED
    assert timers(world) == {SlaKind.WARNING, SlaKind.BREACH}
    later(world, hours=2)
    assert count_events(world, EventType.SLA_BREACH) == 1


def test_the_baseline_of_a_completion_is_what_the_post_run_rules_read() -> None:
    parts = {"postRun": {"rules": [{"key": "out", "check": "exists"}]}}
    steps = [
        {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
        {"at": "+12m", "sensor": "orders/out", "data": {"rows": 7}},
    ]
    world = staged(pipeline(**parts), until="2026-03-05T00:30:00Z", steps=steps)
    (captured,) = [event for event in world.events if event.type is EventType.POST_RUN_BASELINE_CAPTURED]
    assert captured.detail["baseline"] == {"out": {"rows": 7}}
    stored = control_of(world).store.get(records.run_record(KEY, keys.BASELINE))
    assert stored is not None
    assert stored["sensors"] == {"out": {"rows": 7}}


def test_an_attempt_that_is_over_or_another_s_cannot_be_ended_by_the_controller() -> None:
    world = staged(pipeline(), until=RUNNING)
    control = control_of(world)
    before = run_of(world)
    assert completion.fail_final(control, KEY, 2, FinalReason.INFRA, "x") == "superseded"
    assert completion.fail_final(control, RunKey("orders", "stream", "2026-03-01"), 1, FinalReason.INFRA, "x") == (
        "superseded"
    )
    assert run_of(world) == before
    assert completion.fail_final(control, KEY, 1, FinalReason.INFRA, "the disk is full") == "failed"
    ended = run_of(world)
    assert (ended.status, ended.final_reason, ended.message) == (
        RunStatus.FAILED_FINAL, FinalReason.INFRA, "the disk is full",
    )  # fmt: skip
    assert completion.fail_final(control, KEY, 1, FinalReason.INFRA, "again") == "superseded"
    assert run_of(world) == ended

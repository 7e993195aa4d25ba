"""What the end of a job commits: the verdict of the SLA and the end of its timers, the baseline, the retry."""

from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest
from msgspec.structs import replace

from interlock.config.stored import read_stored
from interlock.control import catalog, readiness, records, reruns, sla_monitor
from interlock.control.attempts import cancelling, completion, orchestrator
from interlock.decide import transitions
from interlock.embedded import engine as engine_module
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError
from interlock.model.events import Event, EventType, Severity
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, JobEvent, JobRecord, RunStatus, SlaKind
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, has, later, pipeline, run_of, staged, write

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


# ------------------------------------------------------------------------------------------- what a completion records


def test_a_completion_forgets_earlier_troubles_and_says_how_long_its_job_took() -> None:
    world = staged(pipeline(), until=RUNNING)
    troubled = run_of(world)
    control_of(world).store.commit(
        [records.put_run(transitions.amend(troubled, now=world.clock.now(), message="busy"), troubled)]
    )
    finish(world)
    run = run_of(world)
    assert (run.message, run.lease_until, run.first_completed_at) == ("", None, run.ended_at)
    (completed,) = events(world, EventType.JOB_COMPLETED)
    assert completed.detail["durationSeconds"] == 20 * 60, "from its start at 00:10 to the look at 00:30"


def test_the_first_completion_is_remembered_by_the_completion_of_a_rerun() -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    first = run_of(world).first_completed_at
    reruns.request(control_of(world), KEY, force=True)
    later(world, hours=1)
    again = run_of(world)
    assert (again.status, again.attempt) == (RunStatus.COMPLETED, 2)
    assert again.first_completed_at == first
    assert again.ended_at != first


def test_an_attempt_whose_job_has_not_ended_cannot_be_settled() -> None:
    world = staged(pipeline(), until=RUNNING)
    with pytest.raises(InterlockError, match="attempt 1 has no outcome in its job log"):
        completion.settle(control_of(world), KEY, 1)
    assert run_of(world).status is RunStatus.RUNNING


def test_post_run_sensors_join_the_inputs_but_do_not_replace_one() -> None:
    parts = {"postRun": {"rules": [{"key": "out", "check": "exists"}, {"key": "ready", "check": "exists"}]}}
    world = staged(pipeline(**parts), until=RUNNING)
    before = run_of(world).inputs
    write(world, "out", rows=7)
    write(world, "ready", status="ready", rows=2)
    finish(world)
    inputs = run_of(world).inputs
    assert set(inputs) == {"ready", "out"}
    assert inputs["ready"] == before["ready"], "what the attempt was decided on"


def test_post_run_output_that_is_awaited_has_a_record_of_when_it_is_due() -> None:
    watched = {"rules": [{"key": "out", "check": "exists"}], "sensorTimeout": "2h"}
    world = staged(pipeline(postRun=watched), until="2026-03-05T00:30:00Z")
    awaited = control_of(world).store.get(records.run_record(KEY, keys.AWAITED))
    assert awaited == {"attempt": 1, "completedAt": "2026-03-05T00:20:00Z", "dueAt": "2026-03-05T02:20:00Z"}
    baseline = control_of(world).store.get(records.run_record(KEY, keys.BASELINE))
    assert baseline is not None
    assert (baseline["attempt"], baseline["version"]) == (1, 1)


def test_a_baseline_that_cannot_be_taken_is_reported_and_undoes_no_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    world = staged(pipeline(postRun={"rules": [{"key": "out", "check": "exists"}]}), until=RUNNING)

    def broken(*_: object) -> list[Any]:
        raise InterlockError("the sensor cannot be read")

    monkeypatch.setattr(readiness, "post_run_readings", broken)
    finish(world)
    assert run_of(world).status is RunStatus.COMPLETED
    (event,) = events(world, EventType.BASELINE_CAPTURE_FAILED)
    assert (event.detail["attempt"], event.detail["error"]) == (1, "the sensor cannot be read")
    assert not has(world, keys.BASELINE)


@pytest.mark.parametrize(
    ("deadline", "type_", "margin", "text"),
    [
        ("02:00", EventType.SLA_MET, 5400, "completed 1h30m before its deadline"),
        ("00:20", EventType.SLA_RECOVERED, -600, "completed 10m after its deadline"),
        ("00:30", EventType.SLA_RECOVERED, 0, "completed 0s before its deadline"),
    ],
)
def test_the_verdict_of_a_completion_has_its_margin(deadline: str, type_: EventType, margin: int, text: str) -> None:
    sla = {"deadline": deadline, "dayOffset": 0, "expectedDuration": "5m"}
    world = staged(pipeline(sla=sla), until=RUNNING, jobs=[{"after": "20m", "result": "success"}])
    open_ = records.get_sla(control_of(world).store, KEY)
    finish(world)
    (event,) = [*events(world, EventType.SLA_MET), *events(world, EventType.SLA_RECOVERED)]
    assert (event.type, event.detail["marginSeconds"]) == (type_, margin)
    assert event.message == f"orders for 2026-03-05 {text}"
    assert "backFill" not in event.detail
    closed = records.get_sla(control_of(world).store, KEY)
    assert open_ is not None
    assert closed is not None
    assert (closed.version, closed.closed_at) == (open_.version + 1, world.clock.now())


def test_a_back_fill_says_so_in_its_verdict() -> None:
    past = RunKey("orders", "stream", "2026-03-01")
    world = staged(pipeline(sla=SLA), until="2026-03-05T00:05:00Z", steps=[])
    reruns.request(control_of(world), past, force=True)
    later(world, minutes=1)
    write(world, "ready#2026-03-01", status="ready")
    later(world, hours=1)
    assert run_of(world, past).status is RunStatus.COMPLETED
    (event,) = events(world, EventType.SLA_RECOVERED)
    assert (event.severity, event.detail["backFill"]) == (Severity.INFO, True)
    assert event.message.endswith("after its deadline (a back-fill: nobody was alerted)")


# --------------------------------------------------------------------------------------------------- after a failure

FAILS: Final = {"after": "5m", "result": "fail", "category": "TRANSIENT", "error": "out of memory"}


def job(**parts: Any) -> dict[str, Any]:
    return {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1h", "maxRetries": 0} | parts


def events(world: FaultyWorld, type_: EventType) -> list[Event]:
    world._pump()
    return [event for event in world.events if event.type is type_]


@pytest.mark.parametrize("sla", [SLA, None])
def test_a_failure_without_a_retry_ends_the_run_and_its_sla(sla: dict[str, Any] | None) -> None:
    parts = {} if sla is None else {"sla": sla}
    world = staged(pipeline(job=job(), **parts), until="2026-03-05T00:12:00Z", jobs=[FAILS])
    assert finish(world) == {"result": "failed", "cancelSla": sla is not None}
    run = run_of(world)
    assert (run.status, run.final_reason, run.message) == (
        RunStatus.FAILED_FINAL, FinalReason.RETRIES_USED_UP, "out of memory",
    )  # fmt: skip
    assert (run.sla_closed, run.lease_until, run.ended_at) == (True, None, world.clock.now())
    assert not has(world, keys.ACTIVE)
    (failed,) = events(world, EventType.JOB_FAILED)
    assert "(transient; no retry follows): out of memory" in failed.message
    assert failed.detail["actionHint"] == "interlock logs orders --date 2026-03-05 --attempt 1"
    (used_up,) = events(world, EventType.RETRY_EXHAUSTED)
    assert (used_up.detail["budget"], used_up.detail["used"], used_up.detail["error"]) == (0, 0, "out of memory")
    # Asked again after a crash: this reason closes an SLA, whether there was one or not.
    assert completion.settle(control_of(world), KEY, 1) == {"result": "failed_final", "cancelSla": True}


def test_a_failure_whose_target_gives_no_reason_is_final_with_one_of_ours() -> None:
    world = staged(pipeline(job=job()), until="2026-03-05T00:12:00Z", jobs=[FAILS | {"error": ""}])
    finish(world)
    assert run_of(world).message.startswith("orders for 2026-03-05 failed for good: ")
    (failed,) = events(world, EventType.JOB_FAILED)
    assert failed.message.endswith("no retry follows)")


def test_a_long_error_is_cut_where_the_run_remembers_it() -> None:
    world = staged(pipeline(job=job()), until="2026-03-05T00:12:00Z", jobs=[FAILS | {"error": "x" * 1500}])
    finish(world)
    assert run_of(world).message == "x" * 1000
    waiting = job(maxRetries=1, retryDelay="1h")
    world = staged(pipeline(job=waiting), until="2026-03-05T00:12:00Z", jobs=[FAILS | {"error": "x" * 1500}])
    finish(world)
    assert run_of(world).message == "x" * 1000
    world = staged(pipeline(), until=RUNNING)
    completion.fail_final(control_of(world), KEY, 1, FinalReason.INFRA, "x" * 1500)
    assert run_of(world).message == "x" * 1000


def test_a_failure_that_is_retried_later_waits_with_a_lease_that_lasts_until_then() -> None:
    world = staged(pipeline(job=job(maxRetries=1, retryDelay="1h")), until="2026-03-05T00:12:00Z", jobs=[FAILS])
    assert finish(world) == {"result": "waiting"}
    run, now = run_of(world), world.clock.now()
    assert (run.status, run.retry_at, run.ended_at) == (RunStatus.FAILED, now + timedelta(hours=1), now)
    assert run.lease_until == now + timedelta(hours=1) + control_of(world).settings.lease_margin
    (failed,) = events(world, EventType.JOB_FAILED)
    assert "transient retry 1 of 1 follows" in failed.message
    assert completion.settle(control_of(world), KEY, 1) == {"result": "failed", "cancelSla": False}


def test_a_failure_that_is_retried_at_once_opens_the_next_attempt_in_the_same_commit() -> None:
    world = staged(pipeline(job=job(maxRetries=1, retryDelay="0s")), until="2026-03-05T00:12:00Z", jobs=[FAILS])
    assert finish(world) == {"result": "retry"}
    run = run_of(world)
    assert (run.status, run.attempt, run.opened_by) == (RunStatus.PENDING, 2, "transient retry 1 of 1")
    (rerun,) = records.reruns_of(control_of(world).store, KEY)
    assert rerun.reason == "transient retry 1 of 1"
    assert len(events(world, EventType.JOB_FAILED)) == 1


def test_a_time_out_is_its_own_event() -> None:
    timed_out = {"after": "5m", "result": "timeout"}
    world = staged(pipeline(job=job()), until="2026-03-05T00:12:00Z", jobs=[timed_out])
    finish(world)
    (event,) = events(world, EventType.JOB_TIMEOUT)
    assert "timed out (timeout; no retry follows)" in event.message
    assert events(world, EventType.JOB_FAILED) == []


def test_a_retry_goes_by_its_own_config_where_the_current_one_has_no_such_schedule() -> None:
    world = staged(pipeline(job=job(maxRetries=1, retryDelay="1h")), until="2026-03-05T00:12:00Z", jobs=[FAILS])
    finish(world)
    version = run_of(world).config_version
    document = pipeline(schedule={"cron": "0 8 * * *"}, job=job(maxRetries=1, retryDelay="1h"))
    changed = read_stored(document, {})
    assert isinstance(changed, PipelineConfig)
    catalog.apply_config(control_of(world), changed, document)
    later(world, minutes=61)
    assert (run_of(world).attempt, run_of(world).config_version) == (2, version)


def test_a_pipeline_that_may_start_nothing_any_more_does_not_retry() -> None:
    world = staged(pipeline(job=job(maxRetries=1), sla=SLA), until="2026-03-05T00:12:00Z", jobs=[FAILS])
    catalog.delete_config(control_of(world), "orders")
    assert finish(world) == {"result": "failed", "cancelSla": True}
    run = run_of(world)
    assert (run.status, run.final_reason, run.attempt) == (RunStatus.FAILED_FINAL, FinalReason.WITHDRAWN, 1)
    (failed,) = events(world, EventType.JOB_FAILED)
    assert "no retry follows" in failed.message
    (withdrawn,) = events(world, EventType.RUN_WITHDRAWN)
    assert run.message == withdrawn.message
    assert (run.sla_closed, run.lease_until) == (True, None)


def test_a_pipeline_that_may_start_nothing_and_has_no_retry_left_has_used_them_up() -> None:
    world = staged(pipeline(job=job()), until="2026-03-05T00:12:00Z", jobs=[FAILS])
    catalog.delete_config(control_of(world), "orders")
    finish(world)
    assert run_of(world).final_reason is FinalReason.RETRIES_USED_UP
    assert events(world, EventType.RUN_WITHDRAWN) == []


def test_a_job_that_was_stopped_for_a_cancellation_says_how_it_ended() -> None:
    world = staged(pipeline(job=job(maxRetries=1), sla=SLA), until="2026-03-05T00:12:00Z", jobs=[FAILS])
    cancelling.cancel(control_of(world), KEY)
    assert finish(world) == {"result": "failed", "cancelSla": True}
    run = run_of(world)
    assert (run.final_reason, run.attempt, run.sla_closed) == (FinalReason.CANCELLED, 1, True)
    (event,) = events(world, EventType.JOB_CANCELLED)
    assert event.message == "orders for 2026-03-05 was cancelled"
    assert (event.detail["runId"], event.detail["jobId"]) == (run.run_id, run.job_id)
    assert event.detail["error"]
    assert completion.settle(control_of(world), KEY, 1) == {"result": "failed_final", "cancelSla": True}


def test_an_end_of_the_controller_s_own_keeps_the_sla_and_says_which_start_it_was() -> None:
    world = staged(pipeline(sla=SLA), until=RUNNING)
    before = run_of(world)
    completion.fail_final(control_of(world), KEY, 1, FinalReason.INFRA, "the disk is full")
    assert timers(world) == {SlaKind.WARNING, SlaKind.BREACH}
    (event,) = events(world, EventType.INFRA_FAILURE)
    assert (event.detail["runId"], event.detail["status"]) == (before.run_id, RunStatus.RUNNING)
    assert not has(world, keys.ACTIVE)
    assert completion.settle(control_of(world), KEY, 1) == {"result": "failed_final", "cancelSla": False}
    world = staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until=RUNNING)
    completion.fail_final(control_of(world), KEY, 1, FinalReason.INFRA, "the disk is full")
    (event,) = events(world, EventType.INFRA_FAILURE)
    assert "runId" not in event.detail


# ------------------------------------------------------------------------------------------ successes that come late


def reported(world: FaultyWorld, event: JobEvent, attempt: int = 1) -> JobRecord:
    """A line of the job log that nobody has acted on."""
    record = JobRecord(
        pipeline="orders", schedule="stream", date=KEY.date, event=event, attempt=attempt, at=world.clock.now()
    )
    control_of(world).store.commit([records.put_job(record, f"{event}-{attempt}")])
    return record


def test_a_success_that_comes_late_completes_the_attempt_it_is_of_and_no_other() -> None:
    world = staged(pipeline(), until=RUNNING)
    control = control_of(world)
    success = reported(world, JobEvent.SUCCESS)
    assert completion.late_success(control, success) is False, "it is under way: its end is not late"
    completion.fail_final(control, KEY, 1, FinalReason.STALE, "nothing was heard of it")
    assert completion.late_success(control, reported(world, JobEvent.SUCCESS, 2)) is False
    assert completion.late_success(control, replace(success, date="2026-03-01")) is False
    assert run_of(world).status is RunStatus.FAILED_FINAL
    assert completion.late_success(control, success) is True
    assert run_of(world).status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("event", "attempt", "status"),
    [
        (JobEvent.SUCCESS, 1, RunStatus.COMPLETED),
        (JobEvent.FAIL, 1, RunStatus.FAILED_FINAL),
        (JobEvent.SUCCESS, 2, RunStatus.FAILED_FINAL),
    ],
)
def test_a_run_that_is_given_up_takes_the_success_that_its_job_has_reported(
    event: JobEvent, attempt: int, status: RunStatus
) -> None:
    world = staged(pipeline(), until=RUNNING)
    completion.fail_final(control_of(world), KEY, 1, FinalReason.STALE, "nothing was heard of it")
    reported(world, event, attempt)
    completion.claim_success(control_of(world), run_of(world))
    assert run_of(world).status is status


def test_only_critical_pipelines_raise_the_severity() -> None:
    assert completion.severity_of(Severity.WARNING, critical=False) is Severity.WARNING
    assert completion.severity_of(Severity.WARNING, critical=True) is Severity.WARNING.raised()

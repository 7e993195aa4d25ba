"""Two of the controller's functions at one time: every suspicion of a lost update, a lost wake-up or a stale read.

Each test lets one function read and decide, has another act just before it commits, and looks at what comes out.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import pytest

from interlock.control import observing, records, reruns, router, sla_monitor, writing
from interlock.control.attempts import completion, opening, orchestrator, starting
from interlock.control.watch import watchdog as watching
from interlock.model import keys
from interlock.model.errors import AlreadyReportedError
from interlock.model.events import EventType
from interlock.model.run import FailureCategory, FinalReason, JobEvent, Marker, RunStatus
from interlock.ports.jobs import JobStarted, JobState, JobStatus
from interlock.ports.store import Delete, Key, Put, Write
from tests.safety.faults import FaultyWorld
from tests.safety.interleaving import interrupted, touches
from tests.safety.invariants import violations
from tests.safety.stage import KEY, control_of, count_events, has, later, pipeline, run_of, settle, staged, write

POST_RUN = {
    "rules": [{"key": "out", "check": "gte", "field": "count", "value": 1}],
    "driftField": "count",
    "sensorTimeout": "30m",
}


# ------------------------------------------------------------------------------------- completion and sensor writes


def test_trigger_write_while_completion_is_decided_is_late_data() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z")
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)

    def meanwhile() -> None:
        write(world, "ready", status="ready", rows=2)
        world._pump()

    completion.settle(interrupted(control, meanwhile, touches(keys.RUN)), KEY, 1)
    settle(world)
    assert count_events(world, EventType.LATE_DATA_ARRIVAL) == 1
    assert violations(world) == []


def test_post_run_write_while_completion_is_decided_is_in_the_baseline_or_drift() -> None:
    steps = [
        {"at": "+9m", "sensor": "orders/out", "data": {"count": 10}},
        {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
    ]
    world = staged(pipeline(postRun=POST_RUN), until="2026-03-05T00:15:00Z", steps=steps)
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)

    def meanwhile() -> None:
        write(world, "out", count=99)
        world._pump()

    completion.settle(interrupted(control, meanwhile, touches(keys.BASELINE)), KEY, 1)
    settle(world)
    captured = [e for e in world.events if e.type is EventType.POST_RUN_BASELINE_CAPTURED]
    noticed = count_events(world, EventType.POST_RUN_DRIFT) == 1 or captured[0].detail["baseline"]["out"]["count"] == 99
    assert noticed, "the write was neither compared with the baseline nor part of it"


def test_write_received_before_and_stored_after_the_completion_is_compared_with_the_baseline() -> None:
    """The received time is taken before the write is stored; a completion may come in between."""
    steps = [
        {"at": "+9m", "sensor": "orders/out", "data": {"count": 10}},
        {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
    ]
    world = staged(pipeline(postRun=POST_RUN), until="2026-03-05T00:15:00Z", steps=steps)
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)

    def meanwhile() -> None:
        completion.settle(control, KEY, 1)

    late = interrupted(control, meanwhile, touches(keys.SENSOR))
    writing.write_sensor(late, "orders", "out", {"count": 99})
    settle(world)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 1


def test_a_sensor_that_is_removed_while_it_is_stamped_stays_removed() -> None:
    world = staged(pipeline(), until="2026-03-05T00:05:00Z")
    control = control_of(world)
    where = records.control_key(keys.pipeline_pk("orders"), keys.sensor_sk("direct"))
    control.store.commit([Put(where, {"count": 1})])

    def meanwhile() -> None:
        control.store.commit([Delete(where)])

    observing.observe(interrupted(control, meanwhile, touches(keys.SENSOR)), "orders", "direct", control.now())
    assert control.store.get(where) is None


def test_late_data_at_completion_is_told_once_however_often_the_write_is_delivered() -> None:
    config = pipeline(job={"type": "glue", "config": {"jobName": "orders"}, "maxDriftReruns": 0})
    steps = [
        {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready", "rows": 1}},
        {"at": "+12m", "sensor": "orders/ready", "data": {"status": "ready", "rows": 2}},
    ]
    world = staged(config, until="2026-03-05T01:00:00Z", steps=steps)
    assert count_events(world, EventType.LATE_DATA_ARRIVAL) == 1
    world._redeliver(1000)
    settle(world)
    assert count_events(world, EventType.LATE_DATA_ARRIVAL) == 1
    assert count_events(world, EventType.RERUN_REJECTED) == 1


def test_upstream_that_completes_again_while_completion_is_decided_asks_for_a_rerun_once() -> None:
    world = staged(pipeline(after=[{"pipeline": "up"}]), until="2026-03-05T00:15:00Z")
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)
    marker = Marker(upstream="up", date=KEY.date, completed_at=control.now(), attempt=2, again=True)
    put = Put(records.control_key(KEY.pk, keys.marker_sk("stream", KEY.date, "up")), records.plain(marker))

    def meanwhile() -> None:
        control.store.commit([put])
        world._pump()

    completion.settle(interrupted(control, meanwhile, touches(keys.RUN)), KEY, 1)
    settle(world)
    assert (run_of(world).attempt, run_of(world).source) == (2, "upstream")
    world._redeliver(1000)
    settle(world)
    assert count_events(world, EventType.RERUN_ACCEPTED) == 1
    assert count_events(world, EventType.RERUN_REJECTED) == 0


# ---------------------------------------------------------------------------------------------- window and wake-ups


def test_write_at_the_moment_the_window_closes_is_not_lost() -> None:
    rule = {"key": "rows", "check": "gte", "field": "count", "value": 1}
    world = staged(pipeline(validation={"rules": [rule]}), until="2026-03-05T01:09:00Z")
    control = control_of(world)
    seen = records.get_active(control.store, KEY)
    assert seen is not None

    def meanwhile() -> None:
        write(world, "rows", count=5)
        world._pump()

    task = {"pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1, "wakeSeq": str(seen.wake_seq)}
    closing = interrupted(control, meanwhile, touches(keys.RUN))
    answer = orchestrator.handle(closing, {"mode": "validation-exhausted", **task})
    assert answer == {"status": "again"}
    settle(world)
    assert run_of(world).status is RunStatus.RUNNING


def test_window_that_closes_while_a_write_is_routed_is_reopened_by_it() -> None:
    rule = {"key": "rows", "check": "gte", "field": "count", "value": 1}
    world = staged(pipeline(validation={"rules": [rule]}), until="2026-03-05T01:09:00Z")
    control = control_of(world)
    seen = records.get_active(control.store, KEY)
    assert seen is not None
    task = {"pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1, "wakeSeq": str(seen.wake_seq)}
    write(world, "rows", count=5)

    def meanwhile() -> None:
        orchestrator.handle(control, {"mode": "validation-exhausted", **task})

    routing = interrupted(control, meanwhile, touches(keys.ACTIVE))
    observing.observe(routing, "orders", "rows", world.clock.now())
    run = run_of(world)
    assert (run.status, run.attempt, run.source) == (RunStatus.PENDING, 2, "reopen")
    settle(world)
    later(world, minutes=10)  # the first attempt's own execution still has to notice that it is over
    assert violations(world) == []


# -------------------------------------------------------------------------------------------------------------- SLA


def test_alert_that_is_decided_while_the_run_completes_is_not_given() -> None:
    world = staged(pipeline(sla={"maxDuration": "4m"}), until="2026-03-05T00:13:30Z")
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)
    world.clock.move_to(world.clock.now().replace(minute=15))

    def meanwhile() -> None:
        completion.settle(control, KEY, 1)

    sla_monitor.fire_alerts(interrupted(control, meanwhile, touches(keys.SLA)), KEY)
    settle(world)
    assert count_events(world, EventType.RELATIVE_SLA_BREACH) == 0
    assert violations(world) == []


def test_completion_that_is_decided_while_an_alert_is_given_answers_it() -> None:
    world = staged(pipeline(sla={"maxDuration": "4m"}), until="2026-03-05T00:13:30Z")
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)
    world.clock.move_to(world.clock.now().replace(minute=15))

    def meanwhile() -> None:
        sla_monitor.fire_alerts(control, KEY)

    completion.settle(interrupted(control, meanwhile, touches(keys.RUN)), KEY, 1)
    settle(world)
    assert count_events(world, EventType.RELATIVE_SLA_BREACH) == 1
    assert count_events(world, EventType.SLA_RECOVERED) == 1
    assert violations(world) == []


def test_arrival_that_is_remembered_while_the_run_completes_leaves_no_sla_open() -> None:
    """The run was opened by cron; the trigger sensor comes first as its job ends."""
    trigger = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
    config = pipeline(
        schedule={"cron": "0 0 * * *", "trigger": trigger, "evaluation": {"window": "1h", "interval": "5m"}},
        validation={"rules": [{"key": "rows", "check": "exists"}]},
        sla={"maxDuration": "1h"},
    )
    key = keys.RunKey("orders", "cron", "2026-03-06")
    steps = [{"at": "+1445m", "sensor": "orders/rows", "data": {"count": 1}}]
    world = staged(config, until="2026-03-06T00:10:00Z", steps=steps)
    control = control_of(world)
    writing.report_job(control, key, JobEvent.SUCCESS)

    def meanwhile() -> None:
        completion.settle(control, key, 1)

    write(world, "ready", status="late", date="2026-03-06")
    routing = interrupted(control, meanwhile, touches(keys.SLA))
    observing.observe(routing, "orders", "ready", world.clock.now())
    settle(world)
    assert violations(world) == []


def test_alert_is_given_once_even_if_the_run_is_asked_for_again_after_its_sla_was_forgotten() -> None:
    job = {"type": "glue", "config": {"jobName": "orders"}, "maxCodeRetries": 0, "pollInterval": "1m"}
    failing = [{"after": "10m", "result": "fail", "category": "PERMANENT"}, {"after": "1h", "result": "success"}]
    config = pipeline(sla={"deadline": "00:15", "dayOffset": 0}, job=job)
    world = staged(config, until="2026-03-05T01:00:00Z", jobs=failing)
    assert run_of(world).final_reason is FinalReason.RETRIES_USED_UP
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1
    later(world, days=5)
    assert not has(world, keys.SLA)
    reruns.request(control_of(world), KEY)
    settle(world)
    later(world, hours=2)
    assert run_of(world).status is RunStatus.COMPLETED
    write(world, "ready", status="ready", rows=1, date=KEY.date)
    settle(world)
    later(world, hours=2)
    assert count_events(world, EventType.SLA_BREACH, KEY) == 1


# --------------------------------------------------------------------------------------------------------- watchdog


def test_post_run_data_that_comes_while_the_watchdog_looks_is_not_missing() -> None:
    world = staged(pipeline(postRun=POST_RUN), until="2026-03-05T00:30:00Z")
    assert has(world, keys.AWAITED)
    control = control_of(world)
    world.clock.move_to(world.clock.now().replace(minute=55))

    def meanwhile() -> None:
        write(world, "out", count=5)
        world._pump()

    watching.run(interrupted(control, meanwhile, touches(keys.AWAITED)))
    settle(world)
    assert count_events(world, EventType.POST_RUN_SENSOR_MISSING) == 0
    assert count_events(world, EventType.POST_RUN_PASSED) == 1


def test_completion_while_the_watchdog_finds_the_run_stale_wins() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z", jobs=[{"result": "hang"}])
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)

    def meanwhile() -> None:
        completion.settle(control, KEY, 1)

    completion.fail_final(
        interrupted(control, meanwhile, touches(keys.RUN)), KEY, 1, FinalReason.STALE, "its lease is over"
    )
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED
    assert count_events(world, EventType.SFN_TIMEOUT) == 0


def test_stale_verdict_while_the_completion_is_decided_is_answered_by_the_late_success() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z", jobs=[{"result": "hang"}])
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.SUCCESS)
    world._pump()

    def meanwhile() -> None:
        completion.fail_final(control, KEY, 1, FinalReason.STALE, "its lease is over")

    completion.settle(interrupted(control, meanwhile, touches(keys.RUN)), KEY, 1)
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED
    assert violations(world) == []


def test_success_reported_while_the_start_is_uncertain_is_not_lost() -> None:
    """The call of the target is lost, the job reports its success, then the controller gives the start up."""
    world = staged(pipeline(), until="2026-03-05T00:10:00Z")
    control = control_of(world)
    run = run_of(world)
    triggering = records.plain(run) | {"status": "TRIGGERING", "version": run.version + 1}
    control.store.commit([Put(records.run_record(KEY, keys.RUN), triggering)])
    writing.report_job(control, KEY, JobEvent.SUCCESS)
    world._pump()
    completion.fail_final(control, KEY, 1, FinalReason.UNCERTAIN, "nobody can tell")
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED


# ---------------------------------------------------------------------------------------------------- a job's outcome

CHECK: Final = {"mode": "check-job", "pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1}


def over(minutes: int = 11, **parts: Any) -> FaultyWorld:
    """A run whose job is over, so many minutes after its start, which nobody has noticed yet."""
    world = staged(pipeline(**parts), until="2026-03-05T00:15:00Z")
    world.clock.move_to(run_of(world).opened_at + timedelta(minutes=minutes))
    return world


def outcomes(world: FaultyWorld) -> list[tuple[JobEvent, str]]:
    """What the job log says of the end of a job, and who wrote it."""
    log = records.job_log(control_of(world).store, KEY)
    return [(one.event, one.reported_by) for one in log if one.event.outcome]


def test_an_end_that_the_target_reports_while_the_lifecycle_looks_is_logged_once() -> None:
    world = over()
    control = control_of(world)

    def meanwhile() -> None:
        assert writing.job_ended(control, KEY, 1)

    assert orchestrator.handle(interrupted(control, meanwhile, touches(keys.JOB)), CHECK) == {"event": "success"}
    assert outcomes(world) == [(JobEvent.SUCCESS, "")]
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED
    assert violations(world) == []


def test_an_end_that_the_lifecycle_sees_while_the_target_reports_it_is_logged_once() -> None:
    world = over()
    control = control_of(world)

    def meanwhile() -> None:
        assert orchestrator.handle(control, CHECK) == {"event": "success"}

    assert not writing.job_ended(interrupted(control, meanwhile, touches(keys.JOB)), KEY, 1)
    assert outcomes(world) == [(JobEvent.SUCCESS, starting.BY_LIFECYCLE)]
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED


def test_a_report_that_comes_while_the_lifecycle_looks_is_the_outcome() -> None:
    """Whoever is first has said it; the lifecycle goes on with that, not with what it saw itself."""
    world = over(job={"type": "glue", "config": {"jobName": "orders"}, "pollInterval": "1m", "maxCodeRetries": 0})
    control = control_of(world)

    def meanwhile() -> None:
        writing.report_job(control, KEY, JobEvent.FAIL, category=FailureCategory.PERMANENT)

    assert orchestrator.handle(interrupted(control, meanwhile, touches(keys.JOB)), CHECK) == {"event": "fail"}
    assert outcomes(world) == [(JobEvent.FAIL, "report")]
    settle(world)
    assert run_of(world).final_reason is FinalReason.RETRIES_USED_UP


def test_a_report_that_comes_after_the_outcome_is_kept_and_decides_nothing() -> None:
    world = over()
    control = control_of(world)

    def meanwhile() -> None:
        orchestrator.handle(control, CHECK)

    # Received first and stored second: the log tells by its commits, not by clocks, which of them ended the job.
    writing.report_job(interrupted(control, meanwhile, touches(keys.JOB)), KEY, JobEvent.FAIL)
    assert sorted(outcomes(world)) == [(JobEvent.FAIL, "report"), (JobEvent.SUCCESS, starting.BY_LIFECYCLE)]
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED


def test_two_callbacks_at_one_time_are_one_report() -> None:
    world = over(minutes=5)
    control, run_id = control_of(world), run_of(world).run_id

    def meanwhile() -> None:
        writing.report_by_callback(control, KEY, 1, run_id, JobEvent.SUCCESS)

    second = interrupted(control, meanwhile, touches(keys.JOB))
    with pytest.raises(AlreadyReportedError, match="was reported already: success"):
        writing.report_by_callback(second, KEY, 1, run_id, JobEvent.FAIL)
    assert outcomes(world) == [(JobEvent.SUCCESS, writing.BY_CALLBACK)]


def test_an_end_that_comes_as_the_poll_window_closes_is_the_outcome() -> None:
    world = over()
    control = control_of(world)

    def meanwhile() -> None:
        assert writing.job_ended(control, KEY, 1)

    closing = interrupted(control, meanwhile, touches(keys.JOB))
    assert orchestrator.handle(closing, CHECK | {"mode": "job-poll-exhausted"}) == {"event": "success"}
    assert outcomes(world) == [(JobEvent.SUCCESS, "")]
    settle(world)
    assert count_events(world, EventType.JOB_POLL_EXHAUSTED) == 0
    assert run_of(world).status is RunStatus.COMPLETED


def test_a_report_that_comes_while_the_start_is_recorded_is_the_outcome() -> None:
    """The target answers the start with the end of the job, and the job has called back by then."""
    world = staged(pipeline(), until="2026-03-05T00:10:00Z")
    control, run = control_of(world), run_of(world)
    started = records.plain(run) | {"status": "TRIGGERING", "version": run.version + 1}
    control.store.commit([Put(records.run_record(KEY, keys.RUN), started)])
    ended = JobStarted(job_id=run.job_id, status=JobStatus(state=JobState.SUCCEEDED))

    def meanwhile() -> None:
        writing.report_by_callback(control, KEY, 1, run.run_id, JobEvent.SUCCESS)

    assert starting._record_start(interrupted(control, meanwhile, touches(keys.JOB)), run, ended)
    assert outcomes(world) == [(JobEvent.SUCCESS, writing.BY_CALLBACK)]
    assert run_of(world).status is RunStatus.RUNNING


def test_a_late_end_that_is_reported_twice_at_one_time_is_logged_once() -> None:
    """EventBridge reports at least once; and a rerun request asks the target as well."""
    world = over(minutes=5)
    control = control_of(world)
    completion.fail_final(control, KEY, 1, FinalReason.STALE, "its lease is over")
    world.clock.move_to(run_of(world).opened_at + timedelta(minutes=11))

    def meanwhile() -> None:
        assert writing.job_ended(control, KEY, 1)

    assert not writing.job_ended(interrupted(control, meanwhile, touches(keys.JOB)), KEY, 1)
    assert not writing.job_ended(control, KEY, 1)
    assert outcomes(world) == [(JobEvent.SUCCESS, "")]
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED


def test_an_end_that_is_reported_while_a_rerun_request_asks_the_target_is_logged_once() -> None:
    world = over(minutes=5)
    control = control_of(world)
    completion.fail_final(control, KEY, 1, FinalReason.STALE, "its lease is over")
    world.clock.move_to(run_of(world).opened_at + timedelta(minutes=11))
    asked = reruns.request(control, KEY)

    def meanwhile() -> None:
        assert writing.job_ended(control, KEY, 1)

    where = records.control_key(KEY.pk, keys.rerun_request_sk(KEY, asked.id))
    reruns.process(interrupted(control, meanwhile, touches(keys.JOB)), where)
    assert outcomes(world) == [(JobEvent.SUCCESS, "")]


# --------------------------------------------------------------------------------------------------- opening, reruns


def test_two_openers_at_one_time_open_one_attempt() -> None:
    world = staged(pipeline(), until="2026-03-05T00:05:00Z", steps=[])
    control = control_of(world)
    start = opening.Start(key=KEY, opened_by="the first")

    def meanwhile() -> None:
        assert opening.open_first(control, start) is opening.Opened.OPENED

    second = opening.open_first(interrupted(control, meanwhile, touches(keys.RUN)), start)
    assert second is opening.Opened.EXISTS
    assert count_events(world, EventType.TRIGGER_STARTED) == 1


def test_two_reruns_at_one_time_open_one_attempt_and_refuse_the_other() -> None:
    job = {"type": "glue", "config": {"jobName": "orders"}, "maxManualReruns": 5}
    world = staged(pipeline(job=job), until="2026-03-05T00:30:00Z")
    control = control_of(world)
    first = reruns.request(control, KEY, force=True)
    second = reruns.request(control, KEY, force=True)

    def where(id_: str) -> Key:
        return records.control_key(KEY.pk, keys.rerun_request_sk(KEY, id_))

    def meanwhile() -> None:
        reruns.process(control, where(first.id))

    reruns.process(interrupted(control, meanwhile, touches(keys.RUN)), where(second.id))
    assert run_of(world).attempt == 2
    assert count_events(world, EventType.RERUN_ACCEPTED) == 1
    assert count_events(world, EventType.RERUN_REJECTED) == 1
    settle(world)
    assert violations(world) == []


def test_late_success_while_a_rerun_is_decided_is_not_overrun() -> None:
    job = {"type": "glue", "config": {"jobName": "orders"}, "jobPollWindowSeconds": 60, "pollInterval": "30s"}
    script = [{"result": "fail", "after": "30m"}]
    world = staged(pipeline(job=job), until="2026-03-05T01:00:00Z", jobs=script)
    assert run_of(world).final_reason is FinalReason.POLL_EXHAUSTED
    control = control_of(world)
    asked = reruns.request(control, KEY)

    def meanwhile() -> None:
        record = writing.report_job(control, KEY, JobEvent.SUCCESS, attempt=1)
        completion.late_success(control, record)

    where = records.control_key(KEY.pk, keys.rerun_request_sk(KEY, asked.id))
    reruns.process(interrupted(control, meanwhile, touches(keys.RUN)), where)
    run = run_of(world)
    assert (run.status, run.attempt) == (RunStatus.COMPLETED, 1)
    assert count_events(world, EventType.RERUN_REJECTED) == 1


def test_retry_that_comes_due_twice_opens_one_attempt() -> None:
    job = {"type": "glue", "config": {"jobName": "orders"}, "maxRetries": 3, "retryDelay": "20m"}
    failing = [{"result": "fail", "after": "1m", "category": "TRANSIENT"}]
    world = staged(pipeline(job=job), until="2026-03-05T00:15:00Z", jobs=failing)
    assert run_of(world).status is RunStatus.FAILED
    control = control_of(world)

    def meanwhile() -> None:
        router.retry_due(control, KEY, 1)

    router.retry_due(interrupted(control, meanwhile, touches(keys.RUN)), KEY, 1)
    assert run_of(world).attempt == 2
    settle(world)
    assert violations(world) == []


def test_job_that_ends_twice_at_one_time_has_one_outcome() -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z", jobs=[{"result": "hang"}])
    control = control_of(world)
    writing.report_job(control, KEY, JobEvent.FAIL, category=FailureCategory.TRANSIENT)

    def meanwhile() -> None:
        completion.settle(control, KEY, 1)

    completion.settle(interrupted(control, meanwhile, touches(keys.RUN)), KEY, 1)
    settle(world)
    assert count_events(world, EventType.JOB_FAILED) == 1
    assert violations(world) == []


# ------------------------------------------------------------------------------------------------------------ events


def test_event_whose_sort_key_is_taken_by_another_process_is_told_all_the_same() -> None:
    """Two processes may count to the same number within one millisecond; that is no reason to stay silent."""
    world = staged(pipeline(), until="2026-03-05T00:05:00Z", steps=[])
    control = control_of(world)
    event = records.event(EventType.SENSOR_INVALID, keys.RunKey("orders", "", ""), control.now(), "told")
    taken: list[Write] = []

    def other_process(writes: Sequence[Write]) -> bool:
        taken.extend(write for write in writes if write.key.table is keys.Table.EVENTS)
        return True

    def meanwhile() -> None:
        control.store.commit(taken)

    assert records.publish_once(interrupted(control, meanwhile, other_process), event, "once")
    assert count_events(world, EventType.SENSOR_INVALID) == 2

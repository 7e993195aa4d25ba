"""Writing from outside: reports of how a job ended, and sensors with what their writers are warned of."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import catalog, records, writing
from interlock.control.attempts import completion
from interlock.control.context import Auditing
from interlock.control.views import pipeline_views
from interlock.model import keys
from interlock.model.audit import Actor, ActorKind, AuditAction, AuditNote
from interlock.model.errors import AlreadyReportedError, InterlockError, UnknownPipelineError
from interlock.model.events import EventType
from interlock.model.run import FailureCategory, FinalReason, JobEvent, JobRecord, RunStatus
from interlock.ports.store import Delete, Put, Write
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.safety.faults import FaultyWorld
from tests.safety.interleaving import InterleavingStore, interrupted
from tests.safety.stage import KEY, control_of, count_events, pipeline, run_of, settle, staged

DRY: Final = pipeline() | {"dryRun": True}
INVALID: Final = pipeline(validation={"rules": []})


def running() -> FaultyWorld:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z")
    assert run_of(world).status is RunStatus.RUNNING
    return world


def store(world: FaultyWorld, document: dict[str, Any] | None) -> None:
    control = control_of(world)
    if document is None:
        catalog.delete_config(control, "orders")
    else:
        control.store.commit([Put(records.control_key(KEY.pk, keys.CONFIG), {"document": document})])
    settle(world)


@pytest.mark.parametrize("document", [None, DRY, INVALID], ids=["deleted", "dry run", "invalid"])
def test_a_report_ends_a_job_that_runs(document: dict[str, Any] | None) -> None:
    world = running()
    store(world, document)
    assert pipeline_views.followed(control_of(world).store, "orders").find_schedule(KEY.schedule) is not None

    writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)
    settle(world)

    assert run_of(world).status is RunStatus.COMPLETED
    assert run_of(world).ended_at == world.clock.now(), "at once, not at the next poll"


def test_a_deleted_pipeline_of_which_nothing_runs_is_unknown() -> None:
    world = running()
    writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)
    settle(world)
    store(world, None)
    with pytest.raises(UnknownPipelineError):
        pipeline_views.followed(control_of(world).store, "orders")
    with pytest.raises(InterlockError):
        writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)


def test_a_failure_that_a_dry_run_hears_of_is_its_own_only_if_no_job_of_ours_runs() -> None:
    world = running()
    store(world, DRY)
    writing.report_job(control_of(world), KEY, JobEvent.FAIL)
    settle(world)
    assert count_events(world, EventType.JOB_FAILED) == 1
    assert (
        count_events(world, EventType.DRY_RUN_WOULD_RETRY)
        == count_events(world, EventType.DRY_RUN_RETRY_EXHAUSTED)
        == 0
    )


# -------------------------------------------------------------------------------------------------------------- sensors

_START = datetime(2026, 3, 2, 8, tzinfo=UTC)


def _world() -> World:
    pipeline = {
        "pipeline": {"id": "orders"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": "external"},
    }
    scenario = inline_scenario(start="2026-03-02T08:00:00Z", until="2026-03-02T08:00:00Z", pipelines=[pipeline])
    world = World(scenario)
    world.play()
    return world


def test_a_ttl_in_the_past_is_stored_with_a_warning() -> None:
    control = _world().engine.control
    written = writing.write_sensor(control, "orders", "ready", {"n": 1}, ttl=3600)
    assert any("in the past" in warning for warning in written.warnings)
    assert not writing.write_sensor(control, "orders", "ready", {"n": 1}, ttl=int(_START.timestamp()) + 60).warnings


def test_a_trigger_write_that_does_not_fit_the_granularity_is_stored_with_a_warning() -> None:
    days = {
        "pipeline": {"id": "orders"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}, "granularity": "day"},
        "validation": {"rules": [{"key": "rows", "check": "exists"}]},
        "job": {"type": "external"},
    }
    at = "2026-03-02T08:00:00Z"
    world = World(inline_scenario(start=at, until=at, pipelines=[days]))
    world.play()
    control = world.engine.control
    (warning,) = writing.write_sensor(control, "orders", "ready", {"date": "2026-03-02", "hour": 7}).warnings
    assert warning == (
        "no run is started: 2026-03-02T07 is one hour, but schedule.granularity is day: write the day without an hour"
    )
    assert writing.write_sensor(control, "orders", "ready", {"date": "2026-03-02"}).warnings == ()
    assert writing.write_sensor(control, "orders", "rows", {"date": "2026-03-02", "hour": 7}).warnings == ()


@pytest.mark.parametrize(
    ("key", "data", "period"),
    [
        ("ready", {"n": 1}, ""),
        ("ready#20260303T10", {"n": 1}, "2026-03-03T10"),
        ("ready", {"date": "2026-03-02", "hour": 7}, "2026-03-02T07"),
    ],
)
def test_the_answer_says_which_period_a_write_is_for(key: str, data: dict[str, Any], period: str) -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    assert writing.write_sensor(control, "orders", key, data).period == period


def test_a_report_for_an_earlier_attempt_is_logged_as_its_own() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 1}
    jobs = [{"after": "2m", "result": "fail", "category": "TRANSIENT"}, {"after": "60m", "result": "success"}]
    world = staged(pipeline(job=job), until="+20m", jobs=jobs)
    assert (run_of(world).attempt, run_of(world).status) == (2, RunStatus.RUNNING)
    first = writing.report_job(control_of(world), KEY, JobEvent.SUCCESS, attempt=1)
    assert first.attempt == 1
    settle(world)
    assert run_of(world).status is RunStatus.RUNNING, "it ends no other attempt's job"
    with pytest.raises(InterlockError, match="has no attempt 3: its latest is 2"):
        writing.report_job(control_of(world), KEY, JobEvent.SUCCESS, attempt=3)
    with pytest.raises(InterlockError, match="'other' is not the run id of its latest attempt"):
        writing.report_job(control_of(world), KEY, JobEvent.SUCCESS, run_id="other")
    assert writing.report_job(control_of(world), KEY, JobEvent.SUCCESS).attempt == 2


def by_callback(world: FaultyWorld, event: JobEvent, attempt: int, run_id: str) -> JobRecord:
    return writing.report_by_callback(control_of(world), KEY, attempt, run_id, event)


def test_a_job_reports_its_outcome_by_callback_once() -> None:
    world = running()
    run = run_of(world)
    reported = by_callback(world, JobEvent.SUCCESS, 1, run.run_id)
    assert (reported.attempt, reported.run_id, reported.reported_by) == (1, run.run_id, writing.BY_CALLBACK)
    with pytest.raises(AlreadyReportedError, match="was reported already: success"):
        by_callback(world, JobEvent.FAIL, 1, run.run_id)
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED


def test_a_report_by_another_way_does_not_use_up_the_callback() -> None:
    world = running()
    writing.report_job(control_of(world), KEY, JobEvent.TIMEOUT)
    assert by_callback(world, JobEvent.SUCCESS, 1, run_of(world).run_id).event is JobEvent.SUCCESS


@pytest.mark.parametrize(("attempt", "run_id"), [(2, None), (1, "of-another-attempt")])
def test_a_callback_counts_for_its_own_attempt_alone(attempt: int, run_id: str | None) -> None:
    world = running()
    with pytest.raises(AlreadyReportedError, match="is over: a later attempt has taken its place"):
        by_callback(world, JobEvent.SUCCESS, attempt, run_id or run_of(world).run_id)
    settle(world)
    assert run_of(world).status is RunStatus.RUNNING


def test_an_end_that_the_target_reports_is_logged_once_and_only_if_the_job_is_over() -> None:
    world = running()
    assert not writing.job_ended(control_of(world), KEY, 1), "it still runs"
    assert not writing.job_ended(control_of(world), KEY, 2)
    world.clock.move_to(run_of(world).opened_at + timedelta(minutes=11))
    assert not writing.job_ended(control_of(world), KEY, 2), "of another attempt"
    assert writing.job_ended(control_of(world), KEY, 1)
    assert not writing.job_ended(control_of(world), KEY, 1), "it is logged already"
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED
    assert not writing.job_ended(control_of(world), KEY, 1)


def test_an_end_that_comes_while_the_run_is_ended_otherwise_is_not_logged() -> None:
    world = running()
    world.clock.move_to(run_of(world).opened_at + timedelta(minutes=11))
    control = control_of(world)

    def end() -> None:
        completion.fail_final(control, KEY, 1, FinalReason.INFRA, "ended by another")

    assert not writing.job_ended(interrupted(control, end, lambda writes: len(writes) == 2), KEY, 1)
    assert run_of(world).final_reason is FinalReason.INFRA
    assert records.job_log(control.store, KEY) == []


# ------------------------------------------------------------------------------------------- what a report may be about


def test_only_an_outcome_can_be_reported() -> None:
    with pytest.raises(InterlockError, match="is not an outcome: report success, fail or timeout"):
        writing.report_job(control_of(running()), KEY, JobEvent.VALIDATION_EXHAUSTED)


def test_a_report_is_logged_with_what_it_says() -> None:
    world = running()
    reported = writing.report_job(
        control_of(world), KEY, JobEvent.FAIL, category=FailureCategory.PERMANENT, error="x" * 3000
    )
    assert (reported.category, reported.error) == (FailureCategory.PERMANENT, "x" * 2000)
    assert (reported.run_id, reported.reported_by, reported.at) == (
        run_of(world).run_id, "report", world.clock.now(),
    )  # fmt: skip
    assert writing.report_job(control_of(world), KEY, JobEvent.FAIL, by="ann").reported_by == "ann"


def test_a_run_that_never_was_or_has_started_no_job_has_nothing_to_report_on() -> None:
    world = staged(pipeline(), until="+1m", steps=[])
    with pytest.raises(InterlockError, match="has never run: nothing to report on"):
        writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)
    waits = staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until="+15m")
    for attempt in (None, 1):
        with pytest.raises(InterlockError, match="attempt 1 has not started a job yet: nothing to report on"):
            writing.report_job(control_of(waits), KEY, JobEvent.SUCCESS, attempt=attempt)


def test_a_run_that_is_over_is_reported_on_only_by_its_attempt_or_its_run_id() -> None:
    world = running()
    completion.fail_final(control_of(world), KEY, 1, FinalReason.STALE, "nothing was heard of it")
    with pytest.raises(InterlockError, match=r"has no active attempt \(attempt 1 is FAILED_FINAL\): name the attempt"):
        writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)
    run_id = run_of(world).run_id
    assert writing.report_job(control_of(world), KEY, JobEvent.FAIL, attempt=1).run_id == run_id
    assert writing.report_job(control_of(world), KEY, JobEvent.SUCCESS, run_id=run_id).attempt == 1
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED, "a late success"


def test_a_dry_run_is_reported_on_once_it_was_observed() -> None:
    world = staged(pipeline(dryRun=True), until="+5m")
    with pytest.raises(InterlockError, match="is a dry run that has not been observed yet: nothing to report on"):
        writing.report_job(control_of(world), KEY, JobEvent.SUCCESS)
    observed = staged(pipeline(dryRun=True), until="+15m")
    assert writing.report_job(control_of(observed), KEY, JobEvent.SUCCESS).attempt == 1
    assert (
        writing.report_job(control_of(observed), KEY, JobEvent.SUCCESS, attempt=3, run_id="theirs").run_id == "theirs"
    )


# ------------------------------------------------------------------------------------------- what writers are warned of


def test_a_sensor_that_nothing_reads_is_stored_with_a_warning_that_says_what_is_read() -> None:
    config = pipeline(postRun={"rules": [{"key": "out", "check": "exists"}]})
    control = control_of(staged(config, until="+1m", steps=[]))
    (warning,) = writing.write_sensor(control, "orders", "redy", {"n": 1}).warnings
    assert warning == "no rule of orders reads 'redy': it reads ready, out"
    for key in ("ready", "out", "out#2026-03-05"):
        assert writing.write_sensor(control, "orders", key, {"n": 1}).warnings == ()
    now = int(control.now().timestamp())
    both = writing.write_sensor(control, "orders", "redy", {"date": "soon"}, ttl=now).warnings
    assert [text.partition(":")[0] for text in both] == [
        "no run is started", "no rule of orders reads 'redy'",
        f"ttl {now} is in the past, so the sensor counts as absent",
    ]  # fmt: skip


def test_a_sensor_of_a_pipeline_whose_config_is_invalid_is_stored_without_warnings() -> None:
    world = staged(pipeline(), until="+1m", steps=[])
    store(world, INVALID)
    written = writing.write_sensor(control_of(world), "orders", "anything", {"n": 1})
    assert (written.pipeline, written.key, written.warnings) == ("orders", "anything", ())
    assert written.received_at == world.clock.now()


def test_a_sensor_of_an_unknown_pipeline_is_neither_written_nor_deleted() -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    with pytest.raises(UnknownPipelineError, match="there is no pipeline 'order'"):
        writing.write_sensor(control, "order", "ready", {"n": 1})
    with pytest.raises(UnknownPipelineError):
        writing.delete_sensor(control, "order", "ready")
    with pytest.raises(InterlockError):
        writing.delete_sensor(control, "orders", "")


@pytest.mark.parametrize(
    ("sensors", "actions"),
    [(True, [AuditAction.SENSOR_WRITTEN, AuditAction.SENSOR_DELETED]), (False, [AuditAction.SENSOR_DELETED])],
    ids=["with sensors", "without"],
)
def test_a_write_is_noted_where_the_trail_holds_sensors_and_a_deletion_always(
    sensors: bool, actions: list[AuditAction]
) -> None:
    control = control_of(staged(pipeline(), until="+1m", steps=[]))
    notes: list[AuditNote] = []

    def watch(writes: Sequence[Write]) -> None:
        notes.extend(one.note for one in writes if isinstance(one, Put | Delete) and one.note is not None)

    ann = replace(control, auditing=Auditing(sensors=sensors)).acting(Actor(ActorKind.TOKEN, "ann", "192.0.2.7"))
    ann = replace(ann, store=InterleavingStore(control.store, watch))
    writing.write_sensor(ann, "orders", "ready", {"n": 1})
    writing.delete_sensor(ann, "orders", "ready")
    assert [one.action for one in notes] == actions
    assert {one.subject for one in notes} == {"ready"}
    writing.write_sensor(replace(ann, auditing=None), "orders", "ready", {"n": 1})
    assert len(notes) == len(actions)

"""The stream-router reads what is there now: what has vanished since the change does nothing, and breaks nothing."""

from typing import Any, Final

import pytest

from interlock.control import catalog, records, router, writing
from interlock.control.attempts import parts, starting
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import Table
from interlock.model.run import FailureCategory, JobEvent, JobRecord, RunStatus
from interlock.ports.store import Change, Delete, Item, Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged, write

WAITING: Final = "2026-03-05T00:15:00Z"
DONE: Final = "2026-03-05T00:30:00Z"


def change_of(world: FaultyWorld, sk: str, item: Item | None, table: Table = Table.CONTROL) -> Change:
    """A change as the stream delivers it."""
    at = int(world.clock.now().timestamp() * 1000)
    return Change(seq=1, table=table, pk=KEY.pk, sk=sk, item=item, at=at)


def contents(world: FaultyWorld) -> list[Any]:
    """Everything that is stored of the pipeline."""
    store = control_of(world).store
    return [(table, record) for table in Table for record in store.query(table, KEY.pk)]


def waiting_for_rows(until: str = WAITING) -> FaultyWorld:
    return staged(pipeline(validation={"rules": [{"key": "rows", "check": "exists"}]}), until=until)


# ------------------------------------------------------------------------------------------------------- vanished


@pytest.mark.parametrize(
    ("sk", "item"),
    [
        (keys.sensor_sk("ready#2026-03-04"), {"data": {"status": "ready"}}),
        (keys.sensor_sk("ready"), {"data": {"status": "ready"}}),
        (f"{keys.RUN}stream#2026-03-04", {"status": "PENDING", "version": 1}),
        (f"{keys.RUN}stream#2026-03-04", {"status": "COMPLETED", "version": 4}),
        (f"{keys.RUN}stream#2026-03-04", {"status": "FAILED", "version": 4}),
        (f"{keys.SLA}stream#2026-03-04", {"version": 1}),
        (keys.marker_sk("stream", "2026-03-04", "a", "cron"), {"upstream": "a"}),
        (f"{keys.RERUN_REQUEST}stream#2026-03-04#manual-1", {"id": "manual-1"}),
        (f"{keys.CONFIG_VERSION}0123", {"document": {}}),
        ("SOMETHING#ELSE", {"a": 1}),
    ],
)
def test_a_record_that_has_vanished_since_its_change_sets_nothing_in_motion(sk: str, item: Item) -> None:
    schedule = {"trigger": {"key": "ready", "check": "exists"}}
    world = staged(pipeline(schedule=schedule), until=WAITING, steps=[])
    before = contents(world)
    router.route(control_of(world), change_of(world, sk, item))
    assert contents(world) == before


@pytest.mark.parametrize(
    "sk",
    [
        f"{keys.RUN}stream#2026-03-05",
        keys.marker_sk("stream", "2026-03-05", "a", "cron"),
        f"{keys.RERUN_REQUEST}stream#2026-03-05#manual-1",
    ],
)
def test_a_removal_sets_nothing_in_motion(sk: str) -> None:
    world = waiting_for_rows()
    before = contents(world)
    router.route(control_of(world), change_of(world, sk, None))
    assert contents(world) == before


def test_a_sensor_of_a_pipeline_that_has_been_deleted_since_opens_nothing() -> None:
    world = staged(pipeline(), until=WAITING, steps=[])
    write(world, "ready", status="ready")
    catalog.delete_config(control_of(world), "orders")
    settle(world)
    assert world.run_of(KEY) is None
    assert count_events(world, EventType.TRIGGER_STARTED) == 0


def test_a_run_whose_sensor_is_deleted_before_it_looks_goes_on_waiting() -> None:
    world = waiting_for_rows()
    write(world, "rows", n=1)
    writing.delete_sensor(control_of(world), "orders", "rows")
    settle(world)
    assert (run_of(world).status, run_of(world).passed_at) == (RunStatus.PENDING, None)


def test_a_completion_whose_config_is_gone_leaves_the_run_completed() -> None:
    world = staged(pipeline(postRun={"rules": [{"key": "out", "check": "exists"}]}), until="2026-03-05T00:15:00Z")
    catalog.delete_config(control_of(world), "orders")
    later(world, minutes=30)
    assert run_of(world).status is RunStatus.COMPLETED
    item = records.sensor_item({"n": 1}, world.clock.now())
    control_of(world).store.commit([Put(records.control_key(KEY.pk, keys.sensor_sk("out")), item)])
    settle(world)
    assert world.dead_letters() == 0


def test_an_older_change_of_a_run_that_has_moved_on_sets_nothing_in_motion() -> None:
    world = staged(pipeline(), until=DONE)
    run = run_of(world)
    assert run.status is RunStatus.COMPLETED
    before = contents(world)
    for version, status in ((1, "PENDING"), (2, "FAILED"), (3, "FAILED_FINAL")):
        item = {"status": status, "version": version, "pipeline": "orders"}
        router.route(control_of(world), change_of(world, KEY.sk(keys.RUN), item))
    assert contents(world) == before


def test_a_change_of_another_partition_is_nobody_s() -> None:
    world = staged(pipeline(), until=WAITING, steps=[])
    change = Change(seq=1, table=Table.CONTROL, pk="CONTROLLER", sk=KEY.sk(keys.RUN), item={"version": 1}, at=0)
    before = contents(world)
    router.route(control_of(world), change)
    assert contents(world) == before


# -------------------------------------------------------------------------------------------------------- job log


def report(world: FaultyWorld, event: JobEvent, attempt: int = 1, by: str = "somebody") -> None:
    """A job-log record, written from outside."""
    record = JobRecord(
        pipeline="orders",
        schedule="stream",
        date=KEY.date,
        event=event,
        attempt=attempt,
        at=world.clock.now(),
        category=FailureCategory.TRANSIENT if event is JobEvent.FAIL else None,
        reported_by=by,
    )
    control_of(world).store.commit([records.put_job(record, "zzz")])


def test_a_reported_success_completes_the_attempt_at_once() -> None:
    world = staged(pipeline(), until=WAITING)
    assert run_of(world).status is RunStatus.RUNNING
    report(world, JobEvent.SUCCESS)
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED


def test_a_report_of_another_attempt_is_not_this_attempt_s() -> None:
    world = staged(pipeline(), until=WAITING)
    report(world, JobEvent.SUCCESS, attempt=2)
    settle(world)
    assert run_of(world).status is RunStatus.RUNNING


def test_a_report_without_a_run_is_kept_and_nothing_more() -> None:
    world = staged(pipeline(), until=WAITING, steps=[])
    report(world, JobEvent.SUCCESS)
    settle(world)
    assert world.run_of(KEY) is None
    assert world.dead_letters() == 0


def test_a_success_of_a_job_that_was_never_started_completes_nothing() -> None:
    world = waiting_for_rows(until="2026-03-05T02:00:00Z")
    assert run_of(world).status is RunStatus.FAILED_FINAL
    report(world, JobEvent.SUCCESS)
    settle(world)
    assert run_of(world).status is RunStatus.FAILED_FINAL


def wake_ups(world: FaultyWorld) -> int:
    active = records.get_active(control_of(world).store, KEY)
    assert active is not None
    return active.wake_seq


def test_an_outcome_of_an_attempt_whose_execution_is_gone_is_settled_from_its_change() -> None:
    world = staged(pipeline(), until=WAITING)
    name = parts.execution_of(run_of(world))
    world.database.write(
        lambda connection: connection.execute("DELETE FROM executions WHERE name = ?", (name,)).rowcount
    )
    report(world, JobEvent.SUCCESS)
    while world.engine.router.pump():
        pass
    assert run_of(world).status is RunStatus.COMPLETED


@pytest.mark.parametrize(("by", "woken"), [("somebody", 1), (starting.BY_LIFECYCLE, 0)])
def test_an_execution_is_woken_by_the_reports_of_others_and_not_by_its_own(by: str, woken: int) -> None:
    world = staged(pipeline(), until=WAITING)
    before = wake_ups(world)
    report(world, JobEvent.SUCCESS, by=by)
    while world.engine.router.pump():
        pass
    assert wake_ups(world) - before == woken


def test_the_change_of_a_run_under_way_wakes_its_execution_only_when_it_was_claimed() -> None:
    world = staged(pipeline(), until=WAITING)
    run, before = run_of(world), wake_ups(world)
    assert run.status is RunStatus.RUNNING
    item = {"status": "RUNNING", "version": run.version}
    for unclaimed in (item, item | {"status": "TRIGGERING"}, item | {"claimId": "x", "jobStartedAt": "later"}):
        router.route(control_of(world), change_of(world, KEY.sk(keys.RUN), unclaimed))
    assert wake_ups(world) == before
    router.route(control_of(world), change_of(world, KEY.sk(keys.RUN), item | {"claimId": "x"}))
    assert wake_ups(world) == before + 1


def test_a_job_that_has_not_ended_yet_sets_nothing_in_motion() -> None:
    world = staged(pipeline(), until=WAITING)
    before = contents(world)
    record = JobRecord(
        pipeline="orders",
        schedule="stream",
        date=KEY.date,
        event=JobEvent.INFRA_TRIGGER_FAILURE,
        attempt=1,
        at=world.clock.now(),
        reported_by="somebody",
    )
    router.route(control_of(world), change_of(world, "zzz", records.plain(record), Table.JOBLOG))
    router.route(control_of(world), change_of(world, "zzz", None, Table.JOBLOG))
    assert contents(world) == before


# --------------------------------------------------------------------------------------------------------- retries


RETRIES: Final = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 1, "retryDelay": "1h"}


def failed() -> FaultyWorld:
    """`orders`, whose first attempt has failed and is to be retried at a quarter past one."""
    jobs = [{"after": "5m", "result": "fail", "category": "TRANSIENT"}]
    return staged(pipeline(job=RETRIES), until=DONE, jobs=jobs)


def test_a_retry_whose_run_has_vanished_opens_nothing() -> None:
    world = failed()
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.RUN))])
    router.retry_due(control_of(world), KEY, 1)
    assert world.run_of(KEY) is None


def test_a_retry_of_another_attempt_opens_nothing() -> None:
    world = failed()
    router.retry_due(control_of(world), KEY, 2)
    assert (run_of(world).status, run_of(world).attempt) == (RunStatus.FAILED, 1)
    router.retry_due(control_of(world), KEY, 1)
    assert (run_of(world).status, run_of(world).attempt) == (RunStatus.PENDING, 2)


def test_a_retry_is_timed_by_the_change_of_its_run() -> None:
    world = failed()
    retry_at = run_of(world).retry_at
    name = f"retry-{keys.execution_name(KEY, 1)[-50:]}"
    timer = world.engine.timers.get(name)
    assert timer is not None
    assert timer.at == retry_at
    world.engine.timers.cancel(name)
    router.route(control_of(world), change_of(world, KEY.sk(keys.RUN), {"status": "FAILED"}))
    assert world.engine.timers.get(name) is not None


def test_a_config_that_is_written_past_our_api_is_followed() -> None:
    world = waiting_for_rows()
    where = records.control_key(KEY.pk, keys.CONFIG)
    control_of(world).store.commit([Put(where, {"document": pipeline() | {"dryRun": True}})])
    settle(world)
    assert run_of(world).status is RunStatus.FAILED_FINAL


def test_a_retry_without_the_outcome_that_decided_on_it_opens_nothing() -> None:
    world = failed()
    store = control_of(world).store
    store.commit([Delete(record.key) for record in store.query(Table.JOBLOG, KEY.pk)])
    router.retry_due(control_of(world), KEY, 1)
    assert (run_of(world).status, run_of(world).attempt) == (RunStatus.FAILED, 1)


def test_a_retry_that_is_due_twice_opens_one_attempt() -> None:
    world = failed()
    router.retry_due(control_of(world), KEY, 1)
    opened = run_of(world)
    router.retry_due(control_of(world), KEY, 1)
    assert run_of(world) == opened

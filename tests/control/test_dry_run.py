"""A dry run: what it says it would do, when, how often; and that it never does it."""

from datetime import timedelta
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, dry_run, records
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import DryRun, FailureCategory, JobEvent, JobRecord, Source
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, run_of, settle, staged, write

READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
ROWS: Final = {"key": "rows", "check": "gte", "field": "count", "value": 5}
WATCHED: Final = {"rules": [{"key": "out", "check": "exists"}], "driftField": "count", "driftThreshold": 10}


def dry(until: str = "+15m", steps: list[dict[str, Any]] | None = None, **parts: Any) -> FaultyWorld:
    return staged(pipeline(dryRun=True, **parts), until=until, steps=steps)


def marker(world: FaultyWorld, key: RunKey = KEY) -> DryRun | None:
    return records.get(control_of(world).store, records.run_record(key, keys.DRY_RUN), DryRun)


def seen(world: FaultyWorld, key: RunKey | None = None) -> list[Event]:
    """Its events of dry runs, in order."""
    world._pump()
    found = [event for event in world.events if event.type.value.startswith("DRY_RUN")]
    return [event for event in found if key is None or event.date == key.date]


def types(world: FaultyWorld, key: RunKey | None = None) -> list[str]:
    return [event.type.value.removeprefix("DRY_RUN_") for event in seen(world, key)]


def written(world: FaultyWorld, sensor: str, **data: Any) -> None:
    write(world, sensor, **data)
    settle(world)


def nothing_was_done(world: FaultyWorld) -> None:
    assert world.targets.starts == []
    assert control_of(world).store.query(Table.CONTROL, KEY.pk, keys.RUN) == []


# ----------------------------------------------------------------------------------------------- until it would start


def test_rules_that_pass_at_once_are_all_that_there_is_to_say() -> None:
    world = dry(sla={"deadline": "10:00", "dayOffset": 0, "expectedDuration": "30m"})
    assert types(world) == ["WOULD_TRIGGER", "SLA_PROJECTION", "COMPLETED"]
    found = marker(world)
    assert found is not None
    assert found.would_trigger_at == found.opened_at == found.first_arrival
    assert found.trigger_payload == {"status": "ready", "rows": 1}
    assert found.ttl == int((found.opened_at + timedelta(days=7)).timestamp())
    assert seen(world)[1].detail["marginSeconds"] == (9 * 60 + 20) * 60
    nothing_was_done(world)


def test_a_rule_that_passes_later_in_the_window_counts_and_after_it_does_not() -> None:
    world = dry(validation={"rules": [READY, ROWS]})
    assert types(world) == []
    written(world, "rows", count=4)
    assert types(world) == []
    later(world, minutes=50)
    written(world, "rows", count=5)
    assert types(world) == ["WOULD_TRIGGER", "COMPLETED"]
    missed = dry(validation={"rules": [READY, ROWS]})
    later(missed, minutes=56)
    written(missed, "rows", count=5)
    assert types(missed) == []


def test_the_last_instant_of_the_window_belongs_to_it() -> None:
    world = dry(until="+10m", validation={"rules": [READY, ROWS]})
    opened = marker(world)
    assert opened is not None
    later(world, minutes=60)
    assert world.clock.now() == opened.opened_at + timedelta(hours=1)
    written(world, "rows", count=5)
    assert types(world) == ["WOULD_TRIGGER", "COMPLETED"]


def test_a_write_that_does_not_trigger_or_is_of_no_day_or_of_an_excluded_one_begins_nothing() -> None:
    world = dry(steps=[], schedule={"trigger": READY, "exclude": {"dates": ["2026-03-04"]}})
    written(world, "ready", status="not yet")
    written(world, "other", status="ready")
    written(world, "ready", status="ready", date="someday")
    written(world, "ready", status="ready", date="2026-03-04")
    assert control_of(world).store.query(Table.CONTROL, KEY.pk, keys.DRY_RUN) == []
    world._pump()
    kinds = [event.type for event in world.events]
    assert kinds.count(EventType.SENSOR_INVALID) == 1
    assert kinds.count(EventType.PIPELINE_EXCLUDED) == 1


def test_a_pipeline_that_is_deleted_while_its_write_is_read_begins_an_observation_without_a_version() -> None:
    world = dry(steps=[])
    control = control_of(world)
    config = catalog.current(control.store, "orders")
    assert config is not None
    write(world, "ready", status="ready")
    catalog.delete_config(control, "orders")
    sensor = records.get_sensors(control.store, "orders", ["ready"])["ready"]
    dry_run.begin(control, config, config.all_schedules[0], sensor)
    found = marker(world)
    assert found is not None
    assert found.config_version == ""


def test_the_same_write_again_begins_nothing_new_and_says_nothing_twice() -> None:
    world = dry()
    sensors = records.get_sensors(control_of(world).store, "orders", ["ready"])
    config = catalog.current(control_of(world).store, "orders")
    assert config is not None
    before = marker(world)
    for _ in range(3):
        dry_run.observe(control_of(world), config, sensors["ready"])
    assert (marker(world), types(world)) == (before, ["WOULD_TRIGGER", "COMPLETED"])


# ------------------------------------------------------------------------------------------------------- afterwards


def test_a_changed_payload_is_late_data_and_would_be_run_again_within_the_budget() -> None:
    world = dry(job={"type": "glue", "config": {"jobName": "x"}, "maxDriftReruns": 1})
    written(world, "ready", status="ready", rows=2)
    written(world, "ready", status="ready", rows=2)
    written(world, "ready", status="ready", rows=3)
    assert types(world)[2:] == ["LATE_DATA", "WOULD_RERUN", "LATE_DATA", "RERUN_REJECTED"]
    assert seen(world)[2].detail["changed"] == ["rows"]
    found = marker(world)
    assert found is not None
    assert found.used == {Source.DATA_DRIFT: 1}
    assert found.trigger_payload == {"status": "ready", "rows": 3}
    nothing_was_done(world)


def test_drift_is_measured_from_the_baseline_of_the_latest_rerun() -> None:
    world = dry(postRun=WATCHED, job={"type": "glue", "config": {"jobName": "x"}, "maxDriftReruns": 2})
    written(world, "out", count=100)
    assert types(world)[2:] == [], "its first value is its baseline"
    written(world, "out", count=110)
    assert types(world)[2:] == [], "not above the threshold"
    written(world, "out", count=111)
    written(world, "out", count=111)
    written(world, "out", count=120)
    assert types(world)[2:] == ["DRIFT", "WOULD_RERUN"], "of the new baseline it is no drift"
    written(world, "out", count=200)
    assert types(world)[4:] == ["DRIFT", "WOULD_RERUN"]
    written(world, "out", count=900)
    assert types(world)[6:] == ["DRIFT", "RERUN_REJECTED"]
    found = marker(world)
    assert found is not None
    assert (found.post_run_sensors or {})["out"]["count"] == 200, "a rejected rerun takes no baseline"


def test_a_sensor_that_was_there_before_is_the_baseline() -> None:
    steps = [
        {"at": "+5m", "sensor": "orders/out", "data": {"count": 100}},
        {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
    ]
    world = dry(steps=steps, postRun=WATCHED)
    written(world, "out", count=50)
    assert types(world)[2:] == ["DRIFT", "WOULD_RERUN"]
    assert seen(world)[2].detail["key"] == "out"


def test_a_write_without_a_period_is_about_the_latest_run_alone() -> None:
    world = dry(postRun=WATCHED)
    earlier = RunKey("orders", "stream", "2026-03-04")
    written(world, "ready#2026-03-04", status="ready")
    for key in (KEY, earlier):
        assert types(world, key) == ["WOULD_TRIGGER", "COMPLETED"]
    written(world, "out", count=100)
    written(world, "out", count=500)
    assert types(world, KEY)[2:] == ["DRIFT", "WOULD_RERUN"]
    assert types(world, earlier)[2:] == []
    written(world, "out#2026-03-04", count=1)
    written(world, "out#2026-03-04", count=500)
    assert types(world, earlier)[2:] == ["DRIFT", "WOULD_RERUN"]
    assert types(world, KEY)[4:] == []


def test_a_plain_sensor_counts_for_nothing_where_one_of_the_period_is_read() -> None:
    world = dry(postRun=WATCHED)
    written(world, "out#2026-03-05", count=100)
    written(world, "out", count=500)
    assert types(world)[2:] == []
    written(world, "out#2026-03-05", count=500)
    assert types(world)[2:] == ["DRIFT", "WOULD_RERUN"]


def test_a_sensor_that_nothing_watches_says_nothing() -> None:
    world = dry()
    written(world, "out", count=1)
    written(world, "out", count=500)
    assert types(world)[2:] == []


# ---------------------------------------------------------------------------------------------------------- failures


def outcome(world: FaultyWorld, event: JobEvent, category: FailureCategory | None) -> JobRecord:
    return JobRecord(
        pipeline="orders",
        schedule="stream",
        date=KEY.date,
        event=event,
        attempt=1,
        at=world.clock.now(),
        run_id="theirs",
        category=category,
    )


def reported(world: FaultyWorld, event: JobEvent, category: FailureCategory | None) -> bool:
    """What somebody else's scheduler says of the job that really ran."""
    return dry_run.job_reported(control_of(world), outcome(world, event, category))


def test_a_failure_says_which_retry_it_would_come_to_each_kind_with_its_own_budget() -> None:
    world = dry(job={"type": "glue", "config": {"jobName": "x"}, "maxRetries": 1, "maxCodeRetries": 1})
    assert reported(world, JobEvent.FAIL, FailureCategory.TRANSIENT)
    assert reported(world, JobEvent.FAIL, FailureCategory.TRANSIENT), "the same record, delivered again"
    assert types(world)[2:] == ["WOULD_RETRY"]
    later(world, minutes=1)
    assert reported(world, JobEvent.TIMEOUT, None)
    later(world, minutes=1)
    assert reported(world, JobEvent.FAIL, FailureCategory.PERMANENT)
    assert types(world)[3:] == ["RETRY_EXHAUSTED", "WOULD_RETRY"]
    nothing_was_done(world)


def test_a_success_says_nothing_and_a_pipeline_that_is_no_dry_run_is_not_meant() -> None:
    world = dry()
    assert reported(world, JobEvent.SUCCESS, None)
    assert types(world)[2:] == []
    assert not reported(staged(pipeline(), until="+15m"), JobEvent.FAIL, FailureCategory.PERMANENT)
    unopened = dry(steps=[])
    assert reported(unopened, JobEvent.FAIL, FailureCategory.PERMANENT)
    assert types(unopened) == []


@pytest.mark.parametrize(("until", "is_the_runs"), [("+12m", True), ("+30m", False)])
def test_the_outcome_of_a_job_that_was_started_before_the_pipeline_became_a_dry_run_is_the_run_s(
    until: str, is_the_runs: bool
) -> None:
    world = staged(pipeline(), until=until)
    document = pipeline(dryRun=True)
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(control_of(world), config, document)
    settle(world)
    assert run_of(world).active is is_the_runs
    assert reported(world, JobEvent.FAIL, FailureCategory.PERMANENT) is not is_the_runs


def test_an_outcome_in_the_job_log_reaches_the_dry_run() -> None:
    world = dry(job={"type": "glue", "config": {"jobName": "x"}, "maxRetries": 1})
    put = records.put_job(outcome(world, JobEvent.FAIL, FailureCategory.TRANSIENT), "1")
    control_of(world).store.commit([put])
    settle(world)
    assert types(world)[2:] == ["WOULD_RETRY"]

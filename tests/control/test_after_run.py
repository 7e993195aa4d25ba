"""After the run: no write to a post-run sensor falls between the baseline and the completion."""

from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from interlock.control import after_run, catalog, records, router
from interlock.control.attempts import completion, orchestrator
from interlock.decide import transitions
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.events import Event, EventType
from interlock.model.keys import Table
from interlock.model.run import Baseline, RunStatus, Source
from interlock.ports.store import Change, Delete, Put
from tests.safety.faults import FaultyWorld
from tests.safety.interleaving import interrupted, touches
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged, write

POST_RUN: Final = {"rules": [{"key": "out", "check": "exists"}], "driftField": "rows", "driftThreshold": 10}
STEPS: Final = [
    {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready", "rows": 1}},
    {"at": "+12m", "sensor": "orders/out", "data": {"rows": 100}},
]


def running(**post_run: Any) -> FaultyWorld:
    """`orders` at a quarter past; its job ends at twenty past. Its output says 100 rows."""
    return staged(pipeline(postRun=POST_RUN | post_run), until="2026-03-05T00:15:00Z", steps=STEPS)


def completed(**post_run: Any) -> FaultyWorld:
    world = running(**post_run)
    later(world, minutes=15)
    assert run_of(world).status is RunStatus.COMPLETED
    return world


def events(world: FaultyWorld, type_: EventType) -> list[Event]:
    world._pump()
    return [event for event in world.events if event.type is type_]


def baseline(world: FaultyWorld) -> Baseline:
    found = records.get(control_of(world).store, records.run_record(KEY, keys.BASELINE), Baseline)
    assert found is not None
    return found


def end_with_a_write_before_the_commit(world: FaultyWorld, **data: Any) -> None:
    """The job ends. A write comes after the completion has read the baseline, and before its commit."""
    world.clock.move_to(world.clock.now().replace(minute=21))
    payload = {"pipeline": "orders", "schedule": "stream", "date": KEY.date, "attempt": 1}
    orchestrator.handle(control_of(world), {"mode": "check-job"} | payload)

    def meanwhile() -> None:
        write(world, "out", **data)
        # Delivered at once, while the run is RUNNING: for that write nothing is left to do but the second look.
        changes = [change for change in _changes(world) if change.sk.startswith(keys.SENSOR)]
        router.handle(control_of(world), changes[-1:])

    completion.settle(interrupted(control_of(world), meanwhile, touches(keys.RUN)), KEY, 1)


def _changes(world: FaultyWorld) -> list[Change]:
    consumer = world.engine.router
    changes, _ = consumer._read(0, world.database.head(), 1_000_000)
    return changes


def test_a_write_between_the_baseline_and_the_completion_is_drift_once() -> None:
    world = running()
    end_with_a_write_before_the_commit(world, rows=500)
    assert baseline(world).sensors == {"out": {"rows": 100}}
    after_run.completed(control_of(world), config_of(world), run_of(world))
    after_run.completed(control_of(world), config_of(world), run_of(world))
    (drift,) = events(world, EventType.POST_RUN_DRIFT)
    assert (drift.detail["baseline"], drift.detail["current"]) == (100, 500)


def test_the_change_of_the_completion_leads_to_the_second_look() -> None:
    world = running(onDrift="alert")
    end_with_a_write_before_the_commit(world, rows=500)
    run = run_of(world)
    item = control_of(world).store.get(records.run_record(KEY, keys.RUN))
    at = int(world.clock.now().timestamp() * 1000)
    change = Change(
        seq=1, table=records.run_record(KEY, keys.RUN).table, pk=KEY.pk, sk=KEY.sk(keys.RUN), item=item, at=at
    )
    router.route(control_of(world), change)
    # Read from the store: the stream, whose turn would come later, also brings the write itself again.
    stored = control_of(world).store.query(Table.EVENTS, KEY.pk)
    assert [record.item["type"] for record in stored].count(EventType.POST_RUN_DRIFT) == 1
    assert run_of(world).attempt == run.attempt


def config_of(world: FaultyWorld) -> PipelineConfig:
    config = catalog.current(control_of(world).store, "orders")
    assert isinstance(config, PipelineConfig)
    return config


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_write_just_after_the_completion_is_compared_with_the_baseline(seconds: int) -> None:
    world = running()
    later(world, minutes=5)
    assert run_of(world).status is RunStatus.COMPLETED
    later(world, seconds=seconds)
    write(world, "out", rows=500)
    settle(world)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 1
    assert (run_of(world).attempt, run_of(world).source) == (2, Source.DATA_DRIFT)


def test_drift_within_the_threshold_is_none_and_the_rules_are_judged() -> None:
    world = completed()
    write(world, "out", rows=105)
    settle(world)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 0
    assert count_events(world, EventType.POST_RUN_PASSED) == 1
    assert run_of(world).attempt == 1


def test_the_same_write_delivered_again_is_judged_once() -> None:
    world = completed(onDrift="alert")
    write(world, "out", rows=500)
    for _ in range(3):
        sensor = records.sensor_of("out", _stored(world, "out"))
        after_run.observe(control_of(world), config_of(world), sensor)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 1
    assert baseline(world).sensors == {"out": {"rows": 100}}, "drift is measured against the same baseline again"


def _stored(world: FaultyWorld, key: str) -> dict[str, Any]:
    item = control_of(world).store.get(records.control_key(KEY.pk, keys.sensor_sk(key)))
    assert item is not None
    return dict(item)


def test_a_sensor_that_is_deleted_before_its_write_is_considered_is_not_compared() -> None:
    world = completed()
    write(world, "out", rows=500)
    sensor = records.sensor_of("out", _stored(world, "out"))
    control_of(world).store.commit([Delete(records.control_key(KEY.pk, keys.sensor_sk("out")))])
    after_run.observe(control_of(world), config_of(world), sensor)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 0


def test_a_run_whose_baseline_is_gone_is_not_compared() -> None:
    world = completed()
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.BASELINE))])
    write(world, "out", rows=500)
    settle(world)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 0
    assert world.dead_letters() == 0


def test_the_recheck_of_another_attempt_or_without_a_run_says_nothing() -> None:
    world = completed(evaluation={"window": "1h", "interval": "10m"})
    before = len(world.events)
    after_run.recheck(control_of(world), KEY, 2)
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.RUN))])
    after_run.recheck(control_of(world), KEY, 1)
    world._pump()
    assert len(world.events) == before


def test_the_recheck_says_so_when_the_verdict_has_changed() -> None:
    rule = {"key": "out", "check": "age_lt", "field": "at", "value": "30m"}
    fresh = {"at": "+12m", "sensor": "orders/out", "data": {"rows": 100, "at": "2026-03-05T00:12:00Z"}}
    post_run = {"rules": [rule], "evaluation": {"window": "1h", "interval": "10m"}}
    world = staged(pipeline(postRun=post_run), until="2026-03-05T00:21:00Z", steps=[STEPS[0], fresh])
    assert count_events(world, EventType.POST_RUN_FAILED) == 0
    later(world, hours=3)
    assert count_events(world, EventType.POST_RUN_FAILED) == 1
    assert world.engine.timers.next_at() is None, "no look after the window"


def test_an_undated_write_is_no_drift_of_a_run_that_is_not_the_latest_when_it_completes() -> None:
    world = running()
    write(world, "ready#2026-03-06", status="ready", rows=1)
    settle(world)
    end_with_a_write_before_the_commit(world, rows=900)
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED
    assert [event.date for event in events(world, EventType.POST_RUN_DRIFT)] == []


def test_an_output_whose_date_is_no_date_is_about_no_run() -> None:
    world = running()
    end_with_a_write_before_the_commit(world, rows=900, date="soon")
    settle(world)
    assert run_of(world).status is RunStatus.COMPLETED
    assert events(world, EventType.POST_RUN_DRIFT) == []


# ------------------------------------------------------------------------------------------------------------ in flight


def with_output_before(**data: Any) -> FaultyWorld:
    """`orders` at a quarter past, its job under way; its output said 100 rows when the rules passed."""
    steps = [{"at": "+5m", "sensor": "orders/out", "data": {"rows": 100, **data}}, STEPS[0]]
    world = staged(pipeline(postRun=POST_RUN), until="2026-03-05T00:15:00Z", steps=steps)
    assert run_of(world).status is RunStatus.RUNNING
    return world


def test_drift_while_the_job_runs_is_an_event_once_and_no_rerun() -> None:
    world = with_output_before()
    write(world, "out", rows=500)
    settle(world)
    sensor = records.sensor_of("out", _stored(world, "out"))
    after_run.observe(control_of(world), config_of(world), sensor)
    (drift,) = events(world, EventType.POST_RUN_DRIFT_INFLIGHT)
    assert (drift.detail["baseline"], drift.detail["current"]) == (100, 500)
    assert run_of(world).status is RunStatus.RUNNING
    write(world, "out", rows=700)
    settle(world)
    assert len(events(world, EventType.POST_RUN_DRIFT_INFLIGHT)) == 2, "another write is another drift"


def test_what_is_within_the_threshold_or_counts_for_another_run_is_no_drift_in_flight() -> None:
    world = with_output_before()
    write(world, "out", rows=105)
    write(world, "out#2026-03-04", rows=900)
    write(world, "rows", rows=900)
    settle(world)
    assert events(world, EventType.POST_RUN_DRIFT_INFLIGHT) == []


def test_output_that_was_not_there_when_the_rules_passed_is_no_drift_in_flight() -> None:
    world = running()
    write(world, "out", rows=500)
    settle(world)
    assert events(world, EventType.POST_RUN_DRIFT_INFLIGHT) == []


# -------------------------------------------------------------------------------------------------------- first outputs


def test_output_that_first_comes_after_the_completion_is_its_own_baseline() -> None:
    world = staged(pipeline(postRun=POST_RUN | {"sensorTimeout": "2h"}), until="2026-03-05T00:30:00Z")
    before = baseline(world)
    assert before.sensors == {}
    assert control_of(world).store.get(records.run_record(KEY, keys.AWAITED)) is not None
    write(world, "out", rows=100)
    settle(world)
    first, late = events(world, EventType.POST_RUN_BASELINE_CAPTURED)
    assert "late" not in first.detail
    assert (late.detail["late"], late.detail["baseline"], late.detail["attempt"]) == (True, {"out": {"rows": 100}}, 1)
    after = baseline(world)
    assert (after.sensors, after.version, after.verdict) == ({"out": {"rows": 100}}, before.version + 1, True)
    assert after.digests == {"out": records.digest({"rows": 100})}
    assert control_of(world).store.get(records.run_record(KEY, keys.AWAITED)) is None, "it is awaited no more"
    assert count_events(world, EventType.POST_RUN_PASSED) == 1
    write(world, "out", rows=500)
    settle(world)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 1


def test_drift_that_only_alerts_asks_for_no_rerun() -> None:
    world = completed(onDrift="alert")
    write(world, "out", rows=500)
    settle(world)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 1
    assert run_of(world).attempt == 1
    assert count_events(world, EventType.RERUN_ACCEPTED) == 0


def test_rules_that_do_not_pass_after_the_run_are_said_to_fail() -> None:
    world = completed(rules=[{"key": "out", "check": "lte", "field": "rows", "value": 102}])
    write(world, "out", rows=105)
    settle(world)
    (failed,) = events(world, EventType.POST_RUN_FAILED)
    assert [one["passed"] for one in failed.detail["results"]] == [False]
    assert baseline(world).verdict is False


# ------------------------------------------------------------------------------------------------------------ late data


def test_a_trigger_that_says_something_else_after_the_completion_is_late_data_once() -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    write(world, "ready", status="ready", rows=1)
    settle(world)
    assert events(world, EventType.LATE_DATA_ARRIVAL) == [], "it says the same"
    write(world, "ready", status="ready", rows=2)
    sensor = records.sensor_of("ready", _stored(world, "ready"))
    for _ in range(2):
        after_run.observe(control_of(world), config_of(world), sensor)
    (late,) = events(world, EventType.LATE_DATA_ARRIVAL)
    assert late.date == KEY.date
    settle(world)
    run = run_of(world)
    assert (run.attempt, run.source) == (2, Source.LATE_DATA)


def test_a_trigger_of_another_period_is_no_late_data() -> None:
    world = staged(pipeline(), until="2026-03-05T00:30:00Z")
    write(world, "ready#2026-03-04", status="ready", rows=2)
    settle(world)
    assert events(world, EventType.LATE_DATA_ARRIVAL) == []
    assert run_of(world).attempt == 1


def test_a_write_that_is_drift_and_late_data_asks_for_one_rerun_for_the_drift() -> None:
    post_run = {"rules": [{"key": "ready", "check": "exists"}], "driftField": "rows", "driftThreshold": 1}
    steps = [{"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready", "rows": 100}}]
    world = staged(pipeline(postRun=post_run), until="2026-03-05T00:30:00Z", steps=steps)
    write(world, "ready", status="ready", rows=500)
    settle(world)
    assert count_events(world, EventType.POST_RUN_DRIFT) == 1
    assert (run_of(world).attempt, run_of(world).source) == (2, Source.DATA_DRIFT)
    assert events(world, EventType.LATE_DATA_ARRIVAL) == []


# ------------------------------------------------------------------------------------------------------------ the timer


def recheck_at(world: FaultyWorld) -> datetime | None:
    timer = world.engine.timers.get(after_run.recheck_timer(run_of(world), world.clock.now()).name)
    return None if timer is None else timer.at


def test_the_looks_after_a_completion_are_an_interval_apart_and_end_with_the_window() -> None:
    world = completed(evaluation={"window": "25m", "interval": "10m"})
    ended = run_of(world).ended_at
    assert ended is not None
    later(world, minutes=1)
    assert recheck_at(world) == ended + timedelta(minutes=20), "that of ten minutes after it has been"
    later(world, minutes=10)
    assert recheck_at(world) is None, "the next would be after the window"


def test_a_look_in_the_last_instant_of_the_window_is_made() -> None:
    world = running(evaluation={"window": "10m", "interval": "10m"})
    later(world, minutes=5)
    ended = run_of(world).ended_at
    assert ended is not None
    assert recheck_at(world) == ended + timedelta(minutes=10)


def test_a_completion_without_a_window_has_no_timer_and_its_recheck_says_nothing() -> None:
    world = completed()
    assert recheck_at(world) is None
    before = len(world.events)
    after_run.recheck(control_of(world), KEY, 1)
    world._pump()
    assert (len(world.events), recheck_at(world)) == (before, None)


def test_the_verdict_of_another_attempt_s_baseline_is_not_compared() -> None:
    world = completed(evaluation={"window": "1h", "interval": "10m"})
    where = records.run_record(KEY, keys.BASELINE)
    for change in ([Put(where, records.plain(replace(baseline(world), attempt=2)))], [Delete(where)]):
        control_of(world).store.commit(change)
        before = len(world.events)
        after_run.recheck(control_of(world), KEY, 1)
        world._pump()
        assert len(world.events) == before


def test_a_schedule_that_is_gone_or_a_dry_run_is_not_looked_at_again() -> None:
    world = running()
    end_with_a_write_before_the_commit(world, rows=500)
    control, config, run = control_of(world), config_of(world), run_of(world)
    before = control.store.query(Table.EVENTS, KEY.pk)
    after_run.completed(control, replace(config, dry_run=True), run)
    after_run.completed(control, config, replace(run, schedule="nightly"))
    assert control.store.query(Table.EVENTS, KEY.pk) == before
    after_run.completed(control, config, run)
    assert len(control.store.query(Table.EVENTS, KEY.pk)) == len(before) + 1


def test_a_write_is_not_judged_for_a_run_that_is_opened_again_meanwhile() -> None:
    world = completed()
    write(world, "out", rows=500)
    sensor = records.sensor_of("out", _stored(world, "out"))

    def open_again() -> None:
        run, now = run_of(world), world.clock.now()
        again = transitions.open_attempt(
            run, KEY, Source.MANUAL, now, config_version=run.config_version, lease_until=now
        )
        control_of(world).store.commit([records.put_run(again, run)])

    control = interrupted(control_of(world), open_again, touches(keys.BASELINE))
    after_run.observe(control, config_of(world), sensor)
    stored = control_of(world).store.query(Table.EVENTS, KEY.pk)
    assert EventType.POST_RUN_DRIFT not in {record.item["type"] for record in stored}
    assert run_of(world).attempt == 2

"""The watchdog finds what was lost: triggers of every period, cascades, attempts that nothing drives."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, pools, records, sla_monitor, writing
from interlock.control.context import Control
from interlock.control.watch import watchdog
from interlock.control.watch.quiet import Quiet
from interlock.control.watch.watch_slices import WHOLE, Slice
from interlock.control.watch.watched import Watched
from interlock.model import keys
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.errors import StoreError
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import FinalReason, Marker, RunStatus, SlaKind, Source
from interlock.model.times import parse_instant
from interlock.ports.store import Delete, Item, Key, Put, Record, Store
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, count_events, has, later, pipeline, run_of, settle, staged, write

NOON: Final = "2026-03-05T12:00:00Z"
READY: Final = {"status": "ready"}


def idle(**parts: Any) -> FaultyWorld:
    """`orders` at noon; nothing has been written."""
    return staged(pipeline(**parts), until=NOON, steps=[])


def of(date: str, schedule: str = "stream") -> RunKey:
    return RunKey("orders", schedule, date)


def mark(world: FaultyWorld, upstream: str, date: str) -> None:
    """The marker of a completion, whose own change is never looked at."""
    at = datetime.fromisoformat("2026-03-05T11:00:00+00:00")
    marker = Marker(upstream=upstream, date=date, completed_at=at, attempt=1, upstream_schedule="stream")
    sk = keys.marker_sk("stream", date, upstream, "stream")
    control_of(world).store.commit([Put(records.control_key(KEY.pk, sk), records.plain(marker))])


# ------------------------------------------------------------------------------------------------------------- triggers


@pytest.mark.parametrize(
    ("sensor", "date"),
    [
        ("ready", "2026-03-05"),
        ("ready#2026-03-04", "2026-03-04"),
        ("ready#2026-03-05T09", "2026-03-05T09"),
    ],
)
def test_a_trigger_whose_write_was_lost_opens_the_run_of_its_period(sensor: str, date: str) -> None:
    world = idle()
    write(world, sensor, **READY)
    assert watchdog.run(control_of(world)) == []

    run = run_of(world, of(date))
    assert run.opened_by.startswith(f"watchdog: sensor {sensor}: ")
    assert count_events(world, EventType.TRIGGER_RECOVERED, of(date)) == 1
    assert watchdog.run(control_of(world)) == []
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1


def test_every_period_of_a_lost_trigger_is_recovered() -> None:
    world = idle()
    for hour in range(4, 8):
        write(world, f"ready#2026-03-05T{hour:02}", **READY)
    watchdog.run(control_of(world))
    assert [run_of(world, of(f"2026-03-05T{hour:02}")).attempt for hour in range(4, 8)] == [1, 1, 1, 1]


def test_a_trigger_that_does_not_hold_or_has_its_run_is_nothing_lost() -> None:
    world = idle()
    write(world, "ready#2026-03-04", status="partial")
    write(world, "ready", **READY)
    settle(world)
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None
    assert run_of(world).opened_by.startswith("sensor ready: ")
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 0


def test_a_sensor_with_another_name_that_begins_alike_is_no_trigger() -> None:
    world = idle()
    write(world, "readyish#2026-03-04", **READY)
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None


def test_a_lost_trigger_of_an_excluded_day_stays_closed() -> None:
    trigger = {"key": "ready", "check": "exists"}
    world = idle(schedule={"trigger": trigger, "exclude": {"dates": ["2026-03-04"]}})
    write(world, "ready#2026-03-04", **READY)
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None
    assert control_of(world).store.query(Table.EVENTS, KEY.pk) == []


def test_what_a_dry_run_has_observed_is_not_recovered_when_it_becomes_real() -> None:
    world = staged(pipeline(dryRun=True), until=NOON)
    document = pipeline()
    control = control_of(world)
    control.store.commit([Put(records.control_key(KEY.pk, keys.CONFIG), {"document": document, "version": "real"})])
    settle(world)
    watchdog.run(control)
    assert world.run_of(KEY) is None


def test_the_plain_trigger_sensor_is_seen_beside_many_of_other_periods_and_names() -> None:
    world = idle()
    control = control_of(world)
    old = world.clock.now() - timedelta(days=90)
    for index in range(80):
        for key in (f"ready#2025-{index % 12 + 1:02d}-{index % 28 + 1:02d}", f"ready-{index}"):
            item = records.sensor_item({"n": index}, old)
            control.store.commit([Put(records.control_key(KEY.pk, keys.sensor_sk(key)), item)])
    write(world, "ready", **READY)
    # The stream is not pumped: the start is lost, and only check 4 can find it.
    assert watchdog.run(control) == []
    assert run_of(world).attempt == 1
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 1


# -------------------------------------------------------------------------------------------------------------- cascade


def downstream(*upstreams: dict[str, Any], **parts: Any) -> FaultyWorld:
    return idle(
        schedule={},
        validation={"rules": [{"key": f"upstream:{one['pipeline']}", "check": "exists"} for one in upstreams]},
        after=list(upstreams),
        **parts,
    )


def test_a_cascade_whose_markers_were_lost_is_opened() -> None:
    world = downstream({"pipeline": "a"}, {"pipeline": "b"})
    mark(world, "a", "2026-03-04")
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None, "b has not completed"

    mark(world, "b", "2026-03-04")
    watchdog.run(control_of(world))
    assert run_of(world, of("2026-03-04")).opened_by == "watchdog: cascade: all upstreams completed"
    assert count_events(world, EventType.TRIGGER_RECOVERED, of("2026-03-04")) == 1


def test_a_day_whose_hours_have_all_completed_is_opened() -> None:
    world = downstream({"pipeline": "a", "require": "all-hours"})
    for hour in range(24):
        assert world.run_of(of("2026-03-04")) is None
        mark(world, "a", f"2026-03-04T{hour:02}")
        if hour == 22:
            watchdog.run(control_of(world))
    watchdog.run(control_of(world))
    assert run_of(world, of("2026-03-04")).attempt == 1
    assert world.run_of(of("2026-03-04T05")) is None


def test_a_cascade_that_has_its_run_is_nothing_lost() -> None:
    world = downstream({"pipeline": "a"})
    mark(world, "a", "2026-03-04")
    settle(world)
    assert run_of(world, of("2026-03-04")).opened_by.startswith("cascade: ")
    watchdog.run(control_of(world))
    assert count_events(world, EventType.TRIGGER_RECOVERED) == 0


# ---------------------------------------------------------------------------------------------------------- active runs


def test_an_attempt_whose_execution_is_gone_is_driven_on() -> None:
    world = idle()
    write(world, "ready", **READY)
    control = control_of(world)
    # The first pass opens the run; the change of the run, which starts its execution, is not delivered.
    watchdog.run(control)
    assert run_of(world).status is RunStatus.PENDING
    assert not control.executions.is_open(keys.execution_name(KEY, 1))

    watchdog.run(control)
    assert control.executions.is_open(keys.execution_name(KEY, 1))
    later(world, minutes=20)
    assert run_of(world).status is RunStatus.COMPLETED


def test_a_retry_whose_timer_was_lost_is_opened_when_it_is_due() -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 2, "retryDelay": "1h"}
    world = staged(
        pipeline(job=job),
        until="2026-03-05T00:30:00Z",
        jobs=[{"after": "5m", "result": "fail", "category": "TRANSIENT"}, {"after": "5m", "result": "success"}],
    )
    run = run_of(world)
    assert (run.status, run.attempt) == (RunStatus.FAILED, 1)
    assert run.retry_at is not None
    world.clock.move_to(run.retry_at - timedelta(seconds=1))
    watchdog.run(control_of(world))
    assert run_of(world).attempt == 1
    world.clock.move_to(run.retry_at)
    watchdog.run(control_of(world))
    assert (run_of(world).status, run_of(world).attempt) == (RunStatus.PENDING, 2)


def test_a_sensor_that_was_written_past_our_api_is_recovered_as_well() -> None:
    world = idle()
    item = records.sensor_item(READY, world.clock.now())
    where = records.control_key(KEY.pk, keys.sensor_sk("ready#2026-03-04"))
    control_of(world).store.commit([Put(where, item)])
    watchdog.run(control_of(world))
    assert run_of(world, of("2026-03-04")).attempt == 1


def test_a_deleted_sensor_opens_nothing() -> None:
    world = idle()
    write(world, "ready#2026-03-04", **READY)
    writing.delete_sensor(control_of(world), "orders", "ready#2026-03-04")
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-04")) is None


# ---------------------------------------------------------------------------------------------------- a pass as a whole


def last_pass(world: FaultyWorld, part: Slice = WHOLE) -> dict[str, Any] | None:
    return control_of(world).store.get(part.key)


def degraded(world: FaultyWorld) -> list[Event]:
    world._pump()
    return [event for event in world.events if event.type is EventType.WATCHDOG_DEGRADED]


def broken(control: Control, watched: Watched) -> None:
    del control
    raise StoreError(f"{watched.config.id} cannot be read")


def break_check(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    checks = tuple((name, broken if name in names else check) for name, check in watchdog.CHECKS)
    monkeypatch.setattr(watchdog, "CHECKS", checks)


def test_a_pass_that_found_no_trouble_says_when_it_was_complete() -> None:
    world = idle()
    assert watchdog.run(control_of(world)) == []
    passed = last_pass(world)
    assert passed is not None
    assert set(passed) == {"completeAt", "calendars"}
    assert passed["completeAt"] == NOON
    catalog.apply_calendar(control_of(world), Calendar(name="us", dates=["2026-07-03"]))
    watchdog.run(control_of(world))
    again = last_pass(world)
    assert again is not None
    assert again["calendars"] != passed["calendars"]


def test_a_check_that_fails_is_reported_and_keeps_neither_the_others_nor_other_pipelines_from_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = idle()
    catalog.apply_config(control_of(world), *other("zebra"))
    before = last_pass(world)
    world.clock.move_to(world.clock.now() + timedelta(minutes=1))
    break_check(monkeypatch, "missed-schedules", "sla-scheduling")
    write(world, "ready", **READY)
    assert watchdog.run(control_of(world)) == ["missed-schedules", "sla-scheduling"]
    assert run_of(world).attempt == 1, "the check of lost triggers was made"
    (event,) = degraded(world)
    assert event.message == "watchdog checks failed: missed-schedules, sla-scheduling"
    assert event.detail["checks"] == ["missed-schedules", "sla-scheduling"]
    assert event.detail["errors"]["sla-scheduling"] == "orders: StoreError: orders cannot be read", "the first of them"
    assert last_pass(world) == before, "it was not complete"


def other(name: str) -> tuple[PipelineConfig, dict[str, Any]]:
    document = pipeline(pipeline={"id": name})
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    return config, document


def test_a_pass_that_is_told_to_stop_stops_and_is_not_complete() -> None:
    world = idle()
    for name in ("apple", "zebra"):
        catalog.apply_config(control_of(world), *other(name))
        item = records.sensor_item(READY, world.clock.now())
        where = records.control_key(keys.pipeline_pk(name), keys.sensor_sk("ready"))
        control_of(world).store.commit([Put(where, item)])
    before = last_pass(world)
    world.clock.move_to(world.clock.now() + timedelta(minutes=1))
    asked: list[None] = []

    def pause() -> bool:
        asked.append(None)
        return len(asked) == 2

    assert watchdog.run(control_of(world), pause=pause) == []
    assert world.run_of(RunKey("apple", "stream", "2026-03-05")) is not None
    assert world.run_of(RunKey("zebra", "stream", "2026-03-05")) is None, "its turn had not come"
    assert last_pass(world) == before


def test_a_slice_looks_at_its_own_pipelines_and_only_the_first_at_the_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    world = idle()
    write(world, "ready", **READY)
    repaired: list[None] = []
    monkeypatch.setattr(pools, "repair", lambda _: repaired.append(None))
    (mine,) = [one for one in (Slice(0, 2), Slice(1, 2)) if one.holds("orders")]
    theirs = Slice(1 - mine.number, 2)
    assert watchdog.run(control_of(world), part=theirs) == []
    assert world.run_of(KEY) is None
    assert watchdog.run(control_of(world), part=mine) == []
    assert run_of(world).attempt == 1
    assert len(repaired) == 1
    assert last_pass(world, mine) is not None


def test_a_pipeline_of_which_nothing_can_become_due_is_left_out_until_then() -> None:
    world = idle()
    quiet = Quiet()
    watchdog.run(control_of(world), quiet=quiet)
    assert quiet.may_skip("orders", world.clock.now())
    write(world, "ready", **READY)
    watchdog.run(control_of(world), quiet=quiet)
    assert world.run_of(KEY) is None, "nobody said that it had changed"
    quiet.changed("orders")
    watchdog.run(control_of(world), quiet=quiet)
    assert run_of(world).attempt == 1
    assert not quiet.may_skip("orders", world.clock.now()), "an attempt is under way"


def test_a_pipeline_whose_check_failed_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world = idle()
    quiet = Quiet()
    break_check(monkeypatch, "missed-schedules")
    watchdog.run(control_of(world), quiet=quiet)
    assert not quiet.may_skip("orders", world.clock.now())


@pytest.mark.parametrize("how", ["deleted", "invalid", "dry run"])
def test_what_is_under_way_ends_although_its_pipeline_may_open_nothing_any_more(how: str) -> None:
    world = staged(pipeline(), until="2026-03-05T00:15:00Z", jobs=[{"result": "hang"}])
    control = control_of(world)
    if how == "deleted":
        catalog.delete_config(control, "orders")
        catalog.config_changed(control, "orders")
        assert catalog.retired(control.store) == ["orders"]
    else:
        document = pipeline(dryRun=True) if how == "dry run" else {"pipeline": {"id": "orders"}}
        control.store.commit([Put(records.control_key(KEY.pk, keys.CONFIG), {"document": document})])
    lease = run_of(world).lease_until
    assert lease is not None
    world.clock.move_to(lease)
    assert watchdog.run(control) == []
    assert (run_of(world).status, run_of(world).final_reason) == (RunStatus.FAILED_FINAL, FinalReason.STALE)
    assert catalog.retired(control.store) == []


@pytest.mark.parametrize(
    ("complete", "quiet_to", "minutes"),
    [
        (None, None, 3 * 24 * 60),
        ("2026-03-05T11:40:00Z", None, 25),
        ("2026-03-05T11:40:00Z", "2026-03-05T11:50:00Z", 15),
        ("2026-03-05T11:40:00Z", "2026-03-05T11:00:00Z", 25),
        ("2026-02-01T00:00:00Z", None, 3 * 24 * 60),
    ],
)
def test_a_pass_looks_back_as_far_as_the_last_one_and_no_further(
    complete: str | None, quiet_to: str | None, minutes: int
) -> None:
    world = idle()
    last = {} if complete is None else {"completeAt": complete}
    now = world.clock.now()
    found = watchdog._lookback(control_of(world), last, now, parse_instant(quiet_to))
    assert found == timedelta(minutes=minutes)


# ------------------------------------------------------------------------------------------------- 6: trigger deadlines


def test_a_deadline_that_passes_without_a_run_ends_it_with_a_record() -> None:
    trigger = {"key": "ready", "check": "exists", "deadline": "10:00"}
    world = staged(pipeline(schedule={"trigger": trigger}), until="2026-03-05T09:00:00Z", steps=[])
    world.clock.move_to(world.clock.now().replace(hour=10, minute=30))
    assert watchdog.run(control_of(world)) == []
    run = run_of(world)
    current = catalog.in_force(control_of(world).store, "orders")
    assert current is not None
    assert (run.status, run.final_reason) == (RunStatus.FAILED_FINAL, FinalReason.DEADLINE_EXPIRED)
    assert (run.version, run.attempt, run.source, run.config_version) == (1, 1, Source.FIRST, current.version)
    assert run.opened_by == "watchdog: the trigger deadline passed"
    assert (run.opened_at, run.ended_at) == (world.clock.now(), world.clock.now())
    watchdog.run(control_of(world))
    world._pump()
    (event,) = [one for one in world.events if one.type is EventType.SENSOR_DEADLINE_EXPIRED]
    assert event.message == f"orders: {run.message}"


def test_hours_that_ran_keep_the_deadline_of_their_day() -> None:
    trigger = {"key": "ready", "check": "exists", "deadline": "10:00"}
    world = staged(pipeline(schedule={"trigger": trigger}), until="2026-03-05T09:00:00Z", steps=[])
    write(world, "ready#2026-03-05T08", **READY)
    settle(world)
    world.clock.move_to(world.clock.now().replace(hour=10, minute=30))
    watchdog.run(control_of(world))
    assert world.run_of(of("2026-03-05")) is None
    declared = {"trigger": trigger, "granularity": "day"}
    world = staged(pipeline(schedule=declared), until="2026-03-05T09:00:00Z", steps=[])
    control_of(world).store.commit([Put(records.run_record(of("2026-03-05T08"), keys.RUN), {"date": "2026-03-05T08"})])
    world.clock.move_to(world.clock.now().replace(hour=10, minute=30))
    watchdog.run(control_of(world))
    assert run_of(world, of("2026-03-05")).final_reason is FinalReason.DEADLINE_EXPIRED, "its runs are days"


# -------------------------------------------------------------------------------------------------- 7: post-run sensors

POST_RUN: Final = {"rules": [{"key": "out", "check": "exists"}], "sensorTimeout": "2h"}


def completed() -> FaultyWorld:
    """`orders`, completed at twenty past midnight; its output is awaited until twenty past two."""
    world = staged(pipeline(postRun=POST_RUN), until="2026-03-05T00:30:00Z")
    assert run_of(world).status is RunStatus.COMPLETED
    return world


def missing(world: FaultyWorld, hour: int, minute: int) -> list[Event]:
    world.clock.move_to(world.clock.now().replace(hour=hour, minute=minute, second=0))
    assert watchdog.run(control_of(world)) == []
    world._pump()
    return [one for one in world.events if one.type is EventType.POST_RUN_SENSOR_MISSING]


def test_output_that_never_comes_is_missed_once_when_it_is_due() -> None:
    world = completed()
    assert missing(world, 2, 19) == []
    assert has(world, keys.AWAITED)
    (event,) = missing(world, 2, 20)
    assert (event.detail["keys"], event.detail["sensorTimeout"]) == (["out"], 7200)
    assert event.message == "no post-run sensor of orders for 2026-03-05 came after its completion"
    assert not has(world, keys.AWAITED)
    item = {"attempt": 2, "completedAt": "2026-03-05T00:20:00Z", "dueAt": "2026-03-05T02:20:00Z"}
    control_of(world).store.commit([Put(records.run_record(KEY, keys.AWAITED), item)])
    assert len(missing(world, 3, 0)) == 1, "once for a run, its reruns included"
    assert not has(world, keys.AWAITED)


def test_output_that_came_is_not_missed_although_nobody_saw_it_come() -> None:
    world = completed()
    item = records.sensor_item({"rows": 1}, world.clock.now())
    control_of(world).store.commit([Put(records.control_key(KEY.pk, keys.sensor_sk("out")), item)])
    assert missing(world, 2, 30) == []
    assert not has(world, keys.AWAITED)


def test_a_record_of_awaited_output_that_says_too_little_or_whose_run_is_gone_is_no_alert() -> None:
    world = completed()
    store = control_of(world).store
    for item in (
        {"attempt": 1, "dueAt": "2026-03-05T02:20:00Z"},
        {"attempt": 1, "completedAt": "2026-03-05T00:20:00Z"},
    ):
        store.commit([Put(records.run_record(KEY, keys.AWAITED), item)])
        assert missing(world, 2, 30) == []
    whole = {"attempt": 1, "completedAt": "2026-03-05T00:20:00Z", "dueAt": "2026-03-05T02:20:00Z"}
    gone = records.run_record(of("2026-03-01"), keys.AWAITED)
    store.commit([Put(gone, whole), Delete(records.run_record(KEY, keys.AWAITED))])
    assert missing(world, 2, 30) == []
    assert store.get(gone) is None


# ------------------------------------------------------------------------------------------------------------ 5, 8: SLA


def test_an_alert_whose_timer_was_lost_is_given_by_the_pass() -> None:
    sla = {"deadline": "02:00", "dayOffset": 0}
    waits = {"rules": [{"key": "rows", "check": "exists"}]}
    world = staged(pipeline(sla=sla, validation=waits), until="2026-03-05T00:15:00Z")
    world.engine.timers.cancel(sla_monitor.timer_name(KEY, SlaKind.BREACH))
    world.clock.move_to(world.clock.now().replace(hour=2, minute=1))
    watchdog.run(control_of(world))
    watchdog.run(control_of(world))
    assert count_events(world, EventType.SLA_BREACH) == 1


def test_a_period_that_is_due_has_its_sla_although_nothing_has_opened_it() -> None:
    world = staged(pipeline(sla={"deadline": "14:00", "dayOffset": 0}), until=NOON, steps=[])
    control_of(world).store.commit([Delete(records.run_record(KEY, keys.SLA))])
    watchdog.run(control_of(world))
    assert has(world, keys.SLA)


# ------------------------------------------------------------------------------------------------- what a pass reads


class Counted:
    """A store that remembers what is read of `orders`, statement by statement."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queries: list[str] = []
        self.read: list[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: Key) -> Item | None:
        return self.get_many([key])[0]

    def get_many(self, wanted: Sequence[Key]) -> list[Item | None]:
        self.read += [[key.sk for key in wanted]] if wanted[0].pk == KEY.pk else []
        return list(self._store.get_many(wanted))

    def query(self, table: Table, pk: str, prefix: str = "", **options: Any) -> list[Record]:
        self.queries += [prefix] if pk == KEY.pk else []
        return self._store.query(table, pk, prefix, **options)


HOURLY: Final = {"cron": "0 * * * *", "trigger": {"key": "ready", "check": "exists", "deadline": ":30"}}
BY_SENSOR: Final = {"trigger": {"key": "ready", "check": "exists", "deadline": "23:00"}}


@pytest.mark.parametrize(
    ("parts", "ahead", "queries"),
    [
        ({"schedule": {"cron": "0 * * * *"}}, ["TRIGGER#cron#2026-03-05T12"], 4),
        ({}, ["SENSOR#ready", "TRIGGER#stream#2026-03-03", "TRIGGER#stream#2026-03-04"], 5),
        ({"schedule": HOURLY}, ["SENSOR#ready", *(f"TRIGGER#cron#2026-03-05T{hour}" for hour in (10, 11, 12))], 5),
        ({"schedule": BY_SENSOR, "sla": {"deadline": "23:00", "dayOffset": 0}}, ["SENSOR#ready"], 6),
    ],
    ids=["cron", "trigger", "trigger of hours", "trigger with an SLA"],
)
def test_a_quiet_pass_reads_the_runs_its_checks_ask_for_in_one_statement(
    parts: dict[str, Any], ahead: list[str], queries: int
) -> None:
    written = [
        {"at": "+10m", "sensor": f"orders/ready#2026-03-0{day}", "data": dict(READY)} for day in (3, 4) if not parts
    ]
    world = staged(pipeline(**parts), until=NOON, steps=written)
    watchdog.run(control_of(world))
    world.clock.move_to(world.clock.now() + timedelta(minutes=5))
    store = Counted(control_of(world).store)
    assert watchdog.run(dataclasses.replace(control_of(world), store=store)) == []
    assert [sorted(names) for names in store.read] == [["APPLIED", "CONFIG"], ahead]
    assert len(store.queries) == len(set(store.queries)) == queries

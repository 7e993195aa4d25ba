"""Who is woken, re-opened or observed for a sensor write: who could read it. The work grows with the writes alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final, TypeVar

import pytest

from interlock.control import catalog, records, router, timers, waking, writing
from interlock.control.attempts import orchestrator
from interlock.control.context import Control, Settings
from interlock.embedded.timing.timers import SqliteTimers
from interlock.model import keys
from interlock.model.errors import StoreError
from interlock.model.keys import RunKey, Table
from interlock.model.run import RunStatus
from interlock.ports.store import Change, Item, Key, Record, Span, Store, Update, Write
from interlock.ports.timers import Timer, TimerKind
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.conformance.wrapped_store import WrappedStore
from tests.safety.interleaving import InterleavingStore, interrupted, touches

T = TypeVar("T")
DAY: Final = date(2026, 3, 2)
TRIGGER: Final = {"key": "ready", "check": "exists"}
ROWS: Final = {"key": "rows", "check": "exists"}


def orders(*rules: dict[str, Any], **parts: Any) -> dict[str, Any]:
    document: dict[str, Any] = {
        "pipeline": {"id": "orders"},
        "schedule": {"trigger": TRIGGER, "evaluation": {"window": "12h"}},
        "validation": {"rules": list(rules) or [ROWS]},
        "job": {"type": "external"},
    }
    return document | parts


def world_of(config: dict[str, Any], periods: Sequence[str]) -> World:
    """A pipeline with a waiting run of each period."""
    start = "2026-03-02T08:00:00Z"
    world = World(inline_scenario(start=start, until=start, pipelines=[config]))
    world.play()
    for period in periods:
        write(world, f"ready#{period}")
    return world


def write(world: World, key: str, **data: Any) -> None:
    writing.write_sensor(world.engine.control, "orders", key, data or {"n": 1})
    world._settle(world.clock.now())


def days(count: int) -> list[str]:
    return [str(DAY - timedelta(days=back)) for back in range(count)]


def woken(world: World, kind: str = keys.ACTIVE) -> dict[str, int]:
    """How often each waiting run was woken."""
    found = world.engine.store.query(Table.CONTROL, keys.pipeline_pk("orders"), kind)
    return {keys.run_of(one.key.pk, one.key.sk, kind).date: one.item["wakeSeq"] for one in found}


PERIODS: Final = ["2026-03-01", "2026-03-01T10", "2026-03-01T1015", "2026-03-01T11", "2026-03-02", "2026-03-02T10"]


@pytest.mark.parametrize(
    ("rule", "key", "data", "expected"),
    [
        ({}, "rows#2026-03-01", {}, ["2026-03-01"]),
        ({}, "rows#20260301", {}, ["2026-03-01"]),
        ({}, "rows#2026-03-01T10", {}, ["2026-03-01T10"]),
        ({}, "rows#2026-03-05", {}, []),
        ({}, "rows", {"date": "2026-03-01"}, ["2026-03-01", "2026-03-01T10", "2026-03-01T1015", "2026-03-01T11"]),
        ({}, "rows", {"date": "2026-03-01", "hour": 10}, ["2026-03-01", "2026-03-01T10", "2026-03-01T1015"]),
        ({}, "rows", {"date": "2026-03-05"}, []),
        ({}, "rows", {"date": "soon"}, []),
        ({}, "rows", {}, PERIODS),
        ({}, "other", {}, []),
        ({}, "rows-count", {}, []),
        ({"period": "any"}, "rows", {"date": "2026-03-05"}, PERIODS),
        ({"period": "any"}, "rows", {"date": "soon"}, PERIODS),
        ({"period": "any"}, "rows#2026-03-01", {}, ["2026-03-01"]),
    ],
)
def test_a_write_wakes_the_runs_whose_rules_could_read_it(
    rule: dict[str, Any], key: str, data: dict[str, Any], expected: list[str]
) -> None:
    gate = {"key": "gate", "check": "exists"}
    world = world_of(orders(ROWS | rule, gate), PERIODS)
    assert woken(world) == dict.fromkeys(PERIODS, 0)

    write(world, key, **data)

    assert [period for period, count in woken(world).items() if count] == expected


# ------------------------------------------------------------------------------------------------- work is counted


class CountingStore(WrappedStore):
    """The Store port; counts the items that are read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read = 0

    def get(self, key: Key) -> Item | None:
        self.read += 1
        return super().get(key)

    def get_many(self, keys: Sequence[Key]) -> list[Item | None]:
        self.read += len(keys)
        return super().get_many(keys)

    def query(self, table: Table, pk: str, prefix: str = "", **given: Any) -> list[Record]:
        found = super().query(table, pk, prefix, **given)
        self.read += 1 + len(found)
        return found

    def read_spans(self, table: Table, spans: Sequence[Span], into: type[T]) -> list[list[tuple[str, T]]]:
        found = super().read_spans(table, spans, into)
        self.read += sum(1 + len(rows) for rows in found)
        return found


def counting(world: World) -> tuple[Control, CountingStore]:
    store = CountingStore(world.engine.store)
    return replace(world.engine.control, store=store), store


def routed(world: World, keys_: Iterator[str]) -> tuple[int, int]:
    """Write each of these sensors and route its change: how many items were read, how many changes followed."""
    control, store = counting(world)
    before = world.database.head()
    for key in keys_:
        writing.write_sensor(world.engine.control, "orders", key, {"n": 1})
        where = records.control_key(keys.pipeline_pk("orders"), keys.sensor_sk(key))
        item = world.engine.store.get(where)
        router.handle(control, [Change(1, where.table, where.pk, where.sk, 1_772_438_400_000, item)])
    return store.read, world.database.head() - before


def held(world: World) -> None:
    """Let every window close."""
    world.clock.move_to(world.clock.now() + timedelta(hours=12))
    world._settle(world.clock.now())
    assert not woken(world)


def nothing(world: World) -> None:
    pass


WAITING: Final = orders(ROWS, {"key": "gate", "check": "exists"})


@pytest.mark.parametrize(
    ("config", "then"),
    [(WAITING, nothing), (WAITING, held), (WAITING | {"dryRun": True}, nothing)],
    ids=["waiting", "held", "dry run"],
)
def test_the_work_for_a_write_does_not_grow_with_the_number_of_periods(
    config: dict[str, Any], then: Callable[[World], None]
) -> None:
    per_write = []
    for count in (10, 40):
        world = world_of(config, days(count))
        then(world)
        read, changes = routed(world, (f"rows#{day}" for day in days(count)))
        per_write.append((read / count, changes / count))

    assert per_write[0] == per_write[1]


def test_a_back_fill_wakes_each_of_its_runs_once() -> None:
    world = world_of(WAITING, days(40))
    for day in days(40):
        write(world, f"rows#{day}")
    assert woken(world) == dict.fromkeys(days(40), 1)


def test_a_write_that_no_waiting_attempt_reads_costs_the_same_however_many_wait() -> None:
    reads = []
    for count in (10, 40):
        world = world_of(WAITING, days(count))
        reads.append(routed(world, iter(["output"]))[0])
    assert reads[0] == reads[1]


# ---------------------------------------------------------------------------------------- whatever is in force now


def test_attempts_of_an_older_config_are_woken_by_the_rules_they_were_opened_with() -> None:
    any_period = orders(ROWS | {"period": "any"}, {"key": "gate", "check": "exists"})
    world = world_of(any_period, ["2026-03-01"])
    apply(world, orders({"key": "gate", "check": "exists"}))
    write(world, "ready#2026-03-02")

    write(world, "rows", date="2026-03-05")

    assert woken(world) == {"2026-03-01": 1, "2026-03-02": 0}


def test_attempts_of_a_schedule_that_is_gone_are_woken() -> None:
    two = orders(schedules=[{"id": "morning", "trigger": TRIGGER}, {"id": "evening", "cron": "0 18 * * *"}])
    del two["schedule"]
    world = world_of(two, ["2026-03-01"])
    apply(world, orders(schedule={"cron": "0 8 * * *"}))

    write(world, "rows#2026-03-01")

    run = records.get_run(world.engine.store, RunKey("orders", "morning", "2026-03-01"))
    assert run is not None
    assert run.status is RunStatus.RUNNING


def apply(world: World, config: dict[str, Any]) -> None:
    scenario = inline_scenario(start="2026-03-02T08:00:00Z", until="+1h", pipelines=[config])
    catalog.apply_config(world.engine.control, scenario.pipelines[0].config, scenario.pipelines[0].document)
    world._settle(world.clock.now())


def test_the_list_of_versions_in_use_does_not_grow_with_the_runs_nor_with_time() -> None:
    world = world_of(WAITING, days(40))
    prefix = keys.IN_USE
    found = world.engine.store.query(Table.CONTROL, keys.pipeline_pk("orders"), prefix)
    assert len(found) == 1
    world.clock.move_to(world.clock.now() + timedelta(days=3))
    assert world.engine.store.query(Table.CONTROL, keys.pipeline_pk("orders"), prefix) == []


def test_nobody_is_woken_without_an_attempt() -> None:
    world = world_of(WAITING, [])
    assert not waking.wake(world.engine.control, RunKey("orders", "stream", "2026-03-01"))


# ------------------------------------------------------------------------------------------ writes that come too fast


class Woken:
    """A run that waits, on a runtime where every wake-up costs; counts the evaluations."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, every: timedelta = timedelta(seconds=1)) -> None:
        rule = {"key": "rows", "check": "gte", "field": "count", "value": 100}
        start = "2026-03-02T08:00:00Z"
        scenario = inline_scenario(start=start, until=start, pipelines=[orders(rule)])
        self.world = World(scenario, settings=Settings(wake_every=every))
        self.world.play()
        self.evaluated: list[timedelta] = []
        evaluate = orchestrator._MODES["evaluate"]

        def counted(control: Control, task: Any) -> Any:
            self.evaluated.append(control.now() - scenario.start)
            return evaluate(control, task)

        monkeypatch.setitem(orchestrator._MODES, "evaluate", counted)
        write(self.world, "ready#2026-03-02")
        self.evaluated.clear()

    def write(self, after: float, count: int) -> None:
        self.to(after)
        write(self.world, "rows", count=count)

    def to(self, seconds: float) -> None:
        """On to so many seconds after the start, stopping wherever a timer is due."""
        until = self.world.scenario.start + timedelta(seconds=seconds)
        while (at := self.world.engine.timers.next_at()) is not None and at <= until:
            self.world.clock.move_to(max(at, self.world.clock.now()))
            self.world._settle(self.world.clock.now())
        self.world.clock.move_to(until)

    def seconds(self) -> list[float]:
        return [one.total_seconds() for one in self.evaluated]


def test_the_first_of_many_writes_is_answered_at_once_and_one_a_second_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Woken(monkeypatch)
    for tenths in range(35):
        run.write(10 + tenths / 10, tenths)
    run.to(20)
    assert run.seconds() == [10, 11, 12, 13, 14]


def test_the_last_write_is_never_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch)
    run.write(10, 1)
    run.write(10.2, 2)
    run.write(10.9, 100)
    run.to(11)
    assert run.seconds() == [10, 11]
    found = records.get_run(run.world.engine.store, RunKey("orders", "stream", "2026-03-02"))
    assert found is not None
    assert found.status is RunStatus.RUNNING


def test_a_late_timer_wakes_nobody_whom_a_later_write_has_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch)
    run.write(10, 1)
    run.write(10.5, 2)
    world = run.world
    (timer,) = world.engine.timers.due(world.clock.now() + timedelta(minutes=1))
    world.engine.timers.cancel(timer.name)
    run.write(12, 3)
    timers.timer_due(world.engine.control, timer.kind, timer.payload)
    world._settle(world.clock.now())
    assert run.seconds() == [10, 12]


def test_without_a_limit_every_write_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch, timedelta(0))
    for tenths in range(5):
        run.write(10 + tenths / 10, tenths)
    assert run.seconds() == [10, 10.1, 10.2, 10.3, 10.4]


RUN: Final = RunKey("orders", "stream", "2026-03-02")


def active_of(run: Woken) -> dict[str, Any]:
    item = run.world.engine.store.get(records.run_record(RUN, keys.ACTIVE))
    assert item is not None
    return item


def test_a_token_that_is_stored_in_between_is_the_one_that_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The execution looks again while it is being woken: the waker goes by the new token, not the one it read."""
    run = Woken(monkeypatch)
    run.to(10)
    control, before = run.world.engine.control, active_of(run)["token"]

    def look_again() -> None:
        control.executions.answer(before)
        run.world._settle(run.world.clock.now())

    interleaved = interrupted(control, look_again, touches(keys.ACTIVE))
    assert waking.wake(interleaved, RUN)
    after = active_of(run)["token"]
    assert after != before
    run.world._settle(run.world.clock.now())
    assert run.seconds() == [10, 10], "once by itself, and once for the write that came after its look"


def test_joined_writes_arm_a_single_timer_and_each_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch)
    armed: list[Timer] = []
    arm = SqliteTimers.arm

    def counted(self: SqliteTimers, timer: Timer) -> None:
        armed.append(timer)
        arm(self, timer)

    monkeypatch.setattr(SqliteTimers, "arm", counted)
    run.write(10, 1)
    seen = active_of(run)["wakeSeq"]
    for tenths in range(1, 5):
        run.write(10 + tenths / 10, tenths)
    assert [timer.at for timer in armed if timer.kind is TimerKind.WAKE] == [
        run.world.scenario.start + timedelta(seconds=11)
    ]
    assert active_of(run)["wakeSeq"] == seen + 4


def test_after_a_joined_wake_up_the_next_too_soon_arms_a_timer_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch)
    run.write(10, 1)
    run.write(10.5, 2)
    run.to(11)
    run.write(11.5, 3)
    run.to(12)
    assert run.seconds() == [10, 11, 12]
    run.write(13, 4)
    assert run.seconds() == [10, 11, 12, 13], "a whole second after the last: at once"


def test_a_timer_of_joined_wake_ups_that_nobody_waits_for_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch)
    run.write(10, 1)
    run.write(10.5, 2)
    world = run.world
    (timer,) = world.engine.timers.due(world.clock.now() + timedelta(minutes=1))
    world.engine.timers.cancel(timer.name)
    run.write(11.5, 100)
    ended = records.get_run(world.engine.store, RUN)
    assert ended is not None
    assert ended.status is RunStatus.RUNNING
    timers.timer_due(world.engine.control, timer.kind, timer.payload)
    world._settle(world.clock.now())
    assert records.get_run(world.engine.store, RUN) == ended


def test_a_record_that_keeps_changing_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch)
    store, where = run.world.engine.store, records.run_record(RUN, keys.ACTIVE)
    tries: list[int] = []

    def meddle(writes: Sequence[Write]) -> None:
        assert len(tries) < 1000, "it never gives up"
        tries.append(len(writes))
        store.commit([Update(where, set={"token": f"another-{len(tries)}"})])

    control = replace(run.world.engine.control, store=InterleavingStore(store, meddle))
    with pytest.raises(StoreError, match="cannot be woken"):
        waking.wake(control, RUN)
    assert len(tries) > 1


def test_nobody_is_woken_without_an_attempt_where_wake_ups_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Woken(monkeypatch)
    assert not waking.wake(run.world.engine.control, RunKey("orders", "stream", "2026-03-01"))
    assert waking.wake(run.world.engine.control, RUN)

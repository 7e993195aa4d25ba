"""Pools: a slot is taken once, given back when the job has ended, and what got lost is repaired."""

import dataclasses
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from interlock.control import catalog, pools, records, waking, writing
from interlock.control.attempts import cancelling, orchestrator
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.config import Job, JobType
from interlock.model.keys import RunKey, Table
from interlock.model.run import Run, RunStatus
from interlock.ports.store import Delete, Put
from interlock.simulation.scenario import inline_scenario
from tests.safety.faults import FaultyWorld
from tests.safety.stage import nothing_was_given_up, pipeline, settle

NAMES: Final = ("a", "b", "c")


def world_of(size: int = 1, *, until: str = "+5m", deadlines: dict[str, str] | None = None) -> FaultyWorld:
    """Three pipelines of one pool that are ready at one minute after another; their jobs take ten minutes."""
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "pool": "small"}
    configs = []
    for name in NAMES:
        parts: dict[str, Any] = {"pipeline": {"id": name}, "job": job}
        if deadlines and name in deadlines:
            parts["sla"] = {"deadline": deadlines[name], "dayOffset": 0}
        configs.append(pipeline(**parts))
    steps = [
        {"at": f"+{index + 1}m", "sensor": f"{name}/ready", "data": {"status": "ready"}}
        for index, name in enumerate(NAMES)
    ]
    scenario = inline_scenario(
        start="2026-03-05T00:00:00Z",
        until=until,
        pipelines=configs,
        steps=steps,
        pools={"small": size},
        jobs={name: [{"after": "10m", "result": "success"}] for name in NAMES},
    )
    world = FaultyWorld(scenario).finish()
    nothing_was_given_up(world)
    return world


def run(world: FaultyWorld, name: str) -> Run:
    found = world.run_of(RunKey(name, "stream", "2026-03-05"))
    assert found is not None
    return found


def control_of(world: FaultyWorld) -> Control:
    return world.engine.control


def slots(world: FaultyWorld) -> dict[str, str]:
    """Who has which slot."""
    found = control_of(world).store.query(Table.CONTROL, f"{pools.POOL}small", "SLOT#")
    return {record.key.sk: record.item["pipeline"] for record in found}


def line(world: FaultyWorld) -> list[str]:
    """Who waits, the most urgent first."""
    found = control_of(world).store.query(Table.CONTROL, f"{pools.POOL}small", "WAIT#")
    return [record.item["pipeline"] for record in found]


def statuses(world: FaultyWorld) -> list[RunStatus]:
    return [run(world, name).status for name in NAMES]


def test_as_many_jobs_run_as_there_are_slots_and_the_others_wait_in_line() -> None:
    world = world_of(2)
    assert statuses(world) == [RunStatus.RUNNING, RunStatus.RUNNING, RunStatus.PENDING]
    assert sorted(slots(world).values()) == ["a", "b"]
    assert line(world) == ["c"]


def test_the_slot_of_a_job_that_has_ended_goes_to_the_next() -> None:
    world = world_of(1, until="+14m")
    assert statuses(world) == [RunStatus.COMPLETED, RunStatus.RUNNING, RunStatus.PENDING]
    assert slots(world) == {"SLOT#00000": "b"}
    assert line(world) == ["c"]
    done = world_of(1, until="+45m")
    assert statuses(done) == [RunStatus.COMPLETED] * 3
    assert (slots(done), line(done)) == ({}, [])


def test_who_is_nearer_to_a_breach_comes_first() -> None:
    world = world_of(1, until="+14m", deadlines={"c": "00:40"})
    assert statuses(world) == [RunStatus.COMPLETED, RunStatus.PENDING, RunStatus.RUNNING]


def test_the_place_in_the_line_is_known_to_those_who_wait_and_to_nobody_else() -> None:
    world = world_of(1)
    store, now = control_of(world).store, world.clock.now()
    job = control_of_job(world)
    places = [pools.place(store, run(world, name), job, now) for name in NAMES]
    assert places[0] is None
    assert [(found.pool, found.position, found.waiting) for found in places[1:] if found is not None] == [
        ("small", 1, 2),
        ("small", 2, 2),
    ]
    assert pools.place(store, run(world, "b"), None, now) is None


def control_of_job(world: FaultyWorld) -> Any:
    config = catalog.current(control_of(world).store, "a")
    assert config is not None
    return config.job


def test_a_slot_is_given_back_only_by_the_run_that_has_it_and_only_when_its_job_is_over() -> None:
    world = world_of(1)
    holder = run(world, "a")
    pools.give_back(control_of(world), holder)
    assert slots(world) == {"SLOT#00000": "a"}, "its job runs"
    stranger = replace(run(world, "b"), slot=holder.slot, status=RunStatus.FAILED_FINAL)
    pools.give_back(control_of(world), stranger)
    assert slots(world) == {"SLOT#00000": "a"}, "not its own"
    outdated = replace(holder, status=RunStatus.COMPLETED, version=holder.version - 1)
    pools.give_back(control_of(world), outdated)
    assert slots(world) == {"SLOT#00000": "a"}, "the run has moved on"


def test_the_watchdog_gives_back_what_got_lost_and_wakes_the_next() -> None:
    world = world_of(1)
    gone = RunKey("nobody", "stream", "2026-03-05")
    where = records.control_key(f"{pools.POOL}small", "SLOT#00000")
    names = {"pipeline": gone.pipeline, "schedule": gone.schedule, "date": gone.date}
    control_of(world).store.commit([Put(where, names | {"attempt": "1", "since": "2026-03-05T00:00:00Z"})])
    pools.repair(control_of(world))
    settle(world)
    assert slots(world) == {"SLOT#00000": "b"}


def test_the_watchdog_leaves_what_is_in_use() -> None:
    world = world_of(1)
    before = (slots(world), line(world))
    pools.repair(control_of(world))
    settle(world)
    assert (slots(world), line(world)) == before


def test_the_watchdog_drops_those_who_wait_no_more() -> None:
    world = world_of(1)
    control_of(world).store.commit([Delete(records.run_record(run(world, "b").key, keys.RUN))])
    pools.repair(control_of(world))
    assert line(world) == ["c"]


def line_records(world: FaultyWorld) -> list[str]:
    """All that is kept of those who wait, by kind and pipeline."""
    found = control_of(world).store.query(Table.CONTROL, f"{pools.POOL}small", "")
    return sorted(f"{record.key.sk[:5]} {record.item['pipeline']}" for record in found if record.key.sk[:5] != "SLOT#")


def enter(world: FaultyWorld, name: str, breach_at: datetime | None) -> str | None:
    """Have an attempt ask for a slot, as its evaluation does; the slot it got."""
    entry = pools.enter(control_of(world), "small", run(world, name), breach_at, world.clock.now())
    assert control_of(world).store.commit(entry.writes) is None
    return entry.slot


def test_who_leaves_the_line_leaves_nothing_behind_and_who_is_not_in_it_leaves_nothing() -> None:
    world = world_of(1)
    control = control_of(world)
    assert pools.leave(control, "small", run(world, "a")) == []
    assert control.store.commit(pools.leave(control, "small", run(world, "b"))) is None
    assert line_records(world) == ["AGED# c", "PLACE c", "WAIT# c"]


def test_a_revised_sla_moves_the_attempt_in_the_line_and_leaves_no_second_place() -> None:
    world = world_of(1)
    soon = world.clock.now() + timedelta(minutes=20)
    assert enter(world, "c", soon) is None
    assert line(world) == ["c", "b"]
    assert line_records(world) == ["AGED# b", "AGED# c", "PLACE b", "PLACE c", "WAIT# b", "WAIT# c"]
    assert enter(world, "c", soon + timedelta(days=1)) is None
    assert enter(world, "b", soon + timedelta(minutes=5)) is None
    assert line(world) == ["b", "c"], "the old, earlier breach of c is forgotten"
    assert len(line_records(world)) == 6


def test_who_got_a_slot_after_its_sla_was_revised_stands_in_nobodys_way() -> None:
    world = world_of(1)
    soon = world.clock.now() + timedelta(minutes=20)
    enter(world, "b", soon)
    control_of(world).store.commit([Delete(records.control_key(f"{pools.POOL}small", "SLOT#00000"))])
    assert enter(world, "b", soon + timedelta(hours=1)) == "small#00000"
    assert line_records(world) == ["AGED# c", "PLACE c", "WAIT# c"]
    control_of(world).store.commit([Delete(records.control_key(f"{pools.POOL}small", "SLOT#00000"))])
    assert enter(world, "c", None) == "small#00000"


def test_the_watchdog_drops_a_place_in_the_line_that_its_run_has_left() -> None:
    world = world_of(1)
    key = run(world, "b").key
    item = {"pipeline": key.pipeline, "schedule": key.schedule, "date": key.date}
    times = {"since": "2026-03-05T00:02:00Z", "breachAt": "2026-03-05T01:00:00Z"}
    old = records.control_key(
        f"{pools.POOL}small", "WAIT#2026-03-05T01:00:00Z#2026-03-05T00:02:00Z#b#stream#2026-03-05"
    )
    control_of(world).store.commit([Put(old, item | times)])
    assert line(world) == ["b", "b", "c"]
    pools.repair(control_of(world))
    assert line(world) == ["b", "c"]
    assert line_records(world) == ["AGED# b", "AGED# c", "PLACE b", "PLACE c", "WAIT# b", "WAIT# c"]


def test_a_place_of_an_older_version_is_taken_over() -> None:
    world = world_of(1)
    mine = control_of(world).store.query(Table.CONTROL, f"{pools.POOL}small", "PLACE#b")
    control_of(world).store.commit([Delete(record.key) for record in mine])
    assert enter(world, "b", None) is None
    assert line_records(world) == ["AGED# b", "AGED# c", "PLACE b", "PLACE c", "WAIT# b", "WAIT# c"]


def test_a_second_attempt_keeps_the_slot_that_nobody_has_given_back() -> None:
    world = world_of(1)
    holder = run(world, "a")
    entry = pools.enter(control_of(world), "small", replace(holder, attempt=2), None, world.clock.now())
    assert (entry.slot, len(entry.writes)) == (holder.slot, 1)


def test_a_free_slot_is_not_for_the_one_who_comes_later() -> None:
    world = world_of(1)
    control = control_of(world)
    control.store.commit([Delete(records.control_key(f"{pools.POOL}small", "SLOT#00000"))])
    now = world.clock.now() + timedelta(minutes=1)
    assert pools.enter(control, "small", run(world, "c"), None, now).slot is None
    assert pools.enter(control, "small", run(world, "b"), None, now).slot == "small#00000"


def test_many_that_come_at_once_have_the_slots_after_a_few_rounds() -> None:
    """All read the same free slots; if each took the first of them, only one would get any in each round."""
    world = world_of(1)
    before = control_of(world)
    control = dataclasses.replace(before, settings=dataclasses.replace(before.settings, pools={"wide": 64}))
    now = control.now()
    asking = [replace(run(world, "c"), pipeline=f"p{number:03d}") for number in range(200)]
    rounds = 0
    while asking:
        rounds += 1
        entries = [(one, pools.enter(control, "wide", one, None, now)) for one in asking]
        asking = [one for one, entry in entries if control.store.commit(entry.writes) is not None]
    held = control.store.query(Table.CONTROL, f"{pools.POOL}wide", "SLOT#")
    waiting = control.store.query(Table.CONTROL, f"{pools.POOL}wide", "WAIT#")
    assert (len(held), len(waiting)) == (64, 136)
    assert rounds <= 8


def test_a_slot_that_is_given_back_just_before_the_attempt_stands_in_line_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It saw the pool full; who gave the slot back saw nobody in line: it looks again, and not only after minutes."""
    world = world_of(1, until="+2m30s")
    control, waiting = control_of(world), run(world, "b")
    control.store.commit(pools.leave(control, "small", waiting))
    commit = control.store.commit

    def after_the_slot_is_free(writes: Any) -> Any:
        monkeypatch.setattr(control.store, "commit", commit)
        commit([Delete(records.control_key(f"{pools.POOL}small", "SLOT#00000"))])
        pools.wake_next(control, "small")
        return commit(writes)

    monkeypatch.setattr(control.store, "commit", after_the_slot_is_free)
    before = records.get_active(control.store, waiting.key)
    asked = {"mode": "evaluate", "pipeline": "b", "schedule": "stream", "date": "2026-03-05", "attempt": 1}
    assert orchestrator.handle(control, asked)["status"] == "waiting"
    after = records.get_active(control.store, waiting.key)
    assert before is not None
    assert after is not None
    assert after.wake_seq > before.wake_seq
    assert orchestrator.handle(control, asked)["status"] == "passed"
    assert slots(world) == {"SLOT#00000": "b"}


def test_who_was_opened_within_a_millisecond_of_the_full_second_leaves_the_line_as_well() -> None:
    world = world_of(1)
    control, waiting = control_of(world), run(world, "b")
    early = replace(waiting, opened_at=waiting.opened_at.replace(microsecond=345))
    control.store.commit(pools.leave(control, "small", waiting))
    assert control.store.commit(pools.enter(control, "small", early, None, control.now()).writes) is None
    assert control.store.commit(pools.leave(control, "small", early)) is None
    assert line(world) == ["c"]


# --------------------------------------------------------------------------------- who is called when a slot is free


def called_to(world: FaultyWorld, name: str) -> str | None:
    """The slot that an attempt was called to, and has not taken yet."""
    found = control_of(world).store.query(Table.CONTROL, f"{pools.POOL}small", f"PLACE#{name}#")
    return found[0].item.get("slot") if found else None


def ends(world: FaultyWorld, name: str) -> Run:
    """The job of a run is over; its change is not routed yet."""
    store, before = control_of(world).store, run(world, name)
    over = replace(before, status=RunStatus.COMPLETED, version=before.version + 1)
    assert store.commit([records.put_run(over, before)]) is None
    return over


def wake_ups(world: FaultyWorld, name: str) -> int:
    active = records.get_active(control_of(world).store, run(world, name).key)
    assert active is not None
    return active.wake_seq


def test_a_slot_that_is_given_back_calls_the_first_in_line_and_wakes_nobody_else() -> None:
    world = world_of(1)
    before = {name: wake_ups(world, name) for name in ("b", "c")}
    pools.give_back(control_of(world), ends(world, "a"))
    assert slots(world) == {"SLOT#00000": "b"}
    assert (called_to(world, "b"), called_to(world, "c")) == ("00000", None)
    assert line(world) == ["c"]
    assert {name: wake_ups(world, name) - before[name] for name in before} == {"b": 1, "c": 0}
    settle(world)
    assert (run(world, "b").status, run(world, "b").slot) == (RunStatus.RUNNING, "small#00000")
    assert line_records(world) == ["AGED# c", "PLACE c", "WAIT# c"]


def test_slots_that_are_given_back_at_once_wake_each_waiter_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"p{number:02d}" for number in range(24)]
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "pool": "small"}
    woken: list[str] = []
    wake = waking.wake

    def counted(control: Control, key: RunKey) -> bool:
        woken.append(key.pipeline)
        return wake(control, key)

    monkeypatch.setattr(waking, "wake", counted)
    scenario = inline_scenario(
        start="2026-03-05T00:00:00Z",
        until="+2h",
        pipelines=[pipeline(pipeline={"id": name}, job=job) for name in names],
        steps=[{"at": "+1m", "sensor": f"{name}/ready", "data": {"status": "ready"}} for name in names],
        pools={"small": 6},
        jobs={name: [{"after": "10m", "result": "success"}] for name in names},
    )
    world = FaultyWorld(scenario).finish()
    assert [run(world, name).status for name in names] == [RunStatus.COMPLETED] * len(names)
    assert sorted(woken) == sorted(name for name in names if woken.count(name)), "each once"
    assert len(woken) == len(names) - 6, "and those that had a slot at once not at all"
    assert (slots(world), line_records(world)) == ({}, [])


def test_a_change_that_is_delivered_again_wakes_whom_it_had_called() -> None:
    """The controller died between the call and the wake-up."""
    world = world_of(1)
    over = ends(world, "a")
    pools.give_back(control_of(world), over)
    before = wake_ups(world, "b")
    pools.give_back(control_of(world), over)
    assert wake_ups(world, "b") == before + 1
    settle(world)
    taken = wake_ups(world, "b")
    pools.give_back(control_of(world), over)
    assert wake_ups(world, "b") == taken, "who has taken the slot is left alone"
    assert slots(world) == {"SLOT#00000": "b"}


def test_a_slot_that_an_attempt_is_called_to_is_not_taken_for_that_of_the_attempt_before() -> None:
    world = world_of(1)
    pools.give_back(control_of(world), ends(world, "a"))
    pools.give_back(control_of(world), replace(run(world, "b"), slot="small#00000"))
    assert slots(world) == {"SLOT#00000": "b"}
    assert called_to(world, "b") == "00000"


def test_a_change_that_is_delivered_again_calls_if_it_has_only_given_back() -> None:
    world = world_of(1)
    over = ends(world, "a")
    control_of(world).store.commit([Delete(records.control_key(f"{pools.POOL}small", "SLOT#00000"))])
    pools.give_back(control_of(world), over)
    assert called_to(world, "b") == "00000"


def test_who_is_called_and_not_ready_any_more_passes_the_slot_on() -> None:
    world = world_of(1)
    control = control_of(world)
    pools.give_back(control, ends(world, "a"))
    writing.write_sensor(control, "b", "ready", {"status": "no"})
    settle(world)
    assert statuses(world)[1:] == [RunStatus.PENDING, RunStatus.RUNNING]
    assert slots(world) == {"SLOT#00000": "c"}
    assert line_records(world) == []


def test_who_is_called_and_then_cancelled_passes_the_slot_on() -> None:
    world = world_of(1)
    control = control_of(world)
    pools.give_back(control, ends(world, "a"))
    cancelling.cancel(control, run(world, "b").key)
    assert slots(world) == {"SLOT#00000": "b"}, "until its change is routed"
    settle(world)
    assert statuses(world)[1:] == [RunStatus.FAILED_FINAL, RunStatus.RUNNING]
    assert slots(world) == {"SLOT#00000": "c"}
    assert line_records(world) == []


def test_who_is_cancelled_in_the_line_leaves_it() -> None:
    world = world_of(1)
    cancelling.cancel(control_of(world), run(world, "b").key)
    settle(world)
    assert line_records(world) == ["AGED# c", "PLACE c", "WAIT# c"]
    assert slots(world) == {"SLOT#00000": "a"}


def test_nobody_is_called_who_is_over() -> None:
    world = world_of(1)
    store, gone = control_of(world).store, run(world, "b")
    over = ends(world, "a")
    store.commit([Delete(records.run_record(gone.key, keys.RUN))])
    pools.give_back(control_of(world), over)
    assert slots(world) == {"SLOT#00000": "c"}
    assert line_records(world) == ["PLACE c"]


def test_nobody_is_called_to_a_slot_that_the_pool_has_no_more() -> None:
    world = world_of(2)
    before = control_of(world)
    smaller = dataclasses.replace(before, settings=dataclasses.replace(before.settings, pools={"small": 1}))
    last = next(name for name in ("a", "b") if run(world, name).slot == "small#00001")
    pools.give_back(smaller, ends(world, last))
    assert list(slots(world)) == ["SLOT#00000"]
    assert line(world) == ["c"]


def test_the_watchdog_wakes_who_was_called_and_did_not_hear_it() -> None:
    world = world_of(1)
    pools.give_back(control_of(world), ends(world, "a"))
    before = wake_ups(world, "b")
    pools.repair(control_of(world))
    assert wake_ups(world, "b") == before + 1
    assert slots(world) == {"SLOT#00000": "b"}


def test_the_watchdog_takes_back_the_slot_of_one_that_was_called_and_is_over() -> None:
    world = world_of(1)
    pools.give_back(control_of(world), ends(world, "a"))
    control_of(world).store.commit([Delete(records.run_record(run(world, "b").key, keys.RUN))])
    pools.repair(control_of(world))
    assert slots(world) == {"SLOT#00000": "c"}
    assert line_records(world) == ["PLACE c"]


def test_who_was_called_to_a_slot_that_somebody_has_removed_asks_anew() -> None:
    world = world_of(1)
    pools.give_back(control_of(world), ends(world, "a"))
    slot = records.control_key(f"{pools.POOL}small", "SLOT#00000")
    control_of(world).store.commit([Delete(slot)])
    assert enter(world, "b", None) == "small#00000"
    assert line_records(world) == ["AGED# c", "PLACE c", "WAIT# c"]
    pools.give_back(control_of(world), replace(run(world, "b"), slot="small#00000", status=RunStatus.COMPLETED))
    assert called_to(world, "c") == "00000"
    stranger = {"pipeline": "x", "schedule": "stream", "date": "2026-03-05"}
    control_of(world).store.commit([Put(slot, stranger)])
    assert enter(world, "c", None) is None
    assert line_records(world) == ["AGED# c", "PLACE c", "WAIT# c"], "back in the line"


def test_who_stands_in_the_line_already_writes_nothing_and_has_nothing_to_look_for_again() -> None:
    world = world_of(1)
    first = pools.enter(control_of(world), "small", replace(run(world, "b"), pipeline="d"), None, world.clock.now())
    assert (first.slot, first.joined) == (None, True)
    again = pools.enter(control_of(world), "small", run(world, "b"), None, world.clock.now())
    assert (again.slot, again.writes, again.joined) == (None, [], False)


def test_the_slot_of_the_attempt_before_is_not_kept_when_somebody_else_has_it_by_now() -> None:
    world = world_of(1)
    late = replace(run(world, "b"), attempt=2, slot="small#00000")
    assert pools.enter(control_of(world), "small", late, None, world.clock.now()).slot is None


def test_the_watchdog_gives_back_the_slot_of_a_run_that_is_over() -> None:
    """The change of its end was lost."""
    world = world_of(1)
    ends(world, "a")
    pools.repair(control_of(world))
    assert slots(world) == {"SLOT#00000": "b"}
    assert called_to(world, "b") == "00000"


def test_the_watchdog_gives_back_a_second_slot_of_a_run_that_has_one() -> None:
    world = world_of(2)
    store, holder, other = control_of(world).store, run(world, "a"), run(world, "b")
    names = {"pipeline": "a", "schedule": "stream", "date": "2026-03-05", "attempt": "1"}
    store.commit([Put(records.control_key(f"{pools.POOL}small", f"SLOT#{other.slot[-5:]}"), names)])
    ends(world, "b")
    pools.repair(control_of(world))
    assert slots(world) == {f"SLOT#{holder.slot[-5:]}": "a", f"SLOT#{other.slot[-5:]}": "c"}


def test_commands_wait_for_the_pool_of_commands_and_others_for_none_that_they_do_not_name() -> None:
    control = control_of(world_of(1, until="+1m"))
    bounded = dataclasses.replace(
        control, settings=dataclasses.replace(control.settings, pools={pools.COMMANDS: 2, "x": 1})
    )
    command = Job(type=JobType.COMMAND, config={"command": ["true"]})
    assert pools.pool_of(bounded, command) == pools.COMMANDS
    assert pools.pool_of(bounded, replace(command, pool="x")) == "x"
    assert pools.pool_of(bounded, replace(command, pool="unbounded")) is None
    assert pools.pool_of(bounded, replace(command, type=JobType.GLUE)) is None
    assert pools.pool_of(bounded, None) is None
    assert pools.pool_of(control, command) is None, "this installation bounds no commands"


def test_who_is_over_leaves_the_line_and_the_slot_it_was_called_to_goes_on_to_the_next_at_once() -> None:
    world = world_of(1)
    pools.give_back(control_of(world), ends(world, "a"))
    store, called = control_of(world).store, run(world, "b")
    over = replace(called, status=RunStatus.FAILED_FINAL, version=called.version + 1)
    assert store.commit([records.put_run(over, called)]) is None
    pools.give_back(control_of(world), over)
    assert (slots(world), called_to(world, "c")) == ({"SLOT#00000": "c"}, "00000")


def test_an_attempt_that_has_moved_on_keeps_the_place_that_an_older_change_would_take_from_it() -> None:
    world = world_of(1)
    outdated = replace(run(world, "b"), status=RunStatus.FAILED_FINAL, version=run(world, "b").version - 1)
    pools.give_back(control_of(world), outdated)
    assert line(world) == ["b", "c"]

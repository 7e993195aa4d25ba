"""Pools: at most so many jobs of a kind at once (SPEC 2, `job.pool`).

A slot is a record, `POOL#{pool}` `SLOT#{number}`, that an attempt puts in the commit in which its rules pass, on
condition that nobody has it: the limit holds whoever else starts jobs, in this process or in another. It is given back
from the change of the run that has left its job, so that no ending can forget it; the watchdog gives back what got
lost.

An attempt that finds no slot stays PENDING and leaves two records: `WAIT#`, sorted by urgency, and `AGED#`, sorted by
age. A third, `PLACE#`, is found by the run's name and says where the two are: an attempt whose SLA is revised while it
waits moves in the line, and has one place at any time. A slot that is given back wakes those whose turn it is; they
evaluate their rules again, and take it in the commit in which these pass.

An attempt reads which slots are taken, and then joins the line. A slot that is given back in between wakes nobody, so
whoever has joined looks once more whether there is one, after its commit.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from zlib import crc32

import msgspec

from interlock.control import records, waking
from interlock.control.context import Control
from interlock.decide.pools import Place, Waiter, in_turn
from interlock.model import keys
from interlock.model.config import Job, JobType
from interlock.model.keys import RunKey, Table
from interlock.model.run import Run, RunStatus
from interlock.model.times import format_instant, parse_instant
from interlock.ports.store import Delete, Item, Key, Matches, Missing, Put, Record, Require, Store, Write

COMMANDS: Final = "commands"
"""The pool of the commands whose config names none."""
POOL: Final = "POOL#"
_SLOT: Final = "SLOT#"
_WAIT: Final = "WAIT#"
_AGED: Final = "AGED#"
_PLACE: Final = "PLACE#"
_SHOWN: Final = 1000


class Entry(msgspec.Struct, frozen=True):
    """What came of asking for a slot: `slot` when there is one, and what belongs into the commit either way.

    `wake`: the next in line are to be woken once that is committed.
    """

    slot: str | None
    writes: list[Write]
    wake: bool = False


def pool_of(control: Control, job: Job | None) -> str | None:
    """The pool a job is started in, None when nothing bounds it."""
    name = _name_of(job)
    return name if name in control.settings.pools else None


def _name_of(job: Job | None) -> str | None:
    if job is None:
        return None
    return job.pool or (COMMANDS if job.type == JobType.COMMAND else None)


def enter(control: Control, pool: str, run: Run, breach_at: datetime | None, now: datetime) -> Entry:
    """A slot for an attempt whose rules have passed, or its place in the line."""
    size = control.settings.pools[pool]
    held = {record.key.sk: record for record in control.store.query(Table.CONTROL, POOL + pool, _SLOT)}
    mine = held.get(_slot_sk(run.slot)) if run.slot.startswith(f"{pool}#") else None
    if mine is not None and _is_of(mine, run.key):
        # The slot of the previous attempt, not given back yet: this attempt keeps it.
        return Entry(run.slot, [Put(mine.key, _holder(run, now), _held_by(run.key))])
    free = [f"{_SLOT}{number:05d}" for number in range(size) if f"{_SLOT}{number:05d}" not in held]
    waiter = Waiter(run.key, run.opened_at, breach_at)
    line = _front(control.store, pool, len(free), now, waiter) if free else []
    if waiter.key in [one.key for one in line[: len(free)]]:
        # Not the first: of many who come at once, all see the same free slots, and a slot is taken by one of them.
        slot = free[crc32(f"{_name_in_line(run.key)}#{len(free)}".encode()) % len(free)]
        taken = Put(records.control_key(POOL + pool, slot), _holder(run, now), Missing())
        return Entry(f"{pool}#{slot[len(_SLOT) :]}", [taken, *leave(control, pool, run)])
    joined = _join(control.store, pool, waiter)
    # Who has given a slot back since the pool was seen full has seen nobody in line.
    return Entry(None, joined, wake=bool(joined))


def leave(control: Control, pool: str, run: Run) -> list[Write]:
    """The attempt waits no more: it is not ready any more, or over."""
    found = _place_of(control.store, pool, run.key)
    return [] if found is None else _left(pool, found)


def give_back(control: Control, run: Run) -> None:
    """The change of a run that has left its job: its slot is free, and the next in line is woken."""
    if not run.slot or _needs_slot(run):
        return
    pool, _, _ = run.slot.partition("#")
    where = records.control_key(POOL + pool, _slot_sk(run.slot))
    still = Require(records.run_record(run.key, keys.RUN), Matches({"version": run.version}))
    if control.store.commit([Delete(where, _held_by(run.key)), still]) is None:
        wake_next(control, pool)


def wake_next(control: Control, pool: str) -> None:
    """Wake as many as there are free slots, in their turn; who waits no more leaves the line."""
    free = control.settings.pools.get(pool, 0) - len(control.store.query(Table.CONTROL, POOL + pool, _SLOT))
    while free > 0:
        front = _front(control.store, pool, free, control.now())
        gone = [one for one in front if not _waits(control.store, one.key)]
        if not gone:
            for waiter in front:
                waking.wake(control, waiter.key)
            return
        for waiter in gone:
            _drop(control.store, pool, waiter)


def repair(control: Control) -> None:
    """The watchdog's part: give back the slots of runs that have ended, drop waiters that are over, wake the next."""
    for pool in control.settings.pools:
        for record in control.store.query(Table.CONTROL, POOL + pool, _SLOT):
            _repair_slot(control, record)
        for waiter in _waiters(control.store.query(Table.CONTROL, POOL + pool, _WAIT, limit=_SHOWN)):
            if _place_of(control.store, pool, waiter.key) not in (None, waiter) or not _waits(
                control.store, waiter.key
            ):
                _drop(control.store, pool, waiter)
        wake_next(control, pool)


def _waits(store: Store, key: RunKey) -> bool:
    run = records.get_run(store, key)
    return run is not None and run.status is RunStatus.PENDING and run.passed_at is None


def _repair_slot(control: Control, record: Record) -> None:
    key = _run_in(record.item)
    run = records.get_run(control.store, key)
    if run is not None and run.slot == _slot_name(record) and _needs_slot(run):
        return
    same: Write = Require(records.run_record(key, keys.RUN), Matches({"version": run.version if run else None}))
    control.store.commit([Delete(record.key, _held_by(key)), same])


def place(store: Store, run: Run, job: Job | None, now: datetime) -> Place | None:
    """Where an attempt stands in the line, None when it waits for no pool."""
    pool = _name_of(job)
    if pool is None or run.status is not RunStatus.PENDING or run.passed_at is not None:
        return None
    line = in_turn(_waiters(store.query(Table.CONTROL, POOL + pool, _WAIT, limit=_SHOWN)), now)
    for position, waiter in enumerate(line, start=1):
        if waiter.key == run.key:
            return Place(pool, position, len(line))
    return None


# ------------------------------------------------------------------------------------------------------ the line


def _front(store: Store, pool: str, count: int, now: datetime, me: Waiter | None = None) -> list[Waiter]:
    """The first `count` of the line, as if `me` stood in it. Reads no more of it than could be among them."""
    oldest = _waiters(store.query(Table.CONTROL, POOL + pool, _AGED, limit=count))
    urgent = _waiters(store.query(Table.CONTROL, POOL + pool, _WAIT, limit=count))
    known = {one.key: one for one in (*oldest, *urgent, *([me] if me is not None else []))}
    return in_turn(known.values(), now)[:count]


def _waiters(found: Sequence[Record]) -> list[Waiter]:
    return [waiter for record in found if (waiter := _waiter(record.item)) is not None]


def _waiter(item: Item) -> Waiter | None:
    since = parse_instant(item.get("since"))
    return None if since is None else Waiter(_run_in(item), since, parse_instant(item.get("breachAt")))


def _place_of(store: Store, pool: str, key: RunKey) -> Waiter | None:
    """Where a run stands, by its own record."""
    item = store.get(_place_key(pool, key))
    return None if item is None else _waiter(item)


def _join(store: Store, pool: str, waiter: Waiter) -> list[Write]:
    before = _place_of(store, pool, waiter.key)
    if before == waiter:
        return []
    now = _line_keys(pool, waiter)
    old = [] if before is None else [Delete(key) for key in _line_keys(pool, before) if key not in now]
    place = Put(_place_key(pool, waiter.key), _standing(waiter), Missing() if before is None else _stands_at(before))
    return [place, *old, *(Put(key, _standing(waiter)) for key in now)]


def _left(pool: str, waiter: Waiter) -> list[Write]:
    place = Delete(_place_key(pool, waiter.key), _stands_at(waiter))
    return [place, *(Delete(key) for key in _line_keys(pool, waiter))]


def _drop(store: Store, pool: str, waiter: Waiter) -> None:
    """Out of the line, without the attempt's doing: it is over, or stands elsewhere."""
    place = _place_of(store, pool, waiter.key)
    if place == waiter:
        store.commit(_left(pool, waiter))
        return
    kept = () if place is None else _line_keys(pool, place)
    store.commit([Delete(key) for key in _line_keys(pool, waiter) if key not in kept])


def _standing(waiter: Waiter) -> dict[str, str]:
    item = _names(waiter.key) | {"since": format_instant(waiter.since)}
    return item if waiter.breach_at is None else item | {"breachAt": format_instant(waiter.breach_at)}


def _stands_at(waiter: Waiter) -> Matches:
    breach_at = None if waiter.breach_at is None else format_instant(waiter.breach_at)
    return Matches({"since": format_instant(waiter.since), "breachAt": breach_at}, present=True)


def _line_keys(pool: str, waiter: Waiter) -> tuple[Key, Key]:
    breach, since, _ = waiter.urgency
    name = _name_in_line(waiter.key)
    return (
        records.control_key(POOL + pool, f"{_WAIT}{format_instant(breach)}#{format_instant(since)}#{name}"),
        records.control_key(POOL + pool, f"{_AGED}{format_instant(since)}#{name}"),
    )


def _place_key(pool: str, key: RunKey) -> Key:
    return records.control_key(POOL + pool, _PLACE + _name_in_line(key))


def _name_in_line(key: RunKey) -> str:
    return f"{key.pipeline}#{key.schedule}#{key.date}"


# ------------------------------------------------------------------------------------------------------- records


def _needs_slot(run: Run) -> bool:
    """Is its job about to be started, or started and not over?"""
    passed = run.status is RunStatus.PENDING and run.passed_at is not None
    return passed or run.status in (RunStatus.TRIGGERING, RunStatus.RUNNING)


def _names(key: RunKey) -> dict[str, str]:
    return {"pipeline": key.pipeline, "schedule": key.schedule, "date": key.date}


def _holder(run: Run, now: datetime) -> dict[str, str]:
    return _names(run.key) | {"attempt": str(run.attempt), "since": format_instant(now)}


def _held_by(key: RunKey) -> Matches:
    return Matches(_names(key), present=True)


def _is_of(record: Record, key: RunKey) -> bool:
    return _run_in(record.item) == key


def _run_in(item: Item) -> RunKey:
    return RunKey(str(item.get("pipeline")), str(item.get("schedule")), str(item.get("date")))


def _slot_sk(slot: str) -> str:
    return _SLOT + slot.rpartition("#")[2]


def _slot_name(record: Record) -> str:
    return f"{record.key.pk[len(POOL) :]}#{record.key.sk[len(_SLOT) :]}"

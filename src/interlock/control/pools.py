"""Pools: at most so many jobs of a kind at once (SPEC 2, `job.pool`).

A slot is a record, `POOL#{pool}` `SLOT#{number}`, that an attempt puts in the commit in which its rules pass, on
condition that nobody has it: the limit holds whoever else starts jobs, in this process or in another. It is given back
from the change of the run that has left its job, so that no ending can forget it; the watchdog gives back what got
lost.

An attempt that finds no slot stays PENDING and leaves two records: `WAIT#`, sorted by urgency, and `AGED#`, sorted by
age. A third, `PLACE#`, is found by the run's name and says where the two are: an attempt whose SLA is revised while it
waits moves in the line, and has one place at any time.

Who has given a slot back calls the first in line, and nobody else: one commit puts the slot with the name of that
attempt, takes it out of the line and writes the slot into its place. The attempt is woken, evaluates its rules again,
and takes the slot in the commit in which these pass; if they do not, or if it ends before, the slot goes to the next.
So both its evaluation and its end look at its place.

An attempt reads which slots are taken, and then joins the line. A slot that is given back in between finds nobody, so
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
from interlock.ports.store import (
    Condition,
    Delete,
    Item,
    Key,
    Matches,
    Missing,
    Put,
    Record,
    Require,
    Store,
    Write,
)

COMMANDS: Final = "commands"
"""The pool of the commands whose config names none."""
POOL: Final = "POOL#"
_SLOT: Final = "SLOT#"
_WAIT: Final = "WAIT#"
_AGED: Final = "AGED#"
_PLACE: Final = "PLACE#"
# Of a place: the slot that its attempt was called to.
_CALLED_TO: Final = "slot"
# Of a slot: it is held for an attempt that was called, and has not taken it yet.
_CALLED: Final = "called"
_SHOWN: Final = 1000


class Entry(msgspec.Struct, frozen=True):
    """What came of asking for a slot: `slot` when there is one, and what belongs into the commit either way.

    `joined`: it stands in the line from now on, and is to `look_again` once that is committed.
    """

    slot: str | None
    writes: list[Write]
    joined: bool = False


class _Stand(msgspec.Struct, frozen=True):
    """Where a run stands, by its own record: in the line; or called to a slot, if that is still held for it."""

    waiter: Waiter
    slot: str = ""
    called: bool = False


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
    store, size = control.store, control.settings.pools[pool]
    stand = _stand_of(store, pool, run.key)
    if stand is not None and stand.called:
        taken: Write = Put(_slot_key(pool, stand.slot), _holder(run, now), _held_by(run.key))
        return Entry(f"{pool}#{stand.slot}", [taken, Delete(_place_key(pool, run.key), _same(stand))])
    held = {record.key.sk: record for record in store.query(Table.CONTROL, POOL + pool, _SLOT)}
    mine = held.get(_SLOT + _number_of(run.slot)) if run.slot.startswith(f"{pool}#") else None
    if mine is not None and _run_in(mine.item) == run.key:
        # The slot of the previous attempt, not given back yet: this attempt keeps it.
        return Entry(run.slot, [Put(mine.key, _holder(run, now), _held_by(run.key))])
    free = [number for number in _numbers(size) if _SLOT + number not in held]
    waiter = Waiter(run.key, run.opened_at, breach_at)
    line = _front(store, pool, len(free), now, waiter) if free else []
    if waiter.key in [one.key for one in line]:
        # Not the first: of many who come at once, all see the same free slots, and a slot is taken by one of them.
        number = free[crc32(f"{_name_in_line(run.key)}#{len(free)}".encode()) % len(free)]
        taken = Put(_slot_key(pool, number), _holder(run, now), Missing())
        return Entry(f"{pool}#{number}", [taken, *([] if stand is None else _left(pool, stand))])
    writes = _join(pool, waiter, stand)
    # Who has given a slot back since the pool was seen full has seen nobody in line.
    return Entry(None, writes, joined=bool(writes))


def leave(control: Control, pool: str, run: Run) -> list[Write]:
    """The attempt waits no more: it is not ready any more, or over. A slot that it was called to is free."""
    stand = _stand_of(control.store, pool, run.key)
    return [] if stand is None else _left(pool, stand)


def give_back(control: Control, run: Run) -> None:
    """The change of a run: if it has left its job, its slot goes to the next in line; if it is over, so is its wait."""
    if run.slot and not _needs_slot(run):
        _give_back_slot(control, run)
    if run.passed_at is None and run.status is not RunStatus.PENDING:
        for pool in control.settings.pools:
            left = leave(control, pool, run)
            if left and control.store.commit([*left, _still(run)]) is None:
                wake_next(control, pool)


def _give_back_slot(control: Control, run: Run) -> None:
    pool, _, number = run.slot.partition("#")
    slot = _slot_key(pool, number)
    found = control.store.get(slot)
    if found is not None and found.get(_CALLED):
        # This change may have been handled before, but not to its end: whom it called was not woken then.
        waking.wake(control, _run_in(found))
        return
    if found is not None and _run_in(found) != run.key:
        return
    if found is None or control.store.commit([Delete(slot, _held_by(run.key)), _still(run)]) is None:
        wake_next(control, pool, number)


def wake_next(control: Control, pool: str, freed: str = "") -> None:
    """Call the first in line to the free slots, one to each.

    `freed`: the slot that the caller has given back. Of many that are given back at once all see the same free slots
    and the same line; so each calls for its own slot, and for the others only when nobody is left for that.
    """
    while turns := _turns(control, pool):
        number, waiter = next((turn for turn in turns if turn[0] == freed), turns[0])
        if _call(control, pool, number, waiter) and number == freed:
            return


def look_again(control: Control, pool: str, key: RunKey) -> None:
    """After an attempt has joined the line: is it its turn already?"""
    while turn := next((turn for turn in _turns(control, pool) if turn[1].key == key), None):
        if _call(control, pool, *turn):
            return


def _turns(control: Control, pool: str) -> list[tuple[str, Waiter]]:
    """The free slots, each with the one whose turn it is."""
    held = {record.key.sk for record in control.store.query(Table.CONTROL, POOL + pool, _SLOT)}
    free = [number for number in _numbers(control.settings.pools.get(pool, 0)) if _SLOT + number not in held]
    return list(zip(free, _front(control.store, pool, len(free), control.now()), strict=False)) if free else []


def _call(control: Control, pool: str, number: str, waiter: Waiter) -> bool:
    """Hand a free slot to the one whose turn it is; False when that one waits no more, or others were faster."""
    store = control.store
    run, stand = records.get_run(store, waiter.key), _stand_of(store, pool, waiter.key)
    if run is None or not _stands(run, stand, waiter):
        _drop(store, pool, waiter)
        return False
    writes: list[Write] = [
        Put(_slot_key(pool, number), _holder(run, control.now()) | {_CALLED: True}, Missing()),
        Put(_place_key(pool, run.key), _standing(waiter) | {_CALLED_TO: number}, _same(stand)),
        *(Delete(key) for key in _line_keys(pool, waiter)),
        _still(run),
    ]
    if store.commit(writes) is not None:
        return False
    waking.wake(control, run.key)
    return True


def _stands(run: Run, stand: _Stand | None, waiter: Waiter) -> bool:
    """Does the run still wait, at this place in the line?"""
    return _waits(run) and (stand is None or (stand.waiter == waiter and not stand.called))


def repair(control: Control) -> None:
    """The watchdog's part: give back the slots of runs that have ended, drop waiters that are over, wake the next."""
    for pool in control.settings.pools:
        for record in control.store.query(Table.CONTROL, POOL + pool, _SLOT):
            _repair_slot(control, pool, record)
        for waiter in _waiters(control.store.query(Table.CONTROL, POOL + pool, _WAIT, limit=_SHOWN)):
            run, stand = records.get_run(control.store, waiter.key), _stand_of(control.store, pool, waiter.key)
            if run is None or not _stands(run, stand, waiter):
                _drop(control.store, pool, waiter)
        wake_next(control, pool)


def _repair_slot(control: Control, pool: str, record: Record) -> None:
    key, number = _run_in(record.item), _number_of(record.key.sk)
    run, stand = records.get_run(control.store, key), _stand_of(control.store, pool, key)
    if run is not None and run.slot == f"{pool}#{number}" and _needs_slot(run):
        return
    called = stand is not None and stand.called and stand.slot == number
    if called and run is not None and _waits(run):
        waking.wake(control, key)  # it was called, and may not have heard it
        return
    left = _left(pool, stand) if called and stand is not None else [Delete(record.key, _held_by(key))]
    same = Require(records.run_record(key, keys.RUN), Matches({"version": run.version if run else None}))
    control.store.commit([*left, same])


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


def _stand_of(store: Store, pool: str, key: RunKey) -> _Stand | None:
    item = store.get(_place_key(pool, key))
    waiter = None if item is None else _waiter(item)
    if item is None or waiter is None:
        return None
    slot = str(item.get(_CALLED_TO, ""))
    held = store.get(_slot_key(pool, slot)) if slot else None
    return _Stand(waiter, slot, called=held is not None and _run_in(held) == key)


def _same(stand: _Stand | None) -> Condition:
    """Its place is still what was read."""
    if stand is None:
        return Missing()
    breach_at = None if stand.waiter.breach_at is None else format_instant(stand.waiter.breach_at)
    known = {"since": format_instant(stand.waiter.since), "breachAt": breach_at, _CALLED_TO: stand.slot or None}
    return Matches(known, present=True)


def _join(pool: str, waiter: Waiter, before: _Stand | None) -> list[Write]:
    if before is not None and before.waiter == waiter and not before.slot:
        return []
    now = _line_keys(pool, waiter)
    old = [] if before is None else [Delete(key) for key in _line_keys(pool, before.waiter) if key not in now]
    place = Put(_place_key(pool, waiter.key), _standing(waiter), _same(before))
    return [place, *old, *(Put(key, _standing(waiter)) for key in now)]


def _left(pool: str, stand: _Stand) -> list[Write]:
    key = stand.waiter.key
    place = Delete(_place_key(pool, key), _same(stand))
    if stand.called:
        return [place, Delete(_slot_key(pool, stand.slot), _held_by(key))]
    return [place, *(Delete(key) for key in _line_keys(pool, stand.waiter))]


def _drop(store: Store, pool: str, waiter: Waiter) -> None:
    """Out of the line, without the attempt's doing: it is over, or stands elsewhere."""
    stand = _stand_of(store, pool, waiter.key)
    if stand is not None and stand.waiter == waiter and not stand.called:
        store.commit(_left(pool, stand))
        return
    kept = () if stand is None or stand.called else _line_keys(pool, stand.waiter)
    store.commit([Delete(key) for key in _line_keys(pool, waiter) if key not in kept])


def _standing(waiter: Waiter) -> dict[str, str]:
    item = _names(waiter.key) | {"since": format_instant(waiter.since)}
    return item if waiter.breach_at is None else item | {"breachAt": format_instant(waiter.breach_at)}


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


def _waits(run: Run) -> bool:
    return run.status is RunStatus.PENDING and run.passed_at is None


def _still(run: Run) -> Require:
    return Require(records.run_record(run.key, keys.RUN), Matches({"version": run.version}))


def _names(key: RunKey) -> dict[str, str]:
    return {"pipeline": key.pipeline, "schedule": key.schedule, "date": key.date}


def _holder(run: Run, now: datetime) -> Item:
    return _names(run.key) | {"attempt": str(run.attempt), "since": format_instant(now)}


def _held_by(key: RunKey) -> Matches:
    return Matches(_names(key), present=True)


def _run_in(item: Item) -> RunKey:
    return RunKey(str(item.get("pipeline")), str(item.get("schedule")), str(item.get("date")))


def _numbers(size: int) -> list[str]:
    return [f"{number:05d}" for number in range(size)]


def _number_of(slot: str) -> str:
    return slot.rpartition("#")[2]


def _slot_key(pool: str, number: str) -> Key:
    return records.control_key(POOL + pool, _SLOT + number)

"""Ticks as timers, for a runtime without memory: one armed timer per schedule, re-armed when it is delivered.

`TICK#{schedule}` keeps the place of a schedule (see `ticks`) and the instant its timer is armed for. The timer is armed
first, the record committed after: a record says what is armed, unless somebody took the timer away.

A timer may be delivered twice, and moving one may leave the message of the old instant on its way. So only the delivery
that the record names arms the next: otherwise every duplicate would have a successor of its own, forever. What is lost
on the way (a dead letter, a timer deleted by hand) is found by the watchdog, which delivers what is overdue in the same
pass and arms the schedule again.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.control import catalog, records, ticks
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.config import Schedule
from interlock.model.errors import InvalidValueError, StoreError
from interlock.model.keys import Table
from interlock.model.times import format_instant, parse_instant
from interlock.ports.store import Condition, Delete, Key, Matches, Missing, Put
from interlock.ports.timers import Timer, TimerKind

# A timer may be a minute late, and its delivery takes its time: what is longer due than this was lost.
LOST_AFTER: Final = timedelta(minutes=2)
_TRIES: Final = 20


class TickRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where a schedule stands: delivered up to `done_to`, its timer armed for `next_at`. `terms`: of which schedule."""

    terms: str
    done_to: datetime
    next_at: datetime | None = None


Wanted = Callable[[TickRecord | None, ticks.Place], ticks.Place | None]
"""Where a schedule is to stand, by its record and its config; None when nothing has to change."""


def tick_due(control: Control, payload: Mapping[str, Any]) -> None:
    """A tick's timer was delivered: open what has come, arm what comes next. A stale or repeated delivery does nothing.

    The ticks that a late delivery brings at once are all delivered, but for those whose window has passed.
    """
    pipeline, schedule = str(payload["pipeline"]), str(payload["schedule"])
    at, now = parse_instant(payload.get("at")), control.now()
    if at is None:
        raise InvalidValueError(f"the tick of {pipeline}/{schedule} has no instant `at`: {payload.get('at')!r}")
    record = _read(control, pipeline, schedule)
    place = _place_of(control, pipeline, schedule)
    if record is None or record.next_at != at or place is None or record.terms != _terms(place.schedule):
        return
    if now < at:  # early, by a clock that lags: come again
        control.timers.arm(_timer(pipeline, schedule, at))
        return
    _deliver(control, pipeline, record, place)


def _deliver(control: Control, pipeline: str, record: TickRecord, place: ticks.Place) -> None:
    """Open what has come since the record was written, and arm what comes next, unless somebody else has by then."""
    now = control.now()
    ticks.deliver_until(control, msgspec.structs.replace(place, done_to=record.done_to, next_at=None), now)

    def advanced(found: TickRecord | None, to: ticks.Place) -> ticks.Place | None:
        return msgspec.structs.replace(to, done_to=now) if found == record else None

    _arm(control, pipeline, place.schedule.schedule_id, advanced)


def follow(control: Control, pipeline: str) -> None:
    """A config was written or removed: its schedules are armed, those that it had no more are forgotten."""
    known = _known(control, pipeline)
    wanted = [place.schedule.schedule_id for place in ticks.places(control, pipeline, lambda _: control.now())]
    for schedule in [*wanted, *(one for one in known if one not in wanted)]:
        _arm(control, pipeline, schedule, _followed(control))


def follow_calendar(control: Control, calendar: str) -> None:
    """A named calendar was written: the schedules whose inclusion dates it lists are armed by it."""
    for pipeline in control.store.pipelines():
        config = catalog.current(control.store, pipeline)
        if config is not None and any(_included_by(one) == calendar for one in config.all_schedules):
            follow(control, pipeline)


def _included_by(schedule: Schedule) -> str | None:
    return schedule.include.calendar if schedule.include is not None else None


def repair(control: Control, pipeline: str, schedules: tuple[Schedule, ...]) -> None:
    """Arm what is missing or stale, by the watchdog: nothing is written while all is well.

    A tick whose timer was lost is delivered here. Arming its instant again would not do: the timers may take it for one
    that is on its way, and a schedule that waited for it would have no timer until the window of the lost tick is over.

    The record of a schedule that is gone is left to `follow`: its timer finds no schedule, and ends there.
    """
    by_clock = [schedule for schedule in schedules if ticks.opens_by_clock(schedule)]
    where = [key_of(pipeline, schedule.schedule_id) for schedule in by_clock]
    for schedule, key, item in zip(by_clock, where, control.store.get_many(where), strict=True):
        record = None if item is None else records.convert(item, TickRecord, key)
        place = _place_of(control, pipeline, schedule.schedule_id) if record and _lost(control, record) else None
        if record is not None and place is not None and record.terms == _terms(place.schedule):
            _deliver(control, pipeline, record, place)
        elif record is None or not _sound(control, schedule, record):
            _arm(control, pipeline, schedule.schedule_id, _followed(control))


def _sound(control: Control, schedule: Schedule, record: TickRecord) -> bool:
    if record.terms != _terms(schedule) or _lost(control, record):
        return False
    due = ticks.next_due(control, schedule, record.done_to if record.next_at is not None else control.now())
    return record.next_at == (due.at if due is not None else None)


def _lost(control: Control, record: TickRecord) -> bool:
    return record.next_at is not None and control.now() >= record.next_at + LOST_AFTER


def _followed(control: Control) -> Wanted:
    """A schedule that did not change keeps its place; what comes next is asked again, for its calendar may be new.

    Any other begins anew: at the first tick that may still be delivered, whose timer fires at once, or at the next.
    """

    def wanted(record: TickRecord | None, place: ticks.Place) -> ticks.Place:
        if record is None or record.next_at is None or record.terms != _terms(place.schedule) or _lost(control, record):
            return place
        return msgspec.structs.replace(place, done_to=record.done_to, next_at=None)

    return wanted


def _arm(control: Control, pipeline: str, schedule: str, wanted: Wanted) -> None:
    """Arm a schedule's timer and commit its record.

    Two may do so at once, and the timer is one: who loses the commit arms again, by what is stored then.
    """
    where, lost = key_of(pipeline, schedule), False
    for _ in range(_TRIES):
        before, place = _read(control, pipeline, schedule), _place_of(control, pipeline, schedule)
        if place is None:
            if before is None:
                return
            control.timers.cancel(keys.tick_timer_name(pipeline, schedule))
            if control.store.commit([Delete(where, _unchanged(before))]) is None:
                return
            continue
        to = wanted(before, place)
        after = before if to is None else _record(control, to)
        if after is None or (after == before and not lost):
            return
        _set_timer(control, pipeline, schedule, after)
        if after == before or control.store.commit([Put(where, records.plain(after), _unchanged(before))]) is None:
            return
        lost = True
    raise StoreError(f"{pipeline}: the ticks of {schedule} cannot be armed: somebody keeps changing {where.sk}")


def _place_of(control: Control, pipeline: str, schedule: str) -> ticks.Place | None:
    """A schedule that begins anew; None when there is none, or the clock does not or must not open its runs."""
    places = ticks.places(control, pipeline, lambda _: None)
    by_clock = (place for place in places if ticks.opens_by_clock(place.schedule))
    return next((place for place in by_clock if place.schedule.schedule_id == schedule), None)


def _record(control: Control, place: ticks.Place) -> TickRecord:
    due = ticks.next_due(control, place.schedule, place.done_to)
    return TickRecord(_terms(place.schedule), place.done_to, due.at if due is not None else None)


def _set_timer(control: Control, pipeline: str, schedule: str, record: TickRecord) -> None:
    if record.next_at is None:
        control.timers.cancel(keys.tick_timer_name(pipeline, schedule))
    else:
        control.timers.arm(_timer(pipeline, schedule, record.next_at))


def _timer(pipeline: str, schedule: str, at: datetime) -> Timer:
    payload = {"pipeline": pipeline, "schedule": schedule, "at": format_instant(at)}
    return Timer(keys.tick_timer_name(pipeline, schedule), at, TimerKind.TICK, payload)


def _terms(schedule: Schedule) -> str:
    return records.digest(msgspec.to_builtins(schedule, enc_hook=str))


def _unchanged(record: TickRecord | None) -> Condition:
    if record is None:
        return Missing()
    item = records.plain(record)
    return Matches({name: item.get(name) for name in ("terms", "doneTo", "nextAt")}, present=True)


def key_of(pipeline: str, schedule: str) -> Key:
    """Where a schedule's record is."""
    return records.control_key(keys.pipeline_pk(pipeline), keys.TICK + schedule)


def _read(control: Control, pipeline: str, schedule: str) -> TickRecord | None:
    return records.get(control.store, key_of(pipeline, schedule), TickRecord)


def _known(control: Control, pipeline: str) -> dict[str, TickRecord]:
    found = control.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.TICK)
    return {one.key.sk[len(keys.TICK) :]: records.convert(one.item, TickRecord, one.key) for one in found}

"""What is promised of periods that have no run yet: always what the current config and calendar say (SPEC 2, 6).

A promise is the SLA state of a period without a run. It is computed from the terms: the config, the calendars, since
when the pipeline is watched, and what the latest runs say about days or hours. Whoever reads a promise computes it
again: the stored state points at the instants for the timers and remembers what was given, no more. Once a run exists,
its state is the run's, and nothing here touches it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from interlock.control import catalog, records
from interlock.control.context import Control
from interlock.decide import calendars, cron, sla
from interlock.decide.expected import LATEST, Latest, calendar_reason, expected_in, is_expected
from interlock.decide.watchdog import LOOKBACK
from interlock.model import keys
from interlock.model.config import Calendar, PipelineConfig, Schedule
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Period, day_period, parse_period
from interlock.model.run import FinalReason, SlaState
from interlock.model.times import to_local, zone
from interlock.ports.store import Delete, Item, Matches, Missing, Require, Store, Write

# A sensor-driven period is due for two days: the data of a day is complete on the day after.
_DUE_FOR: Final = timedelta(days=2)
_A_DAY: Final = timedelta(days=1)
# Runs that only the watchdog recorded say nothing of days or hours; there may be one for each hour of two days.
_AMONG: Final = 60
_READ_AT_ONCE: Final = 100


class Terms(msgspec.Struct, frozen=True):
    """What the promises of a pipeline are made from."""

    config: PipelineConfig
    version: str
    calendars: dict[str, Calendar]
    since: datetime


def terms_of(store: Store, found: catalog.Stored | None) -> Terms | None:
    """The terms of a stored pipeline; None when nothing is promised: it is gone, invalid or a dry run."""
    if found is None or found.config is None or found.config.dry_run:
        return None
    applied = catalog.first_applied(store, found)
    if applied is None:
        return None
    named = any(catalog.named_calendars(schedule) for schedule in found.config.all_schedules)
    since = max(catalog.controller_started(store) or applied, applied)
    return Terms(found.config, found.version, catalog.calendars(store) if named else {}, since)


# ------------------------------------------------------------------------------------------------------ one promise


def promised(
    store: Store, terms: Terms | None, key: RunKey, before: SlaState | None = None, arrival: datetime | None = None
) -> SlaState | None:
    """The SLA of a period that has no run, as it is now; None when nothing is promised.

    An arrival of the trigger sensor promises maxDuration, whatever is expected: data of that period is on its way.
    """
    schedule = terms.config.find_schedule(key.schedule) if terms is not None else None
    if terms is None or schedule is None or terms.config.sla is None:
        return None
    if calendar_reason(schedule, terms.calendars, key.period) is not None:
        return None
    first_arrival = (before.first_arrival if before is not None else None) or arrival
    try:
        fresh = sla.state_of(terms.config.sla, schedule, key, terms.version, first_arrival)
    except InvalidValueError:
        return None  # a date at the end of the calendar
    if is_expected(schedule, terms.config.sla, key.period, latest_of(store, key.pipeline, key.schedule)):
        fresh = sla.watched_from(fresh, terms.since)
    else:
        fresh = sla.without_clock(fresh)
    state = sla.carried_over(fresh, before)
    return state if sla.next_instants(state) or state.fired else None


def revised(store: Store, state: SlaState) -> SlaState | None:
    """A stored promise as it is now. That of an invalid config stands: a mistake in a file must not silence it."""
    found = catalog.stored(store, state.pipeline)
    if found is not None and found.config is None:
        return state
    return promised(store, terms_of(store, found), state.key, state)


def withdrawn(state: SlaState) -> Write:
    """Nothing is promised any more. What was given, and when the data first came, is remembered."""
    if not state.fired and state.first_arrival is None:
        return Delete(records.run_record(state.key, keys.SLA), Matches({"version": state.version}))
    cleared = msgspec.structs.replace(
        sla.without_clock(state), version=state.version + 1, relative_warning_at=None, relative_breach_at=None
    )
    return records.put_sla(cleared, state)


def without_run(key: RunKey) -> Require:
    """The condition that a period still has no run."""
    return Require(records.run_record(key, keys.RUN), Missing())


def latest_of(store: Store, pipeline: str, schedule: str) -> Latest:
    """The periods of the latest runs that something opened, newest first; read when they are asked for, once."""

    def read() -> list[Period]:
        few = _opened(store, pipeline, schedule, LATEST)
        return few if few is not None else (_opened(store, pipeline, schedule, _AMONG) or [])[:LATEST]

    return lru_cache(maxsize=1)(read)


def _opened(store: Store, pipeline: str, schedule: str, among: int) -> list[Period] | None:
    """Those that something opened among so many of the latest runs; None when more have to be looked at."""
    prefix = f"{keys.RUN}{schedule}#"
    found = store.query(Table.CONTROL, keys.pipeline_pk(pipeline), prefix, reverse=True, limit=among)
    opened = [parse_period(one.item["date"]) for one in found if not _only_recorded(one.item)]
    return opened if len(opened) == len(found) or among > LATEST else None


def _only_recorded(run: Item) -> bool:
    return run.get("finalReason") == FinalReason.DEADLINE_EXPIRED and run.get("attempt") == 1


# ------------------------------------------------------------------------------------- keeping the records up to date


def arm(control: Control, terms: Terms, key: RunKey, *, ahead: bool = False) -> bool:
    """Give a period without a run its SLA state; True when it had none. `ahead`: only if it is not over yet."""
    if sla.is_past(key.period, control.now()) or records.get_sla(control.store, key) is not None:
        return False
    if records.get_run(control.store, key) is not None:
        return False
    state = promised(control.store, terms, key)
    if state is None or (ahead and sla.is_over(state, control.now())):
        return False
    return control.store.commit([records.put_sla(state, None), without_run(key)]) is None


def arm_due(control: Control, terms: Terms, schedule: Schedule, first: datetime, *, ahead: bool = False) -> None:
    """Arm every period of a schedule that is due since `first` and has no run."""
    config = terms.config.sla
    if config is None or (config.deadline is None and config.ready_by is None):
        return
    for period in due_periods(control, terms, schedule, first):
        arm(control, terms, RunKey(terms.config.id, schedule.schedule_id, str(period)), ahead=ahead)


def due_periods(control: Control, terms: Terms, schedule: Schedule, first: datetime) -> Iterator[Period]:
    """The periods since `first` whose run should exist or be on its way, and that no calendar withholds.

    A period that was over before anybody watched is not ours to miss.
    """
    now, first = control.now(), max(terms.since, first)
    if schedule.cron is not None:
        for tick in cron.ticks_between(schedule, first - timedelta(seconds=1), now):
            if calendars.exclusion(schedule, terms.calendars, tick.local.date()) is None:
                yield tick.period
        return
    tz = zone(schedule.timezone)
    latest = latest_of(control.store, terms.config.id, schedule.schedule_id)
    day, last = to_local(now - _DUE_FOR, tz).date(), to_local(now, tz).date()
    while day <= last:
        if calendars.withheld(schedule, terms.calendars, day) is None:
            for period in expected_in(schedule, terms.config.sla, day_period(day), latest):
                if period.start(tz) <= now and period.end(tz) > terms.since:
                    yield period
        day += _A_DAY


def follow(control: Control, key: RunKey) -> None:
    """Make the stored promise of a period agree with the current config and calendar."""

    def decide() -> tuple[None, list[Write]]:
        state = records.get_sla(control.store, key)
        if state is None or state.outcome is not None or records.get_run(control.store, key) is not None:
            return None, []
        now_promised = revised(control.store, state)
        if now_promised is state or (now_promised is None and not sla.next_instants(state)):
            return None, []
        write = withdrawn(state) if now_promised is None else records.put_sla(now_promised, state)
        return None, [write, without_run(key)]

    records.settle_commit(control, decide)


def follow_config(control: Control, pipeline: str) -> None:
    """A config, or a calendar that it names, was written: what it promises of periods without a run follows at once.

    What a removed pipeline or schedule had promised is judged, and dropped, at the instant of its alert.
    """
    terms = terms_of(control.store, catalog.stored(control.store, pipeline))
    if terms is None:
        return
    for schedule in terms.config.all_schedules:
        for state in records.recent_sla(control.store, pipeline, schedule.schedule_id):
            follow(control, state.key)
        arm_due(control, terms, schedule, control.now() - LOOKBACK, ahead=True)


def follow_calendar(control: Control, calendar: str) -> None:
    """A named calendar was written. Thousands of pipelines may name it: others go on meanwhile."""
    names = control.store.pipelines()
    for start in range(0, len(names), _READ_AT_ONCE):
        for found in catalog.stored_many(control.store, names[start : start + _READ_AT_ONCE]):
            schedules = found.config.all_schedules if found.config is not None else ()
            if any(calendar in catalog.named_calendars(one) for one in schedules):
                follow_config(control, found.pipeline)
                control.pause()
        control.pause()

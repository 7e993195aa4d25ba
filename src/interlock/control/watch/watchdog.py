"""watchdog: notices what did *not* happen (SPEC 8). Eight checks in a table; one failing does not stop the others.

A pass may be cut into slices for several workers (`watch_slices`), reads each record once (`pass_store`), and where a
runtime sees every change it leaves out the pipelines that are quiet (`quiet`).

Independent of the lifecycle: it reads configs, active runs and the few records that are due, never the history. Each
alert is given once per run, remembered with a `once` record in the alert's own commit.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from interlock.control import catalog, pools, promises, readiness, records, sla_monitor, tick_timers, ticks
from interlock.control.attempts import opening
from interlock.control.context import Control
from interlock.control.watch import reconciling, watch_plan
from interlock.control.watch.pass_store import PassStore
from interlock.control.watch.quiet import Quiet
from interlock.control.watch.watch_slices import WHOLE, Slice
from interlock.control.watch.watched import Watched
from interlock.decide import sla, watchdog
from interlock.decide.expected import Latest, declared_granularity, expected_granularity
from interlock.decide.watchdog import Finding
from interlock.logs import get_logger
from interlock.model import keys
from interlock.model.config import Schedule, Sla
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Granularity, Period
from interlock.model.run import FinalReason, Run, RunStatus, Source
from interlock.model.times import format_instant, parse_instant, to_local, zone
from interlock.ports.store import Delete, Item, Key, Matches, Put, Write

log = get_logger(__name__)

_MOST_AHEAD: Final = 90


def run(
    control: Control,
    *,
    part: Slice = WHOLE,
    quiet_to: datetime | None = None,
    quiet: Quiet | None = None,
    pause: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Every check for every pipeline of a slice; returns the names of the checks that failed, after WATCHDOG_DEGRADED.

    `quiet_to`: passes until then were left out, since they could have found nothing (see `watch_plan`). `quiet`: knows
    the pipelines that may be left out. `pause` is called between two pipelines, and says whether to stop: what was not
    looked at then is not complete.
    """
    reads = PassStore(control.store)
    pass_ = _Pass(replace(control, store=reads), reads, part, quiet_to, quiet)
    errors: dict[str, str] = {}
    for pipeline in filter(part.holds, control.store.pipelines()):
        if quiet is not None and quiet.may_skip(pipeline, pass_.now):
            continue
        errors = pass_.look_at(pipeline) | errors
        if pause():
            return sorted(errors)
    for pipeline in filter(part.holds, catalog.retired(control.store)):
        errors |= _failing("active-runs", pipeline, partial(_see_through, control, pipeline))
    if part.number == 0:
        errors |= _failing("pools", "", partial(pools.repair, control))
    if errors:
        _degraded(control, errors)
    else:
        pass_.complete()
    return sorted(errors)


class _Pass:
    """What is the same for all pipelines of a pass, and the look at one of them."""

    def __init__(
        self, control: Control, reads: PassStore, part: Slice, quiet_to: datetime | None, quiet: Quiet | None
    ) -> None:
        self.now = control.now()
        self._control = control
        self._reads = reads
        self._part = part
        self._quiet = quiet
        self._started = catalog.first_started(control)
        self._calendars = catalog.calendars(control.store)
        self._calendars_now = records.digest(msgspec.to_builtins(self._calendars))
        last = control.store.get(part.key) or {}
        self._lookback = _lookback(control, last, self.now, quiet_to)
        self._changed = last.get("calendars") != self._calendars_now

    def look_at(self, pipeline: str) -> dict[str, str]:
        """Make the checks for one pipeline; what went wrong with which."""
        self._reads.next_pipeline()
        mark = self._quiet.mark(pipeline) if self._quiet is not None else 0
        errors: dict[str, str] = {}
        errors |= _failing("config", pipeline, lambda: errors.update(self._check(pipeline)))
        if self._quiet is not None and not errors:
            errors |= _failing("watch-plan", pipeline, partial(self._plan, pipeline, mark))
        return errors

    def _check(self, pipeline: str) -> dict[str, str]:
        control, found = self._control, catalog.stored_since(self._control.store, pipeline)
        config = found[0].config if found is not None else None
        if found is None or config is None or config.dry_run:
            return _failing("active-runs", pipeline, partial(_see_through, control, pipeline))
        stored, applied = found
        watched = Watched(
            config,
            stored.version,
            self._calendars,
            max(self._started, applied or self.now),
            self.now,
            self._lookback,
            self._changed,
        )
        _read_ahead(control, watched)
        errors: dict[str, str] = {}
        for name, check in CHECKS:
            errors = _failing(name, pipeline, partial(check, control, watched)) | errors
        return errors

    def _plan(self, pipeline: str, mark: int) -> None:
        """Until when can nothing of it become due, if nothing of it is written?"""
        if self._quiet is not None and not records.active_runs(self._control.store, pipeline):
            until = watch_plan.next_look_at(self._control, pipeline)
            self._quiet.looked_at(pipeline, mark, self.now, until)

    def complete(self) -> None:
        """Every pipeline of the slice was looked at, and no check failed."""
        item = {"completeAt": format_instant(self.now), "calendars": self._calendars_now}
        self._control.store.commit([Put(self._part.key, item)])


def _read_ahead(control: Control, watched: Watched) -> None:
    """Read at once what the checks will ask for one by one; what is not foreseen is read when it is asked for."""
    pipeline, wanted = watched.config.id, list[Key]()
    for schedule in watched.config.all_schedules:
        name = schedule.schedule_id
        records.recent_sla(control.store, pipeline, name)
        if control.settings.tick_timers and ticks.opens_by_clock(schedule):
            wanted.append(tick_timers.key_of(pipeline, name))
        if schedule.trigger is not None:
            wanted.append(records.control_key(keys.pipeline_pk(pipeline), keys.sensor_sk(schedule.trigger.key)))
        dates = _judged_dates(control, watched, schedule)
        newest = list(dict.fromkeys(dates))[-_MOST_AHEAD:]
        wanted += [records.run_record(RunKey(pipeline, name, date), keys.RUN) for date in newest]
    if wanted:
        control.store.get_many(wanted)


def _judged_dates(control: Control, watched: Watched, schedule: Schedule) -> list[str]:
    """The dates whose runs some check will ask for, the newest last."""
    marked = reconciling.marked_periods(control, watched.config) if schedule is watched.first_schedule else []
    dates = [str(period) for period in marked]
    if schedule.trigger is not None:
        sensors = reconciling.period_sensors(control, watched.config.id, schedule.trigger.key)
        dates += [str(held.period) for held in reconciling.held_triggers(watched, schedule, schedule.trigger, sensors)]
    if ticks.opens_by_clock(schedule):
        judged = watched.looking_back(schedule) + 2 * control.settings.missed_grace + _deadline_reach(schedule)
        first = max(watched.since, watched.now - max(judged, ticks.late_by(schedule))) - timedelta(seconds=1)
        return dates + [due.run_date for due in ticks.due_between(control, schedule, first, watched.now)]
    if schedule.trigger is not None and schedule.trigger.deadline is not None:
        today = to_local(watched.now, zone(schedule.timezone)).date()
        dates += [str(today - timedelta(days=1)), str(today)]
    promised = watched.config.sla
    if promised is not None and (promised.deadline or promised.ready_by):
        terms = promises.Terms(watched.config, watched.version, watched.calendars, watched.since)
        periods = promises.due_periods(control, terms, schedule, watched.now - watched.lookback)
        dates += [str(period) for period in periods]
    return dates


def _deadline_reach(schedule: Schedule) -> timedelta:
    """How long after its tick a run is asked for by the deadline of its trigger."""
    deadline = schedule.trigger.deadline if schedule.trigger is not None else None
    if deadline is None:
        return timedelta(0)
    return timedelta(hours=2) if deadline.startswith(":") else timedelta(days=1)


def _failing(name: str, pipeline: str, check: Callable[[], None]) -> dict[str, str]:
    """Make a check; what went wrong with it, by its name."""
    try:
        check()
    except Exception as error:  # noqa: BLE001 - one failing check does not stop the others
        log.error("watchdog-check-failed", check=name, pipeline=pipeline, error=str(error))
        return {name: f"{pipeline}: {type(error).__name__}: {error}"}
    return {}


def _see_through(control: Control, pipeline: str) -> None:
    """What is under way ends, though its pipeline was deleted, became invalid or a dry run since (SPEC 2)."""
    reconciling.end_stale(control, pipeline)
    reconciling.revive_all(control, pipeline)
    reconciling.decide_requests(control, pipeline)
    catalog.forget_retired(control, pipeline)


def _lookback(control: Control, last: Item, now: datetime, quiet_to: datetime | None) -> timedelta:
    """As far as the last complete pass."""
    complete = parse_instant(last.get("completeAt"))
    if complete is None:
        return watchdog.LOOKBACK
    seen = max(complete, quiet_to) if quiet_to is not None else complete
    return min(now - seen + control.settings.missed_grace, watchdog.LOOKBACK)


def _degraded(control: Control, errors: dict[str, str]) -> None:
    slot = RunKey("_watchdog", "", "")
    message = f"watchdog checks failed: {', '.join(sorted(errors))}"
    event = records.event(
        EventType.WATCHDOG_DEGRADED, slot, control.now(), message, checks=sorted(errors), errors=errors
    )
    records.publish(control, event)


def _exists(control: Control, watched: Watched, schedule: Schedule) -> Callable[[Period], bool]:
    """Is there a run of a period? Of a day, its hours will do, unless something says that the runs are days."""
    latest = promises.latest_of(control.store, watched.config.id, schedule.schedule_id)

    def exists(period: Period) -> bool:
        key = RunKey(watched.config.id, schedule.schedule_id, str(period))
        if records.get_run(control.store, key) is not None:
            return True
        if period.granularity is not Granularity.DAY or _are_days(schedule, watched.config.sla, latest):
            return False
        return bool(control.store.query(Table.CONTROL, key.pk, f"{key.sk(keys.RUN)}T", limit=1))

    return exists


def _are_days(schedule: Schedule, sla_: Sla | None, latest: Latest) -> bool:
    """Does anything say that the runs of a schedule are days?"""
    if expected_granularity(schedule, sla_, latest) is not Granularity.DAY:
        return False
    return declared_granularity(schedule) is not None or any(one.granularity is Granularity.DAY for one in latest())


def _alert_once(control: Control, watched: Watched, schedule: Schedule, finding: Finding) -> None:
    key = RunKey(watched.config.id, schedule.schedule_id, str(finding.period))
    if records.was_alerted(control.store, key, finding.event):
        return
    event = records.event(finding.event, key, watched.now, f"{key.pipeline}: {finding.message}", **finding.detail)
    records.publish_once(control, event, finding.event)


# ------------------------------------------------------------------------------------------- 2, 3: missed schedules


def missed_schedules(control: Control, watched: Watched) -> None:
    """2: cron ticks without a run. What may still be delivered is, first."""
    if control.settings.tick_timers:
        tick_timers.repair(control, watched.config.id, watched.config.all_schedules)
    for schedule in watched.config.all_schedules:
        ticks.deliver_overdue(control, watched.config, schedule, watched.since)
        exists = _exists(control, watched, schedule)
        for finding in watchdog.missed_ticks(
            schedule,
            watched.calendars,
            watched.since,
            watched.now,
            exists,
            grace=control.settings.missed_grace,
            lookback=watched.looking_back(schedule) + control.settings.missed_grace,
        ):
            _alert_once(control, watched, schedule, finding)


def missed_inclusions(control: Control, watched: Watched) -> None:
    """3: inclusion dates without a run. What may still be delivered is, by check 2, which delivers both."""
    for schedule in watched.config.all_schedules:
        exists = _exists(control, watched, schedule)
        for finding in watchdog.missed_inclusions(
            schedule,
            watched.calendars,
            watched.since,
            watched.now,
            exists,
            grace=control.settings.missed_grace,
            lookback=watched.looking_back(schedule) + control.settings.missed_grace,
        ):
            _alert_once(control, watched, schedule, finding)


# ------------------------------------------------------------------------------------------------------- 5, 8: SLA


def sla_timers(control: Control, watched: Watched) -> None:
    """5: every due period has its SLA state, run or no run; its timers follow from that."""
    terms = promises.Terms(watched.config, watched.version, watched.calendars, watched.since)
    for schedule in watched.config.all_schedules:
        promises.arm_due(control, terms, schedule, watched.now - watched.lookback)


def overdue_alerts(control: Control, watched: Watched) -> None:
    """8 (and alerts of lost timers): open SLA states with an instant past.

    Also where the config has no SLA any more: a run that was opened with one keeps it.
    """
    for schedule in watched.config.all_schedules:
        for state in records.recent_sla(control.store, watched.config.id, schedule.schedule_id):
            if sla.due(state, watched.now):
                sla_monitor.fire_alerts(control, state.key)


# ------------------------------------------------------------------------------------------------- 6, 7: silence


def trigger_deadlines(control: Control, watched: Watched) -> None:
    """6: the trigger's deadline passed without a run: FAILED_FINAL, a rerun request may still open it."""
    for schedule in watched.config.all_schedules:
        exists = _exists(control, watched, schedule)
        for finding in watchdog.deadlines_due(
            schedule,
            watched.calendars,
            watched.since,
            watched.now,
            exists,
            sla=watched.config.sla,
            latest=promises.latest_of(control.store, watched.config.id, schedule.schedule_id),
            lookback=watched.lookback,
        ):
            _expire(control, watched, schedule, finding)


def _expire(control: Control, watched: Watched, schedule: Schedule, finding: Finding) -> None:
    key = RunKey(watched.config.id, schedule.schedule_id, str(finding.period))
    current = catalog.in_force(control.store, watched.config.id)
    if current is None:
        return
    now = control.now()
    ended = Run(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        status=RunStatus.FAILED_FINAL,
        version=1,
        attempt=1,
        source=Source.FIRST,
        config_version=current.version,
        opened_at=now,
        first_opened_at=now,
        updated_at=now,
        opened_by="watchdog: the trigger deadline passed",
        final_reason=FinalReason.DEADLINE_EXPIRED,
        ended_at=now,
        message=finding.message,
    )
    event = records.event(finding.event, key, now, f"{key.pipeline}: {finding.message}", **finding.detail)
    writes: list[Write] = [records.put_run(ended, None), records.put_event(event)]
    control.store.commit([*writes, *opening.version_writes(control, current.config, current.document)])


def missing_post_run(control: Control, watched: Watched) -> None:
    """7: no post-run data newer than the completion within sensorTimeout, by the config the run was completed with.

    An AWAITED record is there as long as nobody has seen such data; a run's alert is given once, reruns included.
    """
    pk = keys.pipeline_pk(watched.config.id)
    for record in control.store.query(Table.CONTROL, pk, keys.AWAITED):
        completed, due = (parse_instant(record.item.get(name)) for name in ("completedAt", "dueAt"))
        if completed is None or due is None or watched.now < due:
            continue
        key = keys.run_of(pk, record.key.sk, keys.AWAITED)
        names, latest = _post_run_data(control, watched, key)
        # Only if it is still awaited: the data, or a rerun, may have come since the query.
        still = Matches({name: record.item.get(name) for name in ("attempt", "dueAt")})
        writes: list[Write] = [Delete(record.key, still)]
        known = records.was_alerted(control.store, key, EventType.POST_RUN_SENSOR_MISSING)
        if names and not known and watchdog.post_run_missing(completed, due, latest, watched.now):
            event = records.event(
                EventType.POST_RUN_SENSOR_MISSING,
                key,
                watched.now,
                f"no post-run sensor of {key.pipeline} for {key.date} came after its completion",
                keys=names,
                sensorTimeout=int((due - completed).total_seconds()),
            )
            once = records.once(key, EventType.POST_RUN_SENSOR_MISSING, watched.now)
            writes += [once, records.put_event(event)]
        control.store.commit(writes)


def _post_run_data(control: Control, watched: Watched, key: RunKey) -> tuple[list[str], datetime | None]:
    """What a completed run's post-run rules read, and when the newest of the sensors that count for it came."""
    run_ = records.get_run(control.store, key)
    if run_ is None:
        return [], None
    config = catalog.opened_with(control.store, run_.pipeline, run_.config_version)
    readings = readiness.post_run_readings(config)
    found = readiness.selected(control.store, config, key, readings, watched.now)
    latest = max((sensor.received_at for sensor in found.values()), default=None)
    return [one.key for one in readings], latest


CHECKS: Final[tuple[tuple[str, Callable[[Control, Watched], None]], ...]] = (
    ("stale-triggers", reconciling.stale_runs),
    ("missed-schedules", missed_schedules),
    ("missed-inclusions", missed_inclusions),
    ("trigger-reconciliation", reconciling.reconcile_triggers),
    ("sla-scheduling", sla_timers),
    ("trigger-deadlines", trigger_deadlines),
    ("post-run-sensors", missing_post_run),
    ("relative-sla", overdue_alerts),
)

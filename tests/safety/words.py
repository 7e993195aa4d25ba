"""Properties 5, 7, 8 and 9: what the controller hears and tells. Each yields what was violated, in words."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from interlock.control import readiness, records
from interlock.decide import calendars, cron, expected, late_data
from interlock.decide.rules import evaluate
from interlock.decide.sensors import choose, key_matches, period_of_write, reading_of, run_period, trigger_match
from interlock.model import keys
from interlock.model.config import PipelineConfig, Schedule, clock_time
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Period, day_period, parse_period
from interlock.model.run import FinalReason, Marker, Run, RunStatus, SlaKind, SlaState
from interlock.model.sensor import Sensor
from interlock.model.times import local_time_on, to_local, zone
from tests.safety.faults import FaultPlan
from tests.safety.ledger import Ledger, attempts

# Two turns of the watchdog and a moment: by then it has repaired what was lost.
PATIENCE: Final = timedelta(minutes=11)


Violations = Iterator[str]

# ------------------------------------------------------------------------------------------------------- 5: sensors


def every_write_considered(ledger: Ledger) -> Violations:
    """5: every stored sensor write is considered, at least once, after any crash; twice does no harm."""
    if lag := ledger.world.engine.router.lag():
        yield f"the stream-router has {lag} changes left"
    for run in ledger.runs.values():
        yield from _read_by(ledger, run)
    for pipeline, config in ledger.configs.items():
        settled = ledger.history.configs[pipeline].last.since + PATIENCE < ledger.now
        for found in ledger.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.SENSOR) if settled else []:
            sensor = records.sensor_of(found.key.sk[len(keys.SENSOR) :], found.item)
            for schedule in config.all_schedules:
                trigger = schedule.trigger
                own = period_of_write(sensor.key, sensor.data)
                if trigger is None or not key_matches(trigger.key, sensor.key) or own.problem:
                    continue
                if trigger_match(trigger, sensor, ledger.now).passed and not _opened_for(
                    ledger, pipeline, schedule, sensor
                ):
                    yield f"{pipeline}: sensor {sensor.key} meets the trigger, and nothing was opened, told or withheld"


def _opened_for(ledger: Ledger, pipeline: str, schedule: Schedule, sensor: Sensor) -> bool:
    """Did the write lead to a run, or to a word of why not? Which run it is, property 3 asks."""
    reported = (EventType.PIPELINE_EXCLUDED, EventType.SENSOR_INVALID, EventType.DRY_RUN_WOULD_TRIGGER)
    if any(key.pipeline == pipeline for key in ledger.runs):
        return True
    if sensor.received_at <= ledger.history.disturbed_at(pipeline, [], ledger.now):
        period = run_period(schedule, sensor)  # at the time there was another trigger, or another calendar
        if isinstance(period, str) or expected.calendar_reason(schedule, ledger.calendars, period) is not None:
            return True
    if ledger.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.DRY_RUN, limit=1):
        return True
    if ledger.configs[pipeline].dry_run and sensor.received_at <= ledger.history.configs[pipeline].last.since:
        return True  # a dry run observes what comes from then on
    return any(event.type in reported for event in ledger.world.events if event.pipeline_id == pipeline)


def _read_by(ledger: Ledger, run: Run) -> Violations:
    config, latest = ledger.config_of(run), ledger.configs.get(run.pipeline)
    if _waits_ready(ledger, run, config) or (latest is not None and _held_ready(ledger, run, config, latest)):
        yield f"{run.key} is {run.status} ({run.final_reason}), but its rules pass: a sensor write was not considered"
    trigger = config.schedule_of(run.schedule).trigger
    if run.status is not RunStatus.COMPLETED or run.trigger_payload is None or trigger is None:
        return
    if ledger.history.disturbed_at(run.pipeline, [trigger.key], ledger.now) >= (run.passed_at or ledger.now):
        return  # another config's trigger, or one that shows since another expired: nobody wrote
    payload = readiness.trigger_payload(ledger.store, config, run.key, ledger.now)
    changed = late_data.significant_changes(run.trigger_payload, payload) if payload is not None else ()
    if changed:
        yield f"{run.key} is COMPLETED, but {', '.join(changed)} of its trigger changed and nobody was told"


def _waits_ready(ledger: Ledger, run: Run, config: PipelineConfig) -> bool:
    """Does it wait though its rules pass? What no write tells of, it sees after its interval."""
    waiting = run.status is RunStatus.PENDING and run.passed_at is None and run.key in ledger.active
    disturbed = ledger.history.disturbed_at(run.pipeline, _rule_keys(config), ledger.now)
    interval = config.schedule_of(run.schedule).evaluation.interval
    unseen = disturbed > ledger.world.scenario.start and disturbed + interval + PATIENCE > ledger.now
    if not waiting or unseen or run.updated_at + PATIENCE > ledger.now:
        return False
    return readiness.readiness(ledger.store, config, run.key, ledger.now).passed


def _held_ready(ledger: Ledger, run: Run, config: PipelineConfig, latest: PipelineConfig) -> bool:
    """Did its window close, and a write since make its rules pass, as they are now?"""
    schedule = latest.find_schedule(run.schedule)
    held = run.final_reason is FinalReason.VALIDATION_EXHAUSTED and run.ended_at is not None
    over = ledger.now >= (run.ended_at or ledger.now) + timedelta(days=1)
    after_window = config.schedule_of(run.schedule).evaluation.after_window
    if not held or over or after_window != "reopen" or schedule is None or latest.dry_run:
        return False
    disturbed = ledger.history.disturbed_at(run.pipeline, _rule_keys(latest), ledger.now)
    if disturbed > ledger.world.scenario.start and not any(
        at > disturbed and readiness.reads(latest, key) for at, key, _ in ledger.history.sensor_writes(run.pipeline)
    ):
        return False
    if expected.calendar_reason(schedule, ledger.calendars, run.key.period) is not None:
        return False
    rules, scope = latest.validation.rules, readiness.reopening_scope(latest, run)
    found = readiness.gather(ledger.store, latest, run.key, _rule_keys(latest))
    chosen = choose([reading_of(rule) for rule in rules], found, scope, ledger.now).values()
    # One that names no period and came too late opens nothing, also where a rule takes any period.
    about = [
        one
        for one in chosen
        if period_of_write(one.key, one.data).period or one.received_at < (scope.until or ledger.now)
    ]
    passed = evaluate(rules, latest.validation.trigger, found, scope, ledger.now).passed
    return passed and any(one.received_at >= (run.ended_at or ledger.now) for one in about)


def _rule_keys(config: PipelineConfig) -> list[str]:
    return [rule.key for rule in config.validation.rules]


# ----------------------------------------------------------------------------------------------------------- 7: SLA

_ALERTS: Final = {
    SlaKind.READINESS: EventType.READINESS_LATE,
    SlaKind.WARNING: EventType.SLA_WARNING,
    SlaKind.BREACH: EventType.SLA_BREACH,
    SlaKind.RELATIVE_WARNING: EventType.RELATIVE_SLA_WARNING,
    SlaKind.RELATIVE_BREACH: EventType.RELATIVE_SLA_BREACH,
}
_OVERTAKEN: Final = {
    SlaKind.READINESS: SlaKind.BREACH,
    SlaKind.WARNING: SlaKind.BREACH,
    SlaKind.RELATIVE_WARNING: SlaKind.RELATIVE_BREACH,
}
_VERDICTS: Final = (EventType.SLA_MET, EventType.SLA_RECOVERED)
_GIVEN_UP: Final = (FinalReason.RETRIES_USED_UP, FinalReason.POLL_EXHAUSTED, FinalReason.WITHDRAWN)


def alerts_once(ledger: Ledger) -> Violations:
    """7: each SLA alert at most once per run, never after it finished, never missed if it did not."""
    for key, events in ledger.events.items():
        finished = False
        for event in events:
            if event.type in _ALERTS.values() and finished:
                yield f"{key}: {event.type} at {event.timestamp}, after the run had completed"
            finished = finished or event.type is EventType.JOB_COMPLETED
        for type_, count in Counter(event.type for event in events).items():
            if count > 1 and (type_ in _ALERTS.values() or type_ in _VERDICTS):
                yield f"{key}: {count} times {type_}"
        if len([event for event in events if event.type in _VERDICTS]) > 1:
            yield f"{key}: more than one SLA verdict"
    for state in ledger.slas:
        yield from _missed_alerts(ledger, state)


def _missed_alerts(ledger: Ledger, state: SlaState) -> Violations:
    run = ledger.runs.get(state.key)
    over = state.closed_at or ledger.now
    if state.outcome is None and run is not None and run.first_completed_at is not None:
        yield f"{state.key} has completed, but its SLA is still open"
    if state.outcome is None and run is not None and run.final_reason in _GIVEN_UP:
        yield f"{state.key} has failed for good ({run.final_reason}), but its SLA is still open"
    lost = _unwatched(ledger, state) and bool(getattr(ledger.world, "plan", FaultPlan()).lost_timers)
    for kind, type_ in _ALERTS.items():
        at = state.instant(kind)
        reported = ledger.of(state.key, type_)
        if bool(reported) != (kind in state.fired):
            yield f"{state.key}: {type_} was {'' if reported else 'not '}reported, its state says otherwise"
        breached = _OVERTAKEN.get(kind) in state.fired or (kind is SlaKind.READINESS and state.ready_at is not None)
        begun = max(at, run.first_opened_at) if at is not None and run is not None else at
        silent = bool(reported) or breached or lost or state.back_fill
        if begun is not None and begun + PATIENCE < over and not silent:
            yield f"{state.key}: {type_} was due at {at} and never given; the run was over at {over}"


def _unwatched(ledger: Ledger, state: SlaState) -> bool:
    """Its pipeline, or its schedule, is gone or a dry run: the watchdog makes up for no lost timer there."""
    config = ledger.configs.get(state.pipeline)
    return config is None or config.dry_run or config.find_schedule(state.schedule) is None


# -------------------------------------------------------------------------------------------------------- 8: events

_REASONS: Final = {
    FinalReason.VALIDATION_EXHAUSTED: EventType.VALIDATION_EXHAUSTED,
    FinalReason.DEADLINE_EXPIRED: EventType.SENSOR_DEADLINE_EXPIRED,
    FinalReason.TRIGGER_EXHAUSTED: EventType.RETRY_EXHAUSTED,
    FinalReason.UNCERTAIN: EventType.TRIGGER_UNCERTAIN,
    FinalReason.INFRA: EventType.INFRA_FAILURE,
    FinalReason.STALE: EventType.SFN_TIMEOUT,
    FinalReason.RETRIES_USED_UP: EventType.RETRY_EXHAUSTED,
    FinalReason.POLL_EXHAUSTED: EventType.JOB_POLL_EXHAUSTED,
    FinalReason.WITHDRAWN: EventType.RUN_WITHDRAWN,
    FinalReason.CANCELLED: EventType.JOB_CANCELLED,
}


def events_with_changes(ledger: Ledger) -> Violations:
    """8: events are committed with the change they tell of; delivered at least once; in order per pipeline."""
    for key, run in ledger.runs.items():
        expected: EventType | None = None
        if run.status is RunStatus.COMPLETED:
            expected = EventType.JOB_COMPLETED
        elif run.final_reason is not None:
            expected = _REASONS[run.final_reason]
        elif run.status is RunStatus.RUNNING:
            expected = EventType.JOB_TRIGGERED
        known = attempts(ledger.of(key, expected)) if expected is not None else []
        if expected is EventType.SENSOR_DEADLINE_EXPIRED:
            known = [1 for _ in known]
        if expected is not None and run.attempt not in known:
            yield f"{key} attempt {run.attempt} is {run.status} ({run.final_reason}), but {expected} was never told"
        first = 2 if ledger.of(key, EventType.SENSOR_DEADLINE_EXPIRED) else 1
        if attempts(ledger.of(key, EventType.TRIGGER_STARTED)) != list(range(first, run.attempt + 1)):
            yield f"{key} is at attempt {run.attempt}, but TRIGGER_STARTED does not tell of each"
    yield from _in_order(ledger)


def _in_order(ledger: Ledger) -> Violations:
    delivered: list[Event] | None = getattr(ledger.world, "delivered", None)
    if lag := ledger.world.engine.sink.lag():
        yield f"the event-sink has {lag} changes left"
    for pipeline in ledger.pipelines:
        committed = [event for event in ledger.world.events if event.pipeline_id == pipeline]
        if _stored(ledger, pipeline) != committed:
            yield f"{pipeline}: the events table does not have the events in the order of their commits"
        if delivered is None:
            continue
        seen: list[Event] = []
        for event in delivered:
            if event.pipeline_id == pipeline and event not in seen:
                seen.append(event)
        if seen != [event for index, event in enumerate(committed) if event not in committed[:index]]:
            yield f"{pipeline}: the bus did not deliver every event in the order of the commits"


def _stored(ledger: Ledger, pipeline: str) -> list[Event]:
    """The events table, by time and, within a millisecond, by the counter that ends each sort key."""
    found = ledger.store.query(Table.EVENTS, keys.pipeline_pk(pipeline))
    found = [one for one in found if one.key.sk[:1].isdigit()]
    found.sort(key=lambda one: (one.key.sk.partition("#")[0], one.key.sk.rpartition("#")[2]))
    return [records.convert(one.item, Event, one.key) for one in found]


# ------------------------------------------------------------------------------------------------------- 9: silence


def nothing_silent(ledger: Ledger) -> Violations:
    """9: nothing fails silently: what is dropped is a dead letter, an event or an error."""
    if dead := ledger.world.dead_letters():
        yield f"{dead} changes or timers became dead letters, though nothing of the world is broken"
    for event in ledger.world.events:
        if event.type in (EventType.WATCHDOG_DEGRADED, EventType.INFRA_FAILURE):
            yield f"{event.pipeline_id} {event.date}: {event.type}, though nothing is broken: {event.message}"
    decided = Counter(one["decision"] for one in ledger.requests if "decision" in one)
    for request in ledger.requests:
        if "decision" not in request:
            yield f"the rerun request {request['id']} of {request['pipeline']} for {request['date']} was never decided"
    for decision, type_ in (("accepted", EventType.RERUN_ACCEPTED), ("rejected", EventType.RERUN_REJECTED)):
        reported = sum(1 for event in ledger.world.events if event.type is type_)
        if reported != decided[decision]:
            yield f"{decided[decision]} rerun requests were {decision}, but {reported} were told of"
    yield from _silent_ticks(ledger)
    yield from _silent_cascades(ledger)


def _silent_ticks(ledger: Ledger) -> Violations:
    for pipeline, eras in ledger.history.configs.items():
        for era in eras.all:
            config, until = era.value, min(era.until or ledger.now, ledger.now) - PATIENCE
            if config is None or config.dry_run or until <= era.since:
                continue
            for schedule in config.all_schedules:
                for at, date in _due(ledger, schedule, era.since, until):
                    key = RunKey(pipeline, schedule.schedule_id, date)
                    if key not in ledger.runs and not ledger.of(key, *_WHY_NOT):
                        yield f"{key}: {at} opened nothing, and nobody was told"


_WHY_NOT: Final = (
    EventType.PIPELINE_EXCLUDED,
    EventType.SCHEDULE_MISSED,
    EventType.IRREGULAR_SCHEDULE_MISSED,
)


def _due(ledger: Ledger, schedule: Schedule, since: datetime, until: datetime) -> Iterator[tuple[datetime, str]]:
    """The instants at which the clock opens a run, and its date."""
    if schedule.cron is not None:
        yield from ((tick.at, str(tick.period)) for tick in cron.ticks_between(schedule, since, until))
    if schedule.include is None or schedule.trigger is not None:
        return
    tz, time = zone(schedule.timezone), clock_time(schedule.time or "00:00")
    day, last = to_local(since, tz).date(), to_local(until, tz).date()
    while day <= last:
        at = local_time_on(day, time, tz)
        named = [*ledger.history.calendars_at(at), *ledger.history.calendars_at(at + PATIENCE)]
        if since < at <= until and all(calendars.inclusion(schedule, one, day) is None for one in named):
            yield at, str(day)
        day += timedelta(days=1)


def _silent_cascades(ledger: Ledger) -> Violations:
    """Upstreams that have completed all that a run waits for, and no run."""
    for pipeline, config in ledger.configs.items():
        disturbed = ledger.history.disturbed_at(pipeline, [], ledger.now)
        if config.dry_run or not config.after or disturbed + PATIENCE > ledger.now:
            continue
        schedule = config.all_schedules[0]
        for period in _marked(ledger, pipeline):
            key = RunKey(pipeline, schedule.schedule_id, str(period))
            opened = key in ledger.runs or expected.calendar_reason(schedule, ledger.calendars, period) is not None
            if not opened and not readiness.awaited_upstreams(ledger.store, config, key):
                yield f"{key}: all its upstreams completed, and it was never opened"


def _marked(ledger: Ledger, pipeline: str) -> set[Period]:
    """The periods, and the days, for which upstreams left a marker a while ago."""
    found = ledger.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.MARKER)
    markers = [records.convert(record.item, Marker, record.key) for record in found]
    periods = {parse_period(one.date) for one in markers if one.completed_at + PATIENCE < ledger.now}
    return periods | {day_period(period.day) for period in periods}

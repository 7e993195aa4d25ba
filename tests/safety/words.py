"""Properties 5, 7, 8 and 9: what the controller hears and tells. Each yields what was violated, in words."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from interlock.control import readiness, records
from interlock.decide import calendars, cron, late_data
from interlock.decide.sensors import key_matches, period_of_write, trigger_match
from interlock.model import keys
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import FinalReason, Run, RunStatus, SlaKind, SlaState
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
        for found in ledger.store.query(Table.CONTROL, keys.pipeline_pk(pipeline), keys.SENSOR):
            sensor = records.sensor_of(found.key.sk[len(keys.SENSOR) :], found.item)
            for schedule in config.all_schedules:
                trigger = schedule.trigger
                own = period_of_write(sensor.key, sensor.data)
                if trigger is None or not key_matches(trigger.key, sensor.key) or own.problem:
                    continue
                if trigger_match(trigger, sensor, ledger.now).passed and not _opened_for(ledger, pipeline, sensor.key):
                    yield f"{pipeline}: sensor {sensor.key} meets the trigger, and nothing was opened, told or withheld"


def _opened_for(ledger: Ledger, pipeline: str, sensor_key: str) -> bool:
    """Did the write lead to a run, or to a word of why not? Which run it is, property 3 asks."""
    told = (EventType.PIPELINE_EXCLUDED, EventType.SENSOR_INVALID, EventType.DRY_RUN_WOULD_TRIGGER)
    if any(key.pipeline == pipeline for key in ledger.runs):
        return True
    if ledger.configs[pipeline].dry_run and ledger.store.query(
        Table.CONTROL, keys.pipeline_pk(pipeline), keys.DRY_RUN, limit=1
    ):
        return True
    return any(event.type in told for event in ledger.world.events if event.pipeline_id == pipeline)


def _read_by(ledger: Ledger, run: Run) -> Violations:
    config = ledger.configs[run.pipeline]
    schedule = config.schedule_of(run.schedule)
    waiting = run.status is RunStatus.PENDING and run.passed_at is None and run.key in ledger.active
    exhausted = run.final_reason is FinalReason.VALIDATION_EXHAUSTED
    held = exhausted and schedule.evaluation.after_window == "reopen" and run.ended_at is not None
    fresh = run.updated_at + PATIENCE > ledger.now
    open_to_writes = (waiting and not fresh) or (held and ledger.now < (run.ended_at or ledger.now) + timedelta(days=1))
    excluded = calendars.withheld(schedule, ledger.calendars, run.key.period.day)
    if open_to_writes and excluded is None and readiness.readiness(ledger.store, config, run.key, ledger.now).passed:
        yield f"{run.key} is {run.status} ({run.final_reason}), but its rules pass: a sensor write was not considered"
    if run.status is RunStatus.COMPLETED and run.trigger_payload is not None:
        payload = readiness.trigger_payload(ledger.store, config, run.key, ledger.now)
        changed = late_data.significant_changes(run.trigger_payload, payload) if payload is not None else ()
        if changed:
            yield f"{run.key} is COMPLETED, but {', '.join(changed)} of its trigger changed and nobody was told"


# ----------------------------------------------------------------------------------------------------------- 7: SLA

_ALERTS: Final = {
    SlaKind.WARNING: EventType.SLA_WARNING,
    SlaKind.BREACH: EventType.SLA_BREACH,
    SlaKind.RELATIVE_WARNING: EventType.RELATIVE_SLA_WARNING,
    SlaKind.RELATIVE_BREACH: EventType.RELATIVE_SLA_BREACH,
}
_VERDICTS: Final = (EventType.SLA_MET, EventType.SLA_RECOVERED)
_GIVEN_UP: Final = (FinalReason.RETRIES_USED_UP, FinalReason.POLL_EXHAUSTED)


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
    for kind, type_ in _ALERTS.items():
        at = state.instant(kind)
        told = ledger.of(state.key, type_)
        if bool(told) != (kind in state.fired):
            yield f"{state.key}: {type_} was {'' if told else 'not '}told, its state says otherwise"
        breached = (kind is SlaKind.WARNING and SlaKind.BREACH in state.fired) or (
            kind is SlaKind.RELATIVE_WARNING and SlaKind.RELATIVE_BREACH in state.fired
        )
        begun = max(at, run.first_opened_at) if at is not None and run is not None else at
        if begun is not None and begun + PATIENCE < over and not told and not breached:
            yield f"{state.key}: {type_} was due at {at} and never given; the run was over at {over}"


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
    for pipeline in ledger.configs:
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
        told = sum(1 for event in ledger.world.events if event.type is type_)
        if told != decided[decision]:
            yield f"{decided[decision]} rerun requests were {decision}, but {told} were told of"
    yield from _silent_ticks(ledger)


def _silent_ticks(ledger: Ledger) -> Violations:
    for pipeline, config in ledger.configs.items():
        for schedule in config.all_schedules:
            if schedule.cron is None or config.dry_run:
                continue
            for tick in cron.ticks_between(schedule, ledger.world.scenario.start, ledger.now - PATIENCE):
                key = RunKey(pipeline, schedule.schedule_id, str(tick.period))
                told = ledger.of(key, EventType.PIPELINE_EXCLUDED, EventType.SCHEDULE_MISSED)
                if key not in ledger.runs and not told:
                    yield f"{key}: the tick of {tick.at} opened nothing, and nobody was told"

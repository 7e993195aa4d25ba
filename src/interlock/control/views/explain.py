"""Gathers the facts for `why`: which run is meant, and everything the store knows of it. Reads only."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from interlock.control import catalog, pools, probing, promises, readiness, records
from interlock.control.catalog import Stored
from interlock.control.views import pipeline_views, run_views
from interlock.control.views.run_views import Attempt, RunDetail
from interlock.decide import calendars, cron, expected, plan, sensors, sla, why
from interlock.decide.checks import RuleResult
from interlock.decide.expected import expected_granularity, expected_in, is_expected
from interlock.decide.real_periods import no_such_period
from interlock.decide.rules import evaluate
from interlock.decide.watchdog import trigger_deadline
from interlock.decide.why_facts import AttemptFact, Facts, NotableEvent, RuleFact
from interlock.model import keys
from interlock.model.config import PipelineConfig, Schedule, clock_time
from interlock.model.errors import InvalidValueError, StoreError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Period, day_period, parse_period, period_of
from interlock.model.run import DryRun, FinalReason, JobEvent, JobRecord, Run, RunStatus, SlaState
from interlock.model.times import local_time_on, to_local, zone
from interlock.ports.store import Store

_NOTEWORTHY: Final = frozenset(
    {
        EventType.RERUN_REJECTED,
        EventType.LATE_DATA_ARRIVAL,
        EventType.POST_RUN_DRIFT,
        EventType.POST_RUN_FAILED,
        EventType.POST_RUN_SENSOR_MISSING,
        EventType.BASELINE_CAPTURE_FAILED,
        EventType.TRIGGER_RECOVERED,
        EventType.SCHEDULE_MISSED,
        EventType.IRREGULAR_SCHEDULE_MISSED,
    }
)
_MOST_EVENTS: Final = 5
_LOOK_BACK: Final = timedelta(days=3)
_TICKS_BACK: Final = 100


def explain(
    store: Store, pipeline: str, now: datetime, *, date: str | None = None, schedule: str | None = None
) -> why.Explanation:
    """Why a pipeline ran or did not.

    Without a date: its latest run or, if a later period is due and has no run, that one. An unknown pipeline, schedule
    or date is an error that says so.
    """
    found = pipeline_views.known(store, pipeline)
    if found.config is None:
        return why.explain_invalid(pipeline, found.errors, now)
    key = _meant(store, found.config, now, date, schedule)
    return why.explain(gather(store, found, key, now))


# ---------------------------------------------------------------------------------------------- which run is meant


def _meant(store: Store, config: PipelineConfig, now: datetime, date: str | None, schedule: str | None) -> RunKey:
    wanted = [config.schedule_of(schedule)] if schedule else list(config.all_schedules)
    if date is not None:
        period = parse_period(date)
        key = RunKey(config.id, wanted[0].schedule_id, str(period))
        # Of several schedules, that with a run of the date; two rarely have the same.
        slots = [RunKey(config.id, one.schedule_id, str(period)) for one in wanted]
        return next((one for one in slots if records.get_run(store, one) is not None), key)
    candidates = [(_current_period(store, config, one, now), one.schedule_id) for one in wanted]
    period, schedule_id = max(candidates, key=lambda one: (one[0].at, one[1]))
    return RunKey(config.id, schedule_id, str(period))


def _current_period(store: Store, config: PipelineConfig, schedule: Schedule, now: datetime) -> Period:
    """The latest run's period, or a later one that is due; without either, the one that comes next."""
    latest = records.latest_run(store, config.id, schedule.schedule_id)
    ran = parse_period(latest.date) if latest is not None else None
    due = _due_period(store, config, schedule, now)
    if due is not None and (ran is None or due.at > ran.at):
        return due
    if ran is not None:
        return ran
    upcoming = plan.next_start(schedule, catalog.calendars(store), now)
    if upcoming is not None:
        return upcoming[1]
    expected = expected_granularity(schedule, config.sla, promises.latest_of(store, config.id, schedule.schedule_id))
    return period_of(to_local(now, zone(schedule.timezone)), expected)


def _due_period(store: Store, config: PipelineConfig, schedule: Schedule, now: datetime) -> Period | None:
    """The latest period that should have a run by now."""
    since = catalog.watched_since(store, config.id) or now
    if schedule.cron is not None:
        return _due_tick(schedule, catalog.calendars(store), since, now)
    named = catalog.calendars(store)
    due = [_marked(store, config, schedule)]
    for period in _recent_periods(store, config, schedule, now):
        at = _due_at(config, schedule, named, period)
        due.append(period if at is not None and since <= at <= now else None)
    return max((one for one in due if one is not None), key=lambda one: one.at, default=None)


def _recent_periods(store: Store, config: PipelineConfig, schedule: Schedule, now: datetime) -> Iterator[Period]:
    """The periods of the last days for which runs are expected: the days themselves, or their hours."""
    latest = promises.latest_of(store, config.id, schedule.schedule_id)
    today = to_local(now, zone(schedule.timezone)).date()
    for back in range(_LOOK_BACK.days + 1):
        yield from expected_in(schedule, config.sla, day_period(today - timedelta(days=back)), latest)


def _due_tick(schedule: Schedule, named: calendars.Calendars, since: datetime, now: datetime) -> Period | None:
    """The period of the latest tick that opens a run; today's counts also if it is excluded, since people ask."""
    today = to_local(now, zone(schedule.timezone)).date()
    before = now
    for _ in range(_TICKS_BACK):
        tick = cron.previous_tick(schedule, before)
        if tick is None or tick.at < since:
            return None
        day = tick.local.date()
        if day == today or calendars.exclusion(schedule, named, day) is None:
            return tick.period
        before = tick.at - tick.at.resolution
    return None


def _marked(store: Store, config: PipelineConfig, schedule: Schedule) -> Period | None:
    """The latest period that an upstream has completed: the cascade is at least half way there."""
    if not config.after or schedule is not config.all_schedules[0]:
        return None
    prefix = f"{keys.MARKER}{schedule.schedule_id}#"
    found = store.query(Table.CONTROL, keys.pipeline_pk(config.id), prefix, reverse=True, limit=1)
    if not found:
        return None
    period = parse_period(found[0].key.sk[len(prefix) :].split("#")[0])
    return day_period(period.day) if any(one.require == "all-hours" for one in config.after) else period


def _due_at(config: PipelineConfig, schedule: Schedule, named: calendars.Calendars, period: Period) -> datetime | None:
    """From when on a sensor-driven or dated period without a run is worth asking about."""
    if calendars.withheld(schedule, named, period.day) is not None:
        return None
    if schedule.include is not None:
        return local_time_on(period.day, clock_time(schedule.time or "00:00"), zone(schedule.timezone))
    deadline = trigger_deadline(schedule.trigger, schedule, period) if schedule.trigger is not None else None
    instants = [deadline]
    if config.sla is not None and not config.dry_run:
        times = sla.sla_times(config.sla, schedule, period, None)
        instants += [times.ready_by_at, times.warning_at, times.breach_at]
    return min((one for one in instants if one is not None), default=None)


# ------------------------------------------------------------------------------------------------------- the facts


def gather(store: Store, found: Stored, key: RunKey, now: datetime) -> Facts:
    """Everything the store knows of a run, or of a run that does not exist."""
    detail = run_views.run(store, key, now)
    run = records.get_run(store, key) if detail is not None else None
    config = _config_of(store, found, run)
    schedule = config.schedule_of(key.schedule)
    tick_at = _clock_of(schedule, key.period)
    named = catalog.calendars(store)
    rules, rules_at = _rules(store, config, key, run, detail, now)
    state = records.get_sla(store, key) if run is not None else _promised(store, found, key, now)
    upcoming = plan.next_start(schedule, named, now)
    return Facts(
        config=config,
        schedule=schedule,
        key=key,
        now=now,
        run=run,
        attempts=tuple(_attempts(detail)) if detail is not None else (),
        rules=tuple(rules),
        rules_at=rules_at,
        unreal=no_such_period(config, schedule, key.period) if run is None else None,
        undated=tuple(readiness.undated_inputs(store, config, key, run, now)),
        withheld=expected.calendar_reason(schedule, named, key.period) if run is None else None,
        awaited_upstreams=_awaited(store, config, schedule, key) if run is None else (),
        place=pools.place(store, run, config.job, now) if run is not None else None,
        sla=state,
        tick_at=tick_at,
        expected=is_expected(schedule, config.sla, key.period, promises.latest_of(store, key.pipeline, key.schedule)),
        watched_since=catalog.watched_since(store, key.pipeline),
        next_start=(upcoming[0], str(upcoming[1])) if upcoming is not None else None,
        events=tuple(_notable(detail)) if detail is not None else (),
        dry=records.get(store, records.run_record(key, keys.DRY_RUN), DryRun),
        config_changed=run is not None and run.active and run.config_version != found.version,
    )


def _config_of(store: Store, found: Stored, run: Run | None) -> PipelineConfig:
    """The config the attempt was opened with; the current one when there is none, or it is not kept any more."""
    if found.config is None:
        raise InvalidValueError(f"the config of {found.pipeline} is invalid: {'; '.join(found.errors)}")
    if run is None:
        return found.config
    try:
        return catalog.opened_with(store, run.pipeline, run.config_version)
    except StoreError:
        return found.config


def _clock_of(schedule: Schedule, period: Period) -> datetime | None:
    """When the clock opens the run of a period."""
    if schedule.cron is not None:
        tick = cron.tick_of_period(schedule, period)
        return tick.at if tick is not None else None
    if schedule.include is not None and schedule.trigger is None:
        return local_time_on(period.day, clock_time(schedule.time or "00:00"), zone(schedule.timezone))
    return None


def _awaited(store: Store, config: PipelineConfig, schedule: Schedule, key: RunKey) -> tuple[str, ...]:
    if not config.after or schedule is not config.all_schedules[0]:
        return ()
    return readiness.awaited_upstreams(store, config, key)


def _promised(store: Store, found: Stored, key: RunKey, now: datetime) -> SlaState | None:
    """What is promised of a period without a run. Without a stored state, nothing that is past will still be given."""
    stored = records.get_sla(store, key)
    state = promises.promised(store, promises.terms_of(store, found), key, stored)
    if stored is not None or state is None:
        return state
    return None if sla.is_over(state, now) else sla.watched_from(state, now)


def _rules(
    store: Store, config: PipelineConfig, key: RunKey, run: Run | None, detail: RunDetail | None, now: datetime
) -> tuple[list[RuleFact], datetime | None]:
    """As they stand now while that matters; otherwise as they were when the attempt was decided."""
    held = run is not None and run.final_reason is FinalReason.VALIDATION_EXHAUSTED
    waiting = run is None or (run.status is RunStatus.PENDING and run.passed_at is None)
    if not (waiting or held) and detail is not None and detail.rules:
        at = detail.passed_at or detail.ended_at
        return [RuleFact(result) for result in detail.rules], at
    rules = config.validation.rules
    observed = readiness.gather(store, config, key, [rule.key for rule in rules])
    # Of a run that gave up it matters what would open it again.
    scope = readiness.reopening_scope(config, run) if held and run is not None else readiness.scope(config, key)
    verdict = evaluate(rules, config.validation.trigger, observed, scope, now)
    received = [sensors.select(sensors.reading_of(rule), observed, scope, now).sensor for rule in rules]
    failing = probing.failures(store, config, key)
    return [
        RuleFact(_with_probe(result, failing), one.received_at if one is not None else None)
        for result, one in zip(verdict.results, received, strict=True)
    ], None


def _with_probe(result: RuleResult, failing: Mapping[str, str]) -> RuleResult:
    """Why nobody writes the sensor that a rule waits for, where a probe should."""
    if result.passed or result.key not in failing:
        return result
    return msgspec.structs.replace(result, reason=f"{result.reason}; its probe fails: {failing[result.key]}")


def _attempts(detail: RunDetail) -> Iterator[AttemptFact]:
    for one in detail.attempts:
        log = [record for record in detail.job_log if record.attempt == one.attempt]
        yield AttemptFact(
            number=one.attempt,
            source=one.source.value if one.source is not None else "",
            opened_at=one.opened_at,
            opened_by=one.opened_by or one.reason,
            requested_by=one.requested_by,
            passed_at=one.passed_at,
            triggered_at=one.triggered_at,
            ended_at=one.ended_at,
            job_id=one.job_id,
            outcome=one.outcome,
            error=_error(one, log),
            category=next((record.category for record in reversed(log) if record.category is not None), None),
            warning=next((record.warning for record in reversed(log) if record.warning), ""),
            refused=sum(record.event is JobEvent.INFRA_TRIGGER_FAILURE for record in log),
        )


def _error(attempt: Attempt, log: Sequence[JobRecord]) -> str:
    """What the attempt's job said, and whose fault that is; empty for one that completed."""
    if attempt.outcome == "completed":
        return ""
    # Our own record of a closed poll window says nothing that the outcome does not.
    other = JobEvent.RERUN_REJECTED
    said = [one for one in log if one.error and one.event is not other and one.reported_by != "interlock"]
    if not said:
        return ""
    last = said[-1]
    category = f" ({last.category})" if last.category is not None else ""
    return f"{last.error}{category}"


def _notable(detail: RunDetail) -> Iterator[NotableEvent]:
    worth = [one for one in detail.events if one.type in _NOTEWORTHY]
    yield from (NotableEvent(one.timestamp, one.type.value, one.message) for one in worth[-_MOST_EVENTS:])

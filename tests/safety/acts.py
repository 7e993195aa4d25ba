"""Properties 1, 2, 3, 4 and 6: what the controller does. Each yields what was violated, in words."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Final

from interlock.control import records
from interlock.control.attempts import parts, starting
from interlock.decide import cascade, expected, reruns
from interlock.decide.sensors import key_matches, period_of_write
from interlock.model import keys
from interlock.model.config import Mode, PipelineConfig, Validation
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import DryRun, JobEvent, RerunRecord, Run, RunStatus, Source
from interlock.model.times import zone
from interlock.simulation.scenario import Step
from tests.safety.ledger import Ledger, attempts, true_jobs

# Two turns of the watchdog and a moment: by then it has repaired what was lost.
PATIENCE: Final = timedelta(minutes=11)


Violations = Iterator[str]
_ENDINGS: Final = (
    EventType.JOB_COMPLETED,
    EventType.JOB_FAILED,
    EventType.JOB_TIMEOUT,
    EventType.JOB_POLL_EXHAUSTED,
    EventType.RETRY_EXHAUSTED,
    EventType.VALIDATION_EXHAUSTED,
    EventType.SENSOR_DEADLINE_EXPIRED,
    EventType.TRIGGER_UNCERTAIN,
    EventType.INFRA_FAILURE,
    EventType.SFN_TIMEOUT,
    EventType.RUN_WITHDRAWN,
    EventType.JOB_CANCELLED,
)
_RETRIES: Final = (Source.JOB_FAIL_CODE, Source.JOB_FAIL_TRANSIENT)
_ONCE_PER_ATTEMPT: Final = (
    EventType.TRIGGER_STARTED,
    EventType.VALIDATION_PASSED,
    EventType.JOB_TRIGGERED,
    EventType.JOB_STARTED,
    EventType.JOB_COMPLETED,
    EventType.JOB_FAILED,
    EventType.JOB_TIMEOUT,
    EventType.JOB_POLL_EXHAUSTED,
    EventType.VALIDATION_EXHAUSTED,
)


# ------------------------------------------------------------------------------------------------------ 1, 2: starts


def rules_first(ledger: Ledger) -> Violations:
    """1: no job starts unless the rules passed in an evaluation of the same attempt."""
    for key, events in ledger.events.items():
        passed: set[int] = set()
        for event in events:
            if event.type is EventType.VALIDATION_PASSED:
                config = ledger.opened_with(key, event.detail["attempt"])
                if config is not None and _results_pass(event, config.validation):
                    passed.add(event.detail["attempt"])
                else:
                    yield f"{key}: VALIDATION_PASSED with rules that did not pass: {event.detail['results']}"
            if event.type is EventType.JOB_TRIGGERED and event.detail["attempt"] not in passed:
                yield f"{key} attempt {event.detail['attempt']}: JOB_TRIGGERED without VALIDATION_PASSED before it"
    seen = {
        (str(key), attempt)
        for key in ledger.events
        for attempt in attempts(ledger.of(key, EventType.VALIDATION_PASSED))
    }
    for key_text, attempt in ledger.world.targets.starts:
        if (key_text, attempt) not in seen:
            yield f"{key_text} attempt {attempt}: the target was called though the rules never passed"


def _results_pass(event: Event, asked: Validation) -> bool:
    """Do the results tell of the rules that the attempt was opened with, and do they pass?"""
    results = [bool(one["passed"]) for one in event.detail["results"]]
    if [one["key"] for one in event.detail["results"]] != [rule.key for rule in asked.rules]:
        return False
    return any(results) if asked.trigger is Mode.ANY else all(results) and bool(results)


def one_at_a_time(ledger: Ledger) -> Violations:
    """2: at most one active attempt per run; at most one job start per attempt."""
    for (key_text, attempt), count in Counter(ledger.world.targets.starts).items():
        if count > 1:
            yield f"{key_text} attempt {attempt}: its job was started {count} times"
    for key, events in ledger.events.items():
        yield from _attempts_in_turn(key, events)
        for type_ in _ONCE_PER_ATTEMPT:
            for attempt, count in Counter(attempts(ledger.of(key, type_))).items():
                if count > 1:
                    yield f"{key} attempt {attempt}: {count} times {type_}"
    yield from _ends_logged_once(ledger)
    current = {parts.execution_of(run) for run in ledger.runs.values()}
    for name in ledger.executions.keys() - current:
        yield f"execution {name} is open, but its attempt is not the latest of any run"
    yield from _jobs_side_by_side(ledger)


def _ends_logged_once(ledger: Ledger) -> Violations:
    """What the target said of a job is in the log once, however many have asked it."""
    for key in ledger.runs:
        log = [one for one in records.job_log(ledger.world.engine.control.store, key) if one.event.outcome]
        asked = Counter(one.attempt for one in log if one.reported_by in ("", starting.BY_LIFECYCLE))
        for attempt, count in asked.items():
            if count > 1:
                yield f"{key} attempt {attempt}: the end of its job was logged {count} times"


def _attempts_in_turn(key: RunKey, events: list[Event]) -> Violations:
    opened, over = 0, True
    for event in events:
        if event.type is EventType.TRIGGER_STARTED:
            attempt = event.detail["attempt"]
            if not over or attempt != opened + 1:
                yield f"{key}: attempt {attempt} was opened while attempt {opened} was {'over' if over else 'active'}"
            opened, over = attempt, False
        elif event.type is EventType.SENSOR_DEADLINE_EXPIRED:
            opened, over = 1, True
        elif event.type in _ENDINGS:
            over = True


def _jobs_side_by_side(ledger: Ledger) -> Violations:
    """Two jobs of one run at the same time, in truth; a report from outside that was wrong is not our doing."""
    reported = {record.key for record in ledger.job_log if record.reported_by == "report"}
    last: dict[RunKey, tuple[int, object]] = {}
    for job in true_jobs(ledger.world):
        if job.key in reported:
            continue
        if job.key in last:
            attempt, ended = last[job.key]
            if ended is None or job.began < ended:  # type: ignore[operator]  # a datetime when it is not None
                yield f"{job.key}: the job of attempt {job.attempt} began while that of attempt {attempt} ran"
        last[job.key] = (job.attempt, job.ended)


# --------------------------------------------------------------------------------------------------- 3: what opens


def nothing_withheld(ledger: Ledger) -> Violations:
    """3: nothing is opened on an excluded date; nothing ever starts in dry-run mode."""
    for key, events in ledger.events.items():
        for event in events:
            if event.type is EventType.TRIGGER_STARTED and (reason := _withheld(ledger, key, event)):
                yield f"{key}: attempt {event.detail['attempt']} was opened although {reason}"
    dry = {name for name, eras in ledger.history.configs.items() if all(_observes(era.value) for era in eras.all)}
    for key, events in ledger.events.items():
        if key.pipeline in dry and (wrong := [event.type for event in events if not _harmless(event.type)]):
            yield f"{key} is a dry run, but gave {', '.join(wrong)}"
    for key_text, attempt in ledger.world.targets.starts:
        if key_text.split("/")[0] in dry:
            yield f"{key_text} attempt {attempt}: a job of a dry run was started"
    for key in ledger.runs:
        if key.pipeline in dry:
            yield f"{key}: a dry run has a run record"
    for job in true_jobs(ledger.world):
        if all(_observes(config) for config in ledger.history.configs[job.key.pipeline].at(job.began)):
            yield f"{job.key}: its job was started at {job.began}, when it was a dry run or deleted"
    yield from _guessed(ledger)
    yield from _too_early(ledger)


def _observes(config: PipelineConfig | None) -> bool:
    """Can this config open nothing? Either it is a dry run, or there is none."""
    return config is None or config.dry_run


def _withheld(ledger: Ledger, key: RunKey, event: Event) -> str | None:
    source = Source(event.detail["source"])
    config = ledger.opened_with(key, event.detail["attempt"])
    in_force = ledger.history.configs[key.pipeline].at(event.timestamp)
    usable = [one for one in in_force if one is not None and one.find_schedule(key.schedule) is not None]
    if config is None or config.dry_run or all(one is not None and one.dry_run for one in in_force):
        return "it is a dry run"
    if config not in usable and (source not in _RETRIES or len(usable) == len(in_force)):
        return "the config it was opened with was not in force"
    observed = records.get(ledger.store, records.run_record(key, keys.DRY_RUN), DryRun)
    recovered = str(event.detail["openedBy"]).startswith("watchdog: sensor ")
    if recovered and observed is not None and observed.opened_at < event.timestamp:
        return "nothing was lost: a dry run had observed it"
    if source in _RETRIES:
        return None  # an open run, its retries included, is not checked again
    schedule = config.schedule_of(key.schedule)
    named = ledger.history.calendars_at(event.timestamp)
    reasons = [expected.calendar_reason(schedule, one, key.period) for one in named]
    return reasons[0] if all(reasons) and reasons else None


def _harmless(type_: EventType) -> bool:
    observed = (
        EventType.PIPELINE_EXCLUDED,
        EventType.PIPELINE_REMOVED,
        EventType.SENSOR_INVALID,
        EventType.RERUN_REJECTED,
    )
    return type_.startswith("DRY_RUN_") or type_ in observed


def _guessed(ledger: Ledger) -> Violations:
    """A write whose day cannot be told opens nothing: the controller does not guess."""
    for key, events in ledger.events.items():
        for event in events:
            if event.type is not EventType.TRIGGER_STARTED or event.detail["source"] != Source.FIRST:
                continue
            about = _trigger_writes(ledger, key, event) if "sensor " in str(event.detail.get("openedBy")) else []
            if about and all(period_of_write(name, step.data or {}).problem for name, step in about):
                yield f"{key} was opened by a sensor write whose period cannot be told"


def _trigger_writes(ledger: Ledger, key: RunKey, event: Event) -> list[tuple[str, Step]]:
    """What the scenario wrote to the trigger sensor of a pipeline before an event."""
    config = ledger.opened_with(key, event.detail["attempt"])
    trigger = config.schedule_of(key.schedule).trigger if config is not None else None
    return [
        (name, step)
        for at, name, step in ledger.history.sensor_writes(key.pipeline)
        if trigger is not None and key_matches(trigger.key, name) and at <= event.timestamp
    ]


def _too_early(ledger: Ledger) -> Violations:
    """A cascade opens a run when every upstream has completed what it waits for, every hour of the day included."""
    for key, events in ledger.events.items():
        for event in events:
            cascaded = event.type is EventType.TRIGGER_STARTED and "cascade: " in str(event.detail["openedBy"])
            config = ledger.opened_with(key, event.detail["attempt"]) if cascaded else None
            if config is not None and (missing := _missing(ledger, config, key, event.timestamp)):
                yield f"{key} was opened by its upstreams, before {', '.join(missing)}"


def _missing(ledger: Ledger, config: PipelineConfig, key: RunKey, at: datetime) -> tuple[str, ...]:
    """What the upstreams had not completed by then, by the mildest of what was in force."""
    names = [entry.pipeline for entry in config.after]
    have = {
        name: frozenset(
            event.date
            for event in ledger.world.events
            if event.type is EventType.JOB_COMPLETED and event.pipeline_id == name and event.timestamp <= at
        )
        for name in names
    }
    schedule = config.schedule_of(key.schedule)
    tz = zone(schedule.timezone)
    found: list[tuple[str, ...]] = []
    for named in ledger.history.calendars_at(at):
        for upstreams in product(*(ledger.history.configs[name].at(at) for name in names)):
            hours = {
                name: cascade.expected_hours(upstream, key.period, named, tz)
                for name, upstream in zip(names, upstreams, strict=True)
            }
            found.append(cascade.missing_markers(config.after, schedule, key.period, have, hours))
    return min(found, key=len)


# ------------------------------------------------------------------------------------------------------- 4: endings


def everything_ends(ledger: Ledger) -> Violations:
    """4: every run reaches a terminal status, whatever crashes: nothing is left that nobody drives."""
    for key, run in ledger.runs.items():
        if run.active != (key in ledger.active):
            yield f"{key} is {run.status}, but its wake-up record is {'missing' if run.active else 'left behind'}"
        if not run.active:
            continue
        active = records.get_active(ledger.store, key)
        if active is not None and active.attempt != run.attempt:
            yield f"{key}: attempt {run.attempt} is under way, but its wake-up record is of attempt {active.attempt}"
        yield from _driven(ledger, run)
    for key in ledger.active - ledger.runs.keys():
        yield f"{key} has a wake-up record, but no run"


def _driven(ledger: Ledger, run: Run) -> Violations:
    if run.lease_until is None or run.lease_until + PATIENCE < ledger.now:
        yield f"{run.key} is {run.status} past its lease of {run.lease_until}"
    if run.status is RunStatus.FAILED:
        if run.retry_at is None or run.retry_at + PATIENCE < ledger.now:
            yield f"{run.key} should have been retried at {run.retry_at}"
        return
    lost = parts.execution_of(run) not in ledger.executions
    if lost and run.updated_at + PATIENCE < ledger.now:
        yield f"{run.key} is {run.status} since {run.updated_at}, and no execution drives it"


# ------------------------------------------------------------------------------------------------------- 6: budgets


def within_budget(ledger: Ledger) -> Violations:
    """6: no budget is exceeded, of retries, reruns or starts."""
    for key in ledger.runs:
        own = [one for one in ledger.reruns if RunKey(one.pipeline, one.schedule, one.date) == key]
        opened = ledger.of(key, EventType.TRIGGER_STARTED)
        for source in Source:
            if source in (Source.FIRST, Source.REOPEN):
                continue
            recorded = sum(1 for one in own if one.source is source)
            seen = sum(1 for event in opened if event.detail["source"] == source)
            if recorded != seen:
                yield f"{key}: {seen} attempts were opened by {source}, but {recorded} have a rerun record"
        for one in own:
            yield from _overspent(ledger, key, one, [other for other in own if other.attempt <= one.attempt])
    most = ledger.world.engine.control.settings.trigger_max_attempts + 1
    refused = Counter(
        (record.key, record.attempt) for record in ledger.job_log if record.event is JobEvent.INFRA_TRIGGER_FAILURE
    )
    for (key, attempt), count in refused.items():
        if count > most:
            yield f"{key} attempt {attempt}: {count} starts were tried, {most} are allowed"


def _overspent(ledger: Ledger, key: RunKey, one: RerunRecord, until: list[RerunRecord]) -> Violations:
    """A retry is decided by the config of the attempt that failed, a rerun by the one that it is opened with."""
    decided_by = one.attempt - 1 if one.source in _RETRIES else one.attempt
    config = ledger.opened_with(key, decided_by)
    if config is None or config.job is None:
        yield f"{key} attempt {one.attempt} is a {one.source}, but nothing tells by which config"
        return
    budget, spent = reruns.budget_of(config.job, one.source), reruns.used(until, one.source)
    if spent > budget:
        yield f"{key} attempt {one.attempt}: {spent} attempts of kind {one.source}, {budget} are allowed"

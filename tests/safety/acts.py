"""Properties 1, 2, 3, 4 and 6: what the controller does. Each yields what was violated, in words."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from interlock.control import records
from interlock.decide import calendars, reruns
from interlock.decide.sensors import key_matches, period_of_write
from interlock.model import keys
from interlock.model.config import Mode
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import JobEvent, Run, RunStatus, Source
from interlock.model.times import to_local, zone
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
)
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
        config = ledger.configs.get(key.pipeline)
        for event in events:
            if event.type is EventType.VALIDATION_PASSED and config is not None:
                if _results_pass(event, config.validation.trigger):
                    passed.add(event.detail["attempt"])
                else:
                    yield f"{key}: VALIDATION_PASSED with rules that did not pass: {event.detail['results']}"
            if event.type is EventType.JOB_TRIGGERED and event.detail["attempt"] not in passed:
                yield f"{key} attempt {event.detail['attempt']}: JOB_TRIGGERED without VALIDATION_PASSED before it"
    told = {
        (str(key), attempt)
        for key in ledger.events
        for attempt in attempts(ledger.of(key, EventType.VALIDATION_PASSED))
    }
    for key_text, attempt in ledger.world.targets.starts:
        if (key_text, attempt) not in told:
            yield f"{key_text} attempt {attempt}: the target was called though the rules never passed"


def _results_pass(event: Event, mode: Mode) -> bool:
    results = [bool(one["passed"]) for one in event.detail["results"]]
    return any(results) if mode is Mode.ANY else all(results) and bool(results)


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
    current = {keys.execution_name(run.key, run.attempt) for run in ledger.runs.values()}
    for name in ledger.executions.keys() - current:
        yield f"execution {name} is open, but its attempt is not the latest of any run"
    yield from _jobs_side_by_side(ledger)


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
        config = ledger.configs.get(key.pipeline)
        if config is None or config.find_schedule(key.schedule) is None:
            continue
        for event in events:
            if event.type is EventType.TRIGGER_STARTED and (reason := _withheld(ledger, key, event)):
                yield f"{key}: attempt {event.detail['attempt']} was opened although {reason}"
        if config.dry_run and (wrong := [event.type for event in events if not _harmless(event.type)]):
            yield f"{key} is a dry run, but gave {', '.join(wrong)}"
    dry = {name for name, config in ledger.configs.items() if config.dry_run}
    for key_text, attempt in ledger.world.targets.starts:
        if key_text.split("/")[0] in dry:
            yield f"{key_text} attempt {attempt}: a job of a dry run was started"
    for key in ledger.runs:
        if key.pipeline in dry:
            yield f"{key}: a dry run has a run record"
    yield from _guessed(ledger)


def _withheld(ledger: Ledger, key: RunKey, event: Event) -> str | None:
    source = Source(event.detail["source"])
    if source in (Source.JOB_FAIL_CODE, Source.JOB_FAIL_TRANSIENT):
        return None  # an open run, its retries included, is not checked again
    schedule = ledger.configs[key.pipeline].schedule_of(key.schedule)
    if source is Source.FIRST and str(event.detail["openedBy"]).startswith("cron "):
        tick = to_local(event.timestamp, zone(schedule.timezone)).date()
        return calendars.exclusion(schedule, ledger.calendars, tick)
    return calendars.withheld(schedule, ledger.calendars, key.period.day)


def _harmless(type_: EventType) -> bool:
    observed = (EventType.PIPELINE_EXCLUDED, EventType.SENSOR_INVALID, EventType.RERUN_REJECTED)
    return type_.startswith("DRY_RUN_") or type_ in observed


def _guessed(ledger: Ledger) -> Violations:
    """A write whose day can not be told opens nothing: the controller does not guess."""
    for key, events in ledger.events.items():
        for event in events:
            if event.type is not EventType.TRIGGER_STARTED or event.detail["source"] != Source.FIRST:
                continue
            about = _trigger_writes(ledger, key, event) if "sensor " in str(event.detail.get("openedBy")) else []
            if about and all(period_of_write(name, step.data or {}).problem for name, step in about):
                yield f"{key} was opened by a sensor write whose period can not be told"


def _trigger_writes(ledger: Ledger, key: RunKey, event: Event) -> list[tuple[str, Step]]:
    """What the scenario wrote to the trigger sensor of a pipeline before an event."""
    trigger = ledger.configs[key.pipeline].schedule_of(key.schedule).trigger
    found: list[tuple[str, Step]] = []
    for timed in ledger.world.scenario.steps:
        pipeline, _, name = (timed.step.sensor or "").partition("/")
        mine = trigger is not None and pipeline == key.pipeline and key_matches(trigger.key, name)
        if mine and timed.at <= event.timestamp:
            found.append((name, timed.step))
    return found


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
    lost = keys.execution_name(run.key, run.attempt) not in ledger.executions
    if lost and run.updated_at + PATIENCE < ledger.now:
        yield f"{run.key} is {run.status} since {run.updated_at}, and no execution drives it"


# ------------------------------------------------------------------------------------------------------- 6: budgets


def within_budget(ledger: Ledger) -> Violations:
    """6: no budget is exceeded, of retries, reruns or starts."""
    for key in ledger.runs:
        job = ledger.configs[key.pipeline].job
        own = [one for one in ledger.reruns if RunKey(one.pipeline, one.schedule, one.date) == key]
        opened = ledger.of(key, EventType.TRIGGER_STARTED)
        for source in Source:
            if source in (Source.FIRST, Source.REOPEN) or job is None:
                continue
            budget, spent = reruns.budget_of(job, source), reruns.used(own, source)
            if spent > budget:
                yield f"{key}: {spent} attempts of kind {source}, {budget} are allowed"
            recorded = sum(1 for one in own if one.source is source)
            told = sum(1 for event in opened if event.detail["source"] == source)
            if recorded != told:
                yield f"{key}: {told} attempts were opened by {source}, but {recorded} have a rerun record"
    most = ledger.world.engine.control.settings.trigger_max_attempts + 1
    refused = Counter(
        (record.key, record.attempt) for record in ledger.job_log if record.event is JobEvent.INFRA_TRIGGER_FAILURE
    )
    for (key, attempt), count in refused.items():
        if count > most:
            yield f"{key} attempt {attempt}: {count} starts were tried, {most} are allowed"

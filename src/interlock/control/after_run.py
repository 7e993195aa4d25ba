"""Post-run monitoring (SPEC 7): what a sensor says after, or while, the job that used it runs."""

from datetime import datetime

from msgspec.structs import replace

from interlock.control import catalog, changed_inputs, readiness, records
from interlock.control.context import Control
from interlock.decide import late_data, transitions
from interlock.decide.drift import Drift, find_drift
from interlock.decide.sensors import candidate_keys, key_matches, period_of_write
from interlock.model import keys
from interlock.model.config import Mode, PipelineConfig, Schedule
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.periods import Granularity, Period, day_period, period_of
from interlock.model.run import Baseline, RerunRequest, Run, RunStatus, Source
from interlock.model.sensor import Sensor
from interlock.model.times import epoch_millis, to_local, zone
from interlock.ports.store import Delete, Matches, Put, Require, Write
from interlock.ports.timers import Timer, TimerKind


def observe(control: Control, config: PipelineConfig, schedule: Schedule, sensor: Sensor) -> None:
    """A write to a post-run or trigger sensor, for the run it is about."""
    rule_key = _post_run_rule(config, sensor.key)
    is_trigger = schedule.trigger is not None and key_matches(schedule.trigger.key, sensor.key)
    if rule_key is None and not is_trigger:
        return
    problem = period_of_write(sensor.key, sensor.data).problem
    for run in [] if problem else _runs_about(control, config, schedule, sensor, trigger_only=rule_key is None):
        if run.status is RunStatus.RUNNING and rule_key is not None:
            _while_running(control, config, run, rule_key, sensor)
        elif run.status is RunStatus.COMPLETED:
            _after_completion(control, config, run.key, rule_key, sensor, is_trigger=is_trigger)


def completed(control: Control, config: PipelineConfig, run: Run) -> None:
    """Look again at what a completion was decided on: a write may have come between its reading and its commit.

    The stream-router calls this from the change of the completed run. Every write before that change is in the store
    by now, and every later one is routed to a run that is COMPLETED: none falls between the two.
    """
    schedule = config.find_schedule(run.schedule)
    if schedule is None or config.dry_run:
        return
    names = [*readiness.post_run_names(config), *([schedule.trigger.key] if schedule.trigger else [])]
    sensors = records.get_sensors(control.store, run.pipeline, candidate_keys(names, run.key.period)) if names else {}
    for sensor in sensors.values():
        if not sensor.expired(control.now()) and _may_be_news(config, run, sensor):
            observe(control, config, schedule, sensor)


def _may_be_news(config: PipelineConfig, run: Run, sensor: Sensor) -> bool:
    """Not when it is a trigger that says what it said when the job was started: that is nearly always so."""
    if _post_run_rule(config, sensor.key) is not None or run.trigger_payload is None:
        return True
    return bool(late_data.significant_changes(run.trigger_payload, sensor.data))


def _post_run_rule(config: PipelineConfig, sensor_key: str) -> str | None:
    rules = config.post_run.rules if config.post_run else []
    return next((rule.key for rule in rules if key_matches(rule.key, sensor_key)), None)


def _runs_about(
    control: Control, config: PipelineConfig, schedule: Schedule, sensor: Sensor, *, trigger_only: bool
) -> list[Run]:
    """The runs a write is about: of its own period, or of the day that holds it; without one, the latest run.

    A trigger write without a period is about the day it was received, as it is when it opens a run.
    """
    own = period_of_write(sensor.key, sensor.data).period
    if own is None and not trigger_only:
        latest = records.latest_run(control.store, config.id, schedule.schedule_id)
        return [latest] if latest is not None else []
    periods = _periods(own) if own is not None else _received_in(schedule, sensor)
    slots = [RunKey(config.id, schedule.schedule_id, str(period)) for period in periods]
    found = (records.get_run(control.store, slot) for slot in slots)
    return [run for run in found if run is not None]


def _periods(own: Period) -> list[Period]:
    if own.granularity is Granularity.DAY:
        return [own]
    return list(dict.fromkeys([own, period_of(own.at, Granularity.HOUR), day_period(own.day)]))


def _received_in(schedule: Schedule, sensor: Sensor) -> list[Period]:
    local = to_local(sensor.received_at, zone(schedule.timezone))
    return [period_of(local, Granularity.DAY), period_of(local, Granularity.HOUR)]


# ----------------------------------------------------------------------------------------------------- in flight


def _while_running(control: Control, config: PipelineConfig, run: Run, rule_key: str, sensor: Sensor) -> None:
    """Drift against what was remembered when the rules passed: told, nothing more."""
    if config.post_run is None:
        return
    drift = find_drift(config.post_run, rule_key, run.post_run_sensors or {}, sensor.data)
    if drift is not None:
        now = control.now()
        event = _drift_event(EventType.POST_RUN_DRIFT_INFLIGHT, run.key, drift, now)
        records.publish_once(control, event, f"INFLIGHT-{run.attempt}-{sensor.key}-{epoch_millis(sensor.received_at)}")


def _drift_event(type_: EventType, key: RunKey, drift: Drift, now: datetime) -> Event:
    return records.event(type_, key, now, f"drift in {key.pipeline} for {key.date}: {drift.reason}", **drift.detail())


# ------------------------------------------------------------------------------------------------ after completion


def _after_completion(
    control: Control, config: PipelineConfig, key: RunKey, rule_key: str | None, sensor: Sensor, *, is_trigger: bool
) -> None:
    def decide() -> tuple[None, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.status is not RunStatus.COMPLETED:
            return None, []
        post_writes: list[Write] = []
        events: list[Event] = []
        request: RerunRequest | None = None
        if rule_key is not None:
            post_writes, events, request = _post_run(control, config, run, rule_key, sensor)
        late_writes: list[Write] = []
        if is_trigger:
            late_writes, changed = _late(control, config, run, sensor)
            if changed and request is None:
                events = [*events, changed_inputs.late_event(run, changed, control.now())]
                reason = f"late data: {', '.join(changed)} changed"
                request = _request(control, run, Source.LATE_DATA, reason, sensor)
        if not (post_writes or late_writes):
            return None, []
        if not late_writes:
            same = Matches({"version": run.version, "attempt": run.attempt})
            post_writes.append(Require(records.run_record(key, keys.RUN), same))
        asked = changed_inputs.request_writes(control, request)
        return None, [*post_writes, *late_writes, *records.put_events(*events), *asked]

    records.settle_commit(control, decide)


def _late(control: Control, config: PipelineConfig, run: Run, sensor: Sensor) -> tuple[list[Write], tuple[str, ...]]:
    """What changed of the payload that the run was started with, if this sensor is the one that counts for it.

    The payload is remembered with the news of it, so that the same write is news only once.
    """
    current = readiness.trigger_observation(control.store, config, run.key, control.now())
    if run.trigger_payload is None or current is None or current.key != sensor.key:
        return [], ()
    changed = late_data.significant_changes(run.trigger_payload, current.data)
    if not changed:
        return [], ()
    amended = transitions.remember_payload(run, current.data, now=control.now())
    return [records.put_run(amended, run)], changed


def _request(control: Control, run: Run, source: Source, reason: str, sensor: Sensor) -> RerunRequest:
    unique = f"{run.attempt}-{epoch_millis(sensor.received_at)}-{records.digest(sensor.data)}"
    return changed_inputs.rerun_request(run.key, source, reason, control.now(), unique)


def _post_run(
    control: Control, config: PipelineConfig, run: Run, rule_key: str, sensor: Sensor
) -> tuple[list[Write], list[Event], RerunRequest | None]:
    where = records.run_record(run.key, keys.BASELINE)
    baseline = records.get(control.store, where, Baseline)
    if config.post_run is None or baseline is None or not _news(config, run, baseline, sensor):
        return [], [], None
    now = control.now()
    seen = baseline.seen | {sensor.key: sensor.received_at}
    writes: list[Write] = [Delete(records.run_record(run.key, keys.AWAITED))]
    drift = find_drift(config.post_run, rule_key, baseline.sensors, sensor.data)
    if drift is not None:
        writes.append(_put_baseline(run.key, replace(baseline, seen=seen), baseline))
        event = _drift_event(EventType.POST_RUN_DRIFT, run.key, drift, now)
        if config.post_run.on_drift == "alert":
            return writes, [event], None
        return writes, [event], _request(control, run, Source.DATA_DRIFT, drift.reason, sensor)
    passed, event = _verdict_event(control, config, run, now)
    writes.append(_put_baseline(run.key, replace(baseline, seen=seen, verdict=passed), baseline))
    return writes, [event], None


def _news(config: PipelineConfig, run: Run, baseline: Baseline, sensor: Sensor) -> bool:
    """Has this write not been considered yet?

    Times do not tell for what the baseline is made of: a write may be received before the completion and stored after
    it. So the baseline remembers what it saw of those.
    """
    if sensor.key in candidate_keys(readiness.post_run_names(config), run.key.period):
        return baseline.seen.get(sensor.key) != sensor.received_at
    return sensor.received_at > baseline.at and baseline.seen.get(sensor.key) != sensor.received_at


def _put_baseline(key: RunKey, baseline: Baseline, before: Baseline) -> Put:
    changed = replace(baseline, version=before.version + 1)
    return Put(records.run_record(key, keys.BASELINE), records.plain(changed), Matches({"version": before.version}))


def _verdict_event(control: Control, config: PipelineConfig, run: Run, now: datetime) -> tuple[bool, Event]:
    rules = config.post_run.rules if config.post_run else []
    verdict, _ = readiness.judge(control.store, config, run.key, now, rules, Mode.ALL)
    event = records.event(
        EventType.POST_RUN_PASSED if verdict.passed else EventType.POST_RUN_FAILED,
        run.key,
        now,
        f"post-run rules of {run.pipeline} for {run.date}: {verdict.summary()}",
        results=list(verdict.results),
    )
    return verdict.passed, event


# --------------------------------------------------------------------------------------------------- on a timer


def recheck_timer(run: Run, at: datetime) -> Timer:
    """The next look at the post-run rules of a completed attempt."""
    payload = {"pipeline": run.pipeline, "schedule": run.schedule, "date": run.date, "attempt": run.attempt}
    name = f"postrun-{keys.execution_name(run.key, run.attempt)[-50:]}"
    return Timer(name, at, TimerKind.POST_RUN, payload)


def recheck(control: Control, key: RunKey, attempt: int) -> None:
    """Evaluate the post-run rules again; told only when the verdict changes. Arms the next look within the window."""
    run = records.get_run(control.store, key)
    if run is None or run.attempt != attempt or run.status is not RunStatus.COMPLETED or run.ended_at is None:
        return
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    if config.post_run is None or config.post_run.evaluation is None:
        return
    _tell_changed_verdict(control, config, run)
    timing = config.post_run.evaluation
    at = control.now() + timing.interval
    if at <= run.ended_at + timing.window:
        control.timers.arm(recheck_timer(run, at))


def _tell_changed_verdict(control: Control, config: PipelineConfig, run: Run) -> None:
    def decide() -> tuple[None, list[Write]]:
        baseline = records.get(control.store, records.run_record(run.key, keys.BASELINE), Baseline)
        if baseline is None or baseline.attempt != run.attempt:
            return None, []
        passed, event = _verdict_event(control, config, run, control.now())
        if passed == baseline.verdict:
            return None, []
        return None, [
            _put_baseline(run.key, replace(baseline, verdict=passed), baseline),
            records.put_event(event),
        ]

    records.settle_commit(control, decide)

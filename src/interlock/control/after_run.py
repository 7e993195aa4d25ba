"""Post-run monitoring (SPEC 7): what a sensor says after, or while, the job that used it runs."""

from datetime import datetime

from msgspec.structs import replace

from interlock.control import catalog, changed_inputs, readiness, records
from interlock.control.context import Control
from interlock.decide import late_data, transitions
from interlock.decide.drift import Drift, find_drift, lacks_baseline, remembered
from interlock.decide.sensors import Reading, concerned, key_matches, run_period
from interlock.model import keys
from interlock.model.config import Mode, PipelineConfig
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import Baseline, RerunRequest, Run, RunStatus, Source
from interlock.model.sensor import Sensor
from interlock.ports.store import Delete, Matches, Put, Require, Write
from interlock.ports.timers import Timer, TimerKind


def observe(control: Control, config: PipelineConfig, sensor: Sensor) -> None:
    """A write to a post-run or trigger sensor, for the runs it is about."""
    reading = _post_run_reading(config, sensor.key)
    watched = [] if reading is None else _watched_runs(control, config, reading, sensor)
    triggered = _triggered_runs(control, config, sensor)
    for run in {one.key: one for one in (*watched, *triggered)}.values():
        read = reading if any(one.key == run.key for one in watched) else None
        if run.status is RunStatus.RUNNING and read is not None:
            _while_running(control, config, run, read, sensor.key)
        elif run.status is RunStatus.COMPLETED:
            is_trigger = any(one.key == run.key for one in triggered)
            _after_completion(control, config, run.key, read, sensor.key, is_trigger=is_trigger)


def completed(control: Control, config: PipelineConfig, run: Run) -> None:
    """Look again at what a completion was decided on: a write may have come between its reading and its commit.

    The stream-router calls this from the change of the completed run. Every write before that change is in the store
    by now, and every later one is routed to a run that is COMPLETED: none falls between the two.
    """
    if config.find_schedule(run.schedule) is None or config.dry_run:
        return
    now = control.now()
    readings = readiness.post_run_readings(config)
    found = readiness.selected(control.store, config, run.key, readings, now) if readings else {}
    watched = {
        found[one.key].key: one
        for one in readings
        if one.key in found and _is_about(control, config, run, one, found[one.key])
    }
    trigger = readiness.trigger_observation(control.store, config, run.key, now)
    # A trigger nearly always says what it said when the job was started: then there is nothing to commit.
    late = trigger is not None and _late_changes(run, trigger)
    for key in dict.fromkeys([*watched, *([trigger.key] if trigger is not None and late else [])]):
        is_trigger = trigger is not None and trigger.key == key
        _after_completion(control, config, run.key, watched.get(key), key, is_trigger=is_trigger)


def _post_run_reading(config: PipelineConfig, sensor_key: str) -> Reading | None:
    return next((one for one in readiness.post_run_readings(config) if key_matches(one.key, sensor_key)), None)


def _watched_runs(control: Control, config: PipelineConfig, reading: Reading, sensor: Sensor) -> list[Run]:
    """The runs a post-run write may be about; whether they read it is decided for each (`_read_by`)."""
    about = concerned(reading, sensor)
    if about is None:
        return []
    if about.period is None:
        latest = records.latest_run_of_all(control.store, config)
        return [] if latest is None else [latest]
    found: list[Run] = []
    for schedule in config.all_schedules:
        if about.exactly:
            run = records.get_run(control.store, RunKey(config.id, schedule.schedule_id, str(about.period)))
            found += [] if run is None else [run]
        else:
            found += records.runs_overlapping(control.store, config.id, schedule.schedule_id, about.period)
    return found


def _is_about(control: Control, config: PipelineConfig, run: Run, reading: Reading, sensor: Sensor) -> bool:
    """Is the sensor that counts for a run about it also by what was written? An undated write is of the latest run."""
    about = concerned(reading, sensor)
    if about is None or not about.latest:
        return about is not None
    latest = records.latest_run_of_all(control.store, config)
    return latest is not None and latest.key == run.key


def _triggered_runs(control: Control, config: PipelineConfig, sensor: Sensor) -> list[Run]:
    """The run that a trigger write is for, of each schedule that it triggers: the one it opens, or would."""
    found: list[Run] = []
    for schedule in config.all_schedules:
        if schedule.trigger is None or not key_matches(schedule.trigger.key, sensor.key):
            continue
        period = run_period(schedule, sensor)
        if not isinstance(period, str):
            run = records.get_run(control.store, RunKey(config.id, schedule.schedule_id, str(period)))
            found += [] if run is None else [run]
    return found


def _read_by(control: Control, config: PipelineConfig, key: RunKey, reading: Reading, sensor_key: str) -> Sensor | None:
    """The sensor of that stored key as it is now, if it is the one that counts for the run."""
    chosen = readiness.selected(control.store, config, key, [reading], control.now()).get(reading.key)
    return chosen if chosen is not None and chosen.key == sensor_key else None


# ----------------------------------------------------------------------------------------------------- in flight


def _while_running(control: Control, config: PipelineConfig, run: Run, reading: Reading, sensor_key: str) -> None:
    """Drift against what was remembered when the rules passed: an event, nothing more."""
    sensor = _read_by(control, config, run.key, reading, sensor_key)
    if config.post_run is None or sensor is None:
        return
    drift = find_drift(config.post_run, reading.key, run.post_run_sensors or {}, sensor.data)
    if drift is not None:
        event = _drift_event(EventType.POST_RUN_DRIFT_INFLIGHT, run.key, drift, control.now())
        records.publish_once(control, event, f"INFLIGHT-{run.attempt}-{sensor.key}-{records.stamp(sensor)}")


def _drift_event(type_: EventType, key: RunKey, drift: Drift, now: datetime) -> Event:
    return records.event(type_, key, now, f"drift in {key.pipeline} for {key.date}: {drift.reason}", **drift.detail())


# ------------------------------------------------------------------------------------------------ after completion


def _after_completion(
    control: Control,
    config: PipelineConfig,
    key: RunKey,
    reading: Reading | None,
    sensor_key: str,
    *,
    is_trigger: bool,
) -> None:
    """Judge a write for a completed run. `reading`: the post-run reading it may be for, `is_trigger`: it triggered."""

    def decide() -> tuple[None, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or run.status is not RunStatus.COMPLETED:
            return None, []
        post_writes: list[Write] = []
        events: list[Event] = []
        request: RerunRequest | None = None
        if reading is not None:
            post_writes, events, request = _post_run(control, config, run, reading, sensor_key)
        late_writes: list[Write] = []
        if is_trigger:
            late_writes, late_event, late_request = _late(control, config, run, sensor_key)
            if request is None:
                events, request = [*events, *late_event], late_request
        if not (post_writes or late_writes):
            return None, []
        if not late_writes:
            same = Matches({"version": run.version, "attempt": run.attempt})
            post_writes.append(Require(records.run_record(key, keys.RUN), same))
        asked = changed_inputs.request_writes(control, request)
        return None, [*post_writes, *late_writes, *records.put_events(*events), *asked]

    records.settle_commit(control, decide)


def _late(
    control: Control, config: PipelineConfig, run: Run, sensor_key: str
) -> tuple[list[Write], list[Event], RerunRequest | None]:
    """Late data: the payload that the run was started with has changed, if this sensor is the one that counts for it.

    The payload is remembered with the event, so that the same write is news only once.
    """
    current = readiness.trigger_observation(control.store, config, run.key, control.now())
    changed = () if current is None or current.key != sensor_key else _late_changes(run, current)
    if current is None or not changed:
        return [], [], None
    amended = transitions.remember_payload(run, current.data, now=control.now())
    request = _request(control, run, Source.LATE_DATA, f"late data: {', '.join(changed)} changed", current)
    return [records.put_run(amended, run)], [changed_inputs.late_event(run, changed, control.now())], request


def _late_changes(run: Run, current: Sensor) -> tuple[str, ...]:
    return () if run.trigger_payload is None else late_data.significant_changes(run.trigger_payload, current.data)


def _request(control: Control, run: Run, source: Source, reason: str, sensor: Sensor) -> RerunRequest:
    unique = f"{run.attempt}-{records.stamp(sensor)}"
    return changed_inputs.rerun_request(run.key, source, reason, control.now(), unique)


def _post_run(
    control: Control, config: PipelineConfig, run: Run, reading: Reading, sensor_key: str
) -> tuple[list[Write], list[Event], RerunRequest | None]:
    baseline = records.get(control.store, records.run_record(run.key, keys.BASELINE), Baseline)
    sensor = _read_by(control, config, run.key, reading, sensor_key)
    if config.post_run is None or baseline is None or sensor is None:
        return [], [], None
    if baseline.seen.get(sensor.key) == records.stamp(sensor):
        return [], [], None
    now = control.now()
    after = replace(baseline, seen=baseline.seen | {sensor.key: records.stamp(sensor)})
    heard: list[Write] = [Delete(records.run_record(run.key, keys.AWAITED))]
    drift = find_drift(config.post_run, reading.key, baseline.sensors, sensor.data)
    if drift is not None:
        event = _drift_event(EventType.POST_RUN_DRIFT, run.key, drift, now)
        alone = config.post_run.on_drift == "alert"
        request = None if alone else _request(control, run, Source.DATA_DRIFT, drift.reason, sensor)
        return [*heard, _put_baseline(run.key, after, baseline)], [event], request
    captured: list[Event] = []
    if lacks_baseline(config.post_run, reading.key, baseline.sensors, sensor.data):
        after = replace(
            after,
            sensors=remembered(config.post_run, after.sensors | {reading.key: sensor.data}),
            digests=after.digests | {reading.key: records.digest(sensor.data)},
        )
        captured = [_late_baseline(run, reading.key, sensor, now)]
    passed, event = _verdict_event(control, config, run, now)
    return [*heard, _put_baseline(run.key, replace(after, verdict=passed), baseline)], [*captured, event], None


def _late_baseline(run: Run, name: str, sensor: Sensor, now: datetime) -> Event:
    return records.event(
        EventType.POST_RUN_BASELINE_CAPTURED,
        run.key,
        now,
        f"{name} of {run.pipeline} for {run.date} first came after the completion: it is its own baseline",
        attempt=run.attempt,
        baseline={name: sensor.data},
        late=True,
    )


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
    """Evaluate the post-run rules again; an event only when the verdict changes. Arms the next look in the window."""
    run = records.get_run(control.store, key)
    if run is None or run.attempt != attempt or run.status is not RunStatus.COMPLETED or run.ended_at is None:
        return
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    if config.post_run is None or config.post_run.evaluation is None:
        return
    _report_changed_verdict(control, config, run)
    timing = config.post_run.evaluation
    at = control.now() + timing.interval
    if at <= run.ended_at + timing.window:
        control.timers.arm(recheck_timer(run, at))


def _report_changed_verdict(control: Control, config: PipelineConfig, run: Run) -> None:
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

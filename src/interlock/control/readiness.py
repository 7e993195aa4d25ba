"""Are the inputs of a run ready? Gathers what the rules read and has it decided."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from interlock.control import catalog, records
from interlock.control.records import digest
from interlock.decide import cascade, sensors, undated
from interlock.decide.drift import remembered
from interlock.decide.rules import Verdict, evaluate
from interlock.decide.sensors import (
    Reading,
    RunScope,
    candidate_keys,
    key_matches,
    merged,
    reading_of,
    run_period,
    scope_of,
)
from interlock.model import keys
from interlock.model.config import Mode, PipelineConfig, Rule, Schedule, Upstream
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Period, parse_period
from interlock.model.run import Marker, Run
from interlock.model.sensor import Sensor, is_upstream
from interlock.model.times import zone
from interlock.ports.store import Store


def gather(store: Store, config: PipelineConfig, key: RunKey, names: Iterable[str]) -> dict[str, Sensor]:
    """Every stored observation that rules of these keys may read for a run; cascade markers read like sensors."""
    wanted = list(dict.fromkeys(names))
    plain = [name for name in wanted if not is_upstream(name)]
    found = records.get_sensors(store, config.id, candidate_keys(plain, key.period))
    for entry in config.after:
        name = keys.UPSTREAM + entry.pipeline
        sensor = upstream_sensor(store, config, key, entry) if name in wanted else None
        if sensor is not None:
            found[name] = sensor
    return found


def reopening_scope(config: PipelineConfig, run: Run) -> RunScope:
    """What counts for a run that is to be opened again: an undated observation that came too late does not."""
    schedule = config.schedule_of(run.schedule)
    until = undated.reopens_until(schedule, run.key.period, run.first_opened_at, run.tick_at)
    return replace(scope_of(schedule, run.key.period), until=until)


def judge(
    store: Store, config: PipelineConfig, key: RunKey, now: datetime, rules: Sequence[Rule], mode: Mode
) -> tuple[Verdict, dict[str, Sensor]]:
    """Evaluate a set of rules for a run, at one instant."""
    gathered = gather(store, config, key, [rule.key for rule in rules])
    return evaluate(rules, mode, gathered, scope(config, key), now), gathered


def scope(config: PipelineConfig, key: RunKey) -> RunScope:
    """What the period of a run means for reading sensors."""
    return scope_of(config.schedule_of(key.schedule), key.period)


def verdict(config: PipelineConfig, key: RunKey, gathered: dict[str, Sensor], now: datetime) -> Verdict:
    """The verdict of the validation rules on what was gathered for a run."""
    return evaluate(config.validation.rules, config.validation.trigger, gathered, scope(config, key), now)


def readiness(store: Store, config: PipelineConfig, key: RunKey, now: datetime) -> Verdict:
    """The verdict of the validation rules for a run."""
    return verdict(config, key, gather(store, config, key, [rule.key for rule in config.validation.rules]), now)


def input_readings(config: PipelineConfig, schedule: Schedule) -> tuple[Reading, ...]:
    """What an attempt is decided on: the sensors of its rules, of its trigger, and its upstreams."""
    found = [reading_of(rule) for rule in config.validation.rules]
    if schedule.trigger is not None:
        found.append(Reading(schedule.trigger.key))
    return merged([*found, *(Reading(keys.UPSTREAM + entry.pipeline) for entry in config.after)])


def undated_inputs(store: Store, config: PipelineConfig, key: RunKey, run: Run | None, now: datetime) -> list[str]:
    """The sensors without a period of their own that a rerun of a past period would read: what they say is of today."""
    schedule = config.schedule_of(key.schedule)
    if not undated.is_past(schedule, key.period, run, now):
        return []
    readings = input_readings(config, schedule)
    return undated.keys_without_period(selected(store, config, key, readings, now).values())


def post_run_readings(config: PipelineConfig) -> tuple[Reading, ...]:
    """The sensors that are watched after completion."""
    return merged(reading_of(rule) for rule in config.post_run.rules) if config.post_run else ()


def all_readings(config: PipelineConfig, schedule_id: str) -> tuple[Reading, ...]:
    """Everything that an evaluation decides on or remembers."""
    return (*input_readings(config, config.schedule_of(schedule_id)), *post_run_readings(config))


def post_run_values(config: PipelineConfig, found: dict[str, Sensor]) -> dict[str, dict[str, Any]]:
    """What is remembered of the sensors that are watched after completion."""
    return remembered(config.post_run, {name: one.data for name, one in found.items()}) if config.post_run else {}


def post_run_names(config: PipelineConfig) -> list[str]:
    """The keys of the sensors that are watched after completion."""
    return [one.key for one in post_run_readings(config)]


def reads(config: PipelineConfig, sensor_key: str) -> bool:
    """Does a validation rule read this sensor?"""
    return any(key_matches(rule.key, sensor_key) for rule in config.validation.rules)


def selected(
    store: Store, config: PipelineConfig, key: RunKey, readings: Sequence[Reading], now: datetime
) -> dict[str, Sensor]:
    """The observations that count for the run, by the key that is read."""
    return choose(config, key, readings, gather(store, config, key, [one.key for one in readings]), now)


def choose(
    config: PipelineConfig, key: RunKey, readings: Sequence[Reading], gathered: dict[str, Sensor], now: datetime
) -> dict[str, Sensor]:
    """Of the observations that were gathered for a run, those that count for it, by the key that is read."""
    return sensors.choose(readings, gathered, scope(config, key), now)


def digests(found: dict[str, Sensor]) -> dict[str, str]:
    """Fingerprints of observations, by name."""
    return {name: digest(sensor.data) for name, sensor in found.items()}


def trigger_observation(store: Store, config: PipelineConfig, key: RunKey, now: datetime) -> Sensor | None:
    """What the trigger sensor says for a run; None without a trigger, or an observation that is for this very run.

    An observation that merely counts for it is not: today's write without a period is no late data of yesterday's run.
    """
    schedule = config.schedule_of(key.schedule)
    if schedule.trigger is None:
        return None
    found = selected(store, config, key, [Reading(schedule.trigger.key)], now).get(schedule.trigger.key)
    return found if found is not None and str(run_period(schedule, found)) == key.date else None


def trigger_payload(store: Store, config: PipelineConfig, key: RunKey, now: datetime) -> dict[str, Any] | None:
    """The data of the trigger observation of a run."""
    found = trigger_observation(store, config, key, now)
    return None if found is None else found.data


# ------------------------------------------------------------------------------------------------------ cascade


def markers_for(store: Store, key: RunKey) -> list[Marker]:
    """The cascade markers that may concern a run: of its own period, and of the hours of its day."""
    prefix = f"{keys.MARKER}{key.schedule}#{key.period.day.isoformat()}"
    found = store.query(Table.CONTROL, key.pk, prefix)
    return [records.convert(record.item, Marker, record.key) for record in found]


def awaited_upstreams(store: Store, config: PipelineConfig, key: RunKey) -> tuple[str, ...]:
    """Which upstream periods a run still waits for, in words; empty when its markers are complete."""
    markers = markers_for(store, key)
    have = {
        entry.pipeline: frozenset(one.date for one in markers if one.upstream == entry.pipeline)
        for entry in config.after
    }
    schedule = config.schedule_of(key.schedule)
    return cascade.missing_markers(config.after, schedule, key.period, have, _expected(store, config, key))


def _expected(store: Store, config: PipelineConfig, key: RunKey) -> dict[str, tuple[Period, ...]]:
    tz = zone(config.schedule_of(key.schedule).timezone)
    named = catalog.calendars(store)
    return {
        entry.pipeline: cascade.expected_hours(catalog.current(store, entry.pipeline), key.period, named, tz)
        for entry in config.after
        if entry.require == "all-hours"
    }


def upstream_sensor(store: Store, config: PipelineConfig, key: RunKey, entry: Upstream) -> Sensor | None:
    """The marker of one upstream as a rule reads it."""
    markers = [one for one in markers_for(store, key) if one.upstream == entry.pipeline]
    if not markers:
        return None
    complete = entry.require == "same-period" or not _hours_missing(store, config, key, entry, markers)
    data = cascade.upstream_sensor(entry, markers, key.period, complete)
    if data is None:
        return None
    return Sensor(keys.UPSTREAM + entry.pipeline, data, max(one.completed_at for one in markers))


def _hours_missing(store: Store, config: PipelineConfig, key: RunKey, entry: Upstream, markers: list[Marker]) -> bool:
    have = {entry.pipeline: frozenset(one.date for one in markers)}
    schedule = config.schedule_of(key.schedule)
    day = parse_period(key.period.day.isoformat())
    return bool(cascade.missing_markers([entry], schedule, day, have, _expected(store, config, key)))

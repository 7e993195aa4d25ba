"""Probes: which look is due, who takes it, and what becomes of its result (SPEC 14).

Plain functions, driven by threads in the embedded runtime. A look is claimed by compare-and-set of its `PROBE#` record,
so that nobody looks twice within an interval, also after a restart. Its result, the record and the event of a failure
are one commit; a result whose claim is not the latest any more is dropped.

A probe looks on its interval, run or no run, since its sensor may be the one that opens a run. A dated probe looks for
the periods whose runs wait, or may yet be re-opened. An evaluation does not count on the sensor of a probe whose look
is due or under way: it waits for the look to end, and no longer than that.
"""

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from interlock.control import catalog, readiness, records, waking, writing
from interlock.control.context import Control
from interlock.decide import probes
from interlock.model import keys
from interlock.model.config import PipelineConfig, Probe
from interlock.model.errors import InvalidValueError, UnknownPipelineError
from interlock.model.events import EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import Period, parse_period
from interlock.model.probe import ProbeState
from interlock.model.run import Run, RunStatus
from interlock.model.sensor import Sensor
from interlock.model.times import epoch_millis
from interlock.ports.probes import ProbeRequest
from interlock.ports.store import Condition, Key, Matches, Missing, Put, Store, Write

BY_PROBE: Final = "probe"
_REMEMBERED: Final = timedelta(days=7)
_MOST_PERIODS: Final = 100
_LONGEST_ERROR: Final = 500


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A look that is ours to take."""

    request: ProbeRequest
    state: ProbeState
    ttl: timedelta
    interval: timedelta


# ------------------------------------------------------------------------------------------------------- what is due


def claim_next(control: Control, pipeline: str, key: str) -> Claim | datetime | None:
    """A look of this probe that is due, now ours; or when the next may be due; or None when it is not looked at."""
    found = _current(control, pipeline, key)
    if found is None:
        return None
    config, probe = found
    now, interval = control.now(), probes.interval_of(config, probe)
    definition = records.digest(probes.definition(probe))
    following = now + interval
    for period in _periods(control, config, probe, now):
        state = _state(control.store, pipeline, probes.sensor_key(probe, period))
        due = probes.due_at(state, definition, interval, now)
        if due > now:
            following = min(following, due)
            continue
        claimed = _claim(control, config, probe, period, state, definition)
        if claimed is not None:
            return claimed
    return following


def claim_awaited(control: Control, run: Run) -> list[Claim]:
    """The looks that an evaluation of this run would wait for and that are due, now ours.

    For a runtime without a clock of probes: the evaluation looks first.
    """
    current = catalog.current(control.store, run.pipeline)
    if current is None or not current.probes:
        return []
    opened = catalog.opened_with(control.store, run.pipeline, run.config_version)
    names = {reading.key for reading in readiness.input_readings(opened, opened.schedule_of(run.schedule))}
    now, claims = control.now(), list[Claim]()
    for probe in current.probes:
        if probe.key not in names or _current(control, run.pipeline, probe.key) is None:
            continue
        period = run.key.period if probes.is_dated(probe) else None
        state = _state(control.store, run.pipeline, probes.sensor_key(probe, period))
        definition = records.digest(probes.definition(probe))
        if probes.due_at(state, definition, probes.interval_of(current, probe), now) > now:
            continue
        claimed = _claim(control, current, probe, period, state, definition)
        claims += [] if claimed is None else [claimed]
    return claims


def _current(control: Control, pipeline: str, key: str) -> tuple[PipelineConfig, Probe] | None:
    config = catalog.current(control.store, pipeline)
    probe = find_probe(config, key) if config is not None else None
    if config is None or probe is None or control.probes is None or not control.probes.answers(pipeline, key):
        return None
    return config, probe


def find_probe(config: PipelineConfig, key: str) -> Probe | None:
    """The probe of that name."""
    return next((probe for probe in config.probes if probe.key == key), None)


def _periods(control: Control, config: PipelineConfig, probe: Probe, now: datetime) -> list[Period | None]:
    """What to look for: nothing in particular, or the periods that somebody waits for, the latest first."""
    if not probes.is_dated(probe):
        return [None]
    wanted = {
        probes.current_period(probe, schedule, now)
        for schedule in config.all_schedules
        if schedule.trigger is not None and (config.dry_run or schedule.trigger.key == probe.key)
    }
    pk = keys.pipeline_pk(config.id)
    for kind in (keys.ACTIVE, keys.EXHAUSTED):
        for record in control.store.query(Table.CONTROL, pk, kind):
            key = keys.run_of(pk, record.key.sk, kind)
            if kind == keys.EXHAUSTED or _waits(records.get_run(control.store, key)):
                wanted.add(key.period)
    return [*sorted(wanted, key=str, reverse=True)[:_MOST_PERIODS]]


def _waits(run: Run | None) -> bool:
    return run is not None and run.status is RunStatus.PENDING and run.passed_at is None


def _claim(
    control: Control,
    config: PipelineConfig,
    probe: Probe,
    period: Period | None,
    before: ProbeState | None,
    definition: str,
) -> Claim | None:
    now, interval = control.now(), probes.interval_of(config, probe)
    same = before if before is not None and before.definition == definition else None
    state = ProbeState(
        key=probes.sensor_key(probe, period),
        version=before.version + 1 if before is not None else 1,
        look=control.new_id(),
        definition=definition,
        started_at=now,
        ends_by=now + probe.timeout + probes.GRACE,
        failing=same is not None and same.failing,
        error=same.error if same is not None else "",
    )
    when: Condition = Missing() if before is None else Matches({"version": before.version})
    if control.store.commit([_put(config.id, state, interval, when)]) is not None:
        return None  # somebody else takes it
    bare = ProbeRequest(
        pipeline=config.id,
        key=probe.key,
        type=probe.type,
        config={},
        timeout=probe.timeout,
        date=str(period) if period is not None else "",
    )
    claim = Claim(request=bare, state=state, ttl=probes.ttl_of(config, probe), interval=interval)
    try:
        return msgspec.structs.replace(claim, request=request_of(control, config, probe, period))
    except InvalidValueError as error:  # a variable that is not set where the controller runs
        failed(control, claim, str(error))
        return None


def request_of(control: Control, config: PipelineConfig, probe: Probe, period: Period | None) -> ProbeRequest:
    """What is asked: the probe's config with its templates filled in, except secrets."""
    where = f"probes[{config.probes.index(probe)}].config"
    return ProbeRequest(
        pipeline=config.id,
        key=probe.key,
        type=probe.type,
        config=probes.fill_probe(probe, config.id, period, control.settings.environment, where=where),
        timeout=probe.timeout,
        date=str(period) if period is not None else "",
    )


# ------------------------------------------------------------------------------------------------- what became of it


def succeeded(control: Control, claim: Claim, data: dict[str, Any]) -> None:
    """Write what was seen, as anybody's observation is written; one that may not be stored is a failed look."""
    pipeline, key = claim.request.pipeline, claim.state.key
    now = control.now()
    try:
        ttl = -(-epoch_millis(now + claim.ttl) // 1000)
        put, _ = writing.prepare_sensor(control, pipeline, key, data, ttl=ttl, by=BY_PROBE)
    except UnknownPipelineError:
        return  # deleted meanwhile
    except InvalidValueError as error:
        failed(control, claim, str(error))
        return
    ended = msgspec.structs.replace(claim.state, ended_at=now, failing=False, error="")
    control.store.commit([_put(pipeline, ended, claim.interval, _still_ours(claim)), put])


def failed(control: Control, claim: Claim, error: str) -> None:
    """Nothing is written but the failure; PROBE_FAILED when it is the first in a row."""
    pipeline, now = claim.request.pipeline, control.now()
    if _current(control, pipeline, claim.request.key) is None:
        return  # deleted meanwhile
    ended = msgspec.structs.replace(claim.state, ended_at=now, failing=True, error=error[:_LONGEST_ERROR])
    writes: list[Write] = [_put(pipeline, ended, claim.interval, _still_ours(claim))]
    if not claim.state.failing:
        message = f"the probe {claim.state.key} of {pipeline} failed, and writes nothing: {ended.error}"
        key = RunKey(pipeline, "", claim.request.date)
        failed = records.event(EventType.PROBE_FAILED, key, now, message, key=claim.state.key, error=ended.error)
        writes.append(records.put_event(failed))
    if control.store.commit(writes) is None:
        _wake_waiting(control, claim, now)


def _still_ours(claim: Claim) -> Matches:
    return Matches({"look": claim.state.look})


def _wake_waiting(control: Control, claim: Claim, now: datetime) -> None:
    """An earlier observation that has not expired counts again: those that waited for a newer one look again."""
    pipeline, key = claim.request.pipeline, claim.state.key
    sensor = records.get_sensors(control.store, pipeline, [key]).get(key)
    if sensor is None or sensor.expired(now):
        return
    for run in records.active_runs(control.store, pipeline):
        if claim.request.date in ("", run.date) and _waits(records.get_run(control.store, run)):
            waking.wake(control, run)


# ----------------------------------------------------------------------------------------------- before an evaluation


def awaited(control: Control, config: PipelineConfig, run: Run, now: datetime) -> dict[str, datetime]:
    """The sensors of a run whose probes are due or under way, and until when each is waited for."""
    if not config.probes or control.probes is None:
        return {}
    current = catalog.current(control.store, run.pipeline)
    names = {reading.key for reading in readiness.input_readings(config, config.schedule_of(run.schedule))}
    found: dict[str, datetime] = {}
    for probe in current.probes if current is not None else ():
        if probe.key not in names or current is None or not control.probes.answers(run.pipeline, probe.key):
            continue
        key = probes.sensor_key(probe, run.key.period if probes.is_dated(probe) else None)
        state = _state(control.store, run.pipeline, key)
        until = probes.awaited_until(state, probes.interval_of(current, probe), now)
        if until is not None:
            found[key] = until
    return found


def without(sensors: dict[str, Sensor], awaited: dict[str, datetime]) -> dict[str, Sensor]:
    """What an evaluation may count on while looks are awaited."""
    return {key: sensor for key, sensor in sensors.items() if key not in awaited}


def failures(store: Store, config: PipelineConfig, key: RunKey) -> dict[str, str]:
    """By key: why the latest look of each probe that a run reads failed."""
    found: dict[str, str] = {}
    for probe in config.probes:
        sensor = probes.sensor_key(probe, key.period if probes.is_dated(probe) else None)
        state = _state(store, key.pipeline, sensor)
        if state is not None and state.failing:
            found[probe.key] = state.error
    return found


# -------------------------------------------------------------------------------------------------------------- by hand


def try_out(control: Control, pipeline: str, key: str, date: str | None) -> ProbeRequest:
    """A look that a person asks for: neither claimed nor recorded. `date`: for a dated probe; default: the current."""
    config = writing.known_pipeline(control, pipeline)
    if config is None:
        raise InvalidValueError(f"the config of {pipeline} is invalid: it is not run, nor are its probes")
    probe = find_probe(config, key)
    if probe is None:
        known = ", ".join(one.key for one in config.probes) or "none"
        raise InvalidValueError(f"{pipeline} has no probe {key!r}: it has {known}")
    if not probes.is_dated(probe):
        if date is not None:
            raise InvalidValueError(f"the probe {key} of {pipeline} looks for no date: its config names no ${{DATE}}")
        return request_of(control, config, probe, None)
    period = parse_period(date) if date is not None else _latest_period(control, config, probe)
    return request_of(control, config, probe, period)


def _latest_period(control: Control, config: PipelineConfig, probe: Probe) -> Period:
    found = [period for period in _periods(control, config, probe, control.now()) if period is not None]
    return found[0] if found else probes.current_period(probe, config.all_schedules[0], control.now())


# ------------------------------------------------------------------------------------------------------------ records


def _key(pipeline: str, sensor: str) -> Key:
    return records.control_key(keys.pipeline_pk(pipeline), keys.PROBE + sensor)


def _state(store: Store, pipeline: str, sensor: str) -> ProbeState | None:
    return records.get(store, _key(pipeline, sensor), ProbeState)


def _put(pipeline: str, state: ProbeState, interval: timedelta, when: Condition) -> Put:
    """The record goes by itself when nobody looks any more: a probe that was removed, a period that is over."""
    item = records.plain(state)
    item["ttl"] = int((state.started_at + 2 * interval + _REMEMBERED).timestamp())
    return Put(_key(pipeline, state.key), item, when)

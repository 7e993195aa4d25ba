"""Opening an attempt: one commit makes the run PENDING with its `ACTIVE#` record, its SLA state and TRIGGER_STARTED.

Nothing is started here. The stream-router starts the execution from the change of the run record, and the watchdog
repairs a start that was lost; so a crash at any instant leaves either no run or one that will be started.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace

from interlock.control import catalog, promises, records
from interlock.control.context import Control
from interlock.decide import sla, transitions
from interlock.model import keys
from interlock.model.config import PipelineConfig, Schedule
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import Run, SlaState, Source
from interlock.model.sensor import Sensor
from interlock.ports.executions import StartResult
from interlock.ports.store import Delete, Store, Write


class Opened(StrEnum):
    """What came of it."""

    OPENED = "opened"
    EXISTS = "exists"
    EXCLUDED = "excluded"
    DRY_RUN = "dry-run"
    NO_CONFIG = "no-config"


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Why a first attempt is to be opened."""

    key: RunKey
    opened_by: str
    tick_at: datetime | None = None
    first_arrival: datetime | None = None


def open_first(control: Control, start: Start, event: Event | None = None) -> Opened:
    """Open attempt 1 of a run, unless the calendar withholds it or the run exists already.

    `event`: what else there is to tell if it opens, in the same commit.
    """
    current = catalog.in_force(control.store, start.key.pipeline)
    return Opened.NO_CONFIG if current is None else open_first_with(control, current, start, event)


def open_first_with(control: Control, current: catalog.InForce, start: Start, event: Event | None = None) -> Opened:
    """As `open_first`, by a config that was read just now."""
    config = current.config
    if config.dry_run:
        return Opened.DRY_RUN
    schedule = config.schedule_of(start.key.schedule)
    reason = catalog.calendar_reason(control.store, schedule, start.key.period)
    if reason is not None:
        report_excluded(control, start.key, reason)
        return Opened.EXCLUDED

    def decide() -> tuple[Opened, list[Write]]:
        if records.get_run(control.store, start.key) is not None:
            return Opened.EXISTS, []
        run = transitions.open_attempt(
            None,
            start.key,
            Source.FIRST,
            control.now(),
            config_version=current.version,
            lease_until=lease_until(control, config, schedule),
            opened_by=start.opened_by,
            tick_at=start.tick_at,
        )
        writes = opening_writes(control, config, run, None, first_arrival=start.first_arrival)
        also = [] if event is None else records.put_events(event)
        return Opened.OPENED, [*writes, *version_writes(control, config, current.document), *also]

    return records.settle_commit(control, decide)


def report_excluded(control: Control, key: RunKey, reason: str) -> None:
    """An excluded start: PIPELINE_EXCLUDED, once per run, and nothing else."""
    event = records.event(
        EventType.PIPELINE_EXCLUDED, key, control.now(), f"{key.pipeline} is not opened: {reason}", reason=reason
    )
    records.publish_once(control, event, EventType.PIPELINE_EXCLUDED)


def report_invalid(control: Control, sensor: Sensor, pipeline: str, problem: str) -> None:
    """A write whose period is unclear: SENSOR_INVALID, once per write, and no run is started by it."""
    message = f"sensor {sensor.key} of {pipeline} starts no run: {problem}"
    slot = RunKey(pipeline, "", "")
    event = records.event(EventType.SENSOR_INVALID, slot, control.now(), message, key=sensor.key, reason=problem)
    unique = f"{EventType.SENSOR_INVALID}-{sensor.key}-{records.stamp(sensor)}"
    records.publish_once(control, event, unique)


def version_writes(control: Control, config: PipelineConfig, document: dict[str, Any]) -> list[Write]:
    """Keep the config version that an attempt is opened with, unless it is kept already."""
    put = catalog.version_of(config, document)
    return [] if control.store.get(put.key) is not None else [put]


def opening_writes(
    control: Control, config: PipelineConfig, run: Run, before: Run | None, *, first_arrival: datetime | None = None
) -> list[Write]:
    """Everything that one opening commits, apart from what its cause adds."""
    event = records.event(
        EventType.TRIGGER_STARTED,
        run.key,
        run.opened_at,
        f"attempt {run.attempt} of {run.pipeline} for {run.date} opened: {run.opened_by or run.source}",
        attempt=run.attempt,
        source=run.source,
        openedBy=run.opened_by,
        configVersion=run.config_version,
        requestedBy=run.requested_by or None,
    )
    until = run.lease_until or run.opened_at
    return [
        records.put_run(run, before),
        records.put_active(run),
        *catalog.in_use_writes(control.store, run.pipeline, run.config_version, until),
        *sla_writes(control, config, run, first_arrival),
        Delete(records.run_record(run.key, keys.EXHAUSTED)),
        records.put_event(event),
    ]


def sla_writes(control: Control, config: PipelineConfig, run: Run, first_arrival: datetime | None) -> list[Write]:
    """The SLA state of a run that opens, by its own config; what was promised before it opened gives way to that.

    Later attempts keep it. A run that has once completed, or failed for good, arms nothing any more.
    """
    if run.first_completed_at is not None or run.sla_closed:
        return []
    before, now = records.get_sla(control.store, run.key), control.now()
    if before is None and (config.sla is None or sla_was_alerted(control.store, run.key, run.attempt, now)):
        return []
    if before is not None and (before.outcome is not None or run.attempt > 1):
        return []
    if before is not None and config.sla is None:
        return [promises.withdrawn(before)]
    state = _sla_state(config, run, before, first_arrival)
    # Nobody waited for a back-fill: it alerts nobody, unless the alert was promised before somebody asked for the run.
    waited_for = before is not None and (before.fired or sla.next_instants(before))
    if run.source is Source.MANUAL and not waited_for and sla.is_over(state, now):
        state = replace(state, back_fill=True)
    return [] if state is before else [records.put_sla(state, before)]


def _sla_state(config: PipelineConfig, run: Run, before: SlaState | None, first_arrival: datetime | None) -> SlaState:
    if config.sla is None:
        raise ValueError(f"{config.id} has no sla")
    arrival = (before.first_arrival if before is not None else None) or first_arrival
    schedule = config.schedule_of(run.schedule)
    fresh = sla.state_of(config.sla, schedule, run.key, run.config_version, arrival, tick_at=run.tick_at)
    return sla.carried_over(fresh, before)


def sla_was_alerted(store: Store, key: RunKey, attempt: int, now: datetime) -> bool:
    """There is no SLA record: because it has gone since, its alerts given?

    An earlier attempt had one, or the watchdog armed one for the period, if anybody watched it then. A period from
    before that time was never alerted: its back-fill has an SLA like any run.
    """
    if not sla.is_past(key.period, now):
        return False
    since = catalog.watched_since(store, key.pipeline)
    return attempt > 1 or since is None or since <= sla.ended(key.period)


def execution_bound(control: Control, config: PipelineConfig, schedule: Schedule) -> float:
    """How many seconds an execution may take in all."""
    bound = control.settings.execution_timeout.total_seconds()
    if not control.settings.stretch_timeout or config.job is None:
        return bound
    windows = schedule.evaluation.window + config.job.poll_window
    return max(bound, windows.total_seconds() + 600)


def lease_until(control: Control, config: PipelineConfig, schedule: Schedule) -> datetime:
    """An attempt that lives longer than this is stale; only the watchdog acts on it."""
    bound = timedelta(seconds=execution_bound(control, config, schedule))
    return control.now() + bound + control.settings.lease_margin


def start_execution(control: Control, run: Run) -> StartResult:
    """Start the execution of an active attempt. Asked for one that is open, it does nothing."""
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    schedule = config.schedule_of(run.schedule)
    return control.executions.start(
        keys.execution_name(run.key, run.attempt, run.part),
        {
            "pipeline": run.pipeline,
            "schedule": run.schedule,
            "date": run.date,
            "attempt": run.attempt,
            "attemptText": str(run.attempt),
            "pk": run.key.pk,
            "activeSk": run.key.sk(keys.ACTIVE),
            "sla": config.sla is not None,
            "timeoutSeconds": execution_bound(control, config, schedule),
        },
    )

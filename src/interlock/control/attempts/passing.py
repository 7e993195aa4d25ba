"""The rules have passed, in the lifecycle or in a claim: what the attempt remembers of that."""

from datetime import datetime

from msgspec.structs import replace

from interlock.control import readiness, records
from interlock.control.context import Control
from interlock.decide import sla, transitions
from interlock.decide.rules import Verdict
from interlock.decide.sensors import Reading
from interlock.model.config import PipelineConfig
from interlock.model.events import EventType
from interlock.model.run import Run, SlaKind
from interlock.model.sensor import Sensor
from interlock.ports.store import Write


def passed(
    control: Control,
    config: PipelineConfig,
    run: Run,
    verdict: Verdict,
    sensors: dict[str, Sensor],
    now: datetime,
    *,
    slot: str,
) -> tuple[Run, list[Write]]:
    """The run with what it was decided on, and what else belongs into the commit: VALIDATION_PASSED, its SLA.

    `sensors` are those of `readiness.all_readings`, as the verdict saw them; `slot` is the one of its pool, if it has
    any.
    """
    schedule = config.schedule_of(run.schedule)
    inputs = readiness.choose(config, run.key, readiness.input_readings(config, schedule), sensors, now)
    after = readiness.choose(config, run.key, readiness.post_run_readings(config), sensors, now)
    # Not from the inputs: there a rule with `period: any` may have taken the trigger's sensor of another period.
    trigger = [] if schedule.trigger is None else [Reading(schedule.trigger.key)]
    payload = next(iter(readiness.choose(config, run.key, trigger, sensors, now).values()), None)
    remembering = transitions.amend(
        run,
        now=now,
        passed_at=now,
        slot=slot,
        inputs=readiness.digests(inputs),
        trigger_payload=payload.data if payload else None,
        post_run_sensors=readiness.post_run_values(config, after),
    )
    event = records.event(
        EventType.VALIDATION_PASSED,
        run.key,
        now,
        f"the rules of {run.pipeline} passed for {run.date}: {verdict.summary()}",
        attempt=run.attempt,
        results=list(verdict.results),
    )
    return remembering, [records.put_event(event), *_ready_in_time(control, config, run, now)]


def _ready_in_time(control: Control, config: PipelineConfig, run: Run, now: datetime) -> list[Write]:
    """The rules have passed: READINESS_LATE is not given any more, whatever becomes of this attempt."""
    state = records.get_sla(control.store, run.key) if config.sla is not None and config.sla.ready_by else None
    if state is None or SlaKind.READINESS not in sla.next_instants(state):
        return []
    return [records.put_sla(replace(state, version=state.version + 1, ready_at=now), state)]


def breach_of(control: Control, run: Run) -> datetime | None:
    """When the run would miss its SLA: who is nearer to that comes first in the line for a pool."""
    state = records.get_sla(control.store, run.key)
    return None if state is None else state.breach_at or state.relative_breach_at

"""Opening a run again whose window had closed (SPEC 5): a write came, within a day, that makes its rules pass."""

from interlock.control import catalog, readiness, records
from interlock.control.attempts import opening
from interlock.control.context import Control
from interlock.decide import readers, transitions
from interlock.decide.rules import evaluate
from interlock.decide.sensors import period_of_write
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, Run, RunStatus, Source
from interlock.model.sensor import Sensor
from interlock.ports.store import Write


def reopen_readers(control: Control, current: catalog.InForce, sensor: Sensor) -> None:
    """The runs that gave up waiting, and whose rules this write may have made pass."""
    reach = readers.reach(current.config, sensor)
    for key in records.reached(control.store, current.config, keys.EXHAUSTED, reach):
        reopen(control, current, key, sensor, f"sensor {sensor.key}")


def reopen(control: Control, current: catalog.InForce, key: RunKey, sensor: Sensor | None, cause: str) -> None:
    """Open a run again that gave up waiting, if its rules pass now; `afterWindow: stop` left no record of it.

    `sensor`: the write that may have made them pass; None when that is an upstream's marker.
    """
    config = current.config
    schedule = config.schedule_of(key.schedule)
    exhausted = control.store.get(records.run_record(key, keys.EXHAUSTED))
    given_up = records.get_run(control.store, key) if exhausted is not None else None
    if given_up is None or not _passes(control, config, given_up, sensor):
        return
    reason = catalog.calendar_reason(control.store, schedule, key.period)
    if reason is not None:
        opening.report_excluded(control, key, reason)
        return

    def decide() -> tuple[None, list[Write]]:
        run = records.get_run(control.store, key)
        if run is None or not _reopens(control, run):
            return None, []
        again = transitions.open_attempt(
            run,
            key,
            Source.REOPEN,
            control.now(),
            config_version=current.version,
            lease_until=opening.lease_until(control, config, schedule),
            opened_by=f"re-opened: {cause} made the rules pass",
        )
        writes = opening.opening_writes(control, config, again, run)
        return None, [*writes, *opening.version_writes(control, config, current.document)]

    records.settle_commit(control, decide)


def _passes(control: Control, config: PipelineConfig, run: Run, sensor: Sensor | None) -> bool:
    """Do the rules pass by what may re-open the run? An undated write that came too late may not, nor help another."""
    scope = readiness.reopening_scope(config, run)
    undated = sensor is not None and period_of_write(sensor.key, sensor.data).period is None
    if sensor is not None and undated and scope.until is not None and sensor.received_at >= scope.until:
        return False
    rules = config.validation.rules
    found = readiness.gather(control.store, config, run.key, [rule.key for rule in rules])
    return evaluate(rules, config.validation.trigger, found, scope, control.now()).passed


def gave_up(run: Run) -> bool:
    """Did it end because its rules had not passed when the window closed? It has used nothing of its inputs."""
    return run.status is RunStatus.FAILED_FINAL and run.final_reason is FinalReason.VALIDATION_EXHAUSTED


def _reopens(control: Control, run: Run) -> bool:
    return gave_up(run) and run.ended_at is not None and control.now() < run.ended_at + control.settings.reopen_for

"""Cascade: an upstream's marker opens the downstream run, wakes it, opens it again, or asks for it again (SPEC 9)."""

from interlock.control import catalog, changed_inputs, readiness, records, waking
from interlock.control.attempts import opening, reopening
from interlock.control.context import Control
from interlock.decide import cascade
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.periods import day_period, parse_period
from interlock.model.run import Marker, Run, RunStatus
from interlock.ports.store import Key


def marker_arrived(control: Control, where: Key) -> None:
    """A marker was written into a downstream's partition."""
    marker = records.get(control.store, where, Marker)
    if marker is None:
        return
    slot = keys.run_of(where.pk, where.sk, keys.MARKER)
    current = catalog.in_force(control.store, slot.pipeline)
    period = parse_period(marker.date)
    for about in dict.fromkeys((period, day_period(period.day))):
        key = RunKey(slot.pipeline, slot.schedule, str(about))
        run = records.get_run(control.store, key)
        if run is not None and run.active:
            _wake(control, run, marker)
        elif current is not None and not current.config.dry_run and _contributes(current.config, key, marker):
            _advance(control, current, key, run, marker)


def completed(control: Control, config: PipelineConfig, run: Run) -> None:
    """An upstream may have completed again between the reading and the commit of this run's completion: ask, once.

    The marker's own change came while the run was active, and was left to the completion. So the stream-router calls
    this from the change of the completed run; the request has the name it always has.
    """
    if config.find_schedule(run.schedule) is not None:
        _ask_again(control, config, run)


def _contributes(config: PipelineConfig, key: RunKey, marker: Marker) -> bool:
    """Does a run wait for this marker, by that config?"""
    schedule = config.find_schedule(key.schedule)
    entries = [] if schedule is None else [entry for entry in config.after if entry.pipeline == marker.upstream]
    return schedule is not None and any(
        cascade.wanted_periods(entry, schedule, parse_period(marker.date)) == key.period for entry in entries
    )


def _wake(control: Control, run: Run, marker: Marker) -> None:
    """A run that has not passed yet reads the marker when it looks again; one that has, compares at completion."""
    if run.status is not RunStatus.PENDING or run.passed_at is not None:
        return
    config = catalog.opened_with(control.store, run.pipeline, run.config_version)
    if _contributes(config, run.key, marker) and readiness.reads(config, keys.UPSTREAM + marker.upstream):
        waking.wake(control, run.key)


def _advance(control: Control, current: catalog.InForce, key: RunKey, run: Run | None, marker: Marker) -> None:
    config = current.config
    if run is None:
        if not readiness.awaited_upstreams(control.store, config, key):
            why = f"cascade: {', '.join(entry.pipeline for entry in config.after)} completed {key.date}"
            opening.open_first(control, opening.Start(key=key, opened_by=why))
    elif not reopening.gave_up(run):
        _ask_again(control, config, run)
    elif readiness.reads(config, keys.UPSTREAM + marker.upstream):
        # It has used nothing that could be out of date: there is nothing to repeat, only something to open again.
        reopening.reopen(control, current, key, None, f"upstream {marker.upstream}")


def _ask_again(control: Control, config: PipelineConfig, run: Run) -> None:
    request = changed_inputs.upstream_again(control, config, run, control.now())
    control.store.commit(changed_inputs.request_writes(control, request))

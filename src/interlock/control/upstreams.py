"""Cascade: an upstream's marker opens the downstream run, wakes it, or asks for it again (SPEC 9)."""

from interlock.control import catalog, changed_inputs, opening, readiness, records, waking
from interlock.control.context import Control
from interlock.decide import cascade
from interlock.decide.sensors import key_matches
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period
from interlock.model.run import Marker, Run, RunStatus


def marker_arrived(control: Control, pipeline: str, schedule_id: str, date: str, upstream: str) -> None:
    """A marker was written into a downstream's partition."""
    config = catalog.current(control.store, pipeline)
    where = records.control_key(keys.pipeline_pk(pipeline), keys.marker_sk(schedule_id, date, upstream))
    marker = records.get(control.store, where, Marker)
    if config is None or marker is None or config.find_schedule(schedule_id) is None:
        return
    schedule = config.schedule_of(schedule_id)
    for entry in config.after:
        period = cascade.wanted_periods(entry, schedule, parse_period(date))
        if entry.pipeline == upstream and period is not None:
            _advance(control, config, RunKey(pipeline, schedule_id, str(period)), marker)


def completed(control: Control, config: PipelineConfig, run: Run) -> None:
    """An upstream may have completed again between the reading and the commit of this run's completion: ask, once.

    The marker's own change came while the run was active, and was left to the completion. So the stream-router calls
    this from the change of the completed run; the request has the name it always has.
    """
    if config.find_schedule(run.schedule) is not None:
        _ask_again(control, config, run)


def _advance(control: Control, config: PipelineConfig, key: RunKey, marker: Marker) -> None:
    run = records.get_run(control.store, key)
    if run is None:
        if not readiness.awaited_upstreams(control.store, config, key):
            why = f"cascade: {', '.join(entry.pipeline for entry in config.after)} completed {key.date}"
            opening.open_first(control, opening.Start(key=key, opened_by=why, day=key.period.day))
        return
    reads_it = any(key_matches(rule.key, keys.UPSTREAM + marker.upstream) for rule in config.validation.rules)
    if run.active:
        # A run that has not passed yet reads the marker when it looks again; one that has, compares at completion.
        if run.status is RunStatus.PENDING and reads_it:
            waking.wake(control, key)
        return
    _ask_again(control, config, run)


def _ask_again(control: Control, config: PipelineConfig, run: Run) -> None:
    request = changed_inputs.upstream_again(control, config, run, control.now())
    control.store.commit(changed_inputs.request_writes(control, request))

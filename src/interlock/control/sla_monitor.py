"""sla-monitor: schedule, cancel, fire-alert, calculate, reconcile (SPEC 6).

The SLA state of a run is the truth; timers only point at it. A timer that fires late, twice or after the run has ended
finds that out from the state, and the alert and "the run has not finished" are one commit.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from interlock.control import catalog, opening, readiness, records
from interlock.control.completion import severity_of
from interlock.control.context import Control
from interlock.decide import sla
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError
from interlock.model.events import CATALOGUE, Event
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus, SlaKind, SlaState
from interlock.model.times import format_instant
from interlock.ports.store import Matches, Missing, Require, Write
from interlock.ports.timers import Timer, TimerKind


def handle(control: Control, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The entry point of the lifecycle's SLA states and of timers."""
    key = RunKey(str(payload["pipeline"]), str(payload["schedule"]), str(payload["date"]))
    mode = str(payload.get("mode", ""))
    act = _MODES.get(mode)
    if act is None:
        raise InterlockError(f"the sla-monitor has no mode {mode!r}: it has {', '.join(_MODES)}")
    return act(control, key, payload)


def timer_name(key: RunKey, kind: SlaKind) -> str:
    """Deterministic, so that arming again moves the same timer."""
    return f"sla-{kind}-{keys.execution_name(key, 1)[-40:]}"


def schedule(control: Control, key: RunKey) -> dict[str, Any]:
    """Make the timers of a run agree with its SLA state."""
    state = records.get_sla(control.store, key)
    pending = sla.next_instants(state) if state is not None else {}
    for kind, at in pending.items():
        payload = {"mode": "fire-alert", "pipeline": key.pipeline, "schedule": key.schedule, "date": key.date}
        control.timers.arm(Timer(timer_name(key, kind), at, TimerKind.SLA, payload | {"kind": kind.value}))
    if state is not None and state.outcome is not None:
        cancel(control, key)
    return {kind.value: format_instant(at) for kind, at in pending.items()}


def cancel(control: Control, key: RunKey) -> dict[str, Any]:
    """Forget the timers of a run; one already on its way finds the state closed."""
    for kind in SlaKind:
        control.timers.cancel(timer_name(key, kind))
    return {"cancelled": True}


def fire_alerts(control: Control, key: RunKey) -> dict[str, Any]:
    """Give every alert that is due, unless the run has finished. One commit: alert, state, and the run as we saw it."""

    def decide() -> tuple[dict[str, Any], list[Write]]:
        state = records.get_sla(control.store, key)
        run = records.get_run(control.store, key)
        if state is None or _finished(run):
            return {"fired": []}, []
        now = control.now()
        due = sla.due(state, now)
        if not due:
            return {"fired": []}, []
        fired = replace(state, version=state.version + 1, fired=state.fired | dict.fromkeys(due, now))
        event = [_alert(control, state, run, kind, now) for kind in due]
        same = Missing() if run is None else Matches({"version": run.version})
        return {"fired": [kind.value for kind in due]}, [
            records.put_sla(fired, state),
            Require(records.run_record(key, keys.RUN), same),
            *records.put_events(*event),
        ]

    return records.settle_commit(control, decide)


def _finished(run: Run | None) -> bool:
    if run is None:
        return False
    # An attempt of a rerun is nobody's deadline: the SLA was decided at the first completion.
    ended = run.final_reason is not None and run.final_reason.closes_sla
    return run.first_completed_at is not None or ended


def _alert(control: Control, state: SlaState, run: Run | None, kind: SlaKind, now: datetime) -> Event:
    type_ = sla.alert_event_type(kind)
    breach = kind in (SlaKind.BREACH, SlaKind.RELATIVE_BREACH)
    relative = kind in (SlaKind.RELATIVE_BREACH, SlaKind.RELATIVE_WARNING)
    breach_at = state.relative_breach_at if relative else state.breach_at
    status = run.word.value if run is not None else "not started"
    waiting, hint = _waiting_for(control, state, run, now)
    at = format_instant(breach_at) if breach_at else ""
    message = (
        f"{state.pipeline} for {state.date} {'has missed' if breach else 'may miss'} its deadline ({at}): {status}"
        + (f"; waiting for {waiting[0]}" if waiting else "")
    )
    return records.event(
        type_,
        state.key,
        now,
        message,
        severity=severity_of(CATALOGUE[type_].severity, critical=state.critical),
        status=status,
        deadline=state.deadline,
        breachAt=at,
        waitingFor=waiting,
        actionHint=hint,
        dedupKey=f"{state.pipeline}/{state.schedule}/{state.date}/{type_}",
        firstArrival=state.first_arrival if relative else None,
    )


def _waiting_for(control: Control, state: SlaState, run: Run | None, now: datetime) -> tuple[list[str], str]:
    """What the run waits for, and what somebody who was woken up should look at."""
    config = catalog.current(control.store, state.pipeline)
    if run is not None and run.status in (RunStatus.TRIGGERING, RunStatus.RUNNING):
        return [f"job {run.job_id or run.run_id}"], f"look at the job {run.job_id or run.run_id} in its own system"
    if run is not None and run.status is RunStatus.FAILED:
        return ["the retry"], f"the job failed: {run.message}"
    if config is None or config.find_schedule(state.schedule) is None:
        return [], "the pipeline's config is gone or invalid: look at `interlock validate`"
    failing = _failing(control, config, state.key, now)
    if run is not None and run.status is RunStatus.FAILED_FINAL:
        return failing, f"it ended ({run.final_reason}): {run.message or 'see its events'}; rerun it when it is mended"
    if failing:
        return failing, f"look at who writes {failing[0].split(':')[0]}; `interlock why {state.pipeline}` says more"
    return ["its start"], "the rules pass but nothing has opened the run: look at the scheduler or the trigger sensor"


def _failing(control: Control, config: PipelineConfig, key: RunKey, now: datetime) -> list[str]:
    verdict = readiness.readiness(control.store, config, key, now)
    return [] if verdict.passed else [f"{result.key}: {result.reason}" for result in verdict.failing]


def calculate(control: Control, key: RunKey) -> dict[str, Any]:
    """The warning and breach of a run as absolute times, without arming anything."""
    config = catalog.current(control.store, key.pipeline)
    if config is None or config.sla is None:
        return {}
    before = records.get_sla(control.store, key)
    arrival = before.first_arrival if before else None
    times = sla.sla_times(config.sla, config.schedule_of(key.schedule), key.period, arrival)
    return {
        name: format_instant(at)
        for name, at in (
            ("warningAt", times.warning_at),
            ("breachAt", times.breach_at),
            ("relativeWarningAt", times.relative_warning_at),
            ("relativeBreachAt", times.relative_breach_at),
        )
        if at is not None
    }


def reconcile(control: Control, key: RunKey, *, since: datetime | None = None) -> bool:
    """Give a due period without a run its SLA state; True when it had none. Instants before `since` never alert."""
    found = catalog.stored(control.store, key.pipeline)
    if found is None or found.config is None or found.config.sla is None or sla.is_past(key.period, control.now()):
        return False
    if records.get_sla(control.store, key) is not None or records.get_run(control.store, key) is not None:
        return False
    config = found.config
    state = opening.sla_state(config, config.schedule_of(key.schedule), key, found.version, None, None)
    if since is not None and state.warning_at is not None and state.warning_at < since:
        state = msgspec.structs.replace(state, warning_at=None)
    if state.breach_at is None or (since is not None and state.breach_at < since):
        return False
    absent = Require(records.run_record(key, keys.RUN), Missing())
    return control.store.commit([records.put_sla(state, None), absent]) is None


_MODES: Final[dict[str, Callable[[Control, RunKey, Mapping[str, Any]], dict[str, Any]]]] = {
    "schedule": lambda control, key, _: schedule(control, key),
    "cancel": lambda control, key, _: cancel(control, key),
    "fire-alert": lambda control, key, _: fire_alerts(control, key),
    "calculate": lambda control, key, _: calculate(control, key),
    "reconcile": lambda control, key, _: {"armed": reconcile(control, key)},
}

"""sla-monitor: schedule, cancel, fire-alert, calculate, reconcile (SPEC 6).

The SLA state of a run is the truth; timers only point at it. A timer that fires late, twice or after the run has ended
finds that out from the state, and the alert and "the run has not finished" are one commit.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from interlock.control import catalog, promises, readiness, records
from interlock.control.attempts import completion
from interlock.control.attempts.completion import severity_of
from interlock.control.context import Control
from interlock.decide import sla
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.events import CATALOGUE, Event
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus, SlaKind, SlaOutcome, SlaState, Word
from interlock.model.times import format_instant
from interlock.ports.store import Matches, Missing, Require, Write
from interlock.ports.timers import Timer, TimerKind


def handle(control: Control, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The entry point of the lifecycle's SLA states and of timers."""
    missing = [name for name in ("pipeline", "schedule", "date") if name not in payload]
    if missing:
        raise InvalidValueError(f"the sla-monitor needs to know the run: {', '.join(missing)} is missing")
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
    """Give every alert that is due, unless the run has finished. One commit: alert, state, and the run as we saw it.

    A period without a run is judged again: by the config and the calendar of this instant.
    """

    def decide() -> tuple[dict[str, Any], list[Write]]:
        stored = records.get_sla(control.store, key)
        run = records.get_run(control.store, key)
        if stored is None or stored.outcome is not None or _finished(run):
            return {"fired": []}, []
        if run is not None and _abandoned(control, run):
            return {"fired": []}, [completion.close_sla(stored, SlaOutcome.CANCELLED, control.now()), _same(key, run)]
        state = stored if run is not None else promises.revised(control.store, stored)
        if state is None:
            return {"fired": []}, [promises.withdrawn(stored), _same(key, run)]
        now = control.now()
        due = sla.due(state, now)
        if not due and state is stored:
            return {"fired": []}, []
        fired = replace(state, version=stored.version + 1, fired=state.fired | dict.fromkeys(due, now))
        alerts = [_alert(control, state, run, kind, now) for kind in due]
        return {"fired": [kind.value for kind in due]}, [
            records.put_sla(fired, stored),
            _same(key, run),
            *records.put_events(*alerts),
        ]

    return records.settle_commit(control, decide)


def _same(key: RunKey, run: Run | None) -> Require:
    return Require(records.run_record(key, keys.RUN), Missing() if run is None else Matches({"version": run.version}))


def _abandoned(control: Control, run: Run) -> bool:
    """It ended without a result, and its pipeline was deleted or became a dry run since: nobody waits for it."""
    if run.active:
        return False
    found = catalog.stored(control.store, run.pipeline)
    return found is None or (found.config is not None and found.config.dry_run)


def _finished(run: Run | None) -> bool:
    if run is None:
        return False
    # A rerun has no deadline: the SLA was decided at the first completion.
    ended = run.final_reason is not None and run.final_reason.closes_sla
    return run.first_completed_at is not None or ended


def _alert(control: Control, state: SlaState, run: Run | None, kind: SlaKind, now: datetime) -> Event:
    type_ = sla.alert_event_type(kind)
    status = run.word.value if run is not None else "not started"
    waiting, hint = _waiting_for(control, state, run, now)
    return records.event(
        type_,
        state.key,
        now,
        f"{state.pipeline} for {state.date} {_late(state, kind)}: {_standing(status, waiting)}",
        severity=severity_of(CATALOGUE[type_].severity, critical=state.critical),
        status=status,
        waitingFor=waiting,
        actionHint=hint,
        dedupKey=f"{state.pipeline}/{state.schedule}/{state.date}/{type_}",
        **_limits(state, kind),
    )


def _limits(state: SlaState, kind: SlaKind) -> dict[str, Any]:
    """What was to be kept."""
    match kind:
        case SlaKind.READINESS:
            return {"readyBy": state.ready_by, "readyByAt": _written(state.ready_by_at)}
        case SlaKind.WARNING | SlaKind.BREACH:
            return {"deadline": state.deadline, "breachAt": _written(state.breach_at)}
        case SlaKind.RELATIVE_WARNING | SlaKind.RELATIVE_BREACH:
            breach_at = _written(state.relative_breach_at)
            return {"deadline": state.deadline, "breachAt": breach_at, "firstArrival": state.first_arrival}


def _late(state: SlaState, kind: SlaKind) -> str:
    match kind:
        case SlaKind.READINESS:
            return f"is not ready, and should have been by {state.ready_by} ({_written(state.ready_by_at)})"
        case SlaKind.WARNING:
            return f"may miss its deadline ({_written(state.breach_at)})"
        case SlaKind.BREACH:
            return f"has missed its deadline ({_written(state.breach_at)})"
        case SlaKind.RELATIVE_WARNING:
            return f"may miss its deadline ({_written(state.relative_breach_at)})"
        case SlaKind.RELATIVE_BREACH:
            return f"has missed its deadline ({_written(state.relative_breach_at)})"


def _written(at: datetime | None) -> str:
    return format_instant(at) if at is not None else ""


def _standing(status: str, waiting: list[str]) -> str:
    """Where it stands and what it waits for, once: the list has the rest."""
    if not waiting:
        return status
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    return ("" if status == Word.WAITING else f"{status}; ") + f"waiting for {waiting[0]}{more}"


def _waiting_for(control: Control, state: SlaState, run: Run | None, now: datetime) -> tuple[list[str], str]:
    """What the run waits for, and what somebody who was woken up should look at."""
    config = _config(control, state, run)
    if run is not None and run.status in (RunStatus.TRIGGERING, RunStatus.RUNNING):
        return [f"job {run.job_id or run.run_id}"], f"look at the job {run.job_id or run.run_id} in its own system"
    if run is not None and run.status is RunStatus.FAILED:
        return ["the retry"], f"the job failed: {run.message}"
    if config is None or config.find_schedule(state.schedule) is None:
        return [], "the pipeline's config is gone or invalid: look at `interlock validate`"
    verdict = readiness.readiness(control.store, config, state.key, now)
    failing = () if verdict.passed else verdict.failing
    waiting = list(dict.fromkeys(f"{result.key} ({result.reason})" for result in failing))
    why = _why(config, state)
    if run is not None and run.status is RunStatus.FAILED_FINAL:
        ended = f"it ended ({run.final_reason}): {run.message or 'see its events'}"
        return waiting, f"{ended}; rerun it when it is mended; {why} says more"
    if waiting:
        return waiting, f"look at who writes {failing[0].key}; {why} says more"
    if run is not None:
        return ["its start"], f"the rules pass: its job is about to be started; {why} says more"
    opens = "the rules pass but nothing has opened the run: look at the scheduler or the trigger sensor"
    return ["its start"], f"{opens}; {why} says more"


def _config(control: Control, state: SlaState, run: Run | None) -> PipelineConfig | None:
    """By which rules it is judged: those of its attempt, if there is one."""
    if run is None:
        return catalog.current(control.store, state.pipeline)
    return catalog.opened_with(control.store, run.pipeline, run.config_version)


def _why(config: PipelineConfig, state: SlaState) -> str:
    schedule = f" --schedule {state.schedule}" if len(config.all_schedules) > 1 else ""
    return f"`interlock why {state.pipeline} --date {state.date}{schedule}`"


def calculate(control: Control, key: RunKey) -> dict[str, Any]:
    """The instants of a run's SLA as absolute times, without arming anything."""
    config = catalog.current(control.store, key.pipeline)
    if config is None or config.sla is None:
        return {}
    before = records.get_sla(control.store, key)
    arrival = before.first_arrival if before else None
    times = sla.sla_times(config.sla, config.schedule_of(key.schedule), key.period, arrival)
    return {
        name: format_instant(at)
        for name, at in (
            ("readyByAt", times.ready_by_at),
            ("warningAt", times.warning_at),
            ("breachAt", times.breach_at),
            ("relativeWarningAt", times.relative_warning_at),
            ("relativeBreachAt", times.relative_breach_at),
        )
        if at is not None
    }


def reconcile(control: Control, key: RunKey) -> bool:
    """Give a period without a run its SLA state; True when it had none."""
    terms = promises.terms_of(control.store, catalog.stored(control.store, key.pipeline))
    return terms is not None and promises.arm(control, terms, key)


_MODES: Final[dict[str, Callable[[Control, RunKey, Mapping[str, Any]], dict[str, Any]]]] = {
    "schedule": lambda control, key, _: schedule(control, key),
    "cancel": lambda control, key, _: cancel(control, key),
    "fire-alert": lambda control, key, _: fire_alerts(control, key),
    "calculate": lambda control, key, _: calculate(control, key),
    "reconcile": lambda control, key, _: {"armed": reconcile(control, key)},
}

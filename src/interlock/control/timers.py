"""Which function each timer calls: one entry point for the timers of every runtime.

A timer is delivered at least once, perhaps late: every receiver reads the current records and decides whether it still
matters.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from interlock.control import after_run, router, sla_monitor, tick_timers, waking
from interlock.control.context import Control
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey
from interlock.ports.timers import TimerKind


def timer_due(control: Control, kind: str, payload: Mapping[str, Any]) -> None:
    """A timer has come. Raises when its kind or its payload is none of ours: a dead letter, not silence."""
    receive = _RECEIVERS.get(kind)
    if receive is None:
        raise InvalidValueError(f"there is no timer kind {kind!r}: a timer is one of {', '.join(sorted(_RECEIVERS))}")
    try:
        receive(control, payload)
    except KeyError as error:
        if error.args and error.args[0] in _FIELDS and error.args[0] not in payload:
            raise InvalidValueError(f"a timer of kind {str(kind)!r} has no {error.args[0]!r} in its payload") from error
        raise


_FIELDS: Final = frozenset({"pipeline", "schedule", "date", "attempt", "at"})


def _sla(control: Control, payload: Mapping[str, Any]) -> None:
    sla_monitor.handle(control, payload)


def _retry(control: Control, payload: Mapping[str, Any]) -> None:
    router.retry_due(control, _run_of(payload), int(payload["attempt"]))


def _post_run(control: Control, payload: Mapping[str, Any]) -> None:
    after_run.recheck(control, _run_of(payload), int(payload["attempt"]))


def _wake(control: Control, payload: Mapping[str, Any]) -> None:
    waking.wake_due(control, _run_of(payload))


def _run_of(payload: Mapping[str, Any]) -> RunKey:
    return RunKey(payload["pipeline"], payload["schedule"], payload["date"])


_RECEIVERS: Final[Mapping[str, Callable[[Control, Mapping[str, Any]], None]]] = {
    TimerKind.SLA: _sla,
    TimerKind.RETRY: _retry,
    TimerKind.POST_RUN: _post_run,
    TimerKind.TICK: tick_timers.tick_due,
    TimerKind.WAKE: _wake,
}

"""sla-monitor: the SLA states of the lifecycle, and the timers of alerts."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.callers import is_queue
from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.names import Function
from interlock.aws.queues import receive_timers
from interlock.control import sla_monitor
from interlock.model.errors import InvalidValueError
from interlock.ports.timers import Timer, TimerKind


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """A task of the lifecycle, or messages of the queue of SLA timers."""
    if is_queue(event):
        return receive_timers(controller, event, lambda timer: fire(controller, timer))
    return sla_monitor.handle(controller.control, event)


def fire(controller: Controller, timer: Timer) -> None:
    """An SLA timer has come; the queue has no other kind."""
    if timer.kind is not TimerKind.SLA:
        raise InvalidValueError(f"the timer {timer.name} of kind {timer.kind.value!r} is not the sla-monitor's")
    sla_monitor.handle(controller.control, timer.payload)


handler: Final = Entry(Function.SLA_MONITOR, handle)

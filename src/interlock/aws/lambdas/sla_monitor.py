"""sla-monitor: the SLA states of the lifecycle, and the timers of alerts."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.queues import is_queue, receive_timers
from interlock.aws.settings import Function
from interlock.control import sla_monitor


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """A task of the lifecycle, or messages of the queue of SLA timers."""
    if is_queue(event):
        return receive_timers(controller, event)
    return sla_monitor.handle(controller.control, event)


handler: Final = Entry(Function.SLA_MONITOR, handle)

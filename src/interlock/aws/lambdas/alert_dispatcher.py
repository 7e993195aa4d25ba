"""alert-dispatcher: sends the alerts of the queue to the channels."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.callers import is_queue
from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.names import Function
from interlock.model.errors import InvalidValueError


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """The messages of the alert queue, in order for each group."""
    if not is_queue(event):
        raise InvalidValueError(f"the alert-dispatcher takes messages of a queue, not {', '.join(sorted(event))}")
    return controller.dispatcher.dispatch(event["Records"])


handler: Final = Entry(Function.ALERT_DISPATCHER, handle)

"""stream-router: changes of the control table and the job log, timers of ticks and retries, ends of executions."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.queues import is_queue, receive_timers, source_of
from interlock.aws.settings import Function
from interlock.control import router
from interlock.model.errors import InvalidValueError


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """By who calls: a stream, or a queue of timers."""
    if source_of(event) == "aws:dynamodb":
        batch = controller.stream(Function.STREAM_ROUTER)
        return batch.deliver(event["Records"], lambda changes: router.handle(controller.control, changes))
    if is_queue(event):
        return receive_timers(controller, event)
    raise InvalidValueError(f"the stream-router does not know an event with the keys {', '.join(sorted(event))}")


handler: Final = Entry(Function.STREAM_ROUTER, handle)

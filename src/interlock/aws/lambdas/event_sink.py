"""event-sink: publishes committed events to the bus, and records alarms of the infrastructure."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.queues import source_of
from interlock.aws.settings import Function
from interlock.control import event_sink
from interlock.model.errors import InvalidValueError


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """By who calls: the events stream."""
    if source_of(event) == "aws:dynamodb":
        batch = controller.stream(Function.EVENT_SINK)
        return batch.deliver(event["Records"], lambda changes: event_sink.handle(controller.bus, changes))
    raise InvalidValueError(f"the event-sink does not know an event with the keys {', '.join(sorted(event))}")


handler: Final = Entry(Function.EVENT_SINK, handle)

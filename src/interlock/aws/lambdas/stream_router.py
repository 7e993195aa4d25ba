"""stream-router: changes of the control table and the job log, timers of ticks and retries, ends of executions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interlock.aws import notices
from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.queues import is_queue, receive_timers, source_of
from interlock.aws.settings import Function
from interlock.control import router
from interlock.model import keys
from interlock.model.errors import InvalidValueError
from interlock.ports.store import Change


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """By who calls: a stream, a queue of timers, or EventBridge."""
    if source_of(event) == "aws:dynamodb":
        batch = controller.stream(Function.STREAM_ROUTER)
        return batch.deliver(event["Records"], lambda changes: route(controller, changes))
    if is_queue(event):
        return receive_timers(controller, event)
    if notices.is_notice(event):
        notice = notices.read_notice(event, controller.settings.state_machine_arn)
        return notices.act(controller.control, notice)
    raise InvalidValueError(f"the stream-router does not know an event with the keys {', '.join(sorted(event))}")


def route(controller: Controller, changes: Sequence[Change]) -> None:
    """Route a batch of changes; a CONFIG that somebody else wrote is entered into the registry of pipelines."""
    router.handle(controller.control, changes)
    for change in changes:
        if change.sk == keys.CONFIG and change.pk.startswith(keys.PIPELINE):
            controller.store.register(keys.pipeline_of(change.pk))


handler: Final = Entry(Function.STREAM_ROUTER, handle)

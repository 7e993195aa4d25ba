"""stream-router: changes of the control table and the job log, timers of ticks and retries, ends of executions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interlock.aws.callers import is_queue, is_stream
from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.names import Function
from interlock.aws.queues import receive_timers
from interlock.control import router, timers
from interlock.model import keys
from interlock.model.errors import InvalidValueError
from interlock.ports.store import Change
from interlock.ports.timers import Timer


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """By who calls: a stream, a queue of timers, or EventBridge."""
    if is_stream(event):
        batch = controller.stream(Function.STREAM_ROUTER)
        return batch.deliver(event["Records"], lambda changes: route(controller, changes))
    if is_queue(event):
        return receive_timers(controller, event, lambda timer: fire(controller, timer))
    if isinstance(event.get("detail-type"), str) and isinstance(event.get("detail"), Mapping):
        from interlock.aws import notices  # loaded by the first one: most calls are of a stream

        notice = notices.read_notice(event, controller.settings.state_machine_arn)
        return notices.act(controller.control, notice)
    raise InvalidValueError(f"the stream-router does not know an event with the keys {', '.join(sorted(event))}")


def fire(controller: Controller, timer: Timer) -> None:
    """A timer has come: call whom it is for."""
    timers.timer_due(controller.control, timer.kind, timer.payload)


def route(controller: Controller, changes: Sequence[Change]) -> None:
    """Route a batch of changes; a CONFIG that somebody else wrote is entered into the registry of pipelines."""
    router.handle(controller.control, changes)
    for change in changes:
        if change.sk == keys.CONFIG and change.pk.startswith(keys.PIPELINE):
            controller.store.register(keys.pipeline_of(change.pk))


handler: Final = Entry(Function.STREAM_ROUTER, handle)

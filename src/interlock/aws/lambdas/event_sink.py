"""event-sink: publishes committed events to the bus, queues alerts, and records alarms of the infrastructure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interlock.aws.callers import is_stream
from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.names import Function
from interlock.control import event_sink
from interlock.control.alerts import alert_dispatcher
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from interlock.model.times import parse_instant
from interlock.ports.store import Change

_STATES: Final = ("ALARM", "OK", "INSUFFICIENT_DATA")


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """By who calls: the events stream, or an alarm of CloudWatch."""
    if is_stream(event):
        batch = controller.stream(Function.EVENT_SINK)
        return batch.deliver(event["Records"], lambda changes: publish(controller, changes))
    if event.get("detail-type") == EventType.INFRA_ALARM.value:
        return record_alarm(controller, event)
    raise InvalidValueError(f"the event-sink does not know an event with the keys {', '.join(sorted(event))}")


def publish(controller: Controller, changes: Sequence[Change]) -> None:
    """Make events known: first to people, in their order; then on the bus, which has none."""
    # Records of one commit come in any order; an event's sort key says where it belongs.
    ordered = sorted(changes, key=lambda change: (change.pk, change.sk))
    alert_dispatcher.handle(controller.routing, controller.alert_queue.put, ordered)
    event_sink.handle(controller.bus, ordered)


def record_alarm(controller: Controller, event: Mapping[str, Any]) -> dict[str, Any]:
    """An alarm, as the rule's input transformer makes it: it enters the events table, and leaves by the stream."""
    alarm = event.get("detail")
    if not isinstance(alarm, Mapping) or not isinstance(alarm.get("alarmName"), str):
        raise InvalidValueError("an INFRA_ALARM without `detail.alarmName`: look at the rule's input transformer")
    if alarm.get("state") not in _STATES:
        raise InvalidValueError(f"the alarm {alarm['alarmName']} has the state {alarm.get('state')!r}, which is none")
    at = parse_instant(event.get("time")) or controller.clock.now()
    recorded = event_sink.record_alarm(controller.control, alarm, at)
    return {"recorded": recorded.type.value}


handler: Final = Entry(Function.EVENT_SINK, handle)

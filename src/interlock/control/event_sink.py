"""event-sink: publishes committed events from the events table to the bus, records those that came from elsewhere."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from interlock.control import records
from interlock.control.context import Control
from interlock.model import keys
from interlock.model.events import Event, EventType, Severity
from interlock.model.keys import RunKey
from interlock.ports.bus import Bus
from interlock.ports.store import Change


def handle(bus: Bus, changes: Sequence[Change]) -> None:
    """The entry point of the events stream. Published in the order they were committed, per pipeline."""
    events = [event_of(change) for change in changes if change.item is not None and is_event(change)]
    if events:
        bus.publish(events)


def is_event(change: Change) -> bool:
    """The events table also holds threads and deliveries; an event's sort key starts with its time."""
    return change.pk.startswith(keys.PIPELINE) and change.sk[:1].isdigit()


def event_of(change: Change) -> Event:
    """The event that a change of the events table contains."""
    return records.convert(change.item or {}, Event, change.key)


def record_alarm(control: Control, alarm: Mapping[str, Any], at: datetime) -> Event:
    """An alarm of the infrastructure becomes an INFRA_ALARM event like any other."""
    name, state = str(alarm.get("alarmName", "unknown")), str(alarm.get("state", "ALARM"))
    event = records.event(
        EventType.INFRA_ALARM,
        RunKey("_infrastructure", "", ""),
        at,
        f"alarm {name} is {state}: {alarm.get('reason', '')}",
        # That an alarm is over wakes nobody up.
        severity=Severity.INFO if state == "OK" else None,
        alarm=name,
        state=state,
    )
    records.publish(control, event)
    return event

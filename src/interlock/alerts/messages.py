"""What an alert says: an event as a title, some named facts, further lines and a hint. Pure; every channel uses it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from interlock.decide.values import show
from interlock.model.events import CATALOGUE, Event, Severity
from interlock.model.times import format_instant

_MAX_LINES: Final = 20
_MAX_VALUE: Final = 300
# Named facts come in this order, so that people find each in its place; whatever else an event has follows.
_LABELS: Final = {
    "status": "Status",
    "deadline": "Deadline",
    "breachAt": "Breach at",
    "readyBy": "Ready by",
    "readyByAt": "Ready by (UTC)",
    "waitingFor": "Waiting for",
    "attempt": "Attempt",
    "category": "Category",
    "error": "Error",
    "reason": "Reason",
    "source": "Source",
    "runId": "Run id",
    "jobId": "Job id",
    "marginSeconds": "Margin in seconds",
    "leaseUntil": "Lease until",
    "deadlineAt": "Deadline at",
    "expectedAt": "Expected at",
    "firstArrival": "First arrival",
    "sensorTimeout": "Sensor time-out",
    "configVersion": "Config version",
    "requestedBy": "Requested by",
}
# The message often says these whole; said again they only make it longer.
_SAID_ONCE: Final = frozenset({"waitingFor", "error", "reason"})
# Shown in another place, or of no use to a person.
_NOT_FACTS: Final = frozenset({"actionHint", "dedupKey", "results", "errors", "checks"})


class Message(msgspec.Struct, frozen=True):
    """An alert in words. `facts` are label and value; `lines` the reasons, one each."""

    severity: Severity
    title: str
    summary: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    hint: str
    context: str


def message_of(event: Event) -> Message:
    """What to tell people about an event."""
    return Message(
        severity=event.severity,
        title=f"{event.severity.upper()}: {_words(event)} - {about(event)}",
        summary=event.message,
        facts=tuple(_facts(event)),
        lines=tuple(_lines(event.detail)),
        hint=_text(event.detail.get("actionHint", "")),
        context=f"{event.type} at {format_instant(event.timestamp)}",
    )


def about(event: Event) -> str:
    """`gold-revenue 2026-03-02`."""
    return " ".join(part for part in (event.pipeline_id, event.date) if part)


def one_line(event: Event) -> str:
    """Everything that matters in one line: for the console, and for notifications that show no blocks."""
    message = message_of(event)
    waiting = _list(event.detail.get("waitingFor"))
    unsaid = waiting and _text(waiting[0]) not in message.summary
    parts = [
        f"{message.title}: {message.summary}",
        f"waiting for {_text(waiting)}" if unsaid else "",
        f"hint: {message.hint}" if message.hint else "",
    ]
    return printable("; ".join(part for part in parts if part))


def printable(text: str) -> str:
    """On one line and without control characters: what a job reported may try to steer a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def _words(event: Event) -> str:
    return event.type.replace("_", " ").capitalize().replace("Sla", "SLA").replace(" sla", " SLA")


def _facts(event: Event) -> list[tuple[str, str]]:
    facts = [("Pipeline", event.pipeline_id)]
    if event.date:
        facts.append(("Date", event.date))
    if event.schedule_id:
        facts.append(("Schedule", event.schedule_id))
    known = CATALOGUE[event.type].fields
    order = [name for name in _LABELS if name in event.detail]
    order += [name for name in known if name in event.detail and name not in _LABELS]
    for name in order:
        value = _text(event.detail[name])
        said = name in _SAID_ONCE and value in event.message
        if name not in _NOT_FACTS and value and not said:
            facts.append((_LABELS.get(name, name), value))
    return facts


def _lines(detail: Mapping[str, Any]) -> list[str]:
    """Why: the rules that fail, the errors of a config, the checks of the watchdog that failed."""
    failing = [
        f"{result.get('key', '?')}: {result.get('reason', 'fails')}"
        for result in _list(detail.get("results"))
        if isinstance(result, Mapping) and not result.get("passed", False)
    ]
    lines = failing + [_text(one) for name in ("errors", "checks") for one in _list(detail.get(name))]
    left_out = len(lines) - _MAX_LINES
    return lines if left_out <= 0 else [*lines[:_MAX_LINES], f"and {left_out} more"]


def _list(value: object) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return [f"{name}: {_text(one)}" for name, one in value.items()]
    return value if isinstance(value, list | tuple) else []


def _text(value: object) -> str:
    """A value as people read it, cut where it is long."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        text = ", ".join(_text(one) for one in value)
    else:
        text = value if isinstance(value, str) else show(value)
    return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 3] + "..."

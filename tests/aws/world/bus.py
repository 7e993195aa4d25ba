"""EventBridge of the world: buses, rules, and what they send to their targets."""

import json
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from interlock.ports.clock import Clock
from tests.aws.patterns import matches
from tests.aws.world.calls import Call
from tests.aws.world.plan import ACCOUNT, REGION, Plan, PlannedRule, PlannedTarget

# API Reference, PutEvents: at most 10 entries, 256 KB in all.
_MAX_ENTRIES: Final = 10
_MAX_BYTES: Final = 256 * 1024
_HOLE: Final = re.compile(r"<([^<>]+)>")

Deliver = Callable[[str, str], None]
"""Hand a payload over to a target, by its ARN."""


class Bus:
    """Answers the calls to EventBridge, and delivers; scheduled rules fire by `pump`."""

    def __init__(self, plan: Plan, clock: Clock, deliver: Deliver) -> None:
        self._plan = plan
        self._clock = clock
        self._deliver = deliver
        self.published: list[dict[str, Any]] = []
        """Every event that was put on any bus, in order."""

    def __call__(self, call: Call) -> Any:
        """One call of the API."""
        if call.operation != "PutEvents":
            return call.forward()
        entries = call.arguments["Entries"]
        size = sum(len(one.get("Detail", "").encode()) + len(one.get("DetailType", "").encode()) for one in entries)
        if not 1 <= len(entries) <= _MAX_ENTRIES or size > _MAX_BYTES:
            raise call.error("ValidationException", f"{len(entries)} entries of {size} bytes in one PutEvents")
        answered: list[dict[str, Any]] = []
        for entry in entries:
            bus = entry.get("EventBusName", "default").rpartition("/")[2]
            if bus not in (*self._plan.buses, "default"):
                raise call.error("ResourceNotFoundException", f"Event bus {bus} does not exist.")
            detail = json.loads(entry["Detail"])
            answered.append({"EventId": self.publish(entry["Source"], entry["DetailType"], detail, bus=bus)})
        return {"FailedEntryCount": 0, "Entries": answered}

    def publish(self, source: str, detail_type: str, detail: Mapping[str, Any], *, bus: str = "default") -> str:
        """Put an event on a bus, and deliver it by the rules; its id."""
        event = self._event(source, detail_type, detail)
        self.published.append({**event, "bus": bus})
        for rule in self._plan.rules:
            if rule.bus == bus and rule.pattern is not None and matches(rule.pattern, event):
                self._send(rule, event)
        return str(event["id"])

    def fire(self, rule: PlannedRule) -> None:
        """A scheduled rule's time has come."""
        self._send(rule, self._event("aws.events", "Scheduled Event", {}))

    def _event(self, source: str, detail_type: str, detail: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT,
            "time": self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "resources": [],
            "detail": dict(detail),
        }

    def _send(self, rule: PlannedRule, event: Mapping[str, Any]) -> None:
        for target in rule.targets:
            self._deliver(target.arn, transformed(target, event))


def transformed(target: PlannedTarget, event: Mapping[str, Any]) -> str:
    """What a target gets: the event, a constant, or what its input transformer makes of it."""
    if target.input is not None:
        return target.input
    if target.template is None:
        return json.dumps(event)
    values = {name: _at(path, event) for name, path in target.paths.items()}

    def filled(hole: re.Match[str]) -> str:
        # User Guide, "Amazon EventBridge input transformation": within quotes a value is text, elsewhere JSON.
        value = values.get(hole[1], "")
        before, after = target.template[: hole.start()] if target.template else "", hole.end()
        quoted = before.endswith('"') and target.template is not None and target.template[after : after + 1] == '"'
        inside = before.count('"') % 2 == 1
        if quoted or inside:
            return json.dumps(value if isinstance(value, str) else json.dumps(value))[1:-1]
        return json.dumps(value)

    text = _HOLE.sub(filled, target.template)
    json.loads(text)
    return text


def _at(path: str, event: Mapping[str, Any]) -> Any:
    found: Any = event
    for name in path.removeprefix("$").strip(".").split("."):
        if name:
            found = found.get(name, "") if isinstance(found, Mapping) else ""
    return found


class AsyncInvocations:
    """Asynchronous invocations: queued by Lambda, tried three times in all, then given up.

    Source: Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous invocation": two retries,
    a minute and two minutes later.
    """

    PAUSES: Final = (timedelta(minutes=1), timedelta(minutes=2))

    def __init__(self, clock: Clock, invoke: Callable[[str, str], bool]) -> None:
        self._clock = clock
        self._invoke = invoke
        self._queue: list[tuple[datetime, str, str, int]] = []
        self.given_up: list[tuple[str, str]] = []

    def put(self, function: str, payload: str) -> None:
        """Queue an invocation."""
        self._queue.append((self._clock.now(), function, payload, 0))

    def next_at(self) -> datetime | None:
        """When the next one is tried."""
        return min((at for at, *_ in self._queue), default=None)

    def pump(self) -> int:
        """Invoke what is due; how many."""
        due = [one for one in self._queue if one[0] <= self._clock.now()]
        self._queue = [one for one in self._queue if one not in due]
        for _, function, payload, tries in due:
            if self._invoke(function, payload):
                continue
            if tries < len(self.PAUSES):
                self._queue.append((self._clock.now() + self.PAUSES[tries], function, payload, tries + 1))
            else:
                self.given_up.append((function, payload))
        return len(due)

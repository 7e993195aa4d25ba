"""The event bus on EventBridge: every committed event, at least once, in no order that outsiders could rely on."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from interlock.aws.clients import Clients
from interlock.aws.failures import THROTTLED, call
from interlock.decide.event_size import fitted
from interlock.model.errors import StoreError, ThrottledError, UnavailableError
from interlock.model.events import Event

_MOST_ENTRIES: Final = 10
_MOST_BYTES: Final = 250 * 1024
"""A call takes 10 entries and 256 KB in all (EventBridge API Reference, PutEvents); an event has at most 200 KB."""
_PASSING: Final = THROTTLED | {"InternalFailure", "InternalException"}


class EventBridgeBus:
    """`ports.bus.Bus`. `name` is the name of the bus."""

    def __init__(self, clients: Clients, name: str) -> None:
        self._clients = clients
        self._name = name

    def publish(self, events: Sequence[Event]) -> None:
        """Hand over; raises when not all were taken, and the caller hands all of them over again."""
        for entries in _calls([self._entry(event) for event in events]):
            doing = f"publishing {len(entries)} events to {self._name}"
            answer = call(doing, lambda batch=entries: self._clients("events").put_events(Entries=batch))  # type: ignore[misc]
            _check(answer, doing)

    def _entry(self, event: Event) -> dict[str, Any]:
        envelope = fitted(event).envelope()
        return {
            "EventBusName": self._name,
            "Source": envelope["source"],
            "DetailType": envelope["detail-type"],
            "Detail": msgspec.json.encode(envelope["detail"]).decode(),
            "Time": event.timestamp,
            "Resources": [],
        }


def _calls(entries: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The entries in as few calls as their number and size allow, in their order."""
    batch: list[dict[str, Any]] = []
    size = 0
    for entry in entries:
        own = entry_size(entry)
        if batch and (len(batch) == _MOST_ENTRIES or size + own > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += own
    if batch:
        yield batch


def entry_size(entry: dict[str, Any]) -> int:
    """What EventBridge counts: 14 bytes for the time, and source, type and detail in UTF-8."""
    return 14 + sum(len(entry[name].encode()) for name in ("Source", "DetailType", "Detail"))


def _check(answer: dict[str, Any], doing: str) -> None:
    """PutEvents succeeds also when it took nothing: its answer says which entries failed, and why."""
    if not answer.get("FailedEntryCount"):
        return
    failed = [one for one in answer.get("Entries", []) if one.get("ErrorCode")]
    codes = {str(one["ErrorCode"]) for one in failed}
    why = f"{doing}: {len(failed)} were not taken: {', '.join(sorted(codes))}"
    if codes & THROTTLED:
        raise ThrottledError(why)
    if codes & _PASSING or not codes:
        raise UnavailableError(why)
    raise StoreError(f"{why}: {failed[0].get('ErrorMessage', '')}")

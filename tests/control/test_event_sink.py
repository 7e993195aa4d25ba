"""The event-sink: what is committed to the events table is published; what is no event is not."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from interlock.control import event_sink, records
from interlock.model import keys
from interlock.model.events import Event, EventType
from interlock.model.keys import Table
from interlock.ports.store import Change
from tests.safety.stage import KEY, control_of, pipeline, staged

AT: Final = datetime(2026, 3, 5, 12, tzinfo=UTC)


class Recorder:
    """A bus that remembers."""

    def __init__(self) -> None:
        self.batches: list[list[Event]] = []

    def publish(self, events: Sequence[Event]) -> None:
        self.batches.append(list(events))


def change(sk: str, item: dict[str, Any] | None, pk: str = KEY.pk) -> Change:
    return Change(seq=1, table=Table.EVENTS, pk=pk, sk=sk, item=item, at=0)


def committed(message: str) -> tuple[Event, Change]:
    event = records.event(EventType.JOB_COMPLETED, KEY, AT, message)
    put = records.put_event(event)
    return event, change(put.key.sk, dict(put.item))


def test_events_are_published_in_the_order_of_their_commits_as_one_batch() -> None:
    (first, one), (second, two) = committed("first"), committed("second")
    bus = Recorder()
    event_sink.handle(bus, [one, two])
    assert [[event.message for event in batch] for batch in bus.batches] == [[first.message, second.message]]


@pytest.mark.parametrize("sk", ["THREAD#1", "DELIVERY#1"])
def test_what_else_is_in_the_table_and_what_was_removed_is_not_published(sk: str) -> None:
    _, published = committed("event")
    bus = Recorder()
    event_sink.handle(bus, [change(sk, {"a": 1}), change(published.sk, None), change(published.sk, {"a": 1}, "OTHER")])
    assert bus.batches == []


def test_an_alarm_of_the_infrastructure_is_recorded_with_its_state_and_reason() -> None:
    world = staged(pipeline(), until="2026-03-05T00:00:00Z", steps=[])
    event_sink.record_alarm(control_of(world), {"alarmName": "dlq-depth", "reason": "3 messages", "state": "OK"}, AT)
    event_sink.record_alarm(control_of(world), {}, AT)
    found = control_of(world).store.query(Table.EVENTS, keys.pipeline_pk("_infrastructure"))
    assert [(record.item["message"], record.item["detail"]) for record in found] == [
        ("alarm dlq-depth is OK: 3 messages", {"alarm": "dlq-depth", "state": "OK"}),
        ("alarm unknown is ALARM: ", {"alarm": "unknown", "state": "ALARM"}),
    ]

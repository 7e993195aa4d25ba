"""Alerts of an environment: how each stands is recorded in the events table, from its first try on.

The queue itself is never looked into: a message of a FIFO queue can only be seen by taking it, which would hold up the
alerts behind it.
"""

import re
from datetime import UTC, datetime
from typing import Final

import msgspec

from interlock.aws.names import Queue
from interlock.aws.operations.environment import Environment
from interlock.aws.operations.queue_depths import depth
from interlock.control.alerts.delivery_records import SENT, DeliveryRecord, DeliveryState
from interlock.model import keys
from interlock.model.errors import AccessError
from interlock.model.keys import Table
from interlock.ports.store import Record, Store

_PLACE: Final = re.compile(rf"{SENT}(?P<channel>.+)#(?P<event>(?P<millis>\d{{13}})#.*)")
_MOST_OF_A_PIPELINE: Final = 1000
_ELSEWHERE: Final = ("_infrastructure", "_files")
"""Partitions of events that are no pipeline's."""


class DeliveryView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An alert on its way to a channel. `queued_at` is when its event happened."""

    id: int
    channel: str
    event_id: str
    pipeline: str
    state: DeliveryState
    tries: int
    queued_at: datetime
    error: str = ""


def deliveries(store: Store, *, state: str | None, channel: str | None, limit: int) -> list[DeliveryView]:
    """The latest first; of each pipeline the last thousand are looked at."""
    prefix = SENT if channel is None else f"{SENT}{channel}#"
    found: list[DeliveryView] = []
    for pipeline in (*store.pipelines(), *_ELSEWHERE):
        rows = store.query(Table.EVENTS, keys.pipeline_pk(pipeline), prefix, reverse=True, limit=_MOST_OF_A_PIPELINE)
        views = (_view(pipeline, row) for row in rows)
        found += [one for one in views if one is not None and state in (None, one.state.value)]
    return sorted(found, key=lambda one: one.event_id, reverse=True)[:limit]


def _view(pipeline: str, row: Record) -> DeliveryView | None:
    place = _PLACE.fullmatch(row.key.sk)
    if place is None:
        return None
    try:
        record = msgspec.convert(row.item, DeliveryRecord)
    except msgspec.ValidationError:
        return None
    since = record.standing.failing_since
    failing = record.state is not DeliveryState.SENT and since is not None
    return DeliveryView(
        id=int(place["millis"]),
        channel=place["channel"],
        event_id=f"{place['event']}~{pipeline}",
        pipeline=pipeline,
        state=record.state,
        tries=record.standing.tries,
        queued_at=datetime.fromtimestamp(int(place["millis"]) / 1000, UTC),
        error=f"fails since {since:%Y-%m-%d %H:%M:%SZ}: the log of the alert-dispatcher says why" if failing else "",
    )


def degradations(environment: Environment) -> list[str]:
    """What is wrong with the alerts, in words. Who may read the tables alone is not kept from reading them."""
    try:
        given_up = depth(environment, Queue.ALERTS_DLQ)
    except AccessError as error:
        return [f"whether alerts were given up cannot be seen: {error}"]
    if given_up is None or not given_up.total:
        return []
    alerts = "1 alert was" if given_up.total == 1 else f"{given_up.total} alerts were"
    return [f"{alerts} given up (`interlock dlq list`)"]

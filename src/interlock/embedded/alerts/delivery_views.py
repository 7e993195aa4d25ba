"""Alerts on their way, for people: what waits, what was sent, what was given up, and which channels fail.

Nothing is written here. What waits behind a failing alert of its pipeline is not failing itself.
"""

from datetime import datetime
from typing import Final

import msgspec

from interlock.embedded.alerts.delivery_rows import DeliveryState, instant
from interlock.embedded.sqlite.database import Database

_COLUMNS: Final = "id, channel, event, pipeline, state, tries, queued_ms, due_ms, settled_ms, error"
_LIST: Final = f"""
    SELECT {_COLUMNS} FROM deliveries
    WHERE (:state IS NULL OR state = :state) AND (:channel IS NULL OR channel = :channel) AND id < :before
    ORDER BY id DESC LIMIT :limit
"""
# The first alert of each pipeline and channel is due at some time, and no other is: this looks at few rows.
_FAILING: Final = """
    SELECT channel, count(*), min(failing_ms), max(tries) FROM deliveries
    WHERE due_ms IS NOT NULL AND failing_ms IS NOT NULL GROUP BY channel ORDER BY channel
"""
_LATEST_ERROR: Final = """
    SELECT error FROM deliveries WHERE channel = ? AND due_ms IS NOT NULL AND error <> ''
    ORDER BY tries DESC, id LIMIT 1
"""
_WAITING: Final = "SELECT count(*) FROM deliveries WHERE state = 'waiting'"
_GIVEN_UP: Final = "SELECT count(*) FROM dead_letters WHERE kind = 'delivery'"
NEWEST: Final = 2**62


class DeliveryView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An alert on its way to a channel. `due_at`: the next try; null while it waits behind another of its pipeline."""

    id: int
    channel: str
    event_id: str
    pipeline: str
    state: DeliveryState
    tries: int
    queued_at: datetime
    due_at: datetime | None = None
    settled_at: datetime | None = None
    error: str = ""


class FailingChannel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A channel that does not take its alerts. `pipelines`: how many pipelines wait for it."""

    channel: str
    since: datetime
    pipelines: int
    tries: int
    error: str


class DeliveryCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many alerts wait, how many channels fail, how many alerts were given up and not redriven."""

    waiting: int
    failing_channels: int
    given_up: int


def deliveries(
    database: Database,
    *,
    state: DeliveryState | None = None,
    channel: str | None = None,
    before: int = NEWEST,
    limit: int = 100,
) -> list[DeliveryView]:
    """The latest first; `before` is the id of the last of an earlier page."""
    wanted = {"state": state, "channel": channel, "before": before, "limit": limit}
    return [
        DeliveryView(
            id=id_,
            channel=name,
            event_id=event,
            pipeline=pipeline,
            state=DeliveryState(found),
            tries=tries,
            queued_at=instant(queued),
            due_at=None if due is None else instant(due),
            settled_at=None if settled is None else instant(settled),
            error=error,
        )
        for id_, name, event, pipeline, found, tries, queued, due, settled, error in database.read(_LIST, wanted)
    ]


def failing_channels(database: Database) -> list[FailingChannel]:
    """The channels whose alerts fail now, by name."""
    return [
        FailingChannel(
            channel=channel,
            since=instant(since),
            pipelines=count,
            tries=tries,
            error=next((str(error) for (error,) in database.read(_LATEST_ERROR, (channel,))), ""),
        )
        for channel, count, since, tries in database.read(_FAILING)
    ]


def counts(database: Database) -> DeliveryCounts:
    """In numbers."""
    return DeliveryCounts(
        waiting=int(database.read(_WAITING)[0][0]),
        failing_channels=len(database.read(_FAILING)),
        given_up=int(database.read(_GIVEN_UP)[0][0]),
    )


def degradations(database: Database) -> list[str]:
    """In words. Anybody may read this: a channel's name may be an address, so it is not given."""
    found = counts(database)
    said = []
    if found.failing_channels:
        channels = "1 channel" if found.failing_channels == 1 else f"{found.failing_channels} channels"
        waiting = "1 alert waits" if found.waiting == 1 else f"{found.waiting} alerts wait"
        said.append(f"alerts are not delivered on {channels}: {waiting} (`interlock alerts list`)")
    if found.given_up:
        alerts = "1 alert was" if found.given_up == 1 else f"{found.given_up} alerts were"
        said.append(f"{alerts} given up (`interlock dlq list`)")
    return said

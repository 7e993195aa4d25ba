"""The rows of the delivery queue: every change of one is here, each within its caller's transaction.

Invariant: of the waiting rows of a lane, which is a (channel, pipeline), the one with the smallest id is due at some
time and no other is. So alerts of a pipeline reach a channel in order, and finding what is due costs nothing, however
much waits behind a receiver that is down.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from interlock.control.alerts.alert_dispatcher import Delivery
from interlock.control.alerts.delivering import Standing
from interlock.embedded.sqlite.database import Row
from interlock.embedded.sqlite.item_cache import writes_no_items
from interlock.model.events import Event
from interlock.model.times import epoch_millis
from interlock.ports.channel import Alert

COLUMNS: Final = "id, channel, event, pipeline, item, queued_ms, tries, refusals, begun_ms, failing_ms"
_MAX_ERROR: Final = 500
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_ADD: Final = """
    INSERT INTO deliveries (channel, event, pipeline, item, state, queued_ms, begun_ms, due_ms)
    SELECT :channel, :event, :pipeline, :item, 'waiting', :now, :begun, CASE WHEN EXISTS (
        SELECT 1 FROM deliveries WHERE state = 'waiting' AND channel = :channel AND pipeline = :pipeline
    ) THEN NULL ELSE :now END
    WHERE true
    ON CONFLICT (event, channel) DO NOTHING
"""
_SETTLE: Final = """
    UPDATE deliveries SET
        state = :state, settled_ms = :now, due_ms = NULL, begun_ms = NULL, tries = :tries, error = :error
    WHERE id = :id AND state = 'waiting'
"""
_ADVANCE: Final = """
    UPDATE deliveries SET due_ms = :now, failing_ms = max(queued_ms, :since) WHERE id = (
        SELECT min(id) FROM deliveries WHERE state = 'waiting' AND channel = :channel AND pipeline = :pipeline
    )
"""
_POSTPONE: Final = """
    UPDATE deliveries SET
        tries = :tries, refusals = :refusals, due_ms = :due, begun_ms = :begun, failing_ms = :failing, error = :error
    WHERE id = :id AND state = 'waiting'
"""
_BEGIN: Final = "UPDATE deliveries SET begun_ms = coalesce(begun_ms, ?) WHERE id = ? AND state = 'waiting'"


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"


class DeliveryRow(msgspec.Struct, frozen=True):
    """A waiting delivery as the queue keeps it; times in epoch milliseconds."""

    id: int
    channel: str
    event: str
    pipeline: str
    item: str
    queued_ms: int
    tries: int
    refusals: int
    begun_ms: int | None
    failing_ms: int | None

    def decode(self) -> Alert:
        """What is to be sent. Raises msgspec.MsgspecError when the row holds no event."""
        return Alert(self.event, msgspec.json.decode(self.item, type=Event))

    @property
    def begun_at(self) -> datetime | None:
        """When a try was begun whose end nobody knows."""
        return None if self.begun_ms is None else instant(self.begun_ms)

    def record(self) -> dict[str, Any]:
        """The whole of it, for a dead letter."""
        return {
            "channel": self.channel,
            "event": self.event,
            "pipeline": self.pipeline,
            "item": msgspec.Raw(self.item.encode()),
            "begun": self.begun_ms,
        }


def standing_as(row: DeliveryRow, standing: Standing) -> DeliveryRow:
    """The row of a delivery that stands so now."""
    begun, since = standing.begun_at, standing.failing_since
    return msgspec.structs.replace(
        row,
        tries=standing.tries,
        refusals=standing.refusals,
        begun_ms=None if begun is None else epoch_millis(begun),
        failing_ms=None if since is None else epoch_millis(since),
    )


def row_of(columns: Row) -> DeliveryRow:
    """A row of COLUMNS."""
    return DeliveryRow(*columns)


def instant(millis: int) -> datetime:
    """The instant of a column."""
    return _EPOCH + timedelta(milliseconds=millis)


def add(connection: sqlite3.Connection, deliveries: Sequence[Delivery], now_ms: int) -> int:
    """Queue these, in their order; how many were new."""
    writes_no_items(connection)
    return sum(
        _insert(
            connection,
            {
                "channel": one.channel,
                "event": one.alert.id,
                "pipeline": one.pipeline,
                "item": msgspec.json.encode(one.alert.event).decode(),
                "begun": None,
            },
            now_ms,
        )
        for one in deliveries
    )


def add_again(connection: sqlite3.Connection, record: Mapping[str, Any], now_ms: int) -> int:
    """Queue one that had been given up, behind those that wait; 0 when it was sent or queued meanwhile."""
    values = {**record, "item": msgspec.json.encode(record["item"]).decode()}
    connection.execute(
        "DELETE FROM deliveries WHERE event = :event AND channel = :channel AND state = 'dead'",
        {"event": values["event"], "channel": values["channel"]},
    )
    return _insert(connection, values, now_ms)


def _insert(connection: sqlite3.Connection, values: Mapping[str, Any], now_ms: int) -> int:
    return connection.execute(_ADD, {**values, "now": now_ms}).rowcount


def begin(connection: sqlite3.Connection, row: DeliveryRow, now_ms: int) -> bool:
    """A try is about to be made; false when there is nothing to send any more."""
    writes_no_items(connection)
    return bool(connection.execute(_BEGIN, (now_ms, row.id)).rowcount)


def settle(
    connection: sqlite3.Connection,
    row: DeliveryRow,
    state: DeliveryState,
    now_ms: int,
    failing_ms: int | None = None,
    *,
    error: str = "",
) -> bool:
    """It is done with, and the next of its lane is due; false when it was done with before.

    `failing_ms`: the channel has not taken anything since then. The next one, which was waiting all that time, does
    not get a day of its own.
    """
    done = {"state": state.value, "now": now_ms, "id": row.id, "tries": row.tries, "error": error[:_MAX_ERROR]}
    if not connection.execute(_SETTLE, done).rowcount:
        return False
    values = {"now": now_ms, "since": failing_ms, "channel": row.channel, "pipeline": row.pipeline}
    connection.execute(_ADVANCE, values)
    return True


def postpone(connection: sqlite3.Connection, row: DeliveryRow, due_ms: int, error: str) -> None:
    """It failed: `row` says how it stands now. It stays the first of its lane."""
    writes_no_items(connection)
    values = {
        "id": row.id,
        "tries": row.tries,
        "refusals": row.refusals,
        "due": due_ms,
        "begun": row.begun_ms,
        "failing": row.failing_ms,
        "error": error[:_MAX_ERROR],
    }
    connection.execute(_POSTPONE, values)


def prune(connection: sqlite3.Connection, before_ms: int, limit: int) -> int:
    """Forget what was settled before then; how many."""
    sql = (
        "DELETE FROM deliveries WHERE id IN"
        " (SELECT id FROM deliveries WHERE settled_ms < ? ORDER BY settled_ms LIMIT ?)"
    )
    return connection.execute(sql, (before_ms, limit)).rowcount

"""How deliveries stand, as records in the events table: for a runtime whose queue knows nothing but messages.

- `SENT#{channel}#{event}`: one per delivery, from its first try on. Once it says `sent` the alert is not sent again.
- `LANE#{channel}`: since when nothing of this pipeline has got through to the channel.
- `CHANNELS`, `{channel}`: until when the receiver wants rest, from everything that is sent to it.

All of them go by their `ttl`, with the events. Every write is conditional on what was read, so that of two workers that
were given the same message one sends.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from interlock.control import records
from interlock.control.alerts.delivering import GivenUp, Postponed, Sent, Standing, Tried
from interlock.model import keys
from interlock.model.errors import StoreError, UnavailableError
from interlock.model.events import EVENT_TTL_DAYS
from interlock.model.keys import Table
from interlock.model.times import format_instant, parse_instant
from interlock.ports.store import Condition, Delete, Item, Key, Matches, Missing, Put, Store, Write

SENT: Final = "SENT#"
LANE: Final = "LANE#"
CHANNELS: Final = "CHANNELS"
_KEPT: Final = timedelta(days=EVENT_TTL_DAYS)


class DeliveryState(StrEnum):
    """Where a delivery stands."""

    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"


class DeliveryRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A delivery as the store keeps it; `version` counts its writes."""

    state: DeliveryState
    standing: Standing
    version: int


class StoredLedger:
    """`delivering.Ledger` on a store. `queued_at`: when the alert came into the queue. Made for one try."""

    def __init__(self, store: Store, channel: str, alert_id: str, queued_at: datetime) -> None:
        """`alert_id` is the alert's own: pipeline and sort key of its event."""
        pipeline, _, event = alert_id.partition("/")
        pk = keys.pipeline_pk(pipeline)
        self._store = store
        self._queued_at = queued_at
        self._record_key = Key(Table.EVENTS, pk, f"{SENT}{channel}#{event}")
        self._lane_key = Key(Table.EVENTS, pk, f"{LANE}{channel}")
        self._rest_key = Key(Table.EVENTS, CHANNELS, channel)
        self._begun: DeliveryRecord | None = None
        self._lane_fails = False

    def resting_until(self, now: datetime) -> datetime | None:
        """Until when the receiver is to be left alone; asked before a try, which is not made before then."""
        until = parse_instant((self._store.get(self._rest_key) or {}).get("until"))
        return until if until is not None and until > now else None

    def begin(self, now: datetime) -> Standing | None:
        """See `Ledger`. Raises UnavailableError when another worker began at the same time: the message stays."""
        item, lane = self._store.get_many([self._record_key, self._lane_key])
        before = None if item is None else records.convert(item, DeliveryRecord, self._record_key)
        if before is not None and before.state is not DeliveryState.WAITING:
            return None
        self._lane_fails = lane is not None
        standing = Standing() if before is None else before.standing
        if before is None and (since := parse_instant((lane or {}).get("since"))) is not None:
            standing = Standing(failing_since=max(self._queued_at, since))
        begun = msgspec.structs.replace(standing, begun_at=standing.begun_at or now)
        after = DeliveryRecord(DeliveryState.WAITING, begun, before.version + 1 if before is not None else 1)
        if self._store.commit([self._put(after, before, now)]) is not None:
            raise UnavailableError(f"{self._record_key.sk} is being sent by another worker")
        self._begun = after
        return standing

    def record(self, tried: Tried, now: datetime) -> None:
        """See `Ledger`."""
        before = self._begun
        if before is None:
            raise StoreError(f"{self._record_key.sk}: a try is recorded that was not begun")
        after = DeliveryRecord(_state(tried), tried.standing, before.version + 1)
        writes: list[Write] = [self._put(after, before, now)]
        match tried:
            case Sent():
                writes += tried.writes
                writes += [Delete(self._lane_key)] if self._lane_fails else []
            case Postponed():
                if tried.rest_until is not None:
                    writes.append(Put(self._rest_key, _kept({"until": format_instant(tried.rest_until)}, now)))
            case GivenUp():
                if tried.lane_since is not None:
                    writes.append(Put(self._lane_key, _kept({"since": format_instant(tried.lane_since)}, now)))
        if self._store.commit(writes) is not None:
            raise StoreError(f"{self._record_key.sk} was changed while the alert was sent: it may be sent again")
        self._begun = after

    def state(self) -> DeliveryState | None:
        """Where the delivery stands now; None before its first try."""
        item = self._store.get(self._record_key)
        return None if item is None else records.convert(item, DeliveryRecord, self._record_key).state

    def revive(self, now: datetime) -> bool:
        """A dead letter is to be sent again, with a day of its own; False when it was sent meanwhile."""
        item = self._store.get(self._record_key)
        before = None if item is None else records.convert(item, DeliveryRecord, self._record_key)
        if before is None:
            return True
        if before.state is DeliveryState.SENT:
            return False
        again = DeliveryRecord(DeliveryState.WAITING, Standing(begun_at=before.standing.begun_at), before.version + 1)
        return self._store.commit([self._put(again, before, now)]) is None

    def _put(self, after: DeliveryRecord, before: DeliveryRecord | None, now: datetime) -> Put:
        when: Condition = Missing() if before is None else Matches({"version": before.version})
        return Put(self._record_key, _kept(records.plain(after), now), when)


def _state(tried: Tried) -> DeliveryState:
    match tried:
        case Sent():
            return DeliveryState.SENT
        case Postponed():
            return DeliveryState.WAITING
        case GivenUp():
            return DeliveryState.DEAD


def _kept(item: Item, now: datetime) -> Item:
    return item | {"ttl": int((now + _KEPT).timestamp())}

"""One invocation of the alert-dispatcher: the messages of a batch, each in its turn.

A message that is postponed holds up those behind it in its group; these are given back untouched, with it. A message
that is no alert goes to the dead-letter queue at once.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, assert_never

from interlock.aws.alerts import AlertQueue, Queued, identity_of, queued_at, read_queued
from interlock.control.alerts import delivering
from interlock.control.alerts.delivering import GivenUp, Postponed, Sent
from interlock.control.alerts.delivery_records import DeliveryState, StoredLedger
from interlock.logs import get_logger
from interlock.model.errors import InvalidValueError
from interlock.ports.channel import Channel
from interlock.ports.clock import Clock
from interlock.ports.store import Store

_log = get_logger(__name__)


class Dispatcher:
    """Sends the alerts of the queue. `channels` are looked up for each batch: a token may have been replaced."""

    def __init__(
        self,
        environment: str,
        queue: AlertQueue,
        store: Store,
        channels: Callable[[], Mapping[str, Channel]],
        clock: Clock,
        jitter: Callable[[], float],
    ) -> None:
        self._environment = environment
        self._queue = queue
        self._store = store
        self._channels = channels
        self._clock = clock
        self._jitter = jitter

    def dispatch(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Send them; what the queue is to be answered: those that come again."""
        kept: list[dict[str, str]] = []
        held: set[str] = set()
        for record in records:
            group = str(record.get("attributes", {}).get("MessageGroupId", ""))
            if group in held or not self._settled(record, group):
                held.add(group)
                kept.append({"itemIdentifier": str(record.get("messageId", ""))})
        return {"batchItemFailures": kept}

    def _settled(self, record: Mapping[str, Any], group: str) -> bool:
        """Is the queue done with this message?"""
        try:
            queued = read_queued(str(record.get("body", "")), self._environment)
        except InvalidValueError as error:
            _log.error("not-an-alert", message=record.get("messageId"), error=str(error))
            self._queue.bury(str(record.get("body", "")), group, str(record.get("messageId", "")), str(error))
            return True
        try:
            return self._deliver(record, queued, group)
        except Exception as error:  # noqa: BLE001 - a store that is down: it comes again when its visibility ends
            _log.error("alert-failed", alert=queued.alert.id, channel=queued.channel, error=str(error))
            return False

    def _deliver(self, record: Mapping[str, Any], queued: Queued, group: str) -> bool:
        now = self._clock.now()
        ledger = StoredLedger(self._store, queued.channel, queued.alert.id, queued_at(record, now))
        rest = ledger.resting_until(now)
        if rest is not None:
            return self._postpone(record, rest, now)
        tried = delivering.deliver(
            ledger,
            self._store,
            self._channels(),
            queued.channel,
            lambda: queued.alert,
            clock=self._clock,
            jitter=self._jitter(),
        )
        if tried is None:
            return self._already(record, queued, group, ledger.state())
        delivering.report(tried, queued.channel, queued.alert.id, now)
        match tried:
            case Sent():
                return True
            case Postponed():
                return self._postpone(record, tried.until, self._clock.now())
            case GivenUp():
                return self._bury(record, queued, group, str(tried.error))
        assert_never(tried)

    def _already(self, record: Mapping[str, Any], queued: Queued, group: str, state: DeliveryState | None) -> bool:
        """A message that comes again: sent is sent; one given up may not have reached the dead-letter queue."""
        if state is DeliveryState.DEAD:
            return self._bury(record, queued, group, "given up on before")
        return state is DeliveryState.SENT

    def _postpone(self, record: Mapping[str, Any], until: datetime, now: datetime) -> bool:
        self._queue.hide(str(record["receiptHandle"]), until, now)
        return False

    def _bury(self, record: Mapping[str, Any], queued: Queued, group: str, error: str) -> bool:
        self._queue.bury(str(record["body"]), group, identity_of(queued.channel, queued.alert.id), error)
        return True

"""alert-dispatcher in the embedded process: a consumer of the events stream that fills the queue, and the queue."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from interlock.control.alerts import alert_dispatcher
from interlock.control.alerts.alert_channels import Alerting
from interlock.control.alerts.alert_tests import ChannelTest, test_alert, try_channels
from interlock.embedded.alerts.deliveries import JITTER, Deliveries
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.stream import StreamConsumer
from interlock.model.keys import Table
from interlock.ports.clock import Clock
from interlock.ports.store import Change

CONSUMER: Final = "alert-dispatcher"


class AlertDispatcher:
    """Drive it with `pump`, `run_due` and `next_at` (virtual time) or with `start` and `stop`."""

    def __init__(
        self,
        database: Database,
        store: SqliteStore,
        alerting: Alerting,
        clock: Clock,
        *,
        jitter: Callable[[], float] = JITTER,
    ) -> None:
        self._routing = alerting.routing
        self._channels = alerting.channels
        self.deliveries = Deliveries(database, store, alerting.channels, clock, jitter=jitter)
        self.consumer = StreamConsumer(database, CONSUMER, (Table.EVENTS,), self._handle)

    def _handle(self, changes: Sequence[Change]) -> None:
        alert_dispatcher.handle(self._routing, self.deliveries.enqueue, changes)

    def register(self) -> None:
        """Make the consumer known; before the store is first swept."""
        self.consumer.register()

    def pump(self) -> int:
        """Queue the alerts of the events there are now; how many changes were read."""
        return self.consumer.pump()

    def run_due(self, now: datetime) -> int:
        """Send what is due; how many tries were made."""
        return self.deliveries.run_due(now)

    def next_at(self) -> datetime | None:
        """When something is to be sent."""
        return self.deliveries.next_at()

    def test(self, channel: str | None, now: datetime, by: str) -> list[ChannelTest]:
        """Send a test alert on one channel or on all, now and past the queue."""
        return try_channels(self._channels, channel, test_alert(now, by))

    def start(self) -> None:
        """Run on threads of its own."""
        self.consumer.start()
        self.deliveries.start()

    def stop(self) -> None:
        """Finish what is under way, and end. Nothing is lost."""
        self.consumer.stop()
        self.deliveries.stop()

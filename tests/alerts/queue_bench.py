"""A delivery queue in memory, on a clock that the test moves."""

from datetime import timedelta

from interlock.embedded.alerts.deliveries import Deliveries
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.ports.channel import DeliveryError
from tests.alerts.alerts import ScriptedChannel
from tests.conformance.manual_clock import START, ManualClock


class Crash(BaseException):
    """The process dies here."""


def down() -> DeliveryError:
    return DeliveryError("down")


class Bench:
    """A queue in memory on a clock of its own."""

    def __init__(self, *channels: ScriptedChannel, jitter: float = 1.0) -> None:
        self.clock = ManualClock()
        self.database = Database.open(None, clock=self.clock, inline=True)
        self.store = SqliteStore(self.database, self.clock)
        self.channels = {channel.name: channel for channel in channels}
        self.letters = DeadLetters(self.database)
        self.jitter = jitter
        self.queue = self.wire()

    def wire(self) -> Deliveries:
        """As after a restart: all that was in memory is gone."""
        self.queue = Deliveries(self.database, self.store, self.channels, self.clock, jitter=lambda: self.jitter)
        return self.queue

    def run(self, **units: float) -> int:
        self.clock.advance(**units)
        return self.queue.run_due(self.clock.now())

    def run_until(self, end: timedelta) -> None:
        """From one due instant to the next."""
        stop = START + end
        while (at := self.queue.next_at()) is not None and at <= stop:
            self.clock.advance(seconds=max(0.0, (at - self.clock.now()).total_seconds()))
            self.queue.run_due(self.clock.now())
        self.clock.advance(seconds=(stop - self.clock.now()).total_seconds())

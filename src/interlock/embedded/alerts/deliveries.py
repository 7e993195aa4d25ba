"""Alerts on their way: a durable queue in SQLite, and the workers that empty it.

How a delivery fares, from its begin to its end as sent or given up, is decided by `control.alerts.delivering`.

Order: the alerts of a pipeline reach a channel one after the other. A failing one holds up its own pipeline on its own
channel, and nothing else; only a receiver that asks for rest (Retry-After) gets it from all pipelines.
"""

import operator
import random
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from interlock.control.alerts.alert_dispatcher import Delivery
from interlock.control.alerts.delivering import GivenUp, Postponed, Sent, Standing, Tried, deliver, report
from interlock.embedded.alerts import delivery_rows
from interlock.embedded.alerts.delivery_rows import COLUMNS, DeliveryRow, DeliveryState, instant, row_of
from interlock.embedded.clock import real_seconds
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.dead_letters import Failure, LetterKind, bury
from interlock.logs import get_logger
from interlock.loops import Loop
from interlock.model.events import EVENT_TTL_DAYS
from interlock.model.times import epoch_millis
from interlock.ports.channel import Channel
from interlock.ports.clock import Clock

_KEEP_SETTLED: Final = timedelta(days=EVENT_TTL_DAYS)
_BATCH: Final = 20
_LONGEST_WAIT: Final = 1.0
JITTER: Final = random.Random().random
"""A generator of its own: whoever seeds the common one wants the same numbers again, and threads send alerts."""

_AGENDA: Final = "SELECT channel, min(due_ms) FROM deliveries WHERE due_ms IS NOT NULL GROUP BY channel"
_DUE: Final = f"SELECT {COLUMNS} FROM deliveries WHERE channel = ? AND due_ms <= ? ORDER BY due_ms, id LIMIT ?"
_COUNT: Final = "SELECT count(*) FROM deliveries WHERE state = ?"

Mine = Callable[[str], bool]

_log = get_logger(__name__)


class Deliveries:
    """Drive it with `run_due` and `next_at` (on this thread, for a simulation) or with `start` and `stop`."""

    def __init__(
        self,
        database: Database,
        store: SqliteStore,
        channels: Mapping[str, Channel],
        clock: Clock,
        *,
        jitter: Callable[[], float] = JITTER,
    ) -> None:
        self._database = database
        self._store = store
        self._channels = dict(channels)
        self._clock = clock
        self._jitter = jitter
        # Until when a channel is to be left alone. Forgotten at a restart: the receiver will say it again.
        self._resting: dict[str, datetime] = {}
        self._stopping = threading.Event()
        self._loops: list[Loop] = []

    # ------------------------------------------------------------------------------------------------ the queue

    def enqueue(self, deliveries: Sequence[Delivery]) -> int:
        """Keep these until they are sent; how many were new. The same (event, channel) is kept once."""
        now = self._clock.now()
        now_ms, forgotten_ms = epoch_millis(now), epoch_millis(now - _KEEP_SETTLED)

        def add(connection: sqlite3.Connection) -> int:
            # Rows go as others come, a little faster: there is nobody else to remove them.
            delivery_rows.prune(connection, forgotten_ms, 2 * len(deliveries))
            return delivery_rows.add(connection, deliveries, now_ms)

        added = self._database.write(add)
        self._ring()
        return added

    def count(self, state: DeliveryState = DeliveryState.WAITING) -> int:
        """How many deliveries are in that state."""
        return int(self._database.read(_COUNT, (state.value,))[0][0])

    def next_at(self) -> datetime | None:
        """When something is to be sent; None when nothing waits."""
        return min(self._agenda().values(), default=None)

    def _agenda(self) -> dict[str, datetime]:
        """When each channel has something to send."""
        found: dict[str, datetime] = {}
        for channel, due in self._database.read(_AGENDA):
            rest = self._resting.get(channel)
            found[channel] = instant(due) if rest is None else max(instant(due), rest)
        return found

    # ------------------------------------------------------------------------------------------------ sending

    def run_due(self, now: datetime) -> int:
        """Send what is due, until nothing more is due now; how many tries were made."""
        return self._work(now, lambda _: True)

    def _work(self, now: datetime, mine: Mine) -> int:
        done = 0
        while rows := self._due(now, mine):
            for row in rows:
                if self._stopping.is_set():
                    return done
                if self._resting.get(row.channel, now) <= now:
                    self._deliver(row)
                    done += 1
        return done

    def _due(self, now: datetime, mine: Mine) -> list[DeliveryRow]:
        channels = [channel for channel, due in self._agenda().items() if due <= now and mine(channel)]
        limit = (epoch_millis(now), _BATCH)
        return [row_of(columns) for channel in channels for columns in self._database.read(_DUE, (channel, *limit))]

    def _deliver(self, row: DeliveryRow) -> None:
        ledger = _RowLedger(self._database, self._store, row)
        tried = deliver(
            ledger, self._store, self._channels, row.channel, row.decode, clock=self._clock, jitter=self._jitter()
        )
        if isinstance(tried, Postponed) and tried.rest_until is not None:
            self._resting[row.channel] = tried.rest_until
        if tried is not None:
            report(tried, row.channel, row.event, self._clock.now())

    # ------------------------------------------------------------------------------------------------ threads

    def start(self) -> None:
        """One thread per channel, so that a receiver that hangs holds up no other; and one for what is left over of
        channels that are no longer configured.
        """
        known = frozenset(self._channels)
        for name in sorted(known):
            self._spawn(name, partial(operator.eq, name))
        self._spawn("leftovers", lambda channel: channel not in known)

    def _spawn(self, name: str, mine: Mine) -> None:
        loop = self._database.loops.add(f"alerts-{name}", partial(self._send_due, mine))
        self._loops.append(loop)
        loop.start()

    def stop(self) -> None:
        """Finish the tries under way, and end. What waits is sent after the next start."""
        self._stopping.set()
        for loop in self._loops:
            loop.end()
        for loop in self._loops:
            loop.stop()

    def _ring(self) -> None:
        for loop in self._loops:
            loop.ring()

    def _send_due(self, mine: Mine) -> float:
        self._work(self._clock.now(), mine)
        return self._until_next(mine)

    def _until_next(self, mine: Mine) -> float:
        """Seconds; never long, so that a redrive by another process, or a clock that was set, is noticed."""
        instants = [due for channel, due in self._agenda().items() if mine(channel)]
        if not instants:
            return _LONGEST_WAIT
        left = real_seconds(self._clock, (min(instants) - self._clock.now()).total_seconds())
        return min(max(left, 0.0), _LONGEST_WAIT)


class _RowLedger:
    """`control.delivering.Ledger` of one row of the queue."""

    def __init__(self, database: Database, store: SqliteStore, row: DeliveryRow) -> None:
        self._database = database
        self._store = store
        self._row = row

    def begin(self, now: datetime) -> Standing | None:
        """See `Ledger`."""
        row = self._row
        if not self._database.write(lambda connection: delivery_rows.begin(connection, row, epoch_millis(now))):
            return None
        since = None if row.failing_ms is None else instant(row.failing_ms)
        return Standing(row.tries, row.refusals, row.begun_at, since)

    def record(self, tried: Tried, now: datetime) -> None:
        """See `Ledger`."""
        row = delivery_rows.standing_as(self._row, tried.standing)
        now_ms = epoch_millis(now)

        def write(connection: sqlite3.Connection) -> None:
            match tried:
                case Sent(_, writes):
                    if delivery_rows.settle(connection, row, DeliveryState.SENT, now_ms) and writes:
                        self._store.apply(connection, list(writes), now_ms)
                case Postponed(_, until, error):
                    delivery_rows.postpone(connection, row, epoch_millis(until), str(error))
                case GivenUp(_, since, error, lane_since):
                    failing_ms = None if lane_since is None else epoch_millis(lane_since)
                    if delivery_rows.settle(connection, row, DeliveryState.DEAD, now_ms, failing_ms, error=str(error)):
                        failure = Failure(error=error, tries=row.tries, first_at=since, last_at=now)
                        bury(connection, LetterKind.DELIVERY, row.channel, row.event, row.record(), failure)

        self._database.write(write)

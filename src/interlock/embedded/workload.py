"""What waits to be done by an embedded controller, in numbers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from interlock.control.views.controller_view import FunctionView, Workload
from interlock.embedded.alerts import delivery_views
from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.stream import StreamConsumer
from interlock.model.times import epoch_millis

_DUE: Final = "SELECT count(*) FROM executions WHERE due_ms <= ?"
_WAITING: Final = "SELECT count(*) FROM executions WHERE due_ms IS NOT NULL"
_TIMERS: Final = "SELECT count(*), coalesce(sum(due_us <= ?), 0) FROM timers"
# Sent deliveries are kept for months: only those that wait for something are counted.
_DELIVERIES: Final = "SELECT channel, count(*) FROM deliveries WHERE state = 'waiting' GROUP BY channel"


def read_workload(
    database: Database, consumers: Sequence[StreamConsumer], watched_at: datetime | None, now: datetime
) -> Workload:
    """As it is now."""
    armed, overdue = database.read(_TIMERS, (epoch_millis(now) * 1000,))[0]
    ((due,),) = database.read(_DUE, (epoch_millis(now),))
    ((waiting,),) = database.read(_WAITING)
    alerts = delivery_views.counts(database)
    return Workload(
        functions=[
            *(FunctionView(name=one.name, lag=one.lag(), last_at=one.last_at) for one in consumers),
            FunctionView(name="orchestrator", lag=due),
            FunctionView(name="sla-monitor", lag=overdue),
            FunctionView(name="watchdog", lag=0, last_at=watched_at),
        ],
        timers=armed,
        executions_waiting=waiting,
        deliveries=dict(database.read(_DELIVERIES)),
        failing_channels=alerts.failing_channels,
        alerts_given_up=alerts.given_up,
    )

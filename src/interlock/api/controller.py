"""The controller as it stands: its functions, their lag, its queues, and what troubles it."""

from datetime import datetime
from typing import Final

import msgspec

from interlock import __version__
from interlock.api.auth import ServiceArg, needs
from interlock.api.http import get
from interlock.api.problems import documented
from interlock.control.controller_view import ConfigState, config_state
from interlock.embedded.clock import rate
from interlock.embedded.service import Service
from interlock.embedded.tokens import Scope
from interlock.model.times import epoch_millis

_EXECUTIONS: Final = "SELECT count(*) FROM executions WHERE due_ms <= ?"
_TIMERS: Final = "SELECT count(*), coalesce(sum(due_us <= ?), 0) FROM timers"
# Sent deliveries are kept for months: only those that wait for something are counted.
_DELIVERIES: Final = "SELECT channel, count(*) FROM deliveries WHERE state = 'waiting' GROUP BY channel"


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class WatchdogView(_View, frozen=True, kw_only=True):
    """The watchdog's passes: the latest of this process, when the next is due, and which checks failed."""

    last_at: datetime | None
    next_at: datetime | None
    failed_checks: list[str]


class FunctionView(_View, frozen=True, kw_only=True):
    """One of the six functions. `lag`: how much waits for it now. `last_at`: when it last did something, if known."""

    name: str
    lag: int
    last_at: datetime | None = None


class ControllerView(ConfigState, frozen=True, kw_only=True):
    """`deliveries`: how many alerts wait, by channel. `troubles`: what keeps it from its work, and what degrades it."""

    version: str
    now: datetime
    rate: float
    started_at: datetime
    watchdog: WatchdogView
    functions: list[FunctionView]
    pipelines: int
    timers: int
    dead_letters: int
    deliveries: dict[str, int]
    troubles: list[str]


@get(
    "/controller",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(),
    operation_id="getController",
    summary="The controller as it stands",
    tags=["operation"],
)
def read_controller(service: ServiceArg) -> ControllerView:
    """Its last watchdog pass, the lag of its functions, its queues and its troubles."""
    now = service.clock.now()
    watched = service.runtime.watchdog
    armed, overdue = service.database.read(_TIMERS, (epoch_millis(now) * 1000,))[0]
    configs = config_state(service.engine.store, service.degradations())
    return ControllerView(
        folders=configs.folders,
        invalid_files=configs.invalid_files,
        removed=configs.removed,
        degraded=configs.degraded,
        version=__version__,
        now=now,
        rate=rate(service.clock),
        started_at=service.started_at or now,
        watchdog=WatchdogView(
            last_at=watched.last_at, next_at=watched.next_at, failed_checks=list(watched.failed_checks)
        ),
        functions=_functions(service, now, overdue),
        pipelines=len(service.engine.store.pipelines()),
        timers=armed,
        dead_letters=service.dead_letters.count(),
        deliveries=dict(service.database.read(_DELIVERIES)),
        troubles=[*service.health_problems(), *service.degradations()],
    )


def _functions(service: Service, now: datetime, overdue: int) -> list[FunctionView]:
    by_name = {consumer.name: consumer for consumer in service.consumers}
    ((due,),) = service.database.read(_EXECUTIONS, (epoch_millis(now),))
    found = [
        FunctionView(name=name, lag=consumer.lag(), last_at=consumer.last_at) for name, consumer in by_name.items()
    ]
    found += [
        FunctionView(name="orchestrator", lag=due),
        FunctionView(name="sla-monitor", lag=overdue),
        FunctionView(name="watchdog", lag=0, last_at=service.runtime.watchdog.last_at),
    ]
    order = ("stream-router", "orchestrator", "sla-monitor", "watchdog", "event-sink", "alert-dispatcher")
    return sorted(found, key=lambda one: order.index(one.name) if one.name in order else len(order))


ROUTES: Final = (read_controller,)

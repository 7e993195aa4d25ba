"""The controller as it stands: its functions, their lag, its queues, and what troubles it."""

from datetime import datetime
from typing import Final

import msgspec

from interlock import __version__
from interlock.api.auth import ServiceArg, needs
from interlock.api.http import get
from interlock.api.problems import documented
from interlock.api.served import Served
from interlock.api.visibility import Visibility, VisibleArg
from interlock.control.views.controller_view import ConfigState, FunctionView, config_state
from interlock.embedded.access.tokens import Scope
from interlock.embedded.clock import rate

_SHOWN_TO_OTHERS: Final = "the controller has troubles: a token without limits to pipelines shows them"
_ORDER: Final = ("stream-router", "orchestrator", "sla-monitor", "watchdog", "event-sink", "alert-dispatcher")


class _View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class WatchdogView(_View, frozen=True, kw_only=True):
    """The watchdog's passes: the latest of this process, when the next is due, and which checks failed."""

    last_at: datetime | None
    next_at: datetime | None
    failed_checks: list[str]


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
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    responses=documented(),
    operation_id="getController",
    summary="The controller as it stands",
    tags=["operation"],
)
def read_controller(service: ServiceArg, visible: VisibleArg) -> ControllerView:
    """Its last watchdog pass, the lag of its functions, its queues and its troubles.

    With a limited token, of files and pipelines only its own, and of troubles only that there are some.
    """
    found = _controller(service)
    return found if visible is None else _for_limited(found, visible)


def _for_limited(found: ControllerView, visible: Visibility) -> ControllerView:
    """Troubles and folders may name what the caller may not see."""
    return msgspec.structs.replace(
        found,
        folders=[],
        invalid_files=[one for one in found.invalid_files if one.pipeline in visible],
        removed=[one for one in found.removed if one.pipeline in visible],
        degraded=[_SHOWN_TO_OTHERS] if found.degraded else [],
        pipelines=len(visible.names()),
        deliveries={},
        troubles=[_SHOWN_TO_OTHERS] if found.troubles else [],
    )


def _controller(service: Served) -> ControllerView:
    now = service.clock.now()
    watched, work = service.watchdog, service.workload(now)
    configs = config_state(service.store, service.degradations())
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
        functions=sorted(work.functions, key=lambda one: _ORDER.index(one.name)),
        pipelines=len(service.store.pipelines()),
        timers=work.timers,
        dead_letters=service.dead_letters.count(),
        deliveries=work.deliveries,
        troubles=[*service.health_problems(), *service.degradations()],
    )


ROUTES: Final = (read_controller,)

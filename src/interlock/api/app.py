"""The ASGI application over one controller: the routes, their description, and what surrounds them."""

from typing import Any, Final, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from interlock import __version__
from interlock.api import (
    alerts,
    audit,
    auth,
    calendars,
    callbacks,
    controller,
    events,
    graphs,
    jobs,
    lineage,
    operations,
    overview,
    pipelines,
    probes,
    runs,
    sensors,
    session,
    stream_shares,
    tokens,
    trends,
)
from interlock.api.gate import Gate
from interlock.api.http.application import Application
from interlock.api.http.messages import Asgi
from interlock.api.http.openapi import About
from interlock.api.logins import FailedLogins
from interlock.api.metrics import Metrics
from interlock.api.plain_writes import PlainWrites
from interlock.api.served import Served
from interlock.api.state import AppState
from interlock.api.stream_shares import StreamLimits
from interlock.api.transport import Ways
from interlock.api.write_rates import WriteRates
from interlock.embedded.service import Service

PREFIX: Final = "/api/v1"
# Requests wait for the disk, many of them for the same commit: more threads than cores are of use.
THREADS: Final = 64
_DESCRIPTION: Final = (
    "The safety controller between 'it is time' and 'it is safe'. Errors are problem documents (RFC 9457). Lists are "
    "pages: pass `next` as `cursor`. Until the first token is made, the controller answers without one, on loopback "
    "only; afterwards `Authorization: Bearer` is needed, or the cookie of a session, with the scope that a route names."
)


_BEARER: Final = {"type": "http", "scheme": "bearer", "description": "A token of `interlock token create`."}
VERSIONED: Final = (
    *pipelines.ROUTES,
    *calendars.ROUTES,
    *sensors.ROUTES,
    *probes.ROUTES,
    *runs.ROUTES,
    *jobs.ROUTES,
    *events.ROUTES,
    *lineage.ROUTES,
    *operations.ROUTES,
    *alerts.ROUTES,
    *controller.ROUTES,
    *overview.ROUTES,
    *session.ROUTES,
    *graphs.ROUTES,
    *tokens.ROUTES,
    *trends.ROUTES,
    *callbacks.ROUTES,
    *audit.ROUTES,
)


def create_app(
    service: Served,
    *,
    public_url: str = "",
    streams: StreamLimits = stream_shares.DEFAULT,
    writes_per_second: int = 0,
    ways: Ways | None = None,
) -> Asgi:
    """The application; `Served` is started and stopped by the caller. `public_url`: where a proxy shows the page."""
    metrics = Metrics(service)
    state = AppState(
        service,
        metrics,
        WriteRates(writes_per_second),
        FailedLogins(metrics.http.login_failed),
        public_url=public_url,
    )
    gate = Gate(create_api(state), state, streams=streams)
    # What a proxy that is trusted says of its client; as uvicorn would have it, but not for plain writes.
    proxied = ProxyHeadersMiddleware(cast(Any, gate), (ways or Ways()).believed)
    answered = cast(Asgi, proxied)
    return PlainWrites(answered, service, state) if isinstance(service, Service) else answered


def create_api(state: AppState) -> Application:
    """The routes alone, without the gate."""
    return Application(
        [*(route.below(PREFIX) for route in VERSIONED), *operations.AT_ROOT],
        guard=auth.guard,
        state=state,
        about=About(
            title="Interlock",
            version=__version__,
            description=_DESCRIPTION,
            security_schemes={"bearer": _BEARER},
            security=[{"bearer": []}],
        ),
        threads=THREADS,
        thread_name="interlock-http",
    )

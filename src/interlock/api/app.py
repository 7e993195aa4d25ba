"""The ASGI application over one controller: the routes, their description, and what surrounds them."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from interlock import __version__
from interlock.api import (
    alerts,
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
    problems,
    runs,
    sensors,
    session,
    tokens,
    trends,
)
from interlock.api.answers import Asgi
from interlock.api.gate import Gate
from interlock.api.metrics import Metrics
from interlock.embedded.service import Service

PREFIX: Final = "/api/v1"
# Requests wait for the disk, many of them for the same commit: more threads than cores are of use.
THREADS: Final = 64
_DESCRIPTION: Final = (
    "The safety controller between 'it is time' and 'it is safe'. Errors are problem documents (RFC 9457). Lists are "
    "pages: pass `next` as `cursor`. Until the first token is made, the controller answers without one, on loopback "
    "only; afterwards `Authorization: Bearer` is needed, or the cookie of a session, with the scope that a route names."
)


def create_app(service: Service, *, public_url: str = "") -> Asgi:
    """The application; `Service` is started and stopped by the caller. `public_url`: where a proxy shows the page."""
    metrics = Metrics(service)
    app = cast(Asgi, create_litestar(service, metrics, public_url=public_url))
    return Gate(app, service, metrics.http, public_url=public_url)


def create_litestar(service: Service, metrics: Metrics, *, public_url: str = "") -> Litestar:
    """The routes alone, without the gate."""
    versioned = Router(
        PREFIX,
        route_handlers=[
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
        ],
    )
    return Litestar(
        route_handlers=[versioned, *operations.AT_ROOT],
        guards=[auth.guard],
        dependencies=auth.DEPENDENCIES,
        exception_handlers=problems.HANDLERS,
        state=State({"service": service, "metrics": metrics, "public_url": public_url}),
        lifespan=[_threads],
        openapi_config=_openapi(),
        logging_config=None,
        request_max_body_size=None,  # the gate limits bodies, by route
        debug=False,
    )


@asynccontextmanager
async def _threads(_: Any) -> AsyncIterator[None]:
    with ThreadPoolExecutor(THREADS, thread_name_prefix="interlock-http") as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        yield


def _openapi() -> OpenAPIConfig:
    bearer = SecurityScheme(type="http", scheme="bearer", description="A token of `interlock token create`.")
    return OpenAPIConfig(
        title="Interlock",
        version=__version__,
        description=_DESCRIPTION,
        use_handler_docstrings=True,
        components=Components(security_schemes={"bearer": bearer}),
        security=[{"bearer": []}],
        path=f"{PREFIX}/schema",
        render_plugins=[JsonRenderPlugin()],
    )

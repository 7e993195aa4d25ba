"""Running the controller: health, metrics, the watchdog, dead letters, statistics, the description of the API."""

from http import HTTPStatus
from typing import Annotated, Final

import msgspec

from interlock import __version__
from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import Body, Example, QueryParameter, Request, Response, ResponseSpec, get, post
from interlock.api.metrics import CONTENT_TYPE
from interlock.api.parameters import PipelineFilter
from interlock.api.problems import documented
from interlock.api.state import AppState
from interlock.api.visibility import VisibleArg
from interlock.control.views import sla_stats, stats
from interlock.control.views.sla_stats import SlaOverview
from interlock.control.views.stats import Stats
from interlock.embedded.access.tokens import Scope
from interlock.embedded.stream.dead_letters import DeadLetter
from interlock.logs import get_logger
from interlock.model.audit import AuditAction

_log = get_logger(__name__)

_REDRIVE: Final = Example(summary="two of them", value={"ids": [3, 4]})


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Alive, and which version."""

    status: str
    version: str


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the controller does its work; if not, why (`problems`); and what is wrong although it does."""

    ready: bool
    problems: list[str]
    degraded: list[str]


class Watched(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pass of the watchdog; its findings are events."""

    failed_checks: list[str]


class DeadLetterPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some dead letters; `next` is the cursor of the following page, null on the last."""

    items: list[DeadLetter]
    next: int | None = None


class Redrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters; null means all of them."""

    ids: Annotated[list[Annotated[int, msgspec.Meta(ge=1, le=2**62)]], msgspec.Meta(max_length=1000)] | None = None


class Redriven(msgspec.Struct, frozen=True, kw_only=True):
    """How many were sent on their way again."""

    redriven: int


@get("/healthz", sync_to_thread=False, operation_id="healthz", summary="Is the process alive?", tags=["operation"])
def healthz() -> Health:
    """Always, while it answers at all."""
    return Health(status="ok", version=__version__)


_NOT_READY: Final = ResponseSpec(data_container=Readiness, description="It is not ready.")


@get(
    "/readyz",
    sync_to_thread=True,
    responses={503: _NOT_READY},
    operation_id="readyz",
    summary="Does the controller do its work?",
    tags=["operation"],
)
def readyz(service: ServiceArg) -> Response[Readiness]:
    """The store can be written, the threads live, the streams are not far behind. What it can work in spite of is
    `degraded`, and the answer stays 200.
    """
    problems = service.health_problems()
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    body = Readiness(ready=not problems, problems=problems, degraded=service.degradations())
    return Response(body, status_code=status)


@get(
    "/metrics",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    media_type="text/plain",
    responses=documented(),
    operation_id="metrics",
    summary="Prometheus metrics",
    tags=["operation"],
)
def read_metrics(request: Request) -> Response[bytes]:
    """In the Prometheus text format."""
    state: AppState = request.app.state
    return Response(state.metrics.text(), media_type=CONTENT_TYPE)


@get("/openapi.json", sync_to_thread=False, include_in_schema=False)
def read_openapi(request: Request) -> Response[bytes]:
    """The description of this API."""
    return Response(request.app.description())


@post(
    "/watchdog/run",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    status_code=200,
    responses=documented(),
    operation_id="runWatchdog",
    summary="Run the watchdog now",
    tags=["operation"],
)
def run_watchdog(service: ServiceArg, caller: CallerArg) -> Watched:
    """All eight checks; what they find is published as events, once."""
    failed = service.watch()
    caller.record(service, AuditAction.WATCHDOG_RUN, after={"failedChecks": failed})
    _log.info("watchdog run by request", by=caller.name, failed=failed)
    return Watched(failed_checks=failed)


@get(
    "/dlq",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    responses=documented(422),
    operation_id="listDeadLetters",
    summary="What was given up",
    tags=["operation"],
)
def list_dead_letters(
    service: ServiceArg,
    cursor: Annotated[
        int, QueryParameter(name="cursor", ge=0, le=2**62, description="The `next` of the page before.")
    ] = 0,
    limit: Annotated[int, QueryParameter(name="limit", ge=1, le=1000)] = 100,
) -> DeadLetterPage:
    """Whole records with their last error, in the order they came."""
    found = service.dead_letters.list(limit + 1, cursor)
    return DeadLetterPage(items=found[:limit], next=found[limit - 1].id if len(found) > limit else None)


@post(
    "/dlq/redrive",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    status_code=200,
    responses=documented(408, 413, 422),
    operation_id="redriveDeadLetters",
    summary="Have dead letters done again",
    tags=["operation"],
)
def redrive(data: Annotated[Redrive, Body(examples=[_REDRIVE])], service: ServiceArg, caller: CallerArg) -> Redriven:
    """Each goes back to who failed on it."""
    count = service.dead_letters.redrive(data.ids, by=caller.actor)
    _log.info("dead letters redriven", count=count, by=caller.name)
    return Redriven(redriven=count)


@get(
    "/stats",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getStats",
    summary="SLA compliance, durations, counts per day",
    tags=["operation"],
)
def read_stats(
    service: ServiceArg,
    days: Annotated[int, QueryParameter(name="days", ge=1, le=90, description="How many days back.")] = 7,
    pipeline: PipelineFilter = None,
) -> Stats:
    """Counted from the events, days in UTC."""
    return stats.collect(service.store, service.clock.now(), days=days, pipeline=pipeline)


@get(
    "/stats/sla",
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    responses=documented(422),
    operation_id="getSlaStats",
    summary="SLA compliance per pipeline and week",
    tags=["operation"],
)
def read_sla_stats(
    service: ServiceArg,
    visible: VisibleArg,
    weeks: Annotated[int, QueryParameter(name="weeks", ge=1, le=13, description="How many weeks back.")] = 8,
) -> SlaOverview:
    """Counted from the events of the SLA; weeks begin on Monday, UTC. The worst pipelines come first.

    With a limited token, the pipelines it is for.
    """
    return sla_stats.collect(service.store, service.clock.now(), weeks=weeks, visible=visible)


AT_ROOT: Final = (healthz, readyz, read_metrics, read_openapi)
ROUTES: Final = (run_watchdog, list_dead_letters, redrive, read_stats, read_sla_stats)

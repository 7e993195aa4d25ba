"""How a pipeline's runs turned out lately, and which come next."""

from typing import Annotated, Final

from interlock.api.auth import ServiceArg, needs
from interlock.api.http import QueryParameter, get
from interlock.api.parameters import PipelineArg, ScheduleArg
from interlock.api.problems import documented
from interlock.control.views import trend
from interlock.control.views.trend import MOST_DAYS, Trend, Upcoming
from interlock.embedded.access.tokens import Scope

DaysArg = Annotated[int, QueryParameter(name="days", ge=1, le=MOST_DAYS, description="How many days.")]


@get(
    "/pipelines/{pipeline:str}/trend",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getTrend",
    summary="How its runs turned out lately",
    tags=["pipelines"],
)
def read_trend(pipeline: PipelineArg, service: ServiceArg, days: DaysArg = 30, schedule: ScheduleArg = None) -> Trend:
    """Every run of the last days with its times, its SLA and how long its job took."""
    return trend.read(service.store, pipeline, service.clock.now(), days=days, schedule=schedule)


@get(
    "/pipelines/{pipeline:str}/upcoming",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getUpcoming",
    summary="Which runs come next",
    tags=["pipelines"],
)
def read_upcoming(pipeline: PipelineArg, service: ServiceArg, days: DaysArg = 7) -> Upcoming:
    """Each with its start, its warning and its breach; excluded ones with the calendar's reason."""
    return trend.upcoming(service.store, pipeline, service.clock.now(), days=days)


ROUTES: Final = (read_trend, read_upcoming)

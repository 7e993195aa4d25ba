"""What runs after what, and which hazards the stored configs cover."""

from typing import Annotated, Final

import msgspec

from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import QueryParameter, get
from interlock.api.parameters import CursorArg, DateArg, LimitArg, PipelineFilter
from interlock.api.problems import documented
from interlock.api.visibility import VisibleArg
from interlock.control.views import graph, lane_rows, pipeline_views
from interlock.control.views.graph import MOST_DEPTH, Graph
from interlock.decide.stpa import Cover, Coverage, analyse
from interlock.embedded.access.tokens import Scope


class HazardPage(msgspec.Struct, frozen=True, kw_only=True):
    """The hazards of some pipelines and how many are covered how; `next` is the cursor of the following page.

    Pipelines whose config is invalid are left out: they are not run.
    """

    counts: dict[Cover, int]
    items: list[Coverage]
    next: str | None = None


@get(
    "/graph",
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getGraph",
    summary="What runs after what",
    tags=["pipelines"],
)
def read_graph(
    service: ServiceArg,
    caller: CallerArg,
    visible: VisibleArg,
    root: Annotated[str, QueryParameter(name="root", max_length=256, description="The pipeline in the middle.")],
    depth: Annotated[int, QueryParameter(name="depth", ge=1, le=MOST_DEPTH, description="How many steps away.")] = 1,
    date: DateArg = None,
) -> Graph:
    """Around one pipeline; with a date, how its runs stand and which markers are there.

    With a limited token, of the pipelines it is not for only the names of those that its own run after.
    """
    caller.check_stored(Scope.READ, service.store, root)
    return graph.around(service.store, root, depth=depth, date=date, visible=visible)


@get(
    "/hazards",
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="listHazards",
    summary="Which hazards are covered",
    tags=["pipelines"],
)
def list_hazards(
    service: ServiceArg,
    visible: VisibleArg,
    pipeline: PipelineFilter = None,
    cursor: CursorArg = None,
    limit: LimitArg = 100,
) -> HazardPage:
    """The four kinds of unsafe control action per pipeline, as `interlock stpa` tells of them, from stored configs."""
    store = service.store
    if pipeline is not None:
        pipeline_views.known(store, pipeline)
    all_ = store.pipelines() if visible is None else visible.names()
    ids = [pipeline] if pipeline is not None else [one for one in all_ if cursor is None or one > cursor]
    stored = lane_rows.read_configs(store, ids[:limit])
    items = [analyse(one.config) for one in stored if one.config is not None]
    counts = {cover: sum(one.count(cover) for one in items) for cover in Cover}
    return HazardPage(counts=counts, items=items, next=ids[limit - 1] if len(ids) > limit else None)


ROUTES: Final = (read_graph, list_hazards)

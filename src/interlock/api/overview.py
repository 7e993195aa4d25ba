"""The overview: every pipeline as a lane of cells."""

from datetime import datetime
from typing import Annotated, Final

import msgspec

from interlock.api.auth import ServiceArg, needs
from interlock.api.events import instant
from interlock.api.http import Provide, QueryParameter, get
from interlock.api.parameters import CursorArg
from interlock.api.problems import documented
from interlock.api.served import Served
from interlock.api.sse import Position
from interlock.api.visibility import VisibleArg
from interlock.control.views import overview
from interlock.control.views.overview import MOST_LANES, Asked, Now, Overview
from interlock.control.views.standing import Standing
from interlock.decide.lanes import Bucket
from interlock.embedded.access.tokens import Scope
from interlock.embedded.clock import rate
from interlock.model.times import epoch_millis


def present(service: Served) -> Now:
    """The controller's present. The position is taken before anything is read, so that no event falls in between."""
    head, at = service.head(), service.clock.now()
    position = str(Position(head, epoch_millis(at)))
    return Now(at=at, rate=rate(service.clock), position=position, grace=service.control.settings.missed_grace)


class Span(msgspec.Struct, frozen=True):
    """The span that is asked for."""

    since: datetime | None
    until: datetime | None
    bucket: Bucket


def _span(
    since: Annotated[
        str | None, QueryParameter(name="from", max_length=64, description="The first column: RFC 3339.")
    ] = None,
    until: Annotated[
        str | None, QueryParameter(name="to", max_length=64, description="The end of the last column: RFC 3339.")
    ] = None,
    bucket: Annotated[Bucket, QueryParameter(name="bucket", description="How long a column is.")] = Bucket.HOUR,
) -> Span:
    return Span(instant(since, "from"), instant(until, "to"), bucket)


class Filters(msgspec.Struct, frozen=True):
    """The lanes that are asked for."""

    owner: str | None
    standings: frozenset[Standing]
    text: str
    pipelines: tuple[str, ...]


def _filters(
    owner: Annotated[
        str | None, QueryParameter(name="owner", max_length=256, description="Only of this owner.")
    ] = None,
    standings: Annotated[
        list[Standing] | None,
        QueryParameter(name="state", description="Only lanes that stand so; may be given several times."),
    ] = None,
    q: Annotated[
        str, QueryParameter(name="q", max_length=256, description="Only with this text in id, owner or description.")
    ] = "",
    pipeline: Annotated[
        list[str] | None,
        QueryParameter(name="pipeline", max_items=200, description="Only these; may be given several times."),
    ] = None,
) -> Filters:
    return Filters(owner, frozenset(standings or ()), q, tuple(sorted(set(pipeline or ()))))


@get(
    "/overview",
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    responses=documented(422),
    operation_id="getOverview",
    summary="Every pipeline as a lane",
    tags=["overview"],
)
def read_overview(
    service: ServiceArg,
    visible: VisibleArg,
    span: Annotated[Span, Provide(_span)],
    filters: Annotated[Filters, Provide(_filters)],
    cursor: CursorArg = None,
    limit: Annotated[
        int,
        QueryParameter(
            name="limit", ge=1, le=MOST_LANES, description="How many at most; a long span makes for shorter pages."
        ),
    ] = 1000,
) -> Overview:
    """What is late, why, and what happens next. By default the last 24 hours, a column an hour.

    With a limited token, the pipelines it is for.
    """
    now = present(service)
    asked = Asked(
        columns=overview.columns_of(now.at, span.since, span.until, span.bucket),
        owner=filters.owner,
        standings=filters.standings,
        text=filters.text,
        pipelines=filters.pipelines,
        visible=None if visible is None else frozenset(visible.names()),
        after=cursor,
        limit=limit,
    )
    return overview.read(service.store, asked, now, service.kept_lanes)


ROUTES: Final = (read_overview,)

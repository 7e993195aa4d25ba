"""Events: pages of what happened, and the stream of what happens."""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from interlock.api.auth import ServiceArg, authenticate, needs
from interlock.api.credentials import Credentials
from interlock.api.http import HeaderParameter, Provide, QueryParameter, Request, ResponseSpec, Stream, get
from interlock.api.parameters import CursorArg, LimitArg, PipelineFilter
from interlock.api.problems import documented
from interlock.api.sse import EventStream, Filter, Position
from interlock.api.visibility import Visibility, VisibleArg, visibility_of
from interlock.control import catalog
from interlock.control.views import event_views
from interlock.control.views.event_views import EventPage, Wanted
from interlock.embedded.access.tokens import Scope
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType, Severity
from interlock.model.periods import parse_period
from interlock.model.times import parse_instant

TypeFilter = Annotated[
    list[EventType] | None, QueryParameter(name="type", description="Only of this type; may be given several times.")
]
SinceArg = Annotated[
    str | None,
    QueryParameter(
        name="since", max_length=64, description="From this instant: RFC 3339, or epoch seconds or milliseconds."
    ),
]


UntilArg = Annotated[
    str | None, QueryParameter(name="until", max_length=64, description="Before this instant, as `since`.")
]
SeverityArg = Annotated[
    Severity | None, QueryParameter(name="severity", description="Only of this severity, or a worse one.")
]


class Sieve(msgspec.Struct, frozen=True):
    """Filters beyond pipeline, type and time; `visible`: what the caller may see, None means all."""

    until: datetime | None
    severity: Severity | None
    schedule: str | None
    date: str | None
    text: str
    visible: Visibility | None


def _sieve(
    visible: VisibleArg,
    until: UntilArg = None,
    severity: SeverityArg = None,
    schedule: Annotated[
        str | None, QueryParameter(name="schedule", max_length=128, description="Only of this schedule.")
    ] = None,
    date: Annotated[str | None, QueryParameter(name="date", max_length=32, description="Only of this period.")] = None,
    q: Annotated[
        str, QueryParameter(name="q", max_length=256, description="Only with this text in message, pipeline or type.")
    ] = "",
) -> Sieve:
    period = None if date is None else str(parse_period(date))
    return Sieve(instant(until, "until"), severity, schedule, period, q, visible)


def instant(text: str | None, name: str = "since") -> datetime | None:
    """An instant as a person writes it in a query."""
    if text is None or not text:
        return None
    # In a query an unescaped plus sign is a space, and nobody remembers to escape it.
    number = float(text) if text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit() else None
    found = parse_instant(text.replace(" ", "+") if number is None else number)
    if found is None:
        raise InvalidValueError(f"{name}: {text!r} is not a time: write 2026-03-03T10:00:00Z, or epoch seconds")
    return found


@get(
    "/events",
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="listEvents",
    summary="What happened",
    tags=["events"],
)
def list_events(
    service: ServiceArg,
    sieve: Annotated[Sieve, Provide(_sieve)],
    pipeline: PipelineFilter = None,
    types: TypeFilter = None,
    since: SinceArg = None,
    order: Annotated[
        Literal["asc", "desc"], QueryParameter(name="order", description="Oldest first, or newest first.")
    ] = "desc",
    cursor: CursorArg = None,
    limit: LimitArg = 100,
) -> EventPage:
    """Newest first unless `order=asc`. Events are kept for 90 days. With a limited token, those of its pipelines."""
    wanted = Wanted(
        pipeline=pipeline,
        pipelines=None if sieve.visible is None else tuple(sieve.visible.names()),
        types=tuple(types or ()),
        since=instant(since),
        until=sieve.until,
        newest_first=order == "desc",
        severity=sieve.severity,
        schedule=sieve.schedule,
        date=sieve.date,
        text=sieve.text,
    )
    return event_views.page(service.store, wanted, service.clock.now(), cursor=cursor, limit=limit)


class SensorChoice(msgspec.Struct, frozen=True):
    """Whether a stream tells of sensors, and of whose."""

    wanted: bool
    pipelines: frozenset[str]


def _sensors(
    sensors: Annotated[
        bool,
        QueryParameter(
            name="sensors",
            description=(
                "Also `event: sensor` for each sensor that is written, with `pipeline`, `key` and `receivedAt`; writes"
                " of a key within a moment are one. They are not replayed: read sensors again after a gap."
            ),
        ),
    ] = False,
    sensors_of: Annotated[
        list[str] | None,
        QueryParameter(
            name="sensorsOf",
            max_items=50,
            description=(
                "With `sensors`: of these pipelines only; may be given several times. Over AWS sensors are looked at"
                " every two seconds, and only those of the pipelines named here or by `pipeline`."
            ),
        ),
    ] = None,
) -> SensorChoice:
    return SensorChoice(sensors, frozenset(sensors_of or ()))


_STREAM: Final = ResponseSpec(
    data_container=str,
    description="Server-sent events: `id` is the position to resume from, `event` the type, `data` the event as JSON.",
    media_type="text/event-stream",
)


@get(
    "/events/stream",
    opt=needs(Scope.READ, lists=True),
    responses={**documented(422), 200: _STREAM},
    media_type="text/event-stream",
    operation_id="streamEvents",
    summary="What happens",
    tags=["events"],
)
async def stream_events(
    request: Request,
    service: ServiceArg,
    sensors: Annotated[SensorChoice, Provide(_sensors)],
    pipeline: PipelineFilter = None,
    types: TypeFilter = None,
    severity: SeverityArg = None,
    since: SinceArg = None,
    last_event_id: Annotated[
        str | None, HeaderParameter(name="Last-Event-ID", max_length=64, description="Resume behind this event.")
    ] = None,
) -> Stream:
    """Events as they are committed. Begins now, at `since`, or behind `Last-Event-ID`.

    With a limited token, those of its pipelines.
    """
    begin = instant(since)
    visible = visibility_of(service, request.scope["state"]["principal"])
    position = Position.read(last_event_id) if last_event_id else (Position.at(begin) if begin else None)
    wanted = Filter(
        pipeline=pipeline,
        types=frozenset(types or ()),
        severity=severity,
        sensors=sensors.wanted,
        sensors_of=sensors.pipelines or frozenset([] if pipeline is None else [pipeline]),
        visible=visible,
    )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    shown: Credentials = request.scope["state"]["credentials"]

    def may_read() -> bool:
        caller = authenticate(service, shown)
        if caller is None or pipeline is None:
            return caller is not None and caller.may(Scope.READ)
        return caller.may_for(Scope.READ, pipeline, catalog.current(service.store, pipeline))

    stream = EventStream(service, wanted, position, may_read)
    return Stream(stream.chunks(), media_type="text/event-stream", headers=headers)


ROUTES: Final = (list_events, stream_events)

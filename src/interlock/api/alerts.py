"""Alerts on their way, and a test of the channels."""

from typing import Annotated, Final

import msgspec

from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import Body, Example, QueryParameter, get, post
from interlock.api.problems import documented
from interlock.control.alerts.alert_tests import ChannelTest
from interlock.embedded.access.tokens import Scope
from interlock.embedded.alerts.delivery_rows import DeliveryState
from interlock.embedded.alerts.delivery_views import NEWEST, DeliveryView
from interlock.logs import get_logger
from interlock.model.audit import AuditAction
from interlock.model.events import Severity

_CHOICE: Final = Example(summary="one channel", value={"channel": "slack:#data-alerts"})

_log = get_logger(__name__)


class DeliveryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some deliveries, the latest first; `next` is the cursor of the following page, null on the last."""

    items: list[DeliveryView]
    next: int | None = None


class ChannelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which channel to try; without one, all."""

    channel: str | None = None


class ChannelTests(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the test alert on each channel."""

    channels: list[ChannelTest]


@get(
    "/alerts",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    responses=documented(422),
    operation_id="listAlerts",
    summary="Alerts on their way to people",
    tags=["operation"],
)
def list_alerts(
    service: ServiceArg,
    wanted: Annotated[
        DeliveryState | None, QueryParameter(name="state", description="waiting, sent or dead (given up).")
    ] = None,
    channel: Annotated[str | None, QueryParameter(name="channel", description="Only those to this channel.")] = None,
    cursor: Annotated[
        int, QueryParameter(name="cursor", ge=0, le=2**62, description="The `next` of the page before.")
    ] = NEWEST,
    limit: Annotated[int, QueryParameter(name="limit", ge=1, le=1000)] = 100,
) -> DeliveryPage:
    """One row per alert and channel: how often it was tried, when it goes next, why it failed."""
    found = service.deliveries(state=wanted, channel=channel, before=cursor, limit=limit + 1)
    return DeliveryPage(items=found[:limit], next=found[limit - 1].id if len(found) > limit else None)


class RouteView(msgspec.Struct, frozen=True, kw_only=True):
    """A channel, and what goes there: events of a severity or worse, `filtered` by a pattern of its own."""

    name: str
    channel: str
    severity: str
    filtered: bool


class RouteList(msgspec.Struct, frozen=True, kw_only=True):
    """The channels in force; neither addresses nor secrets."""

    items: list[RouteView]


@get(
    "/alerts/routes",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    responses=documented(),
    operation_id="listAlertRoutes",
    summary="Which alerts go where",
    tags=["operation"],
)
def list_routes(service: ServiceArg) -> RouteList:
    """As `interlock.toml` says it; changes take effect with the next start."""
    return RouteList(
        items=[
            RouteView(
                name=one.name or one.channel.value,
                channel=one.channel.value,
                severity=(one.severity or Severity.WARNING).value,
                filtered=one.pattern is not None,
            )
            for one in service.settings.alerts
        ]
    )


@post(
    "/alerts:test",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    status_code=200,
    responses=documented(408, 413, 422),
    operation_id="testAlerts",
    summary="Send a test alert",
    tags=["operation"],
)
def try_channels(
    data: Annotated[ChannelChoice, Body(examples=[_CHOICE])], service: ServiceArg, caller: CallerArg
) -> ChannelTests:
    """On one channel or on all, at once; answers when each has taken it or failed."""
    found = service.test_alerts(data.channel, service.clock.now(), caller.name)
    sent = {one.channel: "sent" if one.ok else "failed" for one in found}
    caller.record(service, AuditAction.ALERTS_TESTED, subject=data.channel or "all", after=sent)
    _log.info("alert channels tested", channels=[one.channel for one in found], by=caller.name)
    return ChannelTests(channels=found)


ROUTES: Final = (list_alerts, list_routes, try_channels)

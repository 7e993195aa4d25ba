"""From the settings of an installation to channels that send: the one place where secrets are taken from the
environment.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from interlock.alerts.console import NAME as CONSOLE
from interlock.alerts.console import ConsoleChannel
from interlock.alerts.secrets import Secret
from interlock.config.alert_routes import AlertRoute, ChannelKind
from interlock.control.alerts.alert_dispatcher import Route, Routing
from interlock.extras import SLACK
from interlock.model.errors import InvalidValueError
from interlock.model.events import Severity
from interlock.ports.channel import Channel
from interlock.ports.clock import Clock

if TYPE_CHECKING:
    import httpx

SLACK_TOKEN = "SLACK_BOT_TOKEN"


class Alerting(msgspec.Struct, frozen=True):
    """What is needed to alert people: who hears of what, and the channels by name."""

    routing: Routing
    channels: Mapping[str, Channel]


def build_alerting(
    settings: Sequence[AlertRoute],
    environment: Mapping[str, str],
    *,
    clock: Clock,
    client: "Callable[[], httpx.Client]",
    slack_url: str | None = None,
    json_console: bool = False,
) -> Alerting:
    """The channels and routes of `[[alerts]]`; without any, the console, in JSON lines where the logs are.

    `client` makes the HTTP client of webhooks, once: whoever makes it decides which addresses may be reached. Raises
    InvalidValueError that names every package that is missing, and every environment variable that is missing or unfit.
    """
    unusable = [problem for route in settings for problem in _unusable(route, environment)]
    if unusable:
        raise InvalidValueError("alerts cannot be sent: " + "; ".join(dict.fromkeys(unusable)))
    if not settings:
        return Alerting(build_routing(settings), {CONSOLE: ConsoleChannel(json=json_console)})
    http: list[httpx.Client] = []
    channels: dict[str, Channel] = {}
    for route in settings:
        if route.channel is ChannelKind.WEBHOOK and not http:
            http.append(client())
        if route.name not in channels:
            channels[route.name] = _channel(route, environment, clock, http, slack_url, json_console=json_console)
    return Alerting(build_routing(settings), channels)


def build_routing(settings: Sequence[AlertRoute]) -> Routing:
    """Who hears of what, without the means to tell them; without any route, the console."""
    if not settings:
        return Routing([], [CONSOLE])
    routes = [
        Route(f"alerts[{index}]", route.name, route.pattern, route.severity or Severity.WARNING)
        for index, route in enumerate(settings)
    ]
    return Routing(routes, dict.fromkeys(route.name for route in settings))


def _unusable(route: AlertRoute, environment: Mapping[str, str]) -> list[str]:
    wanted = [name for name in (route.url_env, route.secret_env, *route.headers_env.values()) if name]
    missing: list[str] = []
    if route.channel is ChannelKind.SLACK:
        wanted.append(SLACK_TOKEN)
        missing = [problem for problem in [SLACK.why_missing("alerts to Slack")] if problem]
    found = {name: environment.get(name, "").strip() for name in wanted}
    unset = [f"set the environment variable {name} (for {route.name})" for name, value in found.items() if not value]
    # Said without the value; an HTTP library that met it would repeat it.
    unfit = [
        f"the environment variable {name} (for {route.name}) holds characters that cannot be sent"
        for name, value in found.items()
        if value and name != route.secret_env and not (value.isascii() and value.isprintable())
    ]
    return missing + unset + unfit


def _channel(
    route: AlertRoute,
    environment: Mapping[str, str],
    clock: Clock,
    http: "Sequence[httpx.Client]",
    slack_url: str | None,
    *,
    json_console: bool,
) -> Channel:
    match route.channel:
        case ChannelKind.CONSOLE:
            return ConsoleChannel(name=route.name, json=json_console)
        case ChannelKind.SLACK:
            # Imported where it is needed: installations without Slack start faster.
            from interlock.alerts.slack import SLACK_API, SlackChannel

            token = Secret(environment[SLACK_TOKEN].strip())
            return SlackChannel(route.slack_channel, token, name=route.name, base_url=slack_url or SLACK_API)
        case ChannelKind.WEBHOOK:
            from interlock.alerts.webhook import WebhookChannel

            given = {name: Secret(value) for name, value in route.headers.items()}
            taken = {name: Secret(environment[variable].strip()) for name, variable in route.headers_env.items()}
            return WebhookChannel(
                route.name,
                Secret(environment[route.url_env].strip() if route.url_env else route.url),
                client=http[0],
                clock=clock,
                signing_key=Secret(environment[route.secret_env].strip()) if route.secret_env else None,
                headers={**given, **taken},
                timeout=route.timeout,
            )

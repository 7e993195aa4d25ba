"""The channels of the alert-dispatcher, with the Slack token of a variable or of Secrets Manager.

A token is looked up again after some minutes, so that one that was replaced is used without a new deployment.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from interlock.aws.alerts import alert_routes
from interlock.aws.settings import AwsSettings
from interlock.config.alert_routes import ChannelKind
from interlock.control.alerts.alert_channels import SLACK_TOKEN, build_alerting
from interlock.ports.channel import Channel
from interlock.ports.clock import Clock
from interlock.ports.secrets import Secrets

SLACK_SECRET: Final = "SLACK_SECRET_ARN"
_FRESH: Final = timedelta(minutes=5)


class Channels:
    """The channels of ALERTS, made when they are first needed."""

    def __init__(self, settings: AwsSettings, secrets: Secrets, clock: Clock) -> None:
        self._settings = settings
        self._secrets = secrets
        self._clock = clock
        self._made_at: datetime | None = None
        self._channels: Mapping[str, Channel] = {}

    def __call__(self) -> Mapping[str, Channel]:
        """The channels by name, as they are set up now."""
        now = self._clock.now()
        if self._made_at is None or now - self._made_at >= _FRESH:
            self._channels = self._make()
            self._made_at = now
        return self._channels

    def _make(self) -> Mapping[str, Channel]:
        from interlock.jobs.addresses import AddressPolicy, guarded_client, resolve_host

        routes, variables = alert_routes(self._settings), dict(self._settings.variables)
        arn = variables.get(SLACK_SECRET, "").strip()
        if arn and not variables.get(SLACK_TOKEN) and any(route.channel is ChannelKind.SLACK for route in routes):
            variables[SLACK_TOKEN] = self._secrets.get(f"secretsmanager:{arn}")
        allowed = AddressPolicy(self._settings.allow_private)
        made = build_alerting(
            routes,
            variables,
            clock=self._clock,
            client=lambda: guarded_client(allowed, resolve_host),
            json_console=True,
        )
        return made.channels

"""Alerts on AWS: an SQS FIFO queue between event-sink and alert-dispatcher.

A group is a pipeline on a channel, so that its alerts stay in order: one that fails holds up its own group and nothing
else. It waits by its visibility, for a day, then goes whole to the FIFO dead-letter queue. What is recorded as sent
(in the events table) is never sent again, however often its message comes.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import msgspec

from interlock.aws.clients import Clients
from interlock.aws.failures import call
from interlock.aws.settings import AwsSettings, SettingsError
from interlock.config.alert_routes import AlertRoute, parse_alert_routes
from interlock.config.problems import format_path
from interlock.control.alerts.alert_dispatcher import Delivery
from interlock.logs import get_logger
from interlock.model.errors import InvalidValueError
from interlock.ports.channel import Alert

LONGEST_VISIBILITY: Final = timedelta(hours=12)
"""SQS hides a message for at most 12 hours."""
_log = get_logger(__name__)


class Queued(msgspec.Struct, frozen=True):
    """A message of the queue."""

    environment: str
    channel: str
    alert: Alert


def alert_routes(settings: AwsSettings) -> tuple[AlertRoute, ...]:
    """The routes of ALERTS, or SettingsError with everything that is wrong with them."""
    found = parse_alert_routes([dict(one) for one in settings.alerts])
    routes = tuple(one for one in found if isinstance(one, AlertRoute))
    if len(routes) < len(found):
        wrong = "; ".join(f"{format_path(one.path)}: {one.message}" for one in found if not isinstance(one, AlertRoute))
        raise SettingsError(f"environment variable ALERTS is wrong: {wrong}")
    return routes


class AlertQueue:
    """The FIFO queue of alerts, and its dead-letter queue."""

    def __init__(self, clients: Clients, settings: AwsSettings) -> None:
        self._clients = clients
        self._settings = settings

    def put(self, deliveries: Sequence[Delivery]) -> None:
        """Queue these in their order; one that is queued again within minutes is the same."""
        for delivery in deliveries:
            body = msgspec.json.encode(Queued(self._settings.environment, delivery.channel, delivery.alert)).decode()
            group, identity = group_of(delivery), identity_of(delivery.channel, delivery.alert.id)
            self._send(self._settings.alert_queue_url, body, group, identity, {})

    def bury(self, body: str, group: str, identity: str, error: str) -> None:
        """Put a message that was given up on into the dead-letter queue, as it came."""
        reason = {"error": {"DataType": "String", "StringValue": error[:1000] or "unknown"}}
        self._send(self._settings.alert_dlq_url, body, group, identity, reason)

    def _send(self, url: str, body: str, group: str, identity: str, attributes: Mapping[str, Any]) -> None:
        given: dict[str, Any] = {"MessageAttributes": dict(attributes)} if attributes else {}
        call(
            f"queueing an alert in {url.rsplit('/', 1)[-1]}",
            lambda: self._clients("sqs").send_message(
                QueueUrl=url, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=identity, **given
            ),
        )

    def hide(self, receipt: str, until: datetime, now: datetime) -> None:
        """Have a message come again at that instant, or as late as SQS can hide it."""
        seconds = math.ceil(min(max(until - now, timedelta(seconds=1)), LONGEST_VISIBILITY).total_seconds())
        call(
            "postponing an alert",
            lambda: self._clients("sqs").change_message_visibility(
                QueueUrl=self._settings.alert_queue_url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            ),
        )


def group_of(delivery: Delivery) -> str:
    """The alerts of a pipeline reach a channel in their order, and wait for no other pipeline."""
    return sha256(f"{delivery.pipeline}\x00{delivery.channel}".encode()).hexdigest()


def identity_of(channel: str, alert_id: str) -> str:
    """What tells one delivery from another."""
    return sha256(f"{channel}\x00{alert_id}".encode()).hexdigest()


def read_queued(body: str, environment: str) -> Queued:
    """A message of the queue; one that is none of ours, or of another environment, is refused."""
    try:
        queued = msgspec.json.decode(body, type=Queued)
    except msgspec.MsgspecError as error:
        raise InvalidValueError(f"a message of the alert queue is no alert: {error}") from error
    if queued.environment != environment:
        raise InvalidValueError(f"an alert of the environment {queued.environment!r} came to {environment!r}")
    return queued


def queued_at(record: Mapping[str, Any], now: datetime) -> datetime:
    """When a message came into the queue."""
    try:
        return datetime.fromtimestamp(int(record["attributes"]["SentTimestamp"]) / 1000, UTC)
    except (KeyError, TypeError, ValueError):
        return now

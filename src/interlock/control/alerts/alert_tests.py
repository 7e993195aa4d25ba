"""Trying the alert channels: one alert, sent at once and past the queue, that says that nothing is wrong."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from interlock.model.errors import InvalidValueError
from interlock.model.events import Event, EventType, Severity
from interlock.ports.channel import Alert, Channel, DeliveryError

# Not the id of a pipeline: this alert is about none.
PIPELINE: Final = "_alerts-test"


class ChannelTest(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a test alert on one channel; `error` is "" when it was taken."""

    channel: str
    ok: bool
    error: str = ""


def test_alert(now: datetime, by: str) -> Alert:
    """The alert that is sent; of severity info, so that nobody is woken who filters by it."""
    event = Event(
        type=EventType.INFRA_ALARM,
        severity=Severity.INFO,
        pipeline_id=PIPELINE,
        message=f"a test of this channel, asked for by {by}: nothing is wrong",
        timestamp=now,
        detail={"alarm": "alerts-test", "state": "OK"},
    )
    return Alert(f"{PIPELINE}#{int(now.timestamp() * 1000)}", event)


def try_channels(channels: Mapping[str, Channel], only: str | None, alert: Alert) -> list[ChannelTest]:
    """Send it on the named channel, or on all of them, one after the other."""
    if only is not None and only not in channels:
        known = ", ".join(sorted(channels)) or "there is none"
        raise InvalidValueError(f"there is no alert channel {only!r}: {known}")
    names = sorted(channels) if only is None else [only]
    return [_tried(name, channels[name], alert) for name in names]


def _tried(name: str, channel: Channel, alert: Alert) -> ChannelTest:
    try:
        channel.send(alert, thread=None, maybe_sent=None)
    except DeliveryError as error:
        return ChannelTest(channel=name, ok=False, error=str(error))
    except Exception as error:  # noqa: BLE001  whatever a channel raises is what the test is to find out
        return ChannelTest(channel=name, ok=False, error=repr(error))
    return ChannelTest(channel=name, ok=True)

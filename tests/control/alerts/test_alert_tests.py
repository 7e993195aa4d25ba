"""Trying the alert channels: what is sent, on which of them, and what is said of a channel that does not work."""

import pytest

from interlock.control.alerts.alert_tests import PIPELINE, ChannelTest, try_channels
from interlock.control.alerts.alert_tests import test_alert as make_alert
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType, Severity
from interlock.ports.channel import DeliveryError
from tests.alerts.alerts import ScriptedChannel
from tests.conformance.manual_clock import START


def test_the_alert_says_that_nothing_is_wrong_and_wakes_nobody() -> None:
    alert = make_alert(START, "ana")
    assert (alert.event.type, alert.event.severity) == (EventType.INFRA_ALARM, Severity.INFO)
    assert "asked for by ana: nothing is wrong" in alert.event.message
    assert (alert.event.pipeline_id, alert.event.detail["state"]) == (PIPELINE, "OK")
    assert alert.id == f"{PIPELINE}#{int(START.timestamp() * 1000)}"


def test_every_channel_is_tried_also_after_some_that_fail() -> None:
    down, odd, fine = (
        ScriptedChannel("b", DeliveryError("no route to host")),
        ScriptedChannel("a", KeyError("token")),
        ScriptedChannel("c"),
    )
    alert = make_alert(START, "ana")
    assert try_channels({one.name: one for one in (down, odd, fine)}, None, alert) == [
        ChannelTest(channel="a", ok=False, error="KeyError('token')"),
        ChannelTest(channel="b", ok=False, error="no route to host"),
        ChannelTest(channel="c", ok=True),
    ]
    assert (fine.sent, fine.threads, fine.maybe) == ([alert.id], [None], [None])


def test_one_channel_is_tried_alone() -> None:
    channels = {name: ScriptedChannel(name) for name in ("a", "b")}
    assert try_channels(channels, "b", make_alert(START, "ana")) == [ChannelTest(channel="b", ok=True)]
    assert channels["a"].tried == []


@pytest.mark.parametrize(("names", "said"), [(["a", "b"], "a, b"), ([], "there is none")])
def test_an_unknown_channel_is_refused_with_those_there_are(names: list[str], said: str) -> None:
    with pytest.raises(InvalidValueError, match=f"no alert channel 'x': {said}"):
        try_channels({name: ScriptedChannel(name) for name in names}, "x", make_alert(START, "ana"))

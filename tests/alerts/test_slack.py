"""The Slack channel against a server that behaves like the Bot API."""

import socket
from collections.abc import Iterator
from datetime import timedelta

import pytest

from interlock.alerts.secrets import Secret
from interlock.alerts.slack import SlackChannel
from interlock.model.errors import InvalidValueError
from interlock.ports.channel import DeliveryError
from tests.alerts.alerts import alert
from tests.alerts.receivers import HANG_UP, Answer, FakeSlack, Fault, limited, refusal, running
from tests.conformance.manual_clock import START, ManualClock

TOKEN = "xoxb-test-token"


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    server = FakeSlack(TOKEN, ManualClock())
    with running(server):
        yield server


def channel(slack: FakeSlack, name: str = "#data-alerts", token: str = TOKEN) -> SlackChannel:
    return SlackChannel(name, Secret(token), base_url=slack.url, timeout=5)


def failure(slack: FakeSlack, **given: str) -> DeliveryError:
    with pytest.raises(DeliveryError) as caught:
        channel(slack, **given).send(alert(), thread=None, maybe_sent=None)
    assert caught.value.__context__ is None, "the cause would hold the request, and with it the token"
    return caught.value


def test_a_first_alert_is_posted_and_later_ones_reply_in_its_thread(slack: FakeSlack) -> None:
    sender = channel(slack)
    thread = sender.send(alert(1), thread=None, maybe_sent=None)
    assert thread == f"C0123456789/{slack.messages[0]['ts']}"
    assert sender.send(alert(2), thread=thread, maybe_sent=None) == thread
    first, second = slack.messages
    assert "thread_ts" not in first
    assert (second["thread_ts"], second["channel"]) == (first["ts"], "C0123456789")
    assert slack.ids() == ["gold/0001", "gold/0002"]
    assert first["text"].startswith("ERROR: SLA breach - gold 2026-03-02: gold has missed its deadline")
    assert first["unfurl_links"] is False


def test_a_deleted_thread_is_replaced_by_a_new_one(slack: FakeSlack) -> None:
    sender = channel(slack)
    thread = sender.send(alert(1), thread=None, maybe_sent=None)
    slack.delete(slack.messages[0]["ts"])
    again = sender.send(alert(2), thread=thread, maybe_sent=None)
    assert again != thread
    assert again == f"C0123456789/{slack.messages[-1]['ts']}"
    assert "thread_ts" not in slack.messages[-1]


def test_rate_limits_carry_the_time_that_slack_asked_for(slack: FakeSlack) -> None:
    slack.faults.append(limited(37))
    error = failure(slack)
    assert (error.retry_after, error.permanent, error.uncertain) == (timedelta(seconds=37), False, False)


def test_a_rate_limit_without_a_time_still_gives_slack_some_rest(slack: FakeSlack) -> None:
    slack.faults.append(refusal("ratelimited"))
    assert failure(slack).retry_after == timedelta(seconds=30)


@pytest.mark.parametrize(
    "code", ["channel_not_found", "invalid_auth", "is_archived", "not_in_channel", "odd_new_error"]
)
def test_what_slack_refuses_is_permanent_and_certain(slack: FakeSlack, code: str) -> None:
    slack.faults.append(refusal(code))
    error = failure(slack)
    assert (error.permanent, error.uncertain) == (True, False)
    assert code in str(error)


def test_real_refusals_say_what_to_do(slack: FakeSlack) -> None:
    assert "check SLACK_BOT_TOKEN" in str(failure(slack, token="xoxb-wrong"))
    assert "invite the bot" in str(failure(slack, name="#nowhere"))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Answer(500, b"<html>oops</html>", content_type="text/html")),
        Fault(Answer(503, b"")),
        Fault(HANG_UP),
        refusal("internal_error"),
        refusal("fatal_error", 500),
        Fault(Answer(200, b"not json")),
    ],
)
def test_breakdowns_are_temporary(slack: FakeSlack, fault: Fault) -> None:
    slack.faults.append(fault)
    error = failure(slack)
    assert (error.permanent, error.uncertain) == (False, True)


def test_the_sdk_does_not_post_again_by_itself(slack: FakeSlack) -> None:
    slack.faults.append(Fault(HANG_UP, after=True))
    failure(slack)
    assert len(slack.messages) == len(slack.requests) == 1


def test_a_refused_connection_is_known_not_to_have_delivered(slack: FakeSlack) -> None:
    slack.down()
    error = failure(slack)
    assert (error.permanent, error.uncertain) == (False, False)


def test_a_receiver_that_never_answers_is_given_up_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/api/"
        sender = SlackChannel("#x", Secret(TOKEN), base_url=url, timeout=1)
        with pytest.raises(DeliveryError, match=r"[Tt]imed? ?out") as caught:
            sender.send(alert(), thread=None, maybe_sent=None)
    assert (caught.value.permanent, caught.value.uncertain) == (False, True)


# ------------------------------------------------------------------------------------- after an uncertain try


def test_an_alert_that_arrived_before_the_connection_broke_is_not_posted_again(slack: FakeSlack) -> None:
    sender = channel(slack, "C0123456789")
    slack.faults.append(Fault(HANG_UP, after=True))
    with pytest.raises(DeliveryError) as caught:
        sender.send(alert(1), thread=None, maybe_sent=None)
    assert caught.value.uncertain
    thread = sender.send(alert(1), thread=None, maybe_sent=START)
    assert slack.ids() == ["gold/0001"]
    assert thread == f"C0123456789/{slack.messages[0]['ts']}"


def test_an_alert_that_did_not_arrive_is_posted_after_the_search(slack: FakeSlack) -> None:
    sender = channel(slack, "C0123456789")
    sender.send(alert(1), thread=None, maybe_sent=None)
    sender.send(alert(2), thread=None, maybe_sent=START)
    assert slack.ids() == ["gold/0001", "gold/0002"]


def test_replies_are_searched_page_by_page(slack: FakeSlack) -> None:
    sender = channel(slack)
    slack.page = 2
    thread = sender.send(alert(0), thread=None, maybe_sent=None)
    for n in range(1, 6):
        sender.send(alert(n), thread=thread, maybe_sent=None)
    assert sender.send(alert(1), thread=thread, maybe_sent=START) == thread
    assert len(slack.messages) == 6


def test_a_new_thread_that_nobody_recorded_is_found(slack: FakeSlack) -> None:
    sender = channel(slack, "C0123456789")
    thread = sender.send(alert(1), thread=None, maybe_sent=None)
    slack.delete(slack.messages[0]["ts"])
    new = sender.send(alert(2), thread=thread, maybe_sent=None)
    assert sender.send(alert(2), thread=thread, maybe_sent=START) == new
    assert slack.ids() == ["gold/0002"]


@pytest.mark.parametrize(("name", "scopes"), [("#data-alerts", {"channels:history"}), ("C0123456789", set[str]())])
def test_where_nobody_may_look_the_alert_is_posted_again(slack: FakeSlack, name: str, scopes: set[str]) -> None:
    slack.scopes = scopes
    sender = channel(slack, name)
    sender.send(alert(1), thread=None, maybe_sent=None)
    sender.send(alert(1), thread=None, maybe_sent=START)
    assert slack.ids() == ["gold/0001", "gold/0001"]


def test_a_search_that_fails_is_no_licence_to_post(slack: FakeSlack) -> None:
    sender = channel(slack, "C0123456789")
    slack.faults.append(limited(5))
    with pytest.raises(DeliveryError) as caught:
        sender.send(alert(1), thread=None, maybe_sent=START)
    assert caught.value.retry_after == timedelta(seconds=5)
    assert slack.messages == []


# ------------------------------------------------------------------------------------------------- the token


@pytest.mark.parametrize("token", ["", "xoxb with spaces", "xoxb-1\n", "xoxb-ü"])
def test_an_impossible_token_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        SlackChannel("#x", Secret(token))
    assert "SLACK_BOT_TOKEN" in str(caught.value)
    assert "xoxb" not in str(caught.value)


def test_a_server_that_echoes_the_token_does_not_get_it_into_the_error(slack: FakeSlack) -> None:
    slack.faults.append(refusal(f"bad token {TOKEN}"))
    assert TOKEN not in str(failure(slack))
    slack.faults.append(Fault(Answer(500, f"Authorization: Bearer {TOKEN}".encode(), content_type="text/plain")))
    assert TOKEN not in str(failure(slack))

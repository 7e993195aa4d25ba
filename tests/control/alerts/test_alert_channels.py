"""The channels of `[[alerts]]`: made once per destination, with their secrets from the environment."""

import tomllib

import httpx
import pytest

from interlock.alerts.console import ConsoleChannel
from interlock.alerts.slack import SlackChannel
from interlock.alerts.webhook import WebhookChannel
from interlock.config.alert_routes import AlertRoute, parse_alert_routes
from interlock.control.alerts.alert_channels import Alerting, build_alerting
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType
from tests.alerts.alerts import alert, event
from tests.conformance.manual_clock import ManualClock

SETTINGS = """
    [[alerts]]
    channel = "slack"
    slack_channel = "#a"
    [[alerts]]
    channel = "slack"
    slack_channel = "#a"
    pattern = { detail-type = ["JOB_COMPLETED"] }
    [[alerts]]
    channel = "webhook"
    url_env = "HOOK_URL"
    secret_env = "HOOK_SECRET"
    headers_env = { Authorization = "HOOK_AUTH" }
"""
ENVIRONMENT = {
    "SLACK_BOT_TOKEN": "xoxb-1\n",
    "HOOK_URL": "https://example.com/",
    "HOOK_SECRET": "k",
    "HOOK_AUTH": "Bearer b",
}


def build(text: str, environment: dict[str, str], *, json_console: bool = False) -> Alerting:
    found = parse_alert_routes(tomllib.loads(text)["alerts"]) if text else ()
    settings = [one for one in found if isinstance(one, AlertRoute)]
    return build_alerting(settings, environment, clock=ManualClock(), client=httpx.Client, json_console=json_console)


def test_channels_are_made_once_per_destination() -> None:
    alerting = build(SETTINGS, ENVIRONMENT)
    slack, hook = alerting.channels.values()
    assert isinstance(slack, SlackChannel)
    assert isinstance(hook, WebhookChannel)
    assert alerting.routing.channels_for(event(EventType.JOB_COMPLETED)) == ["slack:#a"]
    assert alerting.routing.channels_for(event(EventType.SLA_BREACH)) == ["slack:#a", "webhook:HOOK_URL"]


def test_missing_variables_are_all_named() -> None:
    with pytest.raises(InvalidValueError) as caught:
        build(SETTINGS, {"HOOK_URL": " ", "HOOK_AUTH": "s3cr3t\x00x"})
    text = str(caught.value)
    for name in ("SLACK_BOT_TOKEN", "HOOK_URL", "HOOK_SECRET", "HOOK_AUTH"):
        assert text.count(f"variable {name} ") == 1, text
    assert "s3cr3t" not in text


def test_without_settings_warnings_go_to_the_console() -> None:
    alerting = build("", {})
    assert isinstance(alerting.channels["console"], ConsoleChannel)
    assert alerting.routing.channels_for(event(EventType.SLA_WARNING)) == ["console"]
    assert alerting.routing.channels_for(event(EventType.JOB_COMPLETED)) == []


def test_the_client_of_webhooks_is_made_once_and_only_where_there_is_a_webhook() -> None:
    made: list[httpx.Client] = []

    def client() -> httpx.Client:
        made.append(httpx.Client())
        return made[-1]

    def built(text: str) -> int:
        found = [one for one in parse_alert_routes(tomllib.loads(text)["alerts"]) if isinstance(one, AlertRoute)]
        made.clear()
        build_alerting(found, ENVIRONMENT, clock=ManualClock(), client=client)
        return len(made)

    hook = '[[alerts]]\nchannel = "webhook"\nurl = "https://example.com/{}"\n'
    assert built('[[alerts]]\nchannel = "console"\n') == 0
    assert built(hook.format("a") + hook.format("b")) == 1


def test_what_a_webhook_sends_comes_from_the_settings_and_the_environment() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(204)

    text = SETTINGS.replace("headers_env", 'headers = { X-Team = "data" }\n    headers_env')
    routes = [one for one in parse_alert_routes(tomllib.loads(text)["alerts"]) if isinstance(one, AlertRoute)]
    environment = ENVIRONMENT | {"HOOK_URL": " https://example.com/hook\n", "HOOK_AUTH": "Bearer b\n"}
    client = httpx.Client(transport=httpx.MockTransport(answer))
    alerting = build_alerting(routes, environment, clock=ManualClock(), client=lambda: client)
    alerting.channels["webhook:HOOK_URL"].send(alert(), thread=None, maybe_sent=None)
    assert str(sent[0].url) == "https://example.com/hook"
    assert (sent[0].headers["authorization"], sent[0].headers["x-team"]) == ("Bearer b", "data")
    assert [name for name in sent[0].headers if "signature" in name], "it is signed"


def test_the_slack_channel_has_the_token_and_the_address_of_the_installation() -> None:
    routes = [one for one in parse_alert_routes(tomllib.loads(SETTINGS)["alerts"]) if isinstance(one, AlertRoute)]
    environment = ENVIRONMENT | {"SLACK_BOT_TOKEN": ""}
    with pytest.raises(InvalidValueError, match="SLACK_BOT_TOKEN"):
        build_alerting(routes, environment, clock=ManualClock(), client=httpx.Client)
    alerting = build_alerting(
        routes, ENVIRONMENT, clock=ManualClock(), client=httpx.Client, slack_url="http://127.0.0.1:9"
    )
    assert alerting.channels["slack:#a"].name == "slack:#a"


def test_a_signing_key_may_hold_anything_and_a_header_may_not() -> None:
    build(SETTINGS, ENVIRONMENT | {"HOOK_SECRET": "k\u00e4y"})
    with pytest.raises(InvalidValueError, match=r"HOOK_AUTH .* characters that cannot be sent"):
        build(SETTINGS, ENVIRONMENT | {"HOOK_AUTH": "k\u00e4y"})


@pytest.mark.parametrize("json", [True, False])
def test_the_console_writes_json_where_the_logs_do(json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", '[[alerts]]\nchannel = "console"\n'):
        build(text, {}, json_console=json).channels["console"].send(alert(), thread=None, maybe_sent=None)
        output = capsys.readouterr()
        assert (output.out + output.err).lstrip().startswith("{") is json


def test_a_route_without_a_severity_hears_of_warnings() -> None:
    alerting = build('[[alerts]]\nchannel = "console"\nseverity = "error"\n', {})
    assert alerting.routing.channels_for(event(EventType.SLA_WARNING)) == []
    assert alerting.routing.channels_for(event(EventType.SLA_BREACH)) == ["console"]

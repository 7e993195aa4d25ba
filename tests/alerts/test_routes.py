"""`[[alerts]]` of interlock.toml, the channels made from it, and who hears of what."""

import tomllib
from datetime import timedelta

import pytest

from interlock.config.alert_routes import AlertRoute, ChannelKind, parse_alert_routes
from interlock.config.problems import Finding, format_path
from interlock.model.events import Severity


def parse(text: str) -> tuple[AlertRoute, ...]:
    routes = parse_alert_routes(tomllib.loads(text)["alerts"])
    assert all(isinstance(route, AlertRoute) for route in routes), routes
    return tuple(route for route in routes if isinstance(route, AlertRoute))


def problems(text: str) -> dict[str, str]:
    found = parse_alert_routes(tomllib.loads(text)["alerts"])
    assert all(isinstance(finding, Finding) for finding in found), found
    return {format_path(one.path): one.message for one in found if isinstance(one, Finding)}


def test_every_kind_of_entry_is_read() -> None:
    slack, hook, console = parse("""
        [[alerts]]
        channel = "slack"
        slack_channel = "#data-alerts"
        severity = "error"
        pattern = { detail-type = ["SLA_BREACH"], detail = { pipelineId = [{ prefix = "gold" }] } }
        [[alerts]]
        channel = "webhook"
        url = "https://example.com/hook"
        secret_env = "HOOK_SECRET"
        headers = { X-Team = "data" }
        headers_env = { Authorization = "HOOK_AUTH" }
        timeout = "5s"
        [[alerts]]
        channel = "console"
        pattern = '{"detail-type": ["JOB_COMPLETED"]}'
    """)
    assert (slack.channel, slack.name, slack.severity) == (ChannelKind.SLACK, "slack:#data-alerts", Severity.ERROR)
    assert slack.pattern == {"detail-type": ["SLA_BREACH"], "detail": {"pipelineId": [{"prefix": "gold"}]}}
    assert hook.name.startswith("webhook:example.com-")
    assert (hook.severity, hook.timeout) == (Severity.WARNING, timedelta(seconds=5))
    assert (console.name, console.severity) == ("console", Severity.INFO)
    assert console.pattern == {"detail-type": ["JOB_COMPLETED"]}


def test_a_pattern_that_names_no_type_leaves_the_default_severity() -> None:
    (route,) = parse('[[alerts]]\nchannel = "console"\npattern = { detail = { pipelineId = ["gold"] } }')
    assert route.severity is Severity.WARNING


def test_all_errors_are_reported_at_once() -> None:
    assert problems("""
        [[alerts]]
        channel = "slak"
        [[alerts]]
        channel = "slack"
        url = "https://example.com"
        severity = "warn"
        [[alerts]]
        channel = "slack"
        slack_chanel = "#x"
        [[alerts]]
        channel = "slack"
        slack_channel = "data alerts"
        pattern = { detail-type = "SLA_BREACH" }
        [[alerts]]
        channel = "slack"
        slack_channel = "#x"
        url = "https://example.com"
        [[alerts]]
        severity = "error"
        [[alerts]]
        channel = "console"
        pattern = "{"
    """) == {
        "alerts[0].channel": '"slak" is not one of slack, webhook, console; did you mean slack?',
        "alerts[1].severity": '"warn" is not one of info, warning, error, critical; did you mean warning?',
        "alerts[2].slack_chanel": "unknown key; did you mean slack_channel?",
        "alerts[3].pattern": (
            'event pattern, detail-type: "SLA_BREACH" stands alone: write it in an array, ["SLA_BREACH"]'
        ),
        "alerts[3].slack_channel": (
            '"data alerts" is not a Slack channel: write "#data-alerts" or an id such as C0123456789'
        ),
        "alerts[4].url": "has no meaning for slack",
        "alerts[5].channel": "is missing",
        "alerts[6].pattern": "is not JSON: Input data was truncated",
    }


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('url = "ftp://s3cr3t/x"', "url"),
        ('url = "https://user:s3cr3t@example.com/"', "url"),
        ('url = "https://example.com/s3cr3t with space"', "url"),
        ('url = "https://[s3cr3t/"', "url"),
        ('url = ["s3cr3t"]', "url"),
        ('url = "https://x/"\nurl_env = "s3cr3t"', "url"),
        ("", "url"),
        ('url_env = "s3cr3t-key"', "url_env"),
        ('url = "https://x/"\nsecret_env = "s3cr3t value"', "secret_env"),
        ('url = "https://x/"\nheaders = "s3cr3t"', "headers"),
        ('url = "https://x/"\nheaders = { A = 5, B = "s3cr3t" }', "headers"),
        ('url = "https://x/"\nheaders = { "A B" = "s3cr3t" }', "headers.A B"),
        ('url = "https://x/"\nheaders = { A = "s3cr3t\\n" }', "headers.A"),
        ('url = "https://x/"\nheaders = { Content-Type = "s3cr3t" }', "headers.Content-Type"),
        ('url = "https://x/"\nheaders = { A = "s3cr3t" }\nheaders_env = { a = "X" }', "headers_env.a"),
        ('url = "https://x/"\nheaders_env = { A = "s3cr3t value" }', "headers_env.A"),
        ('url = "https://x/"\ntimeout = "2m"', "timeout"),
        ('url = "https://x/"\ntimeout = 5', "timeout"),
    ],
)
def test_errors_of_webhooks_repeat_nothing_that_may_be_secret(line: str, path: str) -> None:
    found = problems(f'[[alerts]]\nchannel = "webhook"\n{line}')
    assert [f"alerts[0].{path}"] == list(found)
    assert "s3cr3t" not in "".join(found.values())


def test_one_table_instead_of_a_list_is_explained() -> None:
    assert problems('[alerts]\nchannel = "console"') == {
        "alerts": "is not a list of tables: write [[alerts]], with two brackets"
    }
    assert problems("alerts = [5]") == {"alerts[0]": "is not a table of keys such as `channel`"}


def test_one_name_is_one_destination() -> None:
    same = '[[alerts]]\nchannel = "slack"\nname = "team"\nslack_channel = "#a"\n'
    assert len(parse(same + same.replace("\n", '\nseverity = "error"\n', 1))) == 2
    assert list(problems(same + same.replace("#a", "#b"))) == ["alerts[1].name"]


def test_names_of_webhooks_differ_by_address_and_do_not_show_it() -> None:
    first, second, third = parse("""
        [[alerts]]
        channel = "webhook"
        url = "https://example.com/s3cr3t-a"
        [[alerts]]
        channel = "webhook"
        url = "https://example.com/s3cr3t-b"
        [[alerts]]
        channel = "webhook"
        url_env = "HOOK_URL"
    """)
    assert first.name != second.name
    assert third.name == "webhook:HOOK_URL"
    assert "s3cr3t" not in repr((first, second, third)) + first.name

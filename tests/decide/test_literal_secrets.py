"""What looks like a secret in a config, and what of it must not come back in an error."""

from typing import Any

import pytest

from interlock.decide.literal_secrets import echoes, find_literals, is_secret_name, literal_values

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXNpZw"


KEY = "0123456789abcdefghijABCDEFGHIJ0123"


@pytest.mark.parametrize(
    ("config", "path", "what"),
    [
        ({"auth": {"password": "hunter22"}}, ("auth", "password"), "the value of password"),
        ({"auth": {"token": "abc"}, "region": "eu-west-1"}, ("auth", "token"), "the value of token"),
        ({"auth": {"token": "~~~"}}, ("auth", "token"), "the value of token"),
        ({"tokens": ["abc123"]}, ("tokens", 0), "the value of tokens"),
        ({"headers": {"X-Api-Key": "k-1", "Accept": "text/csv"}}, ("headers", "X-Api-Key"), "the value of X-Api-Key"),
        ({"headers": {"Cookie": "sid=1234"}}, ("headers", "Cookie"), "the value of Cookie"),
        ({"env": {"DB_PASSWORD": "hunter22", "PGHOST": "db"}}, ("env", "DB_PASSWORD"), "the value of DB_PASSWORD"),
        # What follows an option, and what is joined to one.
        ({"command": ["etl", "--password", "hunter22", "--day", "1"]}, ("command", 2), "the value of --password"),
        ({"command": ("etl", "-token", "hunter22")}, ("command", 2), "the value of -token"),
        ({"command": ["etl", "--api-key=hunter22"]}, ("command", 1), "the value of --api-key"),
        ({"command": ["etl", "--token=hunter22", "orders_daily"]}, ("command", 1), "the value of --token"),
        ({"command": ["etl", 5, "--token", "hunter22"]}, ("command", 3), "the value of --token"),
        ({"command": "etl --token=hunter22 --day 1"}, ("command",), "the value of --token"),
        # In an address.
        ({"command": ["psql", "postgresql://me:hunter22@db/x"]}, ("command", 1), "a password in an address"),
        ({"url": "https://me:hunter22@etl.example.com"}, ("url",), "a password in an address"),
        ({"url": "redis://:abc@cache"}, ("url",), "a password in an address"),
        ({"url": "https://h/?token=hunter22&day=1"}, ("url",), "a secret in the query of an address"),
        ({"url": "https://h/?day=1&token=hunter22"}, ("url",), "a secret in the query of an address"),
        # By its form, whatever it is called.
        ({"body": {"note": "key AKIAIOSFODNN7EXAMPLE"}}, ("body", "note"), "an AWS access key"),
        ({"body": {"note": "ASIAIOSFODNN7EXAMPLE"}}, ("body", "note"), "an AWS access key"),
        ({"body": ["-----BEGIN RSA PRIVATE KEY-----\nMIIE"]}, ("body", 0), "a private key"),
        ({"body": ["-----BEGIN PRIVATE KEY-----"]}, ("body", 0), "a private key"),
        ({"headers": {"X": "Bearer 0123456789ab"}}, ("headers", "X"), "a bearer token or a password"),
        ({"headers": {"X": "BASIC  bWU6aHVudGVyMjI="}}, ("headers", "X"), "a bearer token or a password"),
        ({"body": {"x": JWT}}, ("body", "x"), "a signed token"),
        ({"conf": {"gh": f"ghp_{KEY}"}}, ("conf", "gh"), "a token of GitHub"),
        ({"conf": {"gh": f"github_pat_{KEY}"}}, ("conf", "gh"), "a token of GitHub"),
        ({"conf": {"slack": "xoxb-1234567890"}}, ("conf", "slack"), "a token of Slack"),
        ({"conf": {"slack": "https://hooks.slack.com/services/T0/B0/abc"}}, ("conf", "slack"), "a webhook of Slack"),
        ({"conf": {"pay": "sk_live_0123456789abcdef"}}, ("conf", "pay"), "a key of Stripe"),
        ({"conf": {"db": "dapi0123456789abcdef0123456789abcdef"}}, ("conf", "db"), "a token of Databricks"),
        ({"conf": {"maps": f"AIza{KEY}_"}}, ("conf", "maps"), "a key of Google"),
        ({"conf": {"own": "ilk_0123456789abcdefghij"}}, ("conf", "own"), "a token of Interlock"),
    ],
)
def test_literals_are_found_and_said_to_be_what_they_are(
    config: dict[str, Any], path: tuple[str | int, ...], what: str
) -> None:
    assert list(find_literals(config)) == [(path, what)]


@pytest.mark.parametrize(
    "config",
    [
        {"auth": {"password": "${INTERLOCK_SECRET_DB}", "type": "basic"}},
        {"headers": {"Authorization": "Bearer ${file:etl-token}"}},
        {"url": "https://me:${INTERLOCK_SECRET_PW}@h/run?token=${file:t}&day=${DATE}"},
        {"command": ["etl", "--password", "${INTERLOCK_SECRET_DB}", "--token=${file:x}"]},
        {"command": ["etl", "--password-file", "/etc/secrets/db", "--token", "--verbose"]},
        {"env": {"TOKEN_URL": "https://login.example.com", "SECRET_NAME": "prod/db", "PASSWORD_FILE": "/run/pw"}},
        {"env": {"MAX_TOKENS_COUNT": "4096", "COOKIE_PATH": "/", "PASSWORD": ""}},
        {"auth": {"password": "***", "token": "<>", "clientSecret": "xxxx", "cookie": "XXX...", "credential": "ab"}},
        {"auth": {"password": "  ab  ", "credentials": "https://login.example.com"}},
        {"command": "etl --token --verbose --password= --table=orders_daily"},
        {"command": ["etl", "--table", "orders_daily", "--token", 5, "--password"]},
        {"command": ["etl", "--token", "ab", "--token=ab", "https://me:ab@h/?token=ab"]},
        {"body": {"note": "which one?token=hunter22", "more": "to me:hunter22@home"}},
        {"body": {"note": "Bearer 0123456789a", "more": "xoxb-123456789"}},
        {"arguments": {"--secretId": "prod/db", "--credentialsArn": "arn:aws:x"}},
        {"body": {"author": "token ring", "monkey": "basic facts", "keyboard": "qwerty"}},
        {"url": "https://etl.example.com/run?day=2026-03-02#fragment", "timeout": 30, "callback": True},
        {"query": "SELECT count(*) FROM tokens WHERE day = :day"},
        {"jobName": "rotate-secrets", "dagId": "password_reset_report"},
    ],
)
def test_there_is_no_false_alarm(config: dict[str, Any]) -> None:
    assert list(find_literals(config)) == []
    assert literal_values(config) == set()


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("DB_PASSWORD", True),
        ("DB_PASSWD", True),
        ("ssh-passphrase", True),
        ("DB_PWD", True),
        ("clientSecret", True),
        ("sessionToken", True),
        ("x-api-key", True),
        ("accessKey", True),
        ("PRIVATE_KEY", True),
        ("Authorization", True),
        ("credentials", True),
        ("Set-Cookie", True),
        # Where a secret is, or of what kind: not what it is.
        ("tokenUrl", False),
        ("TOKEN_URI", False),
        ("secretPath", False),
        ("PASSWORD_FILE", False),
        ("secretArn", False),
        ("SECRET_NAME", False),
        ("secretId", False),
        ("TOKEN_ENV", False),
        ("tokenType", False),
        ("token-header", False),
        ("tokenEndpoint", False),
        ("token_count", False),
        ("TOKEN_TTL", False),
        ("monkey", False),
        ("", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


HIDDEN_TEXTS = {"2026-03-02 was a day", "application/"}


@pytest.mark.parametrize(
    ("config", "hidden"),
    [
        ({"body": {"note": "hidden-note", "day": "2026-03-02", "n": 5}, "method": "POST"}, {"hidden-note"}),
        ({"headers": {"X-Team": "team-of-data", "Content-Type": "application/json"}}, {"team-of-data"}),
        ({"headers": {"Authorization": "Bearer 0123456789abcdef"}}, {"Bearer 0123456789abcdef", "0123456789abcdef"}),
        ({"url": "https://me:p%40ssw0rd@h/x?token=abc&day=1"}, {"p%40ssw0rd", "p@ssw0rd", "abc"}),
        ({"command": ["python", "jobs/orders_etl.py", "--password", "hunter22"]}, {"hunter22"}),
        ({"command": "etl --token=hunter22 --table orders_daily"}, {"hunter22"}),
        ({"env": {"TABLE": "orders_daily", "DB_PASSWORD": "hunter22"}}, {"hunter22"}),
        ({"command": "etl --token=gold-revenue"}, set()),
        ({"body": {"run": "run-0001-abcdef", "pipeline": "gold-revenue"}}, set()),
        ({"body": {"short": "7 chars", "long": "8 chars."}}, {"8 chars."}),
        ({"body": ["in-a-list", ("in-a-tuple",)]}, {"in-a-list", "in-a-tuple"}),
        ({"body": {"day": "day-of-${DATE}", "list": ["${INTERLOCK_SECRET_DB}"]}}, set()),
        ({"poll": {"done": ["succeeded", "completed"]}, "auth": {"type": "oauth-flow"}}, set()),
        ({"poll": {"other": "succeeded"}, "url": "https://me:ab@host/?token=ab"}, {"succeeded"}),
        ({"url": "https://me:abc@host/?token=abc"}, {"abc"}),
        ({"command": ["etl", "hidden-nowhere", "to me:hunter22@home"]}, set()),
        ({"command": ["curl", "-H", "Bearer 0123456789abcdef"]}, {"0123456789abcdef"}),
        ({"command": ["etl", "--conf=x y", "--token=hunter22"]}, {"hunter22"}),
        ({"env": {"PEM": "-----BEGIN RSA PRIVATE KEY-----"}}, {"-----BEGIN RSA PRIVATE KEY-----"}),
        (
            {"headers": {"Accept": "text/csv; charset=utf-8", "Accept-Encoding": "gzip, deflate", "X": "IMAGE/png"}},
            set(),
        ),
        ({"body": {"day": "2026-03-02", "text": "2026-03-02 was a day", "type": "application/"}}, HIDDEN_TEXTS),
        ({"arguments": {"--table": "orders_daily"}}, {"orders_daily"}),
        ({"jobName": "gold-revenue-etl", "region": "eu-central-1"}, set()),
    ],
)
def test_what_is_hidden_in_what_comes_back(config: dict[str, Any], hidden: set[str]) -> None:
    assert echoes(config, ["gold-revenue", "run-0001-abcdef"]) == hidden

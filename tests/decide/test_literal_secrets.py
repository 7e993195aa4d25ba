"""What looks like a secret in a config, and what of it must not come back in an error."""

from typing import Any

import pytest

from interlock.decide.literal_secrets import echoes, find_literals, is_secret_name, literal_values

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXNpZw"


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"auth": {"password": "hunter22"}}, [("auth", "password")]),
        ({"auth": {"token": "abc123"}, "region": "eu-west-1"}, [("auth", "token")]),
        ({"headers": {"X-Api-Key": "k-123456", "Accept": "text/csv"}}, [("headers", "X-Api-Key")]),
        ({"headers": {"Authorization": "Bearer 0123456789abcdef"}}, [("headers", "Authorization")]),
        ({"headers": {"Cookie": "sid=1234"}}, [("headers", "Cookie")]),
        ({"env": {"DB_PASSWORD": "hunter22", "PGHOST": "db"}}, [("env", "DB_PASSWORD")]),
        ({"env": {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG"}}, [("env", "AWS_SECRET_ACCESS_KEY")]),
        ({"command": ["etl", "--password", "hunter22", "--day", "1"]}, [("command", 2)]),
        ({"command": ["etl", "--api-key=hunter22"]}, [("command", 1)]),
        ({"command": "etl --token=hunter22 --day 1"}, [("command",)]),
        ({"command": ["psql", "postgresql://me:hunter22@db/x"]}, [("command", 1)]),
        ({"url": "https://me:hunter22@etl.example.com"}, [("url",)]),
        ({"url": "https://etl.example.com/?token=hunter22&day=1"}, [("url",)]),
        ({"body": {"note": "key AKIAIOSFODNN7EXAMPLE"}}, [("body", "note")]),
        ({"body": ["-----BEGIN RSA PRIVATE KEY-----\nMIIE"]}, [("body", 0)]),
        ({"body": {"x": JWT}}, [("body", "x")]),
        ({"conf": {"slack": "xoxb-1234567890-abcdef"}}, [("conf", "slack")]),
        ({"conf": {"db": "dapi0123456789abcdef0123456789abcdef"}}, [("conf", "db")]),
        ({"conf": {"gh": "ghp_0123456789abcdefghijABCDEFGHIJ0123"}}, [("conf", "gh")]),
    ],
)
def test_literals_are_found(config: dict[str, Any], found: list[tuple[str | int, ...]]) -> None:
    assert [path for path, _ in find_literals(config)] == found


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
        {"auth": {"password": "***", "token": "<>"}},
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
        ("x-api-key", True),
        ("clientSecret", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("tokenUrl", False),
        ("secretArn", False),
        ("monkey", False),
        ("", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


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
        ({"body": {"run": "run-0001-abcdef", "pipeline": "gold-revenue"}}, set()),
        ({"arguments": {"--table": "orders_daily"}}, {"orders_daily"}),
        ({"jobName": "gold-revenue-etl", "region": "eu-central-1"}, set()),
    ],
)
def test_what_is_hidden_in_what_comes_back(config: dict[str, Any], hidden: set[str]) -> None:
    assert echoes(config, ["gold-revenue", "run-0001-abcdef"]) == hidden

"""What people are shown of a config: of a job the harmless keys alone, elsewhere everything but secrets."""

import re
from pathlib import Path
from typing import Any

import pytest

from interlock.decide.shown_configs import SHOWN_KEYS, without_secrets

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ({"command": ["etl", "--key", "hunter2", "${DATE}"]}, {"command": ["etl", "***", "***", "${DATE}"]}),
        ({"command": "etl --key hunter2"}, {"command": "etl ***"}),
        ({"command": "etl", "cwd": "/srv", "timeout": "1h"}, {"command": "etl", "cwd": "/srv", "timeout": "1h"}),
        ({"env": {"N": 3, "KEY": "${INTERLOCK_SECRET_K}"}}, {"env": {"N": "***", "KEY": "${INTERLOCK_SECRET_K}"}}),
        ({"body": {"a": ["x", True, None]}}, {"body": {"a": ["***", True, None]}}),
        ({"auth": {"type": "basic", "username": "me"}}, {"auth": {"type": "basic", "username": "***"}}),
        ({"poll": {"url": "https://h/?k=1", "done": ["OK"]}}, {"poll": {"url": "https://h/?k=***", "done": ["OK"]}}),
        ({"arguments": {"--x": "1"}, "jobName": "etl"}, {"arguments": {"--x": "***"}, "jobName": "etl"}),
        ({"command": ["https://me:pw@h/tool", "x"]}, {"command": ["https://me:***@h/tool", "***"]}),
        ({"command": "https://me:pw@h/tool x"}, {"command": "https://me:***@h/tool ***"}),
        ({"command": ["a"], "args": ["b"]}, {"command": ["a"], "args": ["***"]}),
        ({"commands": "etl --key hunter2", "x": ["etl"]}, {"commands": "***", "x": ["***"]}),
        ({"body": {"": "", "a": "${A}${B}", "b": "${A}-5"}}, {"body": {"": "", "a": "${A}${B}", "b": "***"}}),
        ({"numberOfWorkers": 5, "timeoutMinutes": 2.5}, {"numberOfWorkers": 5, "timeoutMinutes": 2.5}),
        ({"workers": 5, "idempotent": False, "x": False}, {"workers": "***", "idempotent": False, "x": False}),
        ({"url": "https://me:pw@h/"}, {"url": "https://me:***@h/"}),
        ({"poll": {"timeout": "1h"}}, {"poll": {"timeout": "***"}}),
    ],
)
def test_of_a_job_only_harmless_keys_are_shown(config: dict[str, Any], shown: dict[str, Any]) -> None:
    document = {"job": {"type": "x", "config": config, "maxRetries": 3}, "pipeline": {"id": "gold", "owner": "a"}}
    assert without_secrets(document) == {**document, "job": {"type": "x", "config": shown, "maxRetries": 3}}
    for name, value in shown.items():
        assert without_secrets(config[name], f"job.config.{name}") == value


def test_the_published_list_is_the_list() -> None:
    guide = (ROOT / "docs/guide/security.md").read_text()
    section = guide.partition("## What is shown of a config")[2].partition("\n## ")[0]
    published = section.partition("only these are shown:")[2].partition(";")[0]
    assert set(re.findall(r"`([A-Za-z.]+)`", published)) == SHOWN_KEYS


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("alerts.token", "hunter2", "***"),
        ("alerts.CLIENT-SECRET", "hunter2", "***"),
        ("alerts.dbPassword", "hunter2", "***"),
        ("alerts.passwd", "hunter2", "***"),
        ("alerts.apiKey", "hunter2", "***"),
        ("alerts.API-KEY", "hunter2", "***"),
        ("alerts.Authorization", "hunter2", "***"),
        ("alerts.credentials", "hunter2", "***"),
        ("alerts.cookie", "hunter2", "***"),
        ("alerts.dsn", "hunter2", "***"),
        ("alerts.tokens[1]", "hunter2", "***"),
        ("alerts.tokens[1].owner", "ana", "ana"),
        ("alerts.token", 12345, "***"),
        ("alerts.token", "Bearer ${INTERLOCK_SECRET_X}", "Bearer ${INTERLOCK_SECRET_X}"),
        ("alerts.token", True, True),
        ("alerts.token", None, None),
        ("alerts.retries", 3, 3),
        ("alerts.url", "https://me:pw@h/", "https://me:***@h/"),
        ("alerts.owner", "ana", "ana"),
        # Only the job's own config hides what it does not know.
        ("job.type", "command", "command"),
        ("job.config.query", "SELECT 1", "***"),
        ("probes[0].config.query", "SELECT 1", "SELECT 1"),
        ("", "ana", "ana"),
    ],
)
def test_elsewhere_what_is_called_a_secret_is_hidden(path: str, value: object, shown: object) -> None:
    assert without_secrets(value, path) == shown


def test_a_whole_document_is_shown_as_its_parts_are() -> None:
    document = {"a": [{"token": "x"}, {"url": "https://u:p@h"}], "job": {"config": {"body": ["x"], "url": "u"}}}
    assert without_secrets(document) == {
        "a": [{"token": "***"}, {"url": "https://u:***@h"}],
        "job": {"config": {"body": ["***"], "url": "u"}},
    }

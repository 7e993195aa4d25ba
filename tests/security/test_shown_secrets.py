"""Passwords and tokens in the addresses of a config are not shown, and what is shown cannot be applied."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from interlock.decide.masking import hide_in_addresses, holds_hidden
from interlock.decide.shown_configs import SHOWN_KEYS, without_secrets
from tests.api.running import ROOT, pipeline, problem, serving
from tests.security.commands import interlock


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://etl.example.com/run", "https://etl.example.com/run"),
        ("https://me:hunter2@etl.example.com/run", "https://me:***@etl.example.com/run"),
        ("https://hunter2@etl.example.com", "https://***@etl.example.com"),
        ("https://etl.example.com/run?key=hunter2&day=1", "https://etl.example.com/run?key=***&day=***"),
        ("https://me:${INTERLOCK_SECRET_X}@h/?d=${DATE}", "https://me:${INTERLOCK_SECRET_X}@h/?d=${DATE}"),
        ("--db=postgresql://me:hunter2@db/x --day 1", "--db=postgresql://me:***@db/x --day 1"),
        ("mail me@example.com?x=1", "mail me@example.com?x=1"),
    ],
)
def test_what_is_hidden_in_addresses(text: str, shown: str) -> None:
    assert hide_in_addresses(text) == shown
    assert holds_hidden(shown) is ("***" in shown)


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


def test_a_plan_tells_hidden_changes_and_shows_none(tmp_path: Path) -> None:
    file = tmp_path / "gold.json"
    document = pipeline("gold", job={"type": "command", "config": {"command": ["etl", "hunter2", "same"]}})
    file.write_text(json.dumps(document))
    assert interlock(tmp_path, "apply", "gold.json").returncode == 0
    document["job"]["config"]["command"][1] = "hunter3"
    file.write_text(json.dumps(document))
    done = interlock(tmp_path, "plan", "gold.json")
    assert "job.config.command[1]: changed, and not shown" in done.stdout
    assert "command[2]" not in done.stdout
    assert "hunter" not in done.stdout
    done = interlock(tmp_path, "plan", "gold.json", "--show-values")
    assert "hunter3" in done.stdout
    assert "hunter2" not in done.stdout


def test_no_secret_of_an_address_is_shown(tmp_path: Path) -> None:
    config = {
        "url": "https://me:hunter2@etl.example.com/run?key=hunter3",
        "headers": {"Cookie": "sid=hunter4", "Accept": "x"},
    }
    document = pipeline("gold", job={"type": "http", "config": config})
    file = tmp_path / "gold.json"
    with serving(tmp_path) as server:
        assert server.client.put("/api/v1/pipelines/gold", json=document).status_code == 201
        answer = server.client.get("/api/v1/pipelines/gold")
        assert "hunter" not in answer.text
        assert answer.json()["document"]["job"]["config"]["headers"] == {"Cookie": "***", "Accept": "***"}
        refused = problem(
            server.client.put("/api/v1/pipelines/gold", json=answer.json()["document"]), 422, "invalid-config"
        )
        assert {one["path"] for one in refused["errors"]} == {
            "job.config.url",
            "job.config.headers.Cookie",
            "job.config.headers.Accept",
        }
        config["url"] = "https://me:hunter5@etl.example.com/run?key=hunter6"
        file.write_text(json.dumps(document))
        for command in (("plan", "gold.json"), ("plan", "gold.json", "--json")):
            done = interlock(tmp_path, *command)
            assert done.returncode == 0, done.stderr
            assert "hunter" not in done.stdout + done.stderr

"""Passwords and tokens in the addresses of a config are not shown, and what is shown cannot be applied."""

import json
from pathlib import Path

import pytest

from interlock.decide.masking import hide_in_addresses, holds_hidden
from tests.api.running import pipeline, problem, serving
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
        assert answer.json()["document"]["job"]["config"]["headers"]["Accept"] == "x"
        refused = problem(
            server.client.put("/api/v1/pipelines/gold", json=answer.json()["document"]), 422, "invalid-config"
        )
        assert {one["path"] for one in refused["errors"]} == {"job.config.url", "job.config.headers.Cookie"}
        config["url"] = "https://me:hunter5@etl.example.com/run?key=hunter6"
        file.write_text(json.dumps(document))
        for command in (("plan", "gold.json"), ("plan", "gold.json", "--json")):
            done = interlock(tmp_path, *command)
            assert done.returncode == 0, done.stderr
            assert "hunter" not in done.stdout + done.stderr

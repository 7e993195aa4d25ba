"""Passwords and tokens in the addresses of a config are not shown, and what is shown cannot be applied."""

import json
from pathlib import Path

from tests.api.running import pipeline, problem, serving
from tests.security.commands import interlock


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

"""`interlock token`: made once, listed without the secret, revoked."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stage import Stage


@pytest.fixture
def stage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Stage:
    return Stage(capsys, "--store", f"sqlite:///{tmp_path / 'interlock.db'}")


def listed(stage: Stage) -> list[dict[str, Any]]:
    tokens: list[dict[str, Any]] = stage.json("token", "list")["tokens"]
    return tokens


def test_a_token_is_made_listed_and_revoked_in_words(stage: Stage) -> None:
    secret = stage.good("token", "create", "--scope", "read", "--name", "me").strip()
    assert secret.startswith("ilk_")
    assert secret not in stage.good("token", "list")
    assert stage.good("token", "revoke", "me") == "Token 'me' is revoked.\n"
    (me,) = listed(stage)
    assert me["revokedAt"] is not None


def test_and_in_json(stage: Stage) -> None:
    made = stage.json("token", "create", "--scope", "sensor:write", "--name", "etl", "--pipeline", "gold")
    ended = stage.json("token", "revoke", "etl")
    assert (ended["name"], ended["scopes"], ended["pipelines"]) == ("etl", ["sensor:write"], ["gold"])
    assert ended["revokedAt"] is not None
    assert [ended] == listed(stage)
    assert made["token"] not in json.dumps(ended)


def test_revoking_a_token_that_is_not_there_is_an_error(stage: Stage) -> None:
    stage.good("token", "create", "--scope", "read", "--name", "me")
    assert "you" in stage.refused("token", "revoke", "you")
    assert "you" in stage.refused("token", "revoke", "you", "--json")

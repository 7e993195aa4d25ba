"""What does not run on AWS is refused by `plan` and `apply`, by name, and nothing is written."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.model.keys import Table
from tests.api.running import pipeline
from tests.aws.cli.deployed import Deployed
from tests.cli.stage import Stage

HTTP: dict[str, Any] = {"type": "http", "config": {"url": "https://etl.example.com/run"}}


def http(**config: Any) -> dict[str, Any]:
    return {"type": "http", "config": {**HTTP["config"], **config}}


def probe(type_: str, **config: Any) -> dict[str, Any]:
    return {"key": "rows", "type": type_, "interval": "5m", "config": config}


@pytest.mark.parametrize(
    ("changes", "place", "complaint"),
    [
        ({"job": {"type": "command", "config": {"command": ["true"]}}}, "job.type", "command jobs do not run on AWS"),
        ({"job": http(callback=True)}, "job.config.callback", "callback: true does not work on AWS"),
        ({"job": {**HTTP, "pollInterval": "5s"}}, "job.pollInterval", "5s is too often on AWS"),
        (
            {"job": http(poll={"url": "https://x.example.com", "path": "state", "done": "ok", "interval": "2s"})},
            "job.config.poll.interval",
            "2s is too often on AWS",
        ),
        ({"probes": [probe("command", command=["true"])]}, "probes[0].type", "command probes do not run on AWS"),
        ({"probes": [probe("file", path="/data/x")]}, "probes[0].type", "file probes do not run on AWS"),
        (
            {"probes": [probe("sql", url="sqlite:///x.db", query="select 1 as n")]},
            "probes[0].type",
            "sql probes do not run on AWS",
        ),
        (
            {"job": {**HTTP, "jobPollWindowSeconds": 11400}},
            "evaluation.window",
            "exceed 3h50m, which is sfn_timeout_seconds (14400) less 10 minutes",
        ),
    ],
)
def test_refused_by_name(
    stage: Stage, environment: Deployed, tmp_path: Path, changes: dict[str, Any], place: str, complaint: str
) -> None:
    file = tmp_path / "gold.yaml"
    file.write_text(yaml.safe_dump(pipeline("gold", **changes)))
    for command in ("plan", "apply"):
        shown = " ".join(stage.refused(command, str(file)).split())
        assert complaint in shown, shown
        assert place in shown, shown
        assert "nothing was done" in shown
    client = environment.client("dynamodb")
    assert client.scan(TableName=environment.names.tables[Table.CONTROL])["Items"] == []


def test_what_just_fits_is_taken(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    file = tmp_path / "gold.yaml"
    job = {**HTTP, "jobPollWindowSeconds": 10200, "pollInterval": "10s"}
    file.write_text(yaml.safe_dump(pipeline("gold", job=job)))
    assert "1 new" in stage.good("apply", str(file))


def test_one_refused_pipeline_keeps_all_from_being_written(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    good, bad = pipeline("gold"), pipeline("silver", job={"type": "command", "config": {"command": ["true"]}})
    for document in (good, bad):
        (tmp_path / f"{document['pipeline']['id']}.yaml").write_text(yaml.safe_dump(document))
    assert "1 error: nothing was done" in stage.refused("apply", str(tmp_path))
    client = environment.client("dynamodb")
    assert client.scan(TableName=environment.names.tables[Table.CONTROL])["Items"] == []

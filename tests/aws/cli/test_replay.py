"""`interlock aws replay`: what the streams forgot is routed again, and twice does no harm."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.aws.bus import EventBridgeBus
from interlock.aws.names import Function
from interlock.control import reruns, writing
from interlock.model.events import Event
from interlock.model.keys import RunKey
from interlock.model.run import JobEvent
from tests.aws.cli.deployed import Deployed
from tests.aws.cli.test_commands import applied, ready
from tests.cli.stage import DAY, Stage


def tables(environment: Deployed) -> dict[str, list[dict[str, Any]]]:
    """Everything that is stored, but for what is about the instant of the look."""
    found = {}
    for table, name in environment.names.tables.items():
        items = environment.client("dynamodb").scan(TableName=name)["Items"]
        found[table.value] = sorted(items, key=lambda one: (one["PK"]["S"], one["SK"]["S"]))
    return found


def test_what_the_streams_forgot(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    control = environment.controller.control
    writing.write_sensor(control, "gold", "up", {"status": "ready", "date": DAY})
    writing.write_sensor(control, "gold", "rows", {"count": 50, "date": DAY})
    reruns.request(control, RunKey("gold", "stream", "2026-03-01"), reason="", force=False, requested_by="me")
    environment.forget()
    assert stage.good("runs", "gold").startswith("gold has never run")
    found = stage.json("aws", "replay", "--since", "1h")
    assert found["control"] >= 4
    environment.pump()
    runs = {one["date"]: one["word"] for one in stage.json("runs", "gold")["runs"]}
    assert runs == {DAY: "waiting", "2026-03-01": "waiting"}


def test_twice_does_no_harm(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    ready(environment)
    stage.good("ready", "gold", "--date", DAY, "--claim")
    environment.pump()
    control = environment.controller.control
    writing.report_job(control, RunKey("gold", "stream", DAY), JobEvent.SUCCESS)
    environment.end_executions()
    environment.forget()
    stage.good("aws", "replay", "--since", "1h")
    environment.pump()
    assert [one["word"] for one in stage.json("runs", "gold")["runs"]] == ["done"]
    before = tables(environment)
    first = stage.json("aws", "replay", "gold", "--since", "1h")
    assert first["jobLog"] > 0
    assert first["events"] > 0
    environment.pump()
    assert stage.json("aws", "replay", "gold", "--since", "1h") == first
    environment.pump()
    assert tables(environment) == before


def test_what_comes_again_on_the_bus_is_the_same_in_every_byte(
    stage: Stage, environment: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subscribers know it by that: nobody records what was published."""
    published: list[str] = []
    entry = EventBridgeBus._entry

    def seen(bus: EventBridgeBus, event: Event) -> Any:
        made = entry(bus, event)
        published.append(json.dumps(made, sort_keys=True, default=str))
        return made

    monkeypatch.setattr(EventBridgeBus, "_entry", seen)
    applied(stage, environment, tmp_path)
    ready(environment)
    first = sorted(published)
    assert first
    published.clear()
    stage.good("aws", "replay", "gold", "--since", "1h")
    assert sorted(published) == first


def test_only_what_was_written_then(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    stage.good("sensor", "set", "gold", "rows", "count=50", "--date", DAY)
    found = stage.json("aws", "replay", "gold", "--since", "2d", "--until", "1d")
    assert (found["jobLog"], found["events"]) == (0, 0)
    assert found["control"] <= 1  # a config does not say when it was written


def test_what_is_wrong_is_said(
    stage: Stage, environment: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    applied(stage, environment, tmp_path)
    assert "did you mean gold" in stage.refused("aws", "replay", "gould", "--since", "1h")
    assert "nothing lies between" in " ".join(
        stage.refused("aws", "replay", "--since", "1h", "--until", "2h", code=2).split()
    )
    here = Stage(capsys, "--store", "sqlite:///x.db")
    assert "is not on AWS" in " ".join(here.refused("aws", "replay", "--since", "1h", code=2).split())
    environment.failing[Function.STREAM_ROUTER] = RuntimeError("no")
    assert "stream-router failed: RuntimeError: no" in stage.refused("aws", "replay", "--since", "1h")

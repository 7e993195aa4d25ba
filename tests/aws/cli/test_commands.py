"""Every command that reads or writes runs on an environment of AWS as it does on a file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from interlock.aws.controller import Controller
from interlock.aws.lambdas import watchdog
from interlock.aws.names import Function, Queue
from interlock.cli import aws_backend
from interlock.control import records, reruns, writing
from interlock.control.alerts.delivering import Sent
from interlock.control.alerts.delivery_records import StoredLedger
from interlock.control.watch import watch_slices
from interlock.embedded.clock import SystemClock
from interlock.model.keys import RunKey
from interlock.model.run import RunStatus
from tests.api.running import pipeline
from tests.aws.cli.deployed import _HANDLES, ADDRESS, Deployed
from tests.cli.stage import DAY, Stage
from tests.jobs.aws.moto_services import Aws


def write(folder: Path, *documents: dict[str, object]) -> Path:
    """A folder of pipelines."""
    place = folder / "pipelines"
    place.mkdir(exist_ok=True)
    for one in documents:
        (place / f"{one['pipeline']['id']}.yaml").write_text(yaml.safe_dump(one))  # type: ignore[index]
    return place


def external(name: str = "gold") -> dict[str, object]:
    return pipeline(name, job={"type": "external"})


def applied(stage: Stage, environment: Deployed, folder: Path, *documents: dict[str, object]) -> None:
    stage.good("apply", str(write(folder, *documents or (external(),))))
    environment.pump()


def ready(environment: Deployed, name: str = "gold") -> None:
    """The inputs of a pipeline are there. Without the command, which would watch for what follows."""
    control = environment.controller.control
    writing.write_sensor(control, name, "up", {"status": "ready", "date": DAY})
    writing.write_sensor(control, name, "rows", {"count": 50, "date": DAY})
    environment.pump()


def test_configs(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    folder = write(tmp_path, external())
    assert "+ gold  new" in stage.good("plan", str(folder))
    assert f"against {ADDRESS} (the command line)" in stage.good("plan", str(folder))
    assert "1 new, 0 changed, 0 unchanged: applied to aws://test" in stage.good("apply", str(folder))
    assert stage.json("apply", str(folder))["unchanged"] == ["gold"]
    environment.pump()
    write(tmp_path, external("silver"))
    assert stage.json("apply", str(folder), "--dry-run")["new"] == ["silver"]
    assert [one["pipeline"] for one in stage.json("status")["pipelines"]] == ["gold"]
    (folder / "gold.yaml").unlink()
    assert stage.json("apply", str(folder), "--prune")["removed"] == ["gold"]
    environment.pump()
    assert [one["pipeline"] for one in stage.json("status")["pipelines"]] == ["silver"]
    assert stage.json("status")["served"] is True


def test_sensors(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    said = stage.good("sensor", "set", "gold", "rows", "count=50", "--date", DAY)
    assert f"stored gold/rows#{DAY} for {DAY}" in said
    assert "serve" not in said
    assert stage.json("sensor", "get", "gold", f"rows#{DAY}")["data"]["count"] == 50
    assert [one["key"] for one in stage.json("sensor", "list", "gold")["sensors"]] == [f"rows#{DAY}"]
    assert "deleted" in stage.good("sensor", "delete", "gold", f"rows#{DAY}")
    assert "never written" in stage.refused("sensor", "get", "gold", f"rows#{DAY}")
    assert "did you mean gold" in stage.refused("sensor", "set", "gould", "rows", "count=1")


def test_a_run_from_claim_to_rerun(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    ready(environment)
    assert stage.good("ready", "gold", "--date", DAY, "--claim") == f"{DAY}\n"
    environment.pump()
    assert [one["word"] for one in stage.json("runs", "gold")["runs"]] == ["running"]
    assert "reported success" in stage.good("job", "report", "gold", "success", "--date", DAY)
    environment.end_executions()
    environment.pump()
    why = stage.good("why", "gold", "--date", DAY)
    assert "gold" in why
    assert [one["word"] for one in stage.json("runs", "gold")["runs"]] == ["done"]
    assert "refused" in stage.run("rerun", "gold", "--date", DAY, "--reason", "again").out
    assert "accepted" in stage.good("rerun", "gold", "--date", DAY, "--reason", "again", "--force")
    types = [json.loads(line)["type"] for line in stage.good("events", "--json").splitlines()]
    assert "JOB_COMPLETED" in types
    assert "RERUN_ACCEPTED" in types
    only = stage.good("events", "--json", "--pipeline", "gold", "--type", "RERUN_REJECTED")
    assert [json.loads(line)["type"] for line in only.splitlines()] == ["RERUN_REJECTED"]


def test_cancelling_a_waiting_run(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    stage.good("rerun", "gold", "--date", DAY, "--reason", "first")
    environment.pump()
    assert "is cancelled" in stage.good("cancel", "gold", "--date", DAY, "--reason", "wrong")
    environment.pump()
    assert "JOB_CANCELLED" in stage.good("events", "--pipeline", "gold")


def test_following_events(stage: Stage, environment: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens between two looks comes with the second; each event once."""
    applied(stage, environment, tmp_path)
    turns = iter(range(10))

    def pause(seconds: float) -> None:
        assert seconds == 2.0
        turn = next(turns)
        if turn == 1:
            control = environment.controller.control
            reruns.request(control, RunKey("gold", "stream", DAY), reason="", force=False, requested_by="me")
            environment.pump()
        if turn == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(aws_backend, "pause", pause)
    said = stage.good("events", "--follow", "--json", "--pipeline", "gold")
    types = [json.loads(line)["type"] for line in said.splitlines()]
    assert types.count("RERUN_ACCEPTED") == 1
    assert types.count("TRIGGER_STARTED") == 1


def test_the_output_of_a_job(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    """The target is asked from here: of an external job it knows nothing but who runs it."""
    applied(stage, environment, tmp_path)
    assert "has never run" in stage.refused("logs", "gold")
    ready(environment)
    stage.good("ready", "gold", "--date", DAY, "--claim")
    said = stage.run("logs", "gold", "--date", DAY)
    assert said.code == 0, said.err
    assert stage.json("logs", "gold", "--date", DAY)["text"] == said.out


def test_the_output_of_a_glue_job_is_read_from_cloudwatch(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    glue, aws, now = environment.client("glue"), Aws(), SystemClock().now()
    aws.glue_job("etl")
    job_id = glue.start_job_run(JobName="etl")["JobRunId"]
    applied(stage, environment, tmp_path, pipeline("gold", job={"type": "glue", "config": {"jobName": "etl"}}))
    ready(environment)
    store = environment.controller.store
    run = records.get_run(store, RunKey("gold", "stream", DAY))
    assert run is not None
    running = replace(run, status=RunStatus.RUNNING, run_id="r-1", job_id=job_id, version=run.version + 1)
    store.commit([records.put_run(running, run)])

    aws.log("test/log/output", job_id, now, "read 100 rows", "wrote 5 rows")
    assert stage.good("logs", "gold", "--date", DAY).splitlines() == ["read 100 rows", "wrote 5 rows"]
    pieces = stage.good("logs", "gold", "--date", DAY, "--json")
    first, _ = json.JSONDecoder().raw_decode(pieces)
    assert first["link"].startswith("https://us-east-1.console.aws.amazon.com/gluestudio/")

    environment.denied.add("logs:GetLogEvents")
    refused = stage.refused("logs", "gold", "--date", DAY)
    assert "logs" in refused
    assert "AccessDenied" in refused


def test_trying_a_probe(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    s3 = environment.client("s3")
    s3.create_bucket(Bucket="landing")
    s3.put_object(Bucket="landing", Key="gold.csv", Body=b"a,b")
    probe = {"key": "rows", "type": "s3", "config": {"bucket": "landing", "prefix": "gold"}, "interval": "5m"}
    document = {**external(), "probes": [probe]}
    applied(stage, environment, tmp_path, document)
    assert stage.json("probe", "run", "gold", "rows")["ok"] is True


def test_a_large_pass_of_the_watchdog_is_asked_for_in_the_slices_of_the_function(
    stage: Stage, environment: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(stage, environment, tmp_path, external("gold"), external("silver"), external("bronze"))
    monkeypatch.setattr(watch_slices, "PIPELINES_PER_SLICE", 1)
    asked: list[object] = []

    def seen(controller: Controller, event: Mapping[str, Any]) -> Any:
        asked.append(event)
        return watchdog.handle(controller, event)

    monkeypatch.setitem(_HANDLES, Function.WATCHDOG, seen)
    environment.called.clear()
    assert "nothing new found" in stage.good("watchdog")
    assert asked == [{"slice": number, "of": 4} for number in range(4)]
    assert environment.called == ["watchdog"] * 4, "none of them hands out slices of its own"
    assert watch_slices.last_complete(environment.controller.store) is not None


def test_the_watchdog_is_the_deployed_function(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    environment.called.clear()
    assert "nothing new found" in stage.good("watchdog")
    assert environment.called == ["watchdog"]
    environment.failing[Function.WATCHDOG] = ValueError("boom")
    assert "the function test-interlock-watchdog failed: ValueError: boom" in stage.refused("watchdog")


def test_alerts(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    applied(stage, environment, tmp_path)
    assert stage.good("alerts", "list") == "no alerts\n"
    store, at = environment.controller.store, environment.controller.clock.now()
    sent = StoredLedger(store, "slack:#data", f"gold/{1772524800000}#SLA_WARNING#1", at)
    standing = sent.begin(at)
    assert standing is not None
    sent.record(Sent(standing, ()), at)
    StoredLedger(store, "console", f"gold/{1772524800001}#SLA_BREACH#1", at).begin(at)
    found = stage.json("alerts", "list")["alerts"]
    assert [(one["channel"], one["state"]) for one in found] == [("console", "waiting"), ("slack:#data", "sent")]
    assert [one["pipeline"] for one in stage.json("alerts", "list", "--channel", "console")["alerts"]] == ["gold"]
    assert stage.json("alerts", "list", "--state", "dead")["alerts"] == []
    environment.bury(Queue.ALERTS_DLQ, {}, MessageGroupId="gold", MessageDeduplicationId="a1")
    assert "1 alert was given up" in stage.json("status")["degraded"][0]


def test_a_claim_keeps_the_pool_of_the_deployed_functions(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    job = {"type": "external", "pool": "warehouse"}
    applied(stage, environment, tmp_path, pipeline("gold", job=job), pipeline("silver", job=job))
    variables = {"POOLS": '{"warehouse": 1}'}
    environment.answers["lambda:GetFunctionConfiguration"] = {"Environment": {"Variables": variables}}
    for name in ("gold", "silver"):
        ready(environment, name)
    assert stage.good("ready", "gold", "--date", DAY, "--claim") == f"{DAY}\n"
    assert "the pool of its job is full" in stage.refused("ready", "silver", "--date", DAY, "--claim")


def test_trying_the_channels(stage: Stage, environment: Deployed) -> None:
    variables = {"ALERTS": '[{"channel": "console"}]'}
    environment.answers["lambda:GetFunctionConfiguration"] = {"Environment": {"Variables": variables}}
    assert stage.json("alerts", "test")["channels"] == [{"channel": "console", "ok": True, "error": ""}]


def test_what_is_for_another_store_says_where_to_look(stage: Stage, environment: Deployed) -> None:
    assert "interlock console --store aws://test" in stage.refused("serve")
    assert "interlock console --store aws://test" in stage.refused("open")
    assert "point-in-time recovery" in stage.refused("backup", "x.db", code=2)

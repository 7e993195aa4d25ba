"""`interlock doctor` on AWS: a whole environment is well, and each thing that is wrong with one is named."""

import io
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock.aws.names import Function, Queue
from interlock.aws.operations import digest
from interlock.cli.aws_diagnosis import _MAPPED
from interlock.model.keys import Table
from interlock.ports.timers import Timer, TimerKind
from tests.aws.cli.deployed import ACCOUNT, Deployed
from tests.aws.cli.test_commands import applied
from tests.cli.stage import DAY, Stage


def complete(environment: Deployed) -> None:
    """What the other commands do not need: functions with their mappings, and TTL."""
    names, client = environment.names, environment.client("lambda")
    role = environment.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}", Path="/")["Role"]["Arn"]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("x.py", "")
    for function in Function:
        client.create_function(
            FunctionName=names.function(function),
            Runtime="python3.13",
            Role=role,
            Handler="x.handler",
            Code={"ZipFile": packed.getvalue()},
            Description=digest.describe(),
        )
    for function, sources in _MAPPED.items():
        for source in sources:
            client.create_event_source_mapping(
                FunctionName=names.function(function), EventSourceArn=arn_of(environment, source), **_start(source)
            )
    for name in names.tables.values():
        ttl = {"Enabled": True, "AttributeName": "ttl"}
        environment.client("dynamodb").update_time_to_live(TableName=name, TimeToLiveSpecification=ttl)


def _start(source: Table | Queue) -> dict[str, str]:
    return {"StartingPosition": "TRIM_HORIZON"} if isinstance(source, Table) else {}


def arn_of(environment: Deployed, source: Table | Queue) -> str:
    if isinstance(source, Queue):
        return environment.names.queue_arn(source)
    table = environment.client("dynamodb").describe_table(TableName=environment.names.tables[source])["Table"]
    return str(table["LatestStreamArn"])


@pytest.fixture
def whole(stage: Stage, environment: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """An environment with which nothing is wrong."""
    limits = {"AccountLimit": {"UnreservedConcurrentExecutions": 900}}
    environment.answers["lambda:GetAccountSettings"] = limits
    (tmp_path / "configs").mkdir()
    applied(stage, environment, tmp_path / "configs")
    monkeypatch.setattr(environment, "pumping", False)
    stage.good("watchdog")
    complete(environment)  # last: moto starts containers for what is written to a table with a mapping
    return environment


def checks(stage: Stage, *, ok: bool = True) -> dict[str, dict[str, Any]]:
    found = stage.json("doctor")
    assert found["ok"] is ok, found
    return {one["name"]: one for one in found["checks"]}


def test_all_is_well(stage: Stage, whole: Deployed) -> None:
    found = checks(stage)
    assert {name for name, one in found.items() if one["ok"]} >= {
        "environment",
        "tables",
        "mappings",
        "streams",
        "state machine",
        "functions",
        "timers",
        "queues",
        "dead letters",
        "stored configs",
        "watchdog",
        "quotas",
    }
    assert found["environment"]["detail"] == f"test in account {ACCOUNT}, region us-east-1"
    assert "all is well" in stage.good("doctor")
    assert whole.depth(Queue.TIMERS) == 0


def no_stream(environment: Deployed) -> None:
    name = environment.names.tables[Table.JOBLOG]
    environment.client("dynamodb").update_table(TableName=name, StreamSpecification={"StreamEnabled": False})


def no_table(environment: Deployed) -> None:
    environment.client("dynamodb").delete_table(TableName=environment.names.tables[Table.RERUN])


def no_mapping(environment: Deployed) -> None:
    client = environment.client("lambda")
    for one in client.list_event_source_mappings()["EventSourceMappings"]:
        if one["EventSourceArn"] == environment.names.queue_arn(Queue.ALERTS):
            client.delete_event_source_mapping(UUID=one["UUID"])


def mapping_off(environment: Deployed) -> None:
    client = environment.client("lambda")
    for one in client.list_event_source_mappings()["EventSourceMappings"]:
        if one["EventSourceArn"] == arn_of(environment, Table.EVENTS):
            client.update_event_source_mapping(UUID=one["UUID"], Enabled=False)


def behind(environment: Deployed) -> None:
    environment.answers["cloudwatch:GetMetricStatistics"] = {"Datapoints": [{"Maximum": 7_200_000.0}]}


def another_machine(environment: Deployed) -> None:
    definition = '{"StartAt": "A", "TimeoutSeconds": 14400, "States": {"A": {"Type": "Succeed"}}}'
    arn = environment.names.state_machine_arn
    environment.client("stepfunctions").update_state_machine(stateMachineArn=arn, definition=definition)


def another_version(environment: Deployed) -> None:
    name = environment.names.function(Function.WATCHDOG)
    description = "interlock 0.0.1 source 0123456789abcdef"
    environment.client("lambda").update_function_configuration(FunctionName=name, Description=description)


def no_function(environment: Deployed) -> None:
    environment.client("lambda").delete_function(FunctionName=environment.names.function(Function.EVENT_SINK))


def an_orphan(environment: Deployed) -> None:
    environment.client("scheduler").create_schedule(
        Name="sla-of-nobody",
        GroupName=environment.names.timer_group,
        ScheduleExpression="at(2030-01-01T00:00:00)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": environment.names.queue_arn(Queue.TIMERS), "RoleArn": "arn:aws:iam::1:role/x"},
    )


def a_letter(environment: Deployed) -> None:
    environment.bury(Queue.TIMERS_DLQ, {"name": "x"})


def few_left(environment: Deployed) -> None:
    environment.answers["lambda:GetAccountSettings"] = {"AccountLimit": {"UnreservedConcurrentExecutions": 10}}


HARMS: list[tuple[Callable[[Deployed], None], str, str]] = [
    (no_stream, "tables", "test-interlock-joblog has no stream of new images"),
    (no_table, "tables", "there is no table test-interlock-rerun"),
    (no_mapping, "mappings", "nobody reads the alerts.fifo queue"),
    (mapping_off, "mappings", "the event-sink does not read the events stream: its mapping is Disabled"),
    (behind, "streams", "the stream-router is 2h behind its stream"),
    (another_machine, "state machine", "is not this version's: $."),
    (another_version, "functions", "watchdog is version 0.0.1 (source 0123456789abcdef)"),
    (no_function, "functions", "there is no function test-interlock-event-sink"),
    (an_orphan, "timers", "Scheduler entries without a timer: 1, such as sla-of-nobody"),
    (a_letter, "dead letters", "1 dead letter"),
    (few_left, "quotas", "only 10 concurrent executions of Lambda are not reserved"),
]


def test_what_is_wrong_is_named(stage: Stage, whole: Deployed) -> None:
    for harm, _, _ in HARMS:
        harm(whole)
    found = checks(stage, ok=False)
    for _, name, complaint in HARMS:
        assert not found[name]["ok"]
        assert complaint in found[name]["detail"]
        assert found[name]["advice"]


def test_timers_that_nobody_armed(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    """A tick that its record promises, and an entry that was deleted by hand."""
    applied(stage, environment, tmp_path)
    controller = environment.controller
    far = controller.clock.now() + timedelta(days=1)
    controller.timers.arm(Timer("tick-x", far, TimerKind.RETRY, {"pipeline": "gold", "schedule": "s", "date": DAY}))
    said = {one["name"]: one for one in stage.json("doctor")["checks"]}["timers"]
    assert said["ok"], said
    put = environment.client("dynamodb").put_item
    item = {"PK": {"S": "PIPELINE#gold"}, "SK": {"S": "TICK#cron"}, "nextAt": {"S": f"{far:%Y-%m-%dT%H:%M:%SZ}"}}
    put(TableName=environment.names.tables[Table.CONTROL], Item=item)
    said = {one["name"]: one for one in stage.json("doctor")["checks"]}["timers"]
    assert "1 timer not armed" in said["detail"]


def test_a_missing_right_is_one_check_and_not_the_end(stage: Stage, environment: Deployed) -> None:
    environment.denied |= {"lambda:ListEventSourceMappings", "cloudwatch:GetMetricStatistics"}
    found = checks(stage, ok=False)
    assert "lambda:ListEventSourceMappings" in found["mappings"]["detail"]
    assert "cloudwatch:GetMetricStatistics" in found["streams"]["detail"]
    assert found["state machine"]["ok"]


def test_an_environment_that_is_not_there(stage: Stage, environment: Deployed) -> None:
    environment.denied.add("dynamodb:DescribeTable")
    assert "not allowed" in checks(stage, ok=False)["environment"]["detail"]

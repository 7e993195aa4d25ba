"""`interlock dlq` on AWS: the letters of streams, timers and alerts, redriven by id, and deleted only after success."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from interlock.aws.dead_letters import Letter, letter_text
from interlock.aws.names import Function, Queue
from interlock.control.alerts.delivering import Sent
from interlock.control.alerts.delivery_records import StoredLedger
from interlock.model.keys import Table
from tests.aws.cli.deployed import Deployed
from tests.aws.cli.test_commands import applied
from tests.cli.stage import DAY, Stage

AT = datetime(2026, 3, 3, 8, tzinfo=UTC)


def record(environment: Deployed, table: Table, pk: str, sk: str, **item: Any) -> dict[str, Any]:
    """A stream record."""
    key = {"PK": {"S": pk}, "SK": {"S": sk}}
    return {
        "eventName": "MODIFY",
        "eventSource": "aws:dynamodb",
        "eventSourceARN": f"{environment.names.table_arn(table)}/stream/2026",
        "dynamodb": {
            "Keys": key,
            "NewImage": {**key, **item},
            "SequenceNumber": "1",
            "ApproximateCreationDateTime": int(AT.timestamp()),
        },
    }


def bury(environment: Deployed, queue: Queue, table: Table, found: dict[str, Any]) -> None:
    letter = Letter(
        table=table.value,
        error="ValueError: boom",
        tries=3,
        first_at=AT,
        last_at=AT,
        function="stream-router",
        record=found,
    )
    environment.bury(queue, msgspec.json.decode(letter_text(letter)))


def timer(name: str, kind: str = "retry") -> dict[str, Any]:
    return {
        "environment": "test",
        "arming": "a",
        "name": name,
        "at": "2026-03-03T08:00:00Z",
        "kind": kind,
        "payload": {"pipeline": "gold", "schedule": "stream", "date": DAY, "attempt": 1},
    }


def test_letters_of_every_queue_are_listed_and_redriven(stage: Stage, environment: Deployed, tmp_path: Path) -> None:
    assert stage.good("dlq", "list") == "no dead letters\n"
    applied(stage, environment, tmp_path)
    sensor = record(environment, Table.CONTROL, "PIPELINE#gold", "SENSOR#rows")
    bury(environment, Queue.CONTROL_DLQ, Table.CONTROL, sensor)
    bury(environment, Queue.JOBLOG_DLQ, Table.JOBLOG, record(environment, Table.JOBLOG, "ELSE#gold", "X"))
    bury(environment, Queue.EVENTS_DLQ, Table.EVENTS, record(environment, Table.EVENTS, "PIPELINE#gold", "THREAD#x"))
    environment.bury(Queue.TIMERS_DLQ, timer("retry-1"))
    environment.bury(Queue.SLA_TIMERS_DLQ, timer("sla-1", "sla"))
    environment.bury(Queue.SCHEDULER_DLQ, timer("sla-2", "sla"))
    alert = {"environment": "test", "channel": "slack:#data", "alert": {"id": "gold/1772524800000#SLA_BREACH#1"}}
    environment.bury(Queue.ALERTS_DLQ, alert, MessageGroupId="g", MessageDeduplicationId="d")
    letters = stage.json("dlq", "list")["deadLetters"]
    assert sorted(one["kind"] for one in letters) == ["change"] * 3 + ["delivery"] + ["timer"] * 3
    assert {one["source"] for one in letters} >= {"stream-router", "sla-monitor", "scheduler", "slack:#data"}
    first = next(one for one in letters if one["record"].get("sk") == "SENSOR#rows")
    assert first["error"] == "ValueError: boom"
    assert "PIPELINE#gold" in stage.good("dlq", "list")
    assert stage.json("dlq", "show", str(first["id"]))["record"]["record"] == sensor
    # Listing took nothing away, and hid nothing.
    assert [one["id"] for one in stage.json("dlq", "list")["deadLetters"]] == [one["id"] for one in letters]
    assert "7 dead letters redriven" in stage.good("dlq", "redrive", "--all")
    assert stage.good("dlq", "list") == "no dead letters\n"
    assert environment.called.count("stream-router") >= 2
    assert [one["name"] for one in environment.bodies(Queue.TIMERS)] == ["retry-1"]
    assert sorted(one["name"] for one in environment.bodies(Queue.SLA_TIMERS)) == ["sla-1", "sla-2"]
    assert environment.bodies(Queue.ALERTS) == [alert]


def test_by_id_the_others_stay(stage: Stage, environment: Deployed) -> None:
    for name in ("a", "b", "c"):
        environment.bury(Queue.TIMERS_DLQ, timer(name))
    letters = {one["record"]["name"]: one["id"] for one in stage.json("dlq", "list")["deadLetters"]}
    assert "1 dead letter redriven" in stage.good("dlq", "redrive", str(letters["b"]))
    assert [one["name"] for one in environment.bodies(Queue.TIMERS)] == ["b"]
    left = stage.json("dlq", "list")["deadLetters"]
    assert sorted(one["record"]["name"] for one in left) == ["a", "c"]
    assert "no dead letter 7" in stage.refused("dlq", "redrive", "7")


def test_more_than_a_page(stage: Stage, environment: Deployed) -> None:
    for number in range(23):
        environment.bury(Queue.TIMERS_DLQ, timer(f"t{number}"))
    assert len(stage.json("dlq", "list")["deadLetters"]) == 23
    assert len(stage.json("dlq", "list", "--limit", "5")["deadLetters"]) == 5
    assert "23 dead letters redriven" in stage.good("dlq", "redrive", "--all")
    assert environment.depth(Queue.TIMERS_DLQ) == 0
    assert environment.depth(Queue.TIMERS) == 23


def test_what_fails_is_kept(stage: Stage, environment: Deployed) -> None:
    bury(environment, Queue.CONTROL_DLQ, Table.CONTROL, record(environment, Table.CONTROL, "PIPELINE#gold", "SENSOR#x"))
    environment.bury(Queue.TIMERS_DLQ, timer("fine"))
    environment.failing[Function.STREAM_ROUTER] = RuntimeError("still broken")
    said = stage.refused("dlq", "redrive", "--all")
    assert "1 of 2 dead letters could not be redriven and are kept" in said
    assert "still broken" in said
    assert environment.depth(Queue.CONTROL_DLQ) == 1
    assert environment.depth(Queue.TIMERS_DLQ) == 0
    environment.denied.add("sqs:SendMessage")
    environment.bury(Queue.TIMERS_DLQ, timer("not allowed"))
    assert "sqs:SendMessage" in stage.refused("dlq", "redrive", "--all", code=2)
    assert environment.depth(Queue.TIMERS_DLQ) == 1


def test_what_fails_again_is_a_letter_again_and_tried_once(stage: Stage, environment: Deployed) -> None:
    bad = record(environment, Table.JOBLOG, "PIPELINE#gold", "JOB#nonsense", event={"N": "1"})
    bury(environment, Queue.JOBLOG_DLQ, Table.JOBLOG, bad)
    [before] = stage.json("dlq", "list")["deadLetters"]
    environment.called.clear()
    assert "1 dead letter redriven" in stage.good("dlq", "redrive", "--all")
    assert environment.called == ["stream-router"]
    [after] = stage.json("dlq", "list")["deadLetters"]
    assert after["id"] != before["id"]
    assert "is not a JobRecord" in after["error"]


def test_a_message_without_its_record_says_what_to_do(stage: Stage, environment: Deployed) -> None:
    context = {"condition": "RetryAttemptsExhausted", "functionArn": "arn:aws:lambda:router"}
    own = {"requestContext": context, "DDBStreamBatchInfo": {"shardId": "s", "batchSize": 1}}
    environment.bury(Queue.CONTROL_DLQ, own)
    [letter] = stage.json("dlq", "list")["deadLetters"]
    assert "RetryAttemptsExhausted" in letter["error"]
    assert "interlock aws replay" in stage.refused("dlq", "redrive", str(letter["id"]))
    assert environment.depth(Queue.CONTROL_DLQ) == 1


def test_an_alert_that_was_sent_meanwhile_is_not_sent_again(stage: Stage, environment: Deployed) -> None:
    store, at = environment.controller.store, environment.controller.clock.now()
    id_ = "gold/1772524800000#SLA_BREACH#1"
    environment.bury(
        Queue.ALERTS_DLQ,
        {"environment": "test", "channel": "console", "alert": {"id": id_}},
        MessageGroupId="g",
        MessageDeduplicationId="d",
    )
    ledger = StoredLedger(store, "console", id_, at)
    standing = ledger.begin(at)
    assert standing is not None
    ledger.record(Sent(standing, ()), at)
    assert "1 dead letter redriven" in stage.good("dlq", "redrive", "--all")
    assert environment.bodies(Queue.ALERTS) == []
    assert environment.depth(Queue.ALERTS_DLQ) == 0

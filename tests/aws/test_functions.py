"""The entry points: cold start, bad input, logs, and what each of them imports."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from interlock.aws.invocation import Entry
from interlock.aws.lambdas import alert_dispatcher, event_sink, orchestrator, sla_monitor, stream_router, watchdog
from interlock.aws.logs import configure_logs
from interlock.aws.names import Function
from interlock.aws.settings import SettingsError
from interlock.control import records
from interlock.model import keys
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.keys import RunKey, Table
from tests.aws.dynamo import TABLES
from tests.aws.installation import VARIABLES, Installation, installation
from tests.aws.test_store import stream_records
from tests.aws.test_streams import wire
from tests.conformance.manual_clock import ManualClock

HANDLERS: dict[Function, Entry] = {
    Function.STREAM_ROUTER: stream_router.handler,
    Function.ORCHESTRATOR: orchestrator.handler,
    Function.SLA_MONITOR: sla_monitor.handler,
    Function.WATCHDOG: watchdog.handler,
    Function.EVENT_SINK: event_sink.handler,
    Function.ALERT_DISPATCHER: alert_dispatcher.handler,
}
TASK = {"pipeline": "gold", "schedule": "cron", "date": "2026-03-02", "attempt": 1}


class Context:
    aws_request_id = "request-1"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def here(clock: ManualClock) -> Iterator[Installation]:
    with installation(clock) as found:
        for handler in HANDLERS.values():
            handler.controller = found.controller
        yield found
    for handler in HANDLERS.values():
        handler.controller = None


@pytest.mark.parametrize("function", list(Function))
def test_a_variable_that_is_missing_fails_every_invocation_with_its_name(
    function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for _ in range(2):
        with pytest.raises(SettingsError, match="INTERLOCK_ENVIRONMENT is missing"):
            HANDLERS[function]({}, Context())


@pytest.mark.parametrize("event", [None, [], "text", 7])
@pytest.mark.parametrize("function", list(Function))
def test_what_is_no_object_is_refused(here: Installation, function: Function, event: Any) -> None:
    with pytest.raises(InvalidValueError, match=function.value):
        HANDLERS[function](event, Context())


@pytest.mark.parametrize(
    ("function", "event", "said"),
    [
        (Function.STREAM_ROUTER, {"what": 1}, "what"),
        (Function.STREAM_ROUTER, {"Records": []}, "Records"),
        (Function.STREAM_ROUTER, {"Records": "odd"}, "Records"),
        (Function.STREAM_ROUTER, {"detail-type": "Odd", "detail": {}}, "Odd"),
        (Function.ORCHESTRATOR, {**TASK, "mode": "dance"}, "no mode 'dance'"),
        (Function.ORCHESTRATOR, {"mode": "evaluate"}, "no task"),
        (Function.SLA_MONITOR, {**TASK, "mode": "dance"}, "no mode 'dance'"),
        (Function.SLA_MONITOR, {"mode": "schedule"}, "pipeline"),
        (Function.ALERT_DISPATCHER, {"what": 1}, "what"),
        (Function.EVENT_SINK, {"what": 1}, "what"),
    ],
)
def test_input_of_an_unknown_shape_names_itself(
    here: Installation, function: Function, event: dict[str, Any], said: str
) -> None:
    with pytest.raises(InterlockError, match=said):
        HANDLERS[function](event, Context())


def test_a_message_that_is_no_timer_is_reported_and_the_others_are_received(here: Installation) -> None:
    bad = {"messageId": "1", "body": "{", "eventSource": "aws:sqs"}
    odd = {"messageId": "2", "body": json.dumps({"environment": "prod"}), "eventSource": "aws:sqs"}
    for function in (Function.STREAM_ROUTER, Function.SLA_MONITOR):
        answer = HANDLERS[function]({"Records": [bad, odd]}, Context())
        assert [one["itemIdentifier"] for one in answer["batchItemFailures"]] == ["1", "2"]


# ------------------------------------------------------------------------------------------------------- bad writes


def routed(here: Installation) -> None:
    records_ = [wire(record, Table.CONTROL) for record in stream_records(TABLES[Table.CONTROL])]
    answer = stream_router.handler({"Records": records_}, Context())
    assert answer == {"batchItemFailures": []}


def events_of(here: Installation, type_: str) -> list[dict[str, Any]]:
    return [one.item for one in here.controller.store.events_by_type(type_, since=0, until=2**42, limit=20)]


def put(here: Installation, sk: str, **attributes: Any) -> None:
    item = {"PK": {"S": "PIPELINE#gold"}, "SK": {"S": sk}, **attributes}
    here.clients("dynamodb").put_item(TableName=TABLES[Table.CONTROL], Item=item)


@pytest.mark.parametrize(
    "attributes",
    [
        {"document": {"S": "{"}},
        {"document": {"S": '{"pipeline": {"id": "gold"}}'}},
        {"document": {"B": b"x"}},
        {"document": {"L": []}},
        {},
    ],
)
def test_a_config_that_is_none_is_config_invalid(here: Installation, attributes: dict[str, Any]) -> None:
    put(here, keys.CONFIG, **attributes)
    routed(here)
    (event,) = events_of(here, "CONFIG_INVALID")
    assert event["detail"]["errors"]
    assert here.controller.store.pipelines() == ["gold"], "entered into the registry all the same: it is watched"


def test_a_config_that_aws_cannot_run_is_config_invalid(here: Installation) -> None:
    document = {
        "pipeline": {"id": "gold"},
        "schedule": {"cron": "0 8 * * *"},
        "validation": {"rules": [{"key": "rows", "check": "exists"}]},
        "job": {"type": "command", "config": {"command": ["etl"]}},
    }
    put(here, keys.CONFIG, document={"S": json.dumps(document)})
    routed(here)
    (event,) = events_of(here, "CONFIG_INVALID")
    assert event["detail"]["errors"] == [
        "job.type: command jobs do not run on AWS, where there is no machine to run them: use lambda, glue or another"
    ]


CONFIG = {
    "pipeline": {"id": "gold"},
    "schedule": {"trigger": {"key": "rows", "check": "exists"}},
    "validation": {"rules": [{"key": "rows", "check": "exists"}]},
    "job": {"type": "external"},
}
TODAY = RunKey("gold", "stream", "2026-03-02")
WRONG: dict[str, dict[str, Any]] = {
    "binary": {"n": {"N": "1"}, "blob": {"B": b"x"}},
    "binary inside": {"data": {"M": {"n": {"N": "1"}, "blob": {"BS": [b"x"]}}}},
    "too large": {"text": {"S": "x" * 70_000}},
    "as large as an item may be": {"text": {"S": "x" * 404_900}},
}


@pytest.fixture
def gold(here: Installation) -> Installation:
    put(here, keys.CONFIG, document={"S": json.dumps(CONFIG)})
    routed(here)
    return here


@pytest.mark.parametrize("attributes", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("key", ["rows", "rows#2026-03-02"])
def test_a_foreign_sensor_that_is_none_is_reported_once_and_counts_as_absent(
    gold: Installation, key: str, attributes: dict[str, Any]
) -> None:
    put(gold, f"SENSOR#{key}", **attributes)
    assert records.get_sensors(gold.controller.store, "gold", [key]) == {}, "before anybody has looked at it"
    for _ in range(3):
        routed(gold)
    (event,) = events_of(gold, "SENSOR_INVALID")
    assert event["detail"]["key"] == key
    assert "counts as absent" in event["message"]
    assert records.get_sensors(gold.controller.store, "gold", [key]) == {}
    assert records.get_run(gold.controller.store, TODAY) is None
    assert gold.messages("control-dlq") == []


@pytest.mark.parametrize("attributes", list(WRONG.values())[:3], ids=list(WRONG)[:3])
def test_a_sensor_that_was_mended_counts(gold: Installation, clock: ManualClock, attributes: dict[str, Any]) -> None:
    """Mended in place: what marks it as refused is still there when the mended one is routed."""
    put(gold, "SENSOR#rows", **attributes)
    routed(gold)
    clock.advance(minutes=1)
    item = gold.clients("dynamodb").get_item(
        TableName=TABLES[Table.CONTROL], Key={"PK": {"S": "PIPELINE#gold"}, "SK": {"S": "SENSOR#rows"}}
    )["Item"]
    mended = {name: value for name, value in item.items() if name not in ("blob", "data", "text")}
    gold.clients("dynamodb").put_item(TableName=TABLES[Table.CONTROL], Item=mended | {"n": {"N": "1"}})
    routed(gold)
    (sensor,) = records.get_sensors(gold.controller.store, "gold", ["rows"]).values()
    assert sensor.data == {"n": 1}
    assert records.get_run(gold.controller.store, TODAY) is not None
    assert len(events_of(gold, "SENSOR_INVALID")) == 1


# ------------------------------------------------------------------------------------------------------------- logs


def test_a_log_line_says_whose_it_is_and_tells_no_secret(
    here: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs("INFO")
    try:
        with pytest.raises(InterlockError):
            orchestrator.handler({**TASK, "mode": "dance"}, Context())
        structlog.get_logger("x").info("hello", slack_token="xoxb-1", payload_size=3)
    finally:
        structlog.reset_defaults()
    first, second = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert first["event"] == "invocation-failed"
    assert first["run"] == "gold/cron/2026-03-02"
    assert (first["attempt"], first["request_id"], first["function"]) == (1, "request-1", "orchestrator")
    assert second["slack_token"] == "***"


# ---------------------------------------------------------------------------------------------------------- imports

# How many modules each loads beside those of `_NEW`: a new one is a decision, since every cold start pays for it.
MODULES = {
    Function.STREAM_ROUTER: 106,
    Function.ORCHESTRATOR: 96,
    Function.SLA_MONITOR: 86,
    Function.WATCHDOG: 104,
    Function.EVENT_SINK: 70,
    Function.ALERT_DISPATCHER: 50,
}
_NEW = """
import sys
import boto3, botocore.config, botocore.exceptions, msgspec, structlog
before = set(sys.modules)
import interlock.aws.lambdas.{module}
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize("function", list(Function))
def test_a_function_imports_nothing_that_it_does_not_need(function: Function) -> None:
    """Beside boto3, msgspec and structlog: cron. No server, terminal, HTTP, holidays; zones only when named."""
    code = _NEW.format(module=function.value.replace("-", "_"))
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name.partition(".")[0] for name in found} <= {"cronsim", "interlock"}
    assert len(found) <= MODULES[function]

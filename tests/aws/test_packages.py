"""The packages of the functions: what is in them, that they are the same every time, and that Lambda can start them."""

import fcntl
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.aws.dynamodb import attributes
from tests.aws import planned
from tests.aws.runtime_api import EmptyAws, RuntimeApi, started
from tools.packages.build import LARGEST, build, this_architecture
from tools.packages.imports import RUNTIME, handler_module, imported_at_once, imports_of, path_of
from tools.terraform import offline

_RUN = {"pipeline": "silver-orders", "schedule": "stream", "date": "2026-03-01", "attempt": 1}


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All packages for this machine, unpacked; built once for all test processes."""
    folder = tmp_path_factory.getbasetemp()
    if tmp_path_factory.getbasetemp().name.startswith("popen-"):
        folder = folder.parent
    out = folder / "packages"
    with (folder / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "manifest.json").is_file():
            build(out, this_architecture())
            for name in offline.FUNCTIONS:
                zipfile.ZipFile(out / f"{name}.zip").extractall(out / name)
    return out


@pytest.fixture(scope="session")
def python() -> Path:
    """A Python with what Lambda's has: the runtime client and boto3."""
    try:
        return offline.environment_of("lambda") / "bin" / "python"
    except offline.MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture
def aws() -> Iterator[EmptyAws]:
    made = EmptyAws()
    yield made
    made.close()


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    made = RuntimeApi()
    yield made
    made.close()


def variables_of(function: str, api: RuntimeApi, aws: EmptyAws) -> dict[str, str]:
    """What the plan gives a function, and where Lambda and AWS are."""
    found: dict[str, str] = planned.resources()[f'aws_lambda_function.this["{function}"]']["environment"][0][
        "variables"
    ]
    own = _VARIABLES.get(function, {})
    return {**found, **own, "AWS_LAMBDA_RUNTIME_API": api.address, "AWS_ENDPOINT_URL": aws.address}


def stream_record(table: str, pk: str, sk: str, image: dict[str, Any]) -> dict[str, Any]:
    return {
        "eventSource": "aws:dynamodb",
        "eventName": "INSERT",
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:123456789012:table/test-interlock-{table}/stream/x",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_772_359_200,
            "Keys": {"PK": {"S": pk}, "SK": {"S": sk}},
            "NewImage": {"PK": {"S": pk}, "SK": {"S": sk}, **image},
            "SequenceNumber": "100",
        },
    }


def queue_record(queue: str, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "messageId": "m-1",
        "receiptHandle": "h-1",
        "body": json.dumps(body),
        "attributes": {"SentTimestamp": "1772359200000", "ApproximateReceiveCount": "1", "MessageGroupId": "g"},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:test-interlock-{queue}",
    }


# ------------------------------------------------------------------------------------------------------- content


@pytest.mark.parametrize("function", offline.FUNCTIONS)
def test_a_package_has_what_its_function_imports_and_nothing_else(packages: Path, function: str) -> None:
    names = zipfile.ZipFile(packages / f"{function}.zip").namelist()
    tops = {name.split("/")[0] for name in names}
    assert not tops & {
        "boto3",
        "botocore",
        "greenlet",
        "litestar",
        "rich",
        "typer",
        "uvicorn",
        "yaml",
        "sqlalchemy",
        "pygments",
    }
    assert ("holidays" in tops) is (function not in ("event-sink", "alert-dispatcher"))
    assert ("slack_sdk" in tops) is (function == "alert-dispatcher")
    ours = {name for name in names if name.startswith("interlock/")}
    assert not [name for name in ours if name.startswith(("interlock/cli", "interlock/api", "interlock/embedded"))]
    assert {path.split("/src/")[1] for path in map(str, imports_of(function).modules.values())} <= ours
    assert any(name.endswith(".pyc") for name in ours), "a function would compile at every cold start"
    assert not [name for name in names if name.endswith((".pyi", "RECORD", "INSTALLER"))]


@pytest.mark.parametrize("function", offline.FUNCTIONS)
def test_nothing_is_left_out_that_is_loaded_at_once(function: str) -> None:
    found = imports_of(function)
    for name, path in found.modules.items():
        for needed in imported_at_once(path):
            module = needed if path_of(needed) is not None else needed.rpartition(".")[0]
            assert not needed.startswith("interlock.") or module in found.modules, f"{name} imports {needed}"
            third = needed.split(".")[0]
            known = third in found.packages or third in sys.stdlib_module_names or third in RUNTIME
            assert third == "interlock" or known, f"{name} imports {needed}"


@pytest.mark.parametrize("function", offline.FUNCTIONS)
def test_a_package_is_small(packages: Path, function: str) -> None:
    assert sum(one.file_size for one in zipfile.ZipFile(packages / f"{function}.zip").infolist()) <= LARGEST


def test_two_builds_make_the_same_bytes(packages: Path, tmp_path: Path) -> None:
    again = build(tmp_path, this_architecture(), ["event-sink"])
    first = json.loads((packages / "manifest.json").read_text(encoding="utf-8"))
    assert again["packages"]["event-sink"] == first["packages"]["event-sink"]
    assert (again["source"], again["architecture"]) == (first["source"], this_architecture())


# ------------------------------------------------------------------------------------------------------- started

_EVENT_SK = "1772359200000#JOB_COMPLETED#u"
_SAID = {
    "type": "JOB_COMPLETED",
    "severity": "info",
    "pipelineId": "x",
    "scheduleId": "stream",
    "date": "2026-03-01",
    "message": "done",
    "timestamp": "2026-03-01T10:00:00Z",
}
_EVENT = attributes.encode_item(_SAID)
_ALERT = {"environment": "test", "channel": "console", "alert": {"id": f"PIPELINE#x/{_EVENT_SK}", "event": _SAID}}
_EVENTS: dict[str, tuple[Any, Any]] = {
    "stream-router": (
        {"Records": [stream_record("control", "PIPELINE#x", "SENSOR#orders", {"complete": {"BOOL": True}})]},
        {"batchItemFailures": []},
    ),
    "sla-monitor": ({"mode": "cancel", **_RUN}, {"cancelled": True}),
    "event-sink": ({"Records": [stream_record("events", "PIPELINE#x", _EVENT_SK, _EVENT)]}, {"batchItemFailures": []}),
    # The attempt is not there any more: the execution ends.
    "orchestrator": ({"mode": "evaluate", **_RUN}, {"status": "superseded"}),
    "watchdog": ({"source": "interlock.schedule"}, {"failed": [], "slices": 1}),
    "alert-dispatcher": ({"Records": [queue_record("alerts.fifo", _ALERT)]}, {"batchItemFailures": []}),
}
_CALLS = {
    "stream-router": "GetItem",
    "sla-monitor": "GetItem",
    "event-sink": "PutEvents",
    "orchestrator": "GetItem",
    "watchdog": "Query",
    "alert-dispatcher": "TransactWriteItems",
}
_VARIABLES = {"alert-dispatcher": {"ALERTS": '[{"channel": "console"}]'}}


@pytest.mark.parametrize("function", offline.FUNCTIONS)
def test_a_package_answers_its_first_invocation(
    packages: Path, python: Path, function: str, api: RuntimeApi, aws: EmptyAws
) -> None:
    event, wanted = _EVENTS[function]
    with started(python, packages / function, f"{handler_module(function)}.handler", variables_of(function, api, aws)):
        answer = api.invoke(event)
    assert answer is not None
    assert (answer.failed, answer.body) == (False, wanted)
    assert _CALLS[function] in {call.partition(".")[2] for call in aws.calls}


@pytest.mark.parametrize("function", offline.FUNCTIONS)
def test_what_is_wrong_is_told_by_its_name(
    packages: Path, python: Path, function: str, api: RuntimeApi, aws: EmptyAws
) -> None:
    """Step Functions retries by these names; a variable that is missing fails the invocation, not the start."""
    variables = variables_of(function, api, aws)
    handler = f"{handler_module(function)}.handler"
    del variables["EVENTS_TABLE"]
    with started(python, packages / function, handler, variables):
        answer = api.invoke({"mode": "nonsense", **_RUN})
        assert answer is not None
        assert (answer.failed, answer.body["errorType"]) == (True, "SettingsError")
        assert "EVENTS_TABLE is missing" in answer.body["errorMessage"]
    with started(python, packages / function, handler, {**variables, "EVENTS_TABLE": "test-interlock-events"}):
        answer = api.invoke("nonsense")
        assert answer is not None
        assert (answer.failed, answer.body["errorType"]) == (True, "InvalidValueError")


@pytest.mark.parametrize("function", offline.FUNCTIONS)
def test_a_function_that_is_stopped_at_its_timeout_starts_anew(
    packages: Path, python: Path, function: str, api: RuntimeApi, aws: EmptyAws
) -> None:
    """Lambda ends the process that did not answer in time (`Sandbox.Timedout`), and the next one begins afresh."""
    handler, variables = f"{handler_module(function)}.handler", variables_of(function, api, aws)
    event, wanted = _EVENTS[function]
    aws.mute = True
    with started(python, packages / function, handler, variables):
        api.send(event)
        assert aws.reached.wait(60)
        assert api.answer(seconds=0.2) is None
    aws.mute = False
    with started(python, packages / function, handler, variables):
        answer = api.invoke(event)
    assert answer is not None
    assert answer.body == wanted

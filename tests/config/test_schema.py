"""The JSON Schema for editors: accepts what the loader accepts, points at what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from interlock.config.documents import Document, read_document
from interlock.config.schema import DIALECT, pipeline_schema
from interlock.model.config import Job
from interlock.model.config_descriptions import DESCRIPTIONS

EXAMPLES = sorted((Path(__file__).parent / "examples" / "pipelines").iterdir())
SCHEMA = pipeline_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def document(path: Path) -> dict[str, object]:
    read = read_document(path.name, path.read_bytes())
    assert isinstance(read, Document)
    return read.value


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_validates(path: Path) -> None:
    VALIDATOR.validate(document(path))


VALID: dict[str, Any] = {
    "pipeline": {"id": "p"},
    "validation": {"rules": [{"key": "k", "check": "exists"}]},
    "job": {"type": "external"},
}


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({}, True),
        ({"job": {}}, False),
        ({"job": {}, "archetype": "x"}, True),
        ({"archetype": "x", "validation": {}}, True),
        ({"schedul": {}}, False),
        ({"job": {"type": "external", "maxRetries": 10}}, True),
        ({"job": {"type": "external", "maxRetries": 11}}, False),
        ({"job": {"type": "external", "retryDelay": "90s"}}, True),
        ({"job": {"type": "external", "retryDelay": "90 s"}}, False),
        ({"job": {"type": "external", "retryDelay": 90}}, False),
        ({"validation": {"mode": "aLl", "rules": [{"key": "k", "check": "EXISTS"}]}}, True),
        ({"validation": {"mode": "some", "rules": [{"key": "k", "check": "exists"}]}}, False),
        ({"validation": {"rules": []}}, False),
        ({"exclusions": {"days": ["Mon", "THURS", "sunday"], "calendar": "c"}}, True),
        ({"exclusions": {"days": ["mo"]}}, False),
        ({"schedule": {"calendar": "c", "time": "08:00"}}, True),
        ({"schedule": {"time": "8 o'clock"}}, False),
        ({"job": {"type": "command", "config": {"command": ["etl"], "timeout": "1h"}}}, True),
        ({"job": {"type": "command", "config": {"command": "etl ${DATE}", "timeout": "${INTERLOCK_LIMIT}"}}}, True),
        ({"job": {"type": "command"}}, False),
        ({"job": {"type": "command", "config": {}}}, False),
        ({"job": {"type": "command", "config": {}}, "archetype": "x"}, True),
        ({"job": {"type": "command", "config": {"command": ["etl"], "timeout": 60}}}, False),
        ({"job": {"type": "command", "config": {"command": ["etl"], "cmd": "x"}}}, False),
        ({"job": {"type": "command", "config": {"cmd": "x"}}, "archetype": "x"}, False),
        ({"job": {"type": "external", "config": {"a": 1}}}, False),
        ({"job": {"type": "http", "config": {"url": "http://a", "expect": [200, "${INTERLOCK_CODE}"]}}}, True),
        ({"job": {"type": "http", "config": {"url": "http://a", "auth": {"type": "bearer", "token": "x"}}}}, True),
        ({"job": {"type": "http", "config": {"url": "http://a", "auth": {"token": "x"}}}}, False),
        ({"job": {"type": "glue", "config": {"jobName": "x", "numberOfWorkers": 2, "region": "eu-west-1"}}}, True),
        ({"job": {"type": "glue", "config": {"jobName": "x", "numberOfWorkers": "two"}}}, False),
        ({"job": {"type": "step-function", "config": {"stateMachineArn": "arn:x", "input": [1]}}}, True),
        ({"sla": None}, True),
        ({"postRun": {"driftThreshold": "2%"}}, True),
        ({"postRun": {"driftThreshold": 0.5}}, True),
        ({"postRun": {"driftThreshold": "2"}}, False),
    ],
)
def test_the_schema_agrees_with_the_loader(change: dict[str, object], accepted: bool) -> None:
    assert VALIDATOR.is_valid({**VALID, **change}) is accepted


def test_it_is_json_of_the_right_dialect_with_readable_defaults() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"] == DIALECT
    evaluation = SCHEMA["$defs"]["Evaluation"]["properties"]
    assert (evaluation["window"]["default"], evaluation["interval"]["default"]) == ("1h", "5m")
    assert SCHEMA["$defs"]["Job"]["properties"]["maxRetries"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 10,
        "default": 0,
        "description": DESCRIPTIONS[Job]["maxRetries"],
    }

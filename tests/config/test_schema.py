"""The JSON Schema for editors: accepts what the loader accepts, points at what it refuses."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.config.documents import Document, read_document
from interlock.config.schema import DIALECT, pipeline_schema

EXAMPLES = sorted((Path(__file__).parent / "examples" / "pipelines").iterdir())
SCHEMA = pipeline_schema()
KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def violations(value: object, schema: dict[str, Any]) -> Iterator[str]:
    """Enough of JSON Schema for the schema at hand; an unknown keyword fails the test that meets it."""
    for keyword, rule in schema.items():
        match keyword:
            case "$schema" | "title" | "description" | "default" | "$defs" | "then" | "else":
                pass
            case "$ref":
                yield from violations(value, SCHEMA["$defs"][rule.removeprefix("#/$defs/")])
            case "anyOf":
                if all(list(violations(value, one)) for one in rule):
                    yield f"{value!r} fits none of {rule}"
            case "if":
                if list(violations(value, rule)):
                    yield from violations(value, schema["else"])
            case "type":
                if not isinstance(value, KINDS[rule]) or (isinstance(value, bool) and rule != "boolean"):
                    yield f"{value!r} is not of type {rule}"
            case "enum":
                if value not in rule:
                    yield f"{value!r} is not in {rule}"
            case _:
                yield from _bounds(value, keyword, rule, schema)


def _bounds(value: object, keyword: str, rule: Any, schema: dict[str, Any]) -> Iterator[str]:
    match keyword, value:
        case "properties", dict():
            for name, inner in rule.items():
                if name in value:
                    yield from violations(value[name], inner)
        case "additionalProperties", dict():
            yield from (f"{name} is unknown" for name in value if name not in schema["properties"])
        case "required", dict():
            yield from (f"{name} is missing" for name in rule if name not in value)
        case "items", list():
            for item in value:
                yield from violations(item, rule)
        case "pattern", str() if not re.search(rule, value):
            yield f"{value!r} does not match {rule}"
        case "minLength" | "minItems", str() | list() if len(value) < rule:
            yield f"{value!r} is too short"
        case "minimum", int() | float() if value < rule:
            yield f"{value} < {rule}"
        case "maximum", int() | float() if value > rule:
            yield f"{value} > {rule}"
        case _:
            known = {"properties", "additionalProperties", "required", "items", "pattern"}
            assert keyword in known | {"minLength", "minItems", "minimum", "maximum"}, keyword


def document(path: Path) -> dict[str, object]:
    read = read_document(path.name, path.read_bytes())
    assert isinstance(read, Document)
    return read.value


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_validates(path: Path) -> None:
    assert list(violations(document(path), SCHEMA)) == []


def test_every_example_validates_with_jsonschema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for path in EXAMPLES:
        jsonschema.Draft202012Validator(SCHEMA).validate(document(path))


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
        ({"sla": None}, True),
        ({"postRun": {"driftThreshold": "2%"}}, True),
        ({"postRun": {"driftThreshold": 0.5}}, True),
        ({"postRun": {"driftThreshold": "2"}}, False),
    ],
)
def test_the_schema_agrees_with_the_loader(change: dict[str, object], accepted: bool) -> None:
    assert (list(violations({**VALID, **change}, SCHEMA)) == []) is accepted


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
    }

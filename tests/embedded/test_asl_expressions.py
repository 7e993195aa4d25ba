"""What the states of a definition are made of: paths, payload templates, conditions."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.embedded.asl.choice import compile_condition, holds
from interlock.embedded.asl.paths import ABSENT, DefinitionError, Path, Scope, StatesError
from interlock.embedded.asl.templates import Template

Json = Any


# -------------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", {"a": {"b": {"c": None}}, "x-y": 2}),
        ("$.a.b", {"c": None}),
        ("$.a.b.c", None),
        ("$.x-y", 2),
        ("$.a.nothing", ABSENT),
        ("$.x-y.deeper", ABSENT),
    ],
)
def test_a_path_finds_one_node_or_says_that_there_is_none(path: str, expected: Json) -> None:
    assert Path(path).find({"a": {"b": {"c": None}}, "x-y": 2}) == expected


@pytest.mark.parametrize(
    "path", ["", "a", "$a", "$.", "$..a", "$.a[0]", "$['a']", "$.a[*]", "$.a[?(@.b)]", "$.a b", "$.1"]
)
def test_a_path_of_more_than_names_is_refused(path: str) -> None:
    with pytest.raises(DefinitionError, match="is not a path"):
        Path(path)


names = st.text("abcxyz", min_size=1, max_size=3)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)


def has_room(data: Json, steps: list[str]) -> bool:
    """Only what is an object, or not there at all, can get a member."""
    if not steps:
        return True
    return isinstance(data, dict) and has_room(data.get(steps[0], {}), steps[1:])


@given(st.dictionaries(names, documents), st.lists(names, min_size=1, max_size=4), documents)
def test_what_is_put_at_a_path_is_found_there_and_nothing_else_changes(
    data: dict[str, Json], steps: list[str], value: Json
) -> None:
    before = msgspec.json.encode(data)
    path = Path("$." + ".".join(steps))
    if not has_room(data, steps):
        with pytest.raises(StatesError, match=r"States\.ResultPathMatchFailure"):
            path.put(data, value)
    else:
        placed = path.put(data, value)
        assert path.find(placed) == value
        del placed[steps[0]]
        assert placed == {name: inner for name, inner in data.items() if name != steps[0]}
    assert msgspec.json.encode(data) == before


# ----------------------------------------------------------------------------------------------- templates

DATA = {"n": 5, "t": "x", "b": True, "half": 2.5, "list": [1]}
SCOPE = Scope(DATA, {"Execution": {"Name": "one"}})


def value_of(expression: str) -> Json:
    return Template({"x.$": expression}).fill(SCOPE, "Field")["x"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("States.MathAdd($.n, 1)", 6),
        ("States.MathAdd( $.n , -7 )", -2),
        ("$.n", 5),
        ("$.list", [1]),
        ("$$.Execution.Name", "one"),
    ],
)
def test_an_expression_has_its_value(expression: str, expected: Json) -> None:
    value = value_of(expression)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("States.MathAdd($.t, 1)", "States.IntrinsicFailure"),
        ("States.MathAdd($.b, 1)", "States.IntrinsicFailure"),
        ("States.MathAdd($.half, 1)", "States.IntrinsicFailure"),
        ("States.MathAdd($.absent, 1)", "States.Runtime"),
        ("$.absent", "States.Runtime"),
    ],
)
def test_an_expression_that_can_not_be_computed_has_a_named_error(expression: str, error: str) -> None:
    with pytest.raises(StatesError) as caught:
        value_of(expression)
    assert caught.value.error == error
    assert "Field" in caught.value.cause


@pytest.mark.parametrize(
    "expression",
    [
        "States.UUID()",
        "States.Format('{}', $.n)",
        "States.MathAdd($.n)",
        "States.MathAdd($.n, 2, 3)",
        "States.MathAdd($.n 2)",
        "States.MathAdd($.n, 1.5)",
        "States.MathAdd(1, 2)",
        "States.MathAdd($.a.$.b, 2)",
        "States.MathAdd($.n, 2) and more",
        "'text'",
        "MathAdd(1, 2)",
    ],
)
def test_an_expression_that_is_not_known_is_refused(expression: str) -> None:
    with pytest.raises(DefinitionError):
        Template({"x.$": expression})


def test_a_template_computes_what_ends_in_dollar_and_keeps_the_rest() -> None:
    template = Template({"a": 1, "b.$": "$.n", "c": {"d.$": "States.MathAdd($.n, 1)", "e": "$.n"}})
    assert template.fill(SCOPE, "Parameters") == {"a": 1, "b": 5, "c": {"d": 6, "e": "$.n"}}


def test_a_list_in_a_template_is_refused() -> None:
    with pytest.raises(DefinitionError, match="not the list"):
        Template({"a": [{"b.$": "$.n"}]})


# -------------------------------------------------------------------------------------------------- choices

FACTS = {"n": 5, "f": 5.0, "s": "ready", "b": True, "null": None}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"Variable": "$.n", "NumericGreaterThanEquals": 5}, True),
        ({"Variable": "$.f", "NumericGreaterThanEquals": 5}, True),
        ({"Variable": "$.n", "NumericGreaterThanEquals": 5.5}, False),
        ({"Variable": "$.b", "NumericGreaterThanEquals": 1}, False),
        ({"Variable": "$.s", "NumericGreaterThanEquals": 1}, False),
        ({"Variable": "$.n", "StringEquals": "5"}, False),
        ({"Variable": "$.s", "StringEquals": "ready"}, True),
        ({"Variable": "$.s", "StringEquals": "Ready"}, False),
        ({"Variable": "$.null", "StringEquals": ""}, False),
        ({"Variable": "$.b", "BooleanEquals": True}, True),
        ({"Variable": "$.b", "BooleanEquals": False}, False),
        ({"Variable": "$.n", "BooleanEquals": True}, False),
        ({"Variable": "$.null", "IsPresent": True}, True),
        ({"Variable": "$.absent", "IsPresent": False}, True),
        ({"Variable": "$.absent", "IsPresent": True}, False),
        ({"Variable": "$$.Execution.Name", "StringEquals": "one"}, True),
        ({"And": [{"Variable": "$.x", "IsPresent": True}, {"Variable": "$.x", "BooleanEquals": True}]}, False),
        ({"And": [{"Variable": "$.b", "IsPresent": True}, {"Variable": "$.b", "BooleanEquals": True}]}, True),
        ({"Comment": "why", "Variable": "$.s", "StringEquals": "ready"}, True),
    ],
)
def test_a_condition_holds_or_not(rule: Mapping[str, Json], expected: bool) -> None:
    assert holds(compile_condition(rule), Scope(FACTS, {"Execution": {"Name": "one"}})) is expected


@pytest.mark.parametrize(
    "rule",
    [
        {"Variable": "$.absent", "StringEquals": "x"},
        {"Variable": "$.absent", "NumericGreaterThanEquals": 1},
        {"And": [{"Variable": "$.absent", "BooleanEquals": True}]},
    ],
)
def test_a_condition_on_what_is_not_there_is_a_runtime_error(rule: Mapping[str, Json]) -> None:
    with pytest.raises(StatesError, match=r"States\.Runtime: .*absent"):
        holds(compile_condition(rule), Scope(FACTS, {}))


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"Variable": "$.n"},
        {"StringEquals": "x"},
        {"Variable": "$.n", "NumericGreaterThanEquals": "5"},
        {"Variable": "$.n", "NumericGreaterThanEquals": True},
        {"Variable": "$.n", "NumericEquals": 5},
        {"Variable": "$.n", "NumericGreaterThanEqualsPath": "$.f"},
        {"Variable": "$.s", "StringMatches": "*"},
        {"Variable": "$.n", "IsPresent": "yes"},
        {"Variable": "$.n", "IsNull": True},
        {"Variable": "$.s", "StringEquals": "a", "BooleanEquals": True},
        {"And": []},
        {"Or": [{"Variable": "$.n", "IsPresent": True}]},
        {"Not": {"Variable": "$.n", "IsPresent": True}},
        {"And": [{"Variable": "$.n", "IsPresent": True}], "Variable": "$.n"},
    ],
)
def test_a_condition_that_is_not_known_is_refused(rule: Mapping[str, Json]) -> None:
    with pytest.raises(DefinitionError):
        compile_condition(rule)

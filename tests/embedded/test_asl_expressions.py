"""What the states of a definition are made of: paths, intrinsic functions, payload templates, conditions."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.embedded.asl.choice import compile_condition, holds
from interlock.embedded.asl.intrinsics import Formula, Template
from interlock.embedded.asl.paths import ABSENT, DefinitionError, Path, Scope, StatesError

Json = Any


# -------------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", {"a": {"b": [1, {"c d": None}]}, "x-y": 2}),
        ("$.a.b[0]", 1),
        ("$['a']['b'][1]", {"c d": None}),
        ('$.a.b[1]["c d"]', None),
        ("$.x-y", 2),
        ("$.a.nothing", ABSENT),
        ("$.a.b[2]", ABSENT),
        ("$.a[0]", ABSENT),
        ("$.x-y.deeper", ABSENT),
    ],
)
def test_a_path_finds_one_node_or_says_that_there_is_none(path: str, expected: Json) -> None:
    data = {"a": {"b": [1, {"c d": None}]}, "x-y": 2}
    assert Path(path).find(data) == expected


@pytest.mark.parametrize("path", ["", "a", "$a", "$.", "$..a", "$.a[*]", "$.a[0:2]", "$.a[?(@.b)]", "$.a b", "$.a[-1]"])
def test_a_path_that_may_select_several_nodes_is_refused(path: str) -> None:
    with pytest.raises(DefinitionError, match="is not a path to one value"):
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


# ---------------------------------------------------------------------------------------------- intrinsics

DATA = {"n": 5, "t": "x", "list": [1, "1", True, {"k": 1}], "half": 2.5, "json": '{"a": [1]}', "nothing": None}


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("States.MathAdd($.n, 1)", 6),
        ("States.MathAdd($.half, 0)", 3),
        ("States.MathAdd(-2.5, 0)", -2),
        ("States.Format('{} is {}', $.t, $.n)", "x is 5"),
        ("States.Format('it\\'s \\{\\} {}', $.nothing)", "it's {} null"),
        ("States.Format('{} {}', $.list, true)", "[1, 1, true, {k=1}] true"),
        ("States.Format($.t)", "x"),
        ("States.JsonToString($.list)", '[1,"1",true,{"k":1}]'),
        ("States.StringToJson($.json)", {"a": [1]}),
        ("States.Array()", []),
        ("States.Array(1, 'it\\'s', null, $.n, States.Array( 2 ))", [1, "it's", None, 5, [2]]),
        ("States.ArrayLength($.list)", 4),
        ("States.ArrayContains($.list, 1)", True),
        ("States.ArrayContains($.list, false)", False),
        ("States.ArrayContains(States.Array(1), true)", False),
        ("States.ArrayGetItem($.list, 3)", {"k": 1}),
        ("States.ArrayGetItem($['list'], States.MathAdd($.n, -5))", 1),
        ("$.n", 5),
        ("$$.State.Name", "Here"),
    ],
)
def test_an_expression_has_its_value(formula: str, expected: Json) -> None:
    value = Formula(formula).value(Scope(DATA, {"State": {"Name": "Here"}}), "Field")
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("formula", "error"),
    [
        ("States.MathAdd($.t, 1)", "States.IntrinsicFailure"),
        ("States.MathAdd(true, 1)", "States.IntrinsicFailure"),
        ("States.Format('{}')", "States.IntrinsicFailure"),
        ("States.Format($.n, 1)", "States.IntrinsicFailure"),
        ("States.StringToJson('not json')", "States.IntrinsicFailure"),
        ("States.StringToJson($.n)", "States.IntrinsicFailure"),
        ("States.ArrayGetItem($.list, 4)", "States.IntrinsicFailure"),
        ("States.ArrayGetItem($.list, -1)", "States.IntrinsicFailure"),
        ("States.ArrayLength($.t)", "States.IntrinsicFailure"),
        ("States.ArrayLength($.absent)", "States.Runtime"),
    ],
)
def test_an_expression_that_can_not_be_computed_has_a_named_error(formula: str, error: str) -> None:
    with pytest.raises(StatesError) as caught:
        Formula(formula).value(Scope(DATA, {}), "Field")
    assert caught.value.error == error
    assert "Field" in caught.value.cause


@pytest.mark.parametrize(
    "formula",
    [
        "States.UUID()",
        "States.MathAdd(1)",
        "States.MathAdd(1, 2, 3)",
        "States.MathAdd(1 2)",
        "States.MathAdd(1,",
        "States.MathAdd(1, )",
        "States.MathAdd(1, 2) and more",
        "States.Format('open)",
        "'text'",
        "MathAdd(1, 2)",
    ],
)
def test_an_expression_that_is_not_in_the_language_is_refused(formula: str) -> None:
    with pytest.raises(DefinitionError):
        Formula(formula)


def test_a_template_computes_what_ends_in_dollar_and_keeps_the_rest() -> None:
    template = Template(
        {"a": 1, "b.$": "$.n", "c": {"d.$": "States.Array($.t)", "e": [{"f.$": "$$.State.Name"}, "$.n"]}}
    )
    filled = template.fill(Scope(DATA, {"State": {"Name": "Here"}}), "Parameters")
    assert filled == {"a": 1, "b": 5, "c": {"d": ["x"], "e": [{"f": "Here"}, "$.n"]}}


# -------------------------------------------------------------------------------------------------- choices

FACTS = {
    "n": 5,
    "f": 5.0,
    "s": "log-1*.txt",
    "b": True,
    "null": None,
    "t": "2026-03-02T08:00:00Z",
    "later": "2026-03-02T10:00:00.5+01:00",
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"Variable": "$.n", "NumericEquals": 5.0}, True),
        ({"Variable": "$.n", "NumericEqualsPath": "$.f"}, True),
        ({"Variable": "$.n", "NumericLessThan": 5}, False),
        ({"Variable": "$.n", "NumericLessThanEquals": 5}, True),
        ({"Variable": "$.n", "NumericGreaterThan": 4}, True),
        ({"Variable": "$.n", "NumericGreaterThanEqualsPath": "$.f"}, True),
        ({"Variable": "$.b", "NumericEquals": 1}, False),
        ({"Variable": "$.n", "StringEquals": "5"}, False),
        ({"Variable": "$.s", "StringEquals": "log-1*.txt"}, True),
        ({"Variable": "$.s", "StringLessThan": "m"}, True),
        ({"Variable": "$.s", "StringGreaterThanEqualsPath": "$.s"}, True),
        ({"Variable": "$.s", "StringMatches": "log-*.txt"}, True),
        ({"Variable": "$.s", "StringMatches": "log-1\\*.txt"}, True),
        ({"Variable": "$.s", "StringMatches": "log-\\*.txt"}, False),
        ({"Variable": "$.n", "StringMatches": "*"}, False),
        ({"Variable": "$.b", "BooleanEquals": True}, True),
        ({"Variable": "$.b", "BooleanEqualsPath": "$.b"}, True),
        ({"Variable": "$.n", "BooleanEquals": True}, False),
        ({"Variable": "$.t", "TimestampLessThanPath": "$.later"}, True),
        ({"Variable": "$.t", "TimestampEquals": "2026-03-02T09:00:00+01:00"}, True),
        ({"Variable": "$.s", "TimestampEquals": "2026-03-02T09:00:00+01:00"}, False),
        ({"Variable": "$.null", "IsNull": True}, True),
        ({"Variable": "$.n", "IsNull": False}, True),
        ({"Variable": "$.f", "IsNumeric": True}, True),
        ({"Variable": "$.b", "IsNumeric": True}, False),
        ({"Variable": "$.s", "IsString": True}, True),
        ({"Variable": "$.b", "IsBoolean": True}, True),
        ({"Variable": "$.t", "IsTimestamp": True}, True),
        ({"Variable": "$.s", "IsTimestamp": True}, False),
        ({"Variable": "$.null", "IsPresent": True}, True),
        ({"Variable": "$.absent", "IsPresent": False}, True),
        ({"Variable": "$$.State.Name", "StringEquals": "Here"}, True),
        ({"Not": {"Variable": "$.n", "NumericEquals": 5}}, False),
        ({"And": [{"Variable": "$.x", "IsPresent": True}, {"Variable": "$.x", "IsNull": True}]}, False),
        ({"Or": [{"Variable": "$.n", "IsNumeric": True}, {"Variable": "$.absent", "IsNull": True}]}, True),
        ({"Or": [{"Variable": "$.n", "IsString": True}, {"Not": {"Variable": "$.n", "IsString": True}}]}, True),
        ({"Comment": "why", "Variable": "$.n", "IsString": False}, True),
    ],
)
def test_a_condition_holds_or_not(rule: Mapping[str, Json], expected: bool) -> None:
    assert holds(compile_condition(rule), Scope(FACTS, {"State": {"Name": "Here"}})) is expected


@pytest.mark.parametrize(
    "rule",
    [
        {"Variable": "$.absent", "StringEquals": "x"},
        {"Variable": "$.absent", "IsNull": True},
        {"Variable": "$.absent", "StringMatches": "*"},
        {"Variable": "$.n", "NumericEqualsPath": "$.absent"},
        {"Not": {"Variable": "$.absent", "NumericEquals": 1}},
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
        {"NumericEquals": 5},
        {"Variable": "$.n", "NumericEquals": "5"},
        {"Variable": "$.n", "NumericEquals": True},
        {"Variable": "$.n", "NumericEqualsPath": 5},
        {"Variable": "$.n", "BooleanLessThan": True},
        {"Variable": "$.n", "StringMatchesPath": "$.s"},
        {"Variable": "$.n", "IsNull": "yes"},
        {"Variable": "$.n", "TimestampEquals": "yesterday"},
        {"Variable": "$.n", "NumericEquals": 5, "NumericLessThan": 6},
        {"And": []},
        {"Not": []},
        {"And": [{"Variable": "$.n", "IsNull": True}], "Variable": "$.n"},
    ],
)
def test_a_condition_that_is_not_in_the_language_is_refused(rule: Mapping[str, Json]) -> None:
    with pytest.raises(DefinitionError):
        compile_condition(rule)

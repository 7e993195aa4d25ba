"""The interpreter by itself: what it refuses to load, and every state but the Task. And that it has no more than the
lifecycle uses.
"""

import re
from collections.abc import Iterator, Mapping
from typing import get_args

import msgspec
import pytest

from interlock.embedded.asl import choice, definition, templates
from interlock.embedded.asl.execution import ExecutionState, Status, context_of
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.asl.paths import ALL, TIMEOUT, DefinitionError
from interlock.embedded.asl.update_item import UPDATE_ITEM
from tests.conformance.lifecycle_scenarios import lifecycle
from tests.embedded.asl_play import TASK, Json, begin, machine


def run_pass(state: Mapping[str, Json], data: Json) -> ExecutionState:
    return begin(machine(Only={"Type": "Pass", "Next": "Done", **state}), data).execution


# ------------------------------------------------------------------------------- as much as the lifecycle uses

DOCUMENT = lifecycle()
STATES: list[Mapping[str, Json]] = list(DOCUMENT["States"].values())
STRUCTS: dict[str, type[msgspec.Struct]] = {
    "Task": definition.Task,
    "Pass": definition.Pass,
    "Choice": definition.Choice,
    "Succeed": definition.Succeed,
    "Fail": definition.Fail,
}


def fields_of(struct: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)} - {"Comment"}


def used_fields(objects: list[Mapping[str, Json]]) -> set[str]:
    return {name for one in objects for name in one} - {"Comment", "Type"}


def conditions(rules: list[Mapping[str, Json]]) -> Iterator[str]:
    for rule in rules:
        yield from conditions(rule.get("And", []))
        yield from (name for name in rule if name not in ("Variable", "Next", "Comment"))


def texts(value: Json) -> Iterator[str]:
    match value:
        case dict():
            for inner in value.values():
                yield from texts(inner)
        case list():
            for inner in value:
                yield from texts(inner)
        case str():
            yield value
        case _:
            pass


def test_every_kind_of_state_is_in_the_lifecycle() -> None:
    known = {one.__struct_config__.tag for one in get_args(definition.State)}
    assert known == {state["Type"] for state in STATES} == set(STRUCTS)


@pytest.mark.parametrize("kind", STRUCTS)
def test_every_field_of_a_state_is_in_the_lifecycle(kind: str) -> None:
    assert fields_of(STRUCTS[kind]) == used_fields([state for state in STATES if state["Type"] == kind])


def test_every_field_of_the_rest_is_in_the_lifecycle() -> None:
    assert fields_of(definition._Document) == set(DOCUMENT) - {"Comment"}
    for name, struct in (("Retry", definition.Retrier), ("Catch", definition.Catcher)):
        assert fields_of(struct) == used_fields([one for state in STATES for one in state.get(name, [])])


def test_every_condition_function_and_name_is_in_the_lifecycle() -> None:
    rules = [rule for state in STATES for rule in state.get("Choices", [])]
    assert set(conditions(rules)) == {"And", choice.IS_PRESENT, *choice.COMPARISONS}
    found = set(texts(DOCUMENT))
    named = {name for text in found for name in re.findall(r"States\.\w+", text)}
    assert named == {templates.MATH_ADD, ALL, TIMEOUT}
    seen = context_of(begin(machine(T=TASK)).execution, token="token")
    assert {text for text in found if text.startswith("$$")} == {
        f"$$.{group}.{name}" for group, names in seen.items() for name in names
    }
    services = {state["Resource"] for state in STATES if state.get("Resource", "").startswith("arn:aws:states")}
    assert services == {UPDATE_ITEM}


# ------------------------------------------------------------------------------------------------- loading

END = {"Type": "Succeed"}
CHOICE = {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsPresent": True, "Next": "A"}], "Default": "A"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"StartAt": "A"}, "missing required field `States`"),
        ({"StartAt": "A", "States": {}}, "length >= 1"),
        ({"StartAt": "B", "States": {"A": END}}, "StartAt leads to 'B'"),
        ({"StartAt": "A", "States": {"A": END}, "QueryLanguage": "JSONata"}, "QueryLanguage"),
    ],
)
def test_a_document_that_is_no_machine_is_refused_when_it_is_loaded(document: Json, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Machine.load(document)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({**TASK, "Next": "B"}, "state 'A' leads to 'B'"),
        ({"Type": "Task", "Resource": "work"}, "missing required field `Next`"),
        ({**TASK, "End": True}, "unknown field `End`"),
        ({**TASK, "HeartbeatSeconds": 5}, "unknown field `HeartbeatSeconds`"),
        ({"Type": "Map", "Next": "Done"}, "state 'A': Invalid value 'Map'"),
        ({"Type": "Wait", "Seconds": 1, "Next": "Done"}, "state 'A': Invalid value 'Wait'"),
        ({"Type": "Pass", "Next": "Done", "InputPath": "$.a[*]"}, "InputPath"),
        ({"Type": "Pass", "Next": "Done", "InputPath": 5}, "a path is expected"),
        ({**TASK, "ResultPath": "$$.x"}, "context object"),
        ({"Type": "Fail", "Error": "x", "CausePath": "$.e"}, "unknown field `CausePath`|missing required field"),
        ({**CHOICE, "Choices": []}, "length >= 1"),
        ({**CHOICE, "Choices": [{"Variable": "$.a", "IsPresent": True}]}, "a condition and a Next"),
        ({**CHOICE, "Default": "B"}, "leads to 'B'"),
        ({"Type": "Choice", "Choices": CHOICE["Choices"]}, "missing required field `Default`"),
        ({**TASK, "Catch": [{"ErrorEquals": ["X"], "Next": "B"}]}, "leads to 'B'"),
        ({**TASK, "Retry": [{"ErrorEquals": ["States.ALL", "X"]}]}, "must stand alone"),
        ({**TASK, "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["X"]}]}, "must stand alone"),
        ({**TASK, "Retry": [{"ErrorEquals": ["X"], "JitterStrategy": "FULL"}]}, "JitterStrategy"),
        ({**TASK, "Parameters": {"a.$": 5}}, r"'a\.\$' must hold"),
    ],
)
def test_a_state_that_would_not_run_is_refused_when_it_is_loaded(state: Json, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        machine(A=state)


# -------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("state", "data", "output"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"Result": {"b": 2}}, {"a": 1}, {"b": 2}),
        ({"Result": None}, {"a": 1}, None),
        ({"Result": 7, "ResultPath": "$.deep.er"}, {"a": 1}, {"a": 1, "deep": {"er": 7}}),
        ({"InputPath": "$.a"}, {"a": {"b": 1}}, {"b": 1}),
        ({"InputPath": "$.a", "ResultPath": "$.copy"}, {"a": 1}, {"a": 1, "copy": 1}),
        ({"Parameters": {"x.$": "$.b"}, "InputPath": "$.a"}, {"a": {"b": 1}}, {"x": 1}),
        ({"Parameters": {"x": 1}, "Result": 2}, {}, 2),
        ({"Parameters": {"n.$": "$$.Execution.Name"}}, {}, {"n": "one"}),
    ],
)
def test_pass_shapes_the_data(state: Mapping[str, Json], data: Json, output: Json) -> None:
    execution = run_pass(state, data)
    assert execution.status is Status.SUCCEEDED
    assert execution.data == output


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ({"InputPath": "$.absent"}, "States.Runtime"),
        ({"Parameters": {"x.$": "$.absent"}}, "States.Runtime"),
        ({"Result": 1, "ResultPath": "$.text.inside"}, "States.ResultPathMatchFailure"),
    ],
)
def test_pass_on_data_that_does_not_fit_fails_the_execution(state: Mapping[str, Json], error: str) -> None:
    execution = run_pass(state, {"text": "t", "list": []})
    assert (execution.status, execution.error) == (Status.FAILED, error)
    assert execution.cause


def choosing() -> Machine:
    rule = {"Variable": "$.n", "NumericGreaterThanEquals": 4, "Next": "Big"}
    return machine(
        C={"Type": "Choice", "Choices": [rule, {**rule, "Next": "Never"}], "Default": "Small"},
        Big=END,
        Never={"Type": "Fail", "Error": "never", "Cause": "the first rule holds"},
        Small=END,
    )


@pytest.mark.parametrize(("n", "last"), [(4, "Big"), (3, "Small")])
def test_choice_takes_the_first_rule_that_holds_or_the_default(n: int, last: str) -> None:
    effect = begin(choosing(), {"n": n})
    assert effect.entered == ("C", last)
    assert effect.execution.data == {"n": n}


def test_choice_on_a_missing_path_fails_even_with_a_default() -> None:
    execution = begin(choosing(), {}).execution
    assert (execution.status, execution.error) == (Status.FAILED, "States.Runtime")


def test_fail_ends_with_its_error() -> None:
    execution = begin(machine(F={"Type": "Fail", "Error": "E", "Cause": "why"})).execution
    assert (execution.status, execution.error, execution.cause) == (Status.FAILED, "E", "why")


def test_a_loop_without_a_task_or_a_wait_ends() -> None:
    execution = begin(machine(A={"Type": "Pass", "Next": "B"}, B={"Type": "Pass", "Next": "A"})).execution
    assert (execution.status, execution.error) == (Status.FAILED, "States.Runtime")
    assert "forever" in (execution.cause or "")

"""The interpreter by itself: what it refuses to load, and every state but the Task."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest

from interlock.embedded.asl.execution import ExecutionState, Status, Suspend
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.asl.paths import DefinitionError
from tests.embedded.asl_play import NOW, TASK, Json, begin, machine


def run_pass(state: Mapping[str, Json], data: Json) -> ExecutionState:
    return begin(machine(Only={"Type": "Pass", "End": True, **state}), data).execution


# ------------------------------------------------------------------------------------------------- loading

END = {"Type": "Succeed"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"StartAt": "A"}, "missing required field `States`"),
        ({"StartAt": "A", "States": {}}, "length >= 1"),
        ({"StartAt": "B", "States": {"A": END}}, "StartAt leads to 'B'"),
        ({"StartAt": "A", "States": {"A": {**TASK, "Next": "B"}}}, "state 'A' leads to 'B'"),
        ({"StartAt": "A", "States": {"A": {**TASK}}}, "exactly one of Next and End"),
        ({"StartAt": "A", "States": {"A": {**TASK, "Next": "A", "End": True}}}, "exactly one of Next and End"),
        ({"StartAt": "A", "States": {"A": {"Type": "Map", "End": True}}}, "state 'A': Invalid value 'Map'"),
        ({"StartAt": "A", "States": {"A": {**TASK, "End": True, "Assign": {}}}}, "unknown field `Assign`"),
        ({"StartAt": "A", "States": {"A": END}, "QueryLanguage": "JSONata"}, "QueryLanguage"),
        ({"StartAt": "A", "States": {"A": {**TASK, "End": True, "InputPath": "$.a[*]"}}}, "InputPath"),
        ({"StartAt": "A", "States": {"A": {**TASK, "End": True, "InputPath": 5}}}, "a path is expected"),
        ({"StartAt": "A", "States": {"A": {**TASK, "End": True, "ResultPath": "$$.x"}}}, "context object"),
        ({"StartAt": "A", "States": {"A": {**TASK, "End": True, "TimeoutSeconds": 0}}}, "TimeoutSeconds"),
        (
            {"StartAt": "A", "States": {"A": {**TASK, "End": True, "TimeoutSeconds": 1, "TimeoutSecondsPath": "$.a"}}},
            "only one of",
        ),
        ({"StartAt": "A", "States": {"A": {"Type": "Wait", "Next": "A"}}}, "a Wait needs one of"),
        (
            {"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 1, "SecondsPath": "$.a", "End": True}}},
            "one of",
        ),
        (
            {"StartAt": "A", "States": {"A": {"Type": "Wait", "Timestamp": "2026-03-02T08:00:00", "End": True}}},
            "Timestamp",
        ),
        ({"StartAt": "A", "States": {"A": {"Type": "Fail", "Error": "x", "ErrorPath": "$.e"}}}, "only one of"),
        ({"StartAt": "A", "States": {"A": {"Type": "Choice", "Choices": []}}}, "length >= 1"),
        (
            {"StartAt": "A", "States": {"A": {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": True}]}}},
            "a condition and a Next",
        ),
        (
            {
                "StartAt": "A",
                "States": {
                    "A": {
                        "Type": "Choice",
                        "Choices": [{"Variable": "$.a", "IsNull": True, "Next": "A"}],
                        "Default": "B",
                    }
                },
            },
            "leads to 'B'",
        ),
        (
            {"StartAt": "A", "States": {"A": {**TASK, "End": True, "Catch": [{"ErrorEquals": ["X"], "Next": "B"}]}}},
            "leads to 'B'",
        ),
        (
            {"StartAt": "A", "States": {"A": {**TASK, "End": True, "Retry": [{"ErrorEquals": ["States.ALL", "X"]}]}}},
            "must stand alone",
        ),
        (
            {
                "StartAt": "A",
                "States": {
                    "A": {**TASK, "End": True, "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["X"]}]}
                },
            },
            "must stand alone",
        ),
        (
            {
                "StartAt": "A",
                "States": {"A": {**TASK, "End": True, "Retry": [{"ErrorEquals": ["X"], "JitterStrategy": "FULL"}]}},
            },
            "FULL",
        ),
        ({"StartAt": "A", "States": {"A": {**TASK, "End": True, "Parameters": {"a.$": 5}}}}, r"'a\.\$' must hold"),
    ],
)
def test_a_definition_that_would_not_run_is_refused_when_it_is_loaded(document: Json, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Machine.load(document)


# -------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("state", "data", "output"),
    [
        ({}, {"a": 1}, {"a": 1}),
        ({"Result": {"b": 2}}, {"a": 1}, {"b": 2}),
        ({"Result": None}, {"a": 1}, None),
        ({"Result": 7, "ResultPath": "$.deep.er"}, {"a": 1}, {"a": 1, "deep": {"er": 7}}),
        ({"Result": 7, "ResultPath": None}, {"a": 1}, {"a": 1}),
        ({"Result": 7, "ResultPath": "$.list[1]"}, {"list": [1, 2]}, {"list": [1, 7]}),
        ({"InputPath": "$.a"}, {"a": {"b": 1}}, {"b": 1}),
        ({"InputPath": None}, {"a": 1}, {}),
        ({"InputPath": "$.a", "ResultPath": "$.copy"}, {"a": 1}, {"a": 1, "copy": 1}),
        ({"OutputPath": "$.a"}, {"a": 1}, 1),
        ({"OutputPath": None}, {"a": 1}, {}),
        ({"Parameters": {"x.$": "$.b"}, "InputPath": "$.a"}, {"a": {"b": 1}}, {"x": 1}),
        ({"Parameters": {"x": 1}, "Result": 2}, {}, 2),
        ({"Parameters": {"n.$": "$$.Execution.Name", "s.$": "$$.State.Name"}}, {}, {"n": "one", "s": "Only"}),
        (
            {
                "Parameters": {
                    "i.$": "$$.Execution.Input.a",
                    "t.$": "$$.State.EnteredTime",
                    "u.$": "$$.Execution.StartTime",
                }
            },
            {"a": 1},
            {"i": 1, "t": "2026-03-02T08:00:00.000Z", "u": "2026-03-02T08:00:00.000Z"},
        ),
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
        ({"OutputPath": "$.absent"}, "States.Runtime"),
        ({"Parameters": {"x.$": "$.absent"}}, "States.Runtime"),
        ({"Result": 1, "ResultPath": "$.text.inside"}, "States.ResultPathMatchFailure"),
        ({"Result": 1, "ResultPath": "$.list[3]"}, "States.ResultPathMatchFailure"),
    ],
)
def test_pass_on_data_that_does_not_fit_fails_the_execution(state: Mapping[str, Json], error: str) -> None:
    execution = run_pass(state, {"text": "t", "list": []})
    assert (execution.status, execution.error) == (Status.FAILED, error)
    assert execution.cause


@pytest.mark.parametrize(
    ("state", "until"),
    [
        ({"Seconds": 90}, NOW + timedelta(seconds=90)),
        ({"Seconds": 0}, NOW),
        ({"SecondsPath": "$.s"}, NOW + timedelta(seconds=30)),
        ({"Timestamp": "2026-03-02T10:00:00+01:00"}, NOW + timedelta(hours=1)),
        ({"TimestampPath": "$.t"}, NOW + timedelta(minutes=30)),
        ({"InputPath": "$.inner", "SecondsPath": "$.s"}, NOW + timedelta(seconds=5)),
    ],
)
def test_wait_suspends_until_its_instant_and_not_before(state: Mapping[str, Json], until: datetime) -> None:
    subject = machine(W={"Type": "Wait", "OutputPath": "$.s", "End": True, **state})
    effect = begin(subject, {"s": 30, "t": "2026-03-02T08:30:00Z", "inner": {"s": 5}})
    assert isinstance(effect, Suspend)
    assert effect.execution.due == until
    assert isinstance(subject.wake(effect.execution, until - timedelta(microseconds=1)), Suspend)
    assert subject.wake(effect.execution, until).execution.data in (30, 5)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("SecondsPath", -1),
        ("SecondsPath", 1.5),
        ("SecondsPath", "5"),
        ("SecondsPath", True),
        ("SecondsPath", 10**12),
        ("TimestampPath", "soon"),
        ("TimestampPath", 5),
        ("TimestampPath", "2026-13-02T08:30:00Z"),
    ],
)
def test_wait_for_nonsense_fails_the_execution(field: str, value: Json) -> None:
    execution = begin(machine(W={"Type": "Wait", field: "$.v", "End": True}), {"v": value}).execution
    assert (execution.status, execution.error) == (Status.FAILED, "States.Runtime")


def test_wait_whose_output_path_leads_nowhere_fails_when_it_is_over() -> None:
    subject = machine(W={"Type": "Wait", "Seconds": 1, "OutputPath": "$.absent", "End": True})
    effect = subject.wake(begin(subject).execution, NOW + timedelta(seconds=1))
    assert (effect.execution.status, effect.execution.error) == (Status.FAILED, "States.Runtime")


def choosing(**state: Json) -> Machine:
    rule = {"Variable": "$.n", "NumericGreaterThan": 3, "Next": "Big"}
    return machine(
        C={"Type": "Choice", "Choices": [rule, {**rule, "Next": "Never"}], **state},
        Big={"Type": "Succeed"},
        Never={"Type": "Fail"},
        Small={"Type": "Succeed"},
    )


@pytest.mark.parametrize(("n", "last"), [(4, "Big"), (3, "Small")])
def test_choice_takes_the_first_rule_that_holds_or_the_default(n: int, last: str) -> None:
    effect = begin(choosing(Default="Small"), {"n": n})
    assert effect.entered == ("C", last)


def test_choice_without_a_match_or_a_default_fails() -> None:
    execution = begin(choosing(), {"n": 1}).execution
    assert (execution.status, execution.error) == (Status.FAILED, "States.NoChoiceMatched")


def test_choice_on_a_missing_path_fails_even_with_a_default() -> None:
    execution = begin(choosing(Default="Small"), {}).execution
    assert (execution.status, execution.error) == (Status.FAILED, "States.Runtime")


def test_choice_and_succeed_filter_their_output() -> None:
    subject = choosing(Default="Small", InputPath="$.in", OutputPath="$.n")
    assert begin(subject, {"in": {"n": 9}}).execution.data == 9
    assert begin(machine(S={"Type": "Succeed", "OutputPath": "$.n"}), {"n": 1}).execution.data == 1


@pytest.mark.parametrize(
    ("state", "error", "cause"),
    [
        ({}, None, None),
        ({"Error": "E", "Cause": "why"}, "E", "why"),
        ({"ErrorPath": "$.e", "CausePath": "States.Format('{}!', $.c)"}, "Named", "because!"),
        ({"ErrorPath": "$.n"}, "States.Runtime", "ErrorPath '$.n' is 5, not a string"),
    ],
)
def test_fail_ends_with_its_error(state: Mapping[str, Json], error: str | None, cause: str | None) -> None:
    execution = begin(machine(F={"Type": "Fail", **state}), {"e": "Named", "c": "because", "n": 5}).execution
    assert (execution.status, execution.error, execution.cause) == (Status.FAILED, error, cause)


def test_a_loop_without_a_task_or_a_wait_ends() -> None:
    execution = begin(machine(A={"Type": "Pass", "Next": "B"}, B={"Type": "Pass", "Next": "A"})).execution
    assert (execution.status, execution.error) == (Status.FAILED, "States.Runtime")
    assert "forever" in (execution.cause or "")

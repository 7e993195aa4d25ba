"""Little definitions and what happens to them: every construct of our subset."""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlock.model.keys import Table
from interlock.ports.store import Key
from tests.conformance import step_functions_on_moto as moto

Json = Any
ACTIVE: Final = Key(Table.CONTROL, "PIPELINE#gold", "ACTIVE#cron#2026-03-02")
WORK: Final = f"{moto.LAMBDA}work"


class Raise(msgspec.Struct, frozen=True):
    """The task fails with an error of this name."""

    error: str


class Slow(msgspec.Struct, frozen=True):
    """The task takes so long."""

    seconds: float
    result: Json = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A definition and what the world does to it. Results are taken in turn, per `mode`; the last one repeats.

    `refusals` are the errors that DynamoDB answers the machine's own calls with, before it does as it is told.
    `error_on_moto` is moto's name of the error where it departs from the language.
    """

    name: str
    definition: Mapping[str, Json]
    input: Mapping[str, Json] = {}
    results: Mapping[str, list[Json]] = {}
    answers: list[float | None] = []
    refusals: list[str] = []
    ends: str = "SUCCEEDED"
    error_on_moto: str | None = None


# -------------------------------------------------------------------------------------------- little definitions

DONE: Final = {"Type": "Succeed"}
TASK: Final = {"Type": "Task", "Resource": WORK}


def states(**named: Mapping[str, Json]) -> dict[str, Json]:
    return {"StartAt": next(iter(named)), "States": named}


def choice(*rules: Mapping[str, Json], **options: Json) -> dict[str, Json]:
    numbered = [{**rule, "Next": f"R{index}"} for index, rule in enumerate(rules)]
    ends = {f"R{index}": DONE for index in range(len(rules))}
    return states(C={"Type": "Choice", "Choices": numbered, **options}, **ends, Otherwise=DONE)


def token(**options: Json) -> dict[str, Json]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken",
        "Parameters": {
            "TableName": moto.TABLE,
            "Key": {"PK": {"S": ACTIVE.pk}, "SK": {"S": ACTIVE.sk}},
            "UpdateExpression": "SET #token = :token",
            "ConditionExpression": "wakeSeq = :seen",
            "ExpressionAttributeNames": {"#token": "token"},
            "ExpressionAttributeValues": {":token": {"S.$": "$$.Task.Token"}, ":seen": {"N.$": "$.seen"}},
        },
        "ResultPath": "$.answer",
        **options,
    }


FACTS: Final = {"n": 5, "s": "log-1*.txt", "b": True, "null": None, "t": "2026-03-02T08:00:00Z", "m": 7}
RULES: Final[list[Mapping[str, Json]]] = [
    {"Variable": "$.n", "NumericEquals": 5},
    {"Variable": "$.n", "NumericLessThan": 5},
    {"Variable": "$.n", "NumericLessThanEquals": 5},
    {"Variable": "$.n", "NumericGreaterThan": 4},
    {"Variable": "$.n", "NumericGreaterThanEquals": 6},
    {"Variable": "$.n", "NumericLessThanPath": "$.m"},
    {"Variable": "$.s", "NumericEquals": 5},
    {"Variable": "$.s", "StringEquals": "log-1*.txt"},
    {"Variable": "$.s", "StringEqualsPath": "$.s"},
    {"Variable": "$.s", "StringLessThan": "m"},
    {"Variable": "$.s", "StringGreaterThanEquals": "m"},
    {"Variable": "$.s", "StringMatches": "log-*.txt"},
    {"Variable": "$.s", "StringMatches": "log-\\*"},
    {"Variable": "$.b", "BooleanEquals": True},
    {"Variable": "$.b", "BooleanEqualsPath": "$.b"},
    {"Variable": "$.t", "TimestampEquals": "2026-03-02T08:00:00Z"},
    {"Variable": "$.t", "TimestampLessThan": "2026-03-02T08:00:01Z"},
    {"Variable": "$.t", "TimestampGreaterThanPath": "$.t"},
    {"Variable": "$.null", "IsNull": True},
    {"Variable": "$.n", "IsNull": True},
    {"Variable": "$.n", "IsNumeric": True},
    {"Variable": "$.s", "IsString": False},
    {"Variable": "$.b", "IsBoolean": True},
    {"Variable": "$.t", "IsTimestamp": True},
    {"Variable": "$.s", "IsTimestamp": True},
    {"Variable": "$.absent", "IsPresent": True},
    {"Variable": "$.null", "IsPresent": True},
    {"Not": {"Variable": "$.n", "NumericEquals": 5}},
    {"And": [{"Variable": "$.n", "IsNumeric": True}, {"Variable": "$.absent", "IsPresent": False}]},
    {"And": [{"Variable": "$.absent", "IsPresent": True}, {"Variable": "$.absent", "NumericEquals": 1}]},
    {"Or": [{"Variable": "$.n", "NumericEquals": 1}, {"Variable": "$.b", "BooleanEquals": True}]},
    {"Variable": "$$.Execution.Name", "StringEquals": "one"},
]

SHAPES: Final[Mapping[str, Mapping[str, Json]]] = {
    "result": {"Result": {"b": 2}},
    "result into a path": {"Result": [7], "ResultPath": "$.deep.er"},
    "result thrown away": {"Result": 7, "ResultPath": None},
    "input path": {"InputPath": "$.in"},
    "no input": {"InputPath": None},
    "output path": {"OutputPath": "$.in.list"},
    "no output": {"OutputPath": None},
    "all paths": {"InputPath": "$.in", "Parameters": {"x.$": "$.n"}, "ResultPath": "$.r", "OutputPath": "$.r"},
    "parameters": {"Parameters": {"a": 1, "b": {"c.$": "$.in.n", "d": [{"e.$": "$.in.list[1]"}]}, "f.$": "$['in']"}},
    "context": {"Parameters": {"n.$": "$$.Execution.Name", "i.$": "$$.Execution.Input.in.n", "s.$": "$$.State.Name"}},
    "math": {"Parameters": {"a.$": "States.MathAdd($.in.n, 3)", "b.$": "States.MathAdd($.in.half, -1)"}},
    "format": {"Parameters": {"a.$": "States.Format('{} of {}: {}', $.in.n, $.in.list, $.in)"}},
    "json": {"Parameters": {"a.$": "States.StringToJson($.in.json)", "b.$": "States.JsonToString($.in.list)"}},
    "arrays": {
        "Parameters": {
            "a.$": "States.Array(1, 'two', $.in.n, true)",
            "b.$": "States.ArrayLength($.in.list)",
            "c.$": "States.ArrayContains($.in.list, 2)",
            "d.$": "States.ArrayGetItem($.in.list, 1)",
            "e.$": "States.ArrayGetItem(States.Array($.in.n, $.in.half), States.MathAdd(0, 1))",
        }
    },
    "missing parameter": {"Parameters": {"x.$": "$.absent"}},
    "missing input": {"InputPath": "$.absent"},
}
SHAPED: Final = {"in": {"n": 5, "half": 2.5, "list": [1, 2], "json": '{"a": [1, null]}'}}
BROKEN: Final = ("missing parameter", "missing input")

LITTLE: Final = [
    *(
        Scenario(
            name=f"pass: {name}",
            definition=states(P={"Type": "Pass", "End": True, **shape}),
            input=SHAPED,
            ends="FAILED" if name in BROKEN else "SUCCEEDED",
        )
        for name, shape in SHAPES.items()
    ),
    *(
        Scenario(name=f"choice: {json.dumps(rule)}", definition=choice(rule, Default="Otherwise"), input=FACTS)
        for rule in RULES
    ),
    Scenario(name="choice: the first that holds", definition=choice(*RULES[1:4]), input=FACTS),
    Scenario(
        name="choice: nothing holds",
        definition=choice(RULES[1]),
        input=FACTS,
        ends="FAILED",
        error_on_moto="States.Runtime",
    ),
    Scenario(
        name="choice: a path that leads nowhere",
        definition=choice({"Variable": "$.absent", "NumericEquals": 1}, Default="Otherwise"),
        ends="FAILED",
    ),
    Scenario(
        name="choice: filters",
        definition=choice({"Variable": "$.n", "IsNumeric": True}, InputPath="$.in", OutputPath="$.n"),
        input={"in": {"n": 1}},
    ),
    Scenario(
        name="wait: every kind",
        definition=states(
            A={"Type": "Wait", "Seconds": 30, "Next": "B"},
            B={"Type": "Wait", "SecondsPath": "$.s", "Next": "C"},
            C={"Type": "Wait", "Timestamp": "2026-03-02T08:05:00Z", "Next": "D"},
            D={"Type": "Wait", "TimestampPath": "$.t", "Next": "E"},
            E={"Type": "Wait", "Timestamp": "2026-03-02T07:00:00Z", "Next": "F"},
            F={**TASK, "End": True},
        ),
        input={"s": 45, "t": "2026-03-02T09:00:00Z"},
    ),
    *(
        Scenario(
            name=f"wait: {seconds!r} seconds",
            definition=states(W={"Type": "Wait", "SecondsPath": "$.s", "End": True}),
            input={"s": seconds},
            ends="SUCCEEDED" if seconds == 0 else "FAILED",
        )
        for seconds in (0, -1, 1.5, "5")
    ),
    Scenario(
        name="fail: error and cause",
        definition=states(F={"Type": "Fail", "Error": "Mine", "Cause": "because"}),
        ends="FAILED",
    ),
    Scenario(
        name="fail: paths",
        definition=states(F={"Type": "Fail", "ErrorPath": "$.e", "CausePath": "States.Format('{}!', $.e)"}),
        input={"e": "Named"},
        ends="FAILED",
    ),
    Scenario(
        name="succeed: filters",
        definition=states(S={**DONE, "InputPath": "$.a", "OutputPath": "$.b"}),
        input={"a": {"b": 1}},
    ),
    Scenario(
        name="task: payload and result",
        definition=states(
            T={
                **TASK,
                "InputPath": "$.in",
                "Parameters": {"n.$": "$.n", "name.$": "$$.State.Name"},
                "ResultSelector": {"kept.$": "$.value", "fixed": 1},
                "ResultPath": "$.out",
                "Next": "U",
            },
            U={**TASK, "ResultPath": None, "OutputPath": "$.out", "End": True},
        ),
        input={"in": {"n": 4}},
        results={"work": [{"value": [8], "dropped": 1}, "ignored"]},
    ),
    Scenario(
        name="task: a result that replaces everything",
        definition=states(T={**TASK, "Next": "U"}, U={**TASK, "End": True}),
        results={"work": [[1, 2], {"x": None}]},
    ),
    Scenario(
        name="retry: back-off and retry count",
        definition=states(
            T={
                **TASK,
                "Parameters": {"retry.$": "$$.State.RetryCount"},
                "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 30, "BackoffRate": 2, "MaxAttempts": 3}],
                "End": True,
            }
        ),
        results={"work": [Raise("Busy"), Raise("Busy"), Raise("Busy"), {"done": 1}]},
    ),
    Scenario(
        name="retry: longest delay, fractions",
        definition=states(
            T={
                **TASK,
                "Retry": [
                    {"ErrorEquals": ["Busy"], "IntervalSeconds": 4, "MaxDelaySeconds": 10, "MaxAttempts": 5},
                    {"ErrorEquals": ["Other"], "BackoffRate": 1.5, "MaxAttempts": 2, "JitterStrategy": "NONE"},
                ],
                "End": True,
            }
        ),
        results={"work": [Raise("Busy"), Raise("Other"), Raise("Busy"), Raise("Other"), Raise("Busy"), {"done": 1}]},
    ),
    Scenario(
        name="retry: used up",
        definition=states(T={**TASK, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}], "End": True}),
        results={"work": [Raise("Busy")]},
        ends="FAILED",
    ),
    Scenario(
        name="retry: not this error",
        definition=states(T={**TASK, "Retry": [{"ErrorEquals": ["Busy"]}], "End": True}),
        results={"work": [Raise("Other")]},
        ends="FAILED",
    ),
    Scenario(
        name="retry: used up, then caught, then anew",
        definition=states(
            T={
                **TASK,
                "Retry": [{"ErrorEquals": ["Busy"], "MaxAttempts": 1}],
                "Catch": [{"ErrorEquals": ["Busy"], "ResultPath": "$.error", "Next": "Again"}],
                "ResultPath": "$.result",
                "End": True,
            },
            Again={"Type": "Pass", "Next": "T"},
        ),
        results={"work": [Raise("Busy"), Raise("Busy"), Raise("Busy"), {"done": 1}]},
    ),
    *(
        Scenario(
            name=f"catch: {names} into {path}",
            definition=states(
                T={**TASK, "Catch": [{"ErrorEquals": names, "ResultPath": path, "Next": "C"}], "End": True},
                C={"Type": "Pass", "End": True},
            ),
            input={"a": 1},
            results={"work": [Raise("Busy")]},
        )
        for names, path in (
            (["Busy"], "$"),
            (["X", "Busy"], "$.error"),
            (["States.ALL"], None),
            (["States.TaskFailed"], "$.e"),
        )
    ),
    Scenario(
        name="catch: not this error",
        definition=states(T={**TASK, "Catch": [{"ErrorEquals": ["X"], "Next": "C"}], "End": True}, C=DONE),
        results={"work": [Raise("Busy")]},
        ends="FAILED",
    ),
    Scenario(
        name="task time-out: caught by its name",
        definition=states(
            T={
                **TASK,
                "TimeoutSeconds": 10,
                "Retry": [{"ErrorEquals": ["States.TaskFailed"]}],
                "Catch": [{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.e", "Next": "C"}],
                "End": True,
            },
            C=DONE,
        ),
        results={"work": [Slow(11)]},
    ),
    Scenario(
        name="task time-out: in time",
        definition=states(T={**TASK, "TimeoutSecondsPath": "$.s", "End": True}),
        input={"s": 12},
        results={"work": [Slow(11, {"done": 1})]},
    ),
    Scenario(
        name="token: answered",
        definition=states(T=token(TimeoutSeconds=60, Next="D"), D={**TASK, "End": True}),
        input={"seen": "3"},
        answers=[25],
    ),
    Scenario(
        name="token: not answered in time, then answered",
        definition=states(
            T=token(
                TimeoutSecondsPath="$.bound",
                Catch=[{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.answer", "Next": "Again"}],
                Next="D",
            ),
            Again={"Type": "Pass", "Next": "T"},
            D={**TASK, "End": True},
        ),
        input={"seen": "3", "bound": 60},
        answers=[None, 70, 5],
    ),
    Scenario(
        name="token: the condition does not hold",
        definition=states(
            T=token(
                TimeoutSeconds=60,
                Catch=[{"ErrorEquals": ["DynamoDb.ConditionalCheckFailedException"], "ResultPath": "$.e", "Next": "D"}],
                End=True,
            ),
            D=DONE,
        ),
        input={"seen": "2"},
    ),
    Scenario(
        name="token: time-outs are retried",
        definition=states(
            T=token(TimeoutSeconds=60, Retry=[{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 3}], End=True)
        ),
        input={"seen": "3"},
        answers=[None, None, 1],
    ),
    Scenario(
        name="the whole execution: its time is up in a wait",
        definition={**states(W={"Type": "Wait", "Seconds": 100, "Next": "D"}, D=DONE), "TimeoutSeconds": 60},
        ends="TIMED_OUT",
    ),
    Scenario(
        name="a loop with a counter",
        definition=states(
            Init={"Type": "Pass", "Result": {"n": 0}, "ResultPath": "$.loop", "Next": "Work"},
            Work={**TASK, "ResultPath": "$.work", "Next": "Count"},
            Count={
                "Type": "Pass",
                "Parameters": {"n.$": "States.MathAdd($.loop.n, 1)"},
                "ResultPath": "$.loop",
                "Next": "Enough",
            },
            Enough={
                "Type": "Choice",
                "Choices": [{"Variable": "$.loop.n", "NumericGreaterThanEquals": 4, "Next": "Done"}],
                "Default": "Pause",
            },
            Pause={"Type": "Wait", "Seconds": 7, "Next": "Work"},
            Done=DONE,
        ),
    ),
]

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
    """

    name: str
    definition: Mapping[str, Json]
    input: Mapping[str, Json] = {}
    results: Mapping[str, list[Json]] = {}
    answers: list[float | None] = []
    refusals: list[str] = []
    ends: str = "SUCCEEDED"


# -------------------------------------------------------------------------------------------- little definitions

DONE: Final = {"Type": "Succeed"}
TASK: Final = {"Type": "Task", "Resource": WORK, "Next": "Done"}


def states(**named: Mapping[str, Json]) -> dict[str, Json]:
    """These states and Done, in which they may end."""
    return {"StartAt": next(iter(named)), "States": {**named, "Done": DONE}}


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
        "TimeoutSecondsPath": "$.bound",
        "ResultPath": "$.answer",
        "Next": "Done",
        **options,
    }


FACTS: Final = {"n": 5, "s": "ready", "b": True, "null": None}
RULES: Final[list[Mapping[str, Json]]] = [
    {"Variable": "$.n", "NumericGreaterThanEquals": 6},
    {"Variable": "$.n", "NumericGreaterThanEquals": 5},
    {"Variable": "$.n", "NumericGreaterThanEquals": 4.5},
    {"Variable": "$.s", "NumericGreaterThanEquals": 5},
    {"Variable": "$.s", "StringEquals": "ready"},
    {"Variable": "$.s", "StringEquals": "Ready"},
    {"Variable": "$.n", "StringEquals": "5"},
    {"Variable": "$.b", "BooleanEquals": True},
    {"Variable": "$.b", "BooleanEquals": False},
    {"Variable": "$.absent", "IsPresent": True},
    {"Variable": "$.absent", "IsPresent": False},
    {"Variable": "$.null", "IsPresent": True},
    {"And": [{"Variable": "$.b", "BooleanEquals": True}, {"Variable": "$.absent", "IsPresent": False}]},
    {"And": [{"Variable": "$.absent", "IsPresent": True}, {"Variable": "$.absent", "StringEquals": "x"}]},
    {"Variable": "$$.Execution.Name", "StringEquals": "one"},
]

SHAPES: Final[Mapping[str, Mapping[str, Json]]] = {
    "result": {"Result": {"b": 2}},
    "result into a path": {"Result": [7], "ResultPath": "$.deep.er"},
    "input path": {"InputPath": "$.in"},
    "all paths": {"InputPath": "$.in", "Parameters": {"x.$": "$.n"}, "ResultPath": "$.r"},
    "parameters": {"Parameters": {"a": 1, "b": {"c.$": "$.in.n", "d": "$.in"}, "f.$": "$.in"}},
    "context": {"Parameters": {"n.$": "$$.Execution.Name"}},
    "math": {"Parameters": {"a.$": "States.MathAdd($.in.n, 3)", "b.$": "States.MathAdd($.in.n, -7)"}},
    "missing parameter": {"Parameters": {"x.$": "$.absent"}},
    "missing input": {"InputPath": "$.absent"},
}
SHAPED: Final = {"in": {"n": 5, "list": [1, 2]}}
BROKEN: Final = ("missing parameter", "missing input")

LITTLE: Final = [
    *(
        Scenario(
            name=f"pass: {name}",
            definition=states(P={"Type": "Pass", "Next": "Done", **shape}),
            input=SHAPED,
            ends="FAILED" if name in BROKEN else "SUCCEEDED",
        )
        for name, shape in SHAPES.items()
    ),
    *(
        Scenario(name=f"choice: {json.dumps(rule)}", definition=choice(rule, Default="Otherwise"), input=FACTS)
        for rule in RULES
    ),
    Scenario(name="choice: the first that holds", definition=choice(*RULES[:3], Default="Otherwise"), input=FACTS),
    Scenario(name="choice: nothing holds", definition=choice(RULES[0], Default="Otherwise"), input=FACTS),
    Scenario(
        name="choice: a path that leads nowhere",
        definition=choice({"Variable": "$.absent", "StringEquals": "x"}, Default="Otherwise"),
        ends="FAILED",
    ),
    Scenario(
        name="fail: error and cause",
        definition=states(F={"Type": "Fail", "Error": "Mine", "Cause": "because"}),
        ends="FAILED",
    ),
    Scenario(
        name="task: payload and result",
        definition=states(
            T={**TASK, "Parameters": {"n.$": "$.in.n", "fixed": 1}, "ResultPath": "$.out", "Next": "U"},
            U={**TASK, "ResultPath": "$.in"},
        ),
        input={"in": {"n": 4}},
        results={"work": [{"value": [8]}, "more"]},
    ),
    Scenario(
        name="task: a result that replaces everything",
        definition=states(T={**TASK, "Next": "U"}, U=TASK),
        results={"work": [[1, 2], {"x": None}]},
    ),
    Scenario(
        name="retry: back-off",
        definition=states(
            T={
                **TASK,
                "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 30, "BackoffRate": 2, "MaxAttempts": 3}],
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
                    {"ErrorEquals": ["Other"], "BackoffRate": 1.5, "MaxAttempts": 2},
                ],
            }
        ),
        results={"work": [Raise("Busy"), Raise("Other"), Raise("Busy"), Raise("Other"), Raise("Busy"), {"done": 1}]},
    ),
    Scenario(
        name="retry: used up",
        definition=states(T={**TASK, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}]}),
        results={"work": [Raise("Busy")]},
        ends="FAILED",
    ),
    Scenario(
        name="retry: not this error",
        definition=states(T={**TASK, "Retry": [{"ErrorEquals": ["Busy"]}]}),
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
            },
            Again={"Type": "Pass", "Next": "T"},
        ),
        results={"work": [Raise("Busy"), Raise("Busy"), Raise("Busy"), {"done": 1}]},
    ),
    *(
        Scenario(
            name=f"catch: {names} into {path}",
            definition=states(
                T={**TASK, "Catch": [{"ErrorEquals": names, "ResultPath": path, "Next": "C"}]},
                C=DONE,
            ),
            input={"a": 1},
            results={"work": [Raise("Busy")]},
        )
        for names, path in (
            (["Busy"], "$"),
            (["X", "Busy"], "$.error"),
            (["States.ALL"], "$.e"),
        )
    ),
    Scenario(
        name="catch: not this error",
        definition=states(T={**TASK, "Catch": [{"ErrorEquals": ["X"], "Next": "C"}]}, C=DONE),
        results={"work": [Raise("Busy")]},
        ends="FAILED",
    ),
    Scenario(
        name="task time-out: caught by its name",
        definition=states(
            T={
                **TASK,
                "TimeoutSecondsPath": "$.bound",
                "Retry": [{"ErrorEquals": ["Busy"]}],
                "Catch": [{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.e", "Next": "C"}],
            },
            C=DONE,
        ),
        input={"bound": 10},
        results={"work": [Slow(11)]},
    ),
    Scenario(
        name="task time-out: in time",
        definition=states(T={**TASK, "TimeoutSecondsPath": "$.s"}),
        input={"s": 12},
        results={"work": [Slow(11, {"done": 1})]},
    ),
    Scenario(
        name="token: answered",
        definition=states(T=token(Next="D"), D=TASK),
        input={"seen": "3", "bound": 60},
        answers=[25],
    ),
    Scenario(
        name="token: not answered in time, then answered",
        definition=states(
            T=token(
                Catch=[{"ErrorEquals": ["States.Timeout"], "ResultPath": "$.answer", "Next": "Again"}],
                Next="D",
            ),
            Again={"Type": "Pass", "Next": "T"},
            D=TASK,
        ),
        input={"seen": "3", "bound": 60},
        answers=[None, 70, 5],
    ),
    Scenario(
        name="token: the condition does not hold",
        definition=states(
            T=token(
                Catch=[{"ErrorEquals": ["DynamoDb.ConditionalCheckFailedException"], "ResultPath": "$.e", "Next": "D"}],
            ),
            D=DONE,
        ),
        input={"seen": "2", "bound": 60},
    ),
    Scenario(
        name="token: time-outs are retried",
        definition=states(T=token(Retry=[{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 3}])),
        input={"seen": "3", "bound": 60},
        answers=[None, None, 1],
    ),
    Scenario(
        name="the whole execution: its time is up in a wait",
        definition={**states(T=token()), "TimeoutSeconds": 60},
        input={"seen": "3", "bound": 100},
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
                "Default": "Work",
            },
        ),
    ),
]

"""`updateItem` as the state machine calls it: one conditional write to the store, or an error of the task."""

from collections.abc import Mapping

import pytest

from interlock.ports.store import Put
from tests.conformance.executions_suite import ACTIVE, INPUT, flow
from tests.embedded.execution_engine import Json, engine


def updating(**parameters: Json) -> dict[str, Json]:
    document = flow("control", "work")
    document["States"]["Await"]["Parameters"].update(parameters)
    document["States"]["Await"]["Catch"].append({"ErrorEquals": ["States.ALL"], "Next": "Broken"})
    document["States"]["Broken"] = {"Type": "Succeed"}
    return document


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"TableName": "elsewhere"}, "Invalid enum value 'elsewhere'"),
        ({"ReturnValues": "ALL_NEW"}, "unknown field `ReturnValues`"),
        ({"Key": {"PK": {"S": "a"}}}, "missing required field `SK`"),
        ({"UpdateExpression": "REMOVE #token"}, "only SET is known"),
        ({"UpdateExpression": "SET #token = #token"}, "is not of the form"),
        ({"UpdateExpression": "SET #other = :token"}, "#other is used and nowhere defined"),
        ({"UpdateExpression": "SET wakeSeq = :seen"}, "#token, :token is given and never used"),
        ({"ConditionExpression": "wakeSeq < :seen"}, "is not of the form"),
        ({"ConditionExpression": "wakeSeq = :nothing"}, ":nothing is used and nowhere defined"),
        (
            {"ExpressionAttributeValues": {":token": {"SS": "x"}, ":seen": {"N": "1"}}},
            "is neither S nor a whole",
        ),
        (
            {"ExpressionAttributeValues": {":token": {"S": "x"}, ":seen": {"N": "one"}}},
            "is neither S nor a whole",
        ),
        ({"Key": {"PK": {"S": ""}, "SK": {"S": "x"}}}, ""),
    ],
)
def test_parameters_that_can_not_be_carried_out_are_an_error_of_the_task(
    parameters: Mapping[str, Json], message: str
) -> None:
    with engine(updating(**parameters)) as world:
        world.executions.start("one", INPUT)
        world.settle()
        (execution,) = world.ended
        assert execution.state == "Broken"
        assert message in execution.data["Cause"]
        assert execution.data["Error"] in ("DynamoDb.DynamoDbException", "CommitRefusedError")


def test_several_attributes_are_set_and_compared() -> None:
    parameters = {
        "UpdateExpression": "set #token = :token, armed = :yes ,share= :share",
        "ConditionExpression": "wakeSeq = :seen and state = :yes",
        "ExpressionAttributeValues": {
            ":token": {"S.$": "$$.Task.Token"},
            ":seen": {"N.$": "$.seen"},
            ":yes": {"S": "yes"},
            ":share": {"N": "-5"},
        },
    }
    with engine(updating(**parameters)) as world:
        world.store.commit([Put(ACTIVE, {"wakeSeq": 3, "state": "yes", "kept": 1})])
        world.executions.start("one", INPUT)
        world.settle()
        assert world.store.get(ACTIVE) == {
            "wakeSeq": 3,
            "state": "yes",
            "kept": 1,
            "token": "one:1.0",
            "armed": "yes",
            "share": -5,
        }

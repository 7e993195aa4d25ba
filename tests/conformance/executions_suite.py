"""The obligations of `ports.executions.Executions`, as tests. A backend says how to open it and how to let time pass.

Every backend runs the same little flow: announce the token in the store, wait for it, say how it ended.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

import pytest

from interlock.model.keys import Table
from interlock.ports.executions import Executions, StartResult
from interlock.ports.store import Key, Put, Store

WAIT_SECONDS: Final = 600
ACTIVE: Final = Key(Table.CONTROL, "PIPELINE#gold", "ACTIVE#cron#2026-03-02")
INPUT: Final = {"pk": ACTIVE.pk, "sk": ACTIVE.sk, "seen": "3", "bound": WAIT_SECONDS}


def flow(control_table: str, task: str) -> dict[str, Any]:
    """Wait for a token in the ACTIVE# record, on condition that `wakeSeq` is what was seen; then tell the task."""
    reported = {"Type": "Task", "Resource": task, "ResultPath": "$.reported", "Next": "Done"}
    return {
        "StartAt": "Await",
        "States": {
            "Await": {
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken",
                "Parameters": {
                    "TableName": control_table,
                    "Key": {"PK": {"S.$": "$.pk"}, "SK": {"S.$": "$.sk"}},
                    "UpdateExpression": "SET #token = :token",
                    "ConditionExpression": "wakeSeq = :seen",
                    "ExpressionAttributeNames": {"#token": "token"},
                    "ExpressionAttributeValues": {":token": {"S.$": "$$.Task.Token"}, ":seen": {"N.$": "$.seen"}},
                },
                "TimeoutSecondsPath": "$.bound",
                "ResultPath": "$.answer",
                "Catch": [
                    {"ErrorEquals": ["States.Timeout"], "ResultPath": "$.answer", "Next": "Late"},
                    {
                        "ErrorEquals": ["DynamoDb.ConditionalCheckFailedException"],
                        "ResultPath": "$.answer",
                        "Next": "Changed",
                    },
                ],
                "Next": "Answered",
            },
            "Answered": {**reported, "Parameters": {"said": "answered"}},
            "Late": {**reported, "Parameters": {"said": "late"}},
            "Changed": {**reported, "Parameters": {"said": "changed"}},
            "Done": {"Type": "Succeed"},
        },
    }


class ExecutionsWorld(ABC):
    """A backend, its store, and its time."""

    executions: Executions
    store: Store
    said: list[str]

    @abstractmethod
    def settle(self) -> None:
        """Let everything happen that can happen now."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Let time pass, and everything happen that is due meanwhile."""


class ExecutionsSuite(ABC):
    """Subclass it as `class TestMine(ExecutionsSuite)`."""

    repeated_at_once = StartResult.ALREADY_OPEN
    """What a start that is repeated within a second is answered with: Step Functions cannot tell it from the first."""

    @abstractmethod
    def open_world(self) -> AbstractContextManager[ExecutionsWorld]:
        """A backend that runs `flow`; its task appends `payload["said"]` to `said`."""

    @pytest.fixture
    def world(self) -> Iterator[ExecutionsWorld]:
        with self.open_world() as world:
            assert world.store.commit([Put(ACTIVE, {"wakeSeq": 3, "token": None})]) is None
            yield world

    def token(self, world: ExecutionsWorld) -> str:
        item = world.store.get(ACTIVE)
        assert item is not None
        assert isinstance(item["token"], str)
        return item["token"]

    def test_a_name_is_used_once(self, world: ExecutionsWorld) -> None:
        assert not world.executions.is_open("one")
        assert world.executions.start("one", INPUT) is StartResult.STARTED
        assert world.executions.is_open("one")
        assert world.executions.start("one", INPUT) is self.repeated_at_once
        world.settle()
        world.advance(2)
        assert world.executions.start("one", INPUT) is StartResult.ALREADY_OPEN
        assert world.executions.answer(self.token(world))
        world.settle()
        assert not world.executions.is_open("one")
        assert world.executions.start("one", INPUT) is StartResult.ALREADY_CLOSED
        assert world.said == ["answered"]

    def test_an_answer_ends_the_wait_at_once_and_only_once(self, world: ExecutionsWorld) -> None:
        world.executions.start("one", INPUT)
        world.settle()
        assert world.said == []
        token = self.token(world)
        assert world.executions.answer(token)
        assert not world.executions.answer(token)
        world.settle()
        assert world.said == ["answered"]
        assert not world.executions.answer(token)
        world.advance(WAIT_SECONDS * 2)
        assert world.said == ["answered"]

    def test_nobody_waits_for_a_token_that_was_never_given(self, world: ExecutionsWorld) -> None:
        assert not world.executions.answer("no-such-token")

    def test_without_an_answer_the_wait_ends_when_its_time_is_up(self, world: ExecutionsWorld) -> None:
        world.executions.start("one", INPUT)
        world.settle()
        token = self.token(world)
        world.advance(WAIT_SECONDS - 1)
        assert world.said == []
        world.advance(1)
        assert world.said == ["late"]
        assert not world.executions.answer(token)

    def test_a_change_since_the_look_is_not_waited_through(self, world: ExecutionsWorld) -> None:
        world.executions.start("one", {**INPUT, "seen": "2"})
        world.settle()
        assert world.said == ["changed"]
        assert world.store.get(ACTIVE) == {"wakeSeq": 3, "token": None}

    def test_executions_do_not_disturb_each_other(self, world: ExecutionsWorld) -> None:
        other = Key(ACTIVE.table, ACTIVE.pk, "ACTIVE#cron#2026-03-03")
        world.store.commit([Put(other, {"wakeSeq": 3, "token": None})])
        world.executions.start("one", INPUT)
        world.executions.start("two", {**INPUT, "sk": other.sk})
        world.settle()
        assert world.executions.answer(self.token(world))
        world.settle()
        assert not world.executions.is_open("one")
        assert world.executions.is_open("two")

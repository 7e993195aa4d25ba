"""Executions of the lifecycle on Step Functions (Standard).

A start is safe to repeat: Step Functions answers the start of an open execution with the same name and input as if it
were the first, and is told apart by when it says that the execution began; within a second nobody can tell. A name is
used once in 90 days. `is_open` may be seconds old.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from interlock.aws.clients import Clients
from interlock.aws.failures import code_of, translated
from interlock.ports.clock import Clock
from interlock.ports.executions import StartResult

# Clocks differ, and the answer has whole milliseconds.
_SURELY_BEFORE: Final = timedelta(seconds=1)
_SERVICE: Final = "stepfunctions"
_NOBODY_WAITS: Final = frozenset({"InvalidToken", "TaskDoesNotExist", "TaskTimedOut"})
_OPEN: Final = ("RUNNING", "PENDING_REDRIVE")


class StepFunctionsExecutions:
    """`ports.executions.Executions`. `machine` is the ARN of the state machine."""

    def __init__(self, clients: Clients, machine: str, clock: Clock) -> None:
        self._clients = clients
        self._clock = clock
        self._machine = machine

    def start(self, name: str, input_: Mapping[str, Any]) -> StartResult:
        """Start an execution of the lifecycle under a name that was never used before."""
        # Byte for byte the same for the same input: so a repeated start is recognised.
        text = msgspec.json.encode(input_, order="sorted").decode()
        called = self._clock.now()
        try:
            answer = self._client.start_execution(stateMachineArn=self._machine, name=name, input=text)
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, ClientError) or code_of(error) != "ExecutionAlreadyExists":
                raise translated(error, f"starting the execution {name}") from error
            # Only an end that was seen is certain: one that was just started may not be found yet.
            ended = self._status(name) not in (None, *_OPEN)
            return StartResult.ALREADY_CLOSED if ended else StartResult.ALREADY_OPEN
        before = answer["startDate"] < called - _SURELY_BEFORE
        return StartResult.ALREADY_OPEN if before else StartResult.STARTED

    def is_open(self, name: str) -> bool:
        """Was it started, and has it not ended, as far as Step Functions has heard by now?"""
        return self._status(name) in _OPEN

    def _status(self, name: str) -> str | None:
        """What Step Functions says of it; None when it has not heard of it (yet)."""
        try:
            answer = self._client.describe_execution(executionArn=execution_arn(self._machine, name))
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and code_of(error) == "ExecutionDoesNotExist":
                return None
            raise translated(error, f"looking at the execution {name}") from error
        return str(answer["status"])

    def answer(self, token: str) -> bool:
        """Answer a task token: the wait that holds it ends now. False when nobody waits for it (any more)."""
        try:
            self._client.send_task_success(taskToken=token, output="{}")
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and code_of(error) in _NOBODY_WAITS:
                return False
            raise translated(error, "answering a task token") from error
        return True

    @property
    def _client(self) -> Any:
        return self._clients(_SERVICE)


def execution_arn(machine: str, name: str) -> str:
    """The ARN of an execution: `...:stateMachine:M` becomes `...:execution:M:NAME`."""
    return f"{machine.replace(':stateMachine:', ':execution:', 1)}:{name}"

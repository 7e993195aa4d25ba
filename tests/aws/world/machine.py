"""Step Functions of the world: the planned state machine on the project's own interpreter, behind the service's API.

Why not moto's interpreter: it runs an execution on threads of its own, which have to be made to take turns before two
executions that are due at one instant go in a known order. `interlock.embedded.asl.interpreter` is a pure function
that is compared with moto's interpreter, state by state, in `tests/conformance/test_asl_against_moto.py`; a sample of
the journeys runs on moto's all the same (`moto_machine`).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

from botocore.exceptions import ClientError

from interlock.embedded.asl.execution import CallTask, Effect, Ended, ExecutionState, Status, Suspend, ended
from interlock.embedded.asl.interpreter import Machine
from interlock.embedded.asl.paths import RUNTIME, Json
from interlock.embedded.asl.update_item import UPDATE_ITEM
from interlock.ports.clock import Clock
from tests.aws.world.calls import Call, Calls
from tests.aws.world.functions import Functions
from tests.aws.world.plan import Plan, arn

# Step Functions Developer Guide, "Quotas": the history of a Standard execution, and the size of its input.
MAX_HISTORY: Final = 25_000
_MAX_INPUT: Final = 262_144
# API Reference, StartExecution: names; the same name and input while it is open is the same execution.
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f \s<>{}\[\]?*\"#%\\^|~`$&,;:/]{1,80}")
STATUS_CHANGE: Final = "Step Functions Execution Status Change"

Publish = Callable[[str, str, dict[str, Any]], object]
"""Put an event on the default bus: source, detail type, detail."""


@dataclass(frozen=True, slots=True)
class Running:
    """An execution. `order`: of two that are due at one instant, the one that waits longer goes first."""

    state: ExecutionState
    input: Json
    transitions: int = 0
    history: int = 1
    ended_at: datetime | None = None
    answered: bool = False


class StateMachine:
    """Answers the calls to Step Functions, and runs the executions, one at a time, each until it waits or ends."""

    def __init__(self, plan: Plan, *, clock: Clock, calls: Calls, functions: Functions, publish: Publish) -> None:
        self.planned = plan.machine
        definition = json.loads(plan.machine.definition)
        self._machine = Machine.load(definition)
        self._events = {name: _events_of(state) for name, state in definition["States"].items()}
        self._clock = clock
        self._calls = calls
        self._functions = functions
        self._publish = publish
        self._client: Any = None
        self.executions: dict[str, Running] = {}
        self.behind = timedelta(0)
        """How old the answers of DescribeExecution are, which is eventually consistent (API Reference)."""
        self.entered: dict[str, list[str]] = {}
        """The states that an execution went through."""

    def use(self, dynamodb: Any) -> None:
        """The client by which the machine itself writes its tokens."""
        self._client = dynamodb

    # ------------------------------------------------------------------------------------------------ driving

    def next_at(self) -> datetime | None:
        """When the next execution is due."""
        return min((at for one in self._open() if (at := one.state.due) is not None), default=None)

    def run_due(self, now: datetime) -> int:
        """Run everything that is due, in the order of (due, name); how many."""
        done = 0
        while due := sorted(
            (one.state.due or now, one.state.name) for one in self._open() if one.answered or _is_due(one.state, now)
        ):
            for _, name in due:
                running = self.executions[name]
                if running.state.status is Status.RUNNING and (running.answered or _is_due(running.state, now)):
                    self._run(name)
                    done += 1
        return done

    def lose(self, name: str) -> None:
        """An execution is stopped by hand: it ends as ABORTED, and its event says so."""
        self._end(self.executions[name], "ABORTED")

    def _open(self) -> list[Running]:
        return [one for one in self.executions.values() if one.ended_at is None]

    def _run(self, name: str) -> None:
        running = self.executions[name]
        now = self._clock.now()
        effect = self._machine.wake(running.state, now, answered=running.answered, output={})
        self._went(name, effect)
        while True:
            match effect:
                case Suspend() | Ended():
                    return
                case CallTask():
                    following = self._call(name, effect)
                    if following is None:
                        return
                    effect = following
                    self._went(name, effect)
                case _:
                    assert_never(effect)

    def _went(self, name: str, effect: Effect) -> None:
        """Keep where it is, count what it did, and end it when its history is full."""
        before = self.executions[name]
        self.entered[name].extend(effect.entered)
        running = replace(
            before,
            state=effect.execution,
            answered=False,
            transitions=before.transitions + len(effect.entered),
            history=before.history + sum(self._events[state] for state in effect.entered),
        )
        self.executions[name] = running
        if running.history > MAX_HISTORY:
            cause = f"the history of the execution has more than {MAX_HISTORY} events"
            self.executions[name] = replace(running, state=ended(running.state, Status.FAILED, RUNTIME, cause))
        if self.executions[name].state.status is not Status.RUNNING:
            self._end(self.executions[name], self.executions[name].state.status.value)

    def _end(self, running: Running, status: str) -> None:
        now, state = self._clock.now(), running.state
        closed = Status.FAILED if status == "ABORTED" else Status(status)
        state = ended(state, closed, state.error, state.cause) if closed is not Status.SUCCEEDED else state
        self.executions[state.name] = replace(running, state=state, ended_at=now)
        detail = {
            "executionArn": self._arn(state.name),
            "stateMachineArn": self.planned.arn,
            "name": state.name,
            "status": status,
            "startDate": int(state.started_at.timestamp() * 1000),
            "stopDate": int(now.timestamp() * 1000),
            "input": json.dumps(running.input),
            "inputDetails": {"included": True},
            "error": state.error,
            "cause": state.cause,
        }
        self._publish("aws.states", STATUS_CHANGE, detail)

    # -------------------------------------------------------------------------------------------------- tasks

    def _call(self, name: str, call: CallTask) -> Effect | None:
        execution = call.execution
        if call.resource == UPDATE_ITEM:
            return self._store_token(name, call)
        answer = self._functions.invoke(call.resource, json.dumps(call.payload))
        now = self._clock.now()
        if self.executions[name].ended_at is not None:
            return None  # stopped meanwhile
        if answer.error is not None:
            return self._machine.fail(execution, answer.error, answer.cause, now)
        return self._machine.complete(execution, answer.payload, now)

    def _store_token(self, name: str, call: CallTask) -> Effect | None:
        """The task that the machine does itself: whoever reads the token may answer from then on."""
        self.executions[name] = replace(self.executions[name], state=call.execution)
        payload: Any = call.payload
        try:
            with self._calls.acting_as(self.planned.name):
                self._client.update_item(**payload)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            suffix = "" if code.endswith("Exception") else "Exception"
            cause = error.response["Error"].get("Message", "")
            return self._machine.fail(call.execution, f"DynamoDb.{code}{suffix}", cause, self._clock.now())
        return None

    # -------------------------------------------------------------------------------------------------- calls

    def __call__(self, call: Call) -> Any:
        """One call of the API; those about another machine are moto's."""
        named = call.arguments.get("stateMachineArn") or call.arguments.get("executionArn") or self.planned.arn
        if _machine_of(named) != self.planned.name or call.operation == "CreateStateMachine":
            return call.forward()
        match call.operation:
            case "StartExecution":
                return self._start(call)
            case "DescribeExecution":
                return self._described(call)
            case "SendTaskSuccess":
                return self._answer(call)
            case "StopExecution":
                found = self.executions.get(_name_of(call.arguments["executionArn"]))
                if found is None:
                    raise call.error("ExecutionDoesNotExist", "Execution Does Not Exist")
                if found.ended_at is None:
                    self._end(found, "ABORTED")
                return {"stopDate": self._clock.now()}
            case "ListExecutions":
                return self._listed(call)
            case "DescribeStateMachine":
                return {
                    "stateMachineArn": self.planned.arn,
                    "name": self.planned.name,
                    "status": "ACTIVE",
                    "definition": self.planned.definition,
                    "roleArn": self.planned.role,
                    "type": "STANDARD",
                    "creationDate": self._clock.now(),
                }
        raise call.error("UnknownOperationException", f"{call.operation} is not part of this world")

    def _start(self, call: Call) -> Any:
        arguments = call.arguments
        name, text = arguments["name"], arguments.get("input", "{}")
        if not _NAME.fullmatch(name):
            raise call.error("InvalidName", f"Invalid Name: {name!r}")
        if len(text.encode()) > _MAX_INPUT:
            raise call.error("InvalidExecutionInput", "the input is too long")
        input_: Json = json.loads(text)
        found = self.executions.get(name)
        if found is not None:
            if found.ended_at is None and found.input == input_:
                return {"executionArn": self._arn(name), "startDate": found.state.started_at}
            raise call.error("ExecutionAlreadyExists", f"Execution Already Exists: '{self._arn(name)}'")
        now = self._clock.now()
        self.executions[name] = Running(self._machine.begin(name, input_, now), input_)
        self.entered[name] = []
        return {"executionArn": self._arn(name), "startDate": now}

    def _described(self, call: Call) -> Any:
        found = self.executions.get(_name_of(call.arguments["executionArn"]))
        heard = self._clock.now() - self.behind
        if found is None or found.state.started_at > heard:
            raise call.error("ExecutionDoesNotExist", f"Execution Does Not Exist: '{call.arguments['executionArn']}'")
        over = found.ended_at is not None and found.ended_at <= heard
        return {
            "executionArn": self._arn(found.state.name),
            "stateMachineArn": self.planned.arn,
            "name": found.state.name,
            "status": found.state.status.value if over else Status.RUNNING.value,
            "startDate": found.state.started_at,
            "input": json.dumps(found.input),
            **({"stopDate": found.ended_at} if over else {}),
        }

    def _listed(self, call: Call) -> Any:
        wanted = call.arguments.get("statusFilter")
        found = [one for one in self.executions.values() if wanted in (None, one.state.status.value)]
        return {
            "executions": [
                {
                    "executionArn": self._arn(one.state.name),
                    "stateMachineArn": self.planned.arn,
                    "name": one.state.name,
                    "status": one.state.status.value,
                    "startDate": one.state.started_at,
                    **({} if one.ended_at is None else {"stopDate": one.ended_at}),
                }
                for one in reversed(found)
            ]
        }

    def _answer(self, call: Call) -> Any:
        token = call.arguments["taskToken"]
        json.loads(call.arguments["output"])
        for name, running in self.executions.items():
            waiting = running.state.waiting
            if waiting is None or waiting.token != token or running.ended_at is not None:
                continue
            if running.answered or (waiting.until is not None and waiting.until <= self._clock.now()):
                raise call.error("TaskTimedOut", "Task Timed Out: 'the task is over'")
            self.executions[name] = replace(running, answered=True)
            return {}
        raise call.error("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")

    def _arn(self, name: str) -> str:
        return arn("states", f"execution:{self.planned.name}:{name}")


def _events_of(state: Mapping[str, Any]) -> int:
    """API Reference, GetExecutionHistory: a state is entered and exited, and a task tells of itself between."""
    if state["Type"] != "Task":
        return 2
    return 6 if state["Resource"].endswith(".waitForTaskToken") else 5


def _is_due(state: ExecutionState, now: datetime) -> bool:
    return state.due is not None and state.due <= now


def _machine_of(arn: str) -> str:
    """The name of the machine that an ARN of it, or of an execution of it, names."""
    return arn.split(":")[6]


def _name_of(execution_arn: str) -> str:
    return execution_arn.rpartition(":")[2]

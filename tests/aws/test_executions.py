"""StepFunctionsExecutions: the conformance suite, and on moto what Step Functions answers to names and tokens."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from interlock.aws.clients import Clients
from interlock.aws.clock import LambdaClock
from interlock.aws.dynamodb.store import DynamoStore
from interlock.aws.executions import StepFunctionsExecutions, execution_arn
from interlock.model.errors import AccessError, ThrottledError, UnavailableError
from interlock.model.keys import Table
from interlock.ports.executions import StartResult
from tests.aws.dynamo import TABLES, dynamo, session
from tests.aws.installation import ACCOUNT, MACHINE
from tests.aws.world.calls import Call, Calls
from tests.aws.world.functions import Answer
from tests.aws.world.machine import StateMachine
from tests.aws.world.plan import PlannedMachine
from tests.conformance.executions_suite import ExecutionsSuite, ExecutionsWorld, flow
from tests.conformance.manual_clock import ManualClock

TABLE = TABLES[Table.CONTROL]


class StatesClient:
    """A client of the world's Step Functions, by boto3's names."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = "".join(part.capitalize() for part in name.split("_"))
        return lambda **arguments: self._machine(Call("test", "stepfunctions", operation, arguments, dict))


class World(ExecutionsWorld):
    """The suite's flow on Step Functions and DynamoDB, on virtual time."""

    def __init__(self, client: Any) -> None:
        self.clock = ManualClock()
        self.said = []
        planned = PlannedMachine(MACHINE.rsplit(":", 1)[1], json.dumps(flow(TABLE, "task")), ROLE)
        plan: Any = SimpleNamespace(machine=planned)
        functions: Any = SimpleNamespace(invoke=self._invoke)
        self.machine = StateMachine(plan, clock=self.clock, calls=Calls(), functions=functions, publish=lambda *_: None)
        self.machine.use(client)
        self.store = DynamoStore(client, TABLES, self.clock, pause=lambda _: None)
        states = StatesClient(self.machine)
        self.executions = StepFunctionsExecutions(Clients(lambda _: states), planned.arn, self.clock)

    def _invoke(self, _: str, text: str) -> Answer:
        self.said.append(json.loads(text)["said"])
        return Answer(None)

    def settle(self) -> None:
        while self.machine.run_due(self.clock.now()):
            pass

    def advance(self, seconds: float) -> None:
        end = self.clock.now() + timedelta(seconds=seconds)
        while (due := self.machine.next_at()) is not None and due <= end:
            self.clock.advance(seconds=max(0.0, (due - self.clock.now()).total_seconds()))
            self.settle()
        self.clock.advance(seconds=(end - self.clock.now()).total_seconds())


class TestOnTheWorldsStepFunctions(ExecutionsSuite):
    repeated_at_once = StartResult.STARTED

    @contextmanager
    def open_world(self) -> Iterator[ExecutionsWorld]:
        clock = ManualClock()
        with dynamo(clock) as client:
            yield World(client)


# ---------------------------------------------------------------------------------------------------------- on moto

INPUT = {"pipeline": "gold", "attempt": 1}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/states"


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        made = session().client("stepfunctions")
        definition = '{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 60, "End": true}}}'
        made.create_state_machine(name=MACHINE.rsplit(":", 1)[1], definition=definition, roleArn=ROLE)
        yield made


@pytest.fixture
def clock() -> LambdaClock:
    """The real one: moto says by it when an execution began."""
    return LambdaClock()


@pytest.fixture
def executions(client: Any, clock: LambdaClock) -> StepFunctionsExecutions:
    return StepFunctionsExecutions(Clients(lambda _: client), MACHINE, clock)


def test_a_start_may_be_repeated_while_it_is_open(client: Any, executions: StepFunctionsExecutions) -> None:
    assert not executions.is_open("one")
    assert executions.start("one", INPUT) is StartResult.STARTED
    assert executions.is_open("one")
    assert executions.start("one", dict(reversed(INPUT.items()))) is StartResult.STARTED, "AWS cannot tell it apart"
    assert executions.start("one", {**INPUT, "attempt": 2}) is StartResult.ALREADY_OPEN
    assert len(client.list_executions(stateMachineArn=MACHINE)["executions"]) == 1


@pytest.mark.parametrize(("seconds", "result"), [(0.5, StartResult.STARTED), (60, StartResult.ALREADY_OPEN)])
def test_a_repeated_start_is_told_by_when_the_execution_began(
    client: Any, clock: LambdaClock, seconds: float, result: StartResult
) -> None:
    class Later(ManualClock):
        def now(self) -> datetime:
            return clock.now() + timedelta(seconds=seconds)

    executions = StepFunctionsExecutions(Clients(lambda _: client), MACHINE, Later())
    client.start_execution(stateMachineArn=MACHINE, name="one", input='{"attempt":1,"pipeline":"gold"}')
    assert executions.start("one", INPUT) is result


def test_a_name_is_used_once(client: Any, executions: StepFunctionsExecutions) -> None:
    executions.start("one", INPUT)
    client.stop_execution(executionArn=execution_arn(MACHINE, "one"))
    assert not executions.is_open("one")
    assert executions.start("one", INPUT) is StartResult.ALREADY_CLOSED


def test_one_that_exists_and_is_not_found_yet_is_not_taken_for_closed(
    client: Any, executions: StepFunctionsExecutions
) -> None:
    """A second part would begin beside the first."""
    with Stubber(client) as stub:
        stub.add_client_error("start_execution", "ExecutionAlreadyExists", http_status_code=400)
        stub.add_client_error("describe_execution", "ExecutionDoesNotExist", http_status_code=400)
        assert executions.start("one", INPUT) is StartResult.ALREADY_OPEN


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_nobody_waits_for_the_token(client: Any, executions: StepFunctionsExecutions, code: str) -> None:
    with Stubber(client) as stub:
        stub.add_client_error("send_task_success", code, http_status_code=400)
        assert not executions.answer("token")


def test_a_token_that_is_waited_for_is_answered(client: Any, executions: StepFunctionsExecutions) -> None:
    with Stubber(client) as stub:
        stub.add_response("send_task_success", {}, {"taskToken": "token", "output": "{}"})
        assert executions.answer("token")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ThrottlingException", 400, ThrottledError),
        ("ExecutionLimitExceeded", 400, ThrottledError),
        ("ServiceUnavailable", 503, UnavailableError),
        ("AccessDeniedException", 400, AccessError),
        ("StateMachineDoesNotExist", 400, AccessError),
    ],
)
@pytest.mark.parametrize("call", ["start_execution", "describe_execution", "send_task_success"])
def test_other_failures_are_errors_of_this_project(
    client: Any, executions: StepFunctionsExecutions, call: str, code: str, status: int, expected: type[Exception]
) -> None:
    acts: dict[str, Callable[[], object]] = {
        "start_execution": lambda: executions.start("one", INPUT),
        "describe_execution": lambda: executions.is_open("one"),
        "send_task_success": lambda: executions.answer("token"),
    }
    with Stubber(client) as stub:
        stub.add_client_error(call, code, http_status_code=status)
        with pytest.raises(expected) as raised:
            acts[call]()
    assert isinstance(raised.value.__cause__, ClientError)

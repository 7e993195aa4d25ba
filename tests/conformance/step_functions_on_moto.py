"""One execution at a time on moto's Step Functions, on virtual time, in one thread of control.

Nothing else runs beside the execution, so virtual time is simple: whatever would sleep moves the clock instead.
Lambda is called in-process. The points patched are insides of moto 5.2.5, which is why it is pinned;
`test_the_patched_points_exist` fails first when they move.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from unittest import mock

import boto3
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.component.state.choice.comparison.comparison_func import ComparisonFuncValue
from moto.stepfunctions.parser.asl.component.state.choice.comparison.variable import NoSuchVariable
from moto.stepfunctions.parser.asl.component.state.exec import execute_state
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_aws_sdk import (
    StateTaskServiceAwsSdk,
)
from moto.stepfunctions.parser.asl.eval.callback.callback import CallbackEndpoint, CallbackOutcomeSuccess
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

from tests.conformance.manual_clock import ManualClock

PATCHED: Final = (
    (Program, "eval"),
    (ComparisonFuncValue, "_eval_body"),
    (CallbackEndpoint, "wait"),
    (ExecutionWorker, "start"),
    (lambda_eval_utils, "execute_lambda_function_integration"),
    (retrier_decl, "time"),
    (execute_state, "threading"),
    (StateTaskServiceAwsSdk, "_eval_service_task"),
)
REGION: Final = "us-east-1"
LAMBDA: Final = f"arn:aws:lambda:{REGION}:123456789012:function:"
ROLE: Final = "arn:aws:iam::123456789012:role/states"
TABLE: Final = "control"
_ANSWERED: Final = {"HTTPStatusCode": 400, "RequestId": "scripted"}
_CONFIG: Final[Any] = {"stepfunctions": {"execute_state_machine": True}}

Handler = Callable[[dict[str, Any]], Any]
Answer = Callable[[], float | None]
"""When the next token is answered, in seconds from its wait; None: never."""
Refusal = Callable[[], str | None]
"""What DynamoDB answers the next call of the machine with, by the error's name; None: it does as it is told."""


class MotoClock(ManualClock):
    """Virtual time that knows when the execution's own time is up."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: datetime | None = None
        self.time_out: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> bool:
        """Move on by so much; false when the execution's time was up before that."""
        end = self.now() + timedelta(seconds=seconds)
        if self.bound is not None and end >= self.bound:
            self.advance(seconds=(self.bound - self.now()).total_seconds())
            self.time_out()
            return False
        self.advance(seconds=seconds)
        return True


@cache
def _session() -> Any:
    # One for all: a session reads the models of its services once.
    return boto3.session.Session(aws_access_key_id="nobody", aws_secret_access_key="nothing", region_name=REGION)


def client(service: str) -> Any:
    """A client of a faked service; to be used within `step_functions`."""
    return _session().client(service)


@contextmanager
def step_functions(
    handlers: dict[str, Handler], answer: Answer, clock: MotoClock, refusal: Refusal = lambda: None
) -> Iterator[Any]:
    """A Step Functions client whose `start_execution` returns when the execution is over."""
    replacements: dict[tuple[Any, str], Any] = {
        (Program, "eval"): _bounded(clock),
        (ComparisonFuncValue, "_eval_body"): _strict_comparison(),
        (CallbackEndpoint, "wait"): _answered(answer, clock),
        (ExecutionWorker, "start"): ExecutionWorker._execution_logic,
        (lambda_eval_utils, "execute_lambda_function_integration"): _invoked(handlers),
        (retrier_decl, "time"): mock.Mock(sleep=clock.sleep),
        (execute_state, "threading"): mock.Mock(Event=_timed_event(clock), Thread=threading.Thread),
        (StateTaskServiceAwsSdk, "_eval_service_task"): _refused(refusal),
    }
    assert replacements.keys() == set(PATCHED)
    with ExitStack() as stack:
        stack.enter_context(mock_aws(config=_CONFIG))
        for (owner, name), replacement in replacements.items():
            stack.enter_context(mock.patch.object(owner, name, replacement))
        yield client("stepfunctions")


def _bounded(clock: MotoClock) -> Callable[[Any, Any], None]:
    evaluate = Program.eval

    def bounded(program: Any, env: Any) -> None:
        seconds = program.timeout_seconds.timeout_seconds if program.timeout_seconds else None
        clock.bound = None if seconds is None else clock.now() + timedelta(seconds=seconds)
        clock.time_out = env.set_timed_out
        evaluate(program, env)

    return bounded


def _strict_comparison() -> Callable[[Any, Any], None]:
    """Step Functions fails on a path that leads nowhere; moto takes it for "does not hold"."""
    evaluate = ComparisonFuncValue._eval_body

    def strict(comparison: Any, env: Any) -> None:
        for value in env.stack[-2:]:
            if isinstance(value, NoSuchVariable) and comparison.operator_type.name != "IsPresent":
                raise RuntimeError(f"Invalid path {value.path!r}")
        evaluate(comparison, env)

    return strict


def _answered(answer: Answer, clock: MotoClock) -> Callable[..., Any]:
    def wait(endpoint: Any, timeout: float | None = None) -> Any:
        after, success = answer(), CallbackOutcomeSuccess(endpoint.callback_id, "{}")
        if after is None or (timeout is not None and after >= timeout):
            assert timeout is not None, "a token that is never answered and has no time-out would wait forever"
            in_time = clock.sleep(timeout)
            # When the whole execution is over, how the task ends must not matter; moto lets an error overrule it.
            return None if in_time else success
        clock.sleep(after)
        return success

    return wait


def _invoked(handlers: dict[str, Handler]) -> Callable[..., None]:
    def invoke(env: Any, parameters: dict[str, Any], region: str, state_credentials: Any) -> None:
        handler = handlers[parameters["FunctionName"]]
        try:
            payload = json.loads(json.dumps(handler(json.loads(parameters["Payload"]))))
        except Exception as error:
            body = json.dumps({"errorType": type(error).__name__, "errorMessage": str(error)})
            raise lambda_eval_utils.LambdaFunctionErrorException("Unhandled", body) from error
        env.stack.append({"Payload": payload})

    return invoke


def _refused(refusal: Refusal) -> Callable[..., None]:
    evaluate = StateTaskServiceAwsSdk._eval_service_task

    def call(task: Any, **arguments: Any) -> None:
        name = refusal()
        if name is not None:
            answer = {"Error": {"Code": name, "Message": "as scripted"}, "ResponseMetadata": _ANSWERED}
            raise client("dynamodb").exceptions.from_code(name)(answer, "UpdateItem")
        evaluate(task, **arguments)

    return call


def _timed_event(clock: MotoClock) -> type[threading.Event]:
    class TimedEvent(threading.Event):
        """Waits for the work itself; whether it was in time is a matter of virtual time."""

        def __init__(self) -> None:
            super().__init__()
            self._since = clock.now()

        def wait(self, timeout: float | None = None) -> bool:
            assert super().wait(30), "the execution hangs"
            return timeout is None or (clock.now() - self._since).total_seconds() <= timeout

    return TimedEvent

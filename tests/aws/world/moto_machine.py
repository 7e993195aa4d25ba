"""Step Functions of the world by moto's own interpreter: for a sample of the journeys, beside `machine`.

Moto runs an execution on threads of its own. Here they take turns with the world: whatever would sleep parks its thread
until virtual time has come that far, and while one execution runs, the world and all others stand still. So two
executions that are due at one instant always go in the same order. The points patched are insides of moto 5.2.5, those
of `tests/conformance/step_functions_on_moto`, whose canary fails first when they move.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from unittest import mock

from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.component.state.choice.comparison.comparison_func import ComparisonFuncValue
from moto.stepfunctions.parser.asl.component.state.choice.comparison.variable import NoSuchVariable
from moto.stepfunctions.parser.asl.component.state.exec import execute_state
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import state_task_service_aws_sdk
from moto.stepfunctions.parser.asl.eval.callback.callback import CallbackEndpoint, CallbackOutcomeSuccess
from moto.stepfunctions.parser.asl.eval.program_state import (
    ProgramEnded,
    ProgramError,
    ProgramState,
    ProgramStopped,
    ProgramTimedOut,
)
from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

from interlock.ports.clock import Clock
from tests.aws.world.calls import Call, Calls
from tests.aws.world.functions import Functions
from tests.aws.world.machine import STATUS_CHANGE, Publish, StateMachine
from tests.aws.world.plan import Plan

CONFIG: Final[Any] = {"stepfunctions": {"execute_state_machine": True}, "lambda": {"use_docker": False}}
_STATUSES: Final[dict[type[ProgramState], str]] = {
    ProgramEnded: "SUCCEEDED",
    ProgramError: "FAILED",
    ProgramStopped: "ABORTED",
    ProgramTimedOut: "TIMED_OUT",
}
# Real seconds in which a turn of an execution must be over.
_PATIENCE: Final = 60


@dataclass(slots=True)
class _Parked:
    """A thread of an execution that waits for an instant, or for the answer to a token."""

    name: str
    due: datetime
    endpoint: CallbackEndpoint | None = None
    go_on: threading.Event = field(default_factory=threading.Event)

    def may_go_on(self, now: datetime) -> bool:
        answered = self.endpoint is not None and self.endpoint._outcome is not None
        return answered or self.due <= now


class MotoMachine(StateMachine):
    """Answers the calls to Step Functions by moto, and gives each execution its turns."""

    def __init__(self, plan: Plan, *, clock: Clock, calls: Calls, functions: Functions, publish: Publish) -> None:
        super().__init__(plan, clock=clock, calls=calls, functions=functions, publish=publish)
        self._parked: list[_Parked] = []
        self._bounds: dict[str, tuple[datetime, Callable[[], None]]] = {}
        self._current = ""
        self._idle = threading.Event()
        self._closed = False

    @contextmanager
    def installed(self, client: Any) -> Iterator[None]:
        """Make the state machine in moto, patched; at the end no thread is left."""
        machine = self

        class Sleeper:
            @staticmethod
            def sleep(seconds: float) -> None:
                machine._park(seconds)

        replacements: list[tuple[Any, str, Any]] = [
            (Program, "eval", self._bounded(Program.eval)),
            (ComparisonFuncValue, "_eval_body", _strict(ComparisonFuncValue._eval_body)),
            (CallbackEndpoint, "wait", self._waiting()),
            (ExecutionWorker, "start", self._starting()),
            (lambda_eval_utils, "execute_lambda_function_integration", self._invoked),
            (retrier_decl, "time", Sleeper),
            (execute_state, "threading", mock.Mock(Event=_event(self._clock), Thread=threading.Thread)),
            (state_task_service_aws_sdk, "boto_client_for", lambda *_, **__: _Acting(self)),
        ]
        with ExitStack() as stack:
            for owner, name, replacement in replacements:
                stack.enter_context(mock.patch.object(owner, name, replacement))
            client.create_state_machine(
                name=self.planned.name, definition=self.planned.definition, roleArn=self.planned.role
            )
            try:
                yield
            finally:
                self._close()

    # ------------------------------------------------------------------------------------------------- turns

    def next_at(self) -> datetime | None:
        """When the next execution is due."""
        return min((one.due for one in self._parked), default=None)

    def run_due(self, now: datetime) -> int:
        """Give every execution that is due its turn, in the order of (due, name); how many."""
        done = 0
        while due := sorted((one for one in self._parked if one.may_go_on(now)), key=lambda one: (one.due, one.name)):
            for parked in due:
                self._turn(parked)
                done += 1
        return done

    def _turn(self, parked: _Parked) -> None:
        self._parked.remove(parked)
        self._current = parked.name
        self._idle.clear()
        parked.go_on.set()
        assert self._idle.wait(_PATIENCE), f"the execution {parked.name} does not come to rest"

    def _park(self, seconds: float, endpoint: CallbackEndpoint | None = None) -> bool:
        """In a thread of an execution: wait; false when the time of the whole execution was up before that."""
        name, due = self._current, self._clock.now() + timedelta(seconds=seconds)
        bound, time_out = self._bounds.get(name, (None, lambda: None))
        parked = _Parked(name, due if bound is None else min(due, bound), endpoint)
        self._parked.append(parked)
        self._idle.set()
        parked.go_on.wait()
        if self._closed:
            raise SystemExit
        if bound is not None and self._clock.now() >= bound:
            time_out()
            return False
        return True

    def _close(self) -> None:
        self._closed = True
        for parked in list(self._parked):
            parked.go_on.set()

    # --------------------------------------------------------------------------------------- what moto calls

    def _starting(self) -> Callable[[Any], None]:
        def start(worker: Any) -> None:
            name = worker._evaluation_details.execution_details.name
            parked = _Parked(name, self._clock.now())
            self._parked.append(parked)
            threading.Thread(target=self._execute, args=(worker, parked), daemon=True).start()

        return start

    def _execute(self, worker: Any, parked: _Parked) -> None:
        parked.go_on.wait()
        try:
            if not self._closed:
                worker._execution_logic()
                self._tell(worker)
        finally:
            self._idle.set()

    def _tell(self, worker: Any) -> None:
        """The event of an execution that ended."""
        execution = worker._evaluation_details.execution_details
        detail = {
            "executionArn": execution.arn,
            "stateMachineArn": self.planned.arn,
            "name": execution.name,
            "status": _STATUSES[type(worker.env.program_state())],
            "input": json.dumps(execution.inpt),
        }
        self._publish("aws.states", STATUS_CHANGE, detail)

    def _waiting(self) -> Callable[..., Any]:
        def wait(endpoint: Any, timeout: float | None = None) -> Any:
            assert timeout is not None, "a token that is never answered and has no time-out would wait forever"
            in_time = self._park(timeout, endpoint)
            # When the whole execution is over, how the task ends must not matter; moto lets an error overrule it.
            return endpoint._outcome if in_time else CallbackOutcomeSuccess(endpoint.callback_id, "{}")

        return wait

    def _bounded(self, evaluate: Any) -> Callable[[Any, Any], None]:
        def bounded(program: Any, env: Any) -> None:
            seconds = program.timeout_seconds.timeout_seconds
            self._bounds[self._current] = self._clock.now() + timedelta(seconds=seconds), env.set_timed_out
            evaluate(program, env)

        return bounded

    def _invoked(self, env: Any, parameters: dict[str, Any], region: str, state_credentials: Any) -> None:
        answer = self._functions.invoke(parameters["FunctionName"], parameters["Payload"])
        if answer.error is not None:
            body = answer.cause if answer.cause.startswith("{") else json.dumps({"errorType": answer.error})
            raise lambda_eval_utils.LambdaFunctionErrorException("Unhandled", body)
        env.stack.append({"Payload": answer.payload})

    # ------------------------------------------------------------------------------------------------- calls

    def __call__(self, call: Call) -> Any:
        """One call of the API."""
        return call.forward()


class _Acting:
    """DynamoDB as the state machine calls it."""

    def __init__(self, machine: MotoMachine) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._machine._client, name)
        if not callable(act) or name == "meta":
            return act

        def call(**arguments: Any) -> Any:
            with self._machine._calls.acting_as(self._machine.planned.name):
                return act(**arguments)

        return call


def _strict(evaluate: Any) -> Callable[[Any, Any], None]:
    """Step Functions fails on a path that leads nowhere; moto takes it for "does not hold"."""

    def strict(comparison: Any, env: Any) -> None:
        for value in env.stack[-2:]:
            if isinstance(value, NoSuchVariable) and comparison.operator_type.name != "IsPresent":
                raise RuntimeError(f"Invalid path {value.path!r}")
        evaluate(comparison, env)

    return strict


def _event(clock: Clock) -> type[threading.Event]:
    class Timed(threading.Event):
        """Waits for the work itself; whether it was in time is a matter of virtual time."""

        def __init__(self) -> None:
            super().__init__()
            self._since = clock.now()

        def wait(self, timeout: float | None = None) -> bool:
            super().wait()
            return timeout is None or (clock.now() - self._since).total_seconds() <= timeout

    return Timed

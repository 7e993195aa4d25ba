"""Lambda of the world: each function in this process, with its own environment and its own copy of `interlock.aws`.

A function is a process of its own on AWS. Here a container is a private copy of the modules of `interlock.aws`, made at
a cold start and kept for the next invocations: what a module remembers (clients, settings) is its own function's.
"""

import importlib
import json
import os
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final
from unittest import mock

from tests.aws.world.calls import Call, Calls
from tests.aws.world.plan import REGION, Plan, PlannedFunction

_OWN: Final = "interlock.aws"
# Lambda Developer Guide, "Quotas": an answer is at most 6 MB; an asynchronous event at most 1 MB.
_MAX_ANSWER: Final = 6 * 1024 * 1024

Modules = dict[str, ModuleType]
Prepare = Callable[[Modules, PlannedFunction], None]
"""Called after the modules of a container were loaded: puts the world's clock and targets into them."""


class FunctionKilled(BaseException):
    """The function's process dies here. Not an Exception: nothing may handle it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an invocation. `error`: the name of the error, as Step Functions calls it; None: `payload` is it."""

    payload: Any
    error: str | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """The second argument of a handler."""

    function_name: str
    invoked_function_arn: str
    seconds: float
    memory_limit_in_mb: int = 256
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def get_remaining_time_in_millis(self) -> int:
        """Virtual time stands still during an invocation."""
        return int(self.seconds * 1000)


class Functions:
    """All functions of a plan."""

    def __init__(self, plan: Plan, calls: Calls, prepare: Prepare = lambda modules, function: None) -> None:
        self._plan = plan
        self._calls = calls
        self._prepare = prepare
        self._containers: dict[str, tuple[Modules, Callable[[Any, Any], Any]]] = {}
        self._replaced: dict[str, Callable[[Any, Any], Any]] = {}
        self.invoked: list[str] = []
        """The names of the functions that were invoked, in order."""

    def replace(self, name: str, handler: Callable[[Any, Any], Any]) -> None:
        """Run this in place of the function's own code."""
        self._replaced[self._plan.function(name).name] = handler

    def cold(self) -> None:
        """Every container is gone: the next invocations start with fresh modules."""
        self._containers.clear()

    def invoke(self, name: str, payload: str) -> Answer:
        """Invoke by name or ARN and wait for the answer, as the managed Python runtime gives it."""
        function = self._plan.function(name)
        self.invoked.append(function.name)
        context = Context(function.name, function.arn, function.timeout.total_seconds())
        try:
            with self._calls.acting_as(function.name), mock.patch.dict(os.environ, _environment(function), clear=True):
                modules, handler = self._container(function)
                with _private(modules):
                    answer = json.dumps(handler(json.loads(payload), context))
        except FunctionKilled:
            # Lambda Developer Guide, "Retry behavior": a process that dies is a function error without a type of ours;
            # Step Functions Developer Guide, "Handle transient Lambda exceptions": it reports Lambda.Unknown.
            self._containers.pop(function.name, None)
            return Answer(None, "Lambda.Unknown", "the process ended before the request completed")
        except Exception as error:  # noqa: BLE001 - the runtime reports whatever a handler raises
            named = getattr(error, "error_name", None)
            type_ = named if isinstance(named, str) else type(error).__name__
            failure = {
                "errorMessage": str(error),
                "errorType": type_,
                "stackTrace": traceback.format_tb(error.__traceback__),
            }
            return Answer(None, type_, json.dumps(failure))
        if len(answer) > _MAX_ANSWER:
            return Answer(None, "Function.ResponseSizeTooLarge", f"{len(answer)} bytes")
        return Answer(json.loads(answer))

    def _container(self, function: PlannedFunction) -> tuple[Modules, Callable[[Any, Any], Any]]:
        replaced = self._replaced.get(function.name)
        if replaced is not None:
            return {}, replaced
        found = self._containers.get(function.name)
        if found is None:
            path, _, name = function.handler.rpartition(".")
            modules: Modules = {}
            with _private(modules):
                handler = getattr(importlib.import_module(path), name)
                modules.update(_loaded())
                self._prepare(modules, function)
            found = self._containers[function.name] = modules, handler
        return found

    # ----------------------------------------------------------------------------------- calls of the Lambda API

    def __call__(self, call: Call) -> Any:
        """Invoke by the API: synchronously; asynchronous invocations are the cloud's (`cloud.AsyncInvocations`)."""
        if call.operation == "GetFunctionConfiguration":
            function = self._plan.function(call.arguments["FunctionName"])
            return {"FunctionName": function.name, "Environment": {"Variables": dict(function.environment)}}
        assert call.operation == "Invoke", f"lambda {call.operation} is not part of this world"
        payload = call.arguments.get("Payload", b"{}")
        answer = self.invoke(call.arguments["FunctionName"], payload if isinstance(payload, str) else payload.decode())
        failed = {} if answer.error is None else {"FunctionError": "Unhandled"}
        body = answer.cause.encode() if answer.error is not None else json.dumps(answer.payload).encode()
        return {"StatusCode": 200, "Payload": _Body(body), **failed}


class _Body:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def read(self) -> bytes:
        return self._body


def _environment(function: PlannedFunction) -> dict[str, str]:
    """What the runtime sets, and what was planned; nothing of this machine but what Python itself needs."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "TZ") if name in os.environ}
    own = {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_LAMBDA_FUNCTION_NAME": function.name}
    nobody = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
    return {**kept, **own, **nobody, **function.environment}


def _loaded() -> Modules:
    return {name: one for name, one in sys.modules.items() if name == _OWN or name.startswith(f"{_OWN}.")}


@contextmanager
def _private(modules: Modules) -> Iterator[None]:
    """In here `interlock.aws` is this copy; what is imported meanwhile becomes part of it."""
    outside = _loaded()
    package = sys.modules["interlock"]
    attribute = getattr(package, "aws", None)
    for name in outside:
        del sys.modules[name]
    sys.modules.update(modules)
    if _OWN in modules:
        package.aws = modules[_OWN]  # type: ignore[attr-defined]  # set by the import system
    before = len(sys.modules)
    try:
        yield
    finally:
        if len(sys.modules) != before:
            modules.update(_loaded())
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.update(outside)
        if attribute is not None:
            package.aws = attribute  # type: ignore[attr-defined]

"""Every boto3 call of the process, caught where boto3 makes it: answered here or by moto, counted, and made to fail.

The parameters of a call that moto does not see are checked by botocore's own model of the service, as for AWS.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `principal`: the name of the function, the machine, or who else makes it."""

    principal: str
    service: str
    operation: str
    arguments: Mapping[str, Any]
    forward: Callable[[], Any] = field(compare=False)
    """Let moto answer."""

    def error(self, code: str, message: str, **extra: Any) -> ClientError:
        """The error that the service answers with."""
        return service_error(code, message, self.operation, **extra)


def service_error(code: str, message: str, operation: str, **extra: Any) -> ClientError:
    """An error as boto3 raises it."""
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}, **extra}
    return ClientError(answer, operation)


class Service(Protocol):
    """Answers the calls of one service."""

    def __call__(self, call: Call, /) -> Any:
        """The answer, as boto3 returns it."""
        ...


Hook = Callable[[Call], None]
Seen = Callable[[Call, Any], None]


class Calls:
    """Who answers which service, who is calling, and who watches."""

    def __init__(self) -> None:
        self.principal = "operator"
        self.services: dict[str, Service] = {}
        self.before: list[Hook] = []
        """Called before a call reaches its service; may raise what the caller gets, or kill the caller."""
        self.after: list[Seen] = []
        """Called with the answer of a call that succeeded, before it reaches the caller."""
        self._inside = False

    @contextmanager
    def acting_as(self, principal: str) -> Iterator[None]:
        """Whoever calls in here is that one."""
        before, self.principal = self.principal, principal
        try:
            yield
        finally:
            self.principal = before

    @contextmanager
    def installed(self) -> Iterator["Calls"]:
        """Catch the calls of every boto3 client of the process."""
        original: Any = BaseClient._make_api_call

        def make(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
            # A role is assumed on the way to another call, but it is the caller who assumes it.
            if self._inside and client.meta.service_model.service_name != "sts":
                return original(client, operation, arguments)
            return self._answer(client, operation, arguments, lambda: original(client, operation, arguments))

        with mock.patch.object(BaseClient, "_make_api_call", make):
            yield self

    def _answer(self, client: Any, operation: str, arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        service = client.meta.service_model.service_name
        call = Call(self.principal, service, operation, arguments, lambda: self._forwarded(forward))
        answers = self.services.get(service)
        try:
            for hook in self.before:
                hook(call)
            if answers is None:
                answer = call.forward()
            else:
                shape = client.meta.service_model.operation_model(operation).input_shape
                if shape is not None:
                    validate_parameters(arguments, shape)
                answer = answers(call)
            for seen in self.after:
                seen(call, answer)
        except ClientError as error:
            raise _typed(client, error) from error
        return answer

    def _forwarded(self, forward: Callable[[], Any]) -> Any:
        # What moto does inside (Step Functions calls other services) is not ours to catch again.
        before, self._inside = self._inside, True
        try:
            return forward()
        finally:
            self._inside = before


def _typed(client: Any, error: ClientError) -> ClientError:
    """The same error, of the class that `client.exceptions` has for it."""
    code = error.response.get("Error", {}).get("Code", "")
    kind: type[ClientError] = client.exceptions.from_code(code)
    return error if isinstance(error, kind) else kind(error.response, error.operation_name)

"""Calling one of the six functions and waiting for what it says."""

from collections.abc import Mapping
from typing import Any

import msgspec

from interlock.aws.names import Function
from interlock.aws.operations.environment import Environment
from interlock.model.errors import UnavailableError


def call_function(environment: Environment, function: Function, event: Mapping[str, Any]) -> Any:
    """What the function answers; its error, if it failed, with its words."""
    name = environment.names.function(function)
    client = environment.client("lambda")
    answer = environment.ask(
        f"calling the function {name} (lambda:InvokeFunction)",
        lambda: client.invoke(FunctionName=name, InvocationType="RequestResponse", Payload=msgspec.json.encode(event)),
    )
    payload = answer["Payload"].read()
    said: Any = msgspec.json.decode(payload) if payload else None
    if answer.get("FunctionError"):
        failure = said if isinstance(said, Mapping) else {}
        what = f"{failure.get('errorType', 'an error')}: {failure.get('errorMessage', said)}"
        raise UnavailableError(f"{environment.address}: the function {name} failed: {what}: its log says more")
    return said

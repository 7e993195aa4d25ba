"""orchestrator: the tasks of the lifecycle's states."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.names import Function
from interlock.control.attempts import orchestrator
from interlock.model.errors import InvalidValueError


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """One task: `mode` and the run it is about."""
    try:
        msgspec.convert(event, orchestrator.Task)
    except msgspec.ValidationError as error:
        raise InvalidValueError(f"this is no task of the lifecycle: {error}") from error
    return orchestrator.handle(controller.control, event)


handler: Final = Entry(Function.ORCHESTRATOR, handle)

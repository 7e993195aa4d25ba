"""orchestrator: the tasks of the lifecycle's states."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.settings import Function
from interlock.control import orchestrator


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """One task: `mode` and the run it is about."""
    return orchestrator.handle(controller.control, event)


handler: Final = Entry(Function.ORCHESTRATOR, handle)

"""watchdog: a pass over all pipelines, every five minutes."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.aws.controller import Controller
from interlock.aws.invocation import Entry
from interlock.aws.settings import Function
from interlock.control import watchdog


def handle(controller: Controller, event: Mapping[str, Any]) -> Any:
    """One pass; the checks that failed."""
    return {"failed": watchdog.run(controller.control)}


handler: Final = Entry(Function.WATCHDOG, handle)

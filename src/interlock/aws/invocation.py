"""What every function does around its work: read its settings once, say in each log line what it is about."""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from interlock.aws import controller as wiring
from interlock.aws.controller import Controller
from interlock.aws.logs import configure_logs
from interlock.aws.names import Function
from interlock.logs import get_logger
from interlock.model.errors import InvalidValueError

_log = get_logger(__name__)

Handle = Callable[[Controller, Mapping[str, Any]], Any]


class Entry:
    """The entry point of a function: `handler(event, context)`.

    The controller is made by the first invocation, so that a variable that is missing or wrong fails each invocation
    with its name; a process that could not be set up tries again with the next.
    """

    def __init__(self, function: Function, handle: Handle) -> None:
        self.function = function
        self.controller: Controller | None = None
        self._handle = handle

    def __call__(self, event: Any, context: Any) -> Any:
        """One invocation."""
        if self.controller is None:
            self.controller = wiring.from_environment(self.function)
            configure_logs(self.controller.settings.log_level)
        with structlog.contextvars.bound_contextvars(**self._about(event, context)):
            if not isinstance(event, Mapping):
                raise InvalidValueError(f"{self.function} takes a JSON object, not {type(event).__name__}")
            try:
                return self._handle(self.controller, event)
            except Exception as error:
                _log.error("invocation-failed", error=f"{type(error).__name__}: {error}")
                raise

    def _about(self, event: Any, context: Any) -> dict[str, Any]:
        about: dict[str, Any] = {
            "function": self.function.value,
            "request_id": str(getattr(context, "aws_request_id", "")),
        }
        if isinstance(event, Mapping) and isinstance(event.get("pipeline"), str):
            about["run"] = f"{event['pipeline']}/{event.get('schedule', '')}/{event.get('date', '')}"
            about["attempt"] = event.get("attempt")
        return about

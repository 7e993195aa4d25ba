"""Logs of a function: JSON lines on standard error, each with the request id, the run and the attempt it is about.

No payload and no secret is ever logged: callers log names and keys, and a value under a name like `token` is hidden.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import msgspec
import structlog

_SECRET: Final = ("token", "secret", "password", "authorization", "cookie")
_LEVELS: Final = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40}
LEVELS: Final = tuple(_LEVELS)
_UNHANDLED: Final = 20


def configure_logs(level: str = "INFO") -> None:
    """Set the logs of this process up, also those of libraries."""
    threshold = _LEVELS.get(level, _UNHANDLED)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _hide_secrets,
            structlog.processors.JSONRenderer(serializer=_line),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.getLogger().setLevel(max(threshold, logging.WARNING))


def _line(event: Any, **_: Any) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()


def _hide_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in event:
        if any(word in name.lower() for word in _SECRET):
            event[name] = "***"
    return event

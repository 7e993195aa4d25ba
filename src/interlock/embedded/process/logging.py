"""Logs of the controller's process: for people on a terminal, JSON lines otherwise; always on standard error.

What other libraries log comes out in the same form. Whatever was bound by `structlog.contextvars` (the id of the
request) is in every line that is written on its behalf. A value under a name like `token` is never written.

Logging never raises and never waits, whatever becomes of the log: see `log_sink`.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

from interlock.embedded.process.log_sink import LogSink

_SECRET: Final = ("token", "secret", "password", "authorization", "cookie")
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# Below a warning, these log what we log ourselves, or what is of no use.
_CHATTY: Final = ("uvicorn", "uvicorn.error", "httpx", "httpcore")

_sinks: list[LogSink] = []


def configure_logging(*, level: str = "info", json: bool | None = None, stream: TextIO | None = None) -> bool:
    """Set the logs up; `json` None decides by whether the stream is a terminal. True when they are JSON lines."""
    target = LogSink(stream or sys.stderr)
    _sinks[:] = [target]
    as_json = not target.isatty() if json is None else json
    threshold = _LEVELS.get(level, logging.INFO)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hide_secrets,
    ]
    structlog.configure(
        processors=[
            *shared,
            structlog.processors.StackInfoRenderer(),
            *_rendering(as_json),
        ],
        wrapper_class=_harmless(threshold),
        logger_factory=lambda *_: _LineLogger(target),
        cache_logger_on_first_use=False,
    )
    logging.raiseExceptions = False  # what a library logs wrongly is not worth a traceback in the middle of the log
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(as_json)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(threshold)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))
    return as_json


def drain_logs(seconds: float) -> None:
    """Wait until the lines logged so far are written, but not longer than that."""
    for sink in _sinks:
        sink.drain(seconds)


def log_problems() -> list[str]:
    """That the log cannot be written, in words."""
    return [said for sink in _sinks for said in (*sink.loops.problems(), *sink.loops.degradations())]


class _LineLogger:
    """The end of the chain: a finished line. Without a lock, which a signal handler might find taken."""

    def __init__(self, sink: LogSink) -> None:
        self._sink = sink

    def msg(self, line: str) -> None:
        """Write it."""
        self._sink.write(line + "\n")

    debug = info = warning = error = critical = exception = msg


def _harmless(threshold: int) -> type[structlog.typing.FilteringBoundLogger]:
    """A logger whose caller goes on even if what is logged cannot be made into a line."""
    # typeshed knows the protocol, not the class that it is.
    parent: Any = structlog.make_filtering_bound_logger(threshold)

    class HarmlessLogger(parent):  # type: ignore[misc]
        def _proxy_to_logger(self, level: str, event: str | None = None, /, *args: Any, **values: Any) -> Any:
            try:
                return super()._proxy_to_logger(level, event, *args, **values)
            except Exception:  # noqa: BLE001  there is nowhere left to say it
                return None

    return HarmlessLogger


def _rendering(as_json: bool) -> list[structlog.typing.Processor]:
    if as_json:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    # Plain tracebacks: the pretty ones print the values of local variables, and with them whatever is secret.
    return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]


def _hide_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in event:
        if name != "event" and any(word in name.lower() for word in _SECRET):
            event[name] = "***"
    return event

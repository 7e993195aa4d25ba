"""The loggers of the program's modules. structlog is loaded when the first line is logged.

A command that reads logs nothing, and structlog brings a printer of tracebacks with it: a third of what such a command
took to load.
"""

from typing import Any


class LazyLogger:
    """A logger of structlog, made when it is first used."""

    __slots__ = ("_logger", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._logger is None:
            import structlog

            self._logger = structlog.get_logger(self._name)
        return getattr(self._logger, name)


def get_logger(name: str) -> LazyLogger:
    """The logger of a module."""
    return LazyLogger(name)

"""Paths of the States Language: `$.a.b` into a state's data, `$$.Task.Token` into the context object.

Only names are in our subset: the lifecycle has no lists, and no path of it selects several nodes. Refusing the rest
keeps reading and writing the same small thing.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from interlock.model.errors import InterlockError, InvalidValueError

Json = Any
"""A JSON value. The interpreter carries the data of a definition's author and never knows its shape."""


class DefinitionError(InvalidValueError):
    """A state machine definition that the interpreter will not run; raised when it is loaded."""


class StatesError(InterlockError):
    """An error with a name that a definition can retry and catch: `States.Timeout`, a task's own error."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause


RUNTIME: Final = "States.Runtime"
TIMEOUT: Final = "States.Timeout"
ALL: Final = "States.ALL"
RESULT_PATH_MATCH_FAILURE: Final = "States.ResultPathMatchFailure"


class _Absent:
    """The value of a path that leads nowhere; null is a value."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()

_PATH: Final = re.compile(r"\$\$?(?:\.[^\W\d][\w-]*)*")


class Path:
    """A path, read once; DefinitionError when it is none. `context` is true for `$$`, the context object.

    A plain class, so that the definition's decoder hands us the text.
    """

    __slots__ = ("context", "steps", "text")

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self.context: Final = text.startswith("$$")
        if _PATH.fullmatch(text) is None:
            raise DefinitionError(f"{text!r} is not a path: write $.name, or $$. for the context object")
        self.steps: Final = tuple(text.split(".")[1:])

    def find(self, root: Json) -> Json:
        """The value at the path, or ABSENT."""
        node = root
        for step in self.steps:
            if not isinstance(node, dict) or step not in node:
                return ABSENT
            node = node[step]
        return node

    def put(self, root: Json, value: Json) -> Json:
        """A copy of `root` with the value at the path; objects on the way are made where there are none."""
        return _placed(root, self.steps, value, self.text)


class Scope(msgspec.Struct, frozen=True):
    """What the paths of a state can see: its data and the context object, which few ask for: made when it is."""

    data: Json
    context: Mapping[str, Json] | Callable[[], Mapping[str, Json]]

    def find(self, path: Path) -> Json:
        """The value at the path, or ABSENT."""
        if not path.context:
            return path.find(self.data)
        return path.find(self.context() if callable(self.context) else self.context)

    def get(self, path: Path, field: str) -> Json:
        """The value at the path; its absence ends the execution, as it does on Step Functions."""
        value = self.find(path)
        if value is ABSENT:
            raise StatesError(RUNTIME, f"{field}: there is nothing at the path {path.text!r}")
        return value


def _placed(node: Json, steps: tuple[str, ...], value: Json, path: str) -> Json:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(node, dict):
        return {**node, step: _placed(node.get(step, {}), rest, value, path)}
    raise StatesError(
        RESULT_PATH_MATCH_FAILURE, f"the result cannot be put at {path!r}: the input has no place at {step!r}"
    )

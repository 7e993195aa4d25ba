"""How a route is declared: a decorated function, whose annotations say where each argument comes from.

    @get("/pipelines/{pipeline:str}/runs", opt=needs(Scope.READ), operation_id="listRuns", summary="...", tags=["runs"])
    def list_runs(pipeline: PipelineArg, service: ServiceArg, limit: LimitArg = 50) -> RunPage: ...

A plain function may wait for the disk: it runs on a thread unless `sync_to_thread=False`. A coroutine runs on the loop.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypedDict, Unpack

from interlock.api.http.messages import JSON

Function = Callable[..., Any]
_PLACE: Final = re.compile(r"\{(\w+):(str|path)\}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Parameter:
    """An argument that is text in the request. `name` is its name there, if not the argument's own."""

    source: ClassVar[str]
    name: str = ""
    description: str = ""
    min_length: int | None = None
    max_length: int | None = None
    ge: int | None = None
    le: int | None = None
    max_items: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class PathParameter(Parameter):
    """A part of the address."""

    source = "path"


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryParameter(Parameter):
    """A part of the query; a list takes all of that name."""

    source = "query"


@dataclass(frozen=True, eq=False, kw_only=True)
class HeaderParameter(Parameter):
    """A header."""

    source = "header"


@dataclass(frozen=True, eq=False, kw_only=True)
class Example:
    """A body as it could be sent, for the description."""

    summary: str
    value: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class Body:
    """The body, as JSON."""

    description: str = ""
    examples: Sequence[Example] = ()


@dataclass(frozen=True, eq=False)
class Provide:
    """An argument that a function makes. Its own arguments are annotated like a route's; it runs on the loop."""

    make: Function


@dataclass(frozen=True, eq=False, kw_only=True)
class ResponseSpec:
    """An answer beside the usual one, for the description; `data_container` is the type of its content, or None."""

    data_container: Any
    description: str
    media_type: str = JSON


@dataclass(frozen=True, eq=False, kw_only=True)
class Route:
    """One method at one address. `opt` is for the guard that the application is given."""

    method: str
    path: str
    function: Function
    operation_id: str = ""
    summary: str = ""
    tags: Sequence[str] = ()
    opt: Mapping[str, Any] = field(default_factory=dict)
    status_code: int = 200
    media_type: str = JSON
    responses: Mapping[int, ResponseSpec] = field(default_factory=dict)
    security: Sequence[Mapping[str, Any]] | None = None
    include_in_schema: bool = True
    sync_to_thread: bool = True

    @property
    def template(self) -> str:
        """The address as people write it: `/pipelines/{pipeline}`."""
        return _PLACE.sub(r"{\1}", self.path)

    @property
    def places(self) -> list[str]:
        """The names of the parameters in the address, in their order."""
        return [found.group(1) for found in _PLACE.finditer(self.path)]

    @property
    def is_coroutine(self) -> bool:
        """Does it run on the loop, and may it wait there?"""
        return inspect.iscoroutinefunction(self.function)

    @property
    def description(self) -> str:
        """The function's docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def where(self) -> str:
        """The method, the address and the function, for messages."""
        return f"{self.method} {self.template} ({self.function.__module__}.{self.function.__qualname__})"

    def below(self, prefix: str) -> "Route":
        """The same route under a prefix."""
        return replace(self, path=prefix + self.path)


class _Declared(TypedDict, total=False):
    """What a decorator takes beside the address; see `Route`."""

    operation_id: str
    summary: str
    tags: Sequence[str]
    opt: Mapping[str, Any]
    status_code: int
    media_type: str
    responses: Mapping[int, ResponseSpec]
    security: Sequence[Mapping[str, Any]]
    include_in_schema: bool
    sync_to_thread: bool


def get(path: str, **declared: Unpack[_Declared]) -> Callable[[Function], Route]:
    """Declare a function as what GET does at an address."""
    return _declare("GET", path, declared)


def put(path: str, **declared: Unpack[_Declared]) -> Callable[[Function], Route]:
    """Declare a function as what PUT does at an address."""
    return _declare("PUT", path, declared)


def post(path: str, **declared: Unpack[_Declared]) -> Callable[[Function], Route]:
    """Declare a function as what POST does at an address."""
    return _declare("POST", path, declared)


def delete(path: str, **declared: Unpack[_Declared]) -> Callable[[Function], Route]:
    """Declare a function as what DELETE does at an address."""
    return _declare("DELETE", path, declared)


def _declare(method: str, path: str, declared: _Declared) -> Callable[[Function], Route]:
    return lambda function: Route(method=method, path=path, function=function, **declared)

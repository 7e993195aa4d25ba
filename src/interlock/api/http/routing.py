"""Which route a request is for.

The address decides first, then the method. Segment by segment, from the left, the most exact way wins:

1. the segment itself (`sensors:batch`),
2. a parameter with an ending (`{date:str}:cancel`), the longest ending first,
3. a parameter (`{date:str}`), at least one character,
4. the rest of the address (`{key:path}`), at least one character, which may contain slashes.

A way that leads nowhere is given up for the next. An address that is found but not with this method has other methods
(405), even if a less exact address has it. Segments are told apart before they are percent-decoded, so a `%2F` belongs
to a parameter; empty segments do not count, except in the rest of an address.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from interlock.api.http.declarations import Route
from interlock.api.problems import RequestError, not_found
from interlock.model.errors import InterlockError

_SEGMENT: Final = re.compile(r"\{\w+:(str|path)\}((?::[\w-]+)+)?")
_NOWHERE: Final = "there is nothing at this address: /openapi.json lists what there is"
_OTHER_METHODS: Final = "this address has other methods: /openapi.json lists them"


class RouteError(InterlockError):
    """Routes that cannot be assembled: a mistake of ours, found when the application is made."""


@dataclass(slots=True)
class _Node:
    exact: dict[str, "_Node"] = field(default_factory=dict)
    endings: dict[str, "_Node"] = field(default_factory=dict)
    any: "_Node | None" = None
    rest: "_Node | None" = None
    routes: dict[str, Route] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match:
    """Where a request goes: the routes at its address by method, and the parts of the address that are parameters."""

    routes: Mapping[str, Route]
    values: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """The methods of the address, as in `Allow`."""
        return ", ".join([*sorted(self.routes), "OPTIONS"])

    def route(self, method: str) -> Route:
        """The route of a method. Raises when the address has others."""
        found = self.routes.get(method)
        if found is None:
            headers = {"Allow": self.allowed}
            raise RequestError(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", _OTHER_METHODS, headers=headers)
        return found


class Router:
    """All routes of an application."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        segments = [one for one in route.path.split("/") if one]
        for index, segment in enumerate(segments):
            node = _child(node, segment, route, last=index == len(segments) - 1)
        other = node.routes.setdefault(route.method, route)
        if other is not route:
            raise RouteError(f"two routes have the same address and method: {other.where} and {route.where}")

    def find(self, raw_path: bytes) -> Match:
        """What there is at an address, as it was sent. Raises when there is nothing."""
        segments = raw_path.decode("latin-1").split("/")
        found = _walk(self._root, segments, 0)
        if found is None:
            raise not_found(_NOWHERE)
        node, values = found
        return Match(node.routes, values)


def _child(node: _Node, segment: str, route: Route, *, last: bool) -> _Node:
    found = _SEGMENT.fullmatch(segment)
    if found is None:
        if "{" in segment:
            raise RouteError(f"{route.where}: {segment!r} is not a segment: write {{name:str}} or {{name:path}}")
        return node.exact.setdefault(segment, _Node())
    kind, ending = found.groups()
    if kind == "path":
        if not last or ending:
            raise RouteError(f"{route.where}: nothing may follow the rest of the address")
        node.rest = node.rest or _Node()
        return node.rest
    if ending:
        return node.endings.setdefault(ending, _Node())
    node.any = node.any or _Node()
    return node.any


def _walk(node: _Node, segments: list[str], begin: int) -> tuple[_Node, tuple[str, ...]] | None:
    at = begin
    while at < len(segments) and not segments[at]:
        at += 1
    if at == len(segments):
        # One slash at the end does not count; several may be what a parameter for the rest is to get.
        if node.routes and (node.rest is None or at - begin <= 1):
            return node, ()
    else:
        found = _step(node, segments, at)
        if found is not None:
            return found
    rest = "/".join(segments[begin:])
    return (node.rest, (_decoded(rest),)) if node.rest is not None and rest else None


def _step(node: _Node, segments: list[str], at: int) -> tuple[_Node, tuple[str, ...]] | None:
    segment = _decoded(segments[at])
    exact = node.exact.get(segment)
    if exact is not None:
        found = _walk(exact, segments, at + 1)
        if found is not None:
            return found
    for ending in sorted(node.endings, key=len, reverse=True):
        if segment.endswith(ending) and len(segment) > len(ending):
            found = _walk(node.endings[ending], segments, at + 1)
            if found is not None:
                return found[0], (segment.removesuffix(ending), *found[1])
    if node.any is None:
        return None
    found = _walk(node.any, segments, at + 1)
    return None if found is None else (found[0], (segment, *found[1]))


def _decoded(segment: str) -> str:
    return unquote(segment, errors="replace") if "%" in segment else segment

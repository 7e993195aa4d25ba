"""The layer between ASGI and the routes: how a route is declared, found, given its arguments, answered and described.

A route is a function with annotated parameters under one of `get`, `put`, `post` and `delete`. What the annotations say
is what is checked and what `/openapi.json` shows: there is one declaration. This package knows nothing of Interlock but
its problem documents; `application`, `routing`, `parameters` and `openapi` are for `interlock.api.app` to assemble.
"""

from interlock.api.http.declarations import (
    Body,
    Example,
    HeaderParameter,
    PathParameter,
    Provide,
    QueryParameter,
    ResponseSpec,
    Route,
    delete,
    get,
    post,
    put,
)
from interlock.api.http.messages import Request, Response, Stream

__all__ = [
    "Body",
    "Example",
    "HeaderParameter",
    "PathParameter",
    "Provide",
    "QueryParameter",
    "Request",
    "Response",
    "ResponseSpec",
    "Route",
    "Stream",
    "delete",
    "get",
    "post",
    "put",
]

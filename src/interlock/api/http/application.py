"""The ASGI application: a request is matched to its route, guarded, given its arguments, run and answered.

What fails is raised as a problem (`RequestError`); whoever runs the application answers with it. Routes that wait for
the disk run on threads of the application's own.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec

from interlock.api.http.declarations import Route
from interlock.api.http.messages import Receive, Request, Response, Scope, Send, Stream
from interlock.api.http.openapi import About, describe
from interlock.api.http.parameters import Plan, plan_of
from interlock.api.http.routing import RouteError, Router
from interlock.api.problems import NAMES, judge
from interlock.model.errors import UnknownPipelineError

TEMPLATE: Final = "path_template"
Guard = Callable[[Request, Route], None]


class Application:
    """Some routes, what they share, and who may use them."""

    def __init__(
        self, routes: Iterable[Route], *, guard: Guard, state: Any, about: About, threads: int, thread_name: str
    ) -> None:
        """`guard` is asked before anything else, and raises; `state` is for the routes."""
        self.routes = tuple(routes)
        self.state = state
        self._about = about
        self._guard = guard
        self._router = Router(self.routes)
        self._plans: dict[Route, Plan] = {route: plan_of(route) for route in self.routes}
        self._check_names()
        self._threads = threads
        self._thread_name = thread_name
        self._described = b""

    def _check_names(self) -> None:
        seen: dict[str, Route] = {}
        for route in self.routes:
            other = seen.setdefault(route.operation_id, route) if route.include_in_schema else route
            if other is not route:
                raise RouteError(
                    f"two routes have the operation id {route.operation_id!r}: {other.where}, {route.where}"
                )

    def description(self) -> bytes:
        """The OpenAPI document, made when it is first asked for."""
        if not self._described:
            shown = {route: plan for route, plan in self._plans.items() if route.include_in_schema}
            self._described = msgspec.json.encode(describe(shown, self._about))
        return self._described

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request, or the start and the end of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        try:
            await self._answer(scope, receive, send)
        except ConnectionError:
            return  # the client went away before it had sent everything
        except UnknownPipelineError as error:
            # Finding the nearest names takes long enough to hold up every other connection.
            names = bool(scope.get("state", {}).get(NAMES, True))
            raise await asyncio.to_thread(judge, error, names=names) from error
        except Exception as error:
            raise judge(error) from error

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._router.find(scope.get("raw_path") or scope["path"].encode())
        if scope["method"] == "OPTIONS":
            answer = Response(None, headers={"Allow": found.allowed})
            await answer.send(send, status=HTTPStatus.NO_CONTENT, media_type="")
            return
        route = found.route(scope["method"])
        scope[TEMPLATE] = route.template
        request = Request(self, scope, receive, dict(zip(route.places, found.values, strict=True)))
        self._guard(request, route)
        arguments = await self._plans[route].read(request)
        result = await _run(route, arguments)
        if isinstance(result, Stream):
            await result.send(receive, send, status=route.status_code)
            return
        answer = result if isinstance(result, Response) else Response(result)
        await answer.send(send, status=route.status_code, media_type=route.media_type)

    async def _live(self, receive: Receive, send: Send) -> None:
        """From the start of the server to its end the routes have threads."""
        await receive()
        with ThreadPoolExecutor(self._threads, thread_name_prefix=self._thread_name) as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _run(route: Route, arguments: dict[str, Any]) -> Any:
    if route.is_coroutine:
        return await route.function(**arguments)
    if not route.sync_to_thread:
        return route.function(**arguments)
    return await asyncio.to_thread(partial(route.function, **arguments))

"""Which pipelines a caller may see. Lists, and the stream of events, leave out the others.

A token that is limited to owners is asked by the config in force: a pipeline that changes hands is seen by its new
owner at once in a list, and within a few seconds in a stream that is open.
"""

import time
from typing import Annotated, Final

from interlock.api.auth import Principal
from interlock.api.http import Provide, Request
from interlock.api.served import Served
from interlock.control import catalog
from interlock.control.views import lane_rows
from interlock.embedded.access.tokens import Scope, Token
from interlock.ports.store import Store

_KNOWN_SECONDS: Final = 5.0


class Visibility:
    """What a token that is limited to some pipelines may see."""

    def __init__(self, store: Store, token: Token) -> None:
        self._store = store
        self._token = token
        self._known: dict[str, bool] = {}
        self._known_until = 0.0

    def __contains__(self, pipeline: object) -> bool:
        """May it be seen? What was found is believed for a few seconds: streams ask for every event."""
        if not isinstance(pipeline, str):
            return False
        if time.monotonic() >= self._known_until:
            self._known = {}
            self._known_until = time.monotonic() + _KNOWN_SECONDS
        if pipeline not in self._known:
            self._known[pipeline] = self._may_see(pipeline)
        return self._known[pipeline]

    def _may_see(self, pipeline: str) -> bool:
        if pipeline in self._token.pipelines or not self._token.owners:
            return self._token.allows_for(Scope.READ, pipeline, "")
        config = catalog.current(self._store, pipeline)
        return config is not None and self._token.allows_for(Scope.READ, pipeline, config.pipeline.owner)

    def names(self) -> list[str]:
        """The pipelines that may be seen, in order."""
        stored = self._store.pipelines()
        if not self._token.owners:
            return [name for name in stored if name in self._token.pipelines]
        owners = {
            one.pipeline: one.config.pipeline.owner if one.config is not None else ""
            for one in lane_rows.read_configs(self._store, stored)
        }
        return [name for name in stored if self._token.allows_for(Scope.READ, name, owners.get(name, ""))]


def visibility_of(service: Served, caller: Principal) -> Visibility | None:
    """What the caller may see; None when everything."""
    token = caller.token
    return Visibility(service.store, token) if token is not None and token.limited else None


def _visible(request: Request) -> Visibility | None:
    return visibility_of(request.app.state.service, request.scope["state"]["principal"])


VisibleArg = Annotated[Visibility | None, Provide(_visible)]

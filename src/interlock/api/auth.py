"""Who is calling, and what they may do.

On loopback, until the first token was made, the controller's own user may do everything (`peers`), and nobody else
anything; from then on a bearer token is needed, or the cookie of a session that was begun with one. Each route names
the scope it needs; what a token is limited to is asked with the pipeline in hand.
"""

from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec

from interlock.api.credentials import READING, Credentials, credentials_of, headers_of
from interlock.api.http import Provide, Request, Route
from interlock.api.problems import NAMES, RequestError
from interlock.api.served import Served
from interlock.api.state import AppState
from interlock.api.write_rates import WriteRates
from interlock.control import catalog, views
from interlock.embedded.tokens import Scope, Token
from interlock.model.config import PipelineConfig
from interlock.ports.store import Store

LOCAL: Final = "local"
SCOPE: Final = "scope"
ACTIONS: Final = "actions"
MAX_ID: Final = 128
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="interlock"'}


class Principal(msgspec.Struct, frozen=True):
    """The caller: by the name of the token, or somebody on this machine."""

    name: str
    token: Token | None = None

    def may(self, scope: Scope) -> bool:
        """Is this allowed at all?"""
        return self.token is None or self.token.allows(scope)

    def check(self, scope: Scope) -> None:
        """Raise unless this is allowed."""
        if not self.may(scope):
            detail = f"the token {self.name!r} does not have the scope {scope}"
            raise RequestError(HTTPStatus.FORBIDDEN, "forbidden", detail)

    def may_for(self, scope: Scope, pipeline: str, config: PipelineConfig | None) -> bool:
        """Is this allowed for that pipeline?"""
        owner = config.pipeline.owner if config is not None else ""
        return self.token is None or self.token.allows_for(scope, pipeline, owner)

    def check_for(self, scope: Scope, pipeline: str, config: PipelineConfig | None) -> None:
        """Raise unless this is allowed for that pipeline."""
        if not self.may_for(scope, pipeline, config):
            detail = f"the token {self.name!r} is limited to other pipelines: it may not do this for {pipeline!r}"
            raise RequestError(HTTPStatus.FORBIDDEN, "forbidden", detail)

    def check_stored(self, scope: Scope, store: Store, pipeline: str) -> None:
        """Raise unless this is allowed for a pipeline, and it exists; in this order.

        Who is limited to some pipelines does not learn which others there are.
        """
        if self.token is None:
            return
        found = catalog.stored(store, pipeline) if pipeline and len(pipeline) <= MAX_ID else None
        self.check_for(scope, pipeline, found.config if found is not None else None)
        if found is None:
            views.known(store, pipeline)


def authenticate(service: Served, shown: Credentials) -> Principal | None:
    """The caller who shows this; None when nobody can be told."""
    if not service.tokens.required():
        return Principal(LOCAL) if shown.own_user or service.settings.insecure_no_auth else None
    if shown.authorization:
        kind, _, text = shown.authorization.partition(" ")
        token = service.tokens.verify(text.strip()) if kind.lower() == "bearer" else None
        return None if token is None else Principal(token.name, token)
    session = service.sessions.find(shown.session)
    if session is None:
        return None
    return Principal(LOCAL if session.token is None else session.token.name, session.token)


def unauthorised() -> RequestError:
    """The refusal of a caller who shows no token that works."""
    detail = (
        "a bearer token that works is needed: `interlock token create --scope admin --name NAME`, run by the"
        " controller's user, makes one; set it as INTERLOCK_TOKEN"
    )
    return RequestError(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers=_CHALLENGE)


def guard(request: Request, route: Route) -> None:
    """Refuse a caller who does not carry the scope that the route names; routes that name none are open."""
    needed = route.opt.get(SCOPE)
    if needed is None:
        return
    scope = request.scope
    action = scope["path"].rpartition(":")[2]
    needed = route.opt.get(ACTIONS, {}).get(action, needed)
    shown = credentials_of(scope, headers_of(scope))
    principal = authenticate(_service(request), shown)
    if principal is None:
        raise unauthorised()
    principal.check(needed)
    if scope["method"] not in READING:
        request.app.state.rates.take(principal.name)
    scope["state"]["principal"] = principal
    scope["state"][NAMES] = principal.may(Scope.READ)
    scope["state"]["credentials"] = shown


def _service(request: Request) -> Served:
    state: AppState = request.app.state
    return state.service


def _principal(request: Request) -> Principal:
    principal: Principal = request.scope["state"]["principal"]
    return principal


def _rates(request: Request) -> WriteRates:
    state: AppState = request.app.state
    return state.rates


RatesArg = Annotated[WriteRates, Provide(_rates)]
ServiceArg = Annotated[Served, Provide(_service)]
CallerArg = Annotated[Principal, Provide(_principal)]


def needs(scope: Scope, **actions: Scope) -> dict[str, Any]:
    """The `opt` of a route that needs a scope; what it does by the end of its path (`:cancel`) may need another."""
    return {SCOPE: scope, ACTIONS: actions}

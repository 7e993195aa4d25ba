"""Who is calling, and what they may do.

On loopback, until the first token was made, the controller's own user may do everything (`peers`), and nobody else
anything; from then on a bearer token is needed, or the cookie of a session that was begun with one. Each route names
the scope it needs; what a token is limited to is asked with the pipeline in hand.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import parse_qs

import msgspec

from interlock.api.credentials import READING, Credentials, credentials_of, headers_of
from interlock.api.http import Provide, Request, Route
from interlock.api.problems import NAMES, RequestError
from interlock.api.served import Served
from interlock.api.state import AppState
from interlock.api.write_rates import WriteRates
from interlock.control import catalog
from interlock.control.context import Control
from interlock.control.views import pipeline_views
from interlock.embedded.access.sign_on import NO_ID, OidcRefusedError, is_signed
from interlock.embedded.access.tokens import Scope, Token
from interlock.embedded.audit.actors import of_token
from interlock.model.audit import Actor, ActorKind, AuditAction, AuditNote
from interlock.model.config import PipelineConfig
from interlock.ports.store import Store

LOCAL: Final = "local"
SCOPE: Final = "scope"
ACTIONS: Final = "actions"
MAX_ID: Final = 128
LISTS: Final = "lists"
PRINCIPAL: Final = "principal"


class Principal(msgspec.Struct, frozen=True):
    """The caller: by the name of the token, or somebody on this machine; and where the request comes from."""

    name: str
    token: Token | None = None
    address: str = ""

    @property
    def actor(self) -> Actor:
        """The caller, as the audit trail names them."""
        if self.token is None:
            return Actor(ActorKind.ANYBODY, self.name, self.address)
        if self.token.id == NO_ID:
            return Actor(ActorKind.SIGN_ON, self.name, self.address)
        return of_token(self.name, local=self.token.local, address=self.address)

    def acting(self, service: Served) -> Control:
        """What decides and writes, for this caller: what they change is recorded."""
        return service.control.acting(self.actor)

    def writing_sensors(self, service: Served) -> Control:
        """As `acting`, for sensor writes: there are many, and who makes them is only recorded where that is wanted."""
        control = service.control
        return control if control.auditing is None or not control.auditing.sensors else control.acting(self.actor)

    def record(
        self,
        service: Served,
        action: AuditAction,
        *,
        pipeline: str = "",
        subject: str = "",
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Record what this caller did, where that changes nothing in the store and so has no commit of its own."""
        if service.audit is not None:
            made = AuditNote(action=action, actor=self.actor, pipeline=pipeline, subject=subject, after=after or {})
            service.audit.record(made)

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
        if self.token is None or not self.token.limited:
            return
        found = catalog.stored(store, pipeline) if pipeline and len(pipeline) <= MAX_ID else None
        self.check_for(scope, pipeline, found.config if found is not None else None)
        if found is None:
            pipeline_views.known(store, pipeline)


def authenticate(service: Served, shown: Credentials) -> Principal | None:
    """The caller who shows this; None when it is nobody's."""
    tokens = service.tokens
    if not tokens.required():
        if service.settings.insecure_no_auth:
            return Principal(LOCAL, address=shown.address)
        if shown.own_user and tokens.own_user_may():
            return Principal(LOCAL, tokens.local(), shown.address)
    token = _token_of(service, shown)
    if token is None:
        return None
    tokens.note_use(token)
    return Principal(token.name, token, shown.address)


def _token_of(service: Served, shown: Credentials) -> Token | None:
    if shown.authorization:
        text = shown.bearer
        if service.sign_on is not None and is_signed(text):
            return service.sign_on.verify(text)
        return service.tokens.verify(text, shown.address) if text else None
    session = service.sessions.find(shown.session, shown.address)
    return None if session is None else session.token


def why_not(service: Served, shown: Credentials) -> str:
    """What is wrong with the token of a sign-on, in words; "" for every other."""
    if service.sign_on is None or not is_signed(shown.bearer):
        return ""
    try:
        service.sign_on.judge(shown.bearer)
    except OidcRefusedError as error:
        return f"the token of your sign-on is refused: {error}"
    return ""


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
        raise request.app.state.logins.refusal(shown, why_not(_service(request), shown))
    scope["state"][PRINCIPAL] = principal
    principal.check(needed)
    _check_limits(request, route, principal, needed)
    if scope["method"] not in READING:
        request.app.state.rates.take(principal.name)
    scope["state"][NAMES] = principal.may(Scope.READ)
    scope["state"]["credentials"] = shown


def _check_limits(request: Request, route: Route, principal: Principal, needed: Scope) -> None:
    """Whoever is limited to some pipelines names one of them, by path or by query, or asks for a list that is filtered.

    Here, for every route alike: what a route forgets to ask would otherwise be open.
    """
    if principal.token is None or not principal.token.limited:
        return
    named = request.path_values.get("pipeline")
    asked = _named_by_query(request)
    if route.opt.get(LISTS):
        for one in asked:
            principal.check_stored(needed, _service(request).store, one)
        return
    if named is None:
        if len(asked) != 1:
            detail = (
                f"the token {principal.name!r} is limited to some pipelines: name one with `?pipeline=` where this"
                " address takes it, or use a token without limits"
            )
            raise RequestError(HTTPStatus.FORBIDDEN, "forbidden", detail)
        named = asked[0]
    principal.check_stored(needed, _service(request).store, named)


def _named_by_query(request: Request) -> list[str]:
    query = parse_qs(request.scope.get("query_string") or b"", keep_blank_values=True)
    return [one.decode("utf-8", "replace") for one in query.get(b"pipeline", [])]


def _service(request: Request) -> Served:
    state: AppState = request.app.state
    return state.service


def _principal(request: Request) -> Principal:
    principal: Principal = request.scope["state"][PRINCIPAL]
    return principal


def _rates(request: Request) -> WriteRates:
    state: AppState = request.app.state
    return state.rates


RatesArg = Annotated[WriteRates, Provide(_rates)]
ServiceArg = Annotated[Served, Provide(_service)]
CallerArg = Annotated[Principal, Provide(_principal)]


def needs(scope: Scope, *, lists: bool = False, **actions: Scope) -> dict[str, Any]:
    """The `opt` of a route that needs a scope; what it does by the end of its path (`:cancel`) may need another.

    `lists`: the route itself leaves out what a token that is limited to some pipelines may not see.
    """
    return {SCOPE: scope, ACTIONS: actions, LISTS: lists}

"""Sessions of the page: a token, or a single-use code, is exchanged for a cookie that no script can read.

The token travels once, in a body, never in an address; the page does not keep it. The cookie's name carries the port,
since cookies do not tell ports apart. Where no token is needed, there is nothing to exchange.
"""

from http import HTTPStatus
from typing import Annotated, Final

import msgspec

from interlock.api.auth import CallerArg, Principal, ServiceArg, authenticate, needs, why_not
from interlock.api.credentials import cookie_name, credentials_of, headers_of
from interlock.api.http import Body, Example, Request, Response, ResponseSpec, delete, get, post
from interlock.api.logins import unauthorised
from interlock.api.problems import RequestError, documented
from interlock.api.served import Served
from interlock.api.state import AppState
from interlock.embedded.access.owner_token import for_sessions
from interlock.embedded.access.sessions import LONGEST_MS
from interlock.embedded.access.tokens import Scope

Secret = Annotated[str, msgspec.Meta(max_length=512)]
_EXAMPLE: Final = Example(summary="with a token", value={"token": "ilk_..."})


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """Who the caller is and what they may do.

    `scopes` include those that others imply. `pipelines` and `owners` limit all of them; both empty means no limit.
    `required` is false while the controller answers without a token.
    """

    name: str
    scopes: list[Scope]
    pipelines: list[str]
    owners: list[str]
    required: bool


class SessionAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token, or a code of `interlock open`."""

    token: Secret = ""
    code: Secret = ""


class CodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A code that begins one session, within five minutes."""

    code: str


def _view(service: Served, caller: Principal) -> SessionView:
    token = caller.token
    return SessionView(
        name=caller.name,
        scopes=[scope for scope in Scope if caller.may(scope)],
        pipelines=list(token.pipelines) if token is not None else [],
        owners=list(token.owners) if token is not None else [],
        required=service.tokens.required(),
    )


@get(
    "/session",
    sync_to_thread=True,
    responses=documented(401),
    operation_id="getSession",
    summary="Who am I?",
    tags=["session"],
)
def read_session(request: Request, service: ServiceArg) -> SessionView:
    """The caller, by cookie or by bearer token."""
    shown = credentials_of(request.scope, headers_of(request.scope))
    caller = authenticate(service, shown)
    if caller is None:
        raise request.app.state.logins.refusal(shown, why_not(service, shown))
    return _view(service, caller)


@post(
    "/session",
    sync_to_thread=True,
    status_code=200,
    responses=documented(401, 403, 408, 413, 422),
    operation_id="beginSession",
    summary="Begin a session",
    tags=["session"],
)
def begin_session(
    data: Annotated[SessionAsked, Body(examples=[_EXAMPLE])], request: Request, service: ServiceArg
) -> Response[SessionView]:
    """Exchange a token or a code for a cookie. Where no token is needed, there is no session, and none is begun."""
    shown = credentials_of(request.scope, headers_of(request.scope))
    if not service.tokens.required() and (caller := authenticate(service, shown)) is not None:
        return Response(_view(service, caller))
    if not (data.code or data.token):
        raise unauthorised()
    value = _exchanged(service, data, shown.address)
    session = service.sessions.find(value, shown.address) if value is not None else None
    if value is None or session is None:
        what = "this code was used, or is older than five minutes: `interlock open` makes another"
        detail = what if data.code else "this is not a token that works: `interlock token create` makes one"
        raise request.app.state.logins.refusal(shown, detail)
    caller = Principal(session.token.name, session.token)
    headers = {"Set-Cookie": _cookie(request, value, LONGEST_MS // 1000)}
    return Response(_view(service, caller), headers=headers)


def _exchanged(service: Served, asked: SessionAsked, address: str) -> str | None:
    if asked.code:
        return service.sessions.redeem(asked.code, address)
    token = service.tokens.verify(asked.token.strip(), address)
    return None if token is None else service.sessions.begin(token, address)


_ENDED: Final = ResponseSpec(data_container=None, description="It has ended.")


@delete(
    "/session",
    sync_to_thread=True,
    status_code=204,
    responses={**documented(403), 204: _ENDED},
    operation_id="endSession",
    summary="End the session",
    tags=["session"],
)
def end_session(request: Request, service: ServiceArg) -> Response[None]:
    """Log out: the cookie works no more, and streams that were opened with it end."""
    shown = credentials_of(request.scope, headers_of(request.scope))
    if shown.session:
        service.sessions.end(shown.session, shown.address)
    return Response(None, status_code=HTTPStatus.NO_CONTENT, headers={"Set-Cookie": _cookie(request, "", 0)})


@post(
    "/session/code",
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    status_code=201,
    responses=documented(),
    operation_id="makeSessionCode",
    summary="A single-use code for a browser",
    tags=["session"],
)
def make_code(service: ServiceArg, caller: CallerArg) -> CodeView:
    """For `interlock open`: the code begins one session with the rights of the caller, within five minutes."""
    if caller.token is not None and not caller.token.id:
        detail = "a sign-on begins no session: send its token as `Authorization: Bearer`, or make a token for the page"
        raise RequestError(HTTPStatus.FORBIDDEN, "forbidden", detail)
    token = caller.token or for_sessions(service.tokens)
    if token is None:
        raise unauthorised("the owner's token is revoked: begin a session with another token")
    return CodeView(code=service.sessions.make_code(token, caller.actor))


def _cookie(request: Request, value: str, seconds: int) -> str:
    state: AppState = request.app.state
    https = request.scope.get("scheme") == "https" or state.public_url.lower().startswith("https://")
    secure = "; Secure" if https else ""
    name = cookie_name(request.scope)
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


ROUTES: Final = (read_session, begin_session, end_session, make_code)

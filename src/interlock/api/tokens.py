"""Tokens over the API: made, listed, rotated, revoked.

The text of a token is in the answer that makes it, and nowhere else.
"""

from typing import Annotated, Final

import msgspec

from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import Body, Example, PathParameter, delete, get, post
from interlock.api.problems import documented, not_found
from interlock.embedded.access.tokens import DEFAULT_LIFE, Scope, Token, expiry
from interlock.logs import get_logger
from interlock.model.durations import parse_duration

_log = get_logger(__name__)

_ASKED: Final = Example(summary="for a feed", value={"name": "airflow", "scopes": ["sensor:write"], "owners": ["etl"]})
_ROTATION: Final = Example(summary="at once", value={"grace": "0s"})
Names = Annotated[list[Annotated[str, msgspec.Meta(max_length=128)]], msgspec.Meta(max_length=1000)]


class TokenList(msgspec.Struct, frozen=True, kw_only=True):
    """Every token there ever was, revoked ones too; never a token itself."""

    items: list[Token]


class TokenAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who it is for and what it allows.

    `pipelines` and `owners` limit all of it, `networks` from where it may be used. `expires`: after how long it works
    no more, or `never`; default: a year.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    scopes: Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=10)]
    pipelines: Names = []
    owners: Names = []
    networks: Names = []
    expires: Annotated[str, msgspec.Meta(max_length=32)] | None = None


class Rotation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`grace`: how long the text before works. `expires`: counted from now; without it, the end stays as it was."""

    grace: Annotated[str, msgspec.Meta(max_length=32)] = "1h"
    expires: Annotated[str, msgspec.Meta(max_length=32)] | None = None


class TokenMade(msgspec.Struct, frozen=True, kw_only=True):
    """The token itself, this once, and what is known of it."""

    token: str
    known: Token


@get(
    "/tokens",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    responses=documented(),
    operation_id="listTokens",
    summary="All tokens",
    tags=["operation"],
)
def list_tokens(service: ServiceArg) -> TokenList:
    """In the order they were made."""
    return TokenList(items=service.tokens.list())


@post(
    "/tokens",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    status_code=201,
    responses=documented(408, 413, 422),
    operation_id="createToken",
    summary="Make a token",
    tags=["operation"],
)
def create_token(
    data: Annotated[TokenAsked, Body(examples=[_ASKED])], service: ServiceArg, caller: CallerArg
) -> TokenMade:
    """From the first one on, every caller needs one, the page included. It is shown once."""
    text, made = service.tokens.create(
        data.name,
        data.scopes,
        pipelines=data.pipelines,
        owners=data.owners,
        networks=data.networks,
        expires_at=expiry(data.expires or DEFAULT_LIFE, service.clock.now()),
        by=caller.actor,
    )
    _log.info("token made", token=made.name, scopes=list(made.scopes), by=caller.name)
    return TokenMade(token=text, known=made)


@delete(
    "/tokens/{name:str}",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    status_code=200,
    responses=documented(404, 422),
    operation_id="revokeToken",
    summary="Revoke a token",
    tags=["operation"],
)
def revoke_token(name: Annotated[str, PathParameter(max_length=64)], service: ServiceArg, caller: CallerArg) -> Token:
    """It works no more within a second, nor do the sessions begun with it; it stays in the list."""
    if all(one.name != name for one in service.tokens.list()):
        raise not_found(f"there is no token {name!r}")
    ended = service.tokens.revoke(name, by=caller.actor)
    _log.info("token revoked", token=name, by=caller.name)
    return ended


@post(
    "/tokens/{slot:str}",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    status_code=200,
    responses=documented(404, 408, 413, 422),
    operation_id="rotateToken",
    summary="Rotate a token",
    tags=["operation"],
)
def rotate_token(
    slot: Annotated[
        str, PathParameter(max_length=80, description="The token's name and what is done: `airflow:rotate`.")
    ],
    data: Annotated[Rotation, Body(examples=[_ROTATION])],
    service: ServiceArg,
    caller: CallerArg,
) -> TokenMade:
    """A new text under the same name, shown once; scopes and limits stay.

    The text before works for `grace`; with `0s` not at all, and the token's sessions end.
    """
    name, _, action = slot.rpartition(":")
    if action != "rotate":
        raise not_found(f"a token can be rotated (`{slot.partition(':')[0]}:rotate`), and nothing else")
    if all(one.name != name for one in service.tokens.list()):
        raise not_found(f"there is no token {name!r}")
    expires = expiry(data.expires, service.clock.now()) if data.expires is not None else None
    text = service.tokens.rotate(name, grace=parse_duration(data.grace), expires_at=expires, by=caller.actor)
    _log.info("token rotated", token=name, by=caller.name)
    known = next(one for one in service.tokens.list() if one.name == name)
    return TokenMade(token=text, known=known)


ROUTES: Final = (list_tokens, create_token, revoke_token, rotate_token)

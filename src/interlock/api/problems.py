"""Errors as RFC 9457 problem documents: what was wrong, where, and what to do. Never a secret, never a traceback."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from interlock.api.http.declarations import ResponseSpec
from interlock.logs import get_logger
from interlock.model.errors import (
    CommitRefusedError,
    InterlockError,
    InvalidConfigError,
    InvalidValueError,
    QuotaExceededError,
    SensorTooLargeError,
    StoreError,
    UnavailableError,
    UnknownPipelineError,
)

MEDIA_TYPE: Final = "application/problem+json"
_PREFIX: Final = "urn:interlock:problem:"

_log = get_logger(__name__)


class ProblemError(msgspec.Struct, frozen=True, kw_only=True):
    """One of several things that are wrong: where in the request, and what."""

    path: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A problem document. `request_id` finds the request in the controller's log."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str = ""
    errors: list[ProblemError] = []


class RequestError(InterlockError):
    """A request that is answered with a problem of its own."""

    def __init__(
        self,
        status: HTTPStatus,
        slug: str,
        detail: str,
        *,
        errors: list[ProblemError] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.slug = slug
        self.errors = errors or []
        self.headers = dict(headers or {})


def not_found(what: str) -> RequestError:
    """There is no such thing."""
    return RequestError(HTTPStatus.NOT_FOUND, "not-found", what)


def document(scope: Mapping[str, Any], status: int, slug: str, detail: str, errors: list[ProblemError]) -> Problem:
    """The problem document of a request."""
    state = scope.get("state") or {}
    return Problem(
        type=_PREFIX + slug,
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        instance=str(scope.get("path", "")),
        request_id=str(state.get("request_id", "")),
        errors=errors,
    )


# ------------------------------------------------------------------------------------------------ what errors mean

# In the state of a request: may its caller hear which pipelines there are?
NAMES: Final = "names"


def judge(error: Exception, *, names: bool = True) -> RequestError:
    """What an error means to the caller. `names`: may the caller hear which pipelines there are?"""
    match error:
        case RequestError():
            return error
        case UnknownPipelineError():
            return RequestError(HTTPStatus.NOT_FOUND, "unknown-pipeline", str(error) if names else error.plain)
        case SensorTooLargeError():
            return RequestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", str(error))
        case QuotaExceededError():
            return RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "quota-exceeded", str(error))
        case InvalidConfigError():
            return RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-config", str(error))
        case InvalidValueError() | CommitRefusedError():
            return RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-value", str(error))
        case StoreError() | UnavailableError():
            _log.error("a request failed on the store", error=str(error))
            text = "the store cannot do this now: try again; the controller's log says why"
            return RequestError(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", text, headers={"Retry-After": "1"})
        case UnicodeDecodeError():
            return RequestError(HTTPStatus.BAD_REQUEST, "malformed", f"the body is not JSON: it is not UTF-8: {error}")
        case RecursionError():
            return RequestError(HTTPStatus.BAD_REQUEST, "malformed", "the body is nested far too deep")
        case _:
            _log.exception("a request failed", exc_info=error)
            text = "the controller failed on this request; its log says why"
            return RequestError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", text)


# ----------------------------------------------------------------------------------------------------- for OpenAPI

_MEANINGS: Final = {
    400: "The request cannot be read: malformed JSON or a malformed request.",
    401: "A token is required, or this one does not work.",
    403: "The token does not allow this.",
    404: "There is no such thing; for a pipeline, with the nearest names.",
    405: "This address has other methods.",
    408: "The request did not arrive in time.",
    409: "It is not possible in the state things are in.",
    413: "The body is too large.",
    414: "The address is too long.",
    415: "The body is of a kind that is not read here.",
    421: "The Host is not this controller's.",
    422: "The request can be read but is not acceptable; `errors` lists what is wrong.",
    429: "The caller writes too fast, or holds too much at once; `Retry-After` says when to come back.",
    503: "The store cannot do this now; try again.",
}
_ALWAYS: Final = (400, 401, 403, 405, 414, 421, 429, 503)


def documented(*statuses: int) -> dict[int, ResponseSpec]:
    """The problem documents a route may answer with, for its description."""
    return {
        status: ResponseSpec(data_container=Problem, description=_MEANINGS[status], media_type=MEDIA_TYPE)
        for status in sorted({*_ALWAYS, *statuses})
    }

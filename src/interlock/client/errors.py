"""What can go wrong between a program and a server, told apart by what the program may do about it."""

from typing import Any, Final

import msgspec

from interlock.model.errors import InterlockError

_NOT_READY: Final = "urn:interlock:problem:not-ready"
_NOT_CLAIMED: Final = (_NOT_READY, "urn:interlock:problem:not-claimable")


class Problem(msgspec.Struct, frozen=True):
    """The server's problem document (RFC 9457). `errors` are the single faults, where there are several."""

    title: str = ""
    status: int = 0
    detail: str = ""
    type: str = "about:blank"
    instance: str = ""
    errors: list[Any] = []


class ClientError(InterlockError):
    """Root of the SDK's errors."""


class ConnectionFailedError(ClientError):
    """No server answered, after every retry that was allowed. The request may or may not have been carried out."""


class AnswerError(ClientError):
    """The server refused a request; `problem` is what it said."""

    def __init__(self, message: str, problem: Problem) -> None:
        super().__init__(message)
        self.problem = problem

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class UnauthorizedError(AnswerError):
    """401 or 403: no token, an unknown one, or one without the scope."""


class NotFoundError(AnswerError):
    """404: no such pipeline, sensor or run; the message carries the nearest names."""


class RefusedError(AnswerError):
    """Any other 4xx: the request itself is at fault, and the same one would be refused again."""


class NotClaimedError(RefusedError):
    """409: the run is not yours. `later`: it may be, once it is ready; otherwise asking again would not help."""

    @property
    def later(self) -> bool:
        """Is it worth asking again?"""
        return self.problem.type == _NOT_READY


class ServerFailedError(AnswerError):
    """5xx, or 429 for longer than the retries last: the same request may succeed later."""


class UnreadableAnswerError(ClientError):
    """The answer is not one of ours: something else listens there, or a far older or newer server."""


class NotReadyError(ClientError):
    """`wait_until_ready` gave up. `summary` says what was still missing."""

    def __init__(self, message: str, summary: str = "") -> None:
        super().__init__(message)
        self.summary = summary


class WithheldError(NotReadyError):
    """A calendar withholds that date: waiting would never end."""


def not_claimed(reason: str, *, later: bool) -> NotClaimedError:
    """The refusal of a claim, as a server would send it."""
    return NotClaimedError(reason, Problem(status=409, detail=reason, type=_NOT_CLAIMED[0 if later else 1]))


def refusal(status: int, body: bytes, where: str) -> AnswerError:
    """The error of a 4xx or 5xx answer, with the problem document if it carries one."""
    problem = _problem(status, body)
    said = problem.detail or problem.title or f"HTTP {status}"
    listed = "".join(f"\n  {_line(one)}" for one in problem.errors if _line(one) not in said)
    if status in (401, 403):
        hint = "" if "INTERLOCK_TOKEN" in said else " (the token comes from INTERLOCK_TOKEN, or Client(token=...))"
        return UnauthorizedError(f"{where}: {said}{hint}{listed}", problem)
    if status == 404:
        return NotFoundError(f"{said}{listed}", problem)
    if status >= 500 or status == 429:
        return ServerFailedError(f"{where}: {said} (HTTP {status}){listed}", problem)
    kind = NotClaimedError if problem.type in _NOT_CLAIMED else RefusedError
    return kind(f"{said}{listed}", problem)


def _problem(status: int, body: bytes) -> Problem:
    try:
        found = msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # A proxy's page, or nothing at all: enough of it to recognise who is speaking.
        return Problem(status=status, title=f"HTTP {status}", detail=body[:200].decode(errors="replace").strip())
    return msgspec.structs.replace(found, status=status)


def _line(one: object) -> str:
    if isinstance(one, dict):
        place, said = one.get("path") or one.get("field") or "", one.get("message") or one.get("detail") or ""
        return f"{place}: {said}" if place else str(said or one)
    return str(one)

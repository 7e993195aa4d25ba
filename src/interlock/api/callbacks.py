"""Where jobs report their own end: the address is signed, and is all the permission there is."""

from http import HTTPStatus
from typing import Annotated, Final, Literal

import msgspec

from interlock.api.auth import ServiceArg
from interlock.api.http import Body, Example, PathParameter, Request, post
from interlock.api.problems import RequestError, documented, not_found
from interlock.control import writing
from interlock.model.audit import Actor, ActorKind
from interlock.model.errors import AlreadyReportedError
from interlock.model.run import FailureCategory, JobEvent, JobRecord

_OUTCOME: Final = Example(
    summary="the job failed", value={"result": "fail", "error": "no rows", "category": "PERMANENT"}
)


class Reported(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the job ended."""

    result: Literal["success", "fail", "timeout"]
    category: FailureCategory | None = None
    error: Annotated[str, msgspec.Meta(max_length=20_000)] = ""


@post(
    "/callbacks/{token:str}",
    sync_to_thread=True,
    status_code=201,
    responses=documented(404, 408, 409, 413, 422),
    operation_id="reportByCallback",
    summary="Report how a job ended, at the address it was given",
    tags=["runs"],
    security=[{}],
)
def report(
    token: Annotated[str, PathParameter(description="Signed; for one attempt, and once.")],
    data: Annotated[Reported, Body(examples=[_OUTCOME])],
    request: Request,
    service: ServiceArg,
) -> JobRecord:
    """No token is needed beside the address. The answer comes when the outcome is durable."""
    claim = service.callbacks.read(token)
    if claim is None:
        raise not_found("this is not an address that this controller has given to a job")
    client = request.scope.get("client")
    job = Actor(ActorKind.JOB, claim.run_id, client[0] if client else "")
    try:
        with service.callbacks.lock:
            return writing.report_by_callback(
                service.control.acting(job),
                claim.key,
                claim.attempt,
                claim.run_id,
                JobEvent(data.result),
                category=data.category,
                error=data.error,
            )
    except AlreadyReportedError as error:
        raise RequestError(HTTPStatus.CONFLICT, "conflict", str(error)) from error


ROUTES: Final = (report,)

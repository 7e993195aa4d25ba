"""The audit trail: who changed what, when, from where and why."""

from typing import Annotated, Final

import msgspec

from interlock.api.auth import ServiceArg, needs
from interlock.api.events import SinceArg, UntilArg, instant
from interlock.api.http import QueryParameter, get
from interlock.api.parameters import PipelineFilter
from interlock.api.problems import documented, not_found
from interlock.embedded.access.tokens import Scope
from interlock.embedded.audit.trail import NEWEST, AuditEntry, AuditHead, AuditWanted
from interlock.model.audit import AuditAction


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some records, the latest first; `next` is the cursor of the following page, null on the last.

    `head` is the latest record of the whole trail and its hash. Kept elsewhere, it shows later whether the trail was
    changed: `interlock audit verify --head SEQ:HASH`. Null while there is no record.
    """

    items: list[AuditEntry]
    next: int | None = None
    head: AuditHead | None = None


@get(
    "/audit",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="listAudit",
    summary="Who changed what",
    tags=["operation"],
)
def list_audit(
    service: ServiceArg,
    pipeline: PipelineFilter = None,
    actor: Annotated[
        str | None,
        QueryParameter(name="actor", max_length=128, description="Only of this actor: a token's or a user's name."),
    ] = None,
    action: Annotated[
        list[AuditAction] | None, QueryParameter(name="action", description="Only of these actions; may be repeated.")
    ] = None,
    since: SinceArg = None,
    until: UntilArg = None,
    cursor: Annotated[
        int, QueryParameter(name="cursor", ge=0, le=NEWEST, description="The `next` of the page before.")
    ] = NEWEST,
    limit: Annotated[int, QueryParameter(name="limit", ge=1, le=1000)] = 100,
) -> AuditPage:
    """Every change by a person, a token or a job, with what was there before and after: digests of configs and secrets,
    never these themselves. `404` from a console over AWS, where no trail is kept.
    """
    if service.audit is None:
        raise not_found("no audit trail is kept on AWS: CloudTrail says who called what")
    wanted = AuditWanted(
        pipeline=pipeline,
        actor=actor,
        actions=tuple(action or ()),
        since=instant(since),
        until=instant(until, "until"),
    )
    found = service.audit.read(wanted, before=cursor, limit=limit + 1)
    following = found[limit - 1].seq if len(found) > limit else None
    return AuditPage(items=found[:limit], next=following, head=service.audit.head())


ROUTES: Final = (list_audit,)

"""Runs: looking at them, asking for another attempt, reporting how a job ended."""

import time
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

import msgspec

from interlock.api.auth import CallerArg, Principal, ServiceArg, needs
from interlock.api.http import Body, Example, PathParameter, get, post
from interlock.api.parameters import CursorArg, LimitArg, PipelineArg, ScheduleArg
from interlock.api.problems import RequestError, documented, not_found
from interlock.api.served import Served
from interlock.control import records, reruns, writing
from interlock.control.attempts import cancelling, claiming
from interlock.control.attempts.claiming import Claim
from interlock.control.views import pipeline_views, rerun_preview, run_views
from interlock.control.views.rerun_preview import RerunPreview
from interlock.control.views.run_views import RunDetail, RunPage
from interlock.embedded.access.tokens import Scope
from interlock.logs import get_logger
from interlock.model import keys
from interlock.model.errors import InvalidValueError, UnknownPipelineError
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period
from interlock.model.run import FailureCategory, JobEvent, JobRecord, RerunRequest

_log = get_logger(__name__)

_DECISION_SECONDS: Final = 2.0
_RERUN: Final = Example(
    summary="run a day again", value={"date": "2026-03-03", "reason": "late correction", "force": True}
)
_CLAIM: Final = Example(summary="a claim of a nightly job", value={"claimId": "host-7-2026-03-03T06:00:01"})
_PREVIEW: Final = Example(summary="a day", value={"date": "2026-03-03"})
_CANCEL: Final = Example(summary="a cancellation", value={"reason": "wrong input"})
_OUTCOME: Final = Example(summary="the job of a run succeeded", value={"date": "2026-03-03", "result": "success"})

Text = Annotated[str, msgspec.Meta(max_length=2000)]
Name = Annotated[str, msgspec.Meta(max_length=256)]


class RerunAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which run, and why. `force` runs it although nothing has changed."""

    date: Name
    schedule: Name | None = None
    reason: Text = ""
    force: bool = False


class RerunAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The request, and what was decided; `pending` when that takes longer than a moment: an event tells of it.

    `undated_sensors`: of a past period, the sensors that the attempt reads as they are now, since they name no period.
    """

    id: str
    pipeline: str
    schedule: str
    date: str
    decision: Literal["accepted", "rejected", "pending"]
    reason: str = ""
    undated_sensors: list[str] = []


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """How a job ended. Without `attempt` or `run_id` it is the active attempt's."""

    date: Name
    result: Literal["success", "fail", "timeout"]
    schedule: Name | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    run_id: Name = ""
    category: FailureCategory | None = None
    error: Annotated[str, msgspec.Meta(max_length=20_000)] = ""


class RunAction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What is done to a run. A claim has `claim_id`, a cancellation may have a `reason`.

    `claim_id` is of the claimant's making: a claim whose answer got lost is repeated with the same.
    """

    claim_id: Annotated[str, msgspec.Meta(max_length=128)] = ""
    reason: Text = ""


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a cancellation: `cancelled`, or `stopping` while the target has not ended the job yet."""

    pipeline: str
    schedule: str
    date: str
    outcome: Literal["cancelled", "stopping"]


@get(
    "/pipelines/{pipeline:str}/runs",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="listRuns",
    summary="The runs of a pipeline",
    tags=["runs"],
)
def list_runs(
    pipeline: PipelineArg,
    service: ServiceArg,
    schedule: ScheduleArg = None,
    cursor: CursorArg = None,
    limit: LimitArg = 50,
) -> RunPage:
    """The latest date first. The runs of a deleted pipeline are still there."""
    page = run_views.runs(service.store, pipeline, schedule=schedule, after=cursor, limit=limit)
    if not page.items:
        pipeline_views.known(service.store, pipeline)
    return page


@get(
    "/pipelines/{pipeline:str}/runs/{schedule:str}/{date:str}",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getRun",
    summary="A run",
    tags=["runs"],
)
def read_run(
    pipeline: PipelineArg,
    schedule: Annotated[str, PathParameter(max_length=256)],
    date: Annotated[str, PathParameter(max_length=64)],
    service: ServiceArg,
) -> RunDetail:
    """With its attempts, rule results, job log, reruns, events and SLA."""
    key = RunKey(pipeline, schedule, str(parse_period(date)))
    found = run_views.run(service.store, key, service.clock.now())
    if found is None:
        pipeline_views.known(service.store, pipeline)
        raise not_found(
            f"{key} has never run: `GET pipelines/{pipeline}/readiness?date={key.date}` says what it waits for"
        )
    return found


@post(
    "/pipelines/{pipeline:str}/reruns",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    status_code=202,
    responses=documented(404, 408, 413, 422),
    operation_id="requestRerun",
    summary="Ask for another attempt",
    tags=["runs"],
)
def request_rerun(
    pipeline: PipelineArg,
    data: Annotated[RerunAsked, Body(examples=[_RERUN])],
    service: ServiceArg,
    caller: CallerArg,
) -> RerunAnswer:
    """Asked durably, then decided within budgets and calendars; the answer carries the decision if it comes soon."""
    config = pipeline_views.valid(service.store, pipeline)
    schedule = pipeline_views.choose_schedule(config, data.schedule).schedule_id
    key = RunKey(pipeline, schedule, str(parse_period(data.date)))
    undated = reruns.undated_sensors(service.control, key)
    asked = reruns.request(caller.acting(service), key, reason=data.reason, force=data.force, requested_by=caller.name)
    decision, reason = _decided(service, asked)
    return RerunAnswer(
        id=asked.id,
        pipeline=pipeline,
        schedule=schedule,
        date=key.date,
        decision=decision,
        reason=reason,
        undated_sensors=undated if decision != "rejected" else [],
    )


class PreviewAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which run; `force` as it would be asked for."""

    date: Name
    schedule: Name | None = None
    force: bool = False


@post(
    "/pipelines/{pipeline:str}/reruns:preview",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    status_code=200,
    responses=documented(404, 408, 413, 422),
    operation_id="previewRerun",
    summary="What would become of a rerun request",
    tags=["runs"],
)
def preview_rerun(
    pipeline: PipelineArg,
    data: Annotated[PreviewAsked, Body(examples=[_PREVIEW])],
    service: ServiceArg,
    caller: CallerArg,
) -> RerunPreview:
    """The decision, the budgets and the downstreams as they stand now. Nothing is requested, and no target asked."""
    config = pipeline_views.valid(service.store, pipeline)
    schedule = pipeline_views.choose_schedule(config, data.schedule).schedule_id
    key = RunKey(pipeline, schedule, str(parse_period(data.date)))
    return rerun_preview.preview(service.control, config, key, force=data.force, by=caller.name)


def _decided(service: Served, asked: RerunRequest) -> tuple[Any, str]:
    """The decision, once the stream-router has made it. It is asked for durably: nobody has to wait for it."""
    where = records.control_key(asked.key.pk, keys.rerun_request_sk(asked.key, asked.id))
    end = time.monotonic() + _DECISION_SECONDS
    while not service.refusing and (left := end - time.monotonic()) > 0:
        head = service.head()
        item = service.store.get(where) or {}
        if item.get("decision") is not None:
            return item["decision"], str(item.get("decidedBecause", ""))
        service.wait_for_change(head, min(left, 0.1))
    return "pending", ""


@post(
    "/pipelines/{pipeline:str}/jobs",
    opt=needs(Scope.JOB_WRITE),
    sync_to_thread=True,
    status_code=201,
    responses=documented(404, 408, 413, 422),
    operation_id="reportJob",
    summary="Report how a job ended",
    tags=["runs"],
)
def report_job(
    pipeline: PipelineArg,
    data: Annotated[Outcome, Body(examples=[_OUTCOME])],
    service: ServiceArg,
    caller: CallerArg,
) -> JobRecord:
    """For jobs that others run, and callbacks. The answer comes when it is durable."""
    try:
        config = pipeline_views.followed(service.store, pipeline)
    except UnknownPipelineError:
        caller.check_for(Scope.JOB_WRITE, pipeline, None)
        raise
    caller.check_for(Scope.JOB_WRITE, pipeline, config)
    schedule = pipeline_views.choose_schedule(config, data.schedule).schedule_id
    return writing.report_job(
        caller.acting(service),
        RunKey(pipeline, schedule, str(parse_period(data.date))),
        JobEvent(data.result),
        attempt=data.attempt,
        run_id=data.run_id,
        category=data.category,
        error=data.error,
        by=caller.name,
    )


@post(
    "/pipelines/{pipeline:str}/runs/{schedule:str}/{slot:str}",
    opt=needs(Scope.JOB_WRITE, cancel=Scope.OPERATE),
    sync_to_thread=True,
    status_code=200,
    responses=documented(404, 408, 409, 413, 422),
    operation_id="actOnRun",
    summary="Claim or cancel a run",
    tags=["runs"],
)
def act_on_run(
    pipeline: PipelineArg,
    schedule: Annotated[str, PathParameter(max_length=256)],
    slot: Annotated[
        str,
        PathParameter(max_length=64, description="The date and what is done: `2026-03-03:claim`, `2026-03-03:cancel`."),
    ],
    data: Annotated[RunAction, Body(examples=[_CLAIM, _CANCEL])],
    service: ServiceArg,
    caller: CallerArg,
) -> Claim | Cancelled:
    """`{date}:claim` (`job:write`) takes the job of a run of type `external`: it is opened and started as yours, if its
    rules pass.

    `409` when it is not yours: `not-ready` may change, `not-claimable` will not. The same `claimId` again gets the
    same answer. `POST pipelines/{id}/jobs` reports how the job ended.

    `{date}:cancel` (`operate`) ends a waiting attempt at once (`cancelled`), or has a running job stopped at its target
    (`stopping`; `GET` of the run says when that is done, and why it cannot be, if so).
    """
    date, _, action = slot.rpartition(":")
    if action == "claim":
        return _claim(service, caller, RunKey(pipeline, schedule, str(parse_period(date))), data)
    if action == "cancel":
        return _cancel(service, caller, RunKey(pipeline, schedule, str(parse_period(date))), data)
    named = slot.partition(":")[0]
    raise not_found(f"a run can be claimed (`{named}:claim`) or cancelled (`{named}:cancel`), and nothing else")


def _claim(service: Served, caller: Principal, key: RunKey, asked: RunAction) -> Claim:
    caller.check_stored(Scope.JOB_WRITE, service.store, key.pipeline)
    pipeline_views.known(service.store, key.pipeline)
    if not asked.claim_id:
        raise InvalidValueError("a claim needs `claimId`, of your own making: with the same it can be repeated")
    found = claiming.claim(caller.acting(service), key, claim_id=asked.claim_id, by=caller.name)
    if not found.claimed:
        slug = "not-ready" if found.later else "not-claimable"
        raise RequestError(HTTPStatus.CONFLICT, slug, f"{key.pipeline} for {key.date} is not claimed: {found.reason}")
    _log.info("run claimed", run=str(key), attempt=found.attempt, by=caller.name)
    return found


def _cancel(service: Served, caller: Principal, key: RunKey, asked: RunAction) -> Cancelled:
    caller.check_for(Scope.OPERATE, key.pipeline, pipeline_views.followed(service.store, key.pipeline))
    outcome = cancelling.cancel(caller.acting(service), key, reason=asked.reason, by=caller.name)
    _log.info("run cancelled", run=str(key), outcome=outcome, by=caller.name)
    return Cancelled(pipeline=key.pipeline, schedule=key.schedule, date=key.date, outcome=outcome)


ROUTES: Final = (list_runs, read_run, request_rerun, preview_rerun, report_job, act_on_run)

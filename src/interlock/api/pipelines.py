"""Pipelines: what is applied, and applying by request. Readiness is asked here, too."""

from http import HTTPStatus
from pathlib import Path as FilePath
from typing import Annotated, Any, Final

import msgspec

from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import Body, Example, Response, ResponseSpec, delete, get, put
from interlock.api.parameters import CursorArg, DateArg, LimitArg, PipelineArg, ReasonArg, ScheduleArg
from interlock.api.problems import ProblemError, RequestError, documented, not_found
from interlock.api.served import Served
from interlock.config.aliases import normalise, with_default_rules
from interlock.config.problems import Problem
from interlock.config.stored import read_stored
from interlock.config.versions import config_version
from interlock.config.warnings import Abilities, find_missing, find_warnings
from interlock.control import catalog, config_files
from interlock.control.views import pipeline_list, pipeline_views
from interlock.control.views.explain import explain
from interlock.control.views.pipeline_list import PipelinePage, PipelineSummary
from interlock.control.views.pipeline_views import PipelineDetail, ReadinessView
from interlock.decide.masking import HIDDEN, holds_hidden
from interlock.decide.why import Explanation
from interlock.embedded.access.tokens import Scope
from interlock.embedded.targets import abilities
from interlock.logs import get_logger
from interlock.model.config import PipelineConfig
from interlock.model.keys import check_id

_log = get_logger(__name__)

_DOCUMENT: Final = Example(
    summary="a daily pipeline",
    value={
        "pipeline": {"id": "gold-revenue", "owner": "analytics-team"},
        "schedule": {
            "timezone": "America/New_York",
            "trigger": {"key": "upstream-complete", "check": "equals", "field": "status", "value": "ready"},
        },
        "validation": {"rules": [{"key": "row-count", "check": "gte", "field": "count", "value": 1000}]},
        "job": {"type": "command", "config": {"command": ["python", "etl.py", "${DATE}"]}},
    },
)


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a config. `changed` is false when the same was applied already."""

    id: str
    version: str
    changed: bool
    warnings: list[str]


# In one text, of which the program is shown.
_COMMAND: Final = "job.config.command"
_CREATED: Final = ResponseSpec(data_container=Applied, description="The pipeline is new.")


@get(
    "/pipelines",
    opt=needs(Scope.READ, lists=True),
    sync_to_thread=True,
    responses=documented(422),
    operation_id="listPipelines",
    summary="All pipelines",
    tags=["pipelines"],
)
def list_pipelines(
    service: ServiceArg, caller: CallerArg, cursor: CursorArg = None, limit: LimitArg = 100
) -> PipelinePage:
    """By id, each with its latest run; invalid ones with their errors. With a limited token, those it is for."""
    store, now = service.store, service.clock.now()
    page = pipeline_list.pipelines(store, now, after=cursor, limit=limit)
    if caller.token is None or not caller.token.limited:
        return page
    seen: list[PipelineSummary] = []
    while True:
        seen += [one for one in page.items if caller.token.allows_for(Scope.READ, one.id, one.owner)]
        if page.next is None or len(seen) > limit:
            break
        page = pipeline_list.pipelines(store, now, after=page.next, limit=limit)
    # A cursor is a name: it must be one that the caller may see.
    return PipelinePage(items=seen[:limit], next=seen[limit - 1].id if len(seen) > limit else None)


@get(
    "/pipelines/{pipeline:str}",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getPipeline",
    summary="A pipeline",
    tags=["pipelines"],
)
def read_pipeline(pipeline: PipelineArg, service: ServiceArg) -> PipelineDetail:
    """With the document it was read from; what looks like a secret in it is shown as `***`."""
    return pipeline_views.pipeline(service.store, pipeline, service.clock.now())


@put(
    "/pipelines/{pipeline:str}",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    status_code=200,
    responses={**documented(408, 413, 422), 201: _CREATED},
    operation_id="applyPipeline",
    summary="Apply a pipeline",
    tags=["pipelines"],
)
def apply_pipeline(
    pipeline: PipelineArg,
    data: Annotated[dict[str, Any], Body(description="The config, as in a file, in JSON.", examples=[_DOCUMENT])],
    service: ServiceArg,
    caller: CallerArg,
    reason: ReasonArg = "",
) -> Response[Applied]:
    """Store a config, checked as a file would be: all errors are reported at once, an invalid one is not stored."""
    check_id(pipeline)
    config, document = _checked(service, pipeline, data)
    new = catalog.stored(service.store, pipeline) is None
    changed = catalog.apply_config(caller.acting(service), config, document, reason=reason)
    _log.info("pipeline applied", pipeline=pipeline, changed=changed, by=caller.name)
    able = Abilities(
        job_types=frozenset(service.control.jobs),
        pools=frozenset(service.control.settings.pools),
        folder=service.settings.working_folder or FilePath.cwd(),
    )
    warnings = [f"{_path(one.path)}: {one.message}" for one in find_warnings(config, able, document)]
    if config.archetype is not None:
        warnings.append("archetype: only files are merged with an archetype; here it is a name and no more")
    made = Applied(id=pipeline, version=config_version(document), changed=changed, warnings=warnings)
    return Response(made, status_code=HTTPStatus.CREATED if new else HTTPStatus.OK)


def _checked(service: Served, pipeline: str, data: dict[str, Any]) -> tuple[PipelineConfig, dict[str, Any]]:
    hidden = list(_hidden(data, ""))
    if hidden:
        errors = [ProblemError(path=path, message=f"is hidden ({HIDDEN}): write the value itself") for path in hidden]
        raise RequestError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-config", "a hidden secret is no value", errors=errors
        )
    found: PipelineConfig | tuple[Problem, ...] = read_stored(data, catalog.calendars(service.store))
    if isinstance(found, PipelineConfig):
        missing = [*find_missing(found, abilities()), *service.refusals(found)]
        found = tuple(Problem("", None, _path(one.path), one.message) for one in missing) or found
    if isinstance(found, tuple):
        errors = [ProblemError(path=one.path, message=one.message) for one in found]
        detail = "; ".join(f"{one.path}: {one.message}" if one.path else one.message for one in found)
        raise RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-config", detail, errors=errors)
    if found.id != pipeline:
        message = f"is {found.id!r}, but the address names {pipeline!r}"
        error = ProblemError(path="pipeline.id", message=message)
        raise RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-config", f"pipeline.id: {message}", errors=[error])
    return found, with_default_rules(normalise(data).document)


def _hidden(value: object, path: str) -> list[str]:
    if isinstance(value, dict):
        return [
            found for key, inner in value.items() for found in _hidden(inner, f"{path}.{key}" if path else str(key))
        ]
    if isinstance(value, list):
        return [found for index, inner in enumerate(value) for found in _hidden(inner, f"{path}[{index}]")]
    if not isinstance(value, str):
        return []
    return [path] if holds_hidden(value) or (path == _COMMAND and HIDDEN in value.split()) else []


def _path(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)


@delete(
    "/pipelines/{pipeline:str}",
    opt=needs(Scope.ADMIN),
    sync_to_thread=True,
    status_code=204,
    responses=documented(404, 409, 422),
    operation_id="deletePipeline",
    summary="Delete a pipeline",
    tags=["pipelines"],
)
def delete_pipeline(pipeline: PipelineArg, service: ServiceArg, caller: CallerArg, reason: ReasonArg = "") -> None:
    """It opens nothing new; what is under way ends. Its runs and events stay. Refused while its file is there."""
    pipeline_views.known(service.store, pipeline)
    file = config_files.file_of(service.store, pipeline)
    if file is not None and service.follows_files and FilePath(file).exists():
        message = f"{pipeline} comes from {FilePath(file).name}, which would bring it back: remove the file instead"
        raise RequestError(HTTPStatus.CONFLICT, "file-remains", message)
    reason = reason or "deleted over the API"
    if not catalog.delete_config(caller.acting(service), pipeline, reason=reason, by=caller.name):
        raise not_found(f"there is no pipeline {pipeline!r} any more")
    _log.info("pipeline deleted", pipeline=pipeline, by=caller.name)


@get(
    "/pipelines/{pipeline:str}/readiness",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getReadiness",
    summary="Is it safe to run?",
    tags=["pipelines"],
)
def read_readiness(
    pipeline: PipelineArg, service: ServiceArg, date: DateArg = None, schedule: ScheduleArg = None
) -> ReadinessView:
    """Every rule as it stands for a run. Without a date: of the latest active run, the last tick, or today."""
    return pipeline_views.readiness_of(service.store, pipeline, service.clock.now(), date=date, schedule=schedule)


@get(
    "/pipelines/{pipeline:str}/why",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getWhy",
    summary="Why it ran, or why it has not",
    tags=["pipelines"],
)
def read_why(
    pipeline: PipelineArg, service: ServiceArg, date: DateArg = None, schedule: ScheduleArg = None
) -> Explanation:
    """What opened the run, what each rule saw, what is awaited and what happens next, for a person who was woken up."""
    return explain(service.store, pipeline, service.clock.now(), date=date, schedule=schedule)


ROUTES: Final = (list_pipelines, read_pipeline, apply_pipeline, delete_pipeline, read_readiness, read_why)

"""Trying a probe by hand."""

from typing import Annotated, Any, Final

import msgspec

from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import Body, Example, post
from interlock.api.parameters import PipelineArg
from interlock.api.problems import documented
from interlock.control import probing
from interlock.embedded.access.tokens import Scope
from interlock.embedded.timing.probe_threads import look_once
from interlock.logs import get_logger
from interlock.model.audit import AuditAction
from interlock.model.errors import ProbeError

_log = get_logger(__name__)

_CHOICE: Final = Example(summary="one probe", value={"key": "row-count"})


class ProbeChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which probe; `date` for a probe that looks for a period (default: the one that is waited for, or the current)."""

    key: str
    date: str | None = None


class ProbeTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe saw, or why it failed. Nothing was written."""

    pipeline: str
    key: str
    ok: bool
    date: str = ""
    data: dict[str, Any] | None = None
    error: str = ""


@post(
    "/pipelines/{pipeline:str}/probes:run",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    status_code=200,
    responses=documented(404, 408, 413, 422),
    operation_id="runProbe",
    summary="Try a probe",
    tags=["sensors"],
)
def run_probe(
    pipeline: PipelineArg,
    data: Annotated[ProbeChoice, Body(examples=[_CHOICE])],
    service: ServiceArg,
    caller: CallerArg,
) -> ProbeTrial:
    """One look, now, with the controller's own secrets and network. It writes no sensor and moves no interval."""
    request = probing.try_out(service.control, pipeline, data.key, data.date)
    caller.record(service, AuditAction.PROBE_TRIED, pipeline=pipeline, subject=data.key)
    _log.info("probe tried", pipeline=pipeline, probe=data.key, by=caller.name)
    trial = ProbeTrial(pipeline=pipeline, key=data.key, ok=False, date=request.date)
    prober = service.control.probes
    if prober is None:
        return msgspec.structs.replace(trial, error="this controller looks for no probes")
    try:
        return msgspec.structs.replace(trial, ok=True, data=look_once(prober, request))
    except ProbeError as error:
        return msgspec.structs.replace(trial, error=str(error))


ROUTES: Final = (run_probe,)

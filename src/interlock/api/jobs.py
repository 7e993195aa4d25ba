"""What jobs wrote."""

from typing import Annotated, Final

from interlock.api.auth import CallerArg, ServiceArg, needs
from interlock.api.http import PathParameter, QueryParameter, Response, get
from interlock.api.parameters import PipelineArg
from interlock.api.problems import documented
from interlock.control.views import job_output, pipeline_views
from interlock.embedded.access.tokens import Scope


@get(
    "/pipelines/{pipeline:str}/jobs/{run_id:str}/output",
    opt=needs(Scope.OPERATE),
    sync_to_thread=True,
    media_type="text/plain",
    responses=documented(404, 422),
    operation_id="readJobOutput",
    summary="What a job wrote",
    tags=["runs"],
)
def read_output(
    pipeline: PipelineArg,
    run_id: Annotated[str, PathParameter(max_length=512, description="The run id of an attempt: `runId`.")],
    service: ServiceArg,
    caller: CallerArg,
    offset: Annotated[int, QueryParameter(name="offset", ge=0, le=2**62, description="Where to read on.")] = 0,
) -> Response[str]:
    """At most 64 KiB of text from an offset; live while the job runs.

    `X-Next-Offset` is where to read on, `X-Complete: true` says that nothing more will come, `X-Link` is where a person
    reads the rest, if the target keeps it elsewhere.
    """
    caller.check_for(Scope.OPERATE, pipeline, pipeline_views.known(service.store, pipeline).config)
    key, attempt = job_output.find(service.control, pipeline, run_id)
    found = job_output.read(service.control, key, attempt, offset=offset)
    headers = {"X-Next-Offset": str(found.next_offset), "X-Complete": str(found.complete).lower()}
    if found.link:
        headers["X-Link"] = found.link
    return Response(found.text, headers=headers, media_type="text/plain")


ROUTES: Final = (read_output,)

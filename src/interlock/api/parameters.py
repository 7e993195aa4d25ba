"""Parameters that many routes share, with their limits and descriptions."""

from typing import Annotated

from interlock.api.http import PathParameter, QueryParameter

PipelineArg = Annotated[str, PathParameter(description="The pipeline's id.", max_length=256)]
CursorArg = Annotated[
    str | None, QueryParameter(name="cursor", max_length=1024, description="The `next` of the page before.")
]
LimitArg = Annotated[int, QueryParameter(name="limit", ge=1, le=1000, description="How many at most.")]
DateArg = Annotated[
    str | None,
    QueryParameter(name="date", max_length=32, description="The period: 2026-03-03, 2026-03-03T10 or 2026-03-03T1015."),
]
ScheduleArg = Annotated[
    str | None,
    QueryParameter(name="schedule", max_length=128, description="The schedule's id; may be left out if there is one."),
]
PipelineFilter = Annotated[
    str | None, QueryParameter(name="pipeline", max_length=256, description="Only of this pipeline.")
]
ReasonArg = Annotated[str, QueryParameter(name="reason", max_length=2000, description="Why: kept in the audit trail.")]

"""Sensors: written by anybody, acknowledged when durable, read back as they count."""

from typing import Annotated, Any, Final

import msgspec

from interlock.api.auth import CallerArg, RatesArg, ServiceArg, needs
from interlock.api.http import Body, Example, PathParameter, QueryParameter, delete, get, post, put
from interlock.api.parameters import CursorArg, LimitArg, PipelineArg
from interlock.api.problems import ProblemError, RequestError, documented, judge, not_found
from interlock.api.served import Served
from interlock.control import writing
from interlock.control.views import pipeline_views
from interlock.control.views.pipeline_views import SensorPage, SensorView
from interlock.control.writing import Written
from interlock.embedded.access.tokens import Scope
from interlock.logs import get_logger
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError
from interlock.model.sensor import check_observation
from interlock.ports.limits import MAX_COMMIT_BYTES
from interlock.ports.store import MAX_WRITES, Put

_log = get_logger(__name__)

_MOST: Final = 1000
_OBSERVATION: Final = Example(summary="a row count", value={"count": 15432, "updatedAt": "2026-03-03T06:55:00Z"})
_BATCH: Final = Example(
    summary="two sensors",
    value={
        "sensors": [
            {"pipeline": "gold-revenue", "key": "upstream-complete", "data": {"status": "ready", "date": "2026-03-03"}},
            {"pipeline": "gold-revenue", "key": "row-count", "data": {"count": 15432}, "ttl": 1900000000},
        ]
    },
)

TtlArg = Annotated[
    int | None,
    QueryParameter(name="ttl", ge=1, le=10**11, description="Epoch seconds from which the sensor counts as absent."),
]
KeyArg = Annotated[
    str, PathParameter(description="The sensor's key, percent-encoded: it may contain '/', ':' and '#<period>'.")
]


class Observation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sensor of a batch."""

    pipeline: str
    key: str
    data: dict[str, Any]
    ttl: Annotated[int, msgspec.Meta(ge=1, le=10**11)] | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sensors to write together: all are checked before the first is written."""

    sensors: Annotated[list[Observation], msgspec.Meta(min_length=1, max_length=_MOST)]


class BatchWritten(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each, in the order of the request."""

    written: list[Written]


@put(
    "/pipelines/{pipeline:str}/sensors/{key:path}",
    opt=needs(Scope.SENSOR_WRITE),
    status_code=200,
    sync_to_thread=True,
    responses=documented(404, 408, 413, 422),
    operation_id="writeSensor",
    summary="Write a sensor",
    tags=["sensors"],
)
def write_sensor(
    pipeline: PipelineArg,
    key: KeyArg,
    data: Annotated[dict[str, Any], Body(description="What was observed: any JSON object.", examples=[_OBSERVATION])],
    service: ServiceArg,
    caller: CallerArg,
    ttl: TtlArg = None,
) -> Written:
    """Store an observation. The answer comes when it is durable; what follows from it shows in runs and readiness."""
    return store_sensor(service, caller, pipeline, key, data, ttl)


def store_sensor(service: Served, caller: CallerArg, pipeline: str, key: str, data: object, ttl: int | None) -> Written:
    """Write one sensor for a caller."""
    caller.check_stored(Scope.SENSOR_WRITE, service.store, pipeline)
    return writing.write_sensor(caller.writing_sensors(service), pipeline, key, data, ttl=ttl, by=caller.name)


@post(
    "/sensors:batch",
    opt=needs(Scope.SENSOR_WRITE, lists=True),
    status_code=200,
    sync_to_thread=True,
    responses=documented(404, 408, 413, 422),
    operation_id="writeSensors",
    summary="Write several sensors",
    tags=["sensors"],
)
def write_batch(
    data: Annotated[Batch, Body(examples=[_BATCH])], service: ServiceArg, caller: CallerArg, rates: RatesArg
) -> BatchWritten:
    """Store several observations in one request. If any is refused nothing is written, and `errors` names each."""
    rates.spend(caller.name, len(data.sensors) - 1)  # the request itself was counted as one
    control = caller.writing_sensors(service)
    prepared: list[tuple[Put, Written]] = []
    errors: list[ProblemError] = []
    worst: RequestError | None = None
    configs: dict[str, PipelineConfig | None] = {}
    for index, one in enumerate(data.sensors):
        try:
            if one.pipeline not in configs:
                caller.check_stored(Scope.SENSOR_WRITE, service.store, one.pipeline)
                configs[one.pipeline] = writing.known_pipeline(service.control, one.pipeline)
            observation = check_observation(one.key, one.data)
            prepared.append(
                writing.prepare_checked(
                    control,
                    one.pipeline,
                    configs[one.pipeline],
                    one.key,
                    observation,
                    ttl=one.ttl,
                    by=caller.name,
                )
            )
        except InterlockError as error:
            # The nearest names of one unknown pipeline help; those of a thousand would take a minute.
            found = judge(error, names=worst is None and caller.may(Scope.READ))
            worst = worst or found
            errors.append(ProblemError(path=f"sensors[{index}]", message=str(found)))
    if worst is not None:
        count = f"{len(errors)} of {len(data.sensors)}"
        raise RequestError(worst.status, worst.slug, f"{count} sensors are refused, nothing was written", errors=errors)
    service.commit_all(_chunks([put_ for put_, _ in prepared]))
    return BatchWritten(written=[written for _, written in prepared])


def _chunks(puts: list[Put]) -> list[list[Put]]:
    """Commits of at most a hundred writes and a few megabytes, each key once: a later write of a key comes later."""
    chunks: list[list[Put]] = [[]]
    size, seen = 0, set[Any]()
    for put_ in puts:
        weight = len(msgspec.json.encode(put_.item))
        full = len(chunks[-1]) >= MAX_WRITES or size + weight > MAX_COMMIT_BYTES // 2
        if full or put_.key in seen:
            chunks.append([])
            size, seen = 0, set()
        chunks[-1].append(put_)
        size += weight
        seen.add(put_.key)
    return chunks


@get(
    "/pipelines/{pipeline:str}/sensors/{key:path}",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="getSensor",
    summary="A sensor",
    tags=["sensors"],
)
def read_sensor(pipeline: PipelineArg, key: KeyArg, service: ServiceArg) -> SensorView:
    """The latest observation of a key; one past its ttl is absent."""
    found = pipeline_views.sensor(service.store, pipeline, key)
    if found is None:
        raise not_found(f"pipeline {pipeline!r} has no sensor {key!r}: it was never written, or has expired")
    return found


@delete(
    "/pipelines/{pipeline:str}/sensors/{key:path}",
    opt=needs(Scope.SENSOR_WRITE),
    status_code=204,
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="deleteSensor",
    summary="Delete a sensor",
    tags=["sensors"],
)
def delete_sensor(pipeline: PipelineArg, key: KeyArg, service: ServiceArg, caller: CallerArg) -> None:
    """The observation is forgotten: rules that read it find none, or the one without a `#period`."""
    caller.check_stored(Scope.SENSOR_WRITE, service.store, pipeline)
    if not writing.delete_sensor(caller.acting(service), pipeline, key):
        raise not_found(f"pipeline {pipeline!r} has no sensor {key!r}: it was never written, or has expired")
    _log.info("sensor deleted", pipeline=pipeline, key=key, by=caller.name)


@get(
    "/pipelines/{pipeline:str}/sensors",
    opt=needs(Scope.READ),
    sync_to_thread=True,
    responses=documented(404, 422),
    operation_id="listSensors",
    summary="The sensors of a pipeline",
    tags=["sensors"],
)
def list_sensors(
    pipeline: PipelineArg, service: ServiceArg, cursor: CursorArg = None, limit: LimitArg = 100
) -> SensorPage:
    """By key; `cursor` is the `next` of the page before."""
    return pipeline_views.sensors(service.store, pipeline, service.clock.now(), after=cursor, limit=limit)


ROUTES: Final = (write_sensor, write_batch, read_sensor, delete_sensor, list_sensors)

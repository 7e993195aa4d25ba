"""OpenLineage: run events become sensors of the pipelines that name their datasets or their job.

A rule or trigger whose key is `lineage:{namespace}/{name}` reads the latest run event of that output dataset, or of
that job. The observation has: `eventType` (START, RUNNING, COMPLETE, FAIL, ABORT, OTHER), `eventTime`, `runId`, `job`
(`{namespace}/{name}`), `producer`; of a dataset also `rowCount`, `size` and `fileCount` when the event has them in
`outputStatistics`; and `date` when the run has a nominal time, with `hour` when that is an hour or less. An event that
is older than the one a sensor has is not written: producers send over several connections.
"""

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec

from interlock.api.auth import CallerArg, Principal, ServiceArg, needs
from interlock.api.http import Body, Example, post
from interlock.api.problems import RequestError, documented
from interlock.api.served import Served
from interlock.control import catalog, writing
from interlock.control.views import pipeline_views
from interlock.decide.sensors import key_matches
from interlock.embedded.access.tokens import Scope
from interlock.model.errors import SensorRefusedError
from interlock.model.keys import check_sensor_key
from interlock.model.times import parse_instant

PREFIX: Final = "lineage:"
_STATISTICS: Final = ("rowCount", "size", "fileCount")
_HOUR: Final = timedelta(hours=1)
_EVENT: Final = Example(
    summary="a job has written a table",
    value={
        "eventType": "COMPLETE",
        "eventTime": "2026-03-03T06:55:00Z",
        "producer": "https://github.com/OpenLineage/OpenLineage",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "0195b0a0-0000-7000-8000-000000000000"},
        "job": {"namespace": "etl", "name": "orders"},
        "outputs": [{"namespace": "postgres://db:5432", "name": "shop.public.orders"}],
    },
)


class LineageSensor(msgspec.Struct, frozen=True, kw_only=True):
    """A sensor that was written."""

    pipeline: str
    key: str


class LineageWritten(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a run event. `ignored` says of each key that nobody was written, and why."""

    written: list[LineageSensor]
    ignored: list[str]


@post(
    "/lineage",
    opt=needs(Scope.SENSOR_WRITE, lists=True),
    sync_to_thread=True,
    status_code=200,
    responses=documented(404, 408, 413, 422),
    operation_id="sendLineage",
    summary="An OpenLineage run event",
    tags=["sensors"],
)
def receive_lineage(
    data: Annotated[dict[str, Any], Body(description="An OpenLineage event.", examples=[_EVENT])],
    service: ServiceArg,
    caller: CallerArg,
) -> LineageWritten:
    """Writes `lineage:{namespace}/{name}` for the job and each output dataset, where a pipeline names it."""
    observations = read_run_event(data)
    written: list[LineageSensor] = []
    ignored: list[str] = []
    readers = _readers(service, observations) if observations else {}
    for key, observation in observations.items():
        if not readers.get(key):
            ignored.append(f"{key}: no pipeline names it")
        for pipeline in readers.get(key, ()):
            reason = _write(service, caller, pipeline, key, observation)
            if reason:
                ignored.append(f"{key}: {pipeline}: {reason}")
            else:
                written.append(LineageSensor(pipeline=pipeline, key=key))
    return LineageWritten(written=written, ignored=ignored)


def _write(service: Served, caller: Principal, pipeline: str, key: str, observation: dict[str, Any]) -> str:
    """Write it; or why not."""
    config = catalog.current(service.store, pipeline)
    if not caller.may_for(Scope.SENSOR_WRITE, pipeline, config):
        return f"the token {caller.name!r} is limited to other pipelines"
    before = pipeline_views.sensor(service.store, pipeline, key)
    if before is not None and _later(before.data.get("eventTime"), observation["eventTime"]):
        return "the sensor has a later event"
    writing.write_sensor(caller.writing_sensors(service), pipeline, key, observation, by=caller.name)
    return ""


def _later(one: object, other: object) -> bool:
    first, second = parse_instant(one), parse_instant(other)
    return first is not None and second is not None and first > second


def _readers(service: Served, observations: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pipeline in service.store.pipelines():
        config = catalog.current(service.store, pipeline)
        names = (
            [name for name in pipeline_views.reads_of(config) if name.startswith(PREFIX)] if config is not None else []
        )
        for key in observations if names else ():
            if any(key_matches(name, key) for name in names):
                found.setdefault(key, []).append(pipeline)
    return found


# -------------------------------------------------------------------------------------------------- run events


def read_run_event(event: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The observations of a run event, by sensor key; none of an event about a dataset or a job without a run."""
    run, job = event.get("run"), event.get("job")
    if not isinstance(run, dict) or not isinstance(job, dict):
        if isinstance(event.get("dataset"), dict) or isinstance(job, dict):
            return {}
        raise _refused("it has neither `run` nor `job` nor `dataset`: this is not an OpenLineage event")
    kind, at = event.get("eventType"), event.get("eventTime")
    if not isinstance(kind, str) or not kind or len(kind) > 64:
        raise _refused("eventType: is missing: START, RUNNING, COMPLETE, FAIL, ABORT or OTHER")
    if not isinstance(at, str) or parse_instant(at) is None:
        raise _refused("eventTime: is not an RFC 3339 time")
    about = {
        "eventType": kind.upper(),
        "eventTime": at,
        "runId": _text(run.get("runId")),
        "job": f"{_text(job.get('namespace'))}/{_text(job.get('name'))}",
        "producer": _text(event.get("producer")),
        **_period(run.get("facets")),
    }
    observations = {_key(job): about}
    outputs = event.get("outputs")
    for dataset in outputs if isinstance(outputs, list) else ():
        if isinstance(dataset, dict):
            observations[_key(dataset)] = about | _statistics(dataset)
    return observations


def _key(thing: dict[str, Any]) -> str:
    namespace, name = thing.get("namespace"), thing.get("name")
    if not isinstance(namespace, str) or not isinstance(name, str) or not name:
        raise _refused("a job or dataset needs a `namespace` and a `name`, both text")
    try:
        return check_sensor_key(f"{PREFIX}{namespace}/{name}")
    except SensorRefusedError as error:
        raise _refused(str(error)) from error


def _text(value: object) -> str:
    return value[:1000] if isinstance(value, str) else ""


def _statistics(dataset: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for holder in ("outputFacets", "facets"):
        facets = dataset.get(holder)
        statistics = facets.get("outputStatistics") if isinstance(facets, dict) else None
        if not isinstance(statistics, dict):
            continue
        for name in _STATISTICS:
            value = statistics.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
                found[name] = value
    return found


def _period(facets: object) -> dict[str, Any]:
    """What the run is for: its nominal day, as the producer writes it, and the hour of an hourly one."""
    nominal = facets.get("nominalTime") if isinstance(facets, dict) else None
    if not isinstance(nominal, dict):
        return {}
    begin = _local(nominal.get("nominalStartTime"))
    if begin is None:
        return {}
    end = _local(nominal.get("nominalEndTime"))
    hourly = end is not None and timedelta(0) < end - begin <= _HOUR
    return {"date": begin.date().isoformat(), **({"hour": begin.hour} if hourly else {})}


def _local(text: object) -> datetime | None:
    """The wall-clock time of an instant in the offset it is written in."""
    if not isinstance(text, str) or parse_instant(text) is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _refused(detail: str) -> RequestError:
    return RequestError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-lineage", detail)


ROUTES: Final = (receive_lineage,)

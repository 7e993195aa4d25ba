"""The requests themselves: method, path, parameters and body of everything the server can be asked."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from interlock.client.answers import PipelineDetail
from interlock.client.errors import ClientError
from interlock.client.steps import Params, Send
from interlock.client.values import encoded

API: Final = "/api/v1"
PIPELINES: Final = f"{API}/pipelines"
CALENDARS: Final = f"{API}/calendars"
ALERTS: Final = f"{API}/alerts"
CONTROLLER: Final = f"{API}/controller"
EVENTS: Final = f"{API}/events"
STREAM: Final = f"{API}/events/stream"


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One write of a batch. `ttl`: epoch seconds from which on it counts as absent."""

    pipeline: str
    key: str
    data: dict[str, Any]
    ttl: int | None = None


def put_sensor(pipeline: str, key: str, data: Mapping[str, Any], ttl: int | None) -> Send:
    """Write one observation."""
    return _with_body("PUT", _sensor(pipeline, key), dict(data), _given(ttl=None if ttl is None else str(ttl)))


def batch(observations: Iterable[Observation | Mapping[str, Any]]) -> Send:
    """Write several observations at once."""
    return _with_body("POST", f"{API}/sensors:batch", {"sensors": list(observations)})


def get_sensor(pipeline: str, key: str) -> Send:
    """One sensor."""
    return Send(method="GET", path=_sensor(pipeline, key))


def delete_sensor(pipeline: str, key: str) -> Send:
    """Forget one sensor."""
    return Send(method="DELETE", path=_sensor(pipeline, key))


def list_sensors(pipeline: str) -> Send:
    """The sensors of a pipeline."""
    return Send(method="GET", path=f"{_pipeline(pipeline)}/sensors")


def list_pipelines() -> Send:
    """All pipelines."""
    return Send(method="GET", path=PIPELINES)


def get_pipeline(pipeline: str) -> Send:
    """One pipeline."""
    return Send(method="GET", path=_pipeline(pipeline))


def put_pipeline(document: Mapping[str, Any]) -> Send:
    """Create or change a pipeline; its id is in the document."""
    inner = document.get("pipeline")
    name = inner.get("id") if isinstance(inner, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ClientError("the document has no pipeline.id: write {'pipeline': {'id': 'gold-revenue'}, ...}")
    return _with_body("PUT", _pipeline(name), dict(document))


def delete_pipeline(pipeline: str) -> Send:
    """Delete a pipeline."""
    return Send(method="DELETE", path=_pipeline(pipeline))


def list_calendars() -> Send:
    """All named calendars."""
    return Send(method="GET", path=CALENDARS)


def put_calendar(document: Mapping[str, Any]) -> Send:
    """Create or change a calendar; its name is in the document."""
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise ClientError("the calendar has no name: write {'name': 'month-end', 'dates': ['2026-03-31']}")
    return _with_body("PUT", f"{CALENDARS}/{_part(name)}", dict(document))


def why(pipeline: str, date: str | None, schedule: str | None) -> Send:
    """Why a run is as it is."""
    return Send(method="GET", path=f"{_pipeline(pipeline)}/why", params=_given(date=date, schedule=schedule))


def readiness(pipeline: str, date: str | None, schedule: str | None) -> Send:
    """The rules as they stand for a run."""
    params = _given(date=date, schedule=schedule)
    return Send(method="GET", path=f"{_pipeline(pipeline)}/readiness", params=params)


def list_runs(pipeline: str, schedule: str | None) -> Send:
    """The runs of a pipeline."""
    return Send(method="GET", path=f"{_pipeline(pipeline)}/runs", params=_given(schedule=schedule))


def get_run(pipeline: str, schedule: str, date: str) -> Send:
    """One run."""
    return Send(method="GET", path=f"{_pipeline(pipeline)}/runs/{_part(schedule)}/{_part(date)}")


def get_controller() -> Send:
    """How the controller stands."""
    return Send(method="GET", path=CONTROLLER)


def list_alerts(state: str | None, channel: str | None) -> Send:
    """Alerts on their way."""
    return Send(method="GET", path=ALERTS, params=_given(state=state, channel=channel))


def post_probe(pipeline: str, key: str, date: str | None) -> Send:
    """Try a probe."""
    return _with_body("POST", f"{_pipeline(pipeline)}/probes:run", {"key": key, **_given(date=date)})


def post_alerts_test(channel: str | None) -> Send:
    """Try the channels."""
    return _with_body("POST", f"{ALERTS}:test", _given(channel=channel))


def post_claim(pipeline: str, schedule: str, date: str, claim_id: str) -> Send:
    """Claim the job of a run; sent again with the same id, it is the same claim."""
    path = f"{_pipeline(pipeline)}/runs/{_part(schedule)}/{_part(date)}:claim"
    return _with_body("POST", path, {"claimId": claim_id})


def post_rerun(pipeline: str, date: str, schedule: str | None, reason: str, *, force: bool) -> Send:
    """Ask for a rerun."""
    body = {"date": date, "reason": reason, "force": force, **_given(schedule=schedule)}
    return _with_body("POST", f"{_pipeline(pipeline)}/reruns", body)


def post_cancel(pipeline: str, schedule: str, date: str, reason: str) -> Send:
    """Cancel a run."""
    return _with_body("POST", f"{_pipeline(pipeline)}/runs/{_part(schedule)}/{_part(date)}:cancel", {"reason": reason})


def get_output(pipeline: str, run_id: str, offset: int) -> Send:
    """What a job wrote."""
    path = f"{_pipeline(pipeline)}/jobs/{_part(run_id)}/output"
    return Send(method="GET", path=path, params={"offset": str(offset)})


def post_job(pipeline: str, body: Mapping[str, Any]) -> Send:
    """Report how a job ended; what is None is left out."""
    given = {name: value for name, value in body.items() if value is not None}
    return _with_body("POST", f"{_pipeline(pipeline)}/jobs", given)


def list_events(pipeline: str | None, type_: str | Sequence[str] | None, since: datetime | str | None) -> Send:
    """Events, the latest first."""
    return Send(method="GET", path=EVENTS, params=event_filters(pipeline, type_, since))


def stats(pipeline: str | None, days: int | None) -> Send:
    """Statistics."""
    params = _given(pipeline=pipeline, days=None if days is None else str(days))
    return Send(method="GET", path=f"{API}/stats", params=params)


def post_watchdog() -> Send:
    """One pass of the watchdog."""
    return Send(method="POST", path=f"{API}/watchdog/run")


def list_audit(
    pipeline: str | None,
    actor: str | None,
    action: str | Sequence[str] | None,
    since: datetime | str | None,
    until: datetime | str | None,
) -> Send:
    """Who changed what, the latest first."""
    times = {"since": since, "until": until}
    given = {name: None if at is None else _instant(at) for name, at in times.items()}
    params: Params = _given(pipeline=pipeline, actor=actor, **given)
    if action:
        params = {**params, "action": [action] if isinstance(action, str) else list(action)}
    return Send(method="GET", path=f"{API}/audit", params=params)


def list_dead_letters() -> Send:
    """What was given up on."""
    return Send(method="GET", path=f"{API}/dlq")


def post_redrive(ids: Sequence[int] | None) -> Send:
    """Have dead letters done again; None is all of them."""
    return _with_body("POST", f"{API}/dlq/redrive", {"ids": None if ids is None else list(ids)})


def event_filters(pipeline: str | None, type_: str | Sequence[str] | None, since: datetime | str | None) -> Params:
    """The parameters that say which events are meant."""
    params: Params = _given(pipeline=pipeline, since=None if since is None else _instant(since))
    return params if type_ is None else {**params, "type": [type_] if isinstance(type_, str) else list(type_)}


def only_schedule(pipeline: PipelineDetail) -> str:
    """The schedule people mean without naming one."""
    if len(pipeline.schedules) != 1:
        names = ", ".join(pipeline.schedules) or "none"
        raise ClientError(f"pipeline {pipeline.id} has not one schedule but {names}: name one")
    return pipeline.schedules[0]


def _instant(value: datetime | str) -> str:
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ClientError(f"{value!r} has no time zone: write datetime(..., tzinfo=UTC)")
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _with_body(method: str, path: str, body: object, params: Mapping[str, str] | None = None) -> Send:
    headers = {"Content-Type": "application/json"}
    return Send(method=method, path=path, params=params or {}, headers=headers, body=encoded(body))


def _given(**params: str | None) -> dict[str, str]:
    return {name: value for name, value in params.items() if value is not None}


def _pipeline(pipeline: str) -> str:
    return f"{PIPELINES}/{_part(pipeline)}"


def _sensor(pipeline: str, key: str) -> str:
    return f"{_pipeline(pipeline)}/sensors/{_part(key)}"


def _part(text: str) -> str:
    """One part of a path. An empty one, or dots alone, would be a different path."""
    if not text.strip("."):
        raise ClientError(f"{text!r} cannot be part of an address")
    return quote(text, safe="")

"""What changed under a run while, or after, its job used it: late data and upstreams, and the rerun they ask for."""

from datetime import datetime
from typing import Any

from interlock.control import readiness, records
from interlock.control.context import Control
from interlock.decide import late_data
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey
from interlock.model.run import RerunRequest, Run, Source
from interlock.model.times import format_instant
from interlock.ports.store import Missing, Put, Write


def changed_meanwhile(
    control: Control, config: PipelineConfig, run: Run, now: datetime
) -> tuple[list[Event], list[Write], dict[str, Any] | None]:
    """A trigger payload or an upstream that changed while the job ran is late data at completion.

    Returns the payload to remember, too: told of once, it is not news when its write is delivered again.
    """
    request: RerunRequest | None = None
    events: list[Event] = []
    payload = readiness.trigger_payload(control.store, config, run.key, now)
    if payload is not None and run.trigger_payload is not None:
        changed = late_data.significant_changes(run.trigger_payload, payload)
        if changed:
            events.append(late_event(run, changed, now))
            reason = f"{', '.join(changed)} changed while the job ran"
            request = rerun_request(run.key, Source.LATE_DATA, reason, now, f"{run.attempt}-{format_instant(now)}")
    if request is None and config.after:
        names = [keys.UPSTREAM + entry.pipeline for entry in config.after]
        fresh = readiness.selected(control.store, config, run.key, names, now)
        moved = [name for name, value in readiness.digests(fresh).items() if run.inputs.get(name, value) != value]
        if moved:
            data = fresh[moved[0]].data
            # The same name as when the marker finds a run that has ended: one completion asks once.
            unique = f"{moved[0].removeprefix(keys.UPSTREAM)}-{data['date']}-{data['attempt']}"
            reason = f"{', '.join(moved)} completed again meanwhile"
            request = rerun_request(run.key, Source.UPSTREAM, reason, now, unique)
    told = payload if events else run.trigger_payload
    return events, request_writes(control, request), told


def late_event(run: Run, changed: tuple[str, ...], now: datetime) -> Event:
    """LATE_DATA_ARRIVAL."""
    return records.event(
        EventType.LATE_DATA_ARRIVAL,
        run.key,
        now,
        f"the trigger sensor of {run.pipeline} for {run.date} changed after it was used: {', '.join(changed)}",
        changed=list(changed),
    )


def rerun_request(key: RunKey, source: Source, reason: str, now: datetime, unique: str) -> RerunRequest:
    """A request by one of our own detectors; `unique` makes it the same request when it is made again."""
    return RerunRequest(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        id=f"{source}-{unique}",
        source=source,
        at=now,
        reason=reason,
        requested_by="interlock",
    )


def request_writes(control: Control, request: RerunRequest | None) -> list[Write]:
    """The request, unless it was made before: the same news asks once, however often it is delivered."""
    if request is None:
        return []
    put = put_request(request)
    return [] if control.store.get(put.key) is not None else [put]


def put_request(request: RerunRequest) -> Put:
    """The write that makes a rerun request."""
    sk = keys.rerun_request_sk(request.key, request.id)
    return Put(records.control_key(request.key.pk, sk), records.plain(request), Missing())

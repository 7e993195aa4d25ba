"""What changed under a run while, or after, its job used it: late data and upstreams, and the rerun they ask for."""

from datetime import datetime, timedelta
from typing import Any, Final

from interlock.control import readiness, records
from interlock.control.context import Control
from interlock.decide import cascade, late_data
from interlock.decide.sensors import Reading
from interlock.model import keys
from interlock.model.config import PipelineConfig, Upstream
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.periods import parse_period
from interlock.model.run import Marker, RerunRequest, Run, Source
from interlock.model.times import format_instant
from interlock.ports.store import Missing, Put, Store, Write

# How long after it was made a marker may be stored: the time of a commit, and the clocks of two machines.
_STORED_LATER: Final = timedelta(minutes=1)


def changed_meanwhile(
    control: Control, config: PipelineConfig, run: Run, now: datetime
) -> tuple[list[Event], list[Write], dict[str, Any] | None]:
    """A trigger payload or an upstream that changed while the job ran is late data at completion.

    Returns the payload to remember, too: reported once, it is not reported when its write is delivered again.
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
    if request is None:
        request = upstream_again(control, config, run, now)
    remembered = payload if events else run.trigger_payload
    return events, request_writes(control, request), remembered


def upstream_again(control: Control, config: PipelineConfig, run: Run, now: datetime) -> RerunRequest | None:
    """The request for upstreams that completed again since the run read them; None when none did, or one is pending.

    One request, however many completed: the attempt that follows reads them all. It has the name of the newest
    completion, whoever notices: the completion of the run, the second look after it, or the marker's own change.
    """
    found = [_newest_again(control.store, config, run, entry, now) for entry in config.after]
    again = [marker for marker in found if marker is not None]
    if not again or _is_pending(control.store, run.key):
        return None
    newest = max(again, key=_recency)
    reason = f"{newest.upstream} completed {newest.date} again (attempt {newest.attempt})"
    named = keys.named_schedule(newest.upstream_schedule)
    unique = f"{newest.upstream}-{newest.date}-{newest.attempt}{f'-{named}' if named else ''}"
    return rerun_request(run.key, Source.UPSTREAM, reason, now, unique)


def _newest_again(store: Store, config: PipelineConfig, run: Run, entry: Upstream, now: datetime) -> Marker | None:
    """The newest completion *again* of an upstream that the run has not read.

    The marker says whether it is again: whether the upstream's run had completed before. The first success of a retry,
    or of a second schedule, is not. The times say whether the run has read it; but a marker may be made just
    before the run passed, and stored after it. Then the digest of what the run read tells that something came later.
    """
    schedule, name = config.schedule_of(run.schedule), keys.UPSTREAM + entry.pipeline
    own = [
        marker
        for marker in readiness.markers_for(store, run.key)
        if marker.upstream == entry.pipeline
        and cascade.wanted_periods(entry, schedule, parse_period(marker.date)) == run.key.period
    ]
    read, since = run.inputs.get(name), run.passed_at or run.opened_at
    again = [one for one in own if one.again]
    later = [one for one in again if one.completed_at > since]
    if again and not later and read is not None:
        fresh = readiness.digests(readiness.selected(store, config, run.key, [Reading(name)], now))
        if fresh.get(name, read) != read:
            later = [one for one in again if one.completed_at > since - _STORED_LATER]
    return max(later, key=_recency, default=None)


def _recency(marker: Marker) -> tuple[datetime, str, str]:
    return marker.completed_at, marker.upstream, marker.date


def _is_pending(store: Store, key: RunKey) -> bool:
    """Is a request for an upstream still to be decided?"""
    prefix = keys.rerun_request_sk(key, f"{Source.UPSTREAM}-")
    return any(found.item.get("decision") is None for found in store.query(Table.CONTROL, key.pk, prefix))


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

"""Reading and writing typed records: what lies under which key, and the writes that belong together.

Writes are made here and committed by the callers, several in one commit. A caller that loses a commit reads again and
decides again: `settle_commit` is that loop.
"""

import itertools
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

from interlock.control.context import Control
from interlock.decide import sla
from interlock.decide.event_size import fitted
from interlock.decide.readers import Reach
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.errors import StoreError, ThrottledError
from interlock.model.events import CATALOGUE, EVENT_TTL_DAYS, Event, EventType, Severity
from interlock.model.keys import RunKey, Table
from interlock.model.numbers import canonical_with_json
from interlock.model.periods import Granularity, Period, period_of
from interlock.model.run import Active, JobRecord, RerunRecord, Run, SlaState
from interlock.model.sensor import MAX_SENSOR_BYTES, Sensor
from interlock.model.times import epoch_millis, format_instant, parse_instant
from interlock.ports.store import UNREADABLE, Condition, Delete, Item, Key, Matches, Missing, Put, Record, Store, Write

T = TypeVar("T")

RECEIVED: Final = "_receivedAt"
DIGEST: Final = "_digest"
WRITTEN_BY: Final = "_by"
REFUSED: Final = "_refused"
"""Why a sensor that somebody wrote directly to the store counts as absent."""
_OWN_SENSOR_FIELDS: Final = frozenset({RECEIVED, DIGEST, REFUSED, UNREADABLE, WRITTEN_BY, "ttl"})
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TRIES: Final = 20

# Orders the events of one process that carry the same millisecond: sort keys alone would sort them by type.
# Two processes count alike, so each adds a mark of its own.
_order = itertools.count()
_PROCESS: Final = secrets.token_hex(4)


def control_key(pk: str, sk: str) -> Key:
    """A key of the control table."""
    return Key(Table.CONTROL, pk, sk)


def run_record(key: RunKey, kind: str) -> Key:
    """The key of one of a run's records in the control table."""
    return Key(Table.CONTROL, key.pk, key.sk(kind))


def plain(record: msgspec.Struct) -> Item:
    """A record as the store keeps it."""
    return msgspec.to_builtins(record)  # type: ignore[no-any-return]  # a Struct becomes a dict


def get(store: Store, key: Key, type_: type[T]) -> T | None:
    """The typed record under a key."""
    item = store.get(key)
    return None if item is None else convert(item, type_, key)


def convert(item: Item, type_: type[T], key: Key) -> T:
    """An item as a typed record; an item that is none names itself."""
    try:
        return msgspec.convert(item, type_)
    except msgspec.ValidationError as error:
        raise StoreError(f"{key.table} {key.pk} {key.sk} is not a {type_.__name__}: {error}") from error


def get_run(store: Store, key: RunKey) -> Run | None:
    """The run of a slot."""
    return get(store, run_record(key, keys.RUN), Run)


def get_active(store: Store, key: RunKey) -> Active | None:
    """The wake-up record of an active run."""
    return get(store, run_record(key, keys.ACTIVE), Active)


def get_sla(store: Store, key: RunKey) -> SlaState | None:
    """The SLA state of a run."""
    return get(store, run_record(key, keys.SLA), SlaState)


def recent_sla(store: Store, pipeline: str, schedule: str, limit: int = 100) -> list[SlaState]:
    """The SLA states of the latest dates. Those of runs that failed are kept long, and have nothing left to tell."""
    prefix = f"{keys.SLA}{schedule}#"
    found = store.query(Table.CONTROL, keys.pipeline_pk(pipeline), prefix, reverse=True, limit=limit)
    return [convert(record.item, SlaState, record.key) for record in found]


def active_runs(store: Store, pipeline: str) -> list[RunKey]:
    """The slots of a pipeline that have an attempt under way."""
    pk = keys.pipeline_pk(pipeline)
    return [keys.run_of(pk, found.key.sk, keys.ACTIVE) for found in store.query(Table.CONTROL, pk, keys.ACTIVE)]


def reached(store: Store, config: PipelineConfig, kind: str, reach: Reach | None) -> list[RunKey]:
    """The slots with a record of this kind that a write reaches, in the schedules of a config."""
    if reach is None:
        return []
    pk, found = keys.pipeline_pk(config.id), list[Record]()
    for schedule in config.all_schedules:
        found += store.query(Table.CONTROL, pk, f"{kind}{schedule.schedule_id}#{reach.dates}")
    slots = (keys.run_of(pk, one.key.sk, kind) for one in found)
    return [slot for slot in slots if reach.covers(slot.period)]


def latest_run(store: Store, pipeline: str, schedule: str) -> Run | None:
    """The run of the latest date of a schedule."""
    found = store.query(Table.CONTROL, keys.pipeline_pk(pipeline), f"{keys.RUN}{schedule}#", reverse=True, limit=1)
    return convert(found[0].item, Run, found[0].key) if found else None


def latest_run_of_all(store: Store, config: PipelineConfig) -> Run | None:
    """A pipeline's latest run: of the latest day and, where several schedules have that, the one opened last."""
    found = [latest_run(store, config.id, schedule.schedule_id) for schedule in config.all_schedules]
    runs = [run for run in found if run is not None]
    return max(runs, key=lambda run: (run.key.period.day, run.first_opened_at, run.schedule), default=None)


def runs_overlapping(store: Store, pipeline: str, schedule: str, period: Period) -> list[Run]:
    """The runs of a schedule whose period shares a moment with this one: of itself, of what holds it, of its parts."""
    holders = [period_of(period.at, one) for one in Granularity if one.length > period.granularity.length]
    wider = (get_run(store, RunKey(pipeline, schedule, str(one))) for one in holders)
    # The text of a period begins the text of each of its parts.
    found = store.query(Table.CONTROL, keys.pipeline_pk(pipeline), f"{keys.RUN}{schedule}#{period}")
    return [run for run in wider if run is not None] + [convert(one.item, Run, one.key) for one in found]


def reruns_of(store: Store, key: RunKey) -> list[RerunRecord]:
    """Every retry and rerun of a run."""
    found = store.query(Table.RERUN, key.pk, f"{key.sk(keys.RERUN)}#")
    return [convert(record.item, RerunRecord, record.key) for record in found]


def job_log(store: Store, key: RunKey) -> list[JobRecord]:
    """The job log of a run, oldest first."""
    return sorted((one for _, one in _logged(store, key)), key=lambda one: one.at)


def outcome_of(store: Store, run: Run) -> JobRecord | None:
    """What ended the job of the run's latest attempt.

    Of several that say so the one in the place of the outcome (`put_outcome`); else the first that was written.
    """
    place = _outcome_sk(run)
    found = [(sk != place, one.at, sk, one) for sk, one in _logged(store, run.key) if _ends(one, run.attempt)]
    return min(found, key=lambda row: row[:3])[3] if found else None


def _logged(store: Store, key: RunKey) -> list[tuple[str, JobRecord]]:
    found = store.query(Table.JOBLOG, key.pk, f"{key.sk(keys.JOB)}#")
    return [(record.key.sk, convert(record.item, JobRecord, record.key)) for record in found]


def _ends(record: JobRecord, attempt: int) -> bool:
    return record.attempt == attempt and record.event.outcome


# ------------------------------------------------------------------------------------------------------ sensors


def digest(data: Mapping[str, Any]) -> str:
    """A short fingerprint of an observation."""
    return _fingerprint(canonical_with_json(data)[1])


def _fingerprint(encoded: bytes) -> str:
    return sha256(encoded).hexdigest()[:16]


def stamp(sensor: Sensor) -> str:
    """Tells one write of a sensor from another: two in the same millisecond differ in what they say."""
    return f"{epoch_millis(sensor.received_at)}-{digest(sensor.data)}"


def sensor_item(data: Mapping[str, Any], received_at: datetime, *, ttl: int | None = None, by: str = "") -> Item:
    """An observation as our API stores it."""
    kept, encoded = canonical_with_json(data)
    item: Item = {"data": dict(kept), RECEIVED: format_instant(received_at), DIGEST: _fingerprint(encoded)}
    if ttl is not None:
        item["ttl"] = ttl
    if by:
        item[WRITTEN_BY] = by
    return item


def sensor_of(key: str, item: Item) -> Sensor:
    """A stored observation, flat or nested in `data`.

    One written directly to the store and not yet processed has no received time: it counts as never received, until
    the stream-router has stamped it and woken who reads it.
    """
    nested = item.get("data")
    data = nested if isinstance(nested, dict) else {k: v for k, v in item.items() if k not in _OWN_SENSOR_FIELDS}
    received = parse_instant(item.get(RECEIVED)) or _NEVER
    ttl = item.get("ttl")
    return Sensor(key, data, received, int(ttl) if isinstance(ttl, int | float) else None)


def unfit(item: Item, data: Mapping[str, Any]) -> str:
    """Why an observation that was written directly to the store is none; "" for one that is."""
    if UNREADABLE in item:
        return f"it holds {item[UNREADABLE]}"
    size = len(msgspec.json.encode(data))
    return f"{size} bytes is more than the {MAX_SENSOR_BYTES} a sensor may have" if size > MAX_SENSOR_BYTES else ""


def is_absent(key: str, item: Item | None) -> bool:
    """Is there no observation, or none that counts? What the stream-router has not seen yet is measured here."""
    if item is None or REFUSED in item or UNREADABLE in item:
        return True
    return RECEIVED not in item and bool(unfit(item, sensor_of(key, item).data))


def get_sensors(store: Store, pipeline: str, wanted: Sequence[str]) -> dict[str, Sensor]:
    """The sensors of these exact keys that exist."""
    pk = keys.pipeline_pk(pipeline)
    items = store.get_many([control_key(pk, keys.sensor_sk(key)) for key in wanted])
    found = zip(wanted, items, strict=True)
    return {key: sensor_of(key, item) for key, item in found if item is not None and not is_absent(key, item)}


# ------------------------------------------------------------------------------------------------------- events


def event(
    type_: EventType,
    key: RunKey,
    now: datetime,
    message: str,
    /,
    *,
    severity: Severity | None = None,
    **detail: Any,
) -> Event:
    """An event about a run; a pipeline's own event leaves schedule and date empty."""
    return Event(
        type=type_,
        severity=severity or CATALOGUE[type_].severity,
        pipeline_id=key.pipeline,
        schedule_id=key.schedule,
        date=key.date,
        message=message,
        timestamp=now,
        detail=msgspec.to_builtins({name: value for name, value in detail.items() if value is not None}),
    )


def put_event(one: Event) -> Put:
    """The write that records it, cut where it is too large; goes into the commit of the change it reports."""
    one = fitted(one)
    millis = epoch_millis(one.timestamp)
    sk = keys.event_sk(millis, one.type, f"{next(_order):012x}{_PROCESS}")
    item = plain(one)
    item["ttl"] = millis // 1000 + EVENT_TTL_DAYS * 86_400
    return Put(Key(Table.EVENTS, keys.pipeline_pk(one.pipeline_id), sk), item, Missing())


def put_events(*events: Event) -> list[Write]:
    """The writes that record several events, in their order."""
    return [put_event(one) for one in events]


def once(key: RunKey, what: str, now: datetime, *, keep: timedelta = timedelta(days=30)) -> Put:
    """A write that makes its commit happen at most once: it fails when the same was written before."""
    sk = f"{key.sk(keys.ALERTED)}#{what}"
    return Put(control_key(key.pk, sk), {"at": format_instant(now), "ttl": int((now + keep).timestamp())}, Missing())


def was_alerted(store: Store, key: RunKey, what: str) -> bool:
    """Was `once` of this committed before?"""
    return store.get(control_key(key.pk, f"{key.sk(keys.ALERTED)}#{what}")) is not None


def publish(control: Control, one: Event) -> None:
    """Commit an event that reports no change. Another process that uses the same sort key cannot overwrite it."""
    settle_commit(control, lambda: (None, [put_event(one)]))


def publish_once(control: Control, one: Event, what: str) -> bool:
    """Commit an event unless the same was committed before."""
    key = RunKey(one.pipeline_id, one.schedule_id, one.date)
    for _ in range(_TRIES):
        conflict = control.store.commit([once(key, what, one.timestamp), put_event(one)])
        # The second alone: another process counted to the same sort key, which says nothing of this event.
        if conflict is None or conflict.failed != (1,):
            return conflict is None
    raise StoreError(f"{one.type} of {key} finds no free sort key in the events table: look at the clocks")


# -------------------------------------------------------------------------------------------------- run writes


def put_run(run: Run, before: Run | None) -> Put:
    """Compare-and-set: the run replaces exactly the version it was made from."""
    when: Condition = Missing() if before is None else Matches({"version": before.version, "attempt": before.attempt})
    return Put(run_record(run.key, keys.RUN), plain(run), when)


def put_sla(state: SlaState, before: SlaState | None) -> Put:
    """Compare-and-set of the SLA state; it goes by itself when it is of no use to anybody."""
    when: Condition = Missing() if before is None else Matches({"version": before.version})
    item, until = plain(state), sla.forgotten_at(state)
    if until is not None:
        item["ttl"] = until
    return Put(run_record(state.key, keys.SLA), item, when)


def put_job(record: JobRecord, unique: str) -> Put:
    """Append to the job log."""
    return _put_logged(record, keys.job_sk(record.key, f"{format_instant(record.at)}-{unique}"))


def put_outcome(record: JobRecord, run: Run) -> Put:
    """Log what ended the job of the run's latest attempt; the commit fails when somebody has done so.

    Several look at a job (the lifecycle, who watches its target, the job itself), each of them finds no outcome, and
    the run changes by none of their commits. An attempt therefore has one place for its outcome, whose key they all
    know. The job of an attempt that was given up may still end: there is a place for each way in which it can.
    """
    late = "" if run.active else f"-late-{record.event}"
    return _put_logged(record, f"{_outcome_sk(run)}{late}")


def _outcome_sk(run: Run) -> str:
    return keys.job_sk(run.key, f"{format_instant(run.opened_at)}-outcome-{run.attempt}")


def _put_logged(record: JobRecord, sk: str) -> Put:
    return Put(Key(Table.JOBLOG, record.key.pk, sk), plain(record), Missing())


def put_rerun(run: Run, reason: str) -> Put:
    """The record that an attempt was opened by a retry or rerun."""
    record = RerunRecord(
        pipeline=run.pipeline,
        schedule=run.schedule,
        date=run.date,
        attempt=run.attempt,
        source=run.source,
        at=run.opened_at,
        reason=reason,
        requested_by=run.requested_by,
    )
    return Put(Key(Table.RERUN, run.key.pk, keys.rerun_sk(run.key, run.attempt)), plain(record), Missing())


def put_active(run: Run) -> Put:
    """A fresh wake-up record for a newly opened attempt."""
    return Put(run_record(run.key, keys.ACTIVE), plain(Active(attempt=run.attempt, wake_seq=0)))


def drop_active(key: RunKey) -> Delete:
    """The attempt is over: nobody is woken any more."""
    return Delete(run_record(key, keys.ACTIVE))


def drop_active_if(key: RunKey, seen: int) -> Delete:
    """The attempt is over, unless somebody asked for another look since `seen`."""
    return Delete(run_record(key, keys.ACTIVE), Matches({"wakeSeq": seen}))


# ------------------------------------------------------------------------------------------------------ commits


def settle_commit(control: Control, decide: Callable[[], tuple[T, Iterable[Write]]]) -> T:
    """Read, decide, commit; read again and decide again when somebody was faster.

    `decide` returns its result and the writes; no writes means that there is nothing to do.
    """
    for _ in range(_TRIES):
        result, writes = decide()
        pending = list(writes)
        if not pending or control.store.commit(pending) is None:
            return result
    # The lifecycle tries again for minutes what comes too fast: a crowd at one record is no fault of the run.
    raise ThrottledError(f"a commit lost {_TRIES} times in a row: somebody keeps changing the same record")

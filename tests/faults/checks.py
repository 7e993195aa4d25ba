"""What must be true of a store whatever happened to its controller, and at the end also that everything was done."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.control.views import event_views
from interlock.control.views.event_views import EventView
from interlock.embedded.sqlite.connection import connect
from interlock.embedded.sqlite.inspection import inspect
from interlock.model.events import Event, EventType, Severity
from tests.faults.parties import Written
from tests.faults.workload import Slot

# Published once for each attempt, or once for each run.
_PER_ATTEMPT: Final = (
    EventType.TRIGGER_STARTED,
    EventType.JOB_TRIGGERED,
    EventType.JOB_COMPLETED,
    EventType.JOB_FAILED,
)
_PER_RUN: Final = (EventType.RETRY_EXHAUSTED,)
_SHOWN: Final = 5
_ALLOWED_GROWTH: Final = {"megabytes": 60, "descriptors": 80, "threads": 80}


class Stored(NamedTuple):
    """What a look at the store's file found."""

    events: list[EventView]
    runs: dict[Slot, dict[str, Any]]
    dead_letters: int


def lost_writes(store: Path, writes: Sequence[Written]) -> list[str]:
    """Acknowledged writes that are not in the store. Of a counter, what is there may be later."""
    latest: dict[tuple[str, str], dict[str, Any]] = {(one.pipeline, one.key): one.data for one in writes}
    with closing(connect(store, mode="ro")) as connection:
        return list(_lost(connection, latest))


def _lost(connection: sqlite3.Connection, latest: Mapping[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    sql = "SELECT item FROM control WHERE pk = ? AND sk = ?"
    for (pipeline, key), data in latest.items():
        found = connection.execute(sql, (f"PIPELINE#{pipeline}", f"SENSOR#{key}")).fetchone()
        stored = json.loads(found[0])["data"] if found is not None else None
        if stored is None:
            yield f"{pipeline}/{key} was acknowledged and is not there"
        elif stored != data and not stored.get("count", 0) >= data.get("count", 0) > 0:
            yield f"{pipeline}/{key} was acknowledged as {data} and is {stored}"


def read(store: Path) -> Stored:
    """The events in their order, and the runs."""
    with closing(connect(store, mode="ro")) as connection:
        rows = connection.execute("SELECT pk, sk, item FROM events WHERE at IS NOT NULL").fetchall()
        events = [event_views.view(pk, sk, json_event(item)) for pk, sk, item in rows]
        runs = connection.execute("SELECT item FROM control WHERE sk GLOB 'TRIGGER#*'").fetchall()
        letters = connection.execute("SELECT count(*) FROM dead_letters").fetchone()[0]
    found = [json.loads(item) for (item,) in runs]
    return Stored(
        event_views.in_order(events), {Slot(one["pipeline"], one["date"]): one for one in found}, int(letters)
    )


def json_event(item: str) -> Event:
    """An event as it is stored."""
    import msgspec

    return msgspec.json.decode(item, type=Event)


def told_twice(events: Iterable[EventView]) -> list[str]:
    """Events that there may be one of, and are more."""
    counts: Counter[tuple[str, str, str, object]] = Counter()
    for one in events:
        if one.type in _PER_ATTEMPT:
            counts[one.type, one.pipeline_id, one.date, one.detail.get("attempt")] += 1
        elif one.type in _PER_RUN:
            counts[one.type, one.pipeline_id, one.date, None] += 1
    return [f"{name} was published {count} times" for name, count in counts.items() if count > 1]


def unfinished(stored: Stored, slots: Iterable[Slot]) -> list[str]:
    """Slots that were acknowledged, and whose run is not what it has to be in the end."""
    found = []
    for slot in slots:
        run = stored.runs.get(slot)
        if run is None:
            found.append(f"{slot} has no run")
        elif (run["status"], run["attempt"]) != (slot.kind.status, slot.kind.starts):
            found.append(f"{slot} is {run['status']} after attempt {run['attempt']}")
    return found


def wrongly_followed(name: str, seen: Sequence[str], events: Sequence[EventView]) -> list[str]:
    """Where what a follower got differs from the table of events."""
    expected = [one.id for one in events]
    if list(seen) == expected:
        return []
    twice = [one for one, count in Counter(seen).items() if count > 1]
    missing = [one for one in expected if one not in set(seen)]
    extra = [one for one in seen if one not in set(expected)]
    order = "" if twice or missing or extra else ", but in another order"
    return [
        f"{name} got {len(seen)} of {len(expected)} events: {len(twice)} twice {twice[:_SHOWN]}, {len(missing)} not"
        f" {missing[:_SHOWN]}, {len(extra)} unknown {extra[:_SHOWN]}{order}"
    ]


def alerts_due(events: Iterable[EventView]) -> dict[str, list[str]]:
    """The ids of the alerts of each pipeline, in order."""
    due: dict[str, list[str]] = {}
    for one in events:
        if one.severity.rank >= Severity.WARNING.rank:
            due.setdefault(one.pipeline_id, []).append(f"{one.pipeline_id}/{one.id.partition('~')[0]}")
    return due


def wrongly_alerted(taken: Sequence[tuple[str, str]], events: Sequence[EventView]) -> list[str]:
    """Alerts that were not delivered, or in another order than their events. Twice is allowed after a crash."""
    first: dict[str, list[str]] = {}
    for pipeline, alert in dict.fromkeys(taken):
        first.setdefault(pipeline, []).append(alert)
    found = []
    for pipeline, due in alerts_due(events).items():
        got = first.get(pipeline, [])
        missing, unknown = set(due) - set(got), set(got) - set(due)
        if missing:
            found.append(f"{pipeline}: {len(missing)} alerts were not delivered: {sorted(missing)[:_SHOWN]}")
        elif unknown:
            found.append(f"{pipeline}: {len(unknown)} alerts are of no event: {sorted(unknown)[:_SHOWN]}")
        elif got != due:
            wrong = next((a, b) for a, b in zip(got, due, strict=True) if a != b)
            found.append(f"{pipeline}: alerts came out of order, first {wrong[0]} instead of {wrong[1]}")
    return found


def damaged(store: Path) -> list[str]:
    """What is wrong with the file itself."""
    with closing(connect(store, mode="ro")) as connection:
        return inspect(connection)


def grown(begin: Mapping[str, int], end: Mapping[str, int]) -> list[str]:
    """What a controller takes more of than one that has just been started, beyond what work in hand explains."""
    return [
        f"{name}: {begin[name]} at the beginning, {end[name]} at the end"
        for name, allowed in _ALLOWED_GROWTH.items()
        if end[name] > begin[name] + allowed
    ]

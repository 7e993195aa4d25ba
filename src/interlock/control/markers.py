"""Cascade markers: a completion notifies every pipeline that runs after it (SPEC 9). No marker is left out.

Those that fit are written in the commit of the completion. If there are more, the run remembers that (`markers_left`),
and they follow from its change (`follow`). A change is delivered until it was handled, and a marker that is there is
not written again, so that a process may die between any two of them. The change reports a completion that has
happened, whatever has become of the run since: here, what was written counts, not what the run says now.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from interlock.control import catalog, records
from interlock.control.context import Control
from interlock.decide import cascade
from interlock.model import keys
from interlock.model.config import PipelineConfig
from interlock.model.keys import Table
from interlock.model.periods import parse_period
from interlock.model.run import Marker, Run
from interlock.ports.store import Key, Matches, Missing, Put, Store, Write

IN_COMMIT: Final = 60
_AT_ONCE: Final = 90


class Markers(msgspec.Struct, frozen=True):
    """What a completion commits for the cascade; `left`: more follow from its change."""

    writes: list[Write]
    left: bool


def of_completion(control: Control, run: Run, now: datetime) -> Markers:
    """The markers of an attempt that completes now."""
    marker = _marker(run, now, again=run.first_completed_at is not None)
    found = list(islice(_places(control.store, run), IN_COMMIT + 1))
    return Markers([_put(where, marker) for where in found[:IN_COMMIT]], left=len(found) > IN_COMMIT)


def follow(control: Control, completed: Run) -> None:
    """Write the markers that the commit of a completion left out."""
    if not completed.markers_left or completed.ended_at is None:
        return
    again = completed.first_completed_at != completed.ended_at
    marker = _marker(completed, completed.ended_at, again=again)
    places = list(_places(control.store, completed))
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        records.settle_commit(control, partial(_missing, control.store, marker, some))


def _marker(run: Run, at: datetime, *, again: bool) -> Marker:
    return Marker(
        upstream=run.pipeline,
        date=run.date,
        completed_at=at,
        attempt=run.attempt,
        upstream_schedule=run.schedule,
        again=again,
    )


def _put(where: Key, marker: Marker) -> Put:
    return Put(where, records.plain(marker))


def _missing(store: Store, marker: Marker, places: list[Key]) -> tuple[None, list[Write]]:
    """The writes that put it where it, or a later one of the same upstream, is not yet."""
    writes: list[Write] = []
    for where, item in zip(places, store.get_many(places), strict=True):
        there = None if item is None else records.convert(item, Marker, where)
        if there is None:
            writes.append(Put(where, records.plain(marker), Missing()))
        elif _supersedes(marker, there):
            same = Matches({name: (item or {}).get(name) for name in ("attempt", "completedAt")})
            writes.append(Put(where, records.plain(marker), same))
    return None, writes


def _supersedes(marker: Marker, there: Marker) -> bool:
    if marker.upstream_schedule == there.upstream_schedule:
        return marker.attempt > there.attempt
    return marker.completed_at > there.completed_at


def _places(store: Store, run: Run) -> Iterator[Key]:
    """Where the markers of a completion go, always in the same order."""
    for record in store.query(Table.CONTROL, keys.pipeline_pk(run.pipeline), keys.DOWNSTREAM):
        downstream = record.key.sk[len(keys.DOWNSTREAM) :]
        for schedule in dict.fromkeys(_schedules(store, downstream, run)):
            sk = keys.marker_sk(schedule, run.date, run.pipeline, run.schedule)
            yield records.control_key(keys.pipeline_pk(downstream), sk)


def _schedules(store: Store, downstream: str, run: Run) -> Iterator[str]:
    """The schedules of a downstream that wait for a run: by its config in force, and by those it has attempts of."""
    for config in catalog.in_use(store, downstream, catalog.in_force(store, downstream)).values():
        if _waits_for(config, run):
            yield config.all_schedules[0].schedule_id


def _waits_for(config: PipelineConfig, run: Run) -> bool:
    schedule, period = config.all_schedules[0], parse_period(run.date)
    entries = (entry for entry in config.after if entry.pipeline == run.pipeline)
    return any(cascade.wanted_periods(entry, schedule, period) is not None for entry in entries)

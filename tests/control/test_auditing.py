"""Which changes leave a note for the audit trail: those that are made for somebody, where a trail is kept."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, reruns, writing
from interlock.control.auditing import note, noted
from interlock.control.context import Auditing, Control
from interlock.model.audit import Actor, ActorKind, AuditAction, AuditNote
from interlock.model.config import Calendar, PipelineConfig
from interlock.model.keys import RunKey, Table
from interlock.ports.store import Conflict, Delete, Key, Present, Put, Require, Update, Write
from tests.safety.stage import control_of, pipeline, staged

ANN = Actor(ActorKind.TOKEN, "ann", "192.0.2.7")
KEY = Key(Table.CONTROL, "p", "s")


class Watched:
    """A store that remembers the notes that are committed."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.notes: list[AuditNote] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        conflict: Conflict | None = self._store.commit(writes)
        if conflict is None:
            found = [one.note for one in writes if isinstance(one, Put | Delete)]
            self.notes += [one for one in found if one is not None]
        return conflict


@pytest.fixture(name="store")
def fixture_store() -> Watched:
    return Watched(control_of(staged(pipeline(), until="+1m", steps=[])).store)


@pytest.fixture(name="control")
def fixture_control(store: Watched) -> Control:
    return replace(control_of(staged(pipeline(), until="+1m", steps=[])), store=store)


def changes(control: Control) -> None:
    """Some changes, as commands make them."""
    document = pipeline(dryRun=True)
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    catalog.apply_config(control, config, document)
    catalog.apply_calendar(control, Calendar(name="us", dates=["2026-07-03"]))
    catalog.apply_calendar(control, Calendar(name="us", dates=["2026-07-03"]))
    catalog.delete_calendar(control, "us", reason="no more")
    catalog.delete_calendar(control, "us")
    reruns.request(control, RunKey("orders", config.all_schedules[0].schedule_id, "2026-03-02"), reason="again")
    writing.write_sensor(control, "orders", "rows", {"count": 5}, by="ann")
    writing.delete_sensor(control, "orders", "rows")
    catalog.delete_config(control, "orders")


def test_what_is_done_for_somebody_leaves_a_note(control: Control, store: Watched) -> None:
    changes(control.acting(ANN))
    assert [one.action for one in store.notes] == [
        AuditAction.PIPELINE_APPLIED,
        AuditAction.CALENDAR_APPLIED,
        AuditAction.CALENDAR_DELETED,
        AuditAction.RERUN_REQUESTED,
        AuditAction.SENSOR_DELETED,
        AuditAction.PIPELINE_DELETED,
    ]
    assert {one.actor for one in store.notes} == {ANN}
    applied, _, gone, asked, _, deleted = store.notes
    assert applied.before["version"] != applied.after["version"] == deleted.before["version"]
    assert (gone.subject, gone.reason) == ("us", "no more")
    assert (asked.pipeline, asked.date, asked.reason) == ("orders", "2026-03-02", "again")


def test_what_the_controller_does_by_itself_leaves_none(control: Control, store: Watched) -> None:
    changes(control)
    assert store.notes == []


def test_where_no_trail_is_kept_nobody_is_named(control: Control, store: Watched) -> None:
    changes(replace(control, auditing=None).acting(ANN))
    assert store.notes == []


def test_sensor_writes_are_noted_where_that_is_wanted(control: Control, store: Watched) -> None:
    wanted = replace(control, auditing=Auditing(sensors=True)).acting(ANN)
    writing.write_sensor(wanted, "orders", "rows", {"count": 5}, by="ann")
    assert [(one.action, one.subject) for one in store.notes] == [(AuditAction.SENSOR_WRITTEN, "rows")]


def test_the_first_write_that_writes_something_carries_the_note(control: Control) -> None:
    made = note(control.acting(ANN), AuditAction.RUN_CANCELLED, RunKey("orders", "daily", "2026-03-02"))
    required, put, deleted = Require(KEY, Present()), Put(KEY, {}), Delete(KEY)
    assert noted([required, put, deleted], made) == [required, Put(KEY, {}, note=made), deleted]
    assert noted([Update(KEY), deleted], made) == [Update(KEY), Delete(KEY, note=made)]
    assert noted([required, put], None) == [required, put]
    assert noted([required], made) == [required]


def test_the_notes_of_a_calendar_tell_its_versions_apart(control: Control, store: Watched) -> None:
    ann = control.acting(ANN)
    for dates in (["2026-07-03"], ["2026-07-04"]):
        catalog.apply_calendar(ann, Calendar(name="us", dates=dates))
    catalog.delete_calendar(ann, "us")
    first, second, gone = store.notes
    assert (first.before, first.subject) == ({}, "us")
    assert set(first.after) == {"digest"}
    assert second.before == first.after != second.after == gone.before

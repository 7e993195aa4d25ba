"""Events for readers: every page holds what fits, once, in order, either way round."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import records
from interlock.control.context import Control
from interlock.control.views import event_views
from interlock.control.views.event_views import EventView, Wanted
from interlock.model.errors import InvalidValueError
from interlock.model.events import EventType, Severity
from interlock.model.keys import RunKey, Table
from interlock.ports.store import Put
from tests.safety.stage import KEY, control_of, pipeline, run_of, staged

NOW: Final = datetime(2026, 3, 5, 12, tzinfo=UTC)


def control() -> Control:
    return control_of(staged(pipeline(), until="+1m", steps=[]))


def happened(
    into: Control,
    message: str,
    minute: float = 0,
    type_: EventType = EventType.JOB_COMPLETED,
    *,
    name: str = "a",
    schedule: str = "cron",
    date: str = "2026-03-05",
) -> None:
    event = records.event(type_, RunKey(name, schedule, date), NOW + timedelta(minutes=minute), message)
    into.store.commit([records.put_event(event)])


def messages(found: list[EventView]) -> list[str]:
    return [one.message for one in found]


def everything(into: Control, limit: int, **wanted: Any) -> list[list[str]]:
    """Page after page."""
    pages, cursor = [], None
    for _ in range(50):
        page = event_views.page(into.store, Wanted(**wanted), NOW + timedelta(hours=2), cursor=cursor, limit=limit)
        pages.append(messages(page.items))
        cursor = page.next
        if cursor is None:
            return pages
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("name", ["a", None])
@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_hold_every_event_once_and_in_order(name: str | None, newest_first: bool) -> None:
    into = control()
    for index in range(7):
        happened(into, str(index), index, EventType.SLA_BREACH if index % 2 else EventType.JOB_COMPLETED)
    whole = [str(index) for index in range(7)]
    whole = whole[::-1] if newest_first else whole
    assert everything(into, 3, pipeline=name, newest_first=newest_first) == [whole[:3], whole[3:6], whole[6:]]
    assert everything(into, 7, pipeline=name, newest_first=newest_first) == [whole], "a full page has no next"


@pytest.mark.parametrize("name", ["a", None])
def test_since_counts_until_does_not_and_types_are_those_asked_for(name: str | None) -> None:
    into = control()
    for index in range(5):
        happened(into, str(index), index, EventType.SLA_BREACH if index == 2 else EventType.JOB_COMPLETED)
    span = {"since": NOW + timedelta(minutes=1), "until": NOW + timedelta(minutes=4)}
    assert everything(into, 10, pipeline=name, **span) == [["3", "2", "1"]]
    assert everything(into, 10, pipeline=name, types=(EventType.SLA_BREACH,)) == [["2"]]
    both = (EventType.SLA_BREACH, EventType.JOB_COMPLETED)
    assert everything(into, 10, pipeline=name, types=both, **span) == [["3", "2", "1"]]


def test_of_all_pipelines_or_of_one() -> None:
    into = control()
    for index, name in enumerate("abab"):
        happened(into, f"{name}{index}", index, name=name)
    assert everything(into, 10, newest_first=False) == [["a0", "b1", "a2", "b3"]]
    assert everything(into, 10, pipeline="b", newest_first=False) == [["b1", "b3"]]


def test_events_of_one_millisecond_are_in_the_order_they_were_made() -> None:
    into = control()
    kinds = [EventType.VALIDATION_PASSED, EventType.JOB_TRIGGERED, EventType.JOB_COMPLETED]
    for index, type_ in enumerate(kinds):
        happened(into, str(index), type_=type_)
    assert everything(into, 10, newest_first=False) == [["0", "1", "2"]]
    assert everything(into, 10) == [["2", "1", "0"]]


def test_what_is_made_while_a_page_is_read_is_on_it_and_what_is_far_ahead_is_not() -> None:
    into = control()
    happened(into, "now", 0)
    happened(into, "soon", 4)
    happened(into, "far", 6)
    found = event_views.page(into.store, Wanted(pipeline="a"), NOW)
    assert messages(found.items) == ["soon", "now"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"severity": Severity.WARNING}, ["breach"]),
        ({"severity": Severity.INFO}, ["hour", "other", "breach", "done"]),
        ({"schedule": "nightly"}, ["other"]),
        ({"date": "2026-03-04"}, ["hour"]),
        ({"text": "DONE"}, ["done"]),
        ({"text": "sla_breach"}, ["breach"]),
        ({"text": "zzz"}, []),
        ({"text": "job_", "schedule": "cron"}, ["hour", "done"]),
    ],
)
@pytest.mark.parametrize("name", ["a", None])
def test_what_no_index_has_is_looked_for(name: str | None, wanted: dict[str, Any], found: list[str]) -> None:
    into = control()
    happened(into, "done", 0)
    happened(into, "breach", 1, EventType.SLA_BREACH)
    happened(into, "other", 2, schedule="nightly")
    happened(into, "hour", 3, date="2026-03-04")
    assert everything(into, 10, pipeline=name, **wanted) == [found]


def test_a_sieve_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    into = control()
    for index in range(9):
        happened(into, f"{'yes' if index % 3 == 0 else 'no'}{index}", index)
    monkeypatch.setattr(event_views, "_SCAN", 2)
    assert [page for page in everything(into, 2, pipeline="a", text="yes") if page] == [["yes6", "yes3"], ["yes0"]]
    monkeypatch.setattr(event_views, "_MOST_LOOKED_AT", 4)
    bounded = everything(into, 2, pipeline="a", text="yes0")
    assert [one for page in bounded for one in page] == ["yes0"]
    assert len(bounded) > 2, "pages may be empty and go on"


@pytest.mark.parametrize("cursor", ["", "x", "~a", "12345678901234#X#1~a", "abc#X~a", "1#X" + "y" * 1000 + "~a"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidValueError, match="is not a cursor"):
        event_views.page(control().store, Wanted(), NOW, cursor=cursor)


def test_the_id_of_any_event_is_a_cursor() -> None:
    into = control()
    for index in range(4):
        happened(into, str(index), index)
    found = event_views.page(into.store, Wanted(pipeline="a"), NOW + timedelta(hours=1))
    second = found.items[1].id
    assert messages(event_views.page(into.store, Wanted(pipeline="a"), NOW, cursor=second).items) == ["1", "0"]
    assert messages(event_views.page(into.store, Wanted(), NOW, cursor=second).items) == ["1", "0"]
    forward = Wanted(pipeline="a", newest_first=False)
    assert messages(event_views.page(into.store, forward, NOW, cursor=second).items) == ["3"]


def test_the_events_of_a_run_are_all_of_them_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = staged(pipeline(), until="+30m")
    into, run = control_of(world), run_of(world)
    monkeypatch.setattr(event_views, "_SCAN", 3)
    happened(into, "another date", -700, name="orders", schedule="stream", date="2026-03-04")
    happened(into, "another schedule", -700, name="orders", schedule="cron")
    thread = records.put_event(records.event(EventType.SLA_MET, KEY, NOW, "x")).key
    into.store.commit([Put(type(thread)(Table.EVENTS, KEY.pk, "THREAD#stream#2026-03-05"), {"date": "2026-03-05"})])
    world._pump()
    mine = [event.type for event in world.events if event.date == KEY.date and event.schedule_id == "stream"]
    assert [one.type for one in event_views.of_run(into.store, run)] == mine
    assert EventType.JOB_COMPLETED in mine


def test_of_the_pipelines_that_are_named_and_no_others() -> None:
    into = control()
    for index, name in enumerate("abcabc"):
        happened(into, f"{name}{index}", index, name=name)
    assert everything(into, 3, pipelines=("a", "c"), newest_first=False) == [["a0", "c2", "a3"], ["c5"]]
    assert everything(into, 3, pipelines=("a", "c")) == [["c5", "a3", "c2"], ["a0"]]
    assert everything(into, 3, pipelines=()) == [[]]


def test_digits_of_another_script_are_no_cursor() -> None:
    with pytest.raises(InvalidValueError, match="is not a cursor"):
        event_views.page(control().store, Wanted(), NOW, cursor="١٢٣#X#1~a")


@pytest.mark.parametrize("newest_first", [True, False])
def test_what_is_stored_beside_the_events_of_a_pipeline_is_no_event(newest_first: bool) -> None:
    into = control()
    happened(into, "one")
    where = records.put_event(records.event(EventType.SLA_MET, RunKey("a", "cron", "x"), NOW, "x")).key
    into.store.commit([Put(type(where)(Table.EVENTS, where.pk, "THREAD#x"), {"date": "x"})])
    assert everything(into, 10, pipeline="a", newest_first=newest_first) == [["one"]]


def test_a_span_before_there_was_anything_is_empty_and_one_without_an_end_is_not() -> None:
    into = control()
    happened(into, "one")
    long_ago = datetime(1960, 1, 1, tzinfo=UTC)
    assert everything(into, 10, pipeline="a", until=long_ago) == [[]]
    assert everything(into, 10, pipeline="a", since=long_ago) == [["one"]]
    assert everything(into, 10, since=long_ago, until=datetime(9999, 1, 1, tzinfo=UTC)) == [["one"]]


def test_an_event_is_shown_with_all_that_it_says() -> None:
    into = control()
    happened(into, "late", 1, EventType.SLA_BREACH, schedule="nightly")
    (found,) = event_views.page(into.store, Wanted(pipeline="a"), NOW + timedelta(hours=1)).items
    assert (found.type, found.severity) == (EventType.SLA_BREACH, Severity.ERROR)
    assert (found.pipeline_id, found.schedule_id, found.date) == ("a", "nightly", "2026-03-05")
    assert found.timestamp == NOW + timedelta(minutes=1)
    assert found.id.endswith("~a")


@pytest.mark.parametrize(("days", "shown"), [(6, True), (8, False)])
def test_the_events_of_a_run_are_looked_for_a_week_beyond_it(
    days: int, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = staged(pipeline(), until="+30m")
    into, run = control_of(world), run_of(world)
    after = (run.updated_at + timedelta(days=days) - NOW).total_seconds() / 60
    for index in range(6):
        happened(into, f"other{index}", after - 1 + index / 10, name="orders", schedule="cron")
    happened(into, "afterwards", after + 1, name="orders", schedule="stream")
    monkeypatch.setattr(event_views, "_SCAN", 3)
    assert ("afterwards" in messages(event_views.of_run(into.store, run))) is shown

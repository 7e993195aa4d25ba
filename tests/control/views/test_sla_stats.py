"""SLA compliance per pipeline and week, and the latest runs of all."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import records
from interlock.control.context import Control
from interlock.control.views import sla_stats
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World
from tests.safety.stage import control_of, staged
from tests.safety.stage import pipeline as stage_pipeline


def pipeline(name: str) -> dict[str, Any]:
    return {
        "pipeline": {"id": name, "owner": f"owner of {name}"},
        "schedule": {"cron": "0 8 * * *", "evaluation": {"window": "8h"}},
        "sla": {"deadline": "10:00", "expectedDuration": "30m"},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": "command", "config": {"command": ["true"]}},
    }


def test_compliance_margins_and_the_worst_runs() -> None:
    late = {("a", 3): "11:00", ("a", 9): "10:30"}
    steps = [
        {"at": f"2026-03-{day:02d}T{late.get((name, day), '08:10')}:00Z", "sensor": f"{name}/ready", "data": {}}
        for name in "ab"
        for day in range(2, 10)
    ]
    scenario = inline_scenario(
        start="2026-03-02T07:00:00Z",
        until="2026-03-10T10:30:00Z",
        pipelines=[pipeline("a"), pipeline("b")],
        steps=sorted(steps, key=lambda one: str(one["at"])),
    )
    world = World(scenario)
    world.play()
    found = sla_stats.collect(world.engine.store, world.clock.now(), weeks=3)
    assert found.weeks == ["2026-02-23", "2026-03-02", "2026-03-09"]
    a, b = found.items
    assert (a.pipeline, b.pipeline) == ("a", "b")
    assert a.owner == "owner of a"
    assert a.weeks[0] is None
    assert a.compliance < b.compliance
    assert [(one.pipeline, one.date, one.margin_seconds) for one in found.worst] == [
        ("a", "2026-03-10", None),
        ("b", "2026-03-10", None),
        ("a", "2026-03-03", -3660),
        ("a", "2026-03-09", -1860),
    ]
    assert (found.runs, found.truncated) == (sum(one.runs for one in found.items), False)


# ------------------------------------------------------------------------------------------- what is counted as what

NOW: Final = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)  # a Thursday


def control() -> Control:
    """A store without a run of its own."""
    return control_of(staged(stage_pipeline(), until="+1m", steps=[]))


def happened(
    into: Control, type_: EventType, at: datetime = NOW, *, name: str = "a", date: str = "2026-03-05", **detail: Any
) -> None:
    event = records.event(type_, RunKey(name, "cron", date), at, "a message", **detail)
    into.store.commit([records.put_event(event)])


def test_weeks_begin_on_monday_and_the_current_one_is_the_last() -> None:
    into = control()
    monday = datetime(2026, 3, 2, tzinfo=UTC)
    happened(into, EventType.SLA_MET, monday, date="2026-03-01", marginSeconds=10)
    happened(into, EventType.SLA_MET, monday - timedelta(seconds=1), date="2026-02-28", marginSeconds=10)
    happened(into, EventType.SLA_MET, monday - timedelta(weeks=1, seconds=1), date="2026-02-20", marginSeconds=10)
    happened(into, EventType.SLA_MET, NOW + timedelta(seconds=50), date="2026-03-04", marginSeconds=10)
    found = sla_stats.collect(into.store, NOW, weeks=2)
    assert (found.at, found.weeks) == (NOW, ["2026-02-23", "2026-03-02"])
    (a,) = found.items
    assert [(one.runs, one.late) for one in a.weeks if one is not None] == [(1, 0), (2, 0)]
    assert (a.runs, a.late, a.compliance, found.runs, found.late) == (3, 0, 1.0, 3, 0)
    assert sla_stats.collect(into.store, NOW, weeks=3).items[0].runs == 4


def test_a_run_counts_once_as_late_in_the_week_in_which_it_was_decided() -> None:
    into = control()
    last_week = NOW - timedelta(weeks=1)
    breach = "2026-02-26T10:00:00Z"
    happened(into, EventType.SLA_BREACH, last_week, date="2026-02-26", breachAt=breach)
    happened(into, EventType.RELATIVE_SLA_BREACH, last_week, date="2026-02-26")
    happened(into, EventType.SLA_RECOVERED, NOW, date="2026-02-26", marginSeconds=-90)
    happened(into, EventType.SLA_RECOVERED, NOW, date="2026-03-01", marginSeconds=0)
    happened(into, EventType.SLA_RECOVERED, NOW, date="2026-03-02", marginSeconds=-1)
    happened(into, EventType.SLA_MET, NOW, date="2026-03-03", marginSeconds=None)
    found = sla_stats.collect(into.store, NOW, weeks=2)
    (a,) = found.items
    assert (a.runs, a.late, a.compliance) == (4, 2, 0.5)
    assert a.weeks[0] is None
    assert a.weeks[1] is not None
    assert (a.weeks[1].runs, a.weeks[1].late) == (4, 2)
    assert (a.p10, a.p50) == (-90.0, -1.0)
    assert [(one.date, one.schedule, one.margin_seconds) for one in found.worst] == [
        ("2026-02-26", "cron", -90),
        ("2026-03-02", "cron", -1),
    ]
    assert found.worst[0].breach_at == datetime(2026, 2, 26, 10, tzinfo=UTC)


def test_those_that_are_not_done_yet_come_first_by_when_they_were_due() -> None:
    into = control()
    for day in range(1, 13):
        happened(into, EventType.SLA_BREACH, date=f"2026-02-{day:02d}", breachAt=f"2026-02-{29 - day:02d}T10:00:00Z")
    happened(into, EventType.SLA_BREACH, date="2026-02-20")
    worst = sla_stats.collect(into.store, NOW, weeks=1).worst
    assert [one.date for one in worst] == ["2026-02-20", *(f"2026-02-{day:02d}" for day in range(12, 3, -1))]
    assert worst[0].breach_at is None


def test_the_least_reliable_come_first_and_only_those_that_the_reader_may_see() -> None:
    into = control()
    for name, met, late in (("a", 1, 0), ("b", 1, 1), ("c", 2, 2), ("d", 1, 0)):
        for index in range(met):
            happened(into, EventType.SLA_MET, name=name, date=f"2026-01-0{index + 1}", marginSeconds=5)
        for index in range(late):
            happened(into, EventType.SLA_BREACH, name=name, date=f"2026-02-0{index + 1}")
    found = sla_stats.collect(into.store, NOW, weeks=1)
    assert [one.pipeline for one in found.items] == ["c", "b", "a", "d"]
    assert (found.runs, found.late) == (8, 3)
    assert [one.owner for one in found.items] == ["", "", "", ""], "nobody knows these pipelines any more"
    seen = sla_stats.collect(into.store, NOW, weeks=1, visible={"a", "b"})
    assert [one.pipeline for one in seen.items] == ["b", "a"]
    assert (seen.runs, seen.late, [one.pipeline for one in seen.worst]) == (3, 1, ["b"])


def test_pages_are_read_to_their_end_and_a_bound_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    into = control()
    for index in range(6):
        happened(into, EventType.SLA_MET, NOW - timedelta(seconds=index), date=f"2026-02-0{index + 1}")
        happened(into, EventType.SLA_BREACH, NOW - timedelta(seconds=index), date=f"2026-01-0{index + 1}")
    monkeypatch.setattr(sla_stats, "_PAGE", 2)
    whole = sla_stats.collect(into.store, NOW, weeks=1)
    assert (whole.runs, whole.truncated) == (12, False)
    monkeypatch.setattr(sla_stats, "_MOST", 7)
    cut = sla_stats.collect(into.store, NOW, weeks=1)
    assert (cut.runs, cut.truncated) == (7, True)


def test_without_events_there_is_nothing_to_say() -> None:
    found = sla_stats.collect(control().store, NOW, weeks=1)
    assert (found.items, found.worst, found.runs, found.truncated) == ([], [], 0, False)

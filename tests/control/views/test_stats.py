"""Statistics of a span: what is counted as what, on which day, and what is left out."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import records
from interlock.control.context import Control
from interlock.control.views import stats
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from tests.safety.stage import control_of, pipeline, staged

NOW: Final = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)


def control() -> Control:
    """A store without a run of its own."""
    return control_of(staged(pipeline(), until="+1m", steps=[]))


def happened(
    into: Control, type_: EventType, at: datetime = NOW, *, name: str = "a", date: str = "2026-03-05", **detail: Any
) -> None:
    event = records.event(type_, RunKey(name, "cron", date), at, "a message", **detail)
    into.store.commit([records.put_event(event)])


def test_without_events_nothing_is_claimed() -> None:
    found = stats.collect(control().store, NOW, days=2)
    assert (found.sla.runs, found.sla.compliance, found.durations.count, found.durations.p50) == (0, None, 0, None)
    assert [one.date for one in found.days] == ["2026-03-04", "2026-03-05"]
    assert (found.since, found.until) == (datetime(2026, 3, 4, tzinfo=UTC), NOW)
    assert (found.pipelines, found.truncated) == ([], False)


def test_each_event_counts_on_its_day_as_what_it_is() -> None:
    into = control()
    counted = {
        "opened": [EventType.TRIGGER_STARTED],
        "completed": [EventType.JOB_COMPLETED],
        "failed": [EventType.JOB_FAILED, EventType.JOB_TIMEOUT, EventType.JOB_POLL_EXHAUSTED],
        "held": [EventType.VALIDATION_EXHAUSTED, EventType.SENSOR_DEADLINE_EXPIRED],
        "breached": [EventType.SLA_BREACH, EventType.RELATIVE_SLA_BREACH],
    }
    for types in counted.values():
        for type_ in types:
            happened(into, type_, NOW - timedelta(days=1))
    happened(into, EventType.JOB_COMPLETED)
    happened(into, EventType.SENSOR_INVALID)
    happened(into, EventType.JOB_COMPLETED, NOW - timedelta(days=2))
    yesterday, today = stats.collect(into.store, NOW, days=2).days
    assert {name: getattr(yesterday, name) for name in counted} == {name: len(counted[name]) for name in counted}
    assert (today.completed, today.opened, today.failed, today.held, today.breached) == (1, 0, 0, 0, 0)


def test_a_run_counts_once_and_what_was_late_is_a_breach() -> None:
    into = control()
    happened(into, EventType.SLA_MET, date="2026-03-01")
    happened(into, EventType.SLA_BREACH, date="2026-03-02")
    happened(into, EventType.RELATIVE_SLA_BREACH, date="2026-03-02")
    happened(into, EventType.SLA_RECOVERED, date="2026-03-02", marginSeconds=-60)
    happened(into, EventType.SLA_RECOVERED, date="2026-03-03", marginSeconds=60)
    happened(into, EventType.SLA_RECOVERED, date="2026-03-04", marginSeconds=-1)
    happened(into, EventType.SLA_RECOVERED, date="2026-03-05", marginSeconds=0)
    happened(into, EventType.SLA_RECOVERED, date="2026-03-06")
    happened(into, EventType.SLA_RECOVERED, date="2026-02-01", marginSeconds=-9999, backFill=True)
    found = stats.collect(into.store, NOW, days=1).sla
    assert (found.runs, found.met, found.recovered, found.breached) == (6, 1, 5, 2)
    assert found.compliance == 0.666667


def test_runs_of_one_date_of_two_pipelines_are_two_and_each_has_its_own_figures() -> None:
    into = control()
    happened(into, EventType.SLA_MET, name="b")
    happened(into, EventType.SLA_BREACH, name="a")
    happened(into, EventType.JOB_COMPLETED, name="a", durationSeconds=90)
    found = stats.collect(into.store, NOW, days=1)
    assert [(one.pipeline, one.sla.compliance, one.completed, one.durations.longest) for one in found.pipelines] == [
        ("a", 0.0, 1, 90.0),
        ("b", 1.0, 0, None),
    ]
    assert (found.sla.runs, found.sla.compliance) == (2, 0.5)
    only = stats.collect(into.store, NOW, days=1, pipeline="b")
    assert [one.pipeline for one in only.pipelines] == ["b"]


@pytest.mark.parametrize(
    ("seconds", "p50", "p95"),
    [([10.0], 10.0, 10.0), ([10.0, 20.0], 10.0, 20.0), ([float(n) for n in range(1, 101)], 50.0, 95.0)],
)
def test_quantiles_are_values_that_were_measured(seconds: list[float], p50: float, p95: float) -> None:
    into = control()
    for index, one in enumerate(reversed(seconds)):
        happened(into, EventType.JOB_COMPLETED, NOW - timedelta(seconds=index), durationSeconds=one)
    happened(into, EventType.JOB_COMPLETED, durationSeconds=None)
    happened(into, EventType.JOB_FAILED, durationSeconds=99_999)
    found = stats.collect(into.store, NOW, days=1).durations
    assert (found.count, found.p50, found.p95, found.longest) == (len(seconds), p50, p95, seconds[-1])


def test_a_bound_is_said_and_pages_are_read_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    into = control()
    for index in range(7):
        happened(into, EventType.JOB_COMPLETED, NOW - timedelta(seconds=index))
    monkeypatch.setattr(stats, "_PAGE", 2)
    whole = stats.collect(into.store, NOW, days=1)
    assert (whole.days[0].completed, whole.truncated) == (7, False)
    monkeypatch.setattr(stats, "_MOST", 5)
    cut = stats.collect(into.store, NOW, days=1)
    assert (cut.days[0].completed, cut.truncated) == (5, True)

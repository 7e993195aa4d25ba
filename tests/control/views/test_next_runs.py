"""The next runs are kept until one of them begins, the config changes, or a calendar does."""

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.control import catalog
from interlock.control.views import next_runs
from interlock.control.views.next_runs import NextRuns, NextView
from interlock.decide import plan
from interlock.model.config import Calendar
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

DAILY: dict[str, Any] = {
    "pipeline": {"id": "daily"},
    "schedules": [
        {"id": "late", "cron": "0 20 * * *"},
        {"id": "early", "cron": "0 8 * * *", "exclude": {"calendar": "closed"}},
    ],
    "validation": {"rules": [{"key": "export", "check": "exists"}]},
    "job": {"type": "external"},
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(next_runs, "_kept", {})
    calendars = [{"name": "closed", "dates": ["2026-12-25"]}]
    made = World(inline_scenario(start="2026-03-02T07:00:00Z", until="+1m", pipelines=[DAILY], calendars=calendars))
    made.play()
    return made


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute, tzinfo=UTC)


def first(world: World, now: datetime) -> NextView:
    stored = catalog.stored(world.engine.store, "daily")
    assert stored is not None
    found = NextRuns(world.engine.store, now).first(stored)
    assert found is not None
    return found


def test_the_first_to_start_comes_first_and_the_order_is_the_configs(world: World) -> None:
    stored = catalog.stored(world.engine.store, "daily")
    assert stored is not None
    assert [one.schedule for one in NextRuns(world.engine.store, at(7)).of(stored)] == ["late", "early"]
    assert (first(world, at(7)).schedule, first(world, at(7)).date) == ("early", "2026-03-02")


def test_what_was_found_holds_until_a_run_begins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []
    found = plan.next_runs

    def counted(*given: Any) -> Any:
        asked.append(given[-1])
        return found(*given)

    monkeypatch.setattr(plan, "next_runs", counted)
    instants = [at(7, 1), at(7, 1), at(7, 2), at(7, 59), at(8), at(8, 1)]
    assert [first(world, now).schedule for now in instants] == ["early"] * 4 + ["late"] * 2
    assert asked == [at(7, 1), at(8)]


def test_a_calendar_that_changes_counts_at_once(world: World) -> None:
    assert first(world, at(7)).schedule == "early"
    closed = Calendar(name="closed", dates=["2026-03-02"])
    world.engine.store.commit([catalog.put_calendar(closed)])
    assert (first(world, at(7)).schedule, first(world, at(7)).date) == ("late", "2026-03-02")

"""How runs turned out, which come next, what a rerun would lead to, and what runs after what."""

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.control import catalog, graph, rerun_preview, trend
from interlock.control.rerun_preview import Decision, RerunPreview
from interlock.decide.reruns import Budget
from interlock.model.errors import InvalidValueError, UnknownPipelineError
from interlock.model.keys import RunKey
from interlock.model.run import Word
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World


def pipeline(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "pipeline": {"id": name, "owner": f"owner of {name}"},
        "schedule": {"cron": "0 8 * * *"},
        "validation": {"rules": [{"key": "ready", "check": "exists"}]},
        "job": {"type": "command", "config": {"command": ["true"]}, "maxManualReruns": 1},
        **changes,
    }


def played(pipelines: list[dict[str, Any]], until: str, **fields: Any) -> World:
    world = World(inline_scenario(start="2026-03-02T07:00:00Z", until=until, pipelines=pipelines, **fields))
    world.play()
    return world


def ready(at: str, name: str = "a") -> dict[str, Any]:
    return {"at": at, "sensor": f"{name}/ready", "data": {}}


def test_a_trend_tells_of_margins_durations_and_verdicts() -> None:
    sla = {"deadline": "10:00", "expectedDuration": "30m"}
    steps = [ready("2026-03-02T08:10:00Z"), ready("2026-03-03T10:20:00Z"), ready("2026-03-04T08:30:00Z")]
    config = pipeline("a", sla=sla, schedule={"cron": "0 8 * * *", "evaluation": {"window": "4h"}})
    jobs = {"a": [{"after": "10m", "result": "success"}]}
    world = played([config], "2026-03-05T09:00:00Z", steps=steps, jobs=jobs)
    found = trend.read(world.engine.store, "a", world.clock.now(), days=7)
    assert [(one.date, one.word, one.sla, one.margin_seconds, one.duration_seconds) for one in found.items] == [
        ("2026-03-02", Word.DONE, "met", 6000, 600.0),
        ("2026-03-03", Word.DONE, "recovered", -1800, 600.0),
        ("2026-03-04", Word.DONE, "met", 4800, 600.0),
        ("2026-03-05", Word.WAITING, None, None, None),
    ]
    assert found.items[3].breach_at == datetime(2026, 3, 5, 10, tzinfo=UTC)
    assert (found.finish.p10, found.finish.p50, found.finish.p90) == (-1800.0, 4800.0, 6000.0)
    assert (found.duration.p50, found.duration.p95) == (600.0, 600.0)
    short = trend.read(world.engine.store, "a", world.clock.now(), days=2, schedule="cron")
    assert [one.date for one in short.items] == ["2026-03-04", "2026-03-05"]
    assert trend.read(world.engine.store, "a", world.clock.now(), days=7, schedule="none").items == []
    with pytest.raises(UnknownPipelineError):
        trend.read(world.engine.store, "b", world.clock.now(), days=7)


def test_what_comes_next_with_its_limits_and_what_is_excluded() -> None:
    config = pipeline(
        "a",
        schedule={"cron": "0 8 * * *", "timezone": "America/New_York", "exclude": {"dates": ["2026-03-04"]}},
        sla={"deadline": "10:00", "expectedDuration": "30m"},
    )
    world = played(
        [config, pipeline("b", schedule={"trigger": {"key": "ready", "check": "exists"}})], "2026-03-02T20:00:00Z"
    )
    items = trend.upcoming(world.engine.store, "a", world.clock.now(), days=3).items
    assert [(one.date, one.excluded is not None) for one in items] == [
        ("2026-03-03", False),
        ("2026-03-04", True),
        ("2026-03-05", False),
    ]
    assert items[0].start_at == datetime(2026, 3, 3, 13, tzinfo=UTC)
    assert items[0].warning_at == datetime(2026, 3, 3, 14, 30, tzinfo=UTC)
    assert items[0].breach_at == datetime(2026, 3, 3, 15, tzinfo=UTC)
    assert items[1].breach_at is None
    driven = trend.upcoming(world.engine.store, "b", world.clock.now(), days=1).items
    assert [(one.date, one.start_at) for one in driven] == [("2026-03-02", None), ("2026-03-03", None)]


def test_inclusion_dates_come_at_their_time() -> None:
    config = pipeline("a", schedule={"include": {"dates": ["2026-03-02", "2026-03-04"]}, "time": "06:00"})
    world = played([config], "2026-03-02T20:00:00Z")
    items = trend.upcoming(world.engine.store, "a", world.clock.now(), days=5).items
    assert [(one.date, one.start_at) for one in items] == [("2026-03-04", datetime(2026, 3, 4, 6, tzinfo=UTC))]


def previewed(world: World, name: str = "a", date: str = "2026-03-02", *, force: bool = False) -> RerunPreview:
    config = catalog.current(world.engine.store, name)
    assert config is not None
    key = RunKey(name, config.all_schedules[0].schedule_id, date)
    return rerun_preview.preview(world.engine.control, config, key, force=force)


def test_a_preview_decides_as_the_request_would_and_writes_nothing() -> None:
    world = played([pipeline("a")], "2026-03-02T12:00:00Z", steps=[ready("2026-03-02T08:10:00Z")])
    head = world.database.head()
    unchanged = previewed(world)
    assert (unchanged.decision, unchanged.code) == (Decision.REJECTED, "unchanged")
    forced = previewed(world, force=True)
    assert (forced.decision, forced.reason) == (Decision.ACCEPTED, "manual rerun 1 of 1")
    assert forced.budgets == {
        "manual": Budget(used=0, of=1),
        "drift": Budget(used=0, of=1),
        "transient": Budget(used=0, of=0),
        "code": Budget(used=0, of=1),
    }
    assert world.database.head() == head
    future = previewed(world, date="2026-03-01")
    assert (future.decision, future.reason) == (
        Decision.ACCEPTED,
        "2026-03-01 has not run yet: this is its first attempt",
    )


def test_a_preview_of_an_active_and_of_a_spent_run() -> None:
    steps = [
        ready("2026-03-02T08:10:00Z"),
        {"at": "2026-03-02T09:00:00Z", "rerun": "a", "date": "2026-03-02", "reason": "manual", "force": True},
    ]
    world = played([pipeline("a")], "2026-03-02T12:00:00Z", steps=steps)
    spent = previewed(world, force=True)
    assert (spent.decision, spent.code, spent.budgets["manual"]) == (Decision.REJECTED, "budget", Budget(used=1, of=1))
    waiting = played([pipeline("a")], "2026-03-02T08:30:00Z")
    assert previewed(waiting).code == "active"


def test_a_preview_of_a_job_that_may_still_run_says_that_the_target_is_asked() -> None:
    jobs = {"a": [{"after": "1m", "result": "hang"}]}
    config = pipeline("a")
    config["job"]["jobPollWindowSeconds"] = 60
    world = played([config], "2026-03-02T12:00:00Z", steps=[ready("2026-03-02T08:10:00Z")], jobs=jobs)
    found = previewed(world)
    assert found.decision is Decision.UNKNOWN
    assert "the target is asked first" in found.reason


def test_a_preview_names_the_downstreams() -> None:
    below = pipeline("b", schedule={"trigger": {"key": "never", "check": "exists"}}, after=[{"pipeline": "a"}])
    world = played([pipeline("a"), below], "2026-03-02T12:00:00Z", steps=[ready("2026-03-02T08:10:00Z")])
    (found,) = previewed(world, force=True).downstream
    assert found.pipeline == "b"
    assert found.effect in ("its run of 2026-03-02 is held", "its run of 2026-03-02 is waiting")


def test_a_graph_is_walked_both_ways_with_markers() -> None:
    triggered = {"trigger": {"key": "never", "check": "exists"}}
    configs = [
        pipeline("a"),
        pipeline("b", schedule=triggered, after=[{"pipeline": "a"}]),
        pipeline("c", schedule=triggered, after=[{"pipeline": "b"}, {"pipeline": "gone"}]),
    ]
    world = played(configs, "2026-03-02T08:30:00Z", steps=[ready("2026-03-02T08:10:00Z")])
    store = world.engine.store
    near = graph.around(store, "b", depth=1, date="2026-03-02")
    assert {one.id: (one.word, one.known) for one in near.nodes} == {
        "a": (Word.DONE, True),
        "b": (Word.WAITING, True),
        "c": (None, True),
    }
    assert {(one.from_, one.to, one.marker) for one in near.edges} == {("a", "b", "present"), ("b", "c", "awaited")}
    far = graph.around(store, "a", depth=3)
    assert [(one.id, one.known) for one in far.nodes] == [("a", True), ("b", True), ("c", True), ("gone", False)]
    assert all(one.marker is None for one in far.edges)
    with pytest.raises(UnknownPipelineError):
        graph.around(store, "none", depth=1)
    with pytest.raises(InvalidValueError):
        graph.around(store, "a", depth=1, date="someday")


def test_a_graph_that_is_too_large_says_how_many_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MOST_NODES", 3)
    triggered = {"trigger": {"key": "never", "check": "exists"}}
    below = [pipeline(f"b{index}", schedule=triggered, after=[{"pipeline": "a"}]) for index in range(5)]
    world = played([pipeline("a"), *below], "2026-03-02T07:30:00Z")
    found = graph.around(world.engine.store, "a", depth=1)
    assert (len(found.nodes), found.left_out) == (3, 3)

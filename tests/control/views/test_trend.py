"""How runs turned out, and which come next."""

from datetime import UTC, datetime

import pytest

from interlock.control.views import trend
from interlock.model.errors import UnknownPipelineError
from interlock.model.run import Word
from tests.control.played import pipeline, played, ready


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

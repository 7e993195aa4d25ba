"""The overview: which cell a run is in, what a cell shows, and which run a lane speaks of."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interlock.control import records
from interlock.control.views import overview, run_views
from interlock.control.views.overview import Asked, LaneView, Now, Overview
from interlock.control.views.standing import Standing
from interlock.decide.lanes import Bucket
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey
from interlock.ports.store import Put
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import World

READY = {"rules": [{"key": "ready", "check": "exists"}]}
GRACE = timedelta(minutes=5)


def pipeline(name: str, **changes: Any) -> dict[str, Any]:
    return {"pipeline": {"id": name, "owner": "team-a"}, "validation": READY, "job": {"type": "command"}, **changes}


def hourly(name: str, **changes: Any) -> dict[str, Any]:
    return pipeline(name, schedule={"cron": "0 * * * *"}, **changes)


def played(pipelines: list[dict[str, Any]], until: str, **fields: Any) -> World:
    """The controller after a scenario that begins on Monday 2026-03-02 at 08:01Z."""
    for one in pipelines:
        one["job"].setdefault("config", {"command": ["true"]})
    made = inline_scenario(start="2026-03-02T08:01:00Z", until=until, pipelines=pipelines, **fields)
    world = World(made)
    world.play()
    return world


def look(world: World, hours: int = 6, *, bucket: Bucket = Bucket.HOUR, **asked: Any) -> Overview:
    at = world.clock.now()
    since = at - (timedelta(hours=hours) if bucket is Bucket.HOUR else timedelta(days=hours))
    columns = overview.columns_of(at, since, at, bucket)
    now = Now(at=at, rate=1.0, position="0-0", grace=GRACE)
    return overview.read(world.engine.store, Asked(columns=columns, **asked), now)


def lane(world: World, name: str, hours: int = 6, **asked: Any) -> LaneView:
    return next(one for one in look(world, hours, **asked).items if one.id == name)


def sensor(at: str, name: str, **data: Any) -> dict[str, Any]:
    return {"at": at, "sensor": name, "data": data}


def test_hourly_runs_are_in_the_hour_of_their_period() -> None:
    steps = [sensor(f"2026-03-02T{hour:02d}:10:00Z", f"a/ready#2026-03-02T{hour:02d}") for hour in (9, 10)]
    world = played([hourly("a")], "2026-03-02T11:30:00Z", steps=steps)
    found = lane(world, "a", 4)
    # From 07 on: 07 and 08 began before anybody watched.
    assert found.cells == "--ddw"
    assert found.marks == ""
    assert found.current is not None
    assert (found.current.date, found.current.word, found.standing) == ("2026-03-02T11", "waiting", Standing.WAITING)
    assert "no sensor ready" in found.current.summary
    assert found.next_run is not None
    assert found.next_run.start_at == datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_daily_runs_are_in_the_hour_they_opened_and_on_their_own_date() -> None:
    config = pipeline("a", schedule={"cron": "30 9 * * *", "timezone": "America/New_York", "period": "previous"})
    world = played([config], "2026-03-02T16:00:00Z", steps=[sensor("2026-03-02T14:40:00Z", "a/ready")])
    assert lane(world, "a", 3).cells == "-d-"
    assert lane(world, "a", 2, bucket=Bucket.DAY).cells == "-d-"  # 02-28, 03-01, 03-02
    found = lane(world, "a", 3)
    assert found.current is not None
    assert found.current.date == "2026-03-01"
    assert found.timezone == "America/New_York"


def test_of_several_runs_in_a_cell_the_worst_is_shown_with_their_number() -> None:
    config = pipeline("a", schedule={"cron": "*/15 * * * *", "evaluation": {"window": "5m"}})
    steps = [sensor(f"2026-03-02T09:{minute:02d}:01Z", f"a/ready#2026-03-02T09{minute:02d}") for minute in (0, 30)]
    world = played([config], "2026-03-02T10:00:00Z", steps=steps)
    found = lane(world, "a", 1)
    assert found.cells == "h"
    assert found.multiple == {"0": 4}


def test_missed_and_excluded_come_from_schedule_and_calendar() -> None:
    weekdays = {"cron": "0 9 * * *", "exclude": {"weekends": True}}
    world = played([pipeline("a", schedule=weekdays)], "2026-03-10T12:00:00Z")
    # The run of Friday is gone, as if the controller had been down: nothing opened it.
    key = f"TRIGGER#cron#{'2026-03-06'}"
    world.database.write(lambda connection: connection.execute("DELETE FROM control WHERE sk = ?", (key,)))
    found = lane(world, "a", 8, bucket=Bucket.DAY)
    assert found.cells == "hhhhmxxhh"


def test_days_that_a_calendar_excludes_are_shown_of_a_schedule_without_a_clock() -> None:
    by_sensor = {"trigger": {"key": "ready", "check": "exists"}, "exclude": {"weekends": True}}
    steps = [sensor("2026-03-04T10:00:00Z", "a/ready#2026-03-04")]
    world = played([pipeline("a", schedule=by_sensor)], "2026-03-10T12:00:00Z", steps=steps)
    # From Monday on: nothing was due on a day whose sensor never came.
    assert lane(world, "a", 8, bucket=Bucket.DAY).cells == "--d--xx--"
    assert set(lane(world, "a", 100).cells) == {"-"}, "a day is no hour"


def test_inclusion_dates_are_missed_from_their_time_on_and_excluded_by_their_calendar() -> None:
    dates = ["2026-03-03", "2026-03-05", "2026-03-07", "2026-03-10"]
    listed = {"include": {"dates": dates}, "exclude": {"weekends": True}, "time": "11:00"}
    world = played([pipeline("a", schedule=listed)], "2026-03-10T11:02:00Z")
    found = lane(world, "a", 8, bucket=Bucket.DAY)
    assert found.cells == "-h-h-xx-w"
    world.database.write(lambda connection: connection.execute("DELETE FROM control WHERE sk LIKE 'TRIGGER#%'"))
    world.database.write(lambda connection: connection.execute("DELETE FROM control WHERE sk LIKE 'ACTIVE#%'"))
    assert lane(world, "a", 8, bucket=Bucket.DAY).cells == "-m-m-xx--", "the last has its grace"
    world.clock.move_to(datetime(2026, 3, 10, 11, 5, tzinfo=UTC))
    assert lane(world, "a", 8, bucket=Bucket.DAY).cells == "-m-m-xx-m"
    assert lane(world, "a", 1).cells == "-m", "in the hour of its time"


def test_a_tick_is_missed_only_after_its_grace() -> None:
    world = played([pipeline("a", schedule={"cron": "0 9 * * *"})], "2026-03-02T09:04:00Z")
    world.database.write(lambda connection: connection.execute("DELETE FROM control WHERE sk LIKE 'TRIGGER#%'"))
    world.database.write(lambda connection: connection.execute("DELETE FROM control WHERE sk LIKE 'ACTIVE#%'"))
    assert lane(world, "a", 2).standing is Standing.NOT_DUE
    world.clock.move_to(datetime(2026, 3, 2, 9, 6, tzinfo=UTC))
    found = lane(world, "a", 2)
    assert found.standing is Standing.MISSED
    assert found.current is not None
    assert found.current.summary == "it should have opened 09:00Z, and nothing opened it"
    assert found.cells.count("m") == 1


def test_the_worst_run_of_the_last_day_is_what_a_lane_speaks_of() -> None:
    config = hourly("a")
    config["job"]["maxCodeRetries"] = 0
    jobs = {"a": [{"after": "1m", "result": "fail", "category": "PERMANENT", "error": "exit 1"}]}
    steps = [sensor("2026-03-02T09:10:00Z", "a/ready#2026-03-02T09")]
    world = played([config], "2026-03-02T10:30:00Z", steps=steps, jobs=jobs)
    found = lane(world, "a", 2)
    assert found.standing is Standing.FAILED
    assert found.current is not None
    assert (found.current.date, found.current.word) == ("2026-03-02T09", "failed")
    assert found.cells == "-fw"


def test_sla_alerts_mark_the_cell_and_rank_the_lane() -> None:
    late = {"deadline": "10:00", "expectedDuration": "30m"}
    world = played([pipeline("a", schedule={"cron": "0 9 * * *"}, sla=late)], "2026-03-02T09:40:00Z")
    found = lane(world, "a", 1)
    assert (found.standing, found.cells, found.marks) == (Standing.AT_RISK, "-w", "-w")
    assert found.sla is not None
    assert found.sla.breach_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    world = played([pipeline("a", schedule={"cron": "0 9 * * *"}, sla=late)], "2026-03-02T10:30:00Z")
    found = lane(world, "a", 2)
    assert (found.standing, found.marks) == (Standing.BREACHED, "-b-")
    assert look(world).counts[Standing.BREACHED] == 1


def test_an_alert_of_a_tick_before_the_first_column_marks_the_hour_it_was_given_in() -> None:
    """Nothing opened the run of 09:00, which is not shown; its breach at 10:30 is."""
    config = pipeline("a", schedule={"cron": "0 9 * * *"}, sla={"deadline": "10:30"})
    world = played([config], "2026-03-02T11:30:00Z")
    world.database.write(lambda connection: connection.execute("DELETE FROM control WHERE sk LIKE 'TRIGGER#%'"))
    world.database.write(lambda connection: connection.execute("DELETE FROM control WHERE sk LIKE 'ACTIVE#%'"))
    found = lane(world, "a", 1)
    assert (found.cells, found.marks) == ("--", "b-")


def test_a_breach_of_a_run_that_nothing_opened_is_seen() -> None:
    trigger = {"key": "ready", "check": "exists"}
    config = pipeline("a", schedule={"trigger": trigger}, sla={"deadline": "10:00", "dayOffset": 0})
    world = played([config], "2026-03-02T11:00:00Z")
    found = lane(world, "a", 4)
    assert found.standing is Standing.BREACHED
    assert found.current is not None
    assert (found.current.word, found.current.date) == ("not opened", "2026-03-02")
    assert "sensor ready" in found.current.summary


def test_what_is_done_late_is_done() -> None:
    late = {"deadline": "10:00"}
    steps = [sensor("2026-03-02T10:10:00Z", "a/ready")]
    world = played([pipeline("a", schedule={"cron": "0 9 * * *"}, sla=late)], "2026-03-02T11:00:00Z", steps=steps)
    found = lane(world, "a", 3)
    assert (found.standing, found.cells, found.marks) == (Standing.DONE, "-d-", "-b-")


def test_a_dry_run_is_a_dry_run() -> None:
    config = pipeline("a", schedule={"trigger": {"key": "ready", "check": "exists"}}, dryRun=True)
    world = played([config], "2026-03-02T10:00:00Z", steps=[sensor("2026-03-02T09:10:00Z", "a/ready")])
    found = lane(world, "a", 2)
    assert (found.standing, found.cells, found.dry_run) == (Standing.DRY_RUN, "-o", True)
    assert found.current is not None
    assert found.current.word == "dry run"


def test_an_invalid_config_is_a_lane_with_its_errors() -> None:
    world = played([hourly("a")], "2026-03-02T08:30:00Z")
    key = records.control_key("PIPELINE#b", "CONFIG")
    world.engine.store.commit([Put(key, {"document": {"pipeline": {"id": "b"}, "nonsense": 1}})])
    found = lane(world, "b")
    assert (found.standing, found.valid) == (Standing.INVALID, False)
    assert found.errors
    assert set(found.cells) == {"-"}


def test_filters_and_counts() -> None:
    configs = [hourly("a"), hourly("b"), pipeline("c")]
    configs[1]["pipeline"] = {"id": "b", "owner": "team-b", "description": "Revenue"}
    world = played(configs, "2026-03-02T09:30:00Z")
    whole = look(world)
    assert [one.id for one in whole.items] == ["a", "b", "c"]
    assert (whole.counts[Standing.WAITING], whole.counts[Standing.NOT_DUE], whole.total) == (2, 1, 3)
    assert whole.owners == ["team-a", "team-b"]
    assert [one.id for one in look(world, owner="team-b").items] == ["b"]
    assert [one.id for one in look(world, text="REVENUE").items] == ["b"]
    assert [one.id for one in look(world, pipelines=("a", "c", "z")).items] == ["a", "c"]
    waiting = look(world, standings=frozenset({Standing.WAITING}))
    assert [one.id for one in waiting.items] == ["a", "b"]
    assert waiting.counts == whole.counts
    assert waiting.items[0] == whole.items[0]


@pytest.mark.parametrize("standings", [frozenset[Standing](), frozenset({Standing.WAITING, Standing.NOT_DUE})])
def test_pages_hold_every_lane_once(standings: frozenset[Standing]) -> None:
    world = played([hourly(name) for name in "abcdefg"], "2026-03-02T09:30:00Z")
    seen: list[str] = []
    after = None
    while True:
        page = look(world, after=after, limit=3, standings=standings)
        seen += [one.id for one in page.items]
        assert bool(page.counts) == (after is None)
        after = page.next
        if after is None:
            break
    assert seen == list("abcdefg")


def test_too_many_columns_are_refused() -> None:
    now = datetime(2026, 3, 2, tzinfo=UTC)
    with pytest.raises(InvalidValueError, match="at most 168 of bucket=hour"):
        overview.columns_of(now, now - timedelta(days=8), now, Bucket.HOUR)
    with pytest.raises(InvalidValueError, match="is not after"):
        overview.columns_of(now, now, now - timedelta(days=8), Bucket.DAY)
    assert overview.columns_of(now, now - timedelta(days=90), now, Bucket.DAY).count == 90


def test_the_statements_do_not_grow_with_history(monkeypatch: pytest.MonkeyPatch) -> None:
    world = played([hourly("a", job={"type": "command"})], "2026-03-02T12:30:00Z")
    spans: list[int] = []
    rows: list[int] = []
    store = world.engine.store
    read = store.read_spans

    def counting(table: Any, asked: Any, into: Any) -> Any:
        found = read(table, asked, into)
        spans.append(len(asked))
        rows.append(sum(map(len, found)))
        return found

    monkeypatch.setattr(store, "read_spans", counting)
    look(world, 3)
    first = sum(spans), sum(rows)
    item = world.database.read("SELECT item FROM control WHERE sk LIKE 'TRIGGER#%' ORDER BY sk LIMIT 1")[0][0]

    def fill(connection: Any) -> None:
        for day in range(1, 60):
            date = f"2025-{day // 28 + 1:02d}-{day % 28 + 1:02d}T10"
            sql = "INSERT INTO control (pk, sk, item) VALUES ('PIPELINE#a', ?, ?)"
            connection.execute(sql, (f"TRIGGER#cron#{date}", item))

    world.database.write(fill)
    spans.clear()
    rows.clear()
    look(world, 3)
    assert (sum(spans), sum(rows)) == first


def test_a_waiting_run_remembers_its_rules_and_tells_of_them_when_it_passes() -> None:
    rows = {"key": "rows", "check": "gte", "field": "count", "value": 10}
    config = pipeline("a", schedule={"cron": "0 9 * * *"}, validation={"rules": [*READY["rules"], rows]})
    steps = [
        sensor("2026-03-02T09:10:00Z", "a/ready"),
        sensor("2026-03-02T09:20:00Z", "a/rows", count=20),
        sensor("2026-03-02T09:21:00Z", "a/rows", count=5),
    ]
    world = played([config], "2026-03-02T09:10:30Z", steps=steps[:1])
    detail = run_views.run(world.engine.store, RunKey("a", "cron", "2026-03-02"), world.clock.now())
    assert detail is not None
    since = [(one.passed, one.since) for one in detail.rules]
    assert since == [
        (True, datetime(2026, 3, 2, 9, 10, tzinfo=UTC)),
        (False, datetime(2026, 3, 2, 9, 0, tzinfo=UTC)),
    ]
    current = lane(world, "a").current
    assert current is not None
    assert current.summary == "1 of 2 rules pass; no sensor rows"
    world = played([config], "2026-03-02T09:30:00Z", steps=steps)
    detail = run_views.run(world.engine.store, RunKey("a", "cron", "2026-03-02"), world.clock.now())
    assert detail is not None
    assert [[change.passed for change in one.history] for one in detail.rules] == [[False, True], [False, True]]

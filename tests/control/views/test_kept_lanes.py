"""Lanes that are kept are those that would be made now: whatever was written, and however late it has become."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.control import writing
from interlock.control.views import lane_rows, overview
from interlock.control.views.kept_lanes import Kept, KeptLanes, expiry
from interlock.control.views.overview import Asked, Now, Overview
from interlock.control.views.standing import Standing
from interlock.decide.lanes import Bucket
from interlock.ports.store import Changed
from interlock.simulation.scenario import TimedStep, inline_scenario
from interlock.simulation.world import World
from tests.control.played import pipeline, played

START: Final = datetime(2026, 3, 2, 7, tzinfo=UTC)
GRACE: Final = timedelta(minutes=5)
# How much later than the world's own time a lane is looked at: before, at and behind what its clock decides.
LATER: Final = [
    timedelta(0),
    timedelta(seconds=1),
    timedelta(minutes=4, seconds=59, microseconds=999_999),
    GRACE,
    GRACE + timedelta(microseconds=1),
    timedelta(minutes=16),
    timedelta(hours=23, minutes=59, seconds=59, microseconds=500_000),
    timedelta(hours=24),
    timedelta(hours=24, microseconds=1),
    timedelta(hours=30),
]
SLA: Final = {"deadline": "10:00", "expectedDuration": "30m"}


def pipelines() -> list[dict[str, Any]]:
    trigger = {"trigger": {"key": "ready", "check": "exists"}, "granularity": "hour"}
    return [
        pipeline("daily", sla=SLA),
        pipeline("hourly", schedule={"cron": "20 * * * *", "timezone": "Asia/Kolkata"}, sla={"deadline": ":50"}),
        pipeline("stream", schedule=trigger),
        pipeline("listed", schedule={"include": {"dates": ["2026-03-02", "2026-03-03"]}, "time": "09:10"}),
        pipeline("free", schedule={"cron": "0 9 * * *", "exclude": {"calendar": "off"}}),
        pipeline("dry", dryRun=True, schedule=trigger),
    ]


NAMES: Final = [one["pipeline"]["id"] for one in pipelines()]


def act(at: str, kind: int, name: str) -> dict[str, Any]:
    """Something that somebody does."""
    match kind:
        case 0:
            return {"at": at, "apply": pipeline(name, schedule={"cron": "30 9 * * *"}, sla=SLA)}
        case 1:
            return {"at": at, "calendar": {"name": "off", "dates": ["2026-03-03"]}}
        case 2:
            return {"at": at, "remove": name}
        case 3:
            return {"at": at, "rerun": name, "date": "2026-03-02", "force": True}
        case 4:
            return {"at": at, "cancel": name, "date": "2026-03-02", "reason": "not needed"}
        case _:
            return {"at": at, "sensor": f"{name}/ready", "data": {"n": kind}}


STEPS: Final = st.lists(
    st.tuples(st.integers(1, 10 * 60), st.integers(0, 9), st.sampled_from(NAMES)),
    max_size=10,
    unique_by=lambda one: one[0],
)


class _Compared(World):
    """A world in which kept lanes are compared with new ones at every instant at which something happens."""

    looks = 0

    def _instant(self, steps: list[TimedStep]) -> None:
        super()._instant(steps)
        self.looks += 1
        at = self.clock.now() + LATER[self.looks % len(LATER)]
        for asked in self._questions(at):
            now = Now(at=at, rate=1.0, position="0-0", grace=GRACE)
            kept = overview.read(self.engine.store, asked, now, self.engine.kept_lanes)
            assert kept == overview.read(self.engine.store, asked, now)

    def _questions(self, at: datetime) -> Iterable[Asked]:
        hours = overview.columns_of(at, START, START + timedelta(hours=30), Bucket.HOUR)
        yield Asked(columns=hours)
        if self.looks % 4 == 0:
            yield Asked(columns=hours, limit=2)
        if self.looks % 4 == 1:
            yield Asked(columns=overview.columns_of(at, None, None, Bucket.DAY), standings=frozenset({Standing.MISSED}))


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_kept_lanes_are_those_that_would_be_made_now(steps: list[tuple[int, int, str]]) -> None:
    acts = [
        act(f"{START + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ}", kind, name)
        for minute, kind, name in sorted(steps)
    ]
    calendars = [{"name": "off", "dates": ["2026-03-02"]}]
    made = inline_scenario(
        start="2026-03-02T07:00:00Z",
        until="2026-03-02T17:00:00Z",
        pipelines=pipelines(),
        calendars=calendars,
        steps=acts,
    )
    world = _Compared(made)
    world.play()
    assert world.looks > 20


def test_kept_lanes_change_with_the_clock_alone() -> None:
    """Nothing is written: ticks become missed and too old to tell of, runs that wait leave the present."""
    world = played(pipelines(), "2026-03-02T09:30:00Z", calendars=[{"name": "off", "dates": []}])
    begin = world.clock.now()
    ticks = [START.replace(hour=9, minute=50) + timedelta(hours=hour) for hour in range(0, 26, 5)]
    days = [
        START.replace(day=day, hour=hour, minute=minute) for day in (2, 3) for hour, minute in ((8, 0), (9, 0), (9, 10))
    ]
    edges = [at + length for at in ticks + days for length in (GRACE, timedelta(hours=24))]
    beside = [timedelta(microseconds=micros) for micros in (-1_000_000, -1, 0, 1, 1_000_000)]
    instants = {begin + timedelta(minutes=7) * number for number in range(230)}
    instants |= {edge + little for edge in edges for little in beside}
    stood = set()
    for at in sorted(one for one in instants if one >= begin):
        now = Now(at=at, rate=1.0, position="0-0", grace=GRACE)
        columns = overview.columns_of(at, START, START + timedelta(hours=30), Bucket.HOUR)
        kept = overview.read(world.engine.store, Asked(columns=columns), now, world.engine.kept_lanes)
        assert kept == overview.read(world.engine.store, Asked(columns=columns), now), at
        stood |= {(one.id, one.standing) for one in kept.items}
    assert {("hourly", Standing.MISSED), ("free", Standing.MISSED)} <= stood


def test_a_kept_lane_lets_go_of_a_failed_run_after_a_day() -> None:
    """A later run was done again and succeeded; the earlier one counts for 24 hours from when it was opened."""
    steps: list[dict[str, Any]] = [{"at": "2026-03-02T07:37:00Z", "sensor": "a/ready", "data": {}}]
    steps += [{"at": "2026-03-02T08:07:10Z", "sensor": "a/ready", "data": {"n": 1}}]
    steps += [{"at": "2026-03-02T08:20:00Z", "rerun": "a", "date": "2026-03-02T08", "force": True}]
    schedule = {"trigger": {"key": "ready", "check": "exists"}, "granularity": "hour"}
    failing = pipeline("a", schedule=schedule)
    failing["job"] |= {"maxRetries": 0}
    world = played(
        [failing], "2026-03-02T08:30:00Z", steps=steps, jobs={"a": [{"result": "fail"}, {"result": "success"}]}
    )
    edge = START + timedelta(hours=24, minutes=37)
    stood = []
    for at in (edge - timedelta(minutes=2), edge - timedelta(milliseconds=1), edge + timedelta(seconds=2)):
        kept = look(world, at)
        columns = overview.columns_of(at, START, START + timedelta(hours=24), Bucket.HOUR)
        now = Now(at=at, rate=1.0, position="0-0", grace=GRACE)
        assert kept == overview.read(world.engine.store, Asked(columns=columns), now)
        stood.append(kept.items[0].standing)
    assert stood == [Standing.FAILED, Standing.FAILED, Standing.DONE]


# ------------------------------------------------------------------------------------------------------ what is read


def look(world: World, at: datetime | None = None) -> Overview:
    at = at or world.clock.now()
    now = Now(at=at, rate=1.0, position="0-0", grace=GRACE)
    columns = overview.columns_of(at, START, START + timedelta(hours=24), Bucket.HOUR)
    return overview.read(world.engine.store, Asked(columns=columns), now, world.engine.kept_lanes)


def test_only_lanes_that_were_written_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"p{number:02d}" for number in range(20)]
    world = played([pipeline(name) for name in names], "2026-03-02T09:01:00Z")
    read: list[list[str]] = []
    act = lane_rows.read_rows

    def read_rows(store: Any, found: Any, *further: Any) -> Any:
        read.append([one.pipeline for one in found])
        return act(store, found, *further)

    monkeypatch.setattr(lane_rows, "read_rows", read_rows)
    look(world)
    assert read.pop() == names
    look(world)
    assert read == []
    writing.write_sensor(world.engine.control, "p07", "ready", {})
    look(world)
    assert read.pop() == ["p07"]
    look(world, world.clock.now() + timedelta(minutes=14))
    assert read.pop() == names, "a quarter of an hour has begun"


# ------------------------------------------------------------------------------------------------------- what is kept


class _Store:
    """Says what was written."""

    def __init__(self) -> None:
        self.position = 1
        self.partitions: frozenset[str] | None = frozenset()

    def changed_since(self, position: int | None) -> Changed:
        return Changed(self.position, None if position is None else self.partitions)


def kept(lane: str, *, minutes: int = 10) -> dict[str, Kept[str]]:
    return {lane: Kept(lane, START, START + timedelta(minutes=minutes))}


def test_a_lane_holds_from_when_it_was_made_to_its_end() -> None:
    lanes = KeptLanes[str](_Store().changed_since)
    lanes.keep(lanes.begin(), "hours", kept("a"))
    found = [lanes.lanes("hours", ["a"], START + timedelta(minutes=minutes)) for minutes in (-1, 0, 9, 10)]
    assert found == [{}, {"a": "a"}, {"a": "a"}, {}]
    assert lanes.lanes("days", ["a"], START) == {}


def test_what_was_written_is_forgotten_and_where_nobody_can_tell_everything() -> None:
    store = _Store()
    lanes = KeptLanes[str](store.changed_since)
    lanes.keep(lanes.begin(), "hours", kept("a") | kept("b"))
    store.position, store.partitions = 2, frozenset({"PIPELINE#a", "CALENDARS"})
    lanes.begin()
    assert lanes.lanes("hours", ["a", "b"], START) == {"b": "b"}
    store.position, store.partitions = 3, None
    lanes.begin()
    assert lanes.lanes("hours", ["a", "b"], START) == {}


def test_a_lane_is_not_kept_that_was_read_before_another_look() -> None:
    store = _Store()
    lanes = KeptLanes[str](store.changed_since)
    slow = lanes.begin()
    store.position, store.partitions = 2, frozenset({"PIPELINE#a"})
    lanes.begin()
    lanes.keep(slow, "hours", kept("a"))
    assert lanes.lanes("hours", ["a"], START) == {}


def test_a_lane_is_not_kept_that_was_made_with_other_calendars() -> None:
    lanes = KeptLanes[str](_Store().changed_since)
    before, after = lanes.begin(), lanes.begin()
    lanes.share(before, "some")
    lanes.keep(before, "hours", kept("a"))
    lanes.share(after, "others")
    assert lanes.lanes("hours", ["a"], START) == {}
    lanes.keep(before, "hours", kept("a"))
    assert lanes.lanes("hours", ["a"], START) == {}


def test_no_more_is_kept_than_allowed_and_the_columns_used_last_stay() -> None:
    lanes = KeptLanes[str](_Store().changed_since, most=3)
    for columns in ("one", "two"):
        lanes.keep(lanes.begin(), columns, kept("a") | kept("b"))
    assert (lanes.lanes("one", "ab", START), sorted(lanes.lanes("two", "ab", START))) == ({}, ["a", "b"])
    lanes.keep(lanes.begin(), "two", kept("c") | kept("d"))
    assert sorted(lanes.lanes("two", "abcd", START)) == ["a", "b"]
    for number in range(9):
        lanes.lanes(number, [], START)
    assert len(lanes._lanes) == 4


def test_an_item_goes_in_the_second_of_its_ttl_and_what_is_no_number_is_none() -> None:
    assert [expiry(ttl) for ttl in (None, True, "x", -1, 10**12)] == [None] * 5
    assert expiry(60.5) == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)


def test_a_config_is_kept_without_its_document() -> None:
    world = played([pipeline("a")], "2026-03-02T09:00:00Z")
    look(world)
    (stored,) = world.engine.kept_lanes.configs(["a"]).values()
    assert (stored.config is not None, stored.document) == (True, {})

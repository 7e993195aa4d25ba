"""Ticks as timers: one armed timer per schedule, re-armed on delivery, repaired by the watchdog."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from interlock.control import catalog, records, tick_timers, timers
from interlock.control.context import Settings
from interlock.embedded.timing.timers import SqliteTimers
from interlock.model import keys
from interlock.model.config import Calendar
from interlock.model.errors import InvalidValueError, StoreError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.ports.store import Delete, Key, Put, Write
from interlock.ports.timers import Timer, TimerKind
from interlock.simulation.play import play
from tests.control.test_rare_events import DOCUMENT, Installation, Target
from tests.journeys.test_journeys import FILES, named, outcome, scenario_of, undisturbed
from tests.safety.interleaving import InterleavingStore

NAME: Final = keys.tick_timer_name("orders", "cron")
HOURLY: Final = {"cron": "0 * * * *", "evaluation": {"window": "90m", "interval": "5m"}}
BY_CALENDAR: Final = {"include": {"calendar": "closing"}, "time": "08:30"}


def has_ticks(path: Path) -> bool:
    return any(word in path.read_text() for word in ("cron:", "include:", "file:"))


def at(clock_time: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock_time}+00:00")


@pytest.fixture
def installation() -> Installation:
    return Installation(Target(), Settings(tick_timers=True))


def armed(installation: Installation, name: str = NAME) -> datetime | None:
    timer = installation.engine.timers.get(name)
    return None if timer is None else timer.at


def opened(installation: Installation) -> list[str]:
    return [event.date for event in installation.events(EventType.TRIGGER_STARTED)]


def redeliver(installation: Installation, clock_time: str) -> None:
    """The message of a tick comes once more, as SQS may bring it."""
    payload = {"pipeline": "orders", "schedule": "cron", "at": f"2026-03-02T{clock_time}Z"}
    timers.timer_due(installation.engine.control, TimerKind.TICK, payload)
    installation.settle()


def test_a_schedule_has_one_armed_timer_and_each_delivery_arms_the_next(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    assert armed(installation) == at("08:00:00")
    installation.go_to("08:00:00")
    assert armed(installation) == at("09:00:00")
    installation.go_to("10:30:00")
    assert opened(installation) == ["2026-03-02T08", "2026-03-02T09", "2026-03-02T10"]
    assert installation.run("2026-03-02T09").tick_at == at("09:00:00")
    assert installation.database.read("SELECT count(*) FROM timers WHERE kind = 'tick'") == [(1,)]


def test_a_tick_that_comes_again_opens_nothing_and_arms_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.apply(schedule=HOURLY)
    installation.go_to("08:10:00")
    arms: list[Timer] = []
    monkeypatch.setattr(SqliteTimers, "arm", lambda self, timer: arms.append(timer))
    for _ in range(3):
        redeliver(installation, "08:00:00")
    assert opened(installation) == ["2026-03-02T08"]
    assert arms == [], "every duplicate that arms has a duplicate for its successor, forever"
    assert armed(installation) == at("09:00:00")


def test_a_tick_that_comes_early_comes_again(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    redeliver(installation, "08:00:00")
    assert opened(installation) == []
    assert armed(installation) == at("08:00:00")
    installation.go_to("08:00:00")
    assert opened(installation) == ["2026-03-02T08"]


def test_after_a_time_away_what_may_still_be_opened_is_and_the_rest_is_missed(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    installation.clock.move_to(at("11:15:00"))
    installation.settle()
    assert opened(installation) == ["2026-03-02T10", "2026-03-02T11"]
    assert armed(installation) == at("12:00:00")
    assert installation.engine.watch() == []
    missed = [event.date for event in installation.events(EventType.SCHEDULE_MISSED)]
    assert missed == ["2026-03-02T08", "2026-03-02T09"]


def test_the_watchdog_delivers_what_is_due_before_it_looks_for_what_is_missing(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    installation.clock.move_to(at("08:40:00"))
    assert installation.engine.watch() == []
    installation.settle()
    assert opened(installation) == ["2026-03-02T08"]
    assert installation.events(EventType.SCHEDULE_MISSED) == []
    assert armed(installation) == at("09:00:00")


@pytest.mark.parametrize("also_the_record", [False, True])
def test_the_watchdog_arms_a_timer_that_was_lost(installation: Installation, also_the_record: bool) -> None:
    installation.apply(schedule=HOURLY)
    installation.engine.timers.cancel(NAME)
    if also_the_record:
        installation.engine.store.commit([Delete(keys_of("cron"))])
    else:
        installation.clock.move_to(at("08:00:00") + tick_timers.LOST_AFTER)
    assert installation.engine.watch() == []
    installation.settle()
    installation.go_to("09:00:00")
    assert opened(installation) == ["2026-03-02T08", "2026-03-02T09"]
    assert armed(installation) == at("10:00:00")


@pytest.mark.parametrize("window", ["1m", "3h"])
def test_a_lost_tick_on_an_excluded_day_is_reported_and_the_next_is_armed_at_once(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    schedule = {"cron": "0 * * * *", "evaluation": {"window": window, "interval": "1m"}}
    installation.apply(schedule=schedule | {"exclude": {"days": ["monday"]}})
    installation.engine.timers.cancel(NAME)
    # As timers do that take the lost one for one on its way.
    arm = SqliteTimers.arm
    monkeypatch.setattr(
        SqliteTimers, "arm", lambda self, timer: arm(self, timer) if timer.at > at("08:00:00") else None
    )
    installation.clock.move_to(at("08:05:00"))

    assert installation.engine.watch() == []

    assert [event.date for event in installation.events(EventType.PIPELINE_EXCLUDED)] == ["2026-03-02T08"]
    assert armed(installation) == at("09:00:00"), "and not when the window of the lost tick is over"


def keys_of(schedule: str) -> Key:
    return records.control_key("PIPELINE#orders", keys.TICK + schedule)


def test_a_quiet_pass_of_the_watchdog_writes_and_arms_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.apply(schedule=HOURLY)
    before = installation.engine.store.get(keys_of("cron"))
    monkeypatch.setattr(SqliteTimers, "arm", lambda self, timer: pytest.fail(f"armed {timer}"))
    installation.clock.move_to(at("07:59:00"))
    assert installation.engine.watch() == []
    assert installation.engine.store.get(keys_of("cron")) == before


def test_a_changed_schedule_moves_its_timer_and_a_removed_one_takes_it_along(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    installation.apply(schedule={"cron": "30 9 * * *"})
    assert armed(installation) == at("09:30:00")
    redeliver(installation, "08:00:00")  # the message of the old instant, which no queue can take back
    assert opened(installation) == []
    catalog.delete_config(installation.engine.control, "orders")
    installation.settle()
    assert armed(installation) is None
    assert installation.engine.store.get(keys_of("cron")) is None


def test_a_schedule_that_did_not_change_keeps_its_place(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    installation.go_to("08:10:00")
    installation.apply(schedule=HOURLY, pipeline={"id": "orders", "owner": "another team"})
    assert armed(installation) == at("09:00:00")
    assert opened(installation) == ["2026-03-02T08"]


def test_a_dry_run_has_no_timer_and_gets_one_when_it_goes_live(installation: Installation) -> None:
    trigger = {"key": "export", "check": "exists"}
    installation.apply(schedule=HOURLY | {"trigger": trigger}, dryRun=True)
    assert armed(installation) is None
    installation.go_to("08:10:00")
    installation.apply(schedule=HOURLY | {"trigger": trigger})
    assert opened(installation) == ["2026-03-02T08"], "the tick of 08:00 may still be delivered"
    assert armed(installation) == at("09:00:00")


def test_every_schedule_of_a_pipeline_has_its_own(installation: Installation) -> None:
    schedules = [{"id": "early", "cron": "0 9 * * *"}, {"id": "late", "cron": "0 18 * * *"}]
    document = {name: value for name, value in DOCUMENT.items() if name != "schedule"}
    installation.apply_document(document | {"schedules": schedules})
    assert armed(installation, keys.tick_timer_name("orders", "early")) == at("09:00:00")
    assert armed(installation, keys.tick_timer_name("orders", "late")) == at("18:00:00")
    installation.apply_document(document | {"schedules": schedules[:1]})
    assert armed(installation, keys.tick_timer_name("orders", "late")) is None


def test_a_calendar_that_changes_moves_the_timer_of_its_inclusion_dates(installation: Installation) -> None:
    store = installation.engine.store
    store.commit([catalog.put_calendar(Calendar(name="closing", dates=["2026-03-31"]))])
    installation.apply(schedule=BY_CALENDAR)
    name = keys.tick_timer_name("orders", "stream")
    assert armed(installation, name) == datetime(2026, 3, 31, 8, 30, tzinfo=UTC)
    store.commit([catalog.put_calendar(Calendar(name="closing", dates=["2026-03-02", "2026-03-31"]))])
    installation.settle()
    assert armed(installation, name) == at("08:30:00")
    installation.go_to("08:30:00")
    assert records.get_run(store, RunKey("orders", "stream", "2026-03-02")) is not None
    assert armed(installation, name) == datetime(2026, 3, 31, 8, 30, tzinfo=UTC)


def test_a_calendar_without_further_dates_takes_the_timer_away_and_a_new_date_brings_it_back(
    installation: Installation,
) -> None:
    store, name = installation.engine.store, keys.tick_timer_name("orders", "stream")
    store.commit([catalog.put_calendar(Calendar(name="closing", dates=["2026-03-02"]))])
    installation.apply(schedule=BY_CALENDAR)
    assert armed(installation, name) == at("08:30:00")
    store.commit([catalog.put_calendar(Calendar(name="closing", dates=["2026-02-28"]))])
    installation.settle()
    assert armed(installation, name) is None
    installation.go_to("09:00:00")
    assert records.get_run(store, RunKey("orders", "stream", "2026-03-02")) is None
    assert installation.engine.watch() == []
    store.commit([catalog.put_calendar(Calendar(name="closing", dates=["2026-03-03"]))])
    installation.settle()
    assert armed(installation, name) == datetime(2026, 3, 3, 8, 30, tzinfo=UTC)


def test_a_calendar_moves_the_timers_of_its_own_schedules_alone(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = installation.engine.store
    store.commit([catalog.put_calendar(Calendar(name="closing", dates=["2026-03-31"]))])
    installation.apply(schedule=BY_CALENDAR)
    installation.engine.timers.cancel(keys.tick_timer_name("orders", "stream"))
    monkeypatch.setattr(SqliteTimers, "arm", lambda self, timer: pytest.fail(f"armed {timer}"))
    store.commit([catalog.put_calendar(Calendar(name="another", dates=["2026-03-02"]))])
    installation.settle()


def test_a_tick_without_an_instant_names_its_schedule(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    with pytest.raises(InvalidValueError, match="orders/cron"):
        tick_timers.tick_due(installation.engine.control, {"pipeline": "orders", "schedule": "cron"})


def test_a_record_that_keeps_changing_is_an_error_and_not_an_endless_loop(installation: Installation) -> None:
    installation.apply(schedule=HOURLY)
    changes: list[int] = []

    def meddle(writes: Sequence[Write]) -> None:
        assert len(changes) < 1000, "it never gives up"
        changes.append(len(writes))
        item = installation.engine.store.get(keys_of("cron"))
        assert item is not None
        changed = item | {"nextAt": f"2026-03-02T08:{len(changes):02}:00Z"}
        installation.engine.store.commit([Put(keys_of("cron"), changed)])

    store = InterleavingStore(installation.engine.store, meddle)
    meddle([])
    with pytest.raises(StoreError, match=r"orders: the ticks of cron cannot be armed"):
        tick_timers.follow(replace(installation.engine.control, store=store), "orders")


@pytest.mark.parametrize(("late", "armed_again"), [(timedelta(seconds=-1), False), (timedelta(0), True)])
def test_a_timer_counts_as_lost_two_minutes_after_its_instant(
    installation: Installation, late: timedelta, armed_again: bool
) -> None:
    installation.apply(schedule=HOURLY)
    installation.engine.timers.cancel(NAME)
    installation.clock.move_to(at("08:02:00") + late)
    config = catalog.current(installation.engine.store, "orders")
    assert config is not None
    tick_timers.repair(installation.engine.control, "orders", config.all_schedules)
    assert (armed(installation) is not None) == armed_again


def test_who_loses_the_commit_arms_again_by_what_is_stored(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delivery and a config change at once: the timer ends where the record says."""
    installation.apply(schedule=HOURLY)
    installation.clock.move_to(at("08:00:00"))
    arm = SqliteTimers.arm
    meddled: list[Timer] = []

    def meddling(self: SqliteTimers, timer: Timer) -> None:
        if not meddled:
            meddled.append(timer)
            installation.apply(schedule={"cron": "45 8 * * *"})  # in the middle of the delivery of 08:00
        arm(self, timer)

    monkeypatch.setattr(SqliteTimers, "arm", meddling)
    redeliver(installation, "08:00:00")
    assert meddled
    assert armed(installation) == at("08:45:00")
    record = installation.engine.store.get(keys_of("cron"))
    assert record is not None
    assert record["nextAt"] == "2026-03-02T08:45:00Z"


def test_names_are_deterministic_short_and_tell_pipelines_apart() -> None:
    long = "p" * 128
    names = {keys.tick_timer_name(*pair) for pair in [(long, "a"), (long, "b"), ("x.y", "cron"), ("x_y", "cron")]}
    assert len(names) == 4
    assert all(len(name) <= 64 and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-") for name in names)


@pytest.mark.parametrize("path", [one for one in FILES if has_ticks(one)], ids=named)
def test_every_journey_comes_out_the_same_when_ticks_are_timers(path: Path) -> None:
    played = play(scenario_of(path), settings=Settings(tick_timers=True))
    assert played.failures == []
    assert outcome(played.world) == undisturbed(path)

"""What applying would change, and when pipelines start next."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlock.config.stored import read_stored
from interlock.decide.plan import ChangeKind, KeyChange, compare, differences, next_run, next_runs, next_start
from interlock.model.config import Calendar, PipelineConfig

NOW = datetime(2026, 3, 6, 12, tzinfo=UTC)  # a Friday


def config(**fields: Any) -> PipelineConfig:
    base: dict[str, Any] = {
        "pipeline": {"id": "gold"},
        "validation": {"rules": [{"key": "a", "check": "exists"}]},
        "job": {"type": "external"},
    }
    found = read_stored({**base, **fields}, {"closed": Calendar(name="closed")})
    assert isinstance(found, PipelineConfig), found
    return found


def utc(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [KeyChange("a", 1, 2)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [KeyChange("a.c", 2, 3)]),
        ({"a": 1}, {"a": 1, "b": None}, [KeyChange("b", new=None)]),
        ({"a": 1, "b": 2}, {"a": 1}, [KeyChange("b", 2)]),
        ({"r": [1, 2]}, {"r": [1, 3, 4]}, [KeyChange("r[1]", 2, 3), KeyChange("r[2]", new=4)]),
        ({"r": [1, 2]}, {"r": [1]}, [KeyChange("r[1]", 2)]),
        ({"r": [{"k": "x", "v": 1}]}, {"r": [{"k": "x", "v": 2}]}, [KeyChange("r[0].v", 1, 2)]),
        ({"a": True}, {"a": 1}, [KeyChange("a", True, 1)]),
        ({"a": {"b": 1}}, {"a": [1]}, [KeyChange("a", {"b": 1}, [1])]),
        ({"a": [1]}, {"a": {"b": 1}}, [KeyChange("a", [1], {"b": 1})]),
        ({"a": 5}, {"a": {"b": 1}}, [KeyChange("a", 5, {"b": 1})]),
        ({"a": {"b": 1}}, {"a": 5}, [KeyChange("a", {"b": 1}, 5)]),
        ({"a": 5}, {"a": [1]}, [KeyChange("a", 5, [1])]),
        ({"a": [1]}, {"a": 5}, [KeyChange("a", [1], 5)]),
        ({"a": {"b": 1}}, {}, [KeyChange("a", {"b": 1})]),
        ({}, {"a": [1]}, [KeyChange("a", new=[1])]),
        (
            {"a": 1, "b": 1},
            {"b": 2, "a": 2, "c": 3},
            [KeyChange("a", 1, 2), KeyChange("b", 1, 2), KeyChange("c", new=3)],
        ),
    ],
)
def test_differences(old: object, new: object, found: list[KeyChange]) -> None:
    assert list(differences(old, new)) == found


def test_compare_by_name() -> None:
    old = {"gone": {}, "same": {"a": 1}, "other": {"a": 1}}
    new = {"same": {"a": 1}, "other": {"a": 2}, "fresh": {}}
    assert [(one.name, one.kind) for one in compare(old, new)] == [
        ("fresh", ChangeKind.NEW),
        ("gone", ChangeKind.REMOVED),
        ("other", ChangeKind.CHANGED),
        ("same", ChangeKind.UNCHANGED),
    ]
    assert [msgspec.to_builtins(one)["kind"] for one in compare(old, new)] == ["new", "removed", "changed", "unchanged"]


def test_a_key_that_came_has_no_old_value_in_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(KeyChange("b", new=None))) == {"path": "b", "new": None}


def test_cron_passes_over_excluded_days() -> None:
    one = config(
        schedule={"cron": "0 8 * * *", "timezone": "America/New_York", "exclude": {"weekends": True}},
        sla={"deadline": "10:00", "expectedDuration": "30m"},
    )
    (found,) = next_runs(one, {}, utc(3, 6, 14))  # 09:00 on Friday in New York: today's tick is over
    assert (found.date, found.start_at) == ("2026-03-09", utc(3, 9, 12))  # Monday, and summer time has begun
    assert (found.warning_at, found.breach_at) == (utc(3, 9, 13, 30), utc(3, 9, 14))


def test_inclusion_dates_open_at_their_time() -> None:
    one = config(schedule={"include": {"dates": ["2026-03-06", "2026-03-31"]}, "time": "06:00"})
    found = next_run(one, one.all_schedules[0], {}, NOW)
    assert (found.date, found.start_at) == ("2026-03-31", utc(3, 31, 6))
    earlier = next_run(one, one.all_schedules[0], {}, utc(3, 6, 5))
    assert earlier.start_at == utc(3, 6, 6)
    assert earlier.opens == "inclusion dates at 06:00"
    at_once = next_run(one, one.all_schedules[0], {}, utc(3, 6, 6))
    assert at_once.date == "2026-03-31", "what starts at this very instant is not next"


def test_inclusion_dates_without_a_time_open_at_midnight_where_the_pipeline_lives() -> None:
    one = config(schedule={"include": {"dates": ["2026-03-09"]}, "timezone": "America/New_York"})
    found = next_run(one, one.all_schedules[0], {}, NOW)
    assert (found.start_at, found.timezone) == (utc(3, 9, 4), "America/New_York")
    assert found.opens == "inclusion dates at 00:00"


def test_a_tick_beyond_the_next_400_days_is_not_looked_for() -> None:
    (found,) = next_runs(config(schedule={"cron": "0 8 29 2 *"}, sla={"deadline": "10:00"}), {}, NOW)
    assert (found.date, found.start_at, found.opens) == (None, None, "cron 0 8 29 2 *")
    assert found.notes == ("no day of the next 400 is open to it: look at its calendars",)


def test_a_duration_counts_from_the_trigger_of_whichever_schedule() -> None:
    trigger = {"key": "up", "check": "exists"}
    schedules = [{"id": "am", "cron": "0 8 * * *"}, {"id": "feed", "trigger": trigger}]
    clock, sensor = next_runs(config(schedules=schedules, sla={"maxDuration": "2h"}), {}, NOW)
    assert clock.notes == ("breach 2h after its trigger first arrives",)
    assert sensor.notes == ("breach 2h after up first arrives",)


def test_all_that_opens_a_run_is_named() -> None:
    trigger = {"key": "up", "check": "exists"}
    one = config(schedule={"cron": "0 8 * * *", "trigger": trigger}, after=[{"pipeline": "silver"}])
    assert next_runs(one, {}, NOW)[0].opens == "cron 0 8 * * *, or sensor up exists, or completion of silver"


def test_inclusion_dates_with_a_trigger_are_opened_by_the_trigger() -> None:
    trigger = {"key": "ready", "check": "exists"}
    found = config(schedule={"include": {"dates": ["2026-03-09"]}, "time": "09:30", "trigger": trigger})
    assert next_start(found.all_schedules[0], {}, NOW) is None
    (coming,) = next_runs(found, {}, NOW)
    assert (coming.date, coming.start_at) == ("2026-03-09", None)


def test_a_trigger_opens_whenever_it_comes() -> None:
    one = config(
        schedule={"trigger": {"key": "up", "check": "equals", "field": "status", "value": "ready"}},
        sla={"deadline": "10:00", "maxDuration": "2h"},
    )
    (found,) = next_runs(one, {}, NOW)
    assert found.start_at is None
    assert found.opens == "sensor up status equals ready"
    assert (found.date, found.breach_at) == ("2026-03-06", utc(3, 7, 10))
    assert found.notes == ("breach 2h after up first arrives",)


def test_hourly_deadlines_are_of_this_hour() -> None:
    one = config(schedule={"trigger": {"key": "up", "check": "exists"}}, sla={"deadline": ":30"})
    (found,) = next_runs(one, {}, utc(3, 6, 12, 10))
    assert (found.date, found.breach_at) == ("2026-03-06T12", utc(3, 6, 13, 30))
    (found,) = next_runs(one, {}, utc(3, 6, 13))
    assert found.date == "2026-03-06T13", "an hour that has just ended is awaited no more"


def test_cascades_and_pipelines_that_nothing_opens() -> None:
    after = config(after=[{"pipeline": "silver"}, {"pipeline": "bronze"}])
    assert next_runs(after, {}, NOW)[0].opens == "completion of silver and bronze"
    assert next_runs(config(), {}, NOW)[0].opens == "a rerun request only"
    assert next_runs(config(), {}, NOW)[0].notes == ("no SLA",)


def test_a_calendar_that_leaves_nothing_open_is_told() -> None:
    days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    every = msgspec.convert({"name": "closed", "days": days}, Calendar)
    for schedule in ({"cron": "0 8 * * *"}, {"trigger": {"key": "up", "check": "exists"}}):
        one = config(schedule={**schedule, "exclude": {"calendar": "closed"}}, sla={"deadline": "10:00"})
        (found,) = next_runs(one, {"closed": every}, NOW)
        assert (found.date, found.start_at, found.breach_at) == (None, None, None)
        assert "no day of the next 400 is open to it: look at its calendars" in found.notes


def test_every_schedule_has_its_own_next_run() -> None:
    one = config(schedules=[{"id": "am", "cron": "0 8 * * *"}, {"id": "pm", "cron": "0 20 * * *"}])
    assert [(found.schedule, found.start_at) for found in next_runs(one, {}, NOW)] == [
        ("am", utc(3, 7, 8)),
        ("pm", utc(3, 6, 20)),
    ]


def test_the_hours_of_a_schedule_skip_the_days_that_are_closed() -> None:
    trigger = {"key": "landed", "check": "exists"}
    schedule = {"trigger": trigger, "granularity": "hour", "exclude": {"weekends": True}}
    one = config(schedule=schedule, sla={"deadline": ":30", "readyBy": ":10"})
    (found,) = next_runs(one, {}, utc(3, 6, 12, 10))  # Friday
    assert (found.date, found.ready_by_at, found.breach_at) == ("2026-03-06T12", utc(3, 6, 13, 10), utc(3, 6, 13, 30))
    (found,) = next_runs(one, {}, utc(3, 7, 12, 10))
    assert (found.date, found.breach_at) == ("2026-03-09T00", utc(3, 9, 1, 30))


def test_a_dry_run_promises_no_alert() -> None:
    schedule = {"trigger": {"key": "landed", "check": "exists"}}
    (found,) = next_runs(config(schedule=schedule, sla={"deadline": "10:00"}, dryRun=True), {}, utc(3, 6, 12))
    assert (found.date, found.breach_at) == ("2026-03-06", None)
    assert "dry run: it observes and starts nothing" in found.notes

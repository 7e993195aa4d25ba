"""Which sensor a probe writes, and when it is to look."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interlock.decide import probes
from interlock.model.config import Check, Evaluation, Info, PipelineConfig, Probe, ProbeType, Rule, Schedule, Validation
from interlock.model.durations import Duration
from interlock.model.errors import InvalidValueError
from interlock.model.periods import parse_period
from interlock.model.probe import ProbeState

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def probe(path: str = "x", **fields: Any) -> Probe:
    return Probe(key="landed", type=ProbeType.FILE, config={"path": path}, **fields)


def pipeline(*intervals: int) -> PipelineConfig:
    schedules = [
        Schedule(id=f"s{minutes}", evaluation=Evaluation(interval=Duration(minutes=minutes))) for minutes in intervals
    ]
    validation = Validation(rules=[Rule(key="landed", check=Check.EXISTS)])
    return PipelineConfig(pipeline=Info(id="gold"), validation=validation, schedules=schedules)


def state(started: timedelta, *, ended: bool = True, definition: str = "d") -> ProbeState:
    at = NOW - started
    return ProbeState(
        key="landed",
        version=1,
        look="l",
        definition=definition,
        started_at=at,
        ends_by=at + timedelta(seconds=35),
        ended_at=at + timedelta(seconds=1) if ended else None,
    )


def test_times_follow_from_the_evaluation() -> None:
    assert probes.interval_of(pipeline(), probe()) == Duration(minutes=5)
    assert probes.interval_of(pipeline(10, 2), probe()) == Duration(minutes=2)
    assert probes.interval_of(pipeline(10), probe(interval=Duration(seconds=30))) == Duration(seconds=30)
    assert probes.ttl_of(pipeline(10), probe()) == timedelta(minutes=20, seconds=30)
    assert probes.ttl_of(pipeline(10), probe(ttl=Duration(minutes=1))) == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("path", "dated"),
    [
        ("in/*.csv", False),
        ("${PIPELINE}/${INTERLOCK_X}", False),
        ("$${DATE}", False),
        ("in/${DATE}", True),
        ("in/${HOUR}", True),
        ("in/${PERIOD}", True),
    ],
)
def test_a_dated_probe_names_a_date(path: str, dated: bool) -> None:
    assert probes.is_dated(probe(path)) is dated


def test_a_dated_probe_writes_the_sensor_of_its_period() -> None:
    assert probes.sensor_key(probe(), None) == "landed"
    assert probes.sensor_key(probe("${DATE}"), parse_period("2026-03-02T07")) == "landed#2026-03-02T07"


@pytest.mark.parametrize(
    ("path", "granularity", "zone", "period"),
    [
        ("${DATE}", None, "UTC", "2026-03-02"),
        ("${DATE}", "hour", "UTC", "2026-03-02T08"),
        ("${DATE}/${HOUR}", None, "UTC", "2026-03-02T08"),
        ("${PERIOD}", None, "America/New_York", "2026-03-02T03"),
        ("${DATE}/${HOUR}", "day", "UTC", "2026-03-02"),
        ("${DATE}", None, "Pacific/Auckland", "2026-03-02"),
    ],
)
def test_the_current_period_is_that_of_the_schedule(path: str, granularity: Any, zone: str, period: str) -> None:
    schedule = Schedule(granularity=granularity, timezone=zone)
    assert str(probes.current_period(probe(path), schedule, NOW)) == period


@pytest.mark.parametrize(
    ("before", "due"),
    [
        (None, NOW),
        (state(4 * MINUTE), NOW + MINUTE),
        (state(5 * MINUTE), NOW),
        (state(timedelta(hours=3)), NOW - timedelta(hours=3) + 5 * MINUTE),
        (state(MINUTE, definition="another"), NOW),
        # Under way: not before it ends. One that never ended does not hold up the next.
        (state(timedelta(seconds=10), ended=False, definition="another"), NOW + timedelta(seconds=25)),
        (state(timedelta(seconds=10), ended=False), NOW + 5 * MINUTE - timedelta(seconds=10)),
        (state(4 * MINUTE, ended=False), NOW + MINUTE),
    ],
)
def test_when_the_next_look_is_due(before: ProbeState | None, due: datetime) -> None:
    assert probes.due_at(before, "d", 5 * MINUTE, NOW) == due


@pytest.mark.parametrize(
    ("before", "until"),
    [
        (None, NOW + 5 * MINUTE),
        (state(4 * MINUTE), None),
        (state(5 * MINUTE), NOW + 5 * MINUTE),
        (state(timedelta(seconds=10), ended=False), NOW + timedelta(seconds=25)),
        (state(4 * MINUTE, ended=False), None),
        (state(6 * MINUTE, ended=False), NOW + 5 * MINUTE),
    ],
)
def test_whether_an_evaluation_waits(before: ProbeState | None, until: datetime | None) -> None:
    assert probes.awaited_until(before, 5 * MINUTE, NOW) == until


@pytest.mark.parametrize(
    ("period", "path"),
    [
        ("2026-03-02", "lake/gold/2026-03-02//2026-03-02"),
        ("2026-03-02T07", "lake/gold/2026-03-02/07/2026-03-02T07"),
        ("2026-03-02T0715", "lake/gold/2026-03-02/07/2026-03-02T0715"),
    ],
)
def test_a_look_is_filled_in_for_its_period(period: str, path: str) -> None:
    looked = probe("${INTERLOCK_BUCKET}/${PIPELINE}/${DATE}/${HOUR}/${PERIOD}")
    environment = {"INTERLOCK_BUCKET": "lake"}
    filled = probes.fill_probe(looked, "gold", parse_period(period), environment, where="probes[0].config")
    assert filled == {"path": path}


def test_without_a_period_there_is_no_date_to_fill_in() -> None:
    assert probes.fill_probe(probe("${PIPELINE}"), "gold", None, {}, where="probes[0].config") == {"path": "gold"}
    with pytest.raises(InvalidValueError, match=r"probes\[0\]\.config\.path: \$\{DATE\} is not known"):
        probes.fill_probe(probe("${DATE}"), "gold", None, {}, where="probes[0].config")


def test_a_probe_is_another_when_what_it_looks_at_changes_not_how_often() -> None:
    assert probes.definition(probe("a")) == {"type": "file", "config": {"path": "a"}}
    assert probes.definition(probe("a", interval=Duration(minutes=1))) == probes.definition(probe("a"))

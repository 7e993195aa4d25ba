"""Which runs could read a write: exactly those for which the rules may come out otherwise."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.config.stored import read_stored
from interlock.decide.readers import Reach, observed, reach
from interlock.decide.rules import evaluate
from interlock.decide.sensors import candidate_keys, run_scope
from interlock.model.config import PipelineConfig
from interlock.model.periods import Period, parse_period
from interlock.model.sensor import Sensor
from interlock.model.times import zone

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
PERIODS = [
    parse_period(one) for one in ("2026-03-01", "2026-03-01T10", "2026-03-01T1015", "2026-03-02", "2026-03-02T10")
]
KEYS = ["rows", "rows#2026-03-01", "rows#20260301", "rows#2026-03-01T10", "rows#2026-03-02", "rows-count", "rows#x"]
DATA: list[dict[str, Any]] = [
    {},
    {"date": "2026-03-01"},
    {"date": "2026-03-01", "hour": 10},
    {"date": "2026-03-02"},
    {"date": "soon"},
]


def config_of(rules: list[dict[str, Any]]) -> PipelineConfig:
    document = {
        "pipeline": {"id": "orders"},
        "validation": {"rules": rules},
        "job": {"type": "external"},
        "schedule": {"trigger": {"key": "ready", "check": "exists"}},
    }
    config = read_stored(document, {})
    assert isinstance(config, PipelineConfig)
    return config


def passes(config: PipelineConfig, period: Period, sensors: dict[str, Sensor]) -> bool:
    seen = {key: sensors[key] for key in candidate_keys(["rows", "rows#2026-03-01"], period) if key in sensors}
    scope = run_scope(period, zone("UTC"))
    return evaluate(config.validation.rules, config.validation.trigger, seen, scope, NOW).passed


@given(
    st.sampled_from(KEYS),
    st.sampled_from(DATA),
    st.lists(
        st.fixed_dictionaries(
            {"key": st.sampled_from(["rows", "rows#2026-03-01", "gate"]), "check": st.just("exists")},
            optional={"period": st.just("any")},
        ),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from(PERIODS),
)
def test_no_run_is_left_out_that_a_write_makes_pass(
    key: str, data: dict[str, Any], rules: list[dict[str, Any]], period: Period
) -> None:
    config, sensor = config_of(rules), Sensor(key, data, NOW)
    if passes(config, period, {key: sensor}) and not passes(config, period, {}):
        found = reach(config, sensor)
        assert found is not None
        assert found.covers(period)
        assert str(period).startswith(found.dates)
        assert observed(config, sensor).covers(period)


def test_a_reach_covers_one_period_those_that_overlap_it_or_all() -> None:
    day, hour = PERIODS[0], PERIODS[1]
    assert [one for one in PERIODS if Reach(day, exact=True).covers(one)] == [day]
    assert [one for one in PERIODS if Reach(hour).covers(one)] == PERIODS[:3]
    assert all(Reach().covers(one) for one in PERIODS)


@pytest.mark.parametrize(
    ("found", "dates"),
    [
        (Reach(), ""),
        (Reach(PERIODS[0], exact=True), "2026-03-01"),
        (Reach(PERIODS[1], exact=True), "2026-03-01T10"),
        # A day and its hours overlap each other: all of them begin with the day.
        (Reach(PERIODS[0]), "2026-03-01"),
        (Reach(PERIODS[1]), "2026-03-01"),
    ],
)
def test_the_dates_of_a_reach_begin_alike(found: Reach, dates: str) -> None:
    assert found.dates == dates


def test_a_sensor_that_nothing_reads_reaches_nobody() -> None:
    config = config_of([{"key": "rows", "check": "exists"}])
    assert reach(config, Sensor("other", {}, NOW)) is None
    assert reach(config, Sensor("rows", {"date": "soon"}, NOW)) is None


def test_a_rule_of_any_period_reads_a_key_that_its_data_contradicts() -> None:
    config = config_of([{"key": "rows", "check": "exists", "period": "any"}])
    contradicting = Sensor("rows#2026-03-02", {"date": "2026-03-01"}, NOW)
    assert observed(config, contradicting).covers(parse_period("2026-03-02"))


@pytest.mark.parametrize(
    ("rule", "key", "data", "covered"),
    [
        ({"key": "rows"}, "rows", {}, PERIODS),
        ({"key": "rows"}, "rows", {"date": "2026-03-02"}, PERIODS[3:]),
        ({"key": "rows"}, "rows", {"date": "2026-03-01", "hour": 10}, PERIODS[:3]),
        ({"key": "rows"}, "rows#2026-03-01", {}, PERIODS[:1]),
        ({"key": "rows"}, "rows#2026-03-01T10", {"date": "2026-03-02"}, PERIODS[1:2]),
        ({"key": "rows#2026-03-01"}, "rows#2026-03-01", {}, PERIODS[:3]),
        ({"key": "rows", "period": "any"}, "rows", {"date": "2026-03-02"}, PERIODS),
        ({"key": "rows", "period": "any"}, "rows#2026-03-01", {}, PERIODS[:1]),
    ],
)
def test_a_write_reaches_no_more_runs_than_could_read_it(
    rule: dict[str, Any], key: str, data: dict[str, Any], covered: list[Period]
) -> None:
    found = reach(config_of([rule | {"check": "exists"}]), Sensor(key, data, NOW))
    assert found is not None
    assert [period for period in PERIODS if found.covers(period)] == covered


@pytest.mark.parametrize(
    ("rule", "key", "data", "covered"),
    [
        ({"key": "rows"}, "rows", {}, PERIODS),
        # Whatever is named after a period is about it, whoever reads it: a trigger, a post-run rule.
        ({"key": "gate"}, "out", {"date": "2026-03-02"}, PERIODS[3:]),
        ({"key": "gate"}, "out#2026-03-01T10", {}, PERIODS[:3]),
        # A rule of any period makes the sensors that it reads matter to all runs, and no others.
        ({"key": "rows", "period": "any"}, "rows", {"date": "2026-03-02"}, PERIODS),
        ({"key": "rows", "period": "any"}, "out", {"date": "2026-03-02"}, PERIODS[3:]),
        ({"key": "rows"}, "rows", {"date": "2026-03-02"}, PERIODS[3:]),
    ],
)
def test_what_anything_could_connect_with_a_write(
    rule: dict[str, Any], key: str, data: dict[str, Any], covered: list[Period]
) -> None:
    found = observed(config_of([rule | {"check": "exists"}]), Sensor(key, data, NOW))
    assert [period for period in PERIODS if found.covers(period)] == covered


def test_one_rule_of_several_is_enough_to_reach_a_run() -> None:
    config = config_of([{"key": "gate", "check": "exists", "period": "any"}, {"key": "rows", "check": "exists"}])
    found = reach(config, Sensor("rows", {"date": "2026-03-02"}, NOW))
    assert found == Reach(PERIODS[3])
    assert observed(config, Sensor("rows", {"date": "2026-03-02"}, NOW)) == Reach(PERIODS[3])

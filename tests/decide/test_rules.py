"""Each check, its reason, and how results combine."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.checks import RuleResult
from interlock.decide.rules import Verdict, evaluate
from interlock.decide.sensors import run_scope
from interlock.model.config import Check, Mode, Rule
from interlock.model.periods import parse_period
from interlock.model.sensor import Sensor
from interlock.model.times import format_instant, zone

DAY = parse_period("2026-03-02")
NOW = datetime(2026, 3, 2, 13, tzinfo=UTC)
RECEIVED = datetime(2026, 3, 2, 12, tzinfo=UTC)
TZ = zone("UTC")
SCOPE = run_scope(DAY, TZ)


def judge(rule: Rule, data: dict[str, Any]) -> RuleResult:
    return evaluate([rule], Mode.ALL, {"k": Sensor("k", data, RECEIVED)}, SCOPE, NOW).results[0]


def rule(check: Check, value: Any = None, field: str | None = "f", key: str = "k") -> Rule:
    return Rule(key=key, check=check, field=field, value=value)


def ago(**age: float) -> str:
    return format_instant(NOW - timedelta(**age))


@pytest.mark.parametrize(
    ("check", "value", "actual", "passed", "reason"),
    [
        (Check.EXISTS, None, 0, True, "f is 0"),
        (Check.EXISTS, None, None, False, "f is null: the sensor has no value for it"),
        (Check.EQUALS, "ready", "ready", True, 'f is "ready"'),
        (Check.EQUALS, "ready", "late", False, 'f is "late", needs "ready"'),
        (Check.EQUALS, 1, 1.0, True, "f is 1"),
        (Check.EQUALS, "true", True, True, "f is true"),
        (Check.EQUALS, 5, "5", True, 'f is "5"'),
        (Check.EQUALS, None, None, False, "f is null: the sensor has no value for it"),
        (Check.EQUALS, 1, True, False, "f is true, needs 1"),
        (Check.NE, "failed", "ok", True, 'f is "ok", not "failed"'),
        (Check.NE, "failed", "failed", False, 'f is "failed", needs anything else'),
        (Check.NE, "failed", None, False, "f is null: the sensor has no value for it"),
        (Check.IN, ["eu", "us"], "us", True, 'f is "us", one of "eu", "us"'),
        (Check.IN, ["eu", 5], "5", True, 'f is "5", one of "eu", 5'),
        (Check.IN, ["eu", "us"], "ap", False, 'f is "ap", needs one of "eu", "us"'),
        (Check.IN, "eu", "eu", True, 'f is "eu", one of "eu"'),
        (Check.IN, [], "eu", False, 'f is "eu", needs one of nothing: the rule lists no values'),
        (Check.GTE, 1000, 5000, True, "f is 5000, >= 1000"),
        (Check.GTE, 1000, 1000, True, "f is 1000, >= 1000"),
        (Check.GTE, 1000, 120, False, "f is 120, needs >= 1000"),
        (Check.GT, 1000, 1000, False, "f is 1000, needs > 1000"),
        (Check.GT, 1000, "1000.1", True, 'f is "1000.1", > 1000'),
        (Check.LT, 0.5, 0.25, True, "f is 0.25, < 0.5"),
        (Check.LT, 0.5, 0.5, False, "f is 0.5, needs < 0.5"),
        (Check.LTE, "0.1", 0.1, True, 'f is 0.1, <= "0.1"'),
        (Check.LTE, 0.1, Decimal("0.2"), False, "f is 0.2, needs <= 0.1"),
        (Check.GT, 2**63, 2**63 + 1, True, f"f is {2**63 + 1}, > {2**63}"),
        (Check.GTE, 1, True, False, "f is true, which is not a number; needs >= 1"),
        (Check.GTE, 1, "many", False, 'f is "many", which is not a number; needs >= 1'),
        (Check.GTE, 1, float("nan"), False, "f is nan, which is not a number; needs >= 1"),
        (Check.GTE, 1, [5], False, "f is [5], which is not a number; needs >= 1"),
        (Check.GTE, "many", 1, False, 'the rule compares with "many", which is not a number: correct its value'),
        (Check.GTE, None, 1, False, "the rule compares with null, which is not a number: correct its value"),
        (Check.GTE, True, 1, False, "the rule compares with true, which is not a number: correct its value"),
        (Check.AGE_LT, "2h", ago(hours=1, minutes=12), True, "f is 1h12m old, < 2h"),
        (Check.AGE_LT, "2h", ago(hours=2), False, "f is 2h old, needs < 2h"),
        (Check.AGE_LT, "PT2H", ago(days=3, hours=4), False, "f is 3d4h old, needs < PT2H"),
        (Check.AGE_LT, "2h", ago(hours=2, milliseconds=-1), True, "f is 1h59m old, < 2h"),
        (Check.AGE_LT, "2h", NOW.timestamp() - 45, True, "f is 45s old, < 2h"),
        (Check.AGE_LT, "2h", int(NOW.timestamp() * 1000) - 90_000, True, "f is 1m30s old, < 2h"),
        (Check.AGE_LT, "2h", Decimal(int(NOW.timestamp()) - 60), True, "f is 1m old, < 2h"),
        (Check.AGE_LT, "2h", ago(minutes=-5), True, "f is 5m in the future, < 2h"),
        (Check.AGE_LT, "2h", ago(minutes=-5, milliseconds=-1), False, "f is 5m in the future: a fault, not freshness"),
        (Check.AGE_LT, "2h", ago(minutes=-7), False, "f is 7m in the future: a fault, not freshness"),
        (Check.AGE_GT, "1d", ago(days=2), True, "f is 2d old, > 1d"),
        (Check.AGE_GT, "1d", ago(days=1), False, "f is 1d old, needs > 1d"),
        (Check.AGE_GT, "1d", ago(days=-2), False, "f is 2d in the future, needs > 1d"),
    ],
)
def test_a_check(check: Check, value: Any, actual: Any, passed: bool, reason: str) -> None:
    result = judge(rule(check, value), {"f": actual})
    assert (result.passed, result.reason) == (passed, reason)
    assert (result.key, result.check, result.field, result.expected) == ("k", check, "f", value)


@pytest.mark.parametrize(
    "spelled",
    [
        "2026-03-02T12:58:30Z",
        "2026-03-02t12:58:30z",
        "2026-03-02 12:58:30.000000999Z",
        "2026-03-02T12:58:30.0Z",
        "2026-03-02T14:58:30+02:00",
        "2026-03-02T14:58:30+0200",
        "2026-03-02T07:28:30-05:30",
        " 2026-03-02T12:58:30Z ",
        1772456310,
        1772456310000,
        1772456310.0,
    ],
)
def test_an_instant_has_many_spellings(spelled: Any) -> None:
    assert judge(rule(Check.AGE_LT, "2m"), {"f": spelled}).reason == "f is 1m30s old, < 2m"


def test_a_leap_second_is_the_second_after() -> None:
    assert judge(rule(Check.AGE_LT, "2h"), {"f": "2026-03-02T11:59:60Z"}).reason == "f is 1h old, < 2h"


@pytest.mark.parametrize("check", [Check.AGE_LT, Check.AGE_GT])
@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "2026-03-02",
        "2026-03-02T24:00:00Z",
        "2026-02-30T10:00:00Z",
        "1772456400",
        True,
        [1],
        Decimal("NaN"),
        1e300,
    ],
)
def test_what_is_not_a_time_has_no_age(check: Check, value: Any) -> None:
    result = judge(rule(check, "2h"), {"f": value})
    assert not result.passed
    assert result.reason.endswith("which is not a time: write RFC 3339 or epoch seconds")


@pytest.mark.parametrize("check", [Check.AGE_LT, Check.AGE_GT])
@pytest.mark.parametrize("value", ["soon", "", 7200, None, True])
def test_an_age_is_compared_with_a_duration(check: Check, value: Any) -> None:
    result = judge(rule(check, value), {"f": ago(hours=1)})
    assert not result.passed
    assert result.reason.endswith("which is not a duration: write 2h or 30m")


@pytest.mark.parametrize("check", Check)
def test_every_check_is_decided_for_every_kind_of_value(check: Check) -> None:
    for value in ("text", 5, 0.5, True, [1], {"a": 1}):
        result = judge(rule(check, "2h"), {"f": value})
        assert len(result.reason.splitlines()) == 1


@pytest.mark.parametrize("check", Check)
def test_a_field_that_is_not_there_passes_nothing(check: Check) -> None:
    result = judge(rule(check, 1), {"a": 1, "b": 2})
    assert (result.passed, result.actual) == (False, None)
    assert result.reason == "there is no field f: the sensor has a, b"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, "there is no field f: the sensor is empty"),
        (dict.fromkeys("abcde", 1), "there is no field f: the sensor has a, b, c, d, e"),
        (dict.fromkeys("abcdeg", 1), "there is no field f: the sensor has a, b, c, d, e, ..."),
    ],
)
def test_the_fields_there_are_help_to_find_the_one_meant(data: dict[str, Any], reason: str) -> None:
    assert judge(rule(Check.GTE, 1), data).reason == reason


def test_exists_needs_no_field() -> None:
    result = judge(rule(Check.EXISTS, field=None), {})
    assert (result.passed, result.reason) == (True, "present, received 2026-03-02T12:00:00Z")


@pytest.mark.parametrize("check", [check for check in Check if check is not Check.EXISTS])
def test_a_comparison_without_a_field_fails(check: Check) -> None:
    result = judge(rule(check, 1, field=None), {"f": 1})
    assert not result.passed
    assert result.reason == f"the rule names no field to compare: add `field` to the {check} rule"


def test_a_dotted_field() -> None:
    result = judge(rule(Check.GTE, 5, field="stats.rows"), {"stats": {"rows": 7}})
    assert (result.passed, result.actual, result.reason) == (True, 7, "stats.rows is 7, >= 5")


def test_long_text_is_cut() -> None:
    result = judge(rule(Check.EQUALS, "y" * 500), {"f": "x" * 10_000})
    assert len(result.actual) == len(result.expected) == 200
    assert len(result.reason) < 450


def test_a_result_on_the_wire() -> None:
    result = judge(rule(Check.GTE, 1000), {"f": 120})
    assert msgspec.to_builtins(result) == {
        "key": "k",
        "check": "gte",
        "passed": False,
        "actual": 120,
        "expected": 1000,
        "reason": "f is 120, needs >= 1000",
        "field": "f",
    }


ORDER = {
    Check.GT: lambda a, b: a > b,
    Check.GTE: lambda a, b: a >= b,
    Check.LT: lambda a, b: a < b,
    Check.LTE: lambda a, b: a <= b,
}
NUMBERS = st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.sampled_from(sorted(ORDER)), NUMBERS, NUMBERS, st.booleans(), st.booleans())
def test_order_is_exact(check: Check, actual: float, limit: float, quoted: bool, text_limit: bool) -> None:
    result = judge(rule(check, str(limit) if text_limit else limit), {"f": str(actual) if quoted else actual})
    assert result.passed is ORDER[check](Fraction(repr(actual)), Fraction(repr(limit)))


# ----------------------------------------------------------------------------------------------------- combination

RULES = [
    Rule(key="done", check=Check.EQUALS, field="status", value="ready"),
    Rule(key="row-count", check=Check.GTE, field="count", value=1000),
    Rule(key="fresh", check=Check.AGE_LT, field="at", value="2h"),
]
READY = {
    "done": Sensor("done", {"status": "ready"}, RECEIVED),
    "row-count": Sensor("row-count", {"count": 5000}, RECEIVED),
    "fresh": Sensor("fresh", {"at": ago(hours=1)}, RECEIVED),
}


def verdict(mode: Mode, **changed: Sensor | None) -> Verdict:
    merged = {**READY, **{name.replace("_", "-"): one for name, one in changed.items()}}
    return evaluate(RULES, mode, {key: one for key, one in merged.items() if one is not None}, SCOPE, NOW)


FEW = Sensor("row-count", {"count": 120}, RECEIVED)
YESTERDAY = Sensor("done", {"status": "ready"}, RECEIVED - timedelta(days=1))


@pytest.mark.parametrize(
    ("found", "passed", "summary"),
    [
        (verdict(Mode.ALL), True, "3 of 3 rules pass"),
        (verdict(Mode.ANY), True, "3 of 3 rules pass"),
        (verdict(Mode.ALL, row_count=FEW), False, "2 of 3 rules pass; row-count: count is 120, needs >= 1000"),
        (verdict(Mode.ANY, row_count=FEW), True, "2 of 3 rules pass; one is enough"),
        (
            verdict(Mode.ALL, row_count=None, done=YESTERDAY),
            False,
            "1 of 3 rules pass; done was received 2026-03-01T12:00:00Z, before 2026-03-02 began; no sensor row-count",
        ),
        (
            verdict(Mode.ANY, row_count=None, done=None, fresh=None),
            False,
            "0 of 3 rules pass; no sensor done; no sensor row-count; no sensor fresh",
        ),
    ],
)
def test_a_verdict(found: Verdict, passed: bool, summary: str) -> None:
    assert (found.passed, found.summary()) == (passed, summary)
    assert [result.key for result in found.results] == ["done", "row-count", "fresh"]
    assert list(found.failing) == [result for result in found.results if not result.passed]


def test_a_summary_tells_the_first_few_failures() -> None:
    rules = [rule(Check.GTE, 1, key=name) for name in ("a", "b", "c", "d", "e")]
    reported = evaluate(rules, Mode.ALL, {}, SCOPE, NOW).summary()
    assert reported == "0 of 5 rules pass; no sensor a; no sensor b; no sensor c; and 2 more"


def test_a_single_rule() -> None:
    assert evaluate(RULES[:1], Mode.ALL, READY, SCOPE, NOW).summary() == "1 of 1 rule passes"


@pytest.mark.parametrize(("mode", "passed"), [(Mode.ALL, True), (Mode.ANY, False)])
def test_no_rules(mode: Mode, passed: bool) -> None:
    found = evaluate([], mode, {}, SCOPE, NOW)
    assert (found.passed, found.results, found.summary()) == (passed, (), "0 of 0 rules pass")


def test_a_rule_of_any_period_takes_what_another_refuses() -> None:
    old = {"k": Sensor("k", {"f": 5, "date": "2020-01-01"}, RECEIVED)}
    run, anything = rule(Check.GTE, 1), Rule(key="k", check=Check.GTE, field="f", value=1, period="any")
    results = evaluate([run, anything], Mode.ALL, old, SCOPE, NOW).results
    assert [one.passed for one in results] == [False, True]
    assert results[0].reason == "k is about 2020-01-01, not 2026-03-02"


@pytest.mark.parametrize(("marked", "passed"), [("2026-03-02T10", True), ("2026-03-02T09", False)])
def test_an_upstream_is_read_like_a_sensor(marked: str, passed: bool) -> None:
    data = {"status": "COMPLETED", "date": marked, "attempt": 1}
    sensors = {"upstream:silver": Sensor("upstream:silver", data, RECEIVED)}
    rules = [Rule(key="upstream:silver", check=Check.EQUALS, field="status", value="COMPLETED")]
    assert evaluate(rules, Mode.ALL, sensors, run_scope(parse_period("2026-03-02T10"), TZ), NOW).passed is passed


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Rule], dict[str, Sensor]]:
    names = st.sampled_from(["a", "b", "c"])
    values = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1", "x", "2h", ago(hours=1)])
    data = st.dictionaries(st.sampled_from(["f", "g", "date"]), values, max_size=3)
    rules = draw(st.lists(st.builds(rule, st.sampled_from(Check), values, st.sampled_from(["f", "g"]), names)))
    return rules, {name: Sensor(name, draw(data), RECEIVED) for name in draw(st.sets(names))}


@given(cases())
def test_all_is_conjunction_and_any_is_disjunction(case: tuple[list[Rule], dict[str, Sensor]]) -> None:
    rules, sensors = case
    conjunction = evaluate(rules, Mode.ALL, sensors, SCOPE, NOW)
    disjunction = evaluate(rules, Mode.ANY, sensors, SCOPE, NOW)
    assert conjunction.results == disjunction.results
    alone = [evaluate([one], Mode.ALL, sensors, SCOPE, NOW).passed for one in rules]
    assert [result.passed for result in conjunction.results] == alone
    assert conjunction.passed is all(alone)
    assert disjunction.passed is any(alone)
    assert all(result.reason for result in conjunction.results)

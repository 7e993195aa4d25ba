"""Values are compared exactly, found by path, and shown in one line."""

import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.values import (
    ABSENT,
    MAX_SHOWN,
    cut,
    equal,
    lookup,
    number,
    plain,
    plain_number,
    read_duration,
    real_number,
    same,
)
from interlock.decide.values import show as shown
from interlock.model.errors import InvalidValueError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(-(10**30), 10**30)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, Decimal(5)),
        (-0, Decimal(0)),
        (0.1, Decimal("0.1")),
        (1e22, Decimal(10**22)),
        (Decimal("1.50"), Decimal("1.5")),
        ("1000", Decimal(1000)),
        (" 120\n", Decimal(120)),
        ("+5", Decimal(5)),
        ("007", Decimal(7)),
        ("5.", Decimal(5)),
        (".5", Decimal("0.5")),
        ("-1.5e3", Decimal(-1500)),
        (2**63 + 1, Decimal(2**63 + 1)),
    ],
)
def test_what_is_a_number(value: object, expected: Decimal) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, None, [], {}, [5], ABSENT),
        *(float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")),
        *("", " ", "abc", "NaN", "Infinity", "inf", "1_000", "1,000", "0x10", "1e", "e5", ".", "5 6", "٣", "--5"),
        *("1e999999", "1e-99999", Decimal("1e6000"), Decimal("1e-6000")),
    ],
)
def test_what_is_not_a_number(value: object) -> None:
    assert number(value) is None


@given(st.one_of(INTEGERS, FINITE), st.one_of(INTEGERS, FINITE))
def test_order_is_that_of_the_decimals_people_see(left: float, right: float) -> None:
    a, b = number(left), number(right)
    assert a is not None
    assert b is not None
    exact_left, exact_right = Fraction(repr(left)), Fraction(repr(right))
    assert (a < b, a == b, a > b) == (
        exact_left < exact_right,
        exact_left == exact_right,
        exact_left > exact_right,
    )


@given(INTEGERS, st.integers(1, 10))
def test_large_integers_are_not_rounded(value: int, step: int) -> None:
    bigger = number(value + step)
    assert bigger is not None
    assert bigger > value
    assert number(str(value)) == value
    assert not equal(value, value + step)
    assert not equal(str(value + step), value)


@given(st.one_of(INTEGERS, FINITE, DECIMALS))
def test_a_number_and_its_text_are_the_same_number(value: float | Decimal) -> None:
    assert number(str(value)) == real_number(value)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (1, Decimal("1.00"), True),
        (0.1, Decimal("0.1"), True),
        (5, "5", True),
        (5.0, "5", True),
        (5, "5.0", True),
        (5.0, "5.0", True),
        (1500, "1.5e3", True),
        (7, "007", False),
        (5, " 5", False),
        (5, "+5", False),
        (5, "five", False),
        ("5", "5.0", False),
        ("ready", "ready", True),
        ("ready", "Ready", False),
        (True, "true", True),
        (False, "false", True),
        (True, "True", False),
        (True, True, True),
        (True, 1, False),
        (False, 0, False),
        (True, "1", False),
        (None, None, True),
        (None, "null", False),
        (None, "", False),
        (None, 0, False),
        (float("nan"), float("nan"), False),
        (float("nan"), "NaN", False),
        (2**53, 2**53 + 1, False),
        (float(2**53), 2**53 + 1, False),
        ([1, "2"], [1.0, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([1], "1", False),
        ([1], 1, False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, "x", False),
    ],
)
def test_equality(left: object, right: object, expected: bool) -> None:
    assert equal(left, right) is expected
    assert equal(right, left) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(1, 1.0, True), (1, "1", False), (True, 1, False), ("a", "a", True), (None, None, True), (0, None, False)],
)
def test_sameness_does_not_cross_types(left: object, right: object, expected: bool) -> None:
    assert same(left, right) is expected


@given(JSON, JSON)
def test_equality_is_symmetric(left: object, right: object) -> None:
    assert equal(left, right) == equal(right, left)


@pytest.mark.parametrize(
    ("data", "field", "expected"),
    [
        ({"count": 5}, "count", 5),
        ({"stats": {"rows": 7}}, "stats.rows", 7),
        ({"stats.rows": 1, "stats": {"rows": 7}}, "stats.rows", 1),
        ({"a": {"b.c": 2, "b": {"c": 3}}}, "a.b.c", 2),
        ({"a": {"b": {"c": 3}}}, "a.b.c", 3),
        ({"count": None}, "count", None),
        ({"stats": {"rows": None}}, "stats.rows", None),
        ({}, "count", ABSENT),
        ({"stats": 5}, "stats.rows", ABSENT),
        ({"stats": None}, "stats.rows", ABSENT),
        ({"stats": [1]}, "stats.0", ABSENT),
        ({"stats": {"rows": 1}}, "stats.", ABSENT),
    ],
)
def test_lookup(data: dict[str, object], field: str, expected: object) -> None:
    assert lookup(data, field) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ready", '"ready"'),
        ("two\nlines", '"two\\nlines"'),
        ("two\u2028lines", '"two\\u2028lines"'),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (5, "5"),
        (5.0, "5"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (Decimal("1.5"), "1.5"),
        (10**50, "1.000000E+50"),
        pytest.param(-(10**5000), "-1.000000E+5000", id="more digits than Python spells"),
        ([1, "a"], '[1,"a"]'),
        ({"a": Decimal("1.5")}, '{"a":1.5}'),
    ],
)
def test_how_a_value_is_shown(value: object, expected: str) -> None:
    assert shown(value) == expected


@given(JSON)
def test_a_shown_value_is_one_short_line(value: object) -> None:
    line = shown(value)
    assert len(line) <= MAX_SHOWN + 2
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 197 + "..."),
        (True, True),
        (None, None),
        (5, 5),
        (0.5, 0.5),
        (float("inf"), "inf"),
        (Decimal("5.00"), 5),
        (Decimal("0.1"), 0.1),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (Decimal("NaN"), "NaN"),
        (10**50, "1.000000E+50"),
        (Decimal(10**50), str(Decimal(10**50))),
        ([1, {"a": None}], [1, {"a": None}]),
        ((1, 2), [1, 2]),
    ],
)
def test_how_a_value_is_carried(value: object, expected: object) -> None:
    carried = plain(value)
    assert carried == expected
    assert type(carried) is type(expected)


def test_a_large_structure_is_carried_as_cut_text() -> None:
    carried = plain(list(range(1000)))
    assert isinstance(carried, str)
    assert carried.startswith("[0,1,2")
    assert len(carried) == MAX_SHOWN


@given(JSON)
def test_a_carried_value_is_json(value: object) -> None:
    assert len(json.dumps(plain(value), allow_nan=False)) < 2_000


@given(DECIMALS)
def test_a_plain_number_is_exact(value: Decimal) -> None:
    assert Decimal(str(plain_number(value))) == value


def test_cut_keeps_what_fits() -> None:
    assert cut("short") == "short"


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_is_written_out_up_to_forty_digits_and_shortened_from_there_on(sign: int) -> None:
    assert plain(sign * (10**40 - 1)) == sign * (10**40 - 1)
    assert plain(sign * 10**40) == f"{'-' if sign < 0 else ''}1.000000E+40"
    assert plain(Decimal(sign * 10**40)) == str(sign * 10**40), "a decimal has its digits from there on, as text"
    assert plain(Decimal(sign * (10**40 - 1))) == sign * (10**40 - 1)


@pytest.mark.parametrize(
    ("value", "is_number"),
    [
        (Decimal("1e5000"), True),
        (Decimal("1e-5000"), True),
        (Decimal("1e5001"), False),
        (Decimal("1e-5001"), False),
        ("1e5000", True),
        ("1e5001", False),
        ("1e-5001", False),
    ],
)
def test_a_number_has_at_most_five_thousand_digits_before_or_behind_the_point(value: object, is_number: bool) -> None:
    assert (number(value) is not None) is is_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (999_999_999_999_999.0, "999999999999999"),
        (1e15, "1000000000000000.0"),
        (-1e15, "-1000000000000000.0"),
        (Decimal("1.50"), "1.50"),
        (Decimal("NaN"), "NaN"),
        # Only what cannot be printed is spelled out: a backslash stays one.
        ({"a": "x\u2028 c:\\d"}, '{"a":"x\\u2028 c:\\\\d"}'),
    ],
)
def test_values_at_the_edges_of_what_is_shown_as_it_is(value: object, text: str) -> None:
    assert shown(value) == text


def test_a_structure_of_exactly_what_a_line_holds_is_kept_whole() -> None:
    fits = ["x" * (MAX_SHOWN - len('[""]'))]
    assert plain(fits) == fits
    assert plain([fits[0] + "x"]) == '["' + "x" * (MAX_SHOWN - 5) + "..."


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (90, "90 is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H; write 90s for seconds"),
        (1.5, "1.5 is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H; write 1.5s for seconds"),
        (" 90 ", '" 90 " is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H; write 90s for seconds'),
        (True, "true is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H"),
        (None, "null is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H"),
        ([5], "[5] is not a duration: write 1h30m, 45s, 500ms, 2d or PT2H"),
    ],
)
def test_a_duration_without_a_unit_is_refused_with_what_to_write(value: object, problem: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_duration(value)
    assert str(caught.value) == problem


def test_a_duration_with_a_unit_is_read() -> None:
    assert read_duration(" 90s ").total_seconds() == 90

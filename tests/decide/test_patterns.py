"""Event patterns mean what EventBridge documents."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.patterns import check_pattern, compile_pattern, matches
from interlock.model.errors import InvalidValueError

EVENT: dict[str, Any] = {
    "source": "interlock",
    "detail-type": "SLA_BREACH",
    "detail": {
        "pipelineId": "gold-revenue",
        "date": "2026-03-02",
        "message": "",
        "severity": "error",
        "ip": "10.0.0.33",
        "path": "dir/a*b/file.png",
        "detail": {
            "attempt": 3,
            "ratio": 301.8,
            "critical": True,
            "error": None,
            "tags": ["finance", "daily"],
            "empty": [],
            "results": [{"key": "a", "passed": True}, {"key": "b", "passed": False}],
            "nested": [[1, 2], [3]],
            "object": {"x": 1},
        },
    },
}


def inner(name: str, *values: Any) -> dict[str, Any]:
    return {"detail": {"detail": {name: list(values)}}}


def outer(name: str, *values: Any) -> dict[str, Any]:
    return {"detail": {name: list(values)}}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["interlock"]}, True),
        ({"source": ["Interlock"]}, False),
        ({"source": ["other", "interlock"]}, True),
        ({"source": ["interlock"], "detail-type": ["SLA_BREACH"]}, True),
        ({"source": ["interlock"], "detail-type": ["SLA_MET"]}, False),
        ({"absent": ["x"]}, False),
        ({"absent": {"x": ["y"]}}, False),
        ({"source": {"x": ["y"]}}, False),
        (outer("message", ""), True),
        (outer("pipelineId", ""), False),
        # exact values
        (inner("attempt", 3), True),
        (inner("attempt", 3.0), True),
        (inner("attempt", "3"), False),
        (inner("critical", True), True),
        (inner("critical", 1), False),
        (inner("critical", "true"), False),
        (inner("error", None), True),
        (inner("absent", None), False),
        (inner("object", None), False),
        # arrays in the event
        (inner("tags", "daily"), True),
        (inner("tags", "hourly"), False),
        (inner("empty", "daily"), False),
        (inner("nested", 2), True),
        (inner("nested", 4), False),
        ({"detail": {"detail": {"results": {"key": ["b"]}}}}, True),
        ({"detail": {"detail": {"results": {"key": ["b"], "passed": [False]}}}}, True),
        ({"detail": {"detail": {"results": {"key": ["a"], "passed": [False]}}}}, False),
        ({"detail": {"detail": {"tags": {"key": ["a"]}}}}, False),
        # prefix, suffix, case
        (outer("pipelineId", {"prefix": "gold-"}), True),
        (outer("pipelineId", {"prefix": "GOLD-"}), False),
        (outer("pipelineId", {"prefix": {"equals-ignore-case": "GOLD-"}}), True),
        (outer("pipelineId", {"prefix": {"equals-ignore-case": "SILVER"}}), False),
        (outer("pipelineId", {"suffix": "revenue"}), True),
        (outer("pipelineId", {"suffix": "Revenue"}), False),
        (outer("pipelineId", {"suffix": {"equals-ignore-case": "Revenue"}}), True),
        (outer("pipelineId", {"equals-ignore-case": "Gold-Revenue"}), True),
        (outer("pipelineId", {"equals-ignore-case": "Gold"}), False),
        ({"detail-type": [{"prefix": {"equals-ignore-case": "sla_"}}]}, True),
        ({"detail-type": [{"prefix": "sla_"}]}, False),
        ({"detail-type": [{"suffix": {"equals-ignore-case": "breach"}}]}, True),
        ({"detail-type": [{"suffix": "breach"}]}, False),
        ({"detail-type": [{"equals-ignore-case": "sla_breach"}]}, True),
        (outer("absent", {"prefix": ""}), False),
        (inner("attempt", {"prefix": "3"}), False),
        # anything-but
        (outer("severity", {"anything-but": "info"}), True),
        (outer("severity", {"anything-but": "error"}), False),
        (outer("severity", {"anything-but": ["info", "warning"]}), True),
        (outer("severity", {"anything-but": ["info", "error"]}), False),
        (outer("severity", {"anything-but": {"prefix": "err"}}), False),
        (outer("severity", {"anything-but": {"prefix": "inf"}}), True),
        (outer("severity", {"anything-but": {"prefix": ["inf", "err"]}}), False),
        (outer("severity", {"anything-but": {"suffix": "or"}}), False),
        (outer("severity", {"anything-but": {"equals-ignore-case": "ERROR"}}), False),
        (outer("severity", {"anything-but": {"equals-ignore-case": ["INFO", "WARNING"]}}), True),
        (outer("severity", {"anything-but": {"wildcard": "e*r"}}), False),
        (outer("severity", {"anything-but": {"wildcard": "i*"}}), True),
        (outer("absent", {"anything-but": "error"}), False),
        (inner("attempt", {"anything-but": 4}), True),
        (inner("attempt", {"anything-but": [3, 4]}), False),
        (inner("attempt", {"anything-but": 3.0}), False),
        (inner("error", {"anything-but": "x"}), True),
        (inner("attempt", {"anything-but": {"prefix": "3"}}), True),
        (inner("tags", {"anything-but": "finance"}), True),
        (inner("tags", {"anything-but": ["finance", "daily"]}), False),
        # numeric
        (inner("attempt", {"numeric": ["=", 3]}), True),
        (inner("attempt", {"numeric": [">", 3]}), False),
        (inner("attempt", {"numeric": [">=", 3]}), True),
        (inner("attempt", {"numeric": ["<", 3]}), False),
        (inner("attempt", {"numeric": ["<=", 3]}), True),
        (inner("attempt", {"numeric": [">", 0, "<=", 3]}), True),
        (inner("attempt", {"numeric": [">", 0, "<", 3]}), False),
        (inner("ratio", {"numeric": ["=", 3.018e2]}), True),
        (inner("attempt", {"numeric": [">", -5_000_000_000, "<", 5_000_000_000]}), True),
        (inner("attempt", {"numeric": [">=", 2, "<=", 4]}), True),
        (inner("attempt", {"numeric": [">=", 4, "<", 5]}), False),
        (inner("critical", {"numeric": ["=", 1]}), False),
        (outer("date", {"numeric": [">", 0]}), False),
        (inner("absent", {"numeric": [">", 0]}), False),
        # exists: leaves only
        (inner("attempt", {"exists": True}), True),
        (inner("attempt", {"exists": False}), False),
        (inner("error", {"exists": True}), True),
        (inner("absent", {"exists": True}), False),
        (inner("absent", {"exists": False}), True),
        (inner("object", {"exists": True}), False),
        (inner("object", {"exists": False}), True),
        ({"absent": {"deep": {"er": [{"exists": False}]}}}, True),
        ({"absent": {"deep": [{"exists": True}]}}, False),
        (inner("absent", {"exists": False}, "x"), True),
        # wildcard
        (outer("pipelineId", {"wildcard": "gold-*"}), True),
        (outer("pipelineId", {"wildcard": "*revenue"}), True),
        (outer("pipelineId", {"wildcard": "*"}), True),
        (outer("pipelineId", {"wildcard": "gold-revenue"}), True),
        (outer("pipelineId", {"wildcard": "g*d-*v*ue"}), True),
        (outer("pipelineId", {"wildcard": "gold"}), False),
        (outer("pipelineId", {"wildcard": "g*d-*z*ue"}), False),
        (outer("pipelineId", {"wildcard": "gold-r*rrevenue"}), False),
        # A character of the text counts for one piece alone.
        (outer("severity", {"wildcard": "erro*or"}), False),
        (outer("severity", {"wildcard": "err*error"}), False),
        (outer("severity", {"wildcard": "e*ror*or"}), False),
        (outer("severity", {"wildcard": "*rr*rr*"}), False),
        (outer("severity", {"wildcard": "*r*r*r*"}), True),
        (outer("severity", {"wildcard": "*r*r*r*r*"}), False),
        (outer("severity", {"wildcard": "e*ro"}), False),
        (outer("severity", {"wildcard": "r*r"}), False),
        (outer("path", {"wildcard": "dir/a\\*b/*.png"}), True),
        (outer("path", {"wildcard": "dir/a\\\\*"}), False),
        (outer("message", {"wildcard": "*"}), True),
        # cidr
        (outer("ip", {"cidr": "10.0.0.0/24"}), True),
        (outer("ip", {"cidr": "10.0.0.33"}), True),
        (outer("ip", {"cidr": "10.0.1.0/24"}), False),
        (outer("ip", {"cidr": "2001:db8::/32"}), False),
        (outer("date", {"cidr": "10.0.0.0/24"}), False),
        # $or
        ({"$or": [{"source": ["x"]}, {"detail-type": ["SLA_BREACH"]}]}, True),
        ({"$or": [{"source": ["x"]}, {"detail-type": ["x"]}]}, False),
        ({"source": ["x"], "$or": [{"source": ["interlock"]}, {"detail-type": ["SLA_BREACH"]}]}, False),
        ({"detail": {"$or": [{"severity": ["info"]}, {"date": [{"prefix": "2026-03"}]}]}}, True),
    ],
)
def test_a_pattern(pattern: dict[str, Any], expected: bool) -> None:
    check_pattern(pattern)
    assert matches(pattern, EVENT) is expected


@pytest.mark.parametrize(
    ("pattern", "path", "problem"),
    [
        ({}, "top level", "empty object"),
        ([], "top level", "write an object"),
        ({"detail": {}}, "detail", "empty object"),
        ({"detail": {"a": []}}, "detail.a", "empty array"),
        ({"source": "interlock"}, "source", 'write it in an array, ["interlock"]'),
        ({"source": None}, "source", "stands alone"),
        ({"source": [["a"]]}, "source[0]", "an array in an array"),
        ({"source": ["a", {"starts": "b"}]}, "source[1]", '"starts" is not an operator'),
        ({"source": [{}]}, "source[0]", "exactly one operator"),
        ({"source": [{"prefix": "a", "suffix": "b"}]}, "source[0]", "exactly one operator"),
        ({"source": [{"prefix": 5}]}, "source[0]", "prefix takes text, not 5"),
        ({"source": [{"prefix": {"suffix": "a"}}]}, "source[0]", "prefix takes text or equals-ignore-case"),
        ({"source": [{"suffix": {"equals-ignore-case": 5}}]}, "source[0]", "suffix takes text"),
        ({"source": [{"equals-ignore-case": ["a"]}]}, "source[0]", "takes text"),
        ({"source": [{"wildcard": None}]}, "source[0]", "wildcard takes text, not null"),
        ({"source": [{"wildcard": {"equals-ignore-case": "a"}}]}, "source[0]", "wildcard takes text, not {"),
        ({"source": [{"wildcard": "a**b"}]}, "source[0]", "two asterisks in a row"),
        ({"source": [{"wildcard": "**"}]}, "source[0]", "two asterisks in a row"),
        ({"source": [{"wildcard": "a\\b"}]}, "source[0]", "a backslash must precede"),
        ({"source": [{"wildcard": "a\\"}]}, "source[0]", "a backslash must precede"),
        ({"source": [{"cidr": "10.0.0.0/40"}]}, "source[0]", "is not a network"),
        ({"source": [{"exists": "yes"}]}, "source[0]", "exists takes true or false"),
        ({"source": [{"anything-but": None}]}, "source[0]", "all of one kind"),
        ({"source": [{"anything-but": True}]}, "source[0]", "all of one kind"),
        ({"source": [{"anything-but": ["a", 1]}]}, "source[0]", "all of one kind"),
        ({"source": [{"anything-but": []}]}, "source[0]", "empty array"),
        ({"source": [{"anything-but": {"prefix": []}}]}, "source[0]", "empty array"),
        ({"source": [{"anything-but": {"numeric": ["=", 1]}}]}, "source[0]", "does not take"),
        ({"source": [{"numeric": 5}]}, "source[0]", "numeric takes"),
        ({"source": [{"numeric": ["="]}]}, "source[0]", "numeric takes"),
        ({"source": [{"numeric": ["!=", 5]}]}, "source[0]", "numeric compares with"),
        ({"source": [{"numeric": [["="], 5]}]}, "source[0]", "numeric compares with"),
        ({"source": [{"numeric": ["=", "5"]}]}, "source[0]", "is not a number within"),
        ({"source": [{"numeric": ["=", 5_000_000_001]}]}, "source[0]", "is not a number within"),
        ({"source": [{"numeric": ["=", -5_000_000_001]}]}, "source[0]", "is not a number within"),
        ({"source": [{"numeric": ["=", 1, "<"]}]}, "source[0]", "numeric takes"),
        ({"source": [{"numeric": [">", 1, ">", 5]}]}, "source[0]", "a lower bound and then"),
        ({"source": [{"numeric": ["<", 1, "<", 5]}]}, "source[0]", "a lower bound and then"),
        ({"source": [{"numeric": ["=", 1, "<", 5]}]}, "source[0]", "a lower bound and then"),
        ({"source": [{"numeric": [">", 5, "<", 5]}]}, "source[0]", "a lower bound and then"),
        ({"$or": [{"a": ["b"]}]}, "$or", "at least two patterns"),
        ({"$or": {"a": ["b"]}}, "$or", "at least two patterns"),
        ({"$or": {"a": ["b"], "c": ["d"]}}, "$or", "at least two patterns"),
        ({"$or": "ab"}, "$or", "at least two patterns"),
        ({"$or": [{"a": ["b"]}, "c"]}, "$or[1]", "write an object"),
        ({"detail": {"$or": [{"a": ["b"]}, {"c": 5}]}}, "detail.$or[1].c", "stands alone"),
    ],
)
def test_an_invalid_pattern_is_refused_with_its_path(pattern: Any, path: str, problem: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        check_pattern(pattern)
    assert str(caught.value).startswith(f"event pattern, {path}: ")
    assert problem in str(caught.value)
    with pytest.raises(InvalidValueError):
        matches(pattern, {"source": "never looked at"})


LETTERS = st.text(alphabet="ab*\\", max_size=8)


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=2), max_size=4), st.booleans(), st.booleans(), LETTERS)
def test_a_wildcard_is_a_regular_expression(pieces: list[str], open_start: bool, open_end: bool, text: str) -> None:
    pattern = ("*" if open_start else "") + "*".join(pieces) + ("*" if open_end and (pieces or not open_start) else "")
    expected = re.fullmatch(pattern.replace("*", ".*"), text, re.DOTALL) is not None
    assert matches({"a": [{"wildcard": pattern}]}, {"a": text}) is expected


@given(LETTERS, LETTERS)
def test_an_escaped_wildcard_matches_itself_alone(text: str, other: str) -> None:
    escaped = text.replace("\\", "\\\\").replace("*", "\\*")
    match = compile_pattern({"a": [{"wildcard": escaped}]})
    assert match({"a": text})
    assert match({"a": other}) is (other == text)


@given(st.lists(st.integers(-3, 3) | st.sampled_from(["a", "b"]), min_size=1), st.integers(-3, 3))
def test_anything_but_is_the_negation_of_exact_for_a_single_value(values: list[Any], wanted: int) -> None:
    for value in values:
        exact = matches({"a": [wanted]}, {"a": value})
        assert matches({"a": [{"anything-but": wanted}]}, {"a": value}) is not exact

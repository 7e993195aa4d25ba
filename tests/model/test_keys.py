"""Names and keys: what may be one, and where records are kept."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model import keys
from interlock.model.errors import InvalidValueError, SensorRefusedError
from interlock.model.keys import RunKey
from interlock.model.periods import parse_period

IDS = st.from_regex(rf"\A{keys.ID_PATTERN}\Z", fullmatch=True)
DATES = st.sampled_from(["2026-03-03", "2026-03-03T10", "2026-03-03T1015"])
RUNS = st.builds(RunKey, IDS, IDS, DATES)


@pytest.mark.parametrize("text", ["a", "A.b_c-9", "0", "x" * 128])
def test_ids(text: str) -> None:
    assert keys.check_id(text) == text


@pytest.mark.parametrize("text", ["", "-a", ".a", "a b", "a#b", "a/b", "ä", "x" * 129, "a\n"])
def test_no_ids(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not a schedule id"):
        keys.check_id(text, "schedule id")


@pytest.mark.parametrize("key", ["a", "row-count", "hourly#2026-03-03", "lineage:ns/table", "ü", "x" * 512, "a_b"])
def test_sensor_keys(key: str) -> None:
    assert keys.check_sensor_key(key) == key


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "1 to 512 characters"),
        ("x" * 513, "this one has 513"),
        ("a\nb", "control characters"),
        ("a\x7f", "control characters"),
        ("_own", "reserved"),
        ("upstream:x", "reserved"),
    ],
)
def test_no_sensor_keys(key: str, words: str) -> None:
    with pytest.raises(SensorRefusedError, match=words):
        keys.check_sensor_key(key)


@pytest.mark.parametrize(
    ("key", "name", "period"),
    [
        ("orders", "orders", None),
        ("hourly-status#2026-03-03T10", "hourly-status", "2026-03-03T10"),
        ("hourly-status#20260303T10", "hourly-status", "2026-03-03T10"),
        ("a#b#2026-03-03", "a#b", "2026-03-03"),
        ("a#b", "a#b", None),
        ("a#2026-02-30", "a#2026-02-30", None),
        ("#2026-03-03", "#2026-03-03", None),
    ],
)
def test_sensor_keys_split(key: str, name: str, period: str | None) -> None:
    assert keys.split_sensor_key(key) == (name, parse_period(period) if period else None)


@given(RUNS)
def test_a_run_is_found_from_its_records(run: RunKey) -> None:
    for kind in (keys.RUN, keys.ACTIVE, keys.SLA, keys.DRY_RUN):
        assert keys.run_of(run.pk, run.sk(kind), kind) == run
    assert keys.run_of(run.pk, keys.rerun_sk(run, 3), keys.RERUN) == run
    assert keys.run_of(run.pk, keys.job_sk(run, "1-x"), keys.JOB) == run
    assert keys.run_of(run.pk, keys.rerun_request_sk(run, "id"), keys.RERUN_REQUEST) == run
    assert keys.pipeline_of(run.pk) == run.pipeline
    assert run.slot == f"{run.schedule}#{run.date}"
    assert str(run) == f"{run.pipeline}/{run.schedule}/{run.date}"
    assert str(run.period) == run.date


@pytest.mark.parametrize(("pk", "sk"), [("PIPELINE#p", "SLA#a#b"), ("PIPELINE#p", "TRIGGER#a"), ("p", "TRIGGER#a#b")])
def test_other_records_are_no_runs(pk: str, sk: str) -> None:
    with pytest.raises(InvalidValueError):
        keys.run_of(pk, sk, keys.RUN)


def test_forms() -> None:
    assert keys.sensor_sk("a") == "SENSOR#a"
    assert keys.marker_sk("cron", "2026-03-03", "up") == "MARKER#cron#2026-03-03#up"


@given(st.lists(st.integers(0, 9_999_999_999_999), min_size=2, max_size=5))
def test_events_sort_by_time(instants: list[int]) -> None:
    made = [keys.event_sk(millis, "X", "u") for millis in instants]
    assert sorted(made) == [keys.event_sk(millis, "X", "u") for millis in sorted(instants)]


@given(RUNS, st.integers(1, 500))
def test_execution_names_suit_step_functions(run: RunKey, attempt: int) -> None:
    name = keys.execution_name(run, attempt)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name)
    assert name == keys.execution_name(run, attempt)
    assert ("-rerun-" in name) or attempt == 1


@given(RUNS, RUNS, st.integers(1, 5), st.integers(1, 5))
def test_execution_names_differ(one: RunKey, other: RunKey, first: int, second: int) -> None:
    same = (one, first) == (other, second)
    assert (keys.execution_name(one, first) == keys.execution_name(other, second)) is same


def test_cleaned_names_do_not_collide() -> None:
    assert keys.execution_name(RunKey("a.b", "s", "2026-03-03"), 1) != keys.execution_name(
        RunKey("a_b", "s", "2026-03-03"), 1
    )


def test_the_parts_of_an_attempt_have_names_of_their_own() -> None:
    key = RunKey("p" * 90, "cron", "2026-03-02")
    first, second = keys.execution_name(key, 2), keys.execution_name(key, 2, 2)
    assert keys.execution_name(key, 2, 1) == first
    assert second.endswith("-part-2")
    assert len(second) == 80
    assert len({first, second, keys.execution_name(key, 3, 2), keys.execution_name(key, 2, 12)}) == 4

"""Retries after a failure: which budget pays, how long the pause is, and that neither is ever exceeded."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.retries import RetryVerdict, after_failure, no_retry_left, retry_source, trigger_retry_delay
from interlock.model.config import Job, JobType
from interlock.model.durations import Duration
from interlock.model.run import FailureCategory, RerunRecord, Source

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
TRANSIENT, CODE = Source.JOB_FAIL_TRANSIENT, Source.JOB_FAIL_CODE
CATEGORIES = (None, *FailureCategory)


def records(*sources: Source) -> list[RerunRecord]:
    return [
        RerunRecord(pipeline="gold", schedule="cron", date="2026-03-02", attempt=n, source=source, at=NOW)
        for n, source in enumerate(sources, start=2)
    ]


def a_job(retries: int = 2, code: int = 1, delay: timedelta = timedelta(0)) -> Job:
    return Job(
        type=JobType.GLUE,
        max_retries=retries,
        max_code_retries=code,
        retry_delay=Duration(microseconds=delay // timedelta(microseconds=1)),
    )


@pytest.mark.parametrize(
    ("category", "source"),
    [
        (FailureCategory.PERMANENT, CODE),
        (FailureCategory.TRANSIENT, TRANSIENT),
        (FailureCategory.TIMEOUT, TRANSIENT),
        (None, TRANSIENT),
    ],
)
def test_whose_fault_it_is_decides_which_budget_pays(category: FailureCategory | None, source: Source) -> None:
    assert retry_source(category) is source
    assert after_failure(a_job(), category, []).source is source


@pytest.mark.parametrize(
    ("category", "had", "retry", "budget", "used", "reason"),
    [
        (FailureCategory.TRANSIENT, (), True, 2, 0, "transient retry 1 of 2"),
        (FailureCategory.TRANSIENT, (TRANSIENT,), True, 2, 1, "transient retry 2 of 2"),
        (FailureCategory.TRANSIENT, (CODE, TRANSIENT), True, 2, 1, "transient retry 2 of 2"),
        (
            FailureCategory.TIMEOUT,
            (TRANSIENT, TRANSIENT),
            False,
            2,
            2,
            "transient retry budget used up: 2 of 2 (job.maxRetries); the failure is TIMEOUT, and"
            " job.maxCodeRetries (0 of 1 used) is for permanent failures",
        ),
        (FailureCategory.PERMANENT, (TRANSIENT, TRANSIENT), True, 1, 0, "code retry 1 of 1"),
        (
            FailureCategory.PERMANENT,
            (CODE,),
            False,
            1,
            1,
            "code retry budget used up: 1 of 1 (job.maxCodeRetries); the failure is PERMANENT, and"
            " job.maxRetries (0 of 2 used) is for failures that may pass by themselves",
        ),
        # Where the other budget is used up too, it is no news.
        (
            FailureCategory.PERMANENT,
            (CODE, TRANSIENT, TRANSIENT),
            False,
            1,
            1,
            "code retry budget used up: 1 of 1 (job.maxCodeRetries)",
        ),
        (None, (Source.MANUAL, Source.DATA_DRIFT), True, 2, 0, "transient retry 1 of 2"),
    ],
)
def test_each_budget_is_counted_from_its_own_records(
    category: FailureCategory | None,
    had: tuple[Source, ...],
    retry: bool,
    budget: int,
    used: int,
    reason: str,
) -> None:
    verdict = after_failure(a_job(), category, records(*had))
    source = CODE if category is FailureCategory.PERMANENT else TRANSIENT
    assert verdict == RetryVerdict(retry, source, budget, used, timedelta(0), reason)


def test_a_run_of_which_no_retry_is_known_has_had_none() -> None:
    assert no_retry_left(a_job(code=0), FailureCategory.PERMANENT, {}) == (
        "code retry budget used up: 0 of 0 (job.maxCodeRetries); the failure is PERMANENT, and"
        " job.maxRetries (0 of 2 used) is for failures that may pass by themselves"
    )


def test_no_budget_is_no_retry() -> None:
    verdict = after_failure(a_job(retries=0), None, [])
    assert (verdict.retry, verdict.reason) == (
        False,
        "transient retry budget used up: 0 of 0 (job.maxRetries); the failure is TRANSIENT, and"
        " job.maxCodeRetries (0 of 1 used) is for permanent failures",
    )


@pytest.mark.parametrize(
    ("delay", "had", "expected"),
    [
        (timedelta(0), (TRANSIENT, CODE), timedelta(0)),
        (timedelta(seconds=30), (), timedelta(seconds=30)),
        (timedelta(seconds=30), (TRANSIENT,), timedelta(seconds=60)),
        (timedelta(seconds=30), (TRANSIENT, CODE), timedelta(seconds=120)),
        (timedelta(seconds=30), (Source.MANUAL,), timedelta(seconds=30)),
        (timedelta(minutes=40), (TRANSIENT,), timedelta(hours=1)),
        (timedelta(hours=2), (), timedelta(hours=1)),
        (timedelta(days=3660), (TRANSIENT,) * 9, timedelta(hours=1)),
    ],
)
def test_the_pause_doubles_with_each_earlier_retry_up_to_an_hour(
    delay: timedelta, had: tuple[Source, ...], expected: timedelta
) -> None:
    assert after_failure(a_job(10, 3, delay), FailureCategory.TRANSIENT, records(*had)).delay == expected


def test_a_refused_retry_has_no_pause() -> None:
    assert after_failure(a_job(0, 0, timedelta(minutes=1)), None, []).delay == timedelta(0)


@given(
    st.lists(st.sampled_from(CATEGORIES), max_size=30),
    st.integers(0, 10),
    st.integers(0, 3),
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=3)),
)
def test_no_sequence_of_failures_exceeds_a_budget_or_the_longest_pause(
    failures: list[FailureCategory | None], retries: int, code: int, delay: timedelta
) -> None:
    job, had, pauses = a_job(retries, code, delay), list[Source](), list[timedelta]()
    for category in failures:
        verdict = after_failure(job, category, records(*had))
        assert verdict.retry == (verdict.used < verdict.budget)
        if verdict.retry:
            had.append(verdict.source)
            pauses.append(verdict.delay)
    counts = Counter(had)
    permanent = failures.count(FailureCategory.PERMANENT)
    assert counts[CODE] == min(permanent, code)
    assert counts[TRANSIENT] == min(len(failures) - permanent, retries)
    hour = timedelta(hours=1)
    assert pauses == [min(delay * 2**earlier, hour) for earlier in range(len(pauses))]


@pytest.mark.parametrize(
    ("failures", "max_attempts", "seconds"),
    [
        (1, 3, 30),
        (2, 3, 60),
        (3, 3, 120),
        (4, 3, None),
        (4, 4, 240),
        (5, 4, None),
        (1, 0, None),
        (0, 3, 30),
    ],
)
def test_refused_starts_are_tried_again_after_30_60_120_seconds(
    failures: int, max_attempts: int, seconds: int | None
) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert trigger_retry_delay(failures, max_attempts) == expected

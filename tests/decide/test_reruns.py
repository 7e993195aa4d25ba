"""Rerun requests: every obstacle, their order, and budgets that no sequence of requests exceeds."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.decide.reruns import (
    Budget,
    RerunRefusal,
    RerunVerdict,
    budget_key,
    budget_of,
    budgets_of,
    decide_rerun,
    kind_name,
    used,
)
from interlock.decide.transitions import open_attempt
from interlock.model.config import Job, JobType
from interlock.model.errors import InvalidValueError
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RerunRecord, RerunRequest, Run, RunStatus, Source

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
KEY = RunKey("gold-revenue", "cron", "2026-03-02")
JOB = Job(type=JobType.GLUE, max_retries=2, max_code_retries=1, max_drift_reruns=2, max_manual_reruns=3)
REQUESTABLE = (Source.MANUAL, Source.DATA_DRIFT, Source.LATE_DATA, Source.UPSTREAM)


def a_run(status: RunStatus = RunStatus.COMPLETED, reason: FinalReason | None = None) -> Run:
    opened = open_attempt(None, KEY, Source.FIRST, NOW, config_version="v1", lease_until=NOW + timedelta(hours=5))
    return replace(opened, status=status, final_reason=reason, run_id="run-1")


def a_request(source: Source = Source.MANUAL, *, force: bool = False) -> RerunRequest:
    return RerunRequest(
        pipeline=KEY.pipeline, schedule=KEY.schedule, date=KEY.date, id="r1", source=source, at=NOW, force=force
    )


def records(*sources: Source, first: int = 2) -> list[RerunRecord]:
    return [
        RerunRecord(
            pipeline=KEY.pipeline, schedule=KEY.schedule, date=KEY.date, attempt=first + n, source=source, at=NOW
        )
        for n, source in enumerate(sources)
    ]


def decide(
    request: RerunRequest,
    run: Run | None,
    reruns: list[RerunRecord],
    *,
    job: Job = JOB,
    excluded: str | None = None,
    changed: bool = True,
    job_running: bool = False,
    job_unknown: str = "",
) -> RerunVerdict:
    return decide_rerun(
        request,
        run,
        job,
        reruns,
        excluded=excluded,
        changed=changed,
        job_running=job_running,
        job_unknown=job_unknown,
    )


@pytest.mark.parametrize(
    ("source", "budget", "key"),
    [
        (Source.MANUAL, 3, "job.maxManualReruns"),
        (Source.DATA_DRIFT, 2, "job.maxDriftReruns"),
        (Source.LATE_DATA, 2, "job.maxDriftReruns"),
        (Source.UPSTREAM, 2, "job.maxDriftReruns"),
        (Source.JOB_FAIL_TRANSIENT, 2, "job.maxRetries"),
        (Source.JOB_FAIL_CODE, 1, "job.maxCodeRetries"),
    ],
)
def test_each_source_has_its_budget_and_the_key_that_sets_it(source: Source, budget: int, key: str) -> None:
    assert (budget_of(JOB, source), budget_key(source)) == (budget, key)


@pytest.mark.parametrize("source", [Source.FIRST, Source.REOPEN])
def test_opening_and_re_opening_have_no_budget(source: Source) -> None:
    with pytest.raises(InvalidValueError, match=f"{source.value}.* have no budget"):
        budget_of(JOB, source)
    with pytest.raises(InvalidValueError, match=f"{source.value}.* have no budget"):
        used([], source)
    with pytest.raises(InvalidValueError, match=f"{source.value}.* have no budget"):
        budget_key(source)


def test_the_budgets_of_a_run_as_people_are_shown_them() -> None:
    reruns = records(Source.MANUAL, Source.UPSTREAM, Source.LATE_DATA, Source.JOB_FAIL_TRANSIENT)
    assert budgets_of(JOB, reruns) == {
        "manual": Budget(used=1, of=3),
        "drift": Budget(used=2, of=2),
        "transient": Budget(used=1, of=2),
        "code": Budget(used=0, of=1),
    }
    assert budgets_of(None, reruns) == {}


def test_new_data_is_one_kind_however_it_was_noticed() -> None:
    reruns = records(Source.DATA_DRIFT, Source.LATE_DATA, Source.UPSTREAM, Source.MANUAL, Source.JOB_FAIL_CODE)
    assert {source: used(reruns, source) for source in REQUESTABLE} == {
        Source.MANUAL: 1,
        Source.DATA_DRIFT: 3,
        Source.LATE_DATA: 3,
        Source.UPSTREAM: 3,
    }
    assert used(reruns, Source.JOB_FAIL_CODE) == 1
    assert used(reruns, Source.JOB_FAIL_TRANSIENT) == 0


def test_a_first_attempt_that_was_asked_for_uses_no_budget() -> None:
    assert used(records(Source.MANUAL, Source.MANUAL, first=1), Source.MANUAL) == 1


SPENT = records(Source.MANUAL, Source.MANUAL, Source.MANUAL)
OBSTACLES: list[tuple[str, Run | None, list[RerunRecord], str | None, bool, bool, RerunRefusal, str]] = [
    # Each row has every later obstacle too, as far as they go together: the first is the one named.
    (
        "excluded",
        a_run(RunStatus.RUNNING),
        SPENT,
        "2026-03-02 is excluded: calendar us-federal",
        False,
        True,
        RerunRefusal("excluded"),
        "2026-03-02 is excluded: calendar us-federal",
    ),
    ("excluded, never ran", None, [], "it is a Sunday", True, False, RerunRefusal("excluded"), "it is a Sunday"),
    (
        "active",
        a_run(RunStatus.RUNNING),
        SPENT,
        None,
        False,
        True,
        RerunRefusal("active"),
        "the run is active: attempt 1 is RUNNING",
    ),
    (
        "waiting out its retry delay",
        a_run(RunStatus.FAILED),
        [],
        None,
        True,
        False,
        RerunRefusal("active"),
        "the run is active: attempt 1 is FAILED",
    ),
    (
        "job running",
        a_run(RunStatus.FAILED_FINAL, FinalReason.POLL_EXHAUSTED),
        SPENT,
        None,
        True,
        True,
        RerunRefusal("job-running"),
        "the job of attempt 1 is still running: ask again when it has ended",
    ),
    (
        "budget",
        a_run(),
        SPENT,
        None,
        False,
        False,
        RerunRefusal("budget"),
        "manual rerun budget used up: 3 of 3 (job.maxManualReruns)",
    ),
    (
        "unchanged",
        a_run(),
        SPENT[:2],
        None,
        False,
        False,
        RerunRefusal("unchanged"),
        "attempt 1 succeeded and no sensor it reads has changed since: force runs it all the same",
    ),
]


@pytest.mark.parametrize(
    ("run", "reruns", "excluded", "changed", "job_running", "code", "reason"),
    [row[1:] for row in OBSTACLES],
    ids=[row[0] for row in OBSTACLES],
)
def test_the_first_obstacle_is_named(
    run: Run | None,
    reruns: list[RerunRecord],
    excluded: str | None,
    changed: bool,
    job_running: bool,
    code: RerunRefusal,
    reason: str,
) -> None:
    verdict = decide(a_request(), run, reruns, excluded=excluded, changed=changed, job_running=job_running)
    assert verdict == RerunVerdict(False, reason, code)


@pytest.mark.parametrize(("schedule", "option"), [("cron", ""), ("stream", ""), ("evening", " --schedule evening")])
@pytest.mark.parametrize("force", [False, True])
def test_a_job_that_cannot_be_asked_about_is_not_said_to_run(schedule: str, option: str, force: bool) -> None:
    run = replace(a_run(RunStatus.FAILED_FINAL, FinalReason.POLL_EXHAUSTED), schedule=schedule)
    verdict = decide(a_request(force=force), run, [], job_unknown="no right to ask Glue")
    assert verdict.code is RerunRefusal("job-unknown")
    assert verdict.reason == (
        "nobody knows whether the job of attempt 1 is over: its target could not be asked (no right to ask Glue). "
        "Ask again; if it still cannot be asked, look there, and once the job is over run "
        f"`interlock job report {run.pipeline} --date {run.date}{option} --attempt 1 fail` (or success)"
    )


@pytest.mark.parametrize("row", [row for row in OBSTACLES if row[6] is not RerunRefusal.UNCHANGED], ids=lambda r: r[0])
def test_force_passes_nothing_but_the_circuit_breaker(
    row: tuple[str, Run | None, list[RerunRecord], str | None, bool, bool, RerunRefusal, str],
) -> None:
    _, run, reruns, excluded, changed, job_running, code, _ = row
    forced = decide(a_request(force=True), run, reruns, excluded=excluded, changed=changed, job_running=job_running)
    assert forced.code is code


@pytest.mark.parametrize(
    ("source", "status", "changed", "force", "accepted"),
    [
        (Source.MANUAL, RunStatus.COMPLETED, False, True, True),
        (Source.MANUAL, RunStatus.COMPLETED, True, False, True),
        (Source.MANUAL, RunStatus.COMPLETED, False, False, False),
        (Source.MANUAL, RunStatus.FAILED_FINAL, False, False, True),
        (Source.DATA_DRIFT, RunStatus.COMPLETED, False, False, False),
        (Source.LATE_DATA, RunStatus.COMPLETED, False, False, False),
        (Source.UPSTREAM, RunStatus.COMPLETED, False, False, True),
    ],
)
def test_the_circuit_breaker(source: Source, status: RunStatus, changed: bool, force: bool, accepted: bool) -> None:
    run = a_run(status, FinalReason.RETRIES_USED_UP if status is RunStatus.FAILED_FINAL else None)
    assert decide(a_request(source, force=force), run, [], changed=changed).accepted is accepted


def test_an_accepted_request_says_which_of_how_many_it_is() -> None:
    verdict = decide(a_request(Source.LATE_DATA), a_run(), records(Source.DATA_DRIFT))
    assert verdict == RerunVerdict(True, "late-data rerun 2 of 2", None)


def test_a_date_that_never_ran_is_accepted_even_without_a_budget_for_reruns() -> None:
    job = replace(JOB, max_manual_reruns=0)
    verdict = decide(a_request(), None, [], job=job, changed=False)
    assert verdict == RerunVerdict(True, "2026-03-02 has not run yet: this is its first attempt", None)


@pytest.mark.parametrize("source", sorted(set(Source) - set(REQUESTABLE)))
def test_what_nobody_can_request(source: Source) -> None:
    with pytest.raises(InvalidValueError, match=r"cannot be requested by .*it is one of data-drift, late-data"):
        decide(a_request(source), a_run(), [])


def test_kinds_have_names_people_use() -> None:
    assert [kind_name(source) for source in (Source.MANUAL, Source.JOB_FAIL_CODE, Source.JOB_FAIL_TRANSIENT)] == [
        "manual rerun",
        "code retry",
        "transient retry",
    ]


@given(
    st.lists(st.tuples(st.sampled_from(REQUESTABLE), st.booleans(), st.booleans()), max_size=30),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_no_sequence_of_requests_exceeds_a_budget(
    requests: list[tuple[Source, bool, bool]], manual: int, drift: int
) -> None:
    job = Job(type=JobType.GLUE, max_manual_reruns=manual, max_drift_reruns=drift)
    reruns: list[RerunRecord] = []
    for source, force, changed in requests:
        verdict = decide(a_request(source, force=force), a_run(), reruns, job=job, changed=changed)
        assert verdict.accepted == (verdict.code is None)
        if verdict.accepted:
            reruns += records(source, first=len(reruns) + 2)
    by_kind = Counter("manual" if one.source is Source.MANUAL else "drift" for one in reruns)
    assert by_kind["manual"] <= manual
    assert by_kind["drift"] <= drift
    # ... and what was asked for with new data each time was not withheld before the budget was used up.
    asked = sum(1 for source, force, changed in requests if source is Source.MANUAL and (force or changed))
    assert by_kind["manual"] == min(asked, manual)

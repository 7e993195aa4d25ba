"""The table of SPEC 5 'Run status', checked from the outside: every pair of statuses, and random walks."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.decide.transitions import (
    ALLOWED,
    FIRST_ATTEMPT,
    NEW_ATTEMPT,
    REASONS,
    Opening,
    allowed,
    amend,
    job_may_have_started,
    open_attempt,
    remember_payload,
    step,
)
from interlock.model.errors import IllegalTransitionError
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, Run, RunStatus, Source

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=7)
KEY = RunKey("gold-revenue", "cron", "2026-03-02")
OPENING: Opening = {"config_version": "v1", "lease_until": NOW + timedelta(hours=5)}

PENDING, TRIGGERING, RUNNING = RunStatus.PENDING, RunStatus.TRIGGERING, RunStatus.RUNNING
FAILED, POLLED_OUT = RunStatus.FAILED, RunStatus.JOB_POLL_EXHAUSTED
COMPLETED, FINAL = RunStatus.COMPLETED, RunStatus.FAILED_FINAL

WITHIN_AN_ATTEMPT = {
    (PENDING, TRIGGERING),
    (TRIGGERING, RUNNING),
    (TRIGGERING, FAILED),
    (RUNNING, COMPLETED),
    (RUNNING, FAILED),
    (RUNNING, POLLED_OUT),
    (POLLED_OUT, FINAL),
    (PENDING, FINAL),
    (TRIGGERING, FINAL),
    (RUNNING, FINAL),
    (FAILED, FINAL),
}


ENDS_BY = {
    PENDING: {"validation-exhausted", "deadline-expired", "withdrawn", "cancelled", "stale", "infra"},
    TRIGGERING: {"uncertain", "withdrawn", "cancelled", "stale", "infra"},
    RUNNING: {"cancelled", "stale", "infra"},
    FAILED: {"retries-used-up", "trigger-exhausted", "withdrawn", "cancelled", "stale", "infra"},
    POLLED_OUT: {"poll-exhausted", "stale", "infra"},
}
REQUESTS = {"manual", "data-drift", "late-data", "upstream"}
OPENED_AGAIN_BY = {
    FAILED: {"job-fail-transient", "job-fail-code"},
    COMPLETED: REQUESTS,
    FINAL: REQUESTS | {"reopen"},
}


def named(choices: set[str]) -> str:
    """As an error lists what there is to choose from."""
    return ", ".join(sorted(choices))


def a_run(status: RunStatus = PENDING, reason: FinalReason | None = None, run_id: str = "run-1") -> Run:
    opened = open_attempt(None, KEY, Source.FIRST, NOW, **OPENING)
    return replace(opened, status=status, final_reason=reason, run_id=run_id)


def a_reason(before: RunStatus) -> FinalReason:
    return FinalReason(min(ENDS_BY[before]))


@pytest.mark.parametrize("after", RunStatus)
@pytest.mark.parametrize("before", RunStatus)
def test_every_pair_of_statuses_is_as_the_table_says(before: RunStatus, after: RunStatus) -> None:
    run = a_run(before)
    reason = a_reason(before) if after is FINAL and before in ENDS_BY else None
    if (before, after) in WITHIN_AN_ATTEMPT:
        stepped = step(run, after, now=LATER, final_reason=reason)
        assert (stepped.status, stepped.version, stepped.attempt) == (after, run.version + 1, run.attempt)
        assert stepped.updated_at == LATER
        assert stepped.final_reason == reason
    else:
        late_success = (before, after) == (FINAL, COMPLETED)
        hint = "; a new attempt is opened by" if after is PENDING else "; it ended by" if late_success else "$"
        with pytest.raises(IllegalTransitionError, match=rf"{KEY} attempt 1 cannot go from {before} to {after}{hint}"):
            step(run, after, now=LATER, final_reason=reason)


def test_the_table_names_every_status() -> None:
    assert set(ALLOWED) == set(RunStatus)
    assert REASONS == ENDS_BY
    assert NEW_ATTEMPT == OPENED_AGAIN_BY
    assert REQUESTS | {"first"} == FIRST_ATTEMPT


@pytest.mark.parametrize(
    ("before", "path", "reason"),
    [
        (RUNNING, (POLLED_OUT, FINAL), FinalReason.POLL_EXHAUSTED),
        (TRIGGERING, (FAILED, FINAL), FinalReason.TRIGGER_EXHAUSTED),
        (RUNNING, (FAILED, FINAL), FinalReason.RETRIES_USED_UP),
        (TRIGGERING, (RUNNING, COMPLETED), None),
    ],
)
def test_one_commit_takes_several_edges_and_one_version(
    before: RunStatus, path: tuple[RunStatus, ...], reason: FinalReason | None
) -> None:
    run = a_run(before)
    stepped = step(run, *path, now=LATER, final_reason=reason, ended_at=LATER, message="over")
    assert stepped == replace(
        run,
        status=path[-1],
        version=run.version + 1,
        updated_at=LATER,
        ended_at=LATER,
        message="over",
        final_reason=reason,
    )


def test_an_illegal_edge_inside_a_path_is_named() -> None:
    with pytest.raises(IllegalTransitionError, match="cannot go from FAILED to COMPLETED"):
        step(a_run(RUNNING), FAILED, COMPLETED, now=LATER)


def test_a_path_can_not_pass_through_a_final_status_to_a_late_success() -> None:
    with pytest.raises(IllegalTransitionError, match="cannot go from FAILED_FINAL to COMPLETED"):
        step(a_run(RUNNING), POLLED_OUT, FINAL, COMPLETED, now=LATER)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(IllegalTransitionError, match="no status to take"):
        step(a_run(), now=LATER)


@pytest.mark.parametrize("reason", FinalReason)
@pytest.mark.parametrize("before", sorted(ENDS_BY))
def test_a_final_failure_has_a_reason_that_fits_where_it_was(before: RunStatus, reason: FinalReason) -> None:
    run = a_run(before)
    if reason in ENDS_BY[before]:
        assert step(run, FINAL, now=LATER, final_reason=reason).final_reason is reason
    else:
        with pytest.raises(
            IllegalTransitionError, match=f"the final_reason {reason}: it is one of {named(ENDS_BY[before])}"
        ):
            step(run, FINAL, now=LATER, final_reason=reason)


@pytest.mark.parametrize("before", sorted(ENDS_BY))
def test_stale_and_infra_end_any_active_status(before: RunStatus) -> None:
    for reason in (FinalReason.STALE, FinalReason.INFRA):
        assert step(a_run(before), FINAL, now=LATER, final_reason=reason).status is FINAL


def test_a_final_failure_without_a_reason_is_refused() -> None:
    with pytest.raises(IllegalTransitionError, match="with no final_reason: "):
        step(a_run(), FINAL, now=LATER)


def test_only_a_final_failure_has_a_reason() -> None:
    with pytest.raises(IllegalTransitionError, match="cannot be TRIGGERING because of stale"):
        step(a_run(), TRIGGERING, now=LATER, final_reason=FinalReason.STALE)


@pytest.mark.parametrize(
    ("reason", "run_id", "late_success"),
    [
        (FinalReason.POLL_EXHAUSTED, "run-1", True),
        (FinalReason.UNCERTAIN, "run-1", True),
        (FinalReason.STALE, "run-1", True),
        (FinalReason.INFRA, "run-1", True),
        (FinalReason.POLL_EXHAUSTED, "", False),
        (FinalReason.STALE, "", False),
        (FinalReason.INFRA, "", False),
        (FinalReason.VALIDATION_EXHAUSTED, "run-1", False),
        (FinalReason.DEADLINE_EXPIRED, "run-1", False),
        (FinalReason.TRIGGER_EXHAUSTED, "run-1", False),
        (FinalReason.RETRIES_USED_UP, "run-1", False),
        (FinalReason.CANCELLED, "run-1", False),
        (FinalReason.WITHDRAWN, "run-1", False),
    ],
)
def test_a_late_success_needs_a_job_that_may_have_started(reason: FinalReason, run_id: str, late_success: bool) -> None:
    run = a_run(FINAL, reason, run_id)
    assert job_may_have_started(run) is late_success
    assert [target for target in RunStatus if allowed(run, target)] == ([COMPLETED] if late_success else [])
    if late_success:
        done = step(run, COMPLETED, now=LATER)
        assert (done.status, done.attempt, done.final_reason) == (COMPLETED, run.attempt, None)
    else:
        with pytest.raises(IllegalTransitionError, match=f"it ended by {reason}"):
            step(run, COMPLETED, now=LATER)


def test_an_active_run_is_not_asked_about_a_lost_job() -> None:
    assert not job_may_have_started(a_run(RUNNING))


def test_amending_keeps_the_status_and_raises_the_version() -> None:
    run = a_run(TRIGGERING)
    amended = amend(run, now=LATER, trigger_failures=2, message="throttled")
    assert amended == replace(run, trigger_failures=2, message="throttled", version=run.version + 1, updated_at=LATER)


@pytest.mark.parametrize("status", [COMPLETED, FINAL])
def test_a_terminal_run_is_not_amended(status: RunStatus) -> None:
    with pytest.raises(IllegalTransitionError, match=f"is {status}"):
        amend(a_run(status, FinalReason.STALE if status is FINAL else None), now=LATER, message="too late")


def test_amending_gives_no_final_reason() -> None:
    with pytest.raises(IllegalTransitionError, match="only FAILED_FINAL has a final_reason"):
        amend(a_run(RUNNING), now=LATER, final_reason=FinalReason.STALE)


def test_late_data_is_remembered_by_a_completed_run_and_by_no_other() -> None:
    run = a_run(COMPLETED)
    known = remember_payload(run, {"count": 7}, now=LATER)
    assert known == replace(run, trigger_payload={"count": 7}, version=run.version + 1, updated_at=LATER)
    for status in set(RunStatus) - {COMPLETED}:
        with pytest.raises(IllegalTransitionError, match=f"is {status}"):
            remember_payload(a_run(status), {"count": 7}, now=LATER)


# ------------------------------------------------------------------------------------------------ new attempts


def test_the_first_attempt() -> None:
    tick = NOW - timedelta(seconds=1)
    opening: Opening = {**OPENING, "opened_by": "cron tick", "requested_by": "ann", "tick_at": tick}
    run = open_attempt(None, KEY, Source.FIRST, NOW, **opening)
    assert run == Run(
        pipeline="gold-revenue",
        schedule="cron",
        date="2026-03-02",
        status=PENDING,
        version=1,
        attempt=1,
        source=Source.FIRST,
        config_version="v1",
        opened_at=NOW,
        first_opened_at=NOW,
        updated_at=NOW,
        opened_by="cron tick",
        requested_by="ann",
        lease_until=NOW + timedelta(hours=5),
        tick_at=tick,
    )


def test_an_attempt_of_which_nothing_is_said_was_opened_and_requested_by_nobody() -> None:
    first = open_attempt(None, KEY, Source.FIRST, NOW, **OPENING)
    again = open_attempt(a_run(COMPLETED), KEY, Source.MANUAL, LATER, **OPENING)
    assert {first.opened_by, first.requested_by, again.opened_by, again.requested_by} == {""}


def test_a_run_without_a_tick_takes_that_of_its_next_attempt() -> None:
    opening: Opening = {**OPENING, "tick_at": LATER}
    assert open_attempt(a_run(COMPLETED), KEY, Source.MANUAL, LATER, **opening).tick_at == LATER


@pytest.mark.parametrize("source", Source)
def test_what_may_open_a_run_that_never_was(source: Source) -> None:
    if source in REQUESTS | {"first"}:
        assert open_attempt(None, KEY, source, NOW, **OPENING).source is source
    else:
        with pytest.raises(
            IllegalTransitionError, match=f"{source} cannot open its first; .* {named(REQUESTS | {'first'})}$"
        ):
            open_attempt(None, KEY, source, NOW, **OPENING)


def test_a_new_attempt_forgets_the_old_one_and_keeps_what_belongs_to_the_run() -> None:
    tick, done = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)
    old = replace(
        a_run(COMPLETED),
        version=9,
        attempt=3,
        opened_by="cron tick",
        tick_at=tick,
        retry_at=NOW,
        job_id="jr_1",
        passed_at=NOW,
        triggered_at=NOW,
        job_started_at=NOW,
        ended_at=NOW,
        first_completed_at=done,
        trigger_failures=2,
        trigger_payload={"status": "ready"},
        post_run_sensors={"rows": {"count": 1}},
        message="succeeded",
        sla_closed=True,
        slot="warehouse",
    )
    opening: Opening = {
        "config_version": "v2",
        "lease_until": LATER,
        "opened_by": "a person",
        "requested_by": "ann",
        "tick_at": LATER,
    }
    new = open_attempt(old, KEY, Source.MANUAL, LATER, **opening)
    assert new == Run(
        pipeline="gold-revenue",
        schedule="cron",
        date="2026-03-02",
        status=PENDING,
        version=10,
        attempt=4,
        source=Source.MANUAL,
        config_version="v2",
        opened_at=LATER,
        first_opened_at=NOW,
        updated_at=LATER,
        opened_by="a person",
        requested_by="ann",
        lease_until=LATER,
        tick_at=tick,
        first_completed_at=done,
        sla_closed=True,
        slot="warehouse",
    )


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("status", RunStatus)
def test_which_status_which_source_may_open_again(status: RunStatus, source: Source) -> None:
    run = a_run(status, FinalReason.VALIDATION_EXHAUSTED if status is FINAL else None)
    if source in OPENED_AGAIN_BY.get(status, set()):
        opened = open_attempt(run, KEY, source, LATER, **OPENING)
        assert (opened.status, opened.attempt, opened.version) == (PENDING, 2, run.version + 1)
        assert opened.final_reason is None
    else:
        known = f".* {named(OPENED_AGAIN_BY[status])}$" if status in OPENED_AGAIN_BY else "; a new attempt"
        with pytest.raises(IllegalTransitionError, match=f"from {status} to PENDING{known}"):
            open_attempt(run, KEY, source, LATER, **OPENING)


def test_a_failed_job_is_retried_in_one_commit() -> None:
    run = a_run(RUNNING)
    retried = open_attempt(run, KEY, Source.JOB_FAIL_TRANSIENT, LATER, via=(FAILED,), **OPENING)
    assert (retried.status, retried.attempt, retried.version) == (PENDING, 2, run.version + 1)


def test_the_way_to_a_new_attempt_is_checked_too() -> None:
    with pytest.raises(IllegalTransitionError, match="from PENDING to FAILED"):
        open_attempt(a_run(PENDING), KEY, Source.JOB_FAIL_CODE, LATER, via=(FAILED,), **OPENING)


def test_a_run_does_not_open_an_attempt_of_another() -> None:
    other = RunKey("gold-revenue", "cron", "2026-03-03")
    with pytest.raises(IllegalTransitionError, match="that is another run"):
        open_attempt(a_run(COMPLETED), other, Source.MANUAL, LATER, **OPENING)


# ------------------------------------------------------------------------------------------------ random walks


moves = st.lists(
    st.tuples(st.sampled_from(RunStatus), st.sampled_from([None, *FinalReason]), st.sampled_from([None, *Source])),
    max_size=40,
)


def _try(run: Run, target: RunStatus, reason: FinalReason | None, source: Source | None) -> Run:
    try:
        if source is not None:
            return open_attempt(run, KEY, source, LATER, **OPENING)
        if target is TRIGGERING:
            return step(run, target, now=LATER, run_id=f"run-{run.attempt}")
        return step(run, target, now=LATER, final_reason=reason)
    except IllegalTransitionError:
        return run


@given(moves)
def test_no_walk_leaves_a_terminal_status_but_by_a_new_attempt_or_a_late_success(
    walk: list[tuple[RunStatus, FinalReason | None, Source | None]],
) -> None:
    run = open_attempt(None, KEY, Source.FIRST, NOW, **OPENING)
    for target, reason, source in walk:
        before, run = run, _try(run, target, reason, source)
        if run is before:
            continue
        assert run.version == before.version + 1
        assert (run.status is FINAL) == (run.final_reason is not None)
        assert run.attempt - before.attempt == (1 if run.status is PENDING else 0)
        if before.status.terminal and run.attempt == before.attempt:
            assert (before.status, run.status) == (FINAL, COMPLETED)
            assert before.run_id
            assert before.final_reason not in (FinalReason.RETRIES_USED_UP, FinalReason.TRIGGER_EXHAUSTED)
        if run.attempt > before.attempt:
            assert before.status is FAILED or before.status.terminal
            assert run.run_id == ""

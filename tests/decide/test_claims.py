"""Who may take the job of an external run: one claimant of an attempt, once its rules pass."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.decide.checks import RuleResult
from interlock.decide.claims import ClaimStep, ClaimVerdict, decide_claim
from interlock.decide.rules import Verdict
from interlock.decide.transitions import open_attempt
from interlock.model.config import Check
from interlock.model.keys import RunKey
from interlock.model.run import Cancel, FinalReason, Run, RunStatus, Source

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
KEY = RunKey("gold", "cron", "2026-03-02")
PASSED = Verdict(True, ())
FAILED = Verdict(False, (RuleResult("rows", Check.EXISTS, False, None, None, "no sensor rows", None),))
PENDING = open_attempt(None, KEY, Source.FIRST, NOW, config_version="v", lease_until=NOW)


def of(status: RunStatus, **changes: Any) -> Run:
    return replace(PENDING, status=status, **changes)


RUNNING = of(RunStatus.RUNNING)
TAKEN = of(RunStatus.RUNNING, claim_id="other", claimed_by="airflow")


def claimed(run: Run | None, verdict: Verdict = PASSED, **facts: Any) -> ClaimVerdict:
    known: dict[str, Any] = {"brake": None, "excluded": None, "not_yet": None, "ended": False, **facts}
    return decide_claim(run, "mine", verdict, **known)


@pytest.mark.parametrize(
    ("run", "verdict", "step", "reason"),
    [
        (None, PASSED, ClaimStep.OPEN, "0 of 0 rules pass"),
        (None, FAILED, ClaimStep.LATER, "0 of 1 rule passes; no sensor rows"),
        (PENDING, PASSED, ClaimStep.START, "0 of 0 rules pass"),
        (PENDING, FAILED, ClaimStep.LATER, "0 of 1 rule passes; no sensor rows"),
        (of(RunStatus.PENDING, passed_at=NOW), FAILED, ClaimStep.START, "0 of 1 rule passes; no sensor rows"),
        (of(RunStatus.TRIGGERING), FAILED, ClaimStep.TAKE, "attempt 1 was started, and nobody has claimed it"),
        (RUNNING, FAILED, ClaimStep.TAKE, "attempt 1 was started, and nobody has claimed it"),
        (TAKEN, PASSED, ClaimStep.REFUSED, "attempt 1 is claimed by airflow already"),
        (of(RunStatus.TRIGGERING, claim_id="other"), PASSED, ClaimStep.REFUSED, "attempt 1 is claimed already"),
        (of(RunStatus.RUNNING, claim_id="mine"), FAILED, ClaimStep.HELD, "attempt 1 is claimed"),
        (of(RunStatus.FAILED), PASSED, ClaimStep.LATER, "attempt 1 failed, and is tried again"),
        (
            of(RunStatus.FAILED, retry_at=NOW),
            PASSED,
            ClaimStep.LATER,
            "attempt 1 failed, and is tried again at 2026-03-02T08:00:00Z",
        ),
        (
            of(RunStatus.COMPLETED, claim_id="mine"),
            PASSED,
            ClaimStep.REFUSED,
            "it is done (attempt 1): `interlock rerun` repeats it",
        ),
        (
            of(RunStatus.FAILED_FINAL, final_reason=FinalReason.VALIDATION_EXHAUSTED),
            PASSED,
            ClaimStep.LATER,
            "attempt 1 ended (validation-exhausted): a sensor write that makes its rules pass re-opens it",
        ),
        (
            of(RunStatus.FAILED_FINAL, final_reason=FinalReason.POLL_EXHAUSTED, claim_id="mine"),
            PASSED,
            ClaimStep.REFUSED,
            "attempt 1 ended (poll-exhausted): `interlock rerun` opens another",
        ),
        (
            of(RunStatus.JOB_POLL_EXHAUSTED),
            PASSED,
            ClaimStep.REFUSED,
            "attempt 1 ended (JOB_POLL_EXHAUSTED): `interlock rerun` opens another",
        ),
    ],
)
def test_a_claim(run: Run | None, verdict: Verdict, step: ClaimStep, reason: str) -> None:
    assert claimed(run, verdict) == ClaimVerdict(step, reason)


@pytest.mark.parametrize(
    ("run", "facts", "step", "reason"),
    [
        (None, {"excluded": "a holiday"}, ClaimStep.REFUSED, "a holiday"),
        (None, {"not_yet": "silver has not completed"}, ClaimStep.LATER, "silver has not completed"),
        (None, {"brake": "gold is a dry run"}, ClaimStep.REFUSED, "nothing is started: gold is a dry run"),
        # An open run is not asked about calendar, clock and upstreams again; the brakes always hold.
        (PENDING, {"excluded": "a holiday", "not_yet": "soon"}, ClaimStep.START, "0 of 0 rules pass"),
        (PENDING, {"brake": "gold was deleted"}, ClaimStep.REFUSED, "nothing is started: gold was deleted"),
        (RUNNING, {"brake": "gold was deleted"}, ClaimStep.REFUSED, "nothing is started: gold was deleted"),
        (of(RunStatus.RUNNING, claim_id="mine"), {"brake": "gold was deleted"}, ClaimStep.HELD, "attempt 1 is claimed"),
        (of(RunStatus.RUNNING, cancel=Cancel(at=NOW)), {}, ClaimStep.REFUSED, "attempt 1 is being cancelled"),
        (
            of(RunStatus.COMPLETED, cancel=Cancel(at=NOW)),
            {},
            ClaimStep.REFUSED,
            "it is done (attempt 1): `interlock rerun` repeats it",
        ),
        (RUNNING, {"ended": True}, ClaimStep.LATER, "the job of attempt 1 has ended already"),
        (of(RunStatus.RUNNING, claim_id="mine"), {"ended": True}, ClaimStep.REFUSED, "attempt 1 is claimed already"),
    ],
)
def test_what_else_is_asked(run: Run | None, facts: dict[str, Any], step: ClaimStep, reason: str) -> None:
    assert claimed(run, **facts) == ClaimVerdict(step, reason)

"""May somebody take the job of a run that is his to do (`interlock ready --claim`, SPEC 16)?

Only jobs of type `external` are claimed: Interlock says that it is safe, somebody else's scheduler runs the job and
reports how it ended. A claim is what keeps two schedulers from running it at once, so exactly one claimant of an
attempt is answered yes. Not yet is told apart from not any more: the first is worth waiting for.
"""

from enum import StrEnum
from typing import Final, assert_never

import msgspec

from interlock.decide.rules import Verdict
from interlock.model.run import FinalReason, Run, RunStatus
from interlock.model.times import format_instant

_STARTED: Final = frozenset({RunStatus.TRIGGERING, RunStatus.RUNNING})


class ClaimStep(StrEnum):
    """What is to be done for a claim."""

    OPEN = "open"  # there is no run yet: open it, then look again
    START = "start"  # it waits and its rules pass: start it, as the claimant's
    TAKE = "take"  # it was started, and nobody has taken it
    HELD = "held"  # by this very claim: the answer got lost, and is given again
    LATER = "later"  # not yet
    REFUSED = "refused"  # and waiting would not change it


class ClaimVerdict(msgspec.Struct, frozen=True):
    """The step, and the sentence that says why."""

    step: ClaimStep
    reason: str


def decide_claim(
    run: Run | None,
    claim_id: str,
    verdict: Verdict,
    *,
    brake: str | None,
    excluded: str | None,
    not_yet: str | None,
    ended: bool,
) -> ClaimVerdict:
    """Decide a claim.

    `brake`: why nothing of the pipeline may be started. `excluded`: the calendar's reason against the period; an open
    run is not asked about it again. `not_yet`: why no run of the period may be opened so far, by the clock or the
    upstreams. `ended`: the job log has the outcome of the attempt.
    """
    if run is not None and _is_held(run, claim_id, ended=ended):
        return ClaimVerdict(ClaimStep.HELD, f"attempt {run.attempt} is claimed")
    if brake is not None:
        return ClaimVerdict(ClaimStep.REFUSED, f"nothing is started: {brake}")
    if run is not None and run.active and run.cancel is not None:
        return ClaimVerdict(ClaimStep.REFUSED, f"attempt {run.attempt} is being cancelled")
    if run is not None:
        return _of_run(run, verdict, ended=ended)
    if excluded is not None:
        return ClaimVerdict(ClaimStep.REFUSED, excluded)
    if not_yet is not None:
        return ClaimVerdict(ClaimStep.LATER, not_yet)
    return ClaimVerdict(ClaimStep.OPEN if verdict.passed else ClaimStep.LATER, verdict.summary())


def _is_held(run: Run, claim_id: str, *, ended: bool) -> bool:
    return run.status in _STARTED and run.claim_id == claim_id and not ended


def _of_run(run: Run, verdict: Verdict, *, ended: bool) -> ClaimVerdict:
    match run.status:
        case RunStatus.PENDING:
            passes = run.passed_at is not None or verdict.passed
            return ClaimVerdict(ClaimStep.START if passes else ClaimStep.LATER, verdict.summary())
        case RunStatus.TRIGGERING | RunStatus.RUNNING:
            if run.claim_id:
                by = f" by {run.claimed_by}" if run.claimed_by else ""
                return ClaimVerdict(ClaimStep.REFUSED, f"attempt {run.attempt} is claimed{by} already")
            if ended:
                return ClaimVerdict(ClaimStep.LATER, f"the job of attempt {run.attempt} has ended already")
            return ClaimVerdict(ClaimStep.TAKE, f"attempt {run.attempt} was started, and nobody has claimed it")
        case RunStatus.FAILED:
            again = f" at {format_instant(run.retry_at)}" if run.retry_at is not None else ""
            return ClaimVerdict(ClaimStep.LATER, f"attempt {run.attempt} failed, and is tried again{again}")
        case RunStatus.COMPLETED:
            return ClaimVerdict(ClaimStep.REFUSED, f"it is done (attempt {run.attempt}): `interlock rerun` repeats it")
        case RunStatus.FAILED_FINAL | RunStatus.JOB_POLL_EXHAUSTED:
            return _ended(run)
        case _:
            assert_never(run.status)


def _ended(run: Run) -> ClaimVerdict:
    said = f"attempt {run.attempt} ended ({run.final_reason or run.status})"
    if run.final_reason is FinalReason.VALIDATION_EXHAUSTED:
        return ClaimVerdict(ClaimStep.LATER, f"{said}: a sensor write that makes its rules pass re-opens it")
    return ClaimVerdict(ClaimStep.REFUSED, f"{said}: `interlock rerun` opens another")

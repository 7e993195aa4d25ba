"""Is a failed job tried again, and after how long? (SPEC 5)

Whose fault a failure is decides which budget pays: repeating wrong code rarely helps, repeating a lost executor does.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from interlock.decide.reruns import budget_key, budget_of, exhausted, kind_name, used
from interlock.model.config import Job
from interlock.model.run import FailureCategory, RerunRecord, Source

MAX_RETRY_DELAY: Final = timedelta(hours=1)
_RETRIES: Final = (Source.JOB_FAIL_TRANSIENT, Source.JOB_FAIL_CODE)
FIRST_TRIGGER_DELAY: Final = timedelta(seconds=30)


class RetryVerdict(msgspec.Struct, frozen=True):
    """Whether the attempt after a failure is opened, what pays for it, and the pause before it."""

    retry: bool
    source: Source
    budget: int
    used: int
    delay: timedelta
    reason: str


def retry_source(category: FailureCategory | None) -> Source:
    """Which kind of retry a failure asks for; a failure nobody classified is taken for a passing one."""
    if category is FailureCategory.PERMANENT:
        return Source.JOB_FAIL_CODE
    return Source.JOB_FAIL_TRANSIENT


def after_failure(job: Job, category: FailureCategory | None, reruns: Sequence[RerunRecord]) -> RetryVerdict:
    """What follows a job's failure or time-out, given what the run has already had."""
    source = retry_source(category)
    budget, spent = budget_of(job, source), used(reruns, source)
    if spent >= budget:
        both = {one: used(reruns, one) for one in _RETRIES}
        return RetryVerdict(False, source, budget, spent, timedelta(0), no_retry_left(job, category, both))
    earlier = used(reruns, Source.JOB_FAIL_TRANSIENT) + used(reruns, Source.JOB_FAIL_CODE)
    reason = f"{kind_name(source)} {spent + 1} of {budget}"
    return RetryVerdict(True, source, budget, spent, _doubled(job.retry_delay, earlier), reason)


def no_retry_left(job: Job, category: FailureCategory | None, spent: Mapping[Source, int]) -> str:
    """Which budget a failure used up, and why the other one does not pay for it."""
    source = retry_source(category)
    said = exhausted(source, spent.get(source, 0), budget_of(job, source))
    (other,) = (one for one in _RETRIES if one is not source)
    had, limit = spent.get(other, 0), budget_of(job, other)
    if had >= limit:
        return said
    meant = "permanent failures" if other is Source.JOB_FAIL_CODE else "failures that may pass by themselves"
    kind = category or FailureCategory.TRANSIENT
    return f"{said}; the failure is {kind}, and {budget_key(other)} ({had} of {limit} used) is for {meant}"


def _doubled(delay: timedelta, times: int) -> timedelta:
    # The budgets keep `times` below 14, so that even the longest delay stays in the range of a timedelta.
    return min(delay * (1 << times), MAX_RETRY_DELAY)


def trigger_retry_delay(failures: int, max_attempts: int) -> timedelta | None:
    """The pause after that many refused starts of one attempt: 30, 60, 120 s ...; None when they are used up.

    `max_attempts` counts as the lifecycle's `MaxAttempts` does: tries after the first.
    """
    if failures > max_attempts:
        return None
    return FIRST_TRIGGER_DELAY * (1 << (max(failures, 1) - 1))

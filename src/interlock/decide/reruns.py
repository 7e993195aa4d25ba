"""May a run be attempted again because somebody, or a detector, asks for it? (SPEC 5, "Job log, retries, reruns")

The budgets are counted from the rerun records and from nothing else: a counter beside them could disagree with them
after a crash.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, assert_never

import msgspec

from interlock.model.config import Job
from interlock.model.errors import InvalidValueError
from interlock.model.keys import named_schedule
from interlock.model.run import RerunRecord, RerunRequest, Run, RunStatus, Source

_SHARED: Final = frozenset({Source.DATA_DRIFT, Source.LATE_DATA, Source.UPSTREAM})
_KINDS: Final[dict[Source, frozenset[Source]]] = {
    Source.MANUAL: frozenset({Source.MANUAL}),
    Source.JOB_FAIL_TRANSIENT: frozenset({Source.JOB_FAIL_TRANSIENT}),
    Source.JOB_FAIL_CODE: frozenset({Source.JOB_FAIL_CODE}),
    # New data is one reason to run again, however it was noticed.
    **dict.fromkeys(_SHARED, _SHARED),
}
_REQUESTABLE: Final = _SHARED | {Source.MANUAL}


_BUDGETS: Final = {
    "manual": Source.MANUAL,
    "drift": Source.DATA_DRIFT,
    "transient": Source.JOB_FAIL_TRANSIENT,
    "code": Source.JOB_FAIL_CODE,
}


class RerunRefusal(StrEnum):
    """Why a rerun request is refused."""

    NO_SUCH_PERIOD = "no-such-period"
    EXCLUDED = "excluded"
    ACTIVE = "active"
    JOB_RUNNING = "job-running"
    JOB_UNKNOWN = "job-unknown"
    BUDGET = "budget"
    UNCHANGED = "unchanged"


class RerunVerdict(msgspec.Struct, frozen=True):
    """Accepted or refused, and the sentence that says why."""

    accepted: bool
    reason: str
    code: RerunRefusal | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many attempts of a kind a run has had, of how many."""

    used: int
    of: int


def budget_of(job: Job, source: Source) -> int:
    """How many attempts of this source's kind a run may have; `first` and `reopen` have no budget and are an error."""
    match source:
        case Source.MANUAL:
            return job.max_manual_reruns
        case Source.DATA_DRIFT | Source.LATE_DATA | Source.UPSTREAM:
            return job.max_drift_reruns
        case Source.JOB_FAIL_TRANSIENT:
            return job.max_retries
        case Source.JOB_FAIL_CODE:
            return job.max_code_retries
        case Source.FIRST | Source.REOPEN:
            raise _no_budget(source)
        case _:
            assert_never(source)


def budget_key(source: Source) -> str:
    """The key of the config that says how many there may be."""
    match source:
        case Source.MANUAL:
            return "job.maxManualReruns"
        case Source.DATA_DRIFT | Source.LATE_DATA | Source.UPSTREAM:
            return "job.maxDriftReruns"
        case Source.JOB_FAIL_TRANSIENT:
            return "job.maxRetries"
        case Source.JOB_FAIL_CODE:
            return "job.maxCodeRetries"
        case Source.FIRST | Source.REOPEN:
            raise _no_budget(source)
        case _:
            assert_never(source)


def used(reruns: Sequence[RerunRecord], source: Source) -> int:
    """How many attempts of this source's kind the run has had.

    Attempt 1 never counts, no matter who asked for it: it repeated nothing.
    """
    if source not in _KINDS:
        raise _no_budget(source)
    kind = _KINDS[source]
    return sum(1 for record in reruns if record.source in kind and record.attempt > 1)


def budgets_of(job: Job | None, reruns: Sequence[RerunRecord]) -> dict[str, Budget]:
    """Each budget of a run: manual reruns; drift, late data and upstreams together; transient and code retries."""
    if job is None:
        return {}
    return {name: Budget(used=used(reruns, source), of=budget_of(job, source)) for name, source in _BUDGETS.items()}


def decide_rerun(
    request: RerunRequest,
    run: Run | None,
    job: Job,
    reruns: Sequence[RerunRecord],
    *,
    excluded: str | None,
    changed: bool,
    job_running: bool,
    job_unknown: str = "",
) -> RerunVerdict:
    """Accept the request, or say why not. The first obstacle in the order of RerunRefusal is the one named.

    `excluded`: the calendar's reason, a sentence, if it has one. `changed`: some sensor that the rules, the trigger or
    the post-run read has changed since the last attempt's evaluation. `job_running`: the target says so;
    `job_unknown`: why the target could not be asked. Only a run that ended without knowing what became of its job
    (`transitions.job_may_have_started`) needs the question.
    """
    if request.source not in _REQUESTABLE:
        raise InvalidValueError(
            f"a rerun of {request.key} cannot be requested by {request.source!r}: "
            f"it is one of {', '.join(sorted(_REQUESTABLE))}"
        )
    if excluded is not None:
        return _refused(RerunRefusal.EXCLUDED, excluded)
    if run is None:
        return RerunVerdict(True, f"{request.date} has not run yet: this is its first attempt")
    if run.active:
        return _refused(RerunRefusal.ACTIVE, f"the run is active: attempt {run.attempt} is {run.status}")
    if job_running:
        return _refused(
            RerunRefusal.JOB_RUNNING,
            f"the job of attempt {run.attempt} is still running: ask again when it has ended",
        )
    if job_unknown:
        # A second job beside one that may be running is the accident we are here for.
        return _refused(RerunRefusal.JOB_UNKNOWN, _fate_unknown(run, job_unknown))
    budget, spent = budget_of(job, request.source), used(reruns, request.source)
    if spent >= budget:
        return _refused(RerunRefusal.BUDGET, exhausted(request.source, spent, budget))
    if _unchanged(request, run, changed):
        return _refused(
            RerunRefusal.UNCHANGED,
            f"attempt {run.attempt} succeeded and no sensor it reads has changed since: force runs it all the same",
        )
    return RerunVerdict(True, f"{kind_name(request.source)} {spent + 1} of {budget}")


def kind_name(source: Source) -> str:
    """What people call an attempt of this source: `manual rerun`, `transient retry`."""
    match source:
        case Source.JOB_FAIL_TRANSIENT:
            return "transient retry"
        case Source.JOB_FAIL_CODE:
            return "code retry"
        case _:
            return f"{source} rerun"


def exhausted(source: Source, spent: int, budget: int) -> str:
    """`manual rerun budget used up: 1 of 1 (job.maxManualReruns)`."""
    return f"{kind_name(source)} budget used up: {spent} of {budget} ({budget_key(source)})"


def _unchanged(request: RerunRequest, run: Run, changed: bool) -> bool:
    # An upstream that completed again is itself the change; it need not show in any sensor.
    fresh = changed or request.force or request.source is Source.UPSTREAM
    return run.status is RunStatus.COMPLETED and not fresh


def _fate_unknown(run: Run, why: str) -> str:
    schedule = f" --schedule {named}" if (named := named_schedule(run.schedule)) else ""
    report = f"interlock job report {run.pipeline} --date {run.date}{schedule} --attempt {run.attempt}"
    return (
        f"nobody knows whether the job of attempt {run.attempt} is over: its target could not be asked ({why}). "
        f"Ask again; if it still cannot be asked, look there, and once the job is over run `{report} fail` (or success)"
    )


def _refused(code: RerunRefusal, reason: str) -> RerunVerdict:
    return RerunVerdict(False, reason, code)


def _no_budget(source: Source) -> InvalidValueError:
    return InvalidValueError(f"attempts opened by {source!r} have no budget: only retries and reruns are counted")

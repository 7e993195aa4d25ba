"""Which status a run may take next (SPEC 5, "Run status"), as data, and the two ways to take it.

`step` moves the attempt that is under way; `open_attempt` begins the next one. Both return the record to be committed,
compare-and-set on the version it was made from. One commit may take several edges at once (a job that fails and is
retried passes through FAILED without resting there): every edge is checked, the version rises once.

The invariants held here, whoever calls: a terminal status is left only by a new attempt or by the late success of an
attempt whose job may have been started; FAILED_FINAL always says why, and nothing else does.
"""

from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NotRequired, TypedDict, Unpack

from msgspec.structs import replace

from interlock.model.errors import IllegalTransitionError
from interlock.model.keys import RunKey
from interlock.model.run import Cancel, FinalReason, Run, RunStatus, Source

ALLOWED: Final[dict[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.PENDING: frozenset({RunStatus.TRIGGERING, RunStatus.FAILED_FINAL}),
    RunStatus.TRIGGERING: frozenset({RunStatus.RUNNING, RunStatus.FAILED, RunStatus.FAILED_FINAL}),
    RunStatus.RUNNING: frozenset(
        {RunStatus.COMPLETED, RunStatus.JOB_POLL_EXHAUSTED, RunStatus.FAILED, RunStatus.FAILED_FINAL}
    ),
    RunStatus.FAILED: frozenset({RunStatus.FAILED_FINAL}),
    RunStatus.JOB_POLL_EXHAUSTED: frozenset({RunStatus.FAILED_FINAL}),
    RunStatus.COMPLETED: frozenset(),
    RunStatus.FAILED_FINAL: frozenset(),
}
"""The edges within one attempt. The late success is not among them: it depends on more than the status."""

_ANYWHERE: Final = frozenset({FinalReason.STALE, FinalReason.INFRA})
_BY_A_PERSON: Final = _ANYWHERE | {FinalReason.CANCELLED}

REASONS: Final[dict[RunStatus, frozenset[FinalReason]]] = {
    RunStatus.PENDING: _BY_A_PERSON
    | {FinalReason.VALIDATION_EXHAUSTED, FinalReason.DEADLINE_EXPIRED, FinalReason.WITHDRAWN},
    RunStatus.TRIGGERING: _BY_A_PERSON | {FinalReason.UNCERTAIN, FinalReason.WITHDRAWN},
    RunStatus.RUNNING: _BY_A_PERSON,
    RunStatus.FAILED: _BY_A_PERSON
    | {FinalReason.RETRIES_USED_UP, FinalReason.TRIGGER_EXHAUSTED, FinalReason.WITHDRAWN},
    RunStatus.JOB_POLL_EXHAUSTED: _ANYWHERE | {FinalReason.POLL_EXHAUSTED},
}
"""Why a run may become FAILED_FINAL, by the status it is in just before."""

_RETRIES: Final = frozenset({Source.JOB_FAIL_TRANSIENT, Source.JOB_FAIL_CODE})
_REQUESTS: Final = frozenset({Source.MANUAL, Source.DATA_DRIFT, Source.LATE_DATA, Source.UPSTREAM})

NEW_ATTEMPT: Final[dict[RunStatus, frozenset[Source]]] = {
    RunStatus.FAILED: _RETRIES,
    RunStatus.COMPLETED: _REQUESTS,
    RunStatus.FAILED_FINAL: _REQUESTS | {Source.REOPEN},
}
"""The edges to PENDING with attempt + 1, and what may take them."""

FIRST_ATTEMPT: Final[frozenset[Source]] = _REQUESTS | {Source.FIRST}
"""What may open a run that never was: a rerun request may, for a date that never ran."""

_JOB_MAY_HAVE_STARTED: Final = frozenset(
    {FinalReason.POLL_EXHAUSTED, FinalReason.UNCERTAIN, FinalReason.STALE, FinalReason.INFRA}
)


class Changes(TypedDict, total=False):
    """What a step may change besides the status. The slot, the attempt and the version are not a caller's to set."""

    lease_until: datetime | None
    retry_at: datetime | None
    final_reason: FinalReason | None
    run_id: str
    job_id: str
    passed_at: datetime | None
    triggered_at: datetime | None
    job_started_at: datetime | None
    ended_at: datetime | None
    first_completed_at: datetime | None
    markers_left: bool
    sla_closed: bool
    trigger_failures: int
    refused: bool
    part: int
    part_at: datetime | None
    early_ends: int
    slot: str
    cancel: Cancel | None
    inputs: dict[str, str]
    trigger_payload: dict[str, Any] | None
    post_run_sensors: dict[str, Any] | None
    claim_id: str
    claimed_by: str
    message: str


class Opening(TypedDict):
    """What is known of a new attempt when it is opened."""

    config_version: str
    lease_until: datetime
    opened_by: NotRequired[str]
    requested_by: NotRequired[str]
    tick_at: NotRequired[datetime | None]


def job_may_have_started(run: Run) -> bool:
    """Did the run end without anybody knowing what became of its job?

    Then the job may still be running, may still report a success, and must be asked about before a rerun.
    """
    return run.final_reason in _JOB_MAY_HAVE_STARTED and run.run_id != ""


def allowed(run: Run, target: RunStatus) -> bool:
    """May this attempt of the run take that status next?"""
    if run.status is RunStatus.FAILED_FINAL and target is RunStatus.COMPLETED:
        return job_may_have_started(run)
    return target in ALLOWED[run.status]


def step(run: Run, *path: RunStatus, now: datetime, **changes: Unpack[Changes]) -> Run:
    """The run after taking the statuses of `path` in one commit; IllegalTransitionError names the edge that is not."""
    if not path:
        raise IllegalTransitionError(f"{_name(run)} was given no status to take: name at least one")
    _check_edges(run, path)
    last = path[-1]
    before = path[-2] if len(path) > 1 else run.status
    # A late success takes back what the run had been closed with.
    changes.setdefault("final_reason", None)
    _check_reason(run, before, last, changes["final_reason"])
    return replace(run, **changes, status=last, version=run.version + 1, updated_at=now)


def amend(run: Run, *, now: datetime, **changes: Unpack[Changes]) -> Run:
    """The active run with something learnt on the way (a failed start, the job first seen running), same status."""
    if run.status.terminal:
        raise IllegalTransitionError(f"{_name(run)} is {run.status}: nothing of it can change any more")
    _check_reason(run, run.status, run.status, changes.get("final_reason"))
    return replace(run, **changes, version=run.version + 1, updated_at=now)


def remember_payload(run: Run, payload: dict[str, Any], *, now: datetime) -> Run:
    """A completed run whose trigger sensor changed afterwards: it is remembered, so that it is news only once."""
    if run.status is not RunStatus.COMPLETED:
        raise IllegalTransitionError(f"{_name(run)} is {run.status}: only a completed run has late data")
    return replace(run, trigger_payload=payload, version=run.version + 1, updated_at=now)


def _check_edges(run: Run, path: tuple[RunStatus, ...]) -> None:
    if not allowed(run, path[0]):
        raise _illegal(run, run.status, path[0])
    for before, after in pairwise(path):
        if after not in ALLOWED[before]:
            raise _illegal(run, before, after)


def _check_reason(run: Run, before: RunStatus, last: RunStatus, reason: FinalReason | None) -> None:
    if last is not RunStatus.FAILED_FINAL:
        if reason is not None:
            raise IllegalTransitionError(
                f"{_name(run)} cannot be {last} because of {reason}: only FAILED_FINAL has a final_reason"
            )
        return
    if reason not in REASONS[before]:
        given = "no final_reason" if reason is None else f"the final_reason {reason}"
        known = ", ".join(sorted(REASONS[before]))
        raise IllegalTransitionError(
            f"{_name(run)} cannot go from {before} to {last} with {given}: it is one of {known}"
        )


def open_attempt(
    run: Run | None,
    key: RunKey,
    source: Source,
    now: datetime,
    *,
    via: tuple[RunStatus, ...] = (),
    **opening: Unpack[Opening],
) -> Run:
    """The run with its next attempt PENDING, or with attempt 1 when there is none yet.

    `via` are the statuses passed through in the same commit: `(FAILED,)` when a RUNNING job failed and is
    retried at once.
    """
    if run is None:
        return _first_attempt(key, source, now, opening)
    if run.key != key:
        raise IllegalTransitionError(f"{_name(run)} cannot open an attempt of {key}: that is another run")
    _check_new_attempt(run, source, via)
    return Run(
        pipeline=run.pipeline,
        schedule=run.schedule,
        date=run.date,
        status=RunStatus.PENDING,
        version=run.version + 1,
        attempt=run.attempt + 1,
        source=source,
        config_version=opening["config_version"],
        opened_at=now,
        first_opened_at=run.first_opened_at,
        updated_at=now,
        opened_by=opening.get("opened_by", ""),
        requested_by=opening.get("requested_by", ""),
        lease_until=opening["lease_until"],
        # The SLA of a run is computed from its tick, whichever attempt is under way.
        tick_at=run.tick_at or opening.get("tick_at"),
        first_completed_at=run.first_completed_at,
        sla_closed=run.sla_closed,
        slot=run.slot,  # until its change is routed, the slot of the attempt before may still be ours
    )


def _check_new_attempt(run: Run, source: Source, via: tuple[RunStatus, ...]) -> None:
    if via:
        _check_edges(run, via)
    before = via[-1] if via else run.status
    if before not in NEW_ATTEMPT:
        raise _illegal(run, before, RunStatus.PENDING)
    if source not in NEW_ATTEMPT[before]:
        known = ", ".join(sorted(NEW_ATTEMPT[before]))
        raise IllegalTransitionError(
            f"{_name(run)} cannot go from {before} to PENDING by {source}: it is one of {known}"
        )


def _first_attempt(key: RunKey, source: Source, now: datetime, opening: Opening) -> Run:
    if source not in FIRST_ATTEMPT:
        known = ", ".join(sorted(FIRST_ATTEMPT))
        raise IllegalTransitionError(f"{key} has no attempt yet: {source} cannot open its first; it is one of {known}")
    return Run(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        status=RunStatus.PENDING,
        version=1,
        attempt=1,
        source=source,
        config_version=opening["config_version"],
        opened_at=now,
        first_opened_at=now,
        updated_at=now,
        opened_by=opening.get("opened_by", ""),
        requested_by=opening.get("requested_by", ""),
        lease_until=opening["lease_until"],
        tick_at=opening.get("tick_at"),
    )


def _illegal(run: Run, before: RunStatus, after: RunStatus) -> IllegalTransitionError:
    hint = ""
    if after is RunStatus.PENDING:
        hint = "; a new attempt is opened by open_attempt once this one has ended"
    elif before is RunStatus.FAILED_FINAL and after is RunStatus.COMPLETED:
        hint = f"; it ended by {run.final_reason}, which leaves no job that could still succeed"
    return IllegalTransitionError(f"{_name(run)} cannot go from {before} to {after}{hint}")


def _name(run: Run) -> str:
    return f"{run.key} attempt {run.attempt}"

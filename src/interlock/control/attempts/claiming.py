"""Claims: somebody else's scheduler asks whether the job of a run is his to do now, and if so, takes it.

Only `external` jobs are claimed. A claim opens the run where there is none, evaluates its rules and starts it, or takes
what the lifecycle has started and nobody has taken; all compare-and-set on the run, so that of many claimants one is
answered yes. What follows (the poll window, the SLA, the report of the outcome) is as for every run: the stream-router
has the execution of a claimed attempt look again. A claim carries an id of the claimant's making: the same claim again
is answered the same, since an answer may get lost.
"""

from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from interlock.control import catalog, pools, readiness, records, writing
from interlock.control.attempts import opening, passing, starting
from interlock.control.auditing import note, noted
from interlock.control.catalog import Brake, InForce
from interlock.control.context import Control
from interlock.control.pools import Entry
from interlock.decide import cron, transitions
from interlock.decide.claims import ClaimStep, ClaimVerdict, decide_claim
from interlock.decide.cron import Tick
from interlock.decide.real_periods import no_such_period
from interlock.decide.rules import Verdict
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.config import JobType, PipelineConfig, Schedule
from interlock.model.errors import InvalidConfigError, InvalidValueError
from interlock.model.keys import RunKey
from interlock.model.run import Run, RunStatus
from interlock.model.sensor import Sensor
from interlock.model.times import format_instant, zone
from interlock.ports.store import Write

# Somebody else may open it, and end it, between two looks; not over and over.
_OPENINGS: Final = 3


class Claim(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of a claim. `later`: it was refused for now, and may be granted later."""

    pipeline: str
    schedule: str
    date: str
    claimed: bool
    reason: str
    later: bool = False
    attempt: int | None = None
    run_id: str = ""
    claimed_by: str = ""


def claim(control: Control, key: RunKey, *, claim_id: str, by: str) -> Claim:
    """Claim the job of a run. An unknown pipeline, another job type or a period that cannot exist is an error."""
    if not claim_id:
        raise InvalidValueError("a claim needs an id, so that it can be repeated")
    for _ in range(_OPENINGS):
        found = records.settle_commit(control, partial(_decide, control, key, claim_id, by))
        if found is not None:
            return found
        _open(control, key, by)
    return _answer(key, None, "it could not be opened: `interlock why` says what keeps it", later=True)


def _decide(control: Control, key: RunKey, claim_id: str, by: str) -> tuple[Claim | None, list[Write]]:
    """The answer with what is committed for it; None when there is a run to be opened first."""
    facts = _gather(control, key)
    run = facts.run
    verdict = _verdict(control, key, facts, claim_id)
    match verdict.step:
        case ClaimStep.OPEN:
            return None, []
        case ClaimStep.START if run is not None:
            entry = _enter_pool(control, facts, run)
            if entry.slot is None:
                return _answer(key, run, "the pool of its job is full", later=True), []
            running, writes = _start(control, facts, run, entry.slot, (claim_id, by))
            recorded = _recorded(control, run, running)
            return _answer(key, running, verdict.reason, claimed=True), noted([*writes, *entry.writes], recorded)
        case ClaimStep.TAKE if run is not None:
            taken = transitions.amend(run, now=facts.now, claim_id=claim_id, claimed_by=by)
            writes = [records.put_run(taken, run), facts.brake.unchanged]
            return _answer(key, taken, verdict.reason, claimed=True), noted(writes, _recorded(control, run, taken))
        case ClaimStep.HELD:
            return _answer(key, run, verdict.reason, claimed=True), []
        case _:
            return _answer(key, run, verdict.reason, later=verdict.step is ClaimStep.LATER), []


def _recorded(control: Control, before: Run, after: Run) -> AuditNote | None:
    return note(
        control,
        AuditAction.RUN_CLAIMED,
        after.key,
        subject=after.claim_id,
        before={"status": before.status.value, "attempt": before.attempt},
        after={"status": after.status.value, "attempt": after.attempt, "runId": after.run_id},
    )


def _answer(key: RunKey, run: Run | None, reason: str, *, claimed: bool = False, later: bool = False) -> Claim:
    return Claim(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        claimed=claimed,
        reason=reason,
        later=later,
        attempt=run.attempt if run is not None else None,
        run_id=run.run_id if run is not None and claimed else "",
        claimed_by=run.claimed_by if run is not None else "",
    )


# ------------------------------------------------------------------------------------------------------- the facts


class _Facts(msgspec.Struct, frozen=True):
    """What there is of a run when it is claimed; `config` is the one its rules are judged by."""

    now: datetime
    config: PipelineConfig
    run: Run | None
    brake: Brake
    sensors: dict[str, Sensor]
    rules: Verdict


def _gather(control: Control, key: RunKey) -> _Facts:
    current = _in_force(control, key)
    run = records.get_run(control.store, key)
    config = catalog.judged_by(control.store, current.config, run)
    if config.job is None or config.job.type != JobType.EXTERNAL:
        kind = config.job.type if config.job else "none"
        raise InvalidValueError(
            f"only jobs of type external are claimed, and that of {config.id} is {kind}: Interlock starts it itself"
        )
    now = control.now()
    names = [one.key for one in readiness.all_readings(config, key.schedule)]
    sensors = readiness.gather(control.store, config, key, names)
    brake = catalog.brake(control.store, key.pipeline)
    return _Facts(now, config, run, brake, sensors, readiness.verdict(config, key, sensors, now))


def _in_force(control: Control, key: RunKey) -> InForce:
    writing.known_pipeline(control, key.pipeline)
    current = catalog.in_force(control.store, key.pipeline)
    if current is None:
        raise InvalidConfigError(f"the config of {key.pipeline} is invalid: nobody can tell whether it may run")
    unreal = no_such_period(current.config, current.config.schedule_of(key.schedule), key.period)
    if unreal is not None:
        # A mistake, not a run that is not ready yet.
        raise InvalidValueError(str(unreal))
    return current


def _verdict(control: Control, key: RunKey, facts: _Facts, claim_id: str) -> ClaimVerdict:
    store, run, schedule = control.store, facts.run, facts.config.schedule_of(key.schedule)
    excluded = not_yet = None
    if run is None:
        excluded = catalog.calendar_reason(store, schedule, key.period)
        not_yet = _not_yet(control, key, facts, schedule)
    ended = run is not None and run.active and records.outcome_of(store, run) is not None
    reason = facts.brake.reason
    return decide_claim(run, claim_id, facts.rules, brake=reason, excluded=excluded, not_yet=not_yet, ended=ended)


def _not_yet(control: Control, key: RunKey, facts: _Facts, schedule: Schedule) -> str | None:
    """It is the claimant's clock that says when, but never before ours could have opened the run."""
    tick = _tick(schedule, key)
    begins = tick.at if tick is not None else key.period.start(zone(schedule.timezone))
    if facts.now < begins:
        return f"{key.date} begins at {format_instant(begins)}"
    awaited = readiness.awaited_upstreams(control.store, facts.config, key)
    return f"awaits upstream {', '.join(awaited)}" if awaited else None


def _tick(schedule: Schedule, key: RunKey) -> Tick | None:
    return cron.tick_of_period(schedule, key.period) if schedule.cron is not None else None


# ------------------------------------------------------------------------------------------------------- the steps


def _open(control: Control, key: RunKey, by: str) -> None:
    """Open the run, unless something else has: the claim then finds it there."""
    current = _in_force(control, key)
    tick = _tick(current.config.schedule_of(key.schedule), key)
    start = opening.Start(
        key=key,
        opened_by=f"a claim of {by}" if by else "a claim",
        tick_at=tick.at if tick is not None else None,
    )
    opening.open_first_with(control, current, start)


def _enter_pool(control: Control, facts: _Facts, run: Run) -> Entry:
    """A slot of the pool that bounds the job. Without one the attempt waits in the line, as the lifecycle put it."""
    pool = pools.pool_of(control, facts.config.job)
    if pool is None or run.passed_at is not None:
        return Entry(run.slot, [])
    return pools.enter(control, pool, run, passing.breach_of(control, run), facts.now)


def _start(control: Control, facts: _Facts, run: Run, slot: str, claimant: tuple[str, str]) -> tuple[Run, list[Write]]:
    """PENDING to RUNNING, as the claimant's: the rules have passed in an evaluation of this very attempt."""
    passed, also = run, list[Write]()
    if run.passed_at is None:
        passed, also = passing.passed(control, facts.config, run, facts.rules, facts.sensors, facts.now, slot=slot)
    run_id = starting.new_run_id(control, run)
    running = transitions.step(
        passed,
        RunStatus.TRIGGERING,
        RunStatus.RUNNING,
        now=facts.now,
        run_id=run_id,
        job_id=run_id,
        triggered_at=facts.now,
        refused=False,
        claim_id=claimant[0],
        claimed_by=claimant[1],
    )
    event = starting.triggered_event(facts.config, running, facts.now)
    return running, [records.put_run(running, run), *also, records.put_event(event), facts.brake.unchanged]

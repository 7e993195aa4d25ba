"""What would become of a rerun request, without making one: nothing is written, and no target is asked."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from interlock.control import catalog, records, reruns
from interlock.control.context import Control
from interlock.control.views import graph
from interlock.decide import transitions
from interlock.decide.real_periods import no_such_period
from interlock.decide.reruns import Budget, RerunRefusal, RerunVerdict, budget_of, budgets_of, decide_rerun, used
from interlock.model.config import PipelineConfig
from interlock.model.keys import RunKey
from interlock.model.run import RerunRecord, RerunRequest, RunStatus, Source


class Decision(StrEnum):
    """What would be decided; `unknown` where the target has to be asked whether its job still runs."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class Downstream(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline that runs after this one, and what the rerun would mean to it."""

    pipeline: str
    effect: str


class RerunPreview(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What would be decided and why, what is left of each budget, and who would feel it."""

    pipeline: str
    schedule: str
    date: str
    decision: Decision
    reason: str
    code: RerunRefusal | None
    budgets: dict[str, Budget]
    downstream: list[Downstream]


def preview(control: Control, config: PipelineConfig, key: RunKey, *, force: bool, by: str = "") -> RerunPreview:
    """What would become of a manual request for this run now."""
    had = records.reruns_of(control.store, key)
    decision, verdict = _decided(control, config, key, had, force=force, by=by)
    return RerunPreview(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        decision=decision,
        reason=verdict.reason,
        code=verdict.code,
        budgets=budgets_of(config.job, had),
        downstream=[
            Downstream(pipeline=one.id, effect=_effect(control, one, key))
            for one in graph.downstreams(control.store, key.pipeline)
        ],
    )


def _decided(
    control: Control, config: PipelineConfig, key: RunKey, had: Sequence[RerunRecord], *, force: bool, by: str
) -> tuple[Decision, RerunVerdict]:
    if config.job is None or config.dry_run:
        return Decision.REJECTED, RerunVerdict(False, f"{config.id} is a dry run: nothing is ever started")
    run = records.get_run(control.store, key)
    schedule = config.schedule_of(key.schedule)
    unreal = no_such_period(config, schedule, key.period) if run is None else None
    if unreal is not None:
        return Decision.REJECTED, RerunVerdict(False, str(unreal), RerunRefusal.NO_SUCH_PERIOD)
    asked = RerunRequest(
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        id="preview",
        source=Source.MANUAL,
        at=control.now(),
        force=force,
        requested_by=by,
    )
    verdict = decide_rerun(
        asked,
        run,
        config.job,
        had,
        excluded=catalog.calendar_reason(control.store, schedule, key.period),
        changed=run is None or reruns.changed_since(control, config, run),
        job_running=False,
    )
    if verdict.accepted and run is not None and transitions.job_may_have_started(run):
        asks = "its job may still be running: the target is asked first, and the request is refused while it runs"
        return Decision.UNKNOWN, RerunVerdict(True, f"{verdict.reason}; {asks}")
    return Decision.ACCEPTED if verdict.accepted else Decision.REJECTED, verdict


def _effect(control: Control, downstream: PipelineConfig, key: RunKey) -> str:
    """What a success of the rerun would mean to a downstream of the same period."""
    schedule = downstream.all_schedules[0]
    run = records.get_run(control.store, RunKey(downstream.id, schedule.schedule_id, key.date))
    job = downstream.job
    if run is None or job is None:
        return "opens when this completes, if the markers of its other upstreams are there"
    had = records.reruns_of(control.store, run.key)
    spent, budget = used(had, Source.UPSTREAM), budget_of(job, Source.UPSTREAM)
    if run.status is not RunStatus.COMPLETED:
        return f"its run of {key.date} is {run.word}"
    left = "is run again" if spent < budget else "is not run again: its budget is used up"
    return f"its run of {key.date} {left} ({spent} of {budget} used)"

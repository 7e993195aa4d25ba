"""What a dry run says it would do (SPEC 10). It only ever says: nothing here opens, starts or counts against a run."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from interlock.decide.reruns import budget_of, exhausted, kind_name
from interlock.decide.retries import retry_source
from interlock.decide.sla import Projection, project, sla_times
from interlock.model.config import Job, PipelineConfig, Schedule
from interlock.model.durations import format_duration
from interlock.model.events import EventType
from interlock.model.periods import Period
from interlock.model.run import FailureCategory, Source
from interlock.model.times import format_instant


class Observation(msgspec.Struct, frozen=True):
    """One event to publish."""

    type: EventType
    message: str
    detail: dict[str, Any]


def would_trigger(
    config: PipelineConfig,
    schedule: Schedule,
    period: Period,
    now: datetime,
    *,
    results: Sequence[Mapping[str, Any]],
    first_arrival: datetime | None = None,
    tick_at: datetime | None = None,
) -> list[Observation]:
    """What is published once the rules pass: the start that is withheld, how its SLA would turn out, the verdict."""
    observed = [
        Observation(
            EventType.DRY_RUN_WOULD_TRIGGER,
            "dry run: the rules pass, the job would be started now",
            {"results": [dict(one) for one in results]},
        )
    ]
    verdict = "n/a"
    if config.sla is not None:
        estimate = now + (config.sla.expected_duration or timedelta(0))
        times = sla_times(config.sla, schedule, period, first_arrival, tick_at=tick_at)
        projection = project(config.sla, times, estimate)
        verdict = projection.status
        observed.append(_sla_projection(projection))
    observed.append(
        Observation(
            EventType.DRY_RUN_COMPLETED,
            f"dry run: the observation is complete, SLA verdict {verdict}",
            {"verdict": verdict},
        )
    )
    return observed


def _sla_projection(projection: Projection) -> Observation:
    estimate = format_instant(projection.estimated_completion)
    detail: dict[str, Any] = {"status": projection.status, "estimatedCompletion": estimate}
    margin = projection.margin_seconds
    if projection.breach_at is None or margin is None:
        message = f"dry run: the job would end at {estimate}; nothing of the SLA applies to this run"
    else:
        detail |= {"deadline": projection.deadline, "marginSeconds": margin}
        apart = format_duration(timedelta(seconds=abs(margin)))
        message = (
            f"dry run: the job would end at {estimate}, {apart} {'after' if margin < 0 else 'before'} "
            f"its deadline {projection.deadline} ({format_instant(projection.breach_at)})"
        )
    return Observation(EventType.DRY_RUN_SLA_PROJECTION, message, detail)


def would_rerun(job: Job, source: Source, reruns_so_far: int, *, because: str = "") -> Observation:
    """What a rerun request would have come to, counted against the same budget as a real one.

    `because` is the detector's reason; a refusal gives its own.
    """
    budget = budget_of(job, source)
    if reruns_so_far >= budget:
        reason = exhausted(source, reruns_so_far, budget)
        return Observation(
            EventType.DRY_RUN_RERUN_REJECTED,
            f"dry run: a rerun would be refused: {reason}",
            {"source": source.value, "reason": reason},
        )
    counted = f"{kind_name(source)} {reruns_so_far + 1} of {budget}"
    return Observation(
        EventType.DRY_RUN_WOULD_RERUN,
        f"dry run: {counted} would be accepted" + (f": {because}" if because else ""),
        {"source": source.value, "reason": because or counted},
    )


def would_retry(job: Job, category: FailureCategory | None, used: int) -> Observation:
    """What a reported failure would have come to after `used` retries of its kind."""
    source = retry_source(category)
    budget = budget_of(job, source)
    detail = {"category": category.value if category else None, "budget": budget, "used": used}
    if used >= budget:
        return Observation(
            EventType.DRY_RUN_RETRY_EXHAUSTED,
            f"dry run: the failure would be final: {exhausted(source, used, budget)}",
            detail,
        )
    message = f"dry run: the failure would be retried: {kind_name(source)} {used + 1} of {budget}"
    return Observation(EventType.DRY_RUN_WOULD_RETRY, message, detail)

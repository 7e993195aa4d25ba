"""Dry runs: what is said when the rules pass, when new data comes, and when a job is reported to have failed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.decide.dry_run import Observation, would_rerun, would_retry, would_trigger
from interlock.model.config import (
    Check,
    Info,
    Job,
    JobType,
    PipelineConfig,
    Rule,
    Schedule,
    Sla,
    Trigger,
    Validation,
)
from interlock.model.durations import Duration
from interlock.model.events import CATALOGUE, EventType
from interlock.model.periods import parse_period
from interlock.model.run import FailureCategory, Source

SCHEDULE = Schedule(cron="0 8 * * *", trigger=Trigger(key="ready", check=Check.EXISTS))
DAY = parse_period("2026-03-02")
TICK = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
JOB = Job(type=JobType.GLUE, max_retries=2, max_code_retries=1, max_drift_reruns=1, max_manual_reruns=5)
RESULTS = [{"key": "rows", "check": "exists", "passed": True}]
HALF_HOUR = Duration(minutes=30)


def observe(
    sla: Sla | None, now: datetime, first_arrival: datetime | None = None, schedule: Schedule = SCHEDULE
) -> list[Observation]:
    config = PipelineConfig(
        pipeline=Info(id="gold"),
        validation=Validation(rules=[Rule(key="rows", check=Check.EXISTS)]),
        schedule=schedule,
        job=JOB,
        sla=sla,
        dry_run=True,
    )
    return would_trigger(config, schedule, DAY, now, results=RESULTS, first_arrival=first_arrival, tick_at=TICK)


def test_without_an_sla_nothing_is_projected() -> None:
    assert observe(None, TICK) == [
        Observation(
            EventType.DRY_RUN_WOULD_TRIGGER,
            "dry run: the rules pass, the job would be started now",
            {"results": RESULTS},
        ),
        Observation(
            EventType.DRY_RUN_COMPLETED,
            "dry run: the observation is complete, SLA verdict n/a",
            {"verdict": "n/a"},
        ),
    ]


@pytest.mark.parametrize(
    ("sla", "minutes_after_tick", "status", "estimate", "margin"),
    [
        (Sla(deadline="10:00", expected_duration=HALF_HOUR), 15, "met", "2026-03-02T08:45:00Z", 4500),
        (Sla(deadline="10:00", expected_duration=HALF_HOUR), 90, "met", "2026-03-02T10:00:00Z", 0),
        (Sla(deadline="10:00", expected_duration=HALF_HOUR), 105, "breach", "2026-03-02T10:15:00Z", -900),
        (Sla(deadline="10:00"), 105, "met", "2026-03-02T09:45:00Z", 900),
        (
            Sla(max_duration=Duration(hours=1), expected_duration=HALF_HOUR),
            45,
            "breach",
            "2026-03-02T09:15:00Z",
            -900,
        ),
    ],
)
def test_the_sla_as_it_would_turn_out(
    sla: Sla, minutes_after_tick: int, status: str, estimate: str, margin: int
) -> None:
    started, projection, completed = observe(sla, TICK + timedelta(minutes=minutes_after_tick), TICK)
    assert started.type is EventType.DRY_RUN_WOULD_TRIGGER
    assert projection.type is EventType.DRY_RUN_SLA_PROJECTION
    assert projection.detail == {
        "status": status,
        "estimatedCompletion": estimate,
        "deadline": sla.deadline or "maxDuration 1h",
        "marginSeconds": margin,
    }
    assert estimate in projection.message
    assert ("after" in projection.message) == (margin < 0)
    assert completed.detail == {"verdict": status}


def test_an_sla_that_does_not_apply_yet_is_projected_as_such() -> None:
    _, projection, completed = observe(Sla(max_duration=Duration(hours=1)), TICK)
    assert projection.detail == {"status": "n/a", "estimatedCompletion": "2026-03-02T08:00:00Z"}
    assert "nothing of the SLA applies" in projection.message
    assert completed.detail == {"verdict": "n/a"}


@pytest.mark.parametrize("source", [Source.DATA_DRIFT, Source.LATE_DATA, Source.UPSTREAM])
def test_reruns_are_refused_once_the_budget_would_be_used_up(source: Source) -> None:
    assert would_rerun(JOB, source, 0, because="count changed by 40") == Observation(
        EventType.DRY_RUN_WOULD_RERUN,
        f"dry run: {source} rerun 1 of 1 would be accepted: count changed by 40",
        {"source": source.value, "reason": "count changed by 40"},
    )
    reason = f"{source} rerun budget used up: 1 of 1 (job.maxDriftReruns)"
    assert would_rerun(JOB, source, 1, because="count changed by 40") == Observation(
        EventType.DRY_RUN_RERUN_REJECTED,
        f"dry run: a rerun would be refused: {reason}",
        {"source": source.value, "reason": reason},
    )


def test_a_rerun_without_a_reason_says_which_of_how_many() -> None:
    observed = would_rerun(JOB, Source.LATE_DATA, 0)
    assert observed.message == "dry run: late-data rerun 1 of 1 would be accepted"
    assert observed.detail["reason"] == "late-data rerun 1 of 1"


@pytest.mark.parametrize(
    ("category", "used", "event", "budget", "words"),
    [
        (FailureCategory.TRANSIENT, 1, EventType.DRY_RUN_WOULD_RETRY, 2, "transient retry 2 of 2"),
        (None, 0, EventType.DRY_RUN_WOULD_RETRY, 2, "transient retry 1 of 2"),
        (FailureCategory.TIMEOUT, 2, EventType.DRY_RUN_RETRY_EXHAUSTED, 2, "used up: 2 of 2"),
        (FailureCategory.PERMANENT, 0, EventType.DRY_RUN_WOULD_RETRY, 1, "code retry 1 of 1"),
        (
            FailureCategory.PERMANENT,
            1,
            EventType.DRY_RUN_RETRY_EXHAUSTED,
            1,
            "1 of 1 (job.maxCodeRetries)",
        ),
    ],
)
def test_a_reported_failure_would_be_retried_or_final(
    category: FailureCategory | None, used: int, event: EventType, budget: int, words: str
) -> None:
    observed = would_retry(JOB, category, used)
    assert observed.type is event
    assert observed.detail == {
        "category": None if category is None else category.value,
        "budget": budget,
        "used": used,
    }
    assert words in observed.message


@given(st.integers(-300, 300), st.integers(0, 300))
def test_every_projection_agrees_with_its_verdict_and_the_catalogue(started: int, minutes: int) -> None:
    sla = Sla(deadline="10:00", expected_duration=Duration(minutes=minutes))
    now = TICK + timedelta(minutes=started)
    _, projection, completed = observed = observe(sla, now)
    assert all(set(one.detail) <= set(CATALOGUE[one.type].fields) for one in observed)
    assert projection.detail["marginSeconds"] == (120 - started - minutes) * 60
    late = started + minutes > 120
    assert completed.detail["verdict"] == projection.detail["status"] == ("breach" if late else "met")

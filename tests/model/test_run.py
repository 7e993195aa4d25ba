"""Runs and what hangs on them: their words, and their way through JSON."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlock.model.keys import RunKey
from interlock.model.run import (
    Active,
    Baseline,
    DryRun,
    FailureCategory,
    FinalReason,
    JobEvent,
    JobRecord,
    Marker,
    RerunRecord,
    RerunRequest,
    Run,
    RunStatus,
    SlaKind,
    SlaOutcome,
    SlaState,
    Source,
    Word,
)

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
SLOT: dict[str, Any] = {"pipeline": "p", "schedule": "cron", "date": "2026-03-03"}


def run(status: RunStatus = RunStatus.PENDING, **changes: Any) -> Run:
    return Run(
        **SLOT,
        status=status,
        version=1,
        attempt=1,
        source=Source.FIRST,
        config_version="v",
        opened_at=NOW,
        first_opened_at=NOW,
        updated_at=NOW,
        **changes,
    )


SLA = SlaState(
    **SLOT,
    version=1,
    config_version="v",
    ready_by_at=NOW.replace(hour=11),
    warning_at=NOW,
    breach_at=NOW.replace(hour=13),
    relative_warning_at=NOW.replace(hour=14),
    relative_breach_at=NOW.replace(hour=15),
    fired={SlaKind.WARNING: NOW},
    outcome=SlaOutcome.RECOVERED,
)
RECORDS = [
    run(final_reason=FinalReason.STALE, trigger_payload={"a": 1}),
    JobRecord(**SLOT, event=JobEvent.FAIL, attempt=2, at=NOW, category=FailureCategory.TRANSIENT),
    RerunRequest(**SLOT, id="r", source=Source.MANUAL, at=NOW, force=True),
    RerunRecord(**SLOT, attempt=2, source=Source.LATE_DATA, at=NOW),
    SLA,
    Active(attempt=1, wake_seq=3, token="t"),
    Marker(upstream="u", date="2026-03-03", completed_at=NOW, attempt=1),
    Baseline(attempt=1, at=NOW, version=1, sensors={"k": {"count": 5}}),
    DryRun(**SLOT, version=1, opened_at=NOW, config_version="v", ttl=5),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_records_go_there_and_back(record: msgspec.Struct) -> None:
    text = msgspec.json.encode(record)
    assert msgspec.json.decode(text, type=type(record)) == record
    assert b"_" not in text.replace(b"retries", b""), "fields are camelCase"


@pytest.mark.parametrize("record", [one for one in RECORDS if hasattr(one, "key")], ids=lambda one: type(one).__name__)
def test_records_know_their_run(record: Any) -> None:
    assert record.key == RunKey("p", "cron", "2026-03-03")


def test_defaults_are_not_written() -> None:
    assert msgspec.to_builtins(Active(attempt=1, wake_seq=0)) == {"attempt": 1, "wakeSeq": 0}


@pytest.mark.parametrize(
    ("status", "reason", "word"),
    [
        (RunStatus.PENDING, None, Word.WAITING),
        (RunStatus.FAILED, None, Word.WAITING),
        (RunStatus.TRIGGERING, None, Word.RUNNING),
        (RunStatus.RUNNING, None, Word.RUNNING),
        (RunStatus.COMPLETED, None, Word.DONE),
        (RunStatus.JOB_POLL_EXHAUSTED, None, Word.FAILED),
        (RunStatus.FAILED_FINAL, FinalReason.VALIDATION_EXHAUSTED, Word.HELD),
        (RunStatus.FAILED_FINAL, FinalReason.DEADLINE_EXPIRED, Word.HELD),
        (RunStatus.FAILED_FINAL, FinalReason.RETRIES_USED_UP, Word.FAILED),
        (RunStatus.FAILED_FINAL, FinalReason.STALE, Word.FAILED),
        (RunStatus.FAILED_FINAL, FinalReason.WITHDRAWN, Word.HELD),
        (RunStatus.FAILED_FINAL, FinalReason.CANCELLED, Word.HELD),
    ],
)
def test_words(status: RunStatus, reason: FinalReason | None, word: Word) -> None:
    assert run(status, final_reason=reason).word is word


@pytest.mark.parametrize("reason", [FinalReason.WITHDRAWN, FinalReason.CANCELLED])
def test_a_run_whose_job_was_started_before_it_was_withdrawn_failed(reason: FinalReason) -> None:
    assert run(RunStatus.FAILED_FINAL, final_reason=reason, triggered_at=NOW).word is Word.FAILED


@pytest.mark.parametrize("reason", FinalReason)
def test_which_reasons_cancel_the_sla(reason: FinalReason) -> None:
    assert reason.closes_sla is (reason in {"retries-used-up", "poll-exhausted", "withdrawn", "cancelled"})


@pytest.mark.parametrize("status", RunStatus)
def test_only_two_statuses_are_terminal(status: RunStatus) -> None:
    terminal = status in {RunStatus.COMPLETED, RunStatus.FAILED_FINAL}
    assert status.terminal is terminal
    assert run(status).active is not terminal


@pytest.mark.parametrize("event", JobEvent)
def test_outcomes(event: JobEvent) -> None:
    assert event.outcome is (event.value in {"success", "fail", "timeout"})


@pytest.mark.parametrize(("kind", "hour"), list(zip(SlaKind, (11, 12, 13, 14, 15), strict=True)))
def test_each_alert_has_its_instant(kind: SlaKind, hour: int) -> None:
    assert SLA.instant(kind) == NOW.replace(hour=hour)

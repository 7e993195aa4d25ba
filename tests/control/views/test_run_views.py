"""Runs for readers: pages of them, and what is known of each attempt of one."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from interlock.control import catalog, records, reruns
from interlock.control.context import Control
from interlock.control.views import run_views
from interlock.control.views.event_views import EventView
from interlock.control.views.run_views import Attempt, RunDetail
from interlock.decide.reruns import Budget
from interlock.model import keys
from interlock.model.events import EventType, Severity
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RerunRecord, RunStatus, SlaOutcome, Source, Word
from interlock.ports.store import Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, run_of, settle, staged, write

START: Final = datetime(2026, 3, 5, tzinfo=UTC)
READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
ROWS: Final = {"key": "rows", "check": "gte", "field": "count", "value": 5}


def detail(world: FaultyWorld, key: RunKey = KEY) -> RunDetail:
    found = run_views.run(control_of(world).store, key, world.clock.now())
    assert found is not None
    return found


def at(**delta: float) -> datetime:
    return START + timedelta(**delta)


# ---------------------------------------------------------------------------------------------------------------- pages


def stored(control: Control, *slots: tuple[str, str]) -> None:
    """Runs of these schedules and dates, as copies of a real one."""
    item = control.store.get(records.run_record(KEY, keys.RUN))
    assert item is not None
    for schedule, date in slots:
        where = records.run_record(RunKey("orders", schedule, date), keys.RUN)
        control.store.commit([Put(where, {**item, "schedule": schedule, "date": date})])


@pytest.fixture(name="control")
def fixture_control() -> Control:
    control = control_of(staged(pipeline(), until="+30m"))
    slots = [("cron", "2026-03-04"), ("cron", "2026-03-05"), ("nightly", "2026-03-05"), ("stream", "2026-03-03")]
    stored(control, *slots)
    return control


WHOLE: Final = [
    ("2026-03-05", "stream"),
    ("2026-03-05", "nightly"),
    ("2026-03-05", "cron"),
    ("2026-03-04", "cron"),
    ("2026-03-03", "stream"),
]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_pages_hold_every_run_once_the_latest_date_first_whatever_its_schedule(control: Control, limit: int) -> None:
    found, after = [], None
    for _ in range(10):
        page = run_views.runs(control.store, "orders", after=after, limit=limit)
        assert len(page.items) <= limit
        found += [(one.date, one.schedule) for one in page.items]
        after = page.next
        if after is None:
            break
    assert found == WHOLE


def test_the_runs_of_one_schedule_and_of_nobody(control: Control) -> None:
    of_cron = run_views.runs(control.store, "orders", schedule="cron").items
    assert [one.date for one in of_cron] == ["2026-03-05", "2026-03-04"]
    assert run_views.runs(control.store, "gone").items == []
    assert list(run_views.schedules_with_runs(control.store, KEY.pk)) == ["cron", "nightly", "stream"]


def test_a_run_in_one_line(control: Control) -> None:
    one = run_views.runs(control.store, "orders", schedule="stream", limit=1).items[0]
    assert (one.status, one.word, one.attempt, one.source) == (RunStatus.COMPLETED, Word.DONE, 1, Source.FIRST)
    assert (one.opened_at, one.ended_at, one.duration_seconds) == (at(minutes=10), at(minutes=20), 600.0)


# ---------------------------------------------------------------------------------------------------------------- a run


def test_a_run_that_never_was_is_none() -> None:
    world = staged(pipeline(), until="+1m", steps=[])
    assert run_views.run(control_of(world).store, KEY, world.clock.now()) is None


def test_a_waiting_run_shows_its_rules_as_they_are_now_and_a_decided_one_as_they_were() -> None:
    world = staged(pipeline(validation={"rules": [READY, ROWS]}), until="+15m")
    waiting = detail(world)
    assert waiting.rules_live
    assert [(one.key, one.passed) for one in waiting.rules] == [("ready", True), ("rows", False)]
    write(world, "rows", count=9)
    settle(world)
    write(world, "rows", count=1)
    settle(world)
    running = detail(world)
    assert not running.rules_live
    assert [(one.key, one.passed, one.actual) for one in running.rules] == [("ready", True, "ready"), ("rows", True, 9)]


def test_a_run_that_gave_up_shows_the_rules_of_its_last_evaluation() -> None:
    world = staged(pipeline(validation={"rules": [READY, ROWS]}), until="+15m")
    later(world, hours=2)
    held = detail(world)
    assert (held.word, held.final_reason, held.rules_live) == (Word.HELD, FinalReason.VALIDATION_EXHAUSTED, False)
    assert [(one.key, one.passed) for one in held.rules] == [("ready", True), ("rows", False)]
    (only,) = held.attempts
    assert (only.outcome, only.ended_at) == ("evaluation window closed", at(hours=1, minutes=10))


def retried(**parts: Any) -> FaultyWorld:
    job = {"type": "glue", "config": {"jobName": "x"}, "pollInterval": "1m", "maxRetries": 1, "maxManualReruns": 2}
    jobs = [
        {"after": "5m", "result": "fail", "category": "TRANSIENT", "error": "lost"},
        {"after": "5m", "result": "success"},
    ]
    return staged(pipeline(job=job, **parts), until="+40m", jobs=jobs)


def test_every_attempt_is_known_with_its_ids_its_times_and_its_end() -> None:
    world = retried()
    found = detail(world)
    first, second = found.attempts
    assert (first.attempt, first.source, first.opened_at, first.outcome) == (1, Source.FIRST, at(minutes=10), "failed")
    assert (first.passed_at, first.triggered_at, first.ended_at) == (at(minutes=10), at(minutes=10), at(minutes=15))
    assert first.run_id
    assert first.job_id
    assert first.run_id != second.run_id == found.run_id
    assert (second.attempt, second.source, second.outcome) == (2, Source.JOB_FAIL_TRANSIENT, "completed")
    assert (second.opened_at, second.ended_at) == (at(minutes=15), at(minutes=20))
    assert first.opened_by
    assert found.budgets["transient"] == Budget(used=1, of=1)
    assert [one.attempt for one in found.reruns] == [2]
    assert [record.event for record in found.job_log][-1] == "success"
    assert found.events[0].type is EventType.TRIGGER_STARTED


def test_a_rerun_says_who_asked_for_it_and_why() -> None:
    world = retried()
    reruns.request(control_of(world), KEY, force=True, reason="bad rows", requested_by="ana")
    later(world, minutes=30)
    third = detail(world).attempts[2]
    assert (third.source, third.requested_by, third.reason) == (Source.MANUAL, "ana", "bad rows")
    assert detail(world).budgets["manual"] == Budget(used=1, of=2)


def test_the_sla_of_a_run_is_shown_and_a_run_without_has_none() -> None:
    world = retried(sla={"deadline": "05:00", "expectedDuration": "30m", "dayOffset": 0, "critical": True})
    shown = detail(world).sla
    assert shown is not None
    assert (shown.deadline, shown.warning_at, shown.breach_at) == ("05:00", at(hours=4, minutes=30), at(hours=5))
    assert (shown.outcome, shown.critical, shown.fired) == (SlaOutcome.MET, True, {})
    assert detail(retried()).sla is None


def test_a_deleted_pipeline_s_run_is_still_shown_without_budgets() -> None:
    world = retried()
    catalog.delete_config(control_of(world), "orders")
    found = detail(world)
    assert (found.status, len(found.attempts)) == (RunStatus.COMPLETED, 2)
    assert all(one.of == 0 for one in found.budgets.values())


@pytest.mark.parametrize(
    ("jobs", "outcome"),
    [
        ([{"after": "5m", "result": "timeout"}], "timed out"),
        ([{"after": "1m", "result": "hang"}], "poll window closed"),
    ],
)
def test_how_an_attempt_ended_is_said_in_words(jobs: list[dict[str, Any]], outcome: str) -> None:
    job = {"type": "glue", "config": {"jobName": "x"}, "jobPollWindowSeconds": 600}
    found = detail(staged(pipeline(job=job), until="+40m", jobs=jobs))
    assert found.attempts[-1].outcome == outcome
    assert found.word is Word.FAILED


# -------------------------------------------------------------------------------------------- attempts, by their events


def shown(type_: EventType, minute: int, attempt: int | None = 1, **detail: Any) -> EventView:
    number = {} if attempt is None else {"attempt": attempt}
    return EventView(
        id=f"{minute:013d}#{type_}#1~orders",
        type=type_,
        severity=Severity.INFO,
        pipeline_id="orders",
        schedule_id="stream",
        date=KEY.date,
        message="",
        timestamp=at(minutes=minute),
        detail=number | detail,
    )


def second_attempt(world: FaultyWorld, *events: EventView, reruns: Sequence[RerunRecord] = ()) -> list[Attempt]:
    """The attempts of a run whose second attempt is under way, by these events."""
    run = replace(run_of(world), attempt=2, source=Source.MANUAL, status=RunStatus.PENDING, final_reason=None)
    return run_views.attempts_of(run, reruns, events)


@pytest.fixture(name="world", scope="module")
def fixture_world() -> FaultyWorld:
    return staged(pipeline(), until="+30m")


@pytest.mark.parametrize(
    ("type_", "outcome"),
    [
        (EventType.JOB_COMPLETED, "completed"),
        (EventType.JOB_FAILED, "failed"),
        (EventType.JOB_TIMEOUT, "timed out"),
        (EventType.JOB_POLL_EXHAUSTED, "poll window closed"),
        (EventType.VALIDATION_EXHAUSTED, "evaluation window closed"),
        (EventType.TRIGGER_UNCERTAIN, "start uncertain"),
        (EventType.INFRA_FAILURE, "infrastructure failure"),
        (EventType.SFN_TIMEOUT, "lease expired"),
        (EventType.JOB_CANCELLED, "cancelled"),
        (EventType.RUN_WITHDRAWN, "withdrawn"),
    ],
)
def test_an_earlier_attempt_is_known_by_the_event_of_its_end(
    world: FaultyWorld, type_: EventType, outcome: str
) -> None:
    first, _ = second_attempt(world, shown(type_, 9))
    assert (first.attempt, first.outcome, first.ended_at) == (1, outcome, at(minutes=9))


def test_an_earlier_attempt_is_known_by_all_its_events(world: FaultyWorld) -> None:
    first, second = second_attempt(
        world,
        shown(EventType.TRIGGER_STARTED, 1, source="first", openedBy="sensor ready"),
        shown(EventType.VALIDATION_PASSED, 2),
        shown(EventType.JOB_TRIGGERED, 3, runId="r1", jobId="j1"),
        shown(EventType.SLA_WARNING, 4),
        shown(EventType.JOB_FAILED, 5),
        shown(EventType.RUN_WITHDRAWN, 6),
        shown(EventType.JOB_COMPLETED, 7, attempt=None),
        shown(EventType.JOB_COMPLETED, 8, attempt=3),
    )
    assert (first.source, first.opened_by, first.opened_at) == (Source.FIRST, "sensor ready", at(minutes=1))
    assert (first.passed_at, first.triggered_at) == (at(minutes=2), at(minutes=3))
    assert (first.requested_by, first.reason) == ("", "")
    assert (first.run_id, first.job_id) == ("r1", "j1"), "kept, where its end does not repeat them"
    assert (first.outcome, first.ended_at) == ("failed", at(minutes=5)), "it had ended when it was withdrawn"
    assert (second.attempt, second.source, second.outcome) == (2, Source.MANUAL, "")


def test_a_source_that_is_none_is_left_out(world: FaultyWorld) -> None:
    first, _ = second_attempt(world, shown(EventType.TRIGGER_STARTED, 1, source="magic"))
    assert (first.source, first.opened_by) == (None, "")


def test_a_rerun_record_says_more_than_the_event_of_its_opening(world: FaultyWorld) -> None:
    asked = RerunRecord(
        pipeline="orders", schedule="stream", date=KEY.date, attempt=1, source=Source.MANUAL, at=at(minutes=1),
        reason="bad rows", requested_by="ana",
    )  # fmt: skip
    unknown = replace(asked, attempt=7)
    first, _ = second_attempt(world, reruns=[asked, unknown])
    assert (first.source, first.opened_at, first.reason, first.requested_by) == (
        Source.MANUAL, at(minutes=1), "bad rows", "ana",
    )  # fmt: skip
    opened = shown(EventType.TRIGGER_STARTED, 2, source="manual")
    assert second_attempt(world, opened, reruns=[asked])[0].opened_at == at(minutes=2)


def test_the_end_of_the_latest_attempt_is_its_final_reason_where_no_event_tells_of_it(world: FaultyWorld) -> None:
    run = replace(run_of(world), status=RunStatus.FAILED_FINAL, final_reason=FinalReason.STALE)
    assert run_views.attempts_of(run, [], [])[0].outcome == "stale"
    assert run_views.attempts_of(run, [], [shown(EventType.SFN_TIMEOUT, 9)])[0].outcome == "lease expired"
    done = replace(run, status=RunStatus.COMPLETED, final_reason=None)
    assert run_views.attempts_of(done, [], [])[0].outcome == ""


def test_a_job_that_ended_before_it_began_has_no_duration(world: FaultyWorld) -> None:
    run = run_of(world)
    assert run_views.summary_of(run).duration_seconds == 600.0
    assert run_views.summary_of(replace(run, ended_at=at(minutes=10))).duration_seconds == 0.0
    assert run_views.summary_of(replace(run, ended_at=at(minutes=9))).duration_seconds is None
    assert run_views.summary_of(replace(run, triggered_at=None)).duration_seconds is None


def test_the_rules_of_a_decided_run_are_those_of_its_own_attempt() -> None:
    world = retried()
    found = detail(world)
    assert [one.key for one in found.rules] == ["ready"]
    control_of(world).store.commit([records.put_run(replace(run_of(world), attempt=3, version=99), run_of(world))])
    assert detail(world).rules == [], "of that attempt nothing is known"

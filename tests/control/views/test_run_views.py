"""Runs for readers: pages of them, and what is known of each attempt of one."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from interlock.control import catalog, records, reruns
from interlock.control.context import Control
from interlock.control.views import run_views
from interlock.control.views.run_views import RunDetail
from interlock.decide.reruns import Budget
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import FinalReason, RunStatus, SlaOutcome, Source, Word
from interlock.ports.store import Put
from tests.safety.faults import FaultyWorld
from tests.safety.stage import KEY, control_of, later, pipeline, settle, staged, write

START: Final = datetime(2026, 3, 5, tzinfo=UTC)
READY: Final = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
ROWS: Final = {"key": "rows", "check": "gte", "field": "count", "value": 5}


def detail(world: FaultyWorld, key: RunKey = KEY) -> RunDetail:
    found = run_views.run(control_of(world).store, key, world.clock.now())
    assert found is not None
    return found


def at(**delta: float) -> datetime:
    return START + timedelta(**delta)


# ------------------------------------------------------------------------------------------------------------ pages


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


# ---------------------------------------------------------------------------------------------------------- a run


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

"""Claims: one claimant of an attempt, once its rules pass; what follows is as for every run."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from interlock.control import catalog, records, writing
from interlock.control.attempts import claiming, opening
from interlock.control.attempts.claiming import Claim
from interlock.control.context import Settings
from interlock.control.views.explain import explain
from interlock.embedded.sqlite.database import AFTER_COMMIT, BEFORE_COMMIT
from interlock.jobs.external import ExternalRunner
from interlock.model.audit import AuditAction
from interlock.model.config import JobType
from interlock.model.errors import InvalidValueError, UnknownPipelineError
from interlock.model.events import EventType
from interlock.model.keys import RunKey
from interlock.model.run import JobEvent, Run, RunStatus
from interlock.ports.jobs import JobRunner
from interlock.ports.store import Conflict, Write
from interlock.simulation.scenario import inline_scenario
from interlock.simulation.world import Fault, SimulatedCrash, World
from tests.control.test_auditing import ANN, Watched

DAY = "2026-03-02"
KEY = RunKey("gold", "stream", DAY)
GOLD: dict[str, Any] = {
    "pipeline": {"id": "gold"},
    "schedule": {"timezone": "UTC"},
    "sla": {"deadline": "12:00", "dayOffset": 0},
    "validation": {"rules": [{"key": "rows", "check": "gte", "field": "count", "value": 10}]},
    "job": {"type": "external", "maxRetries": 1, "jobPollWindowSeconds": 3600},
}


class Stage:
    """A controller on virtual time, from 08:00 on."""

    def __init__(self, *pipelines: dict[str, Any], ready: bool = True, fault: Fault | None = None) -> None:
        made = inline_scenario(start=f"{DAY}T08:00:00Z", until=f"{DAY}T08:00:00Z", pipelines=list(pipelines or (GOLD,)))
        self.world = World(made, fault=fault)
        runners: dict[str, JobRunner] = {JobType.EXTERNAL: ExternalRunner()}
        # Not the scripted target: the job is the claimant's.
        self.world.targets.runners = lambda: runners  # type: ignore[method-assign]
        self.world.play()
        if ready:
            self.write(count=50)
            self.settle()

    def write(self, **data: Any) -> None:
        """Written, and not yet routed."""
        writing.write_sensor(self.world.engine.control, "gold", "rows", data)

    def claim(self, name: str = "airflow", key: RunKey = KEY) -> Claim:
        return claiming.claim(self.world.engine.control, key, claim_id=f"claim of {name}", by=name)

    def report(self, result: JobEvent) -> None:
        writing.report_job(self.world.engine.control, KEY, result)
        self.settle()

    def settle(self) -> None:
        """Until nothing is left to do at this instant."""
        engine, now = self.world.engine, self.world.clock.now()
        while engine.router.pump() + engine.fire_timers(now) + engine.executions.run_due(now):
            pass

    def wait(self, **time: int) -> None:
        """Some time passes."""
        self.world.clock.move_to(self.world.clock.now() + timedelta(**time))
        self.settle()

    @property
    def run(self) -> Run:
        found = self.world.run_of(KEY)
        assert found is not None
        return found

    def events(self) -> list[EventType]:
        self.world._recorder.pump()
        return [one.type for one in self.world.events]


def test_a_claim_opens_and_starts_the_run_and_the_report_ends_it() -> None:
    stage = Stage()
    found = stage.claim()
    assert (found.claimed, found.attempt, found.claimed_by) == (True, 1, "airflow")
    run = stage.run
    assert (run.status, run.run_id, run.opened_by) == (RunStatus.RUNNING, found.run_id, "a claim of airflow")
    assert run.inputs.keys() == {"rows"}
    assert explain(stage.world.engine.store, "gold", run.updated_at, date=DAY).advice.endswith(", claimed by airflow).")
    stage.settle()
    stage.report(JobEvent.SUCCESS)
    assert stage.run.status is RunStatus.COMPLETED
    assert stage.events() == [
        EventType.TRIGGER_STARTED,
        EventType.VALIDATION_PASSED,
        EventType.JOB_TRIGGERED,
        EventType.JOB_STARTED,
        EventType.JOB_COMPLETED,
        EventType.SLA_MET,
    ]


def test_the_second_claimant_is_refused_and_the_same_claim_is_not() -> None:
    stage = Stage()
    first = stage.claim()
    second = stage.claim("cron")
    assert (second.claimed, second.later, second.run_id) == (False, False, "")
    assert "claimed by airflow already" in second.reason
    again = stage.claim()
    assert (again.claimed, again.run_id) == (True, first.run_id)
    stage.settle()
    assert stage.events().count(EventType.JOB_TRIGGERED) == 1


def test_a_claim_that_is_not_ready_opens_nothing() -> None:
    stage = Stage(ready=False)
    found = stage.claim()
    assert (found.claimed, found.later) == (False, True)
    assert "no sensor rows" in found.reason
    assert stage.world.run_of(KEY) is None
    stage.write(count=9)
    assert "count is 9, needs >= 10" in stage.claim().reason
    stage.write(count=10)
    assert stage.claim().claimed


def waiting() -> Stage:
    """A run that its cron has opened, and that waits for its rules."""
    return Stage({**GOLD, "schedule": {"cron": "0 8 * * *"}}, ready=False)


CRON = RunKey("gold", "cron", DAY)


def test_a_waiting_run_is_started_by_the_claim_alone() -> None:
    stage = waiting()
    assert stage.claim(key=CRON).later
    stage.write(count=50)
    assert stage.claim(key=CRON).claimed  # before the controller has looked at the write
    assert not stage.claim("cron", CRON).claimed
    stage.settle()
    events = stage.events()
    assert [events.count(one) for one in (EventType.VALIDATION_PASSED, EventType.JOB_TRIGGERED)] == [1, 1]
    assert EventType.JOB_STARTED in events


def test_what_the_lifecycle_has_started_is_taken_once() -> None:
    stage = waiting()
    stage.write(count=50)
    stage.settle()
    assert stage.claim(key=CRON).claimed
    assert "claimed by airflow" in stage.claim("cron", CRON).reason
    stage.settle()
    assert stage.events().count(EventType.JOB_TRIGGERED) == 1


def test_each_retry_is_claimed_anew() -> None:
    stage = Stage()
    stage.claim()
    stage.settle()
    stage.report(JobEvent.FAIL)
    assert (stage.run.status, stage.run.attempt, stage.run.claim_id) == (RunStatus.RUNNING, 2, "")
    found = stage.claim("cron")
    assert (found.claimed, found.attempt) == (True, 2)


def test_a_claimed_run_that_nobody_reports_on_is_given_up_at_the_end_of_its_poll_window() -> None:
    stage = Stage()
    stage.claim()
    stage.settle()
    stage.wait(hours=1)
    assert stage.run.final_reason == "poll-exhausted"
    refused = stage.claim()
    assert (refused.claimed, refused.later) == (False, False)
    assert "`interlock rerun` opens another" in refused.reason


def test_what_is_done_is_not_claimed_again() -> None:
    stage = Stage()
    stage.claim()
    stage.settle()
    stage.report(JobEvent.SUCCESS)
    refused = stage.claim()
    assert (refused.claimed, refused.later) == (False, False)
    assert "it is done" in refused.reason


def test_a_claim_survives_a_crash_before_anybody_has_heard_of_it() -> None:
    stage = Stage()
    assert stage.claim().claimed
    stage.world.crash()
    stage.settle()
    assert EventType.JOB_STARTED in stage.events()
    assert EventType.TRIGGER_RECOVERED not in stage.events()


class CrashAt:
    """The controller dies at a commit, counted from when this is armed."""

    def __init__(self, point: str, number: int) -> None:
        self.point, self.left = point, number
        self.armed = self.struck = False

    def __call__(self, point: str) -> None:
        if not self.armed or self.struck or point != self.point:
            return
        self.left -= 1
        if self.left == 0:
            self.struck = True
            raise SimulatedCrash


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("point", [BEFORE_COMMIT, AFTER_COMMIT])
def test_whatever_crashes_the_same_claim_is_granted_and_started_once(point: str, number: int) -> None:
    """A claim of a period without a run is two commits: it is opened, and it is started."""
    fault = CrashAt(point, number)
    stage = Stage(fault=fault)
    fault.armed = True
    with pytest.raises(SimulatedCrash):
        stage.claim()
    assert fault.struck
    stage.world.crash()
    stage.settle()
    assert stage.claim().claimed
    assert not stage.claim("cron").claimed
    stage.settle()
    stage.report(JobEvent.SUCCESS)
    assert (stage.run.status, stage.run.attempt) == (RunStatus.COMPLETED, 1)
    events = stage.events()
    assert [events.count(one) for one in (EventType.JOB_TRIGGERED, EventType.JOB_STARTED)] == [1, 1]


def test_of_two_claims_at_once_one_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    control = stage.world.engine.control
    real = control.store.commit
    other: list[Claim] = []

    def commit(writes: list[Write]) -> Conflict | None:
        if not other and records.get_run(control.store, KEY) is not None:
            other.append(Claim(pipeline="", schedule="", date="", claimed=False, reason="on its way"))
            other[0] = stage.claim("cron")
        return real(writes)

    monkeypatch.setattr(control.store, "commit", commit)
    mine = stage.claim()
    assert (other[0].claimed, mine.claimed) == (True, False)
    stage.settle()
    assert stage.events().count(EventType.JOB_TRIGGERED) == 1


@pytest.mark.parametrize(
    ("changes", "key", "later", "reason"),
    [
        ({"schedule": {"exclude": {"dates": [DAY]}}}, KEY, False, "is excluded"),
        ({}, RunKey("gold", "stream", "2026-03-03"), True, "begins at 2026-03-03T00:00:00Z"),
        ({"schedule": {"cron": "0 9 * * *"}}, CRON, True, "begins at 2026-03-02T09:00:00Z"),
        ({"after": [{"pipeline": "silver"}]}, KEY, True, "awaits upstream silver"),
        (
            {"dryRun": True, "schedule": {"trigger": {"key": "rows", "check": "exists"}}},
            KEY,
            False,
            "nothing is started: gold is a dry run",
        ),
    ],
)
def test_what_keeps_a_run_from_being_claimed(changes: dict[str, Any], key: RunKey, later: bool, reason: str) -> None:
    silver = {**GOLD, "pipeline": {"id": "silver"}}
    stage = Stage({**GOLD, **changes}, silver)
    found = stage.claim(key=key)
    assert (found.claimed, found.later) == (False, later)
    assert reason in found.reason
    assert stage.world.run_of(key) is None


def test_a_pipeline_that_was_deleted_is_not_claimed() -> None:
    stage = Stage()
    catalog.delete_config(stage.world.engine.control, "gold")
    with pytest.raises(UnknownPipelineError):
        stage.claim()


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"job": {"type": "command", "config": {"command": ["true"]}}}, KEY, "only jobs of type external are claimed"),
        ({"schedule": {"cron": "0 8 * * *"}}, RunKey("gold", "cron", f"{DAY}T08"), "one day; the nearest: 2026-03-02"),
        ({"schedule": {"granularity": "hour"}}, KEY, "each run of gold is for one hour"),
        ({}, RunKey("gold", "other", DAY), "has no schedule 'other'"),
    ],
)
def test_what_cannot_be_claimed_at_all_is_an_error(changes: dict[str, Any], key: RunKey, said: str) -> None:
    stage = Stage({**GOLD, **changes})
    with pytest.raises(InvalidValueError, match=said):
        stage.claim(key=key)


def test_a_claim_needs_an_id() -> None:
    with pytest.raises(InvalidValueError, match="needs an id"):
        claiming.claim(Stage().world.engine.control, KEY, claim_id="", by="nobody")


def test_a_claim_needs_a_slot_of_the_pool_of_its_job() -> None:
    pooled = {**GOLD, "job": {"type": "external", "pool": "warehouse"}}
    stage = Stage(pooled, {**pooled, "pipeline": {"id": "silver"}})
    control = replace(stage.world.engine.control, settings=Settings(pools={"warehouse": 1}))
    writing.write_sensor(control, "silver", "rows", {"count": 50})
    silver = RunKey("silver", "stream", DAY)
    assert claiming.claim(control, KEY, claim_id="a", by="a").claimed
    full = claiming.claim(control, silver, claim_id="b", by="b")
    assert (full.claimed, full.later, full.reason) == (False, True, "the pool of its job is full")
    stage.report(JobEvent.SUCCESS)
    assert claiming.claim(control, silver, claim_id="b", by="b").claimed


def test_a_claim_is_recorded_with_what_the_run_was_and_has_become() -> None:
    stage = Stage()
    store = Watched(stage.world.engine.store)
    ann = replace(stage.world.engine.control, store=store).acting(ANN)
    found = claiming.claim(ann, KEY, claim_id="hers", by="ann")
    (made,) = [one for one in store.notes if one.action is AuditAction.RUN_CLAIMED]
    assert (made.pipeline, made.date, made.subject) == ("gold", DAY, "hers")
    assert made.before == {"status": "PENDING", "attempt": 1}
    assert made.after == {"status": "RUNNING", "attempt": 1, "runId": found.run_id}
    claiming.claim(ann, KEY, claim_id="hers", by="ann")
    assert len([one for one in store.notes if one.action is AuditAction.RUN_CLAIMED]) == 1, "the same claim again"


def test_a_run_that_cannot_be_opened_may_be_claimed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others open and end it between two looks, or its config is changed under it."""
    stage, tries = Stage(), list[str]()
    monkeypatch.setattr(opening, "open_first_with", lambda control, current, start: tries.append(start.opened_by))
    found = claiming.claim(stage.world.engine.control, KEY, claim_id="x", by="")
    assert (found.claimed, found.later, found.attempt, found.run_id) == (False, True, None, "")
    assert tries == ["a claim"] * 3, "a few times, not for ever; and nobody is named who has no name"


def test_a_period_may_be_claimed_from_its_first_instant_on() -> None:
    stage = Stage({**GOLD, "schedule": {"granularity": "hour"}})
    assert stage.claim(key=RunKey("gold", "stream", f"{DAY}T08")).claimed
    assert stage.claim(key=RunKey("gold", "stream", f"{DAY}T09")).later


def test_a_claimed_run_of_a_tick_knows_its_tick_and_another_has_none() -> None:
    stage = Stage({**GOLD, "schedule": {"cron": "0 7 * * *"}})
    assert stage.claim(key=CRON).claimed
    run = stage.world.run_of(CRON)
    assert run is not None
    assert run.tick_at == datetime(2026, 3, 2, 7, tzinfo=UTC)
    undated = Stage()
    undated.claim()
    assert undated.run.tick_at is None


def test_an_attempt_whose_rules_have_passed_is_claimed_with_the_slot_it_has() -> None:
    """The lifecycle was faster with the rules, and not with the start."""
    stage = Stage({**GOLD, "job": {"type": "external", "pool": "warehouse"}})
    control = replace(stage.world.engine.control, settings=Settings(pools={"warehouse": 1}))
    assert claiming.claim(control, KEY, claim_id="a", by="a").claimed
    taken = stage.run
    passed = structs.replace(
        taken, status=RunStatus.PENDING, version=taken.version + 1, run_id="", claim_id="", claimed_by="", job_id=""
    )
    assert control.store.commit([records.put_run(passed, taken)]) is None
    assert (passed.passed_at is not None, passed.slot) == (True, "warehouse#00000")
    assert claiming.claim(control, KEY, claim_id="b", by="b").claimed
    assert (stage.run.slot, stage.run.claimed_by) == ("warehouse#00000", "b")
    stage.world._recorder.pump()
    assert stage.events().count(EventType.VALIDATION_PASSED) == 1, "its rules have passed once"

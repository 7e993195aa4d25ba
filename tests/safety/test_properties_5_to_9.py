"""The nine safety properties (SPEC 5), the last five: each kept under strain, and each missed when it is broken.

A class has two kinds of test. The first shows the property where a plausible mistake would break it. The second,
`the property's own check`, takes the guard away and demands that the checker notices: a checker that is content with
everything protects nothing.
"""

from typing import Any

import pytest

from interlock.control import event_sink, observing, records, reruns, sla_monitor, waking
from interlock.control.attempts import completion, opening
from interlock.control.watch import watchdog as watching
from interlock.decide import retries
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.run import FinalReason, RunStatus
from interlock.ports.store import Put
from tests.safety.faults import FaultPlan, FaultyWorld, Loss
from tests.safety.invariants import PROPERTIES, violations
from tests.safety.ledger import Ledger
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged, write

GLUE = {"type": "glue", "config": {"jobName": "orders"}, "pollInterval": "1m"}
ROWS = {"key": "rows", "check": "gte", "field": "count", "value": 100}
FAILING = [{"after": "5m", "result": "fail", "category": "TRANSIENT", "error": "lost"}]


def broken(world: FaultyWorld, number: int) -> list[str]:
    """What the checker of one property says."""
    return list(PROPERTIES[number](Ledger(world)))


class TestEveryWriteConsidered:
    """5. Every stored sensor write is considered, at least once, after any crash; twice does no harm."""

    STEPS = (
        {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
        {"at": "+13m", "sensor": "orders/rows", "data": {"count": 100}},
        {"at": "+40m", "sensor": "orders/rows", "data": {"count": 900}},
    )
    CONFIG = pipeline(
        validation={"rules": [ROWS]}, postRun={"rules": [ROWS], "driftField": "count"}, job=GLUE | {"maxDriftReruns": 1}
    )

    POINTS = range(staged(CONFIG, until="2026-03-05T02:00:00Z", steps=list(STEPS)).points)

    @pytest.mark.parametrize("point", POINTS)
    def test_crash_at_any_commit_changes_nothing_of_what_happens(self, point: int) -> None:
        calm = staged(self.CONFIG, until="2026-03-05T02:00:00Z", steps=list(self.STEPS))
        world = staged(
            self.CONFIG, until="2026-03-05T02:00:00Z", steps=list(self.STEPS), plan=FaultPlan(crashes=(point,))
        )
        assert world.crashed == [point]
        assert [(e.type, e.timestamp) for e in world.events] == [(e.type, e.timestamp) for e in calm.events]
        assert violations(world) == []

    def test_the_whole_stream_delivered_again_does_no_harm(self) -> None:
        world = staged(self.CONFIG, until="2026-03-05T02:00:00Z", steps=list(self.STEPS))
        before = [(e.type, e.timestamp) for e in world.events]
        world._redeliver(100_000)
        settle(world)
        later(world, minutes=30)
        assert [(e.type, e.timestamp) for e in world.events if e.type is not EventType.POST_RUN_SENSOR_MISSING] == [
            one for one in before if one[0] is not EventType.POST_RUN_SENSOR_MISSING
        ]
        assert violations(world) == []

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A wake-up that is lost, with an interval that is longer than the test looks on."""
        monkeypatch.setattr(waking, "wake_readers", lambda *args: None)
        schedule = pipeline()["schedule"] | {"evaluation": {"window": "3h", "interval": "2h"}}
        config = pipeline(validation={"rules": [ROWS]}, schedule=schedule)
        world = staged(config, until="2026-03-05T01:00:00Z", steps=list(self.STEPS[:2]))
        assert any("a sensor write was not considered" in one for one in broken(world, 5))


class TestWithinBudget:
    """6. No budget is exceeded."""

    def test_starts_of_an_attempt_are_counted_across_lost_executions(self) -> None:
        refusing = [{"result": "refuse", "category": "TRANSIENT"}]
        plan = FaultPlan(lost_executions=tuple(Loss(instant, 0) for instant in range(3, 20)))
        world = staged(pipeline(), until="2026-03-05T05:00:00Z", jobs=refusing, plan=plan)
        assert run_of(world).final_reason is FinalReason.TRIGGER_EXHAUSTED
        assert violations(world) == []

    RETRIED = pipeline(job=GLUE | {"maxRetries": 2})
    # Twice on the way, seven points apart.
    POINTS = range(staged(RETRIED, until="2026-03-05T02:00:00Z", jobs=FAILING).points - 7)

    @pytest.mark.parametrize("point", POINTS)
    def test_retries_are_counted_across_crashes(self, point: int) -> None:
        plan = FaultPlan(crashes=(point, point + 7))
        world = staged(self.RETRIED, until="2026-03-05T02:00:00Z", jobs=FAILING, plan=plan)
        assert world.crashed == [point, point + 7]
        assert (run_of(world).attempt, run_of(world).final_reason) == (3, FinalReason.RETRIES_USED_UP)
        assert violations(world) == []

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = retries.after_failure
        monkeypatch.setattr(retries, "after_failure", lambda job, category, done: real(job, category, list(done[:-1])))
        config = pipeline(job=GLUE | {"maxRetries": 1})
        world = staged(config, until="2026-03-05T00:40:00Z", jobs=FAILING)
        assert any("are allowed" in one for one in broken(world, 6))


class TestAlertsOnce:
    """7. Each SLA alert at most once per run, never after it finished, never missed if it did not."""

    SLA = pipeline(sla={"deadline": "00:30", "dayOffset": 0, "expectedDuration": "10m"})

    def test_lost_timers_are_made_up_for_by_the_watchdog(self) -> None:
        plan = FaultPlan(lost_timers=tuple(Loss(instant, pick) for instant in range(12) for pick in (0, 0)))
        world = staged(self.SLA, until="2026-03-05T02:00:00Z", jobs=[{"result": "hang"}], plan=plan)
        assert (count_events(world, EventType.SLA_WARNING, KEY), count_events(world, EventType.SLA_BREACH, KEY)) == (
            1,
            1,
        )
        assert violations(world) == []

    def test_lost_timer_is_made_up_for_although_the_config_has_no_sla_any_more(self) -> None:
        ready = {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}}
        steps = [ready, {"at": "+15m", "apply": pipeline()}]
        world = staged(self.SLA, until="2026-03-05T00:16:00Z", steps=steps, jobs=[{"result": "hang"}])
        world._lose("timers", "kind = 'sla'", 0)
        world._lose("timers", "kind = 'sla'", 0)
        later(world, hours=1)
        assert (count_events(world, EventType.SLA_WARNING, KEY), count_events(world, EventType.SLA_BREACH, KEY)) == (
            1,
            1,
        )

    def test_alert_is_not_given_after_the_run_finished(self) -> None:
        world = staged(self.SLA, until="2026-03-05T00:25:00Z")
        assert run_of(world).status is RunStatus.COMPLETED
        later(world, hours=1)
        sla_monitor.fire_alerts(control_of(world), KEY)
        assert count_events(world, EventType.SLA_BREACH, KEY) == 0

    def test_the_propertys_own_check_of_missed_alerts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sla_monitor, "fire_alerts", lambda control, key: {"fired": []})
        world = staged(self.SLA, until="2026-03-05T02:00:00Z", jobs=[{"result": "hang"}])
        assert any("never given" in one for one in broken(world, 7))

    def test_the_propertys_own_check_of_late_alerts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sla_monitor, "_finished", lambda run: False)
        monkeypatch.setattr(completion, "_sla_verdict", lambda control, run, now: ([], []))
        world = staged(self.SLA, until="2026-03-05T02:00:00Z", jobs=[{"after": "5m", "result": "success"}])
        assert any("after the run had completed" in one for one in broken(world, 7))


class TestEventsWithChanges:
    """8. Events are committed with the change they tell of; delivered at least once to each; in order per pipeline."""

    def test_recovered_start_is_told_in_the_commit_that_opens_the_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = staged(pipeline(), until="2026-03-05T00:10:30Z", steps=[])
        with monkeypatch.context() as lost:
            lost.setattr(observing, "observe", lambda *args: None)
            write(world, "ready", status="ready")
            settle(world)
        commits: list[list[str]] = []
        store = control_of(world).store
        real = store.commit

        def commit(writes: Any) -> Any:
            commits.append([write.key.sk for write in writes])
            return real(writes)

        monkeypatch.setattr(store, "commit", commit)
        later(world, minutes=6)
        opened = next(sks for sks in commits if any(sk.startswith(keys.RUN) for sk in sks))
        assert any(EventType.TRIGGER_RECOVERED in sk for sk in opened)

    def test_subscriber_that_fails_is_given_the_event_again_and_order_is_kept(self) -> None:
        world = staged(pipeline(), until="2026-03-05T00:05:00Z", steps=[])
        failures = iter([True, True])
        seen: list[str] = []

        def subscriber(event: Any) -> None:
            if event.type is EventType.VALIDATION_PASSED and next(failures, False):
                raise RuntimeError("busy")
            seen.append(event.type)

        world.engine.bus.subscribe(subscriber)
        write(world, "ready", status="ready")
        settle(world)
        first = list(dict.fromkeys(seen))
        assert first[:3] == [EventType.TRIGGER_STARTED, EventType.VALIDATION_PASSED, EventType.JOB_TRIGGERED]
        assert DeadLetters(world.database).count() == 0

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A completion that commits its event in a second commit, and dies before it."""
        real = completion.success_writes

        def without_events(*args: Any) -> list[Any]:
            return [write for write in real(*args) if write.key.table is not keys.Table.EVENTS]

        monkeypatch.setattr(completion, "success_writes", without_events)
        world = staged(pipeline(), until="2026-03-05T01:00:00Z")
        assert any("JOB_COMPLETED was never told" in one for one in broken(world, 8))

    def test_the_propertys_own_check_of_delivery(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = event_sink.handle
        monkeypatch.setattr(event_sink, "handle", lambda bus, changes: real(bus, list(reversed(changes))[1:]))
        world = staged(pipeline(), until="2026-03-05T01:00:00Z")
        assert any("did not deliver every event" in one for one in broken(world, 8))


class TestNothingSilent:
    """9. Nothing fails silently: what is dropped is a dead letter, an event or an error."""

    def test_refused_report_is_an_error_and_refused_rerun_an_event(self) -> None:
        steps: list[dict[str, Any]] = [
            {"at": "+5m", "job": "orders", "date": KEY.date, "result": "success"},
            {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
            {"at": "+12m", "rerun": "orders", "date": KEY.date},
        ]
        world = staged(pipeline(), until="2026-03-05T01:00:00Z", steps=steps)
        assert any("refused: " in str(getattr(line, "text", "")) for line in world.lines)
        assert count_events(world, EventType.RERUN_REJECTED) == 1
        assert violations(world) == []

    def test_change_that_can_not_be_handled_is_a_dead_letter(self) -> None:
        world = staged(pipeline(), until="2026-03-05T00:12:00Z")
        damaged = {"status": "no such status"}
        control_of(world).store.commit([Put(records.run_record(KEY, keys.RUN), damaged)])
        world._settle(world.clock.now())  # not `settle`, which demands that nothing is given up
        assert DeadLetters(world.database).count() >= 1

    def test_failing_check_of_the_watchdog_is_told_of(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(control: Any, watched: Any) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(watching, "CHECKS", (("broken", fails), *watching.CHECKS))
        world = staged(pipeline(), until="2026-03-05T00:01:00Z")
        found = world.engine.store.events_by_type(EventType.WATCHDOG_DEGRADED, since=0, until=10**15, limit=10)
        assert found
        assert found[0].item["detail"]["checks"] == ["broken"]

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reruns, "process", lambda control, where: None)
        steps = [{"at": "+10m", "rerun": "orders", "date": KEY.date}]
        world = staged(pipeline(), until="2026-03-05T00:15:00Z", steps=steps)
        assert any("was never decided" in one for one in broken(world, 9))

    def test_the_propertys_own_check_of_ticks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(opening, "open_first", lambda *args: opening.Opened.NO_CONFIG)
        monkeypatch.setattr(watching, "CHECKS", tuple(one for one in watching.CHECKS if one[0] != "missed-schedules"))
        world = staged(pipeline(schedule={"cron": "0 6 * * *"}), until="2026-03-05T08:00:00Z", steps=[])
        assert any("nobody was told" in one for one in broken(world, 9))

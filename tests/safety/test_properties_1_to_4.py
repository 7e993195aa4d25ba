"""The nine safety properties (SPEC 5), the first four: each kept under strain, and each missed when it is broken.

A class has two kinds of test. The first shows the property where a plausible mistake would break it. The second,
`the property's own check`, takes the guard away and demands that the checker notices: a checker that is content with
everything protects nothing.
"""

from typing import Any

import msgspec
import pytest

from interlock.control import catalog, readiness, records
from interlock.control.attempts import opening, starting
from interlock.control.watch import reconciling
from interlock.decide import expected
from interlock.decide.rules import Verdict
from interlock.model import keys
from interlock.model.events import EventType
from interlock.model.run import FinalReason, RunStatus
from interlock.ports.store import Put
from interlock.simulation.scenario import inline_scenario
from tests.safety.faults import FaultPlan, FaultyWorld, Loss
from tests.safety.invariants import PROPERTIES, violations
from tests.safety.ledger import Ledger
from tests.safety.stage import KEY, control_of, count_events, later, pipeline, run_of, settle, staged

GLUE = {"type": "glue", "config": {"jobName": "orders"}, "pollInterval": "1m"}
ROWS = {"key": "rows", "check": "gte", "field": "count", "value": 100}
FAILING = [{"after": "5m", "result": "fail", "category": "TRANSIENT", "error": "lost"}]


CAREFUL = pipeline(validation={"rules": [ROWS]})
RELAXED: list[dict[str, Any]] = [
    {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
    {"at": "+20m", "apply": pipeline()},
    {"at": "+30m", "sensor": "orders/ready", "data": {"status": "ready", "rows": 2}},
]


def broken(world: FaultyWorld, number: int) -> list[str]:
    """What the checker of one property says."""
    return list(PROPERTIES[number](Ledger(world)))


def _start_again(control: Any, config: Any, intent: Any) -> Any:
    return starting.runner_of(control, config).start(starting.request_of(control, config, intent.run))


class TestRulesFirst:
    """1. No job starts unless the rules passed in an evaluation of the same attempt."""

    def test_rerun_evaluates_again_although_the_attempt_before_it_passed(self) -> None:
        config = pipeline(validation={"rules": [ROWS]}, job=GLUE | {"maxManualReruns": 2})
        good = {"at": "+11m", "sensor": "orders/rows", "data": {"count": 100}}
        bad = {"at": "+30m", "sensor": "orders/rows", "data": {"count": 3}}
        again = {"at": "+31m", "rerun": "orders", "date": KEY.date}
        ready = {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}}
        world = staged(config, until="2026-03-05T01:00:00Z", steps=[ready, good, bad, again])
        assert (run_of(world).attempt, run_of(world).status) == (2, RunStatus.PENDING)
        assert world.targets.starts == [(str(KEY), 1)]
        assert violations(world) == []

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = readiness.verdict

        def careless(*args: Any) -> Verdict:
            return msgspec.structs.replace(real(*args), passed=True)

        monkeypatch.setattr(readiness, "verdict", careless)
        world = staged(pipeline(validation={"rules": [ROWS]}), until="2026-03-05T00:15:00Z")
        assert any("rules that did not pass" in one for one in broken(world, 1))

    def test_attempt_keeps_the_rules_it_was_opened_with(self) -> None:
        world = staged(CAREFUL, until="2026-03-05T00:40:00Z", steps=RELAXED)
        assert run_of(world).status is RunStatus.PENDING
        assert violations(world) == []

    def test_the_propertys_own_check_of_versions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(catalog, "opened_with", lambda store, pipeline, version: catalog.current(store, pipeline))
        world = staged(CAREFUL, until="2026-03-05T00:40:00Z", steps=RELAXED)
        monkeypatch.undo()
        assert any("rules that did not pass" in one for one in broken(world, 1))


class TestOneAtATime:
    """2. At most one active attempt per run; at most one job start per attempt."""

    # Before and after every commit that a calm hour has.
    POINTS = range(staged(pipeline(), until="2026-03-05T01:00:00Z").points)

    @pytest.mark.parametrize("point", POINTS)
    def test_crash_at_any_commit_starts_the_job_once(self, point: int) -> None:
        world = staged(pipeline(), until="2026-03-05T01:00:00Z", plan=FaultPlan(crashes=(point,)))
        assert world.crashed == [point]
        assert world.targets.starts == [(str(KEY), 1)]
        assert run_of(world).status is RunStatus.COMPLETED
        assert violations(world) == []

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the committed intent, a crash after the call starts the job a second time."""
        monkeypatch.setattr(starting, "_call", _start_again)
        found: list[str] = []
        for point in self.POINTS:
            world = staged(pipeline(), until="2026-03-05T01:00:00Z", plan=FaultPlan(crashes=(point,)))
            found += broken(world, 2)
        assert any("was started 2 times" in one for one in found)


class TestNothingWithheld:
    """3. Nothing is opened on an excluded date; nothing ever starts in dry-run mode."""

    EXCLUDED = pipeline()["schedule"] | {"exclude": {"dates": [KEY.date]}}

    def test_excluded_date_is_opened_by_nobody(self) -> None:
        steps: list[dict[str, Any]] = [
            {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}},
            {"at": "+20m", "rerun": "orders", "date": KEY.date, "force": True},
        ]
        world = staged(pipeline(schedule=self.EXCLUDED), until="2026-03-05T03:00:00Z", steps=steps)
        assert world.run_of(KEY) is None
        assert (count_events(world, EventType.PIPELINE_EXCLUDED), count_events(world, EventType.RERUN_REJECTED)) == (
            1,
            1,
        )
        assert violations(world) == []

    def test_sensor_whose_day_can_not_be_told_opens_nothing_however_often_the_watchdog_looks(self) -> None:
        steps = [{"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready", "date": "soon"}}]
        world = staged(pipeline(), until="2026-03-05T03:00:00Z", steps=steps)
        assert not Ledger(world).runs
        assert count_events(world, EventType.SENSOR_INVALID) == 1

    @pytest.mark.parametrize("delay", ["0s", "20m"])
    def test_pipeline_that_becomes_a_dry_run_is_not_retried(self, delay: str) -> None:
        config = pipeline(job=GLUE | {"maxRetries": 3, "retryDelay": delay})
        until = "2026-03-05T00:12:00Z" if delay == "0s" else "2026-03-05T00:20:00Z"
        world = staged(config, until=until, jobs=FAILING)
        changed = inline_scenario(start="2026-03-05T00:00:00Z", until="+1h", pipelines=[config | {"dryRun": True}])
        applied = changed.pipelines[0]
        catalog.apply_config(control_of(world), applied.config, applied.document)
        settle(world)
        later(world, hours=2)
        assert world.targets.starts == [(str(KEY), 1)]
        assert run_of(world).final_reason is FinalReason.WITHDRAWN

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(expected, "calendar_reason", lambda *args: None)
        world = staged(pipeline(schedule=self.EXCLUDED), until="2026-03-05T00:15:00Z")
        monkeypatch.undo()
        assert any("was opened although" in one for one in broken(world, 3))

    def test_the_propertys_own_check_of_dry_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        world = staged(pipeline(dryRun=True), until="2026-03-05T00:05:00Z", steps=[])
        found = catalog.stored(control_of(world).store, "orders")
        assert found is not None
        assert found.config is not None
        real = msgspec.structs.replace(found, config=msgspec.structs.replace(found.config, dry_run=False))
        monkeypatch.setattr(catalog, "stored", lambda store, pipeline: real)
        opening.open_first(control_of(world), opening.Start(key=KEY, opened_by="sensor ready"))
        monkeypatch.undo()
        settle(world)
        assert any("dry run" in one for one in broken(world, 3))

    def test_removed_pipeline_opens_nothing_until_it_is_back(self) -> None:
        ready = {"sensor": "orders/ready", "data": {"status": "ready"}}
        steps: list[dict[str, Any]] = [
            {"at": "+5m", "remove": "orders"},
            {"at": "+10m"} | ready,
            {"at": "+20m", "apply": pipeline()},
        ]
        world = staged(pipeline(), until="2026-03-05T03:00:00Z", steps=steps)
        assert not Ledger(world).runs
        world = staged(pipeline(), until="2026-03-05T03:00:00Z", steps=[*steps, {"at": "+30m"} | ready])
        assert run_of(world).status is RunStatus.COMPLETED
        assert violations(world) == []

    def test_the_propertys_own_check_of_removed_pipelines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        steps = [{"at": "+5m", "remove": "orders"}]
        before = staged(pipeline(), until="2026-03-05T00:01:00Z", steps=[])
        stale = catalog.stored(control_of(before).store, "orders")
        world = staged(pipeline(), until="2026-03-05T00:10:00Z", steps=steps)
        monkeypatch.setattr(catalog, "stored", lambda store, pipeline: stale)
        opening.open_first(control_of(world), opening.Start(key=KEY, opened_by="sensor ready"))
        monkeypatch.undo()
        settle(world)
        assert any("was not in force" in one for one in broken(world, 3))

    def test_the_propertys_own_check_of_cascades(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(readiness, "awaited_upstreams", lambda store, config, key: ())
        hourly = pipeline(schedule={"cron": "0 * * * *"}, validation={"rules": [{"key": "ready", "check": "exists"}]})
        daily = pipeline(pipeline={"id": "daily"}, schedule={}, after=[{"pipeline": "orders", "require": "all-hours"}])
        ready = {"at": "+10m", "sensor": "orders/ready", "data": {"status": "ready"}}
        fields = {"start": "2026-03-05T00:00:00Z", "until": "+3h", "pipelines": [hourly, daily], "steps": [ready]}
        world = FaultyWorld(inline_scenario(**fields)).finish()
        monkeypatch.undo()
        assert any("was opened by its upstreams, before" in one for one in broken(world, 3))


class TestEverythingEnds:
    """4. Every run reaches a terminal status, whatever crashes."""

    @pytest.mark.parametrize("instant", range(1, 14, 2))
    def test_lost_execution_is_started_again_and_told_of(self, instant: int) -> None:
        plan = FaultPlan(lost_executions=(Loss(instant, 0),))
        world = staged(pipeline(), until="2026-03-05T02:00:00Z", plan=plan)
        assert run_of(world).status is RunStatus.COMPLETED
        assert violations(world) == []

    def test_lost_execution_of_a_running_job_is_told_of(self) -> None:
        world = staged(pipeline(), until="2026-03-05T00:12:00Z")
        assert run_of(world).status is RunStatus.RUNNING
        world._lose("executions", "status = 'RUNNING'", 0)
        later(world, hours=1)
        assert run_of(world).status is RunStatus.COMPLETED
        assert count_events(world, EventType.TRIGGER_RECOVERED) == 1

    def test_lost_retry_timer_is_made_up_for(self) -> None:
        config = pipeline(job=GLUE | {"maxRetries": 1, "retryDelay": "20m"})
        jobs = [*FAILING, {"after": "5m", "result": "success"}]
        world = staged(config, until="2026-03-05T00:20:00Z", jobs=jobs)
        assert run_of(world).status is RunStatus.FAILED
        world._lose("timers", "kind = 'retry'", 0)
        later(world, hours=1)
        assert (run_of(world).status, run_of(world).attempt) == (RunStatus.COMPLETED, 2)

    @pytest.mark.parametrize("how", ["deleted", "invalid", "dry-run"])
    def test_run_of_a_pipeline_that_is_gone_ends_even_if_its_execution_is_lost(self, how: str) -> None:
        world = staged(pipeline(), until="2026-03-05T00:12:00Z")
        control = control_of(world)
        if how == "deleted":
            catalog.delete_config(control, "orders")
        else:
            document = pipeline(dryRun=True) if how == "dry-run" else {"pipeline": {"id": "orders"}}
            where = records.control_key(KEY.pk, keys.CONFIG)
            control.store.commit([Put(where, {"document": document})])
        settle(world)
        world._lose("executions", "status = 'RUNNING'", 0)
        later(world, hours=6)
        assert run_of(world).status.terminal
        assert catalog.retired(control.store) == []

    def test_the_propertys_own_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reconciling, "_revive", lambda control, run: None)
        plan = FaultPlan(lost_executions=(Loss(2, 0),))
        world = staged(pipeline(validation={"rules": [ROWS]}), until="2026-03-05T00:45:00Z", plan=plan)
        assert any("no execution drives it" in one for one in broken(world, 4))

    def test_the_propertys_own_check_of_leases(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reconciling, "_revive", lambda control, run: None)
        monkeypatch.setattr(reconciling, "end_stale", lambda control, pipeline: None)
        plan = FaultPlan(lost_executions=(Loss(2, 0),))
        world = staged(pipeline(validation={"rules": [ROWS]}), until="2026-03-05T06:00:00Z", plan=plan)
        assert any("past its lease" in one for one in broken(world, 4))

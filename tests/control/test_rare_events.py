"""Events that no scenario can bring about: a store, a target or a controller that fails. On the real engine, in memory.

Together with `tests/journeys` every event type, final reason and state of the lifecycle is seen.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, event_sink, records, writing
from interlock.control.context import Settings
from interlock.decide import early_ends
from interlock.embedded.engine import Engine
from interlock.embedded.sqlite.database import Database
from interlock.model import keys
from interlock.model.config import JobType, PipelineConfig
from interlock.model.errors import StoreError
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import FinalReason, Run, RunStatus
from interlock.ports.jobs import JobRequest, JobRunner, JobStarted, JobState, JobStatus, Recovery
from interlock.ports.store import Item, Key, Put
from interlock.simulation.clock import VirtualClock
from tests.mute_target import MuteTarget

START = datetime(2026, 3, 2, 7, 55, tzinfo=UTC)
KEY = RunKey("orders", "cron", "2026-03-02")
DOCUMENT: dict[str, Any] = {
    "pipeline": {"id": "orders"},
    "schedule": {"cron": "0 8 * * *"},
    "validation": {"rules": [{"key": "export", "check": "exists"}]},
    "job": {"type": "glue", "config": {"jobName": "etl"}},
}


class Target(MuteTarget):
    """A job target that does as it is told."""

    def __init__(self, *, lost: bool = False, state: JobState = JobState.RUNNING) -> None:
        self.lost = lost
        self.state = state
        self.calls = 0

    def start(self, request: JobRequest) -> JobStarted:
        self.calls += 1
        if self.lost:
            raise ConnectionError("the connection broke after the request was sent")
        return JobStarted(job_id=f"job-{request.run_id}")

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        del request
        return Recovery.UNDECIDABLE

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        del request, job_id
        return JobStatus(state=self.state)


class Installation:
    """A controller with its store, its clock and one pipeline."""

    def __init__(self, target: Target, settings: Settings | None = None) -> None:
        self.clock = VirtualClock(START)
        self.database = Database.open(None, clock=self.clock, inline=True)
        self.target = target
        self.settings = settings or Settings()
        self._ids = count(1)
        self.engine = self.start()

    def start(self) -> Engine:
        """Start the controller, or start it again from its store."""
        runners: dict[str, JobRunner] = {JobType.GLUE: self.target}
        self.engine = Engine(
            self.database, self.clock, runners, new_id=lambda: f"{next(self._ids):04d}", settings=self.settings
        )
        self.engine.prepare()
        return self.engine

    def apply(self, **changes: Any) -> None:
        self.apply_document(DOCUMENT | changes)

    def apply_document(self, document: dict[str, Any]) -> None:
        config = read_stored(document, catalog.calendars(self.engine.store))
        assert isinstance(config, PipelineConfig), config
        catalog.apply_config(self.engine.control, config, document)
        self.settle()

    def sensor(self, key: str, **data: Any) -> None:
        writing.write_sensor(self.engine.control, "orders", key, data)
        self.settle()

    def put(self, sk: str, item: dict[str, Any]) -> None:
        """A write past our own API, as a deployment tool or a person would make it."""
        self.engine.store.commit([Put(Key(Table.CONTROL, "PIPELINE#orders", sk), item)])
        self.settle()

    def go_to(self, clock_time: str) -> None:
        """On to a later instant of the day, stopping wherever something is due."""
        until = datetime.fromisoformat(f"2026-03-02T{clock_time}+00:00")
        while self.clock.now() < until:
            due = [self.engine.calendar.next_at(), self.engine.timers.next_at(), self.engine.executions.next_due()]
            self.clock.move_to(min([until, *(at for at in due if at is not None)]))
            self.engine.calendar.deliver_due(self.clock.now())
            self.settle()

    def settle(self) -> None:
        engine, now = self.engine, self.clock.now()
        while engine.router.pump() + engine.fire_timers(now) + engine.executions.run_due(now) + engine.sink.pump():
            pass

    def make_unreadable(self, sensor: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on the store cannot read this sensor."""
        read = self.engine.store.get_many

        def unreadable(wanted: Sequence[Key]) -> list[Item | None]:
            if any(key.sk.startswith(keys.sensor_sk(sensor)) for key in wanted):
                raise StoreError("the disk could not be read")
            return list(read(wanted))

        monkeypatch.setattr(self.engine.store, "get_many", unreadable)

    def events(self, type_: EventType, pipeline: str = "orders") -> list[Event]:
        found = self.engine.store.query(Table.EVENTS, keys.pipeline_pk(pipeline))
        reported = [records.convert(one.item, Event, one.key) for one in found]
        return [event for event in reported if event.type is type_]

    def run(self, date: str = KEY.date) -> Run:
        found = records.get_run(self.engine.store, RunKey("orders", "cron", date))
        assert found is not None
        return found


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def installation(target: Target) -> Iterator[Installation]:
    made = Installation(target)
    yield made
    made.database.close()


def test_a_stored_config_that_is_invalid_is_reported_once_per_version_and_not_run(installation: Installation) -> None:
    broken = DOCUMENT | {"job": {"type": "glue", "config": {}}, "schedule": {"cron": "0 25 * * *"}}
    installation.put(keys.CONFIG, {"document": broken})
    installation.put(keys.CONFIG, {"document": broken, "touched": True})
    installation.go_to("08:30:00")

    (reported,) = installation.events(EventType.CONFIG_INVALID)
    assert len(reported.detail["errors"]) == 2
    assert records.get_run(installation.engine.store, KEY) is None


def test_a_start_whose_answer_is_lost_is_never_made_twice(installation: Installation, target: Target) -> None:
    target.lost = True
    installation.apply()
    installation.sensor("export", rows=1)
    installation.go_to("08:30:00")

    assert target.calls == 1
    assert len(installation.events(EventType.TRIGGER_UNCERTAIN)) == 1
    assert installation.events(EventType.JOB_TRIGGERED) == []
    assert (installation.run().status, installation.run().final_reason) == (
        RunStatus.FAILED_FINAL,
        FinalReason.UNCERTAIN,
    )


def test_an_attempt_whose_sensors_can_not_be_read_fails_as_infrastructure_after_three_retries(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.apply()
    installation.go_to("08:01:00")
    installation.make_unreadable("export", monkeypatch)
    installation.go_to("08:05:13")
    assert installation.events(EventType.INFRA_FAILURE) == []
    installation.go_to("08:05:14")  # the evaluation of 08:05, and again after 2, 4 and 8 seconds

    (reported,) = installation.events(EventType.INFRA_FAILURE)
    assert "the disk could not be read" in reported.message
    assert installation.run().final_reason is FinalReason.INFRA


def test_an_attempt_whose_execution_ended_early_goes_on_in_a_new_part(target: Target) -> None:
    installation = Installation(target, Settings(stretch_timeout=False))
    installation.apply(schedule={"cron": "0 8 * * *", "evaluation": {"window": "6h", "interval": "30m"}})
    installation.go_to("12:00:00")
    before = installation.run()
    installation.engine.watch()
    installation.engine.watch()

    assert len(installation.events(EventType.TRIGGER_RECOVERED)) == 1
    after = installation.run()
    assert (after.part, after.attempt, after.status) == (2, 1, RunStatus.PENDING)
    assert after.lease_until is not None
    assert before.lease_until is not None
    assert after.lease_until - before.lease_until == timedelta(hours=4)
    assert installation.engine.executions.is_open(keys.execution_name(after.key, 1, 2))

    installation.sensor("export", rows=1)
    installation.go_to("13:00:00")
    assert target.calls == 1
    assert installation.events(EventType.SFN_TIMEOUT) == []


def test_an_attempt_whose_executions_all_die_ends_as_infra(target: Target) -> None:
    """Nothing that drives it lives long enough to close its window, and every new part renews its lease."""
    installation = Installation(target)
    installation.apply(schedule={"cron": "0 8 * * *", "evaluation": {"window": "24h", "interval": "5m"}})
    installation.go_to("08:00:00")
    while installation.run().active and installation.clock.now() < START + timedelta(hours=6):
        installation.database.write(
            lambda connection: (
                connection.execute(
                    "UPDATE executions SET status = 'FAILED', due_ms = NULL WHERE status = 'RUNNING'"
                ).rowcount
            )
        )
        installation.clock.move_to(installation.clock.now() + timedelta(minutes=5))
        assert installation.engine.watch() == []
        installation.settle()

    run = installation.run()
    assert (run.status, run.final_reason, run.part) == (RunStatus.FAILED_FINAL, FinalReason.INFRA, early_ends.MOST)
    assert len(installation.events(EventType.TRIGGER_RECOVERED)) == early_ends.MOST - 1
    assert run.ended_at == START + timedelta(minutes=5 + 85)
    (reported,) = installation.events(EventType.INFRA_FAILURE)
    assert "as did the 5 before it" in reported.message


def test_an_attempt_that_goes_on_keeps_its_window(target: Target) -> None:
    installation = Installation(target, Settings(stretch_timeout=False))
    installation.apply(schedule={"cron": "0 8 * * *", "evaluation": {"window": "6h", "interval": "30m"}})
    installation.go_to("12:00:00")
    installation.engine.watch()
    installation.go_to("13:59:59")
    assert installation.run().active
    installation.go_to("14:00:00")
    assert installation.run().final_reason is FinalReason.VALIDATION_EXHAUSTED


def test_an_attempt_that_outlives_its_lease_is_ended_by_the_watchdog(target: Target) -> None:
    # As on AWS: one bound for all executions, here shorter than the window it has to wait out.
    installation = Installation(target, Settings(stretch_timeout=False))
    installation.apply(schedule={"cron": "0 8 * * *", "evaluation": {"window": "6h", "interval": "30m"}})
    installation.go_to("12:30:00")  # and no watchdog meanwhile, that would have had it go on
    installation.engine.watch()
    installation.engine.watch()

    assert len(installation.events(EventType.SFN_TIMEOUT)) == 1
    assert installation.run().final_reason is FinalReason.STALE


def test_a_tick_that_passed_while_the_controller_was_away_is_reported(installation: Installation) -> None:
    installation.apply()
    installation.clock.move_to(START + timedelta(hours=3))
    installation.start()
    installation.go_to("10:56:00")
    installation.engine.watch()
    installation.engine.watch()

    (reported,) = installation.events(EventType.SCHEDULE_MISSED)
    assert (reported.date, reported.detail["tick"]) == ("2026-03-02", "2026-03-02T08:00:00Z")
    assert records.get_run(installation.engine.store, KEY) is None


def test_a_tick_missed_for_less_than_the_window_is_delivered_late(installation: Installation) -> None:
    installation.apply()
    installation.clock.move_to(START + timedelta(minutes=35))
    installation.start()
    installation.go_to("08:31:00")
    installation.engine.watch()

    assert installation.run().status is RunStatus.PENDING
    assert installation.events(EventType.SCHEDULE_MISSED) == []


def test_a_baseline_that_can_not_be_taken_does_not_undo_the_completion(
    installation: Installation, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.apply(postRun={"rules": [{"key": "output", "check": "exists"}]})
    installation.sensor("export", rows=1)
    installation.go_to("08:00:30")
    installation.make_unreadable("output", monkeypatch)
    target.state = JobState.SUCCEEDED
    installation.go_to("08:01:00")

    (reported,) = installation.events(EventType.BASELINE_CAPTURE_FAILED)
    assert reported.detail["error"] == "the disk could not be read"
    assert installation.run().status is RunStatus.COMPLETED


def test_a_watchdog_check_that_fails_is_named_and_does_not_stop_the_others(installation: Installation) -> None:
    installation.apply(sla={"deadline": "08:30"})
    installation.put(f"{keys.ACTIVE}cron#2026-03-01", {"attempt": 1, "wakeSeq": 0})
    installation.put(f"{keys.RUN}cron#2026-03-01", {"status": "no such status"})
    failed = installation.engine.watch()

    (reported,) = installation.events(EventType.WATCHDOG_DEGRADED, "_watchdog")
    assert failed == reported.detail["checks"] == ["stale-triggers", "trigger-reconciliation"]


def test_an_alarm_of_the_infrastructure_becomes_an_event(installation: Installation) -> None:
    published: list[Event] = []
    installation.engine.bus.subscribe(published.append, {"detail-type": ["INFRA_ALARM"]})
    event_sink.record_alarm(installation.engine.control, {"alarmName": "dlq-depth", "reason": "3 messages"}, START)
    installation.settle()

    (reported,) = installation.events(EventType.INFRA_ALARM, "_infrastructure")
    assert reported.detail == {"alarm": "dlq-depth", "state": "ALARM"}
    assert published == [reported]

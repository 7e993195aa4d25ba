"""The whole controller in real time: threads, a real file, the real clock. Nothing here sleeps: a test waits for a
commit that shows what it waits for, and an interval of an hour makes sure that nothing but a wake-up can bring it."""

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from interlock.config.stored import read_stored
from interlock.control import catalog, observing, records, writing
from interlock.control.context import Control, Settings
from interlock.embedded.asl.execution import WaitKind
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.runtime import Runtime
from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model import keys
from interlock.model.config import Calendar, JobType, PipelineConfig
from interlock.model.events import Event, EventType
from interlock.model.keys import RunKey, Table
from interlock.model.run import JobEvent, Run, RunStatus
from interlock.model.times import epoch_millis
from interlock.ports.jobs import JobRequest, JobStarted, JobState, JobStatus, Recovery
from interlock.ports.store import Key, Put
from interlock.simulation.clock import VirtualClock
from tests.conformance.manual_clock import ManualClock
from tests.mute_target import MuteTarget

PATIENCE = 30.0
DAY = "2026-03-02"
NEXT_DAY = "2026-03-03"


class Target(MuteTarget):
    """Where the jobs are. Each succeeds as it is started, unless it is said to hold or to go on."""

    def __init__(self) -> None:
        self.starts: list[JobRequest] = []
        self.holds: dict[str, threading.Event] = {}
        self.goes_on: set[str] = set()
        self.called = threading.Semaphore(0)

    def start(self, request: JobRequest) -> JobStarted:
        self.starts.append(request)
        self.called.release()
        if (hold := self.holds.get(request.key.pipeline)) is not None:
            assert hold.wait(PATIENCE)
        done = None if request.key.pipeline in self.goes_on else JobStatus(state=JobState.SUCCEEDED)
        return JobStarted(job_id=f"job-{request.run_id}", status=done)

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        return Recovery.START_AGAIN

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        return JobStatus(state=JobState.RUNNING)


class Controller:
    """A running controller, and what a test does with it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.control: Control = engine.control
        self.reported: list[Event] = []
        engine.bus.subscribe(self.reported.append)

    def apply(self, document: Mapping[str, Any]) -> None:
        config = read_stored(document, {})
        assert isinstance(config, PipelineConfig), config
        catalog.apply_config(self.control, config, dict(document))

    def sensor(self, pipeline: str, key: str, date: str = DAY, **data: Any) -> None:
        writing.write_sensor(self.control, pipeline, f"{key}#{date}", data)

    def run(self, pipeline: str, date: str = DAY) -> Run | None:
        return records.get_run(self.control.store, RunKey(pipeline, "stream", date))

    def status(self, pipeline: str, date: str = DAY) -> RunStatus | None:
        run = self.run(pipeline, date)
        return run.status if run is not None else None

    def stored(self, type_: EventType) -> list[dict[str, Any]]:
        found = self.control.store.events_by_type(type_, since=0, until=2**52, limit=1000)
        return [record.item for record in found]

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until it holds, looking again after every commit."""
        end = monotonic() + PATIENCE
        while True:
            head = self.engine.database.head()
            if condition():
                return
            assert monotonic() < end, "it did not come to pass"
            self.engine.database.wait_for_change(head, 0.2)

    def waits(self, pipeline: str) -> bool:
        """Does its execution wait for a wake-up?"""
        waiting = [one for one in self.engine.executions.list_open() if one.name.startswith(pipeline)]
        return any(one.waiting is WaitKind.TOKEN for one in waiting)


@contextmanager
def running(
    path: Path,
    target: Target,
    *,
    watchdog_every: timedelta = timedelta(hours=1),
    pools: Mapping[str, int] | None = None,
    workers: int = 4,
) -> Iterator[Controller]:
    clock, ids = SystemClock(), itertools.count(1)
    with Database.open(path, clock=clock) as database:
        engine = Engine(
            database,
            clock,
            {JobType.COMMAND: target},
            new_id=lambda: f"{next(ids):06d}",
            settings=Settings(pools=pools or {}),
        )
        runtime = Runtime(engine, workers=workers, watchdog_every=watchdog_every)
        controller = Controller(engine)
        runtime.start()
        try:
            yield controller
        finally:
            runtime.stop()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "interlock.db"


def pipeline(name: str, *, rows: int | None = None, **more: Any) -> dict[str, Any]:
    """Opened by `ready`; with `rows`, it also waits for a row count."""
    ready = {"key": "ready", "check": "equals", "field": "status", "value": "ready"}
    rules: list[dict[str, Any]] = [ready]
    if rows is not None:
        rules.append({"key": "row-count", "check": "gte", "field": "count", "value": rows})
    return {
        "pipeline": {"id": name},
        "schedule": {"trigger": ready, "evaluation": {"window": "12h", "interval": "1h"}},
        "validation": {"rules": rules},
        "job": {"type": "command", "config": {"command": ["load", str(rows)]}},
        **more,
    }


def test_a_sensor_write_makes_the_job_run_and_everybody_hears_of_it(path: Path) -> None:
    target = Target()
    with running(path, target) as controller:
        controller.apply(pipeline("gold"))
        controller.sensor("gold", "ready", status="ready")
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)
        controller.until(lambda: any(event.type is EventType.JOB_COMPLETED for event in controller.reported))
    assert [request.key for request in target.starts] == [RunKey("gold", "stream", DAY)]
    assert [event.type for event in controller.reported] == [
        EventType.TRIGGER_STARTED,
        EventType.VALIDATION_PASSED,
        EventType.JOB_TRIGGERED,
        EventType.JOB_COMPLETED,
    ]


def test_readiness_starts_the_job_without_waiting_for_the_interval(path: Path) -> None:
    target = Target()
    with running(path, target) as controller:
        controller.apply(pipeline("gold", rows=10))
        controller.sensor("gold", "ready", status="ready")
        controller.until(lambda: controller.waits("gold"))
        controller.sensor("gold", "row-count", count=9)
        controller.sensor("gold", "row-count", count=10)
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)
    assert len(target.starts) == 1


def test_a_report_from_outside_ends_the_job_without_waiting_for_the_next_poll(path: Path) -> None:
    target = Target()
    target.goes_on.add("gold")
    with running(path, target) as controller:
        document = pipeline("gold")
        document["job"]["pollInterval"] = "1h"
        controller.apply(document)
        controller.sensor("gold", "ready", status="ready")
        controller.until(lambda: controller.status("gold") is RunStatus.RUNNING and controller.waits("gold"))
        writing.report_job(controller.control, RunKey("gold", "stream", DAY), JobEvent.SUCCESS)
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)


WRITER = """
import sys
from pathlib import Path
from interlock.embedded.clock import SystemClock
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.model.keys import Table
from interlock.ports.store import Key, Put

clock = SystemClock()
with Database.open(Path(sys.argv[1]), clock=clock) as database:
    item = {"status": "ready", "date": sys.argv[2]}
    SqliteStore(database, clock).commit([Put(Key(Table.CONTROL, "PIPELINE#gold", "SENSOR#ready"), item)])
"""


def test_a_write_of_another_process_is_noticed(path: Path) -> None:
    with running(path, Target()) as controller:
        controller.apply(pipeline("gold"))
        subprocess.run([sys.executable, "-c", WRITER, str(path), DAY], check=True, timeout=PATIENCE)
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)


def test_a_run_that_waits_goes_on_after_a_restart(path: Path) -> None:
    target = Target()
    with running(path, target) as controller:
        controller.apply(pipeline("gold", rows=10))
        controller.sensor("gold", "ready", status="ready")
        controller.until(lambda: controller.waits("gold"))
    assert target.starts == []
    with running(path, target) as controller:
        controller.sensor("gold", "row-count", count=10)
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)
        assert len(controller.stored(EventType.TRIGGER_STARTED)) == 1
    assert len(target.starts) == 1


def test_what_was_written_while_the_controller_was_down_is_considered(path: Path) -> None:
    with running(path, Target()) as controller:
        controller.apply(pipeline("gold"))
    subprocess.run([sys.executable, "-c", WRITER, str(path), DAY], check=True, timeout=PATIENCE)
    with running(path, Target()) as controller:
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)


def test_a_slow_start_does_not_hold_up_another_pipeline(path: Path) -> None:
    target = Target()
    target.holds["slow"] = threading.Event()
    with running(path, target) as controller:
        for name in ("slow", "quick"):
            controller.apply(pipeline(name))
        controller.sensor("slow", "ready", status="ready")
        assert target.called.acquire(timeout=PATIENCE)
        controller.sensor("quick", "ready", status="ready")
        controller.until(lambda: controller.status("quick") is RunStatus.COMPLETED)
        assert controller.status("slow") is RunStatus.TRIGGERING
        target.holds["slow"].set()
        controller.until(lambda: controller.status("slow") is RunStatus.COMPLETED)
    assert len(target.starts) == 2


def test_a_config_change_is_for_the_next_run_and_leaves_the_one_under_way_alone(path: Path) -> None:
    target = Target()
    with running(path, target) as controller:
        controller.apply(pipeline("gold", rows=10))
        controller.sensor("gold", "ready", status="ready")
        controller.until(lambda: controller.waits("gold"))
        controller.apply(pipeline("gold", rows=100))
        controller.sensor("gold", "row-count", count=50)
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)
        controller.sensor("gold", "row-count", NEXT_DAY, count=50)
        controller.sensor("gold", "ready", NEXT_DAY, status="ready")
        controller.until(lambda: controller.waits("gold"))
        assert len(target.starts) == 1
        controller.sensor("gold", "row-count", NEXT_DAY, count=100)
        controller.until(lambda: controller.status("gold", NEXT_DAY) is RunStatus.COMPLETED)
    assert [request.config["command"] for request in target.starts] == [["load", "10"], ["load", "100"]]


def test_a_rush_on_a_pool_fails_nobody(path: Path) -> None:
    names = [f"p{number:03d}" for number in range(120)]
    with running(path, Target(), pools={"commands": 16}, workers=128) as controller:
        for name in names:
            controller.apply(pipeline(name))
        day = [(name, f"ready#{DAY}", {"status": "ready"}) for name in names]
        for start in range(0, len(day), 60):
            writes = [writing.prepare_sensor(controller.control, *one)[0] for one in day[start : start + 60]]
            assert controller.control.store.commit(writes) is None
        controller.until(lambda: all(controller.status(name) is RunStatus.COMPLETED for name in names))
        assert controller.stored(EventType.INFRA_FAILURE) == []


def test_timers_fire(path: Path) -> None:
    with running(path, Target()) as controller:
        controller.apply(pipeline("gold", rows=10, sla={"maxDuration": "1s"}))
        controller.sensor("gold", "ready", status="ready")
        controller.until(lambda: bool(controller.stored(EventType.RELATIVE_SLA_BREACH)))
        (warning,) = controller.stored(EventType.RELATIVE_SLA_WARNING)
        (breach,) = controller.stored(EventType.RELATIVE_SLA_BREACH)
        assert warning["timestamp"] < breach["timestamp"]
        controller.sensor("gold", "row-count", count=10)
        controller.until(lambda: bool(controller.stored(EventType.SLA_RECOVERED)))


def test_the_watchdog_runs_and_starts_what_has_no_execution(path: Path) -> None:
    target = Target()
    with running(path, target) as controller:
        controller.apply(pipeline("gold", rows=10))
        controller.sensor("gold", "ready", status="ready")
        controller.until(lambda: controller.waits("gold"))
    with Database.open(path, clock=SystemClock()) as database:
        database.write(lambda connection: connection.execute("DELETE FROM executions").rowcount)
    with running(path, target, watchdog_every=timedelta(milliseconds=50)) as controller:
        controller.until(lambda: controller.waits("gold"))
        assert len(controller.stored(EventType.TRIGGER_RECOVERED)) == 1
        controller.sensor("gold", "row-count", count=10)
        controller.until(lambda: controller.status("gold") is RunStatus.COMPLETED)
    assert len(target.starts) == 1


def test_a_poisonous_record_becomes_a_dead_letter_and_is_redriven(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observe, poisonous = observing.observe, threading.Event()
    poisonous.set()

    def choke(control: Control, name: str, *rest: Any) -> None:
        if name == "bad" and poisonous.is_set():
            raise RuntimeError("choked")
        observe(control, name, *rest)

    monkeypatch.setattr(observing, "observe", choke)
    with running(path, Target()) as controller:
        letters = DeadLetters(controller.engine.database)
        for name in ("bad", "good"):
            controller.apply(pipeline(name))
            controller.sensor(name, "ready", status="ready")
        controller.until(lambda: controller.status("good") is RunStatus.COMPLETED and letters.count() == 1)
        (letter,) = letters.list()
        assert (letter.source, letter.record["sk"], letter.tries) == ("stream-router", f"SENSOR#ready#{DAY}", 3)
        assert letter.record["table"] == Table.CONTROL
        assert "choked" in letter.error
        poisonous.clear()
        assert letters.redrive() == 1
        controller.until(lambda: controller.status("bad") is RunStatus.COMPLETED)
        assert letters.count() == 0


def test_schedules_are_loaded_again_only_for_a_calendar_that_was_written_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    with Database.open(None, clock=clock, inline=True) as database:
        engine = Engine(database, clock, {}, new_id=lambda: "1")
        engine.register()
        engine.store.commit([catalog.put_calendar(Calendar(name="office", dates=["2026-12-25"]))])
        engine.prepare()
        loaded: list[object] = []
        monkeypatch.setattr(engine.calendar, "load", loaded.append)
        engine.router.pump()
        assert loaded == []
        for date in ("2026-12-26", "2026-12-27"):
            engine.store.commit([catalog.put_calendar(Calendar(name="office", dates=[date]))])
            engine.router.pump()
        assert len(loaded) == 2


def test_a_sweep_takes_all_that_may_go() -> None:
    clock = SystemClock()
    with Database.open(None, clock=clock, inline=True) as database:
        engine = Engine(database, clock, {}, new_id=lambda: "1")
        engine.prepare()
        for start in range(0, 1200, 100):
            keys = [records.control_key("elsewhere", f"s{number}") for number in range(start, start + 100)]
            engine.store.commit([Put(key, {"n": 1}) for key in keys])
        engine.router.pump()
        engine.sink.pump()
        database.flush()
        Runtime(engine).sweep()
        assert database.read("SELECT count(*) FROM changes") == [(0,)]


def test_a_sweep_forgets_executions_that_ended_long_ago() -> None:
    clock = ManualClock()
    with Database.open(None, clock=clock, inline=True) as database:
        runtime = Runtime(Engine(database, clock, {}, new_id=lambda: "id"))
        rows = [(f"old-{number}", epoch_millis(clock.now())) for number in range(1_200)]
        database.write(
            lambda connection: connection.executemany(
                "INSERT INTO executions (name, status, ended_ms) VALUES (?, 'SUCCEEDED', ?)", rows
            )
        )
        clock.advance(days=89)
        runtime.sweep()
        assert database.read("SELECT count(*) FROM executions") == [(1_200,)]
        clock.advance(days=2)
        runtime.sweep()
        assert database.read("SELECT count(*) FROM executions") == [(0,)]


def test_after_a_restart_no_tick_is_both_delivered_and_reported_as_missed(path: Path) -> None:
    target = Target()
    clock, names = VirtualClock(SystemClock().now() - timedelta(minutes=40)), [f"p{number:02}" for number in range(40)]
    with Database.open(path, clock=clock) as database:
        before = Controller(Engine(database, clock, {JobType.COMMAND: target}, new_id=lambda: "0"))
        before.engine.prepare()
        for name in names:
            every_ten = {"cron": "*/10 * * * *", "evaluation": {"window": "2h", "interval": "1h"}}
            before.apply(pipeline(name, schedule=every_ten))
    with running(path, target) as controller:
        store = controller.engine.store
        controller.until(lambda: store.get(Key(Table.CONTROL, keys.CONTROLLER, "WATCHDOG")) is not None)
        for name in names:
            runs = store.query(Table.CONTROL, keys.pipeline_pk(name), keys.RUN)
            assert len(runs) >= 4
        assert controller.stored(EventType.SCHEDULE_MISSED) == []

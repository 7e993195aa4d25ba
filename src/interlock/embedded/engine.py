"""The embedded controller: the six functions on SQLite, and what drives them.

`Engine` wires; it has no thread of its own. `Runtime` (real time, threads) and the simulation (virtual time, one
thread) drive the same engine, so that what is simulated is what runs.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from interlock.control import catalog, event_sink, router, sla_monitor, timers
from interlock.control.attempts import orchestrator
from interlock.control.context import Control, Settings
from interlock.control.sensor_quotas import SensorQuotas
from interlock.control.views.kept_lanes import KeptLanes
from interlock.control.views.overview import Looked
from interlock.control.watch import watchdog
from interlock.control.watch.quiet import Quiet
from interlock.decide.quotas import SensorQuota
from interlock.embedded.asl.executions import SqliteExecutions
from interlock.embedded.asl.lifecycle import ORCHESTRATOR, SLA_MONITOR, load_lifecycle
from interlock.embedded.audit.trail import AuditTrail
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.fibers import TargetThreads, pause
from interlock.embedded.sqlite.sensor_usage import SqliteSensorUsage
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.bus import LocalBus
from interlock.embedded.stream.stream import StreamConsumer
from interlock.embedded.timing.calendar_clock import CalendarClock
from interlock.embedded.timing.probe_clock import ProbeClock
from interlock.embedded.timing.timers import DueTimer, SqliteTimers
from interlock.logs import get_logger
from interlock.model import keys
from interlock.model.keys import Table
from interlock.ports.clock import Clock
from interlock.ports.jobs import JobOutput, JobRequest, JobRunner, JobStarted, JobStatus, JobStop, Recovery
from interlock.ports.probes import Prober
from interlock.ports.store import Change

_log = get_logger(__name__)

# As Step Functions does: nobody starts an execution again after so long (see the port).
EXECUTIONS_KEPT: Final = timedelta(days=90)


class _ThreadedRunner:
    """A job's target, called on a thread of its own: the call may take long, and fibers must not wait for it."""

    def __init__(self, runner: JobRunner, threads: TargetThreads) -> None:
        self._runner = runner
        self._threads = threads

    def start(self, request: JobRequest) -> JobStarted:
        return self._threads.call(lambda: self._runner.start(request))

    def recover(self, request: JobRequest) -> JobStarted | Recovery:
        return self._threads.call(lambda: self._runner.recover(request))

    def check(self, request: JobRequest, job_id: str) -> JobStatus:
        return self._threads.call(lambda: self._runner.check(request, job_id))

    def stop(self, request: JobRequest, job_id: str) -> JobStop:
        return self._threads.call(lambda: self._runner.stop(request, job_id))

    def output(self, request: JobRequest, job_id: str, *, offset: int = 0) -> JobOutput:
        return self._threads.call(lambda: self._runner.output(request, job_id, offset=offset))

    def link(self, request: JobRequest, job_id: str) -> str:
        return self._threads.call(lambda: self._runner.link(request, job_id))


class Engine:
    """Everything of one embedded controller, wired together."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        jobs: Mapping[str, JobRunner],
        *,
        new_id: Callable[[], str],
        settings: Settings | None = None,
        bus: LocalBus | None = None,
        probes: Prober | None = None,
        quota: SensorQuota | None = None,
    ) -> None:
        settings = settings or Settings()
        threads = TargetThreads(loops=database.loops)
        self.database = database
        self.clock = clock
        self.bus = bus or LocalBus()
        self.store = SqliteStore(database, clock)
        self.kept_lanes: KeptLanes[Looked] = KeptLanes(self.store.changed_since)
        self.audit = AuditTrail(database)
        self.timers = SqliteTimers(database, clock)
        tasks: dict[str, Callable[[dict[str, Any]], Any]] = {
            ORCHESTRATOR: lambda payload: orchestrator.handle(self.control, payload),
            SLA_MONITOR: lambda payload: sla_monitor.handle(self.control, payload),
        }
        self.executions = SqliteExecutions(
            database, load_lifecycle(settings), tasks=tasks, store=self.store, clock=clock
        )
        self.control = Control(
            store=self.store,
            executions=self.executions,
            timers=self.timers,
            jobs={type_: _ThreadedRunner(runner, threads) for type_, runner in jobs.items()},
            clock=clock,
            new_id=new_id,
            settings=settings,
            probes=probes,
            quotas=None if quota is None else SensorQuotas(SqliteSensorUsage(database), quota),
            pause=pause,
            auditing=settings.audit,
        )
        # The schedules were loaded with all that was written up to this position of the changes.
        self._loaded_to = 0
        self.calendar = CalendarClock(self.control)
        self.quiet = Quiet()
        self.probes = ProbeClock(self.control)
        self.router = StreamConsumer(
            database, "stream-router", (Table.CONTROL, Table.JOBLOG), self._route, unheard=router.UNROUTED
        )
        self.sink = StreamConsumer(database, "event-sink", (Table.EVENTS,), self._publish)

    def prepare(self) -> None:
        """Before anything is driven: remember the first start, register the consumers, load the schedules."""
        self.register()
        self.probes.load(self._load_calendar())

    def register(self) -> None:
        """Before anything is written: remember the first start, and have every change kept for the consumers."""
        catalog.first_started(self.control)
        self.router.register()
        self.sink.register()

    def _load_calendar(self) -> list[catalog.Stored]:
        """Follow the schedules of every pipeline; the pipelines as they were read."""
        loaded_to = self.store.changed_since(None).position
        found = catalog.stored_many(self.store, self.store.pipelines())
        if not self.control.settings.tick_timers:
            self.calendar.load(found)
        self._loaded_to = loaded_to
        return found

    def _route(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._disturb(change)
        router.handle(self.control, changes)
        for change in changes:
            if change.sk == keys.CONFIG and change.pk.startswith(keys.PIPELINE):
                pipeline = keys.pipeline_of(change.pk)
                found = catalog.stored(self.store, pipeline)
                if not self.control.settings.tick_timers:
                    self.calendar.follow(pipeline, found)
                self.probes.follow(pipeline, found)
            elif change.pk == keys.CALENDARS and change.seq > self._loaded_to:
                self._load_calendar()
            elif change.sk.startswith(keys.RUN):
                self.probes.run_changed(keys.pipeline_of(change.pk), (change.item or {}).get("status"))

    def _disturb(self, change: Change) -> None:
        """The watchdog looks at what was written. A config may matter to other pipelines as well, and a calendar."""
        if change.sk == keys.CONFIG or change.pk == keys.CALENDARS:
            self.quiet.all_changed()
        elif change.pk.startswith(keys.PIPELINE):
            self.quiet.changed(keys.pipeline_of(change.pk))

    def _publish(self, changes: Sequence[Change]) -> None:
        event_sink.handle(self.bus, changes)

    # --------------------------------------------------------------------------------------------------- timers

    def fire_timers(self, now: datetime) -> int:
        """Call the receivers of the timers that are due; how many."""
        due = self.timers.due(now)
        for timer in due:
            self._fire(timer, now)
        return len(due)

    def _fire(self, timer: DueTimer, now: datetime) -> None:
        try:
            timers.timer_due(self.control, timer.kind, timer.payload)
        except Exception as error:  # noqa: BLE001 - tried again, then a dead letter: never silently lost
            _log.error("a timer's receiver failed", timer=timer.name, error=str(error))
            self.timers.failed(timer, error, now)
        else:
            self.timers.done(timer)

    def sweep(self) -> int:
        """Remove some of what may go: expired items, changes that all have read, executions that ended long ago, old
        days of the audit trail.

        How many went; call again until it is 0, so that every other commit has its turn.
        """
        ended = self.executions.prune(self.clock.now() - EXECUTIONS_KEPT)
        return self.store.sweep() + ended + self.audit.prune(self.control.settings.audit.keep)

    def watch(
        self,
        *,
        quiet_to: datetime | None = None,
        skip_quiet: bool = False,
        pause: Callable[[], bool] = lambda: False,
    ) -> list[str]:
        """One pass of the watchdog; the checks that failed. `skip_quiet`: leave out the pipelines that can have nothing
        due. `quiet_to`, `pause`: see `watchdog.run`.
        """
        return watchdog.run(self.control, quiet_to=quiet_to, quiet=self.quiet if skip_quiet else None, pause=pause)

"""One embedded controller as a whole: store, engine, threads, job targets, and the files it follows.

`interlock serve`, the demo and the tests start the same object. Made, it holds the store open and runs nothing, so that
it can be asked and written to; started, it runs until it is stopped. Stopping finishes what is in hand and loses none.
"""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from interlock import __version__
from interlock.config.alert_routes import AlertRoute
from interlock.config.problems import Finding
from interlock.control import catalog, writing
from interlock.control.alerts.alert_channels import Alerting, build_alerting
from interlock.control.alerts.alert_tests import ChannelTest
from interlock.control.context import Auditing, Control, Settings
from interlock.control.pools import COMMANDS
from interlock.control.views.controller_view import Workload
from interlock.control.views.kept_lanes import KeptLanes
from interlock.control.views.overview import Looked
from interlock.decide.quotas import SensorQuota
from interlock.decide.templates import for_jobs
from interlock.embedded.access.callbacks import Callbacks
from interlock.embedded.access.sessions import Sessions
from interlock.embedded.access.sign_on import SignOn
from interlock.embedded.access.tokens import Tokens
from interlock.embedded.alerts import delivery_views
from interlock.embedded.alerts.alerting import AlertDispatcher
from interlock.embedded.alerts.delivery_rows import DeliveryState
from interlock.embedded.audit.actors import this_user
from interlock.embedded.audit.trail import AuditHead, AuditTrail
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.files import Applied, FolderWatch
from interlock.embedded.health import HealthChecks
from interlock.embedded.process.discovery import StoreLock
from interlock.embedded.process.logging import log_problems
from interlock.embedded.runtime import WORKERS, Runtime, WatchdogState
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.private_files import JOBS
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.sqlite.store_watch import StoreWatch
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.embedded.stream.feed import EventFeed
from interlock.embedded.stream.stream import StreamConsumer
from interlock.embedded.targets import make_targets
from interlock.embedded.workload import read_workload
from interlock.extras import installed
from interlock.jobs.addresses import AddressPolicy, guarded_client, resolve_host
from interlock.jobs.command.output import OutputKept
from interlock.jobs.secrets import SecretStore
from interlock.logs import get_logger
from interlock.loops import Loops
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError, StoreError
from interlock.model.events import Event
from interlock.model.keys import RunKey
from interlock.ownership import Trust
from interlock.ports.clock import Clock
from interlock.ports.job_targets import RunAs, TargetSettings
from interlock.ports.jobs import JobRunner
from interlock.ports.probes import Prober
from interlock.ports.secrets import Secrets
from interlock.ports.store import Conflict, Put
from interlock.probes.registry import Probes, ProbeSettings

_log = get_logger(__name__)

_HOUSEKEEPING_SECONDS: Final = 600.0
_COMMANDS_AT_ONCE: Final = 32
_LAG_LIMIT: Final = 10_000
_OPEN: Final = "every user of this machine may run jobs as the controller: it was started with --insecure-no-auth"


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What one controller is started with. `store` None: in memory, gone at the end."""

    store: Path | None
    pipelines: Path | None = None
    trust: Trust = field(default_factory=Trust)
    watchdog_every: timedelta = timedelta(minutes=5)
    workers: int = WORKERS
    allow_private_addresses: bool | tuple[str, ...] = False
    working_folder: Path | None = None
    secrets: Path | None = None
    output: OutputKept = field(default_factory=OutputKept)
    run_as: RunAs | None = None
    pools: Mapping[str, int] = field(default_factory=dict)
    quota: SensorQuota = field(default_factory=SensorQuota)
    alerts: tuple[AlertRoute, ...] = ()
    json_logs: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    control: Settings = field(default_factory=Settings)
    insecure_no_auth: bool = False
    """Everybody on this machine may do everything, until there is a token."""
    accept_lost: bool = False
    """Go on with a store that lacks what was written last."""
    audit: Auditing = field(default_factory=Auditing)


class Service:
    """A controller. One at a time on a store: making a second one is refused."""

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        clock: Clock | None = None,
        jobs: Mapping[str, JobRunner] | None = None,
        probes: Prober | None = None,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self._lock = StoreLock(settings.store) if settings.store is not None else None
        if self._lock is not None:
            _check_folder(settings.store)
            self._lock.take()
        try:
            self.database = Database.open(settings.store, clock=self.clock, accept_lost=settings.accept_lost)
        except BaseException:
            self._release()
            raise
        self.tokens = Tokens(self.database)
        self.sessions = Sessions(self.database, self.tokens)
        self.sign_on: SignOn | None = None
        self.dead_letters = DeadLetters(self.database)
        self.callbacks = Callbacks(settings.store)
        self.secrets: Secrets = SecretStore(settings.environment, settings.secrets)
        self._targets = make_targets(_target_settings(self, settings), self.secrets)
        self._commands = self._targets.commands
        self._probes = Probes(_probe_settings(settings), self.secrets)
        self.engine = Engine(
            self.database,
            self.clock,
            {**self._targets.runners, **(jobs or {})},
            new_id=new_id,
            settings=_with_environment(settings),
            probes=probes or self._probes,
            quota=settings.quota,
        )
        self.runtime = Runtime(self.engine, workers=settings.workers, watchdog_every=settings.watchdog_every)
        self.feed = EventFeed(self.database)
        self.alerts = AlertDispatcher(self.database, self.engine.store, self._alerting(), self.clock)
        self.files = (
            FolderWatch(self.control, settings.pipelines, settings.trust) if settings.pipelines is not None else None
        )
        self.store_watch = StoreWatch(self.database)
        # What the controller can work in spite of; a part that knows of such a thing adds its question here.
        self.degradation_checks = HealthChecks()
        self.degradation_checks.add(lambda: delivery_views.degradations(self.database))
        if self.files is not None:
            self.degradation_checks.add(self.files.degradations)
        self.degradation_checks.add(self.store_watch.degradations)
        self.degradation_checks.add(self.loops.degradations)
        self.degradation_checks.add(log_problems)
        if settings.insecure_no_auth:
            self.degradation_checks.add(lambda: [_OPEN])
        self.refusing = False
        self._house = self.loops.add("housekeeping", self._keep_house, vital=False)
        self._running = False
        self._audit_logged: AuditHead | None = None
        self.started_at: datetime | None = None

    @property
    def loops(self) -> Loops:
        """Every thread that runs as long as this controller does."""
        return self.database.loops

    @property
    def control(self) -> Control:
        """The control functions' view of this controller."""
        return self.engine.control

    @property
    def kept_lanes(self) -> KeptLanes[Looked]:
        """The lanes of overviews that were asked for before."""
        return self.engine.kept_lanes

    @property
    def store(self) -> SqliteStore:
        """The store."""
        return self.engine.store

    @property
    def audit(self) -> AuditTrail:
        """Who changed what."""
        return self.engine.audit

    @property
    def watchdog(self) -> WatchdogState:
        """The watchdog's passes of this process."""
        return self.runtime.watchdog

    @property
    def follows_files(self) -> bool:
        """Do configs come from a folder that it follows?"""
        return self.files is not None

    def watch(self) -> list[str]:
        """One pass of the watchdog, now; the checks that failed."""
        return self.runtime.watch()

    def submit(self, put: Put) -> "Future[Conflict | None]":
        """Commit one write; many that wait share a commit."""
        return self.store.submit([put])

    def commit_all(self, commits: Sequence[Sequence[Put]]) -> None:
        """Several commits in this order, which share a flush."""
        self.store.commit_all(commits)

    def head(self) -> int:
        """The number of the latest change."""
        return self.database.head()

    def wait_for_change(self, head: int, seconds: float) -> None:
        """Wait so long at most for a commit after `head`."""
        self.database.wait_for_change(head, seconds)

    def workload(self, now: datetime) -> Workload:
        """What waits to be done, in numbers."""
        return read_workload(self.database, self.consumers, self.watchdog.last_at, now)

    def deliveries(
        self, *, state: DeliveryState | None, channel: str | None, before: int, limit: int
    ) -> list[delivery_views.DeliveryView]:
        """Alerts on their way to people, the latest first."""
        return delivery_views.deliveries(self.database, state=state, channel=channel, before=before, limit=limit)

    def test_alerts(self, channel: str | None, now: datetime, by: str) -> list[ChannelTest]:
        """Send a test alert on a channel, or on all."""
        return self.alerts.test(channel, now, by)

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Have an own listener hear of every event."""
        self.engine.bus.subscribe(listener)

    def refusals(self, config: PipelineConfig) -> Sequence[Finding]:
        """Why a valid config does not run here."""
        return ()

    @property
    def consumers(self) -> tuple[StreamConsumer, ...]:
        """Everything that reads the change stream."""
        return self.engine.router, self.engine.sink, self.alerts.consumer

    def _alerting(self) -> Alerting:
        allowed = AddressPolicy(self.settings.allow_private_addresses)
        return build_alerting(
            self.settings.alerts,
            self.settings.environment,
            clock=self.clock,
            client=lambda: guarded_client(allowed, resolve_host),
            json_console=self.settings.json_logs,
        )

    def job_ended(self, key: RunKey, attempt: int) -> None:
        """A target says that a job is over: have its outcome logged, which wakes the run that waits for it."""
        writing.job_ended(self.control, key, attempt)

    # ------------------------------------------------------------------------------------------------ starting

    def start(self) -> Applied:
        """Run; returns once everything is under way, with what the folder of pipelines led to."""
        # Every consumer is registered before anything is swept or applied, so that no change is missed. The files are
        # applied before anything is driven: nothing is opened by what they no longer say.
        self._record_overrides()
        self.alerts.register()
        self.engine.register()
        self._report_installation()
        applied = self.files.apply(starting=True) if self.files is not None else Applied()
        self.runtime.start()
        self.alerts.start()
        self._running = True
        self.started_at = self.clock.now()
        self.feed.start()
        if self._commands is not None:
            self._commands.watch_unfinished()
        if self.files is not None:
            self.files.start(self.loops)
        self._house.start()
        self.store_watch.start()
        return applied

    def _report_installation(self) -> None:
        """What is stored was valid when it was applied; after an update it may not be, and then opens nothing."""
        installation = " ".join((__version__, *installed()))
        for one in catalog.report_installation(self.control, installation):
            _log.error("a stored config is invalid and is not run", pipeline=one.pipeline, errors=list(one.errors))

    def _record_overrides(self) -> None:
        """Who starts it against its own judgement is on the record."""
        if self.settings.accept_lost:
            self.audit.record(AuditNote(action=AuditAction.LOSS_ACCEPTED, actor=this_user()))
        if self.settings.insecure_no_auth:
            self.audit.record(AuditNote(action=AuditAction.OPENED_TO_ALL, actor=this_user()))

    def refuse_new_work(self) -> None:
        """The end is near: new requests are refused, for the next controller to answer. Safe in a signal handler."""
        self.refusing = True

    def stop(self) -> None:
        """Take no new work, finish what is in hand, close the store. Stopping twice is no error."""
        self.refuse_new_work()
        self.store_watch.stop()
        self.feed.stop()
        if self.files is not None and self._running:
            self.files.stop()
        self._house.stop()
        if self._running:
            self.runtime.stop()
            self.alerts.stop()
            self._running = False
        self._targets.close()
        self._probes.close()
        self.database.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _keep_house(self) -> float:
        """What commands wrote is not kept forever; the head of each day's audit trail is kept in the log, too."""
        try:
            if self._commands is not None:
                self._commands.prune(self.settings.output)
        except (InterlockError, OSError) as error:
            _log.error("old command output could not be removed", error=str(error))
        self._log_audit_head()
        return _HOUSEKEEPING_SECONDS

    def _log_audit_head(self) -> None:
        """Where logs are collected, the heads are out of reach of whoever can write to the store."""
        try:
            closed = self.audit.last_closed()
        except StoreError as error:
            _log.error("the audit trail cannot be read", error=str(error))
            return
        if closed is not None and closed != self._audit_logged:
            self._audit_logged = closed
            _log.info("a day of the audit trail is closed", day=closed.day, head=str(closed))

    # ------------------------------------------------------------------------------------------------- health

    def health_problems(self) -> list[str]:
        """What keeps this controller from doing its work, in words; nothing when it is ready."""
        if self.refusing:
            return ["the controller is stopping"]
        if not self._running:
            return ["the controller is not running"]
        found = [*self.loops.problems(), *self.store_watch.problems()]
        try:
            lags = {consumer.name: consumer.lag() for consumer in self.consumers}
        except StoreError as error:
            _log.error("the store cannot be read", error=str(error))
            return [*found, "the store cannot be read"]
        return found + [f"{name} is {lag} changes behind" for name, lag in lags.items() if lag > _LAG_LIMIT]

    def degradations(self) -> list[str]:
        """What is wrong although the controller does its work, in words."""
        return self.degradation_checks.answers()

    def command_output(self, run_id: str) -> str:
        """The end of what a command of this controller wrote; "" when there is none."""
        return self._commands.tail(run_id) if self._commands is not None else ""


def _target_settings(service: Service, settings: ServiceSettings) -> TargetSettings:
    """What has to outlive the controller lies beside its store; a store in memory has nothing beside it."""
    beside = settings.store.with_name(settings.store.name + JOBS) if settings.store is not None else None
    return TargetSettings(
        clock=service.clock,
        environment=settings.environment,
        allow_private=settings.allow_private_addresses,
        folder=beside,
        working_folder=settings.working_folder,
        output_limit=settings.output.limit,
        run_as=settings.run_as,
        ended=service.job_ended,
        callback_url=service.callbacks.url,
        loops=service.loops,
    )


def _probe_settings(settings: ServiceSettings) -> ProbeSettings:
    return ProbeSettings(
        environment=settings.environment,
        allow_private=settings.allow_private_addresses,
        working_folder=settings.working_folder,
        run_as=settings.run_as,
    )


def _with_environment(settings: ServiceSettings) -> Settings:
    """What decides knows the variables for jobs, and no secret."""
    return replace(
        settings.control,
        environment={**for_jobs(settings.environment), **for_jobs(settings.control.environment)},
        pools={COMMANDS: _COMMANDS_AT_ONCE, **settings.pools},
        audit=settings.audit,
    )


def _check_folder(store: Path | None) -> None:
    if store is not None and not store.parent.is_dir():
        raise StoreError(f"store {store}: the directory {store.parent} does not exist: create it, or name another file")

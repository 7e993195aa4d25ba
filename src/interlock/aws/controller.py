"""The AWS controller: the ports on AWS, wired for the control functions.

A function makes one at its cold start, from its environment variables; a command makes one from the names of an
environment. What a test replaces are the plain functions below: the clock, ids, job runners, the prober, pauses.
"""

import os
import random
import uuid
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from interlock.aws import clock as real_clock
from interlock.aws.clients import Clients
from interlock.aws.dynamodb.store import DynamoStore
from interlock.aws.executions import StepFunctionsExecutions
from interlock.aws.job_runs import remembering
from interlock.aws.names import Function
from interlock.aws.settings import AwsSettings, SettingsError, read_settings
from interlock.aws.timers import SchedulerTimers
from interlock.control.context import Control, Settings
from interlock.decide.templates import for_jobs
from interlock.model.config import PipelineConfig
from interlock.model.keys import Table
from interlock.model.run import Run
from interlock.ports.clock import Clock
from interlock.ports.jobs import JobRunner
from interlock.ports.probes import Prober

if TYPE_CHECKING:
    from interlock.aws.alerts import AlertQueue
    from interlock.aws.bus import EventBridgeBus
    from interlock.aws.dead_letters import Letter
    from interlock.aws.dispatching import Dispatcher
    from interlock.aws.dynamodb.streams import StreamBatch
    from interlock.control.alerts.alert_dispatcher import Routing
    from interlock.ports.secrets import Secrets


def clock() -> Clock:
    """The clock of this process."""
    return real_clock.LambdaClock()


def new_id() -> str:
    """An id that nobody else has."""
    return uuid.uuid4().hex


def pause(seconds: float) -> None:
    """Between two tries of a call."""
    real_clock.pause(seconds)


def jitter() -> float:
    """Spreads the pauses of what failed together: 0 to 1."""
    return random.random()


def secrets(settings: AwsSettings) -> "Secrets":
    """Where secrets of jobs and probes are looked up, call by call: the environment, Secrets Manager, SSM."""
    from interlock.jobs.secrets import SecretStore

    return SecretStore(settings.variables)


def job_runners(settings: AwsSettings, clock: Clock) -> Mapping[str, JobRunner]:
    """A runner for every type of job that can be started from a function; each loads its target when first called."""
    from interlock.aws.targets import make_runners

    return make_runners(settings, clock, secrets(settings))


def prober(settings: AwsSettings) -> Prober:
    """Who looks for probes."""
    from interlock.probes.registry import Probes, ProbeSettings

    given = ProbeSettings(environment=settings.variables, allow_private=settings.allow_private)
    return Probes(given, secrets(settings))


def refused(config: PipelineConfig) -> list[str]:
    """Why the functions cannot run a config; it is CONFIG_INVALID then."""
    from interlock.aws.refusals import impossible
    from interlock.config.problems import format_path

    return [f"{format_path(one.path)}: {one.message}" for one in impossible(config)]


def _look_first(control: Control, run: Run) -> None:
    # Loaded with the first run that has probes.
    from interlock.aws.looking import look_first

    look_first(control, run)


class Controller:
    """Everything of one process, each part made when it is first used."""

    def __init__(
        self,
        settings: AwsSettings,
        clients: Clients | None = None,
        clock_: Clock | None = None,
        *,
        probes: bool = False,
    ) -> None:
        """`probes`: this process looks before it evaluates."""
        self.settings = settings
        self.probes = probes
        self.clients = clients or Clients()
        self.clock = clock_ or clock()

    @cached_property
    def store(self) -> DynamoStore:
        """The four tables."""
        return DynamoStore(
            self.clients("dynamodb"),
            self.settings.tables,
            self.clock,
            pause=pause,
            refused=refused,
            event_ttl=self.settings.event_ttl,
        )

    @cached_property
    def executions(self) -> StepFunctionsExecutions:
        """The state machine."""
        return StepFunctionsExecutions(self.clients, self.settings.state_machine_arn, self.clock)

    @cached_property
    def timers(self) -> SchedulerTimers:
        """SQS delays and Scheduler entries."""
        return SchedulerTimers(self.settings, self.clients, self.store, self.clock, new_id)

    @cached_property
    def bus(self) -> "EventBridgeBus":
        """The event bus."""
        from interlock.aws.bus import EventBridgeBus

        return EventBridgeBus(self.clients, self.settings.event_bus_name)

    @cached_property
    def routing(self) -> "Routing":
        """Which events people hear of, and on which channel."""
        from interlock.aws.alerts import alert_routes
        from interlock.control.alerts.alert_channels import build_routing

        return build_routing(alert_routes(self.settings))

    @cached_property
    def alert_queue(self) -> "AlertQueue":
        """Alerts on their way."""
        from interlock.aws.alerts import AlertQueue

        return AlertQueue(self.clients, self.settings)

    @cached_property
    def dispatcher(self) -> "Dispatcher":
        """Who sends them."""
        from interlock.aws.channels import Channels
        from interlock.aws.dispatching import Dispatcher

        channels = Channels(self.settings, secrets(self.settings), self.clock)
        return Dispatcher(self.settings.environment, self.alert_queue, self.store, channels, self.clock, jitter)

    @cached_property
    def control(self) -> Control:
        """The world as the control functions see it."""
        return Control(
            store=self.store,
            executions=self.executions,
            timers=self.timers,
            jobs=remembering(job_runners(self.settings, self.clock), self.store, self.clock),
            clock=self.clock,
            new_id=new_id,
            settings=self.control_settings,
            probes=prober(self.settings) if self.probes else None,
            look_first=_look_first if self.probes else None,
        )

    @property
    def control_settings(self) -> Settings:
        """What differs from one installation to another, as the control functions know it."""
        return Settings(
            execution_timeout=self.settings.execution_timeout,
            stretch_timeout=False,
            tick_timers=True,
            # Joining wake-ups takes a timer; the orchestrator has none, and wakes seldom: the next in a pool's line.
            wake_every=timedelta(seconds=1 if self.settings.timer_queue_url else 0),
            trigger_max_attempts=self.settings.trigger_max_attempts,
            pools=self.settings.pools,
            environment=for_jobs(self.settings.variables),
        )

    def stream(self, function: Function) -> "StreamBatch":
        """The records of an invocation, and where those go that are given up on."""
        from interlock.aws.dead_letters import send_letter
        from interlock.aws.dynamodb.streams import StreamBatch

        def bury(table: Table, letter: "Letter") -> None:
            url = self.settings.dlq_urls.get(table)
            if not url:
                raise SettingsError(f"environment variable {table.name}_DLQ_URL is missing")
            send_letter(self.clients, url, letter)

        return StreamBatch(self.settings.tables, self.clock, bury, function)


def from_environment(function: Function, variables: Mapping[str, str] | None = None) -> Controller:
    """The controller of a function; SettingsError names every variable that is missing or wrong."""
    settings = read_settings(os.environ if variables is None else variables, function)
    return Controller(settings, probes=function is Function.ORCHESTRATOR)

"""What every control function is given: the ports, and the settings of this installation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from interlock.control.sensor_quotas import SensorQuotas
from interlock.model.audit import Actor
from interlock.model.run import Run
from interlock.ports.clock import Clock
from interlock.ports.executions import Executions
from interlock.ports.jobs import JobRunner
from interlock.ports.probes import Prober
from interlock.ports.store import Store
from interlock.ports.timers import Timers


@dataclass(frozen=True, slots=True)
class Auditing:
    """What the audit trail of a store holds, and for how long. `sensors`: also every sensor write."""

    sensors: bool = False
    keep: timedelta = timedelta(days=400)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Settings:
    """What may differ from one installation to another."""

    execution_timeout: timedelta = timedelta(hours=4)
    stretch_timeout: bool = True
    """Embedded: an execution may take as long as its windows need; on AWS the bound is the same for all."""
    tick_timers: bool = False
    """AWS: cron ticks and inclusion dates come as timers. Embedded: a heap in memory brings them (`CalendarClock`)."""
    wake_every: timedelta = timedelta(0)
    """AWS: a waiting run is woken at most once in this time, and what comes sooner is joined. Zero: at once, always."""
    lease_margin: timedelta = timedelta(minutes=30)
    trigger_max_attempts: int = 3
    missed_grace: timedelta = timedelta(minutes=5)
    reopen_for: timedelta = timedelta(hours=24)
    pools: Mapping[str, int] = field(default_factory=dict)
    """How many jobs of a pool may run at once; a pool that is not named here bounds nothing."""
    audit: Auditing = Auditing()
    """Embedded: what the audit trail holds. On AWS there is none (`Control.auditing`)."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that templates may use: INTERLOCK_*, without the controller's own settings and secrets."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Control:
    """The world as the six functions see it."""

    store: Store
    executions: Executions
    timers: Timers
    jobs: Mapping[str, JobRunner]
    clock: Clock
    new_id: Callable[[], str]
    settings: Settings = Settings()
    probes: Prober | None = None
    """Who looks for probes; None: nobody does, and nobody waits for them."""
    quotas: SensorQuotas | None = None
    """What the sensors of a pipeline may take; None: nobody counts."""
    look_first: "Callable[[Control, Run], object] | None" = None
    """Take the looks that an evaluation of a run would wait for; None: they are taken at their own times."""

    pause: Callable[[], None] = lambda: None
    """Let others go on, in the middle of work on thousands of pipelines: what was read before may have changed."""

    auditing: Auditing | None = None
    """What is recorded of who changed what; None: the store keeps no audit trail."""
    actor: Actor | None = None
    """For whom it acts, where that is recorded; None: for itself."""

    def now(self) -> datetime:
        """The current instant."""
        return self.clock.now()

    def acting(self, actor: Actor) -> "Control":
        """The same, acting for somebody: what they change is recorded, where the store keeps a trail."""
        return self if self.auditing is None else replace(self, actor=actor)

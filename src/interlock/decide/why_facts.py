"""What an explanation is made from: everything that is known of a run, as values."""

from datetime import datetime, timedelta

import msgspec

from interlock.decide import why_words as words
from interlock.decide.checks import RuleResult
from interlock.decide.pools import Place
from interlock.decide.real_periods import NoSuchPeriod
from interlock.model.config import Mode, PipelineConfig, Schedule
from interlock.model.keys import RunKey
from interlock.model.run import DryRun, FailureCategory, Run, SlaState


class RuleFact(msgspec.Struct, frozen=True):
    """What a rule came to, and when the observation it read was received."""

    result: RuleResult
    received_at: datetime | None = None


class AttemptFact(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, as far as is known of it. `refused`: how often the target refused to start its job."""

    number: int
    source: str = ""
    opened_at: datetime | None = None
    opened_by: str = ""
    requested_by: str = ""
    passed_at: datetime | None = None
    triggered_at: datetime | None = None
    ended_at: datetime | None = None
    job_id: str = ""
    outcome: str = ""
    error: str = ""
    category: FailureCategory | None = None
    warning: str = ""
    refused: int = 0


class NotableEvent(msgspec.Struct, frozen=True):
    """An event of the run that is worth knowing."""

    at: datetime
    type: str
    message: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an explanation is made from.

    `tick_at`: when the clock opens, or should have opened, this very run. `expected`: the schedule should have a run of
    this period, if no calendar withholds it. `rules_at`: when the rules came to this;
    None means as they stand now. `unreal`: why there can be no run of this period. `undated`: the sensors without a
    period of their own that a rerun of this past period would read. `sla` is the stored state, or what it will be.
    `next_start`: the schedule's next one.
    """

    config: PipelineConfig
    schedule: Schedule
    key: RunKey
    now: datetime
    run: Run | None = None
    attempts: tuple[AttemptFact, ...] = ()
    rules: tuple[RuleFact, ...] = ()
    rules_at: datetime | None = None
    withheld: str | None = None
    unreal: NoSuchPeriod | None = None
    undated: tuple[str, ...] = ()
    awaited_upstreams: tuple[str, ...] = ()
    place: Place | None = None
    sla: SlaState | None = None
    tick_at: datetime | None = None
    expected: bool = True
    watched_since: datetime | None = None
    next_start: tuple[datetime, str] | None = None
    events: tuple[NotableEvent, ...] = ()
    dry: DryRun | None = None
    config_changed: bool = False
    reopen_for: timedelta = timedelta(hours=24)

    @property
    def failing(self) -> tuple[RuleFact, ...]:
        """The rules that do not pass."""
        return tuple(one for one in self.rules if not one.result.passed)

    @property
    def rules_pass(self) -> bool:
        """What the rules come to together."""
        enough = len(self.rules) if self.rules and self.config.validation.trigger is Mode.ANY else 1
        return len(self.failing) < enough

    def at(self, instant: datetime) -> str:
        """An instant as it is read at the schedule's place: `08:30 EST`, with its date when that is not today's."""
        return words.clock(instant, self.schedule.timezone, self.now)

    def when(self, instant: datetime) -> str:
        """An instant with how far away it is: `08:30 EST (in 12m)`."""
        return f"{self.at(instant)} ({words.distance(instant, self.now)})"

"""A console: the API and the page over an environment on AWS, without an engine of its own.

It reads the tables by the same views and writes by the same control functions as the commands do; what a write sets in
motion is done by the functions in the account. Tokens and sessions lie in a small local file. What only the functions
know (armed timers, alerts in their queue) is counted where a service counts it; the rest is to be looked at in AWS.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final

from interlock.api.polled_feed import PolledFeed
from interlock.aws.clients import Clients
from interlock.aws.controller import Controller
from interlock.aws.names import Function, Queue
from interlock.aws.operations import deliveries as aws_deliveries
from interlock.aws.operations.dead_letter_queues import QUEUES, AwsLetter, DeadLetterQueues
from interlock.aws.operations.dead_letter_queues import LetterKind as AwsLetterKind
from interlock.aws.operations.deployed import deployed_settings
from interlock.aws.operations.environment import Environment
from interlock.aws.operations.lifecycle import deployed_timeout
from interlock.aws.operations.queue_depths import depth
from interlock.aws.operations.watching import run_pass
from interlock.aws.refusals import refusals
from interlock.aws.settings import read_settings
from interlock.config.alert_routes import AlertRoute
from interlock.config.problems import Finding
from interlock.control.alerts.alert_tests import ChannelTest
from interlock.control.config_files import degradations as file_degradations
from interlock.control.context import Control
from interlock.control.views.controller_view import FunctionView, Workload
from interlock.control.views.kept_lanes import KeptLanes
from interlock.control.views.overview import Looked
from interlock.control.watch.watch_slices import last_complete
from interlock.embedded.access.callbacks import Callbacks
from interlock.embedded.access.sessions import Sessions
from interlock.embedded.access.sign_on import SignOn
from interlock.embedded.access.tokens import Tokens
from interlock.embedded.alerts.delivery_rows import DeliveryState
from interlock.embedded.alerts.delivery_views import DeliveryView
from interlock.embedded.clock import SystemClock
from interlock.embedded.health import HealthChecks
from interlock.embedded.runtime import WatchdogState
from interlock.embedded.sqlite.database import Database
from interlock.embedded.stream.dead_letters import DeadLetter, LetterKind
from interlock.model.audit import Actor
from interlock.model.config import PipelineConfig
from interlock.model.errors import InterlockError, InvalidValueError
from interlock.model.events import Event
from interlock.ports.clock import Clock
from interlock.ports.store import Conflict, Put, Store

_EVERY: Final = timedelta(minutes=5)
_COUNTED_FOR: Final = timedelta(seconds=15)
_WRITERS: Final = 16
_READERS: Final = 16


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """What a console is started with. `state`: the file of tokens and sessions."""

    state: Path
    insecure_no_auth: bool = False
    alerts: tuple[AlertRoute, ...] = ()
    working_folder: Path | None = None


class Console:
    """An environment as the API sees it: `api.served.Served`."""

    def __init__(self, environment: Environment, settings: ConsoleSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.degradation_checks = HealthChecks()
        self.environment = environment
        self.database = Database.open(settings.state, clock=self.clock)
        self.tokens = Tokens(self.database)
        self.sessions = Sessions(self.database, self.tokens)
        self.sign_on: SignOn | None = None
        self.callbacks = Callbacks(None)
        # DynamoDB does not tell which partitions were written.
        self.kept_lanes: KeptLanes[Looked] | None = None
        variables = environment.names.variables
        self._controller = Controller(read_settings(variables), Clients(environment.client), self.clock)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="interlock-index")
        self._controller.store.read_index_with(self._readers)
        self.dead_letters = _Letters(DeadLetterQueues(environment, self.store, self.clock), self._count_letters)
        self.feed = PolledFeed(self.store, self.clock, loops=self.database.loops)
        self.refusing = False
        self.started_at: datetime | None = None
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="interlock-write")
        self._lock = threading.Lock()
        self._counted: tuple[datetime, dict[Queue, int]] | None = None

    def start(self) -> None:
        """Follow the events."""
        self.started_at = self.clock.now()
        self.feed.start()

    def stop(self) -> None:
        """Finish what is in hand. Stopping twice is no error."""
        self.refusing = True
        self.feed.stop()
        self._writers.shutdown()
        self._readers.shutdown()
        self.database.close()
        self.environment.close()

    def refuse_new_work(self) -> None:
        """The end is near. Safe in a signal handler."""
        self.refusing = True

    # ------------------------------------------------------------------------------------------- reading, writing

    @property
    def audit(self) -> None:
        """An environment has no audit trail of ours: CloudTrail says who called what."""
        return None

    @property
    def store(self) -> Store:
        """The tables."""
        return self._controller.store

    @cached_property
    def control(self) -> Control:
        """The control functions' view of the environment."""
        given = deployed_settings(self.environment, Function.ORCHESTRATOR)
        settings = replace(Controller(given).control_settings, execution_timeout=deployed_timeout(self.environment))
        return replace(self._controller.control, settings=settings)

    def submit(self, put: Put) -> "Future[Conflict | None]":
        """Commit one write on a thread: DynamoDB answers in its time."""
        return self._writers.submit(lambda: self.store.commit([put]))

    def commit_all(self, commits: Sequence[Sequence[Put]]) -> None:
        """Several commits, one after the other."""
        for puts in commits:
            self.store.commit(puts)

    def head(self) -> int:
        """Changes have no number here."""
        return 0

    def wait_for_change(self, head: int, seconds: float) -> None:
        """Wait a moment."""
        threading.Event().wait(min(seconds * 5, 0.5))

    def refusals(self, config: PipelineConfig) -> Sequence[Finding]:
        """What of a config does not run on AWS."""
        return list(refusals(config, self.control.settings.execution_timeout))

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """This process publishes nothing: the event-sink does."""

    # -------------------------------------------------------------------------------------------------- operating

    @property
    def follows_files(self) -> bool:
        """Configs come from Terraform and `interlock apply`."""
        return False

    @property
    def watchdog(self) -> WatchdogState:
        """The latest whole pass of the deployed function."""
        last = last_complete(self.store)
        return WatchdogState(last_at=last, next_at=None if last is None else last + _EVERY)

    def watch(self) -> list[str]:
        """One pass, by the deployed function."""
        return run_pass(self.environment, self.store)

    def workload(self, now: datetime) -> Workload:
        """As far as the queues say; armed timers are in EventBridge Scheduler and in SQS."""
        depths = self._depths(now)
        lags = {
            Function.SLA_MONITOR: depths[Queue.SLA_TIMERS],
            Function.STREAM_ROUTER: depths[Queue.TIMERS],
            Function.ALERT_DISPATCHER: depths[Queue.ALERTS],
        }
        last = self.watchdog.last_at
        return Workload(
            functions=[
                FunctionView(name=one.value, lag=lags.get(one, 0), last_at=last if one is Function.WATCHDOG else None)
                for one in Function
            ],
            deliveries={"all channels": depths[Queue.ALERTS]} if depths[Queue.ALERTS] else {},
            alerts_given_up=depths[Queue.ALERTS_DLQ],
        )

    def _depths(self, now: datetime) -> dict[Queue, int]:
        """What is due in each queue, counted every few seconds: the page asks again and again."""
        with self._lock:
            if self._counted is None or now - self._counted[0] > _COUNTED_FOR:
                found = {queue: depth(self.environment, queue) for queue in Queue}
                waiting = {queue: one.waiting + one.taken if one is not None else 0 for queue, one in found.items()}
                self._counted = now, waiting
            return self._counted[1]

    def _count_letters(self) -> int:
        depths = self._depths(self.clock.now())
        return sum(depths[queue] for queue in QUEUES)

    def deliveries(
        self, *, state: DeliveryState | None, channel: str | None, before: int, limit: int
    ) -> list[DeliveryView]:
        """Alerts from their first try on; those before it are in the queue, which cannot be looked into."""
        wanted = None if state is None else state.value
        found = aws_deliveries.deliveries(self.store, state=wanted, channel=channel, limit=10**9)
        views = [_delivery(one) for one in found]
        return [one for one in views if one.id < before][:limit]

    def test_alerts(self, channel: str | None, now: datetime, by: str) -> list[ChannelTest]:
        """Channels are the alert-dispatcher's."""
        name = self.environment.names.function(Function.ALERT_DISPATCHER)
        raise InvalidValueError(
            f"alerts are sent by the function {name}, with its settings: its log in CloudWatch (/aws/lambda/{name})"
            " says what became of each"
        )

    def health_problems(self) -> list[str]:
        """What keeps the console from its work."""
        if self.refusing:
            return ["the console is stopping"]
        return [*self.database.loops.problems(), *([self.feed.problem] if self.feed.problem else [])]

    def degradations(self) -> list[str]:
        """What is wrong although the controller does its work."""
        try:
            letters = self._count_letters()
            said = [f"{letters} dead letters (`interlock dlq list`)"] if letters else []
            answers = [*self.degradation_checks.answers(), *self.database.loops.degradations()]
            return [*file_degradations(self.store), *said, *answers]
        except InterlockError as error:
            return [f"the queues cannot be counted: {error}"]


class _Letters:
    """Dead letters, as the API pages them: in the order they came, behind one of them."""

    def __init__(self, queues: DeadLetterQueues, count: Callable[[], int]) -> None:
        self._queues = queues
        self.count = count

    def list(self, limit: int = 100, after: int = 0) -> "list[DeadLetter]":
        """Some of them. Ids have no order here: a page begins behind the letter of that id."""
        found = [_letter(one) for one in self._queues.list(10**6)]
        begin = next((at + 1 for at, one in enumerate(found) if one.id == after), 0)
        return found[begin : begin + limit]

    def redrive(self, ids: Sequence[int] | None = None, *, by: Actor | None = None) -> int:
        """Have these (None: all) done again. Who asked for it is in no audit trail here."""
        return self._queues.redrive(ids)


def _delivery(found: aws_deliveries.DeliveryView) -> DeliveryView:
    return DeliveryView(
        id=found.id,
        channel=found.channel,
        event_id=found.event_id,
        pipeline=found.pipeline,
        state=DeliveryState(found.state.value),
        tries=found.tries,
        queued_at=found.queued_at,
        error=found.error,
    )


def _letter(found: AwsLetter) -> DeadLetter:
    # What EventBridge could not hand over is a change of something, too.
    kind = LetterKind.CHANGE if found.kind is AwsLetterKind.EVENT else LetterKind(found.kind.value)
    return DeadLetter(
        id=found.id,
        kind=kind,
        source=found.source,
        record=found.record,
        error=found.error,
        tries=found.tries,
        first_at=found.first_at,
        last_at=found.last_at,
    )

"""What the API stands on: an embedded controller (`embedded.service.Service`), or a console over an AWS environment."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import Protocol

from interlock.config.alert_routes import AlertRoute
from interlock.config.problems import Finding
from interlock.control.alerts.alert_tests import ChannelTest
from interlock.control.context import Control
from interlock.control.views.controller_view import Workload
from interlock.control.views.kept_lanes import KeptLanes
from interlock.control.views.overview import Looked
from interlock.embedded.access.callbacks import Callbacks
from interlock.embedded.access.sessions import Sessions
from interlock.embedded.access.sign_on import SignOn
from interlock.embedded.access.tokens import Tokens
from interlock.embedded.alerts.delivery_rows import DeliveryState
from interlock.embedded.alerts.delivery_views import DeliveryView
from interlock.embedded.audit.trail import AuditTrail
from interlock.embedded.health import HealthChecks
from interlock.embedded.stream.dead_letters import DeadLetter
from interlock.embedded.stream.listeners import FeedEvent, Listener, SensorsWanted
from interlock.model.audit import Actor
from interlock.model.config import PipelineConfig
from interlock.model.events import Event
from interlock.ports.clock import Clock
from interlock.ports.store import Conflict, Put, Store


class ServedSettings(Protocol):
    """What it was started with, as far as routes ask."""

    @property
    def alerts(self) -> tuple[AlertRoute, ...]:
        """The channels in force."""
        ...

    @property
    def insecure_no_auth(self) -> bool:
        """May everybody on this machine do everything, until there is a token?"""
        ...

    @property
    def working_folder(self) -> Path | None:
        """Where commands run."""
        ...


class Feed(Protocol):
    """Events as they happen; see `embedded.feed.EventFeed`. Where events have no number, each has the number 0."""

    @property
    def listeners(self) -> int:
        """How many listen now."""
        ...

    @property
    def stopped(self) -> bool:
        """Will nothing come any more?"""
        ...

    def join(
        self, listener: Listener, ended: Callable[[], None], sensors: SensorsWanted | None = None
    ) -> tuple[int, int]:
        """Receive every event from now on; a ticket, and the number of the last event before.

        `sensors`: receive what is written of these, too, as far as the store can tell.
        """
        ...

    def leave(self, ticket: int) -> None:
        """Stop receiving events."""
        ...

    def between(self, after: int, until: int, limit: int = ...) -> tuple[list[FeedEvent], int] | None:
        """Some events with after < seq <= until, and how far they reach; None when some of them may be gone."""
        ...

    def stop(self) -> None:
        """Tell nobody any more, but that this is the end."""
        ...


class Letters(Protocol):
    """What was given up on."""

    def list(self, limit: int = ..., after: int = ...) -> list[DeadLetter]:
        """In the order they came."""
        ...

    def count(self) -> int:
        """How many there are."""
        ...

    def redrive(self, ids: Sequence[int] | None = None, *, by: Actor | None = None) -> int:
        """Have these (None: all) done again."""
        ...


class Passes(Protocol):
    """The watchdog's passes."""

    @property
    def last_at(self) -> datetime | None:
        """The latest whole pass."""
        ...

    @property
    def next_at(self) -> datetime | None:
        """When the next is due."""
        ...

    @property
    def failed_checks(self) -> Sequence[str]:
        """Which checks of the latest failed."""
        ...


class Served(Protocol):
    """A controller as the API sees it."""

    tokens: Tokens
    sessions: Sessions
    sign_on: SignOn | None
    degradation_checks: HealthChecks
    callbacks: Callbacks
    refusing: bool

    @property
    def settings(self) -> ServedSettings:
        """What it was started with."""
        ...

    @property
    def clock(self) -> Clock:
        """What time it is."""
        ...

    @property
    def control(self) -> Control:
        """The control functions' view."""
        ...

    @property
    def store(self) -> Store:
        """The store."""
        ...

    @property
    def kept_lanes(self) -> KeptLanes[Looked] | None:
        """The lanes of overviews that were asked for before; None where the store does not tell of changes."""
        ...

    @property
    def feed(self) -> Feed:
        """Events as they happen."""
        ...

    @property
    def dead_letters(self) -> Letters:
        """What was given up on."""
        ...

    @property
    def audit(self) -> AuditTrail | None:
        """Who changed what; None where no trail is kept."""
        ...

    @property
    def watchdog(self) -> Passes:
        """The watchdog's passes."""
        ...

    @property
    def started_at(self) -> datetime | None:
        """Since when it runs."""
        ...

    @property
    def follows_files(self) -> bool:
        """Do configs come from a folder that it follows?"""
        ...

    def watch(self) -> list[str]:
        """One pass of the watchdog, now; the checks that failed."""
        ...

    def submit(self, put: Put) -> "Future[Conflict | None]":
        """Commit one write, from the event loop: the future ends when it is durable."""
        ...

    def commit_all(self, commits: Sequence[Sequence[Put]]) -> None:
        """Several commits, in this order; when this returns, all are durable."""
        ...

    def head(self) -> int:
        """The number of the latest change; 0 where changes have none."""
        ...

    def wait_for_change(self, head: int, seconds: float) -> None:
        """Wait so long at most for a commit after `head`."""
        ...

    def workload(self, now: datetime) -> Workload:
        """What waits to be done, in numbers."""
        ...

    def deliveries(
        self, *, state: DeliveryState | None, channel: str | None, before: int, limit: int
    ) -> list[DeliveryView]:
        """Alerts on their way to people, the latest first."""
        ...

    def test_alerts(self, channel: str | None, now: datetime, by: str) -> list[ChannelTest]:
        """Send a test alert on a channel, or on all."""
        ...

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Have this process's own published events counted."""
        ...

    def refusals(self, config: PipelineConfig) -> Sequence[Finding]:
        """Why a valid config does not run here."""
        ...

    def health_problems(self) -> list[str]:
        """What keeps it from doing its work."""
        ...

    def degradations(self) -> list[str]:
        """What is wrong although it does its work."""
        ...

    def refuse_new_work(self) -> None:
        """The end is near."""
        ...

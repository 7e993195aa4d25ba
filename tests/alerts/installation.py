"""An installation that alerts: a store, the alert-dispatcher on it, and real receivers."""

import itertools
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx

from interlock.config.alert_routes import AlertRoute, parse_alert_routes
from interlock.control import records
from interlock.control.alerts.alert_channels import build_alerting
from interlock.embedded.alerts.alerting import AlertDispatcher
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model.events import EventType
from tests.alerts.alerts import event
from tests.alerts.receivers import FakeSlack, Hook
from tests.conformance.manual_clock import ManualClock

SETTINGS = """
    [[alerts]]
    channel = "slack"
    slack_channel = "C0123456789"
    [[alerts]]
    channel = "webhook"
    url_env = "HOOK_URL"
    secret_env = "HOOK_SECRET"
    headers_env = { Authorization = "HOOK_AUTH" }
"""


class Receivers:
    """One of each kind, down until it is called `up`."""

    def __init__(self, clock: ManualClock, token: str) -> None:
        self.slack = FakeSlack(token, clock)
        self.hook = Hook()

    def up(self) -> None:
        self.slack.up()
        self.hook.up()

    def down(self) -> None:
        self.slack.down()
        self.hook.down()

    def close(self) -> None:
        self.slack.close()
        self.hook.close()


class Installation:
    """The part of a controller that alerts, on virtual time unless it is started."""

    def __init__(
        self,
        path: Path,
        clock: ManualClock,
        receivers: Receivers,
        client: httpx.Client,
        environment: dict[str, str],
        *,
        inline: bool = True,
        settings: str = SETTINGS,
    ) -> None:
        self.clock = clock
        self.database = Database.open(path, clock=clock, inline=inline)
        self.store = SqliteStore(self.database, clock)
        routes = parse_alert_routes(tomllib.loads(settings)["alerts"])
        alerting = build_alerting(
            [route for route in routes if isinstance(route, AlertRoute)],
            environment,
            clock=clock,
            client=lambda: client,
            slack_url=receivers.slack.url,
        )
        self.dispatcher = AlertDispatcher(self.database, self.store, alerting, clock, jitter=lambda: 0.5)
        self.dispatcher.register()
        self.letters = DeadLetters(self.database)

    def tell(self, pipeline: str, type_: EventType = EventType.SLA_BREACH, **detail: object) -> str:
        """An event is committed; the id of its alert."""
        put = records.put_event(event(type_, pipeline, at=self.clock.now(), **detail))  # type: ignore[arg-type]
        assert self.store.commit([put]) is None
        return f"{pipeline}/{put.key.sk}"

    def play(self, duration: timedelta) -> None:
        """Let virtual time pass, and everything happen that falls into it."""
        end = self.clock.now() + duration
        for _ in itertools.count():
            self.dispatcher.pump()
            self.dispatcher.run_due(self.clock.now())
            at = self.dispatcher.next_at()
            if at is None or at > end:
                break
            self._move_to(at)
        self._move_to(end)

    def _move_to(self, at: datetime) -> None:
        self.clock.advance(seconds=max(0.0, (at - self.clock.now()).total_seconds()))

    def close(self) -> None:
        self.database.close()


@contextmanager
def receivers_of(clock: ManualClock, token: str) -> Iterator[Receivers]:
    receivers = Receivers(clock, token)
    try:
        yield receivers
    finally:
        receivers.close()

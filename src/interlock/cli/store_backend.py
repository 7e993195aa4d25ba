"""The file of a store as a backend: answers without a server, and what only the embedded runtime knows."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final
from uuid import uuid4

from interlock.cli.control_backend import ALL, ControlBackend, answer, instant
from interlock.cli.names import nearest_names
from interlock.client import answers
from interlock.control.config_files import degradations
from interlock.control.context import Auditing, Control, Settings
from interlock.control.views import controller_view
from interlock.embedded.alerts import delivery_views
from interlock.embedded.alerts.delivery_rows import DeliveryState
from interlock.embedded.audit.actors import this_user
from interlock.embedded.audit.trail import AuditTrail, AuditWanted
from interlock.embedded.clock import SystemClock
from interlock.embedded.engine import Engine
from interlock.embedded.sqlite.database import Database
from interlock.embedded.sqlite.store import SqliteStore
from interlock.embedded.stream.dead_letters import DeadLetters
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.config import JobType
from interlock.ports.jobs import JobRunner

_DECISION_SECONDS: Final = 2.0
_AUDITING: Final = Auditing()


@contextmanager
def opened(path: Path, *, writing: bool, auditing: Auditing = _AUDITING) -> "Iterator[StoreBackend]":
    """The store of that file; one that does not exist is an error, and stays that way. `auditing`: of its project."""
    clock = SystemClock()
    with (
        Database.open(path, clock=clock, create=False, read_only=not writing, inline=writing) as database,
        nearest_names(),
    ):
        yield StoreBackend(database, clock, auditing)


class StoreBackend(ControlBackend):
    """Answers from the file of a store."""

    _look_seconds = 0.5

    def __init__(self, database: Database, clock: SystemClock, auditing: Auditing = _AUDITING) -> None:
        super().__init__(SqliteStore(database, clock), clock)
        self.database = database
        self._auditing = auditing

    @cached_property
    def _engine(self) -> Engine:
        settings = Settings(audit=self._auditing)
        return Engine(self.database, self.clock, {}, new_id=lambda: uuid4().hex[:12], settings=settings)

    @cached_property
    def control(self) -> Control:
        """What decides and writes, for the user of this command."""
        return self._engine.control.acting(this_user())

    @cached_property
    def _reading(self) -> Control:
        """A control whose only target is this machine's commands; other targets are asked by a running controller."""
        from interlock.jobs.command.target import make_command_runner
        from interlock.ports.job_targets import TargetSettings

        path = self.database.path
        folder = path.with_name(path.name + ".jobs") if path is not None else None
        runners: dict[str, JobRunner] = {}
        if folder is not None and folder.is_dir():
            runners[JobType.COMMAND] = make_command_runner(TargetSettings(clock=self.clock, folder=folder))
        return Engine(self.database, self.clock, runners, new_id=lambda: uuid4().hex[:12]).control

    def _decided_within(self) -> float:
        from interlock.embedded.process.discovery import find_server

        served = self.database.path is not None and find_server(self.database.path) is not None
        return _DECISION_SECONDS if served else 0.0

    def _head(self) -> int:
        return self.database.head()

    def _changed(self, head: int, seconds: float) -> bool:
        return self.database.wait_for_change(head, seconds) > head

    # ----------------------------------------------------------------------------------------------- operating

    def controller(self) -> answers.Controller:
        """How the controller stands, as far as its store says."""
        degraded = [*degradations(self.store), *delivery_views.degradations(self.database)]
        return answer(controller_view.config_state(self.store, degraded), answers.Controller)

    def run_watchdog(self) -> answers.WatchdogPass:
        """One pass of the watchdog, now."""
        failed = self._engine.watch()
        after = {"failedChecks": failed}
        self._engine.audit.record(AuditNote(action=AuditAction.WATCHDOG_RUN, actor=this_user(), after=after))
        return answers.WatchdogPass(failed_checks=failed)

    def alerts(
        self, *, state: str | None = None, channel: str | None = None, limit: int | None = 100
    ) -> list[answers.Delivery]:
        """Alerts on their way to people, the latest first."""
        wanted = None if state is None else DeliveryState(state)
        found = delivery_views.deliveries(self.database, state=wanted, channel=channel, limit=limit or ALL)
        return [answer(one, answers.Delivery) for one in found]

    def audit(
        self,
        *,
        pipeline: str | None = None,
        actor: str | None = None,
        action: str | Sequence[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = 100,
    ) -> list[answers.AuditRecord]:
        """Who changed what, the latest first."""
        names = () if action is None else (action,) if isinstance(action, str) else action
        wanted = AuditWanted(
            pipeline=pipeline,
            actor=actor,
            actions=tuple(AuditAction(name) for name in names),
            since=instant(since),
            until=instant(until),
        )
        found = AuditTrail(self.database).read(wanted, limit=limit or ALL)
        return [answer(one, answers.AuditRecord) for one in found]

    def dead_letters(self, *, limit: int | None = 100) -> list[answers.DeadLetter]:
        """What was given up on, in the order it came."""
        found = DeadLetters(self.database).list(limit or ALL)
        return [answer(one, answers.DeadLetter) for one in found]

    def redrive(self, ids: Sequence[int] | None = None) -> int:
        """Have these dead letters (None: all) done again; how many there were."""
        return DeadLetters(self.database).redrive(ids)

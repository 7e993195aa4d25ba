"""An environment on AWS as a backend: its tables are read and written by the same control functions.

What a command writes is acted upon by the functions in the account, as whatever else is written there. What only they
may do (a pass of the watchdog, redriving a record) they are called for, so that it is done with their rights, their
settings and their version.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final
from uuid import uuid4

from interlock.aws.clients import Clients
from interlock.aws.controller import Controller
from interlock.aws.dynamodb.items import INDEX_PARTITIONS
from interlock.aws.names import Function
from interlock.aws.operations import deliveries
from interlock.aws.operations.address import AwsAddress
from interlock.aws.operations.dead_letter_queues import DeadLetterQueues
from interlock.aws.operations.deployed import deployed_settings
from interlock.aws.operations.environment import Environment, open_environment
from interlock.aws.operations.lifecycle import deployed_timeout
from interlock.aws.operations.watching import run_pass
from interlock.aws.settings import read_settings
from interlock.cli.control_backend import ALL, ControlBackend, answer
from interlock.cli.names import nearest_names
from interlock.client import answers
from interlock.control.config_files import degradations
from interlock.control.context import Control
from interlock.control.views import controller_view
from interlock.embedded.clock import SystemClock, pause
from interlock.model.errors import InvalidValueError

_DECISION_SECONDS: Final = 10.0


@contextmanager
def opened(address: AwsAddress) -> "Iterator[AwsBackend]":
    """The environment of an address; an error says in one line why it cannot be had. Creates nothing."""
    environment = open_environment(address)
    try:
        with _called_as(environment), nearest_names(), ThreadPoolExecutor(INDEX_PARTITIONS) as readers:
            yield AwsBackend(environment, readers)
    finally:
        environment.close()


@contextmanager
def _called_as(environment: Environment) -> Iterator[None]:
    """While it is open: targets that are asked what a job wrote are asked by the same profile, in the same region."""
    wanted = {"AWS_REGION": environment.names.region, "AWS_DEFAULT_REGION": environment.names.region}
    if environment.address.profile is not None:
        wanted["AWS_PROFILE"] = environment.address.profile
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class AwsBackend(ControlBackend):
    """Answers from the tables of an environment."""

    _look_seconds = 2.0

    def __init__(self, environment: Environment, readers: Executor) -> None:
        clock = SystemClock()
        self.environment = environment
        variables = {**os.environ, **environment.names.variables}
        self._controller = Controller(read_settings(variables), Clients(environment.client), clock)
        self._controller.store.read_index_with(readers)
        super().__init__(self._controller.store, clock)

    @cached_property
    def control(self) -> Control:
        """What decides and writes."""
        return replace(self._controller.control, new_id=lambda: uuid4().hex[:12])

    def claim(
        self, pipeline: str, date: str | None = None, *, schedule: str | None = None, claim_id: str | None = None
    ) -> answers.Claim:
        """Take the job of an external run, by the pools and bounds of the deployed functions."""
        given = deployed_settings(self.environment, Function.ORCHESTRATOR)
        self.control = replace(self.control, settings=Controller(given).control_settings)
        return super().claim(pipeline, date, schedule=schedule, claim_id=claim_id)

    @property
    def _reading(self) -> Control:
        return self._controller.control

    @cached_property
    def execution_timeout(self) -> timedelta:
        """How long an execution may take, as the deployed state machine says."""
        return deployed_timeout(self.environment)

    def _decided_within(self) -> float:
        return _DECISION_SECONDS

    def _head(self) -> int:
        return 0

    def _changed(self, head: int, seconds: float) -> bool:
        pause(seconds)
        return True

    # ----------------------------------------------------------------------------------------------- operating

    def controller(self) -> answers.Controller:
        """How the controller stands, as far as its tables and queues say."""
        degraded = [*degradations(self.store), *deliveries.degradations(self.environment)]
        return answer(controller_view.config_state(self.store, degraded), answers.Controller)

    def run_watchdog(self) -> answers.WatchdogPass:
        """One pass of the watchdog, now, by the deployed function."""
        return answers.WatchdogPass(failed_checks=run_pass(self.environment, self.store))

    def alerts(
        self, *, state: str | None = None, channel: str | None = None, limit: int | None = 100
    ) -> list[answers.Delivery]:
        """Alerts on their way to people, the latest first, each from its first try on."""
        found = deliveries.deliveries(self.store, state=state, channel=channel, limit=limit or ALL)
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
        """There is no trail here."""
        raise InvalidValueError("no audit trail is kept on AWS: CloudTrail says who called what")

    @cached_property
    def _letters(self) -> DeadLetterQueues:
        return DeadLetterQueues(self.environment, self.store, self.clock)

    def dead_letters(self, *, limit: int | None = 100) -> list[answers.DeadLetter]:
        """What was given up on, in the order it came."""
        found = self._letters.list(limit or ALL)
        return [answer(one, answers.DeadLetter) for one in found]

    def redrive(self, ids: Sequence[int] | None = None) -> int:
        """Have these dead letters (None: all) done again; how many there were."""
        return self._letters.redrive(ids)

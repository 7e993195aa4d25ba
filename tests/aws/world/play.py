"""Plays a scenario on the in-process AWS: the same loop of instants as the simulation, another controller under it.

At one instant: steps, timers, ends of jobs, executions, and all that follows by the streams; then the watchdog. What
the simulation asks of its engine, `AwsEngine` does by the cloud.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from interlock.aws.controller import Controller
from interlock.aws.dynamodb.changes import change_of
from interlock.aws.settings import read_settings
from interlock.control.context import Control
from interlock.control.event_sink import event_of, is_event
from interlock.embedded.asl.executions import ExecutionInfo
from interlock.model.keys import Table
from interlock.simulation.scenario import Scenario
from interlock.simulation.world import World
from tests.aws.world.cloud import Cloud, client
from tests.aws.world.functions import Modules
from tests.aws.world.machine import StateMachine
from tests.aws.world.plan import Plan, PlannedFunction
from tests.aws.world.tables import wire
from tests.aws.world.terraform import shipped


class AwsWorld(World):
    """A scenario on AWS. To be used within `on_aws`."""

    def __init__(
        self, scenario: Scenario, plan: Plan | None = None, machine: type[StateMachine] = StateMachine
    ) -> None:
        super().__init__(scenario)
        self.database.close()
        self.cloud = Cloud(plan or _planned(scenario), self.clock, self._prepare, machine)
        self.database = _Head(self.cloud)  # type: ignore[assignment]  # what the loop asks of its store

    def _prepare(self, modules: Modules, function: PlannedFunction) -> None:
        """Put virtual time and the scripted targets into a container."""
        wiring: Any = modules["interlock.aws.controller"]
        wiring.clock = lambda: self.clock
        wiring.new_id = self._new_id
        wiring.pause = lambda seconds: None
        wiring.job_runners = lambda settings, clock: self.targets.runners()
        wiring.prober = lambda settings: self.probes
        wiring.refused = lambda config: []  # the scripted targets and probes stand for those that AWS has not
        clients: Any = modules["interlock.aws.clients"]
        clients.make_client = client
        invocation: Any = modules["interlock.aws.invocation"]
        invocation.configure_logs = lambda level: None

    def _new_id(self) -> str:
        return f"{next(self._ids):06d}"

    def _wire(self) -> None:
        self._engine = AwsEngine(self)  # type: ignore[assignment]  # does what the loop asks of its engine
        self._recorder = _Recorder(self)  # type: ignore[assignment]

    def crash(self) -> None:
        """Every function loses its process; there is nothing else to lose."""
        self.crashes += 1
        self.cloud.functions.cold()

    def _sweep(self) -> None:
        """DynamoDB removes what expired when it likes; nobody may notice."""

    def dead_letters(self) -> int:
        """What is in the queues of dead letters."""
        return self.cloud.dead_letters()


@contextmanager
def on_aws(
    scenario: Scenario, plan: Plan | None = None, machine: type[StateMachine] = StateMachine
) -> Iterator[AwsWorld]:
    """A world in which the scenario can be played."""
    world = AwsWorld(scenario, plan, machine)
    with world.cloud.running():
        yield world


def _planned(scenario: Scenario) -> Plan:
    pools = json.dumps(dict(scenario.pools))
    return shipped(variables={"POOLS": pools} if scenario.pools else {})


class _Head:
    """What the loop asks of a database: has anything been written?"""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def head(self) -> int:
        """A number that grows with every write."""
        return self._cloud.tables.writes

    def drop_deferred(self) -> None:
        """Nothing is deferred here."""


class _Recorder:
    """The timeline: every event, in the order of the events stream."""

    def __init__(self, world: AwsWorld) -> None:
        self._world = world
        self._position = 0

    def register(self) -> None:
        """From the start of the stream."""

    def pump(self) -> int:
        """Add what is new."""
        found = self._world.cloud.tables.records(Table.EVENTS, self._position)
        self._position += len(found)
        planned = self._world.cloud.plan.tables[Table.EVENTS]
        for record in found:
            change = change_of(wire(record, planned), Table.EVENTS)
            if is_event(change) and change.item and record["eventName"] == "INSERT":
                self._world.lines.append(event_of(change))
        return len(found)


class AwsEngine:
    """The controller on AWS, as the loop of the simulation drives an engine."""

    def __init__(self, world: AwsWorld) -> None:
        cloud = world.cloud
        self._cloud = cloud
        variables = {name: value for one in cloud.plan.functions for name, value in one.environment.items()}
        controller = Controller(read_settings(variables), clients=client, clock_=world.clock)  # type: ignore[arg-type]
        self.store = controller.store
        self.control = Control(
            store=controller.store,
            executions=controller.executions,
            timers=controller.timers,
            jobs=world.targets.runners(),
            clock=world.clock,
            new_id=world._new_id,
            settings=controller.control_settings,
            probes=world.probes,
        )
        self.executions = _Executions(cloud)
        self.timers = _Timers(cloud)
        self.router = _Router(cloud)
        self.sink = _Nothing()
        self.calendar = self.probes = self.sink

    def prepare(self) -> None:
        """Nothing to load: each function begins when it is invoked."""

    def fire_timers(self, now: datetime) -> int:
        """Timers that are due; how many."""
        del now
        return self._cloud.pump_timers()

    def watch(self, *, quiet_to: datetime | None = None) -> list[str]:
        """The rule of the watchdog fires."""
        del quiet_to
        for rule in self._cloud.plan.rules:
            if rule.every is not None:
                self._cloud.bus.fire(rule)
        self._cloud.pump_streams()
        return []


class _Executions:
    def __init__(self, cloud: Cloud) -> None:
        self._machine = cloud.machine

    def run_due(self, now: datetime) -> int:
        return self._machine.run_due(now)

    def next_due(self) -> datetime | None:
        return self._machine.next_at()

    def prune(self, before_ms: int) -> int:
        del before_ms
        return 0

    def list_open(self, limit: int) -> list[ExecutionInfo]:
        """The open executions, as the embedded runtime shows its own."""
        found = [one for one in self._machine.executions.values() if one.ended_at is None]
        return [
            ExecutionInfo(
                name=one.state.name,
                status=one.state.status,
                state=one.state.state,
                started_at=one.state.started_at,
                entered_at=one.state.entered_at,
                waiting=one.state.waiting.kind if one.state.waiting else None,
                waiting_until=one.state.waiting.until if one.state.waiting else None,
                times_out_at=one.state.times_out_at,
            )
            for one in found[:limit]
        ]


class _Timers:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def next_at(self) -> datetime | None:
        return self._cloud.next_at()


class _Router:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def pump(self) -> int:
        return self._cloud.pump_streams()

    def lag(self) -> int:
        return sum(stream.lag() for stream in self._cloud.streams)


class _Nothing:
    """A part of the embedded engine that AWS has not: its work is done by timers and streams."""

    def pump(self) -> int:
        return 0

    def lag(self) -> int:
        return 0  # the router's covers all streams

    def deliver_due(self, now: datetime) -> None:
        del now

    def look_at_all(self, now: datetime) -> int:
        del now
        return 0

    def next_at(self) -> datetime | None:
        return None
